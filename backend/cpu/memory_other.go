//go:build !linux && !darwin

package cpu

// physicalMemory returns the machine's memory in bytes, 0 if unknown.
func physicalMemory() int64 { return 0 }

// mapMemory allocates with the Go runtime: on this system there is no other way.
func mapMemory(size int64) ([]byte, error) { return aligned(make([]byte, size+bufferAlign), size), nil }

func unmapMemory([]byte) error { return nil }
