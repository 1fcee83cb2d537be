// Package regular reads files that somebody else has named: nothing but regular files of a bounded length.
// Opening a named pipe waits for whoever writes it, and a device may never end.
package regular

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read returns the contents of a file that has at most so many bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return read(f, info, path, most)
}

// read is Read of an open file.
func read(f *os.File, info fs.FileInfo, path string, most int64) ([]byte, error) {
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, not a file", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file, but a pipe, a socket or a device: nothing is read from it", path)
	case info.Size() > most:
		return nil, tooLong(path, most)
	}
	data := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		case int64(len(data)) > most: // it grows
			return nil, tooLong(path, most)
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

func tooLong(path string, most int64) error {
	return fmt.Errorf("%s is longer than the %d bytes that such a file may have", path, most)
}
