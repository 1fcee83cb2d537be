//go:build linux || darwin

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of f. It uses MAP_SHARED and not MAP_PRIVATE,
// because a read-only mapping needs no reserve for copy-on-write, and its pages stay
// those of the page cache.
func mapFile(f *os.File, size int) ([]byte, func([]byte) error, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data[:size:size], func(b []byte) error {
		return os.NewSyscallError("munmap", unix.Munmap(b))
	}, nil
}

// pages says whether a mapping consists of whole pages.
const pages = true
