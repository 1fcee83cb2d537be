//go:build linux || darwin

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f. MAP_SHARED, not MAP_PRIVATE: a
// read-only mapping needs no copy-on-write reserve, and the pages stay the page
// cache's own.
func mapFile(f *os.File, size int) ([]byte, func([]byte) error, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data[:size:size], func(b []byte) error {
		return os.NewSyscallError("munmap", unix.Munmap(b))
	}, nil
}

// pages: a mapping is whole pages.
const pages = true
