//go:build linux || darwin

package cpu

import "golang.org/x/sys/unix"

// mapMemory asks the system for pages of zeros.
func mapMemory(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapMemory(data []byte) error { return unix.Munmap(data) }
