// Package output is the one way in which the commands write files. A command
// says what it reads and what it will write before it begins its work; what
// cannot be written, and what would destroy an input or another output, is an
// error then and not a loss later.
//
// What it does: [Files] compares every output with every input, with what the
// inputs refer to (external weights, through containers that refer further), and
// with the other outputs, as files and not as names: links, hard links and names
// that differ only in case are seen through. An output is tried before the work:
// its directory is there and can be written to. It is written beside its place
// and renamed.
//
// What it does not: it knows nothing of what other processes read, and a shell
// that redirects standard output has emptied the file before a command begins.
//
// One kind of match is no error: a graph that is written over the container that
// it was read from, or over one that it refers to, takes the contents that it
// needs with it. So a graph may be disassembled, edited and assembled onto itself.
package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// Files are what one run of a command reads and writes. The zero value is a run
// that touches nothing.
type Files struct {
	inputs  []input
	outputs []*File
}

// carried says what of an input a new graph takes with it.
type carried int

const (
	nothing   carried = iota // it is lost if something is written over it
	embedded                 // a container's contents, by a new container
	wholeText                // a text, by a new text
	state                    // a state, by what the same state has become
)

// target is a file as it is found at a path.
type target struct {
	path  string      // links followed
	info  os.FileInfo // nil: there is none yet
	folds bool        // names in its directory that differ in case are one
}

func at(path string) target {
	p := target{path: atomicfile.Resolve(path)}
	if abs, err := filepath.Abs(p.path); err == nil {
		p.path = abs
	}
	if st, err := os.Stat(p.path); err == nil {
		p.info = st
	}
	return p
}

// is reports whether two places are one file. A device is nobody's file: what is
// written there is not kept.
func (p target) is(q target) bool {
	if p.info != nil && q.info != nil {
		return os.SameFile(p.info, q.info) && p.info.Mode()&fs.ModeCharDevice == 0
	}
	if p.info != nil || q.info != nil {
		return false
	}
	dir, base := filepath.Split(p.path)
	dir2, base2 := filepath.Split(q.path)
	if base != base2 && !((p.folds || q.folds) && strings.EqualFold(base, base2)) {
		return false
	}
	if dir == dir2 {
		return true
	}
	st, err := os.Stat(dir)
	st2, err2 := os.Stat(dir2)
	return err == nil && err2 == nil && os.SameFile(st, st2)
}

// input is a file that is read.
type input struct {
	target
	name    string // of the state
	given   string // its path as the command was given it
	what    string // it is, for messages
	carried carried
}

// File is an output that was found good.
type File struct {
	target
	Path  string // as given
	flag  string
	form  Content
	state string // whose contents it will hold
}

// Content is what an output holds. That of a graph follows its name.
type Content int

// The forms.
const (
	Data      Content = iota // what is no graph
	Container                // .mlxg, and every other name
	Text                     // .mlxt
)

// Read says that the command reads path, described by what, as in "the model".
func (f *Files) Read(path, what string) error {
	if path == "" || path == "-" {
		return nil
	}
	return f.read(input{target: at(path), given: path, what: what})
}

// ReadState says that the command reads a state from path: it may write what the
// state of that name has become to the same file, so that a session of replays
// goes on from where it was.
func (f *Files) ReadState(path, name string) error {
	return f.read(input{target: at(path), given: path, what: "the contents of " + cli.Quote(name), carried: state, name: name})
}

func (f *Files) read(in input) error {
	for _, out := range f.outputs {
		if err := out.destroys(&in); err != nil {
			return err
		}
	}
	f.inputs = append(f.inputs, in)
	return nil
}

