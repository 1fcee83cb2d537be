package output

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// InlineLimit is the default length in bytes up to which contents of a container are
// written into a text.
const InlineLimit = 4096

// Data writes an output that is not a graph.
func (o *File) Data(write func(io.Writer) error) error {
	if err := atomicfile.Write(o.Path, write); err != nil {
		return cannot(o, err)
	}
	return nil
}

// By has another program write an output, to the file that its path is given, which must be a regular one.
func (o *File) By(write func(path string) error) error {
	var failed error
	err := atomicfile.Replace(o.Path, func(f *os.File) error {
		path, err := filepath.Abs(f.Name())
		if err == nil {
			err = write(path)
		}
		failed = err
		return err
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return cannot(o, err)
	}
	return nil
}

// Log opens an output that exists from the beginning and holds what was written so far, even if the program
// crashes. The caller closes it.
func (o *File) Log() (io.WriteCloser, error) {
	f, err := os.Create(o.Path)
	if err != nil {
		return nil, cannot(o, err)
	}
	return f, nil
}

// Form returns the form that the output's name asks for.
func (o *File) Form() Content { return o.form }

// Options say how a graph is written.
type Options struct {
	Embed  bool  // copy the contents of external files into a container
	Inline int64 // for a text: see [mlxt.Options.InlineLimit]
	// Head, lines of comments, is put at the beginning of a text.
	Head string
	// Progress, if not nil, is called with the share of a container's contents that are written.
	Progress func(done float64)
}

// Graph writes m. from is the file that m was read from, or nil if it was made by the
// command.
func (o *File) Graph(ctx context.Context, m *ir.Module, from *inputs.File, opts Options) error {
	if o.form == Text {
		return o.Data(func(w io.Writer) error {
			if _, err := io.WriteString(w, opts.Head); err != nil {
				return err
			}
			return PrintText(w, m, from, filepath.Dir(o.Path), opts.Inline)
		})
	}
	w := mlxg.WriteOptions{EmbedExternal: opts.Embed, Progress: opts.Progress}
	if from != nil {
		w.Base = from.Dir
		if err := o.load(ctx, from); err != nil {
			return err
		}
	}
	return mlxg.WriteFile(ctx, o.Path, m, w)
}

// load reads those external contents that lie in the file which the output replaces,
// because the output has to hold them.
func (o *File) load(ctx context.Context, from *inputs.File) error {
	missing := false
	same := map[string]bool{}
	here := func(path string) bool {
		is, known := same[path]
		if !known {
			is = o.info != nil && o.is(at(path))
			same[path] = is
		}
		return is
	}
	for _, b := range from.Module.Blobs() {
		missing = missing || b.Path != "" && !b.Loaded() && here(filepath.Join(from.Dir, filepath.FromSlash(b.Path)))
	}
	if !missing {
		return nil
	}
	if err := from.Load(ctx, mlxg.OpenOptions{Only: here}); err != nil {
		return fmt.Errorf("%s refers to %s, which the new container replaces, and needs its contents: %w", from.Name, o.Path, err)
	}
	return nil
}

// PrintText writes m as a text that will lie in directory dir. For contents longer than
// inline bytes that a container has, the text refers to the container.
func PrintText(w io.Writer, m *ir.Module, from *inputs.File, dir string, inline int64) error {
	o := mlxt.Options{InlineLimit: inline}
	if from == nil {
		return o.Print(w, m)
	}
	var err error
	if o.Rebase, err = mlxg.Rebase(dir, from.Dir); err != nil {
		return err
	}
	if from.Container != nil && !from.Pipe {
		rel, err := Relative(dir, from.Path)
		if err != nil {
			return err
		}
		o.External = func(b *ir.Blob) (string, int64, bool) {
			off, ok := from.Container.Offset(b)
			return rel, off, ok
		}
	}
	if err := o.Print(w, m); err != nil {
		return fmt.Errorf("%s: %w", from.Name, err)
	}
	return nil
}

// Relative returns the path of target relative to dir, with '/' as separator. Symbolic
// links are not followed, because whoever opens the file joins the two names as they
// are.
func Relative(dir, target string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, abs)
	if err != nil {
		return "", fmt.Errorf("%s cannot be named relative to %s: %w", target, dir, err)
	}
	return filepath.ToSlash(rel), nil
}
