// Package modfile opens modules for the commands, whatever their form: a
// container (.mlxg) or a text (.mlxt), told apart by their first bytes.
package modfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Options of Open.
type Options struct {
	Verify       bool // read every byte and check every digest
	SkipExternal bool // leave external weights unloaded
}

// File is an open module.
type File struct {
	Path      string
	Module    *ir.Module
	Container *mlxg.File // nil for a text
	closers   []io.Closer
}

// Close releases the files that the module's blobs lie in.
func (f *File) Close() error {
	var first error
	for _, c := range f.closers {
		if err := c.Close(); first == nil {
			first = err
		}
	}
	return first
}

// Open opens the module at path.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	text, err := isText(path)
	if err != nil {
		return nil, err
	}
	if !text {
		c, err := mlxg.Open(ctx, path, mlxg.OpenOptions{Verify: o.Verify, SkipExternal: o.SkipExternal})
		if err != nil {
			return nil, err
		}
		return &File{Path: path, Module: c.Module, Container: c, closers: []io.Closer{c}}, nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := mlxt.Parse(ctx, path, src)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Module: m}
	if !o.SkipExternal {
		x, err := mlxg.AttachExternal(ctx, m, path, mlxg.OpenOptions{Verify: o.Verify})
		if err != nil {
			return nil, err
		}
		f.closers = append(f.closers, x)
	}
	return f, nil
}

// isText looks at the first bytes: a container begins with a byte that no text
// has.
func isText(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 8)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if bytes.HasPrefix(head[:n], []byte("GGUF")) {
		return false, fmt.Errorf("%s is a GGUF model, not a graph: record it first (mlxc record %s -o graph.mlxg)", path, path)
	}
	return n > 0 && head[0] < 0x80, nil
}

// IsModel reports whether the file at path is a GGUF model.
func IsModel(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "GGUF"
}
