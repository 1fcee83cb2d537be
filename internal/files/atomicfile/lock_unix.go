//go:build linux || darwin

package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// locks says that a lock ends with the file's descriptor and that an open file can be
// renamed. So a file stays open and locked until it has been renamed.
const locks = true

// lock locks f if nobody else has. The system releases the lock when the process ends,
// in whatever way.
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
