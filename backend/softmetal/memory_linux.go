package softmetal

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharedFile returns a file in memory that no folder has.
func sharedFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("mlxc-softmetal", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "softmetal"), nil
}

// punch gives the memory of a piece of the file back.
func punch(f *os.File, at, n int64) {
	if n > 0 {
		// Where it fails the memory is given back with the file.
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, n)
	}
}
