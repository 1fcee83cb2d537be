//go:build !linux && !darwin

package mmap

import (
	"io"
	"os"
)

// mapFile reads the first size bytes of f into memory.
func mapFile(f *os.File, size int) ([]byte, func([]byte) error, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, err
	}
	return data, nil, nil
}

// pages says whether a mapping consists of whole pages.
const pages = false
