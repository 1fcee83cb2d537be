package mmap

import (
	"fmt"
	"math"
	"os"
)

// Map is the contents of a file, read-only. The zero Map is closed and empty.
type Map struct {
	path    string
	info    os.FileInfo
	data    []byte
	release func([]byte) error // nil: there is nothing to release (an empty or closed Map)
}

// Open maps the regular file at path. An empty file gives an empty Map. The file's
// descriptor is closed before Open returns, because the mapping does not need it.
func Open(path string) (*Map, error) {
	// Checked before opening, because opening a named pipe would wait for its writer.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, special(path, st)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, special(path, st)
	}
	size := st.Size()
	if size == 0 {
		return &Map{info: st}, nil // mmap(2) refuses a length of 0
	}
	if size > math.MaxInt {
		return nil, fmt.Errorf("mmap: %s: %d bytes do not fit this machine's address space (at most %d)", path, size, math.MaxInt)
	}
	data, release, err := mapFile(f, int(size))
	if err != nil {
		return nil, fmt.Errorf("mmap: %s: cannot map %d bytes: %w", path, size, err)
	}
	m := &Map{path: path, info: st, data: data, release: release}
	m.register()
	return m, nil
}

func special(path string, st os.FileInfo) error {
	return fmt.Errorf("mmap: %s: not a regular file (%s); only regular files can be mapped", path, st.Mode().Type())
}

// Info returns what was known of the file when it was opened.
func (m *Map) Info() os.FileInfo { return m.info }

// Bytes returns the whole file, without a copy. Its capacity equals its
// length, so an append copies. It is nil after Close.
func (m *Map) Bytes() []byte { return m.data }

// Close releases the mapping. Slices of [Map.Bytes] must not be used after that. A
// second Close does nothing.
func (m *Map) Close() error {
	m.forget()
	data, release := m.data, m.release
	m.data, m.release = nil, nil
	if release == nil {
		return nil
	}
	if err := release(data); err != nil {
		return fmt.Errorf("mmap: cannot unmap %d bytes: %w", len(data), err)
	}
	return nil
}
