// Package inputs opens modules for the commands, whatever their form: a
// container (.mlxg) or a text (.mlxt), told apart by their first bytes, from a
// file, a pipe or standard input.
package inputs

import (
	"context"
	"errors"
	"io"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// Options of Open.
type Options struct {
	Verify       bool // read every byte and check every digest
	SkipExternal bool // leave external weights unloaded, and contents unlooked at
	SkipEmbedded bool // leave embedded contents unlooked at: [mlxg.OpenOptions]
	// Progress, if not nil, hears how much of what must be hashed is done, in [0, 1].
	Progress func(done float64)
}

// File is an open module.
type File struct {
	Path      string // as given
	Name      string // in messages
	Dir       string // that the names of external files are relative to
	Pipe      bool   // it came through a pipe: no text can refer to it
	Module    *ir.Module
	Container *mlxg.File // nil for a text
	closers   []io.Closer
}

// Close releases the files that the module's blobs lie in.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	f.closers = nil
	return errors.Join(errs...)
}

// Open opens the module at path; "-" is standard input.
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

// Load gives external blobs their bytes, those that o.Only chooses.
func (f *File) Load(ctx context.Context, o mlxg.OpenOptions) error {
	o.Dir = f.Dir
	x, err := mlxg.AttachExternal(ctx, f.Module, f.Name, o)
	if err != nil {
		return err
	}
	f.closers = append(f.closers, x)
	return nil
}
