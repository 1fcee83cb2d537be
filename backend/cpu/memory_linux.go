package cpu

import "golang.org/x/sys/unix"

// physicalMemory returns the machine's memory in bytes, 0 if unknown.
func physicalMemory() int64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return int64(uint64(i.Totalram) * uint64(i.Unit))
}
