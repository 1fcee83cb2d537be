package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// result is a line of a file of results.
type result struct {
	With    string // digest of the compiler and of package air
	Library string // its path
	Target  string
	Checked bool
	Kernel  string
	Error   string // empty if it compiles
}

// results are those of this run and of earlier ones, in a file to which each kernel adds a line.
type results struct {
	file   *os.File // nil: not kept
	passed map[result]bool
}

// openResults reads the file and opens it for appending. An incomplete last line is removed.
func openResults(path string) (*results, error) {
	r := &results{passed: map[result]bool{}}
	if path == "" {
		return r, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	whole := int64(0)
	in := bufio.NewReader(f)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		var x result
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, errors.Join(fmt.Errorf("%s:%d: no line of results: %w", path, number, err), f.Close())
		}
		if x.Error == "" {
			r.passed[x] = true
		}
		whole += int64(len(line))
	}
	if err := f.Truncate(whole); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.file = f
	return r, nil
}

func (r *results) add(x result) error {
	if r.file == nil {
		return nil
	}
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

func (r *results) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
