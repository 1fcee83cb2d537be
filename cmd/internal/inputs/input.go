package inputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// Input is a file that a command was told to read: a graph or a model. It is opened
// only once, because a pipe can be read only once. A command first asks which of the
// two it is, and then reads it as that.
type Input struct {
	Path string // as given; "-" is standard input
	head []byte // the first bytes
	data []byte // everything, once it was read
	rest io.ReadCloser
	size int64
	pipe bool // it is no regular file with a name of its own, so it is read into memory

	folder bool
	source *frontend.Source // that reads it; nil: it is no model
}

const (
	// maxText bounds the size of a graph as text, and maxPiped the size of what comes
	// through a pipe, which has to fit in memory. Both are in bytes.
	maxText  = 1 << 30
	maxPiped = 4 << 30
)

// stdinRead says that standard input has been read.
var stdinRead bool

// Look opens the file at path and reads its first bytes.
func Look(path string) (*Input, error) {
	in := &Input{Path: path}
	switch st, err := os.Stat(path); {
	case path == "-" || path == "/dev/stdin":
		// Standard input may be redirected from a file, but then it has no name of its
		// own that a text could refer to.
		if stdinRead {
			return nil, errors.New("standard input can be read only once")
		}
		stdinRead, in.pipe, in.rest = true, true, io.NopCloser(os.Stdin)
	case err != nil:
		return nil, err
	case st.IsDir():
		in.folder, in.rest = true, io.NopCloser(nil)
		if in.source = source(in.file()); in.source == nil {
			return nil, fmt.Errorf("%s is a directory, not a graph, and not the folder of a model, which has a config.json", path)
		}
		return in, nil
	default:
		f, err := os.Open(path) // opening a named pipe waits for its writer
		if err != nil {
			return nil, err
		}
		in.pipe, in.rest, in.size = !st.Mode().IsRegular(), f, st.Size()
	}
	in.head = make([]byte, mlxg.HeaderSize)
	n, err := io.ReadFull(in.rest, in.head)
	in.head = in.head[:n]
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		in.Close()
		return nil, fmt.Errorf("%s: %w", in.Name(), err)
	}
	in.source = source(in.file())
	return in, nil
}

// file is the input as front ends see it.
func (in *Input) file() *frontend.File {
	f := &frontend.File{Name: in.Name(), Head: in.head, Folder: in.folder, Read: func() ([]byte, error) { return in.all(maxPiped) }}
	if !in.pipe {
		f.Path = in.Path
	}
	return f
}

// Name returns the input's name for messages.
func (in *Input) Name() string {
	if in.Path == "-" {
		return "standard input"
	}
	return in.Path
}

// Pipe reports whether the input is anything but a regular file with a name of its own.
func (in *Input) Pipe() bool { return in.pipe }

// Close closes the file; nothing can be read after that.
func (in *Input) Close() error { return in.rest.Close() }

// IsModel reports whether the input is a model of a kind that a front end reads.
func (in *Input) IsModel() bool { return in.source != nil }

// isText reports whether the input is a graph as text. A container begins with a byte
// that no text contains.
func (in *Input) isText() bool {
	return len(in.head) > 0 && in.head[0] < 0x80 && bytes.IndexByte(in.head[:min(len(in.head), 8)], 0) < 0
}

// all reads everything, at most limit bytes, and keeps it, because a module may be
// opened twice.
func (in *Input) all(limit int64) ([]byte, error) {
	if in.data != nil {
		return in.data, nil
	}
	var b bytes.Buffer
	b.Grow(int(min(in.size, limit)) + bytes.MinRead) // for a file, as much as it has
	b.Write(in.head)
	n, err := b.ReadFrom(io.LimitReader(in.rest, limit-int64(len(in.head))+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name(), err)
	}
	if n+int64(len(in.head)) > limit {
		return nil, fmt.Errorf("%s gives more than the %d bytes that are expected", in.Name(), limit)
	}
	in.data = b.Bytes()
	return in.data, nil
}

// Model opens the input as a model.
func (in *Input) Model() (frontend.Model, error) {
	if in.source == nil {
		return nil, fmt.Errorf("%s is no model of a kind that is known (%s)", in.Name(), Kinds())
	}
	return in.source.Open(in.file())
}

// Module opens the input as a graph file.
func (in *Input) Module(ctx context.Context, o Options) (*File, error) {
	f := &File{Path: in.Path, Name: in.Name(), Pipe: in.pipe, Dir: in.dir()}
	open := mlxg.OpenOptions{Verify: o.Verify, SkipExternal: o.SkipExternal, SkipEmbedded: o.SkipEmbedded, Dir: f.Dir, Progress: o.Progress}
	switch {
	case in.IsModel():
		return nil, fmt.Errorf("%s is a %s model, not a graph: record it first (mlxc record %s -o graph.mlxg)", in.Name(), in.source.Name, in.Path)
	case len(in.head) == 0:
		return nil, fmt.Errorf("%s is empty: a graph is expected, as a container (.mlxg) or text (.mlxt)", in.Name())
	case in.isText():
		if err := in.text(ctx, f, open); err != nil {
			return nil, err
		}
		return f, nil
	case !in.pipe:
		c, err := mlxg.Open(ctx, in.Path, open)
		if err != nil {
			return nil, err
		}
		f.container(c)
		return f, nil
	}
	// The header says how long a container is. Nothing is read beyond that length, or
	// if it exceeds what a pipe may give.
	limit, ok := mlxg.Length(in.head)
	if !ok {
		limit = int64(len(in.head)) // Read then says what is wrong with the header
	} else if limit > maxPiped {
		return nil, fmt.Errorf("%s is a container of %d bytes, a pipe may give %d: write it to a file", in.Name(), limit, int64(maxPiped))
	}
	data := in.head
	if ok {
		var err error
		if data, err = in.all(limit); err != nil {
			return nil, err
		}
	}
	c, err := mlxg.Read(ctx, in.Name(), data, open)
	if err != nil {
		return nil, err
	}
	f.container(c)
	return f, nil
}

// dir returns the directory that names of external files are relative to. For standard
// input and pipes that is the working directory.
func (in *Input) dir() string {
	if in.pipe {
		return "."
	}
	return filepath.Dir(in.Path)
}
