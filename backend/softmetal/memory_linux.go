package softmetal

import (
	"os"

	"golang.org/x/sys/unix"
)

// sharedFile returns an anonymous file in memory (a memfd).
func sharedFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("mlxc-softmetal", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "softmetal"), nil
}

// punch frees the memory of a part of the file.
func punch(f *os.File, at, n int64) {
	if n > 0 {
		// If this fails, the memory is freed when the file is closed.
		_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, n)
	}
}
