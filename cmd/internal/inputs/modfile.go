// Package inputs opens the files that commands read: modules, as containers (.mlxg) or
// as texts (.mlxt), and models of the kinds that sources.go lists. It tells them apart by their first bytes, not by
// their names, and takes files, pipes and standard input.
//
//	f, err := inputs.Open(ctx, path, inputs.Options{})
//	defer f.Close()
//	use(f.Module)
package inputs

import (
	"context"
	"errors"
	"io"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Options say how a module is opened.
type Options struct {
	Verify       bool // read every byte and check every digest
	SkipExternal bool // do not load external weights, and do not check them
	SkipEmbedded bool // do not check embedded contents: see [mlxg.OpenOptions]
	// Progress, if not nil, is called with the share, from 0 to 1, of the bytes to hash
	// that were hashed.
	Progress func(done float64)
}

// File is an open module.
type File struct {
	Path      string // as given
	Name      string // for messages
	Dir       string // the directory that names of external files are relative to
	Pipe      bool   // it came through a pipe: no text can refer to it
	Module    *ir.Module
	Container *mlxg.File // nil for a text
	closers   []io.Closer
}

// Close releases the files that hold the module's contents.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	f.closers = nil
	return errors.Join(errs...)
}

// Open opens the module at path; "-" is standard input. File.Close must be called.
func Open(ctx context.Context, path string, o Options) (*File, error) {
	in, err := Look(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.Module(ctx, o)
}

func (f *File) container(c *mlxg.File) {
	f.Module, f.Container, f.closers = c.Module, c, append(f.closers, c)
}

// text reads the module as text.
func (in *Input) text(ctx context.Context, f *File, o mlxg.OpenOptions) error {
	src, err := in.all(maxText)
	if err != nil {
		return err
	}
	if f.Module, err = mlxt.Parse(ctx, in.Name(), src); err != nil || o.SkipExternal {
		return err
	}
	return f.Load(ctx, o)
}

// Load loads those external contents that o.Only chooses.
func (f *File) Load(ctx context.Context, o mlxg.OpenOptions) error {
	o.Dir = f.Dir
	x, err := mlxg.AttachExternal(ctx, f.Module, f.Name, o)
	if err != nil {
		return err
	}
	f.closers = append(f.closers, x)
	return nil
}