// ReadGraph says that the command reads a graph file, and everything that it
// refers to.
func (f *Files) ReadGraph(m *inputs.File) error {
	if !m.Pipe {
		in := input{target: at(m.Path), given: m.Path, what: "the graph that is read", carried: wholeText}
		if m.Container != nil {
			in.carried = embedded
		}
		if err := f.read(in); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, b := range m.Module.Blobs() {
		if b.Path != "" {
			if err := f.refer(m.Dir, b.Path, m.Name, seen, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// refer follows a reference to an external file, and those of that file. What
// the graph itself refers to in a container, a new container takes with it.
func (f *Files) refer(dir, name, from string, seen map[string]bool, direct bool) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if seen[path] {
		return nil
	}
	seen[path] = true
	in := input{target: at(path), given: path, what: "a file that " + from + " refers to"}
	var refs []string
	if in.info != nil && in.info.Mode().IsRegular() {
		// A file that cannot be read is for whoever needs its contents to report.
		if m, err := mmap.Open(path); err == nil {
			_ = mmap.Guard(func() error {
				if mlxg.IsContainer(m.Bytes()) && direct {
					in.carried = embedded
				}
				refs = mlxg.References(path, m.Bytes())
				return nil
			})
			m.Close()
		}
	}
	if err := f.read(in); err != nil {
		return err
	}
	for _, r := range refs {
		if err := f.refer(filepath.Dir(path), r, path, seen, false); err != nil {
			return err
		}
	}
	return nil
}

// Write says that the command writes data to path, given by flag, and tries
// whether it can.
func (f *Files) Write(flag, path string) (*File, error) {
	if err := plain(flag, path); err != nil {
		return nil, err
	}
	return f.write(&File{Path: path, flag: flag})
}

// plain refuses a name that says that the file is a graph or a model.
func plain(flag, path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".mlxg", ".mlxt", ".gguf":
		return cli.BadUsage("%s: %s has the name of a graph or model file, and something else would be written to it: choose another name", flag, cli.Quote(path))
	}
	return nil
}

// WriteState is Write for the state of that name.
func (f *Files) WriteState(flag, path, name string) (*File, error) {
	if err := plain(flag, path); err != nil {
		return nil, err
	}
	return f.write(&File{Path: path, flag: flag, state: name})
}

// WriteGraph says that the command writes a graph to path, as a text or a
// container: by its name.
func (f *Files) WriteGraph(flag, path string) (*File, error) {
	out := &File{Path: path, flag: flag, form: Container}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".mlxt":
		out.form = Text
	case ".gguf", ".npy":
		return nil, cli.BadUsage("%s: %s is no name of a graph file: a container is .mlxg, a text .mlxt", flag, cli.Quote(path))
	}
	return f.write(out)
}

// WriteText is WriteGraph for a text under any name.
func (f *Files) WriteText(flag, path string) (*File, error) {
	return f.write(&File{Path: path, flag: flag, form: Text})
}

func (f *Files) write(out *File) (*File, error) {
	switch out.Path {
	case "":
		return nil, cli.BadUsage("%s: the name of the file is empty", out.flag)
	case "-":
		return nil, cli.BadUsage("%s -: name a file (/dev/stdout is standard output)", out.flag)
	}
	out.target = at(out.Path)
	for i := range f.inputs {
		if err := out.destroys(&f.inputs[i]); err != nil {
			return nil, err
		}
	}
	folds, err := atomicfile.Try(out.Path)
	if err != nil {
		return nil, cannot(out, err)
	}
	out.folds = folds
	for _, o := range f.outputs {
		if o.is(out.target) {
			return nil, cli.BadUsage("%s and %s both write %s: the first would be lost; give each a file of its own", o.name(), out.name(), cli.Quote(out.Path))
		}
	}
	f.outputs = append(f.outputs, out)
	return out, nil
}

func cannot(out *File, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, fs.ErrPermission) {
		err = errors.New("its directory cannot be written to (permission denied)")
	}
	return &Error{out, err}
}

// Error says that an output cannot be written.
type Error struct {
	out *File
	err error
}

func (e *Error) Error() string { return e.out.name() + " cannot be written: " + e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// name is how messages call the output.
func (o *File) name() string { return o.flag + " " + cli.Quote(o.Path) }

// destroys is the error of writing o while in is needed.
func (o *File) destroys(in *input) error {
	if !o.is(in.target) {
		return nil
	}
	switch {
	case o.form == Container && in.carried == embedded, o.form == Text && in.carried == wholeText:
		return nil // the new one takes with it what it needs
	case in.carried == state && o.state != "" && o.state == in.name:
		return nil
	case o.form == Text && in.carried == embedded:
		return cli.BadUsage("%s is %s: a text does not hold the contents of the container in whose place it comes; write to another file", o.name(), in.what)
	case o.form == Container && in.carried == wholeText:
		return cli.BadUsage("%s is %s, a text, and would become a container: name another file, or name it .mlxt for a text", o.name(), in.what)
	}
	return cli.BadUsage("%s is %s%s: it would be destroyed; write to another file", o.name(), in.what, in.alias(o))
}

// alias names the input's path where it differs from the output's.
func (in *input) alias(o *File) string {
	if in.given == o.Path {
		return ""
	}
	return " (" + cli.Quote(in.given) + ")"
}
