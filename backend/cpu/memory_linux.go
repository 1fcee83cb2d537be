package cpu

import (
	"os"

	"golang.org/x/sys/unix"
)

// physicalMemory returns the machine's memory in bytes, or what the control group
// of the process allows of it; 0 if unknown.
func physicalMemory() int64 {
	limit := controlGroupLimit(os.DirFS("/"))
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return limit
	}
	return min(limit, int64(uint64(i.Totalram)*uint64(i.Unit)))
}
