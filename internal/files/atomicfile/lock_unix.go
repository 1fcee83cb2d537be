//go:build linux || darwin

package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// locks says that a lock ends with the file's descriptor, and that an open file
// can be renamed: it stays open, and locked, until it is.
const locks = true

// lock takes the lock of f if nobody has it. The system gives it back when a
// process ends, however it does.
func lock(f *os.File) locking {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return held
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return taken
		default:
			return unknown
		}
	}
}
