package inputs

import (
	"fmt"
	"io"
	"os"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/metallib"
)

// Library is an open Metal library.
type Library struct {
	*metallib.Library
	Data   []byte // the whole file
	closer io.Closer
}

// Close releases the file.
func (l *Library) Close() error {
	if l.closer == nil {
		return nil
	}
	return l.closer.Close()
}

// OpenLibrary opens a compiled Metal library; "-" is standard input. Library.Close must be
// called.
func OpenLibrary(path string) (*Library, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a Metal library", path)
	}
	in, err := Look(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	l := &Library{Data: in.head}
	switch {
	case !metallib.Is(in.head): // Parse says what the file is instead, without reading on
	case in.pipe:
		if l.Data, err = in.all(maxPiped); err != nil {
			return nil, err
		}
	default:
		m, err := mmap.Open(path)
		if err != nil {
			return nil, err
		}
		l.Data, l.closer = m.Bytes(), m
	}
	if l.Library, err = metallib.Parse(in.Name(), l.Data); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
