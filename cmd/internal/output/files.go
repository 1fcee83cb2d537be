// Package output is how the commands write files. A command first says what it will
// read and what it will write. If an output cannot be written, or would destroy an
// input or another output, that is an error before the work begins, and not a loss
// after it.
//
//	var files output.Files
//	err := files.Read(path, "the model")
//	out, err := files.WriteGraph("--output", name) // fails if that cannot work
//	// … the work …
//	err = out.Graph(ctx, module, nil, output.Options{})
//
// [Files] compares every output with every input, with everything that the inputs refer
// to (external weights, and what containers among them refer to), and with the other
// outputs. It compares files, not names: symbolic links, hard links, and names that
// differ only in case are seen through. Before the work it checks that the directory of
// each output exists and can be written to. An output is written to a new file beside
// its place and then renamed; a log ([File.Log]) alone is written as it comes.
//
// With [Files.Keep] even such an output must not replace the graph that was read: a recording is needed to prove
// optimized graphs against it.
//
// It knows nothing of what other processes read. And if a shell redirects standard
// output to a file, that file is already empty when the command begins.
//
// One kind of overlap is allowed: a graph may be written over the container that it was
// read from, or over one that it refers to, because it takes the contents that it needs
// with it. So a graph can be disassembled, edited and assembled onto itself.
package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// Files are what one run of a command reads and writes. The zero value reads and writes
// nothing.
type Files struct {
	// Keep forbids any output to replace the graph that is read, even an output that takes over all of the graph's
	// contents. Set it before [Files.ReadGraph].
	Keep bool

	inputs  []input
	outputs []*File
}

// carried says what a new output contains of an input: if that is all that is needed of the input, the output may
// replace it.
type carried int

const (
	nothing   carried = iota // nothing: it would be lost
	embedded                 // the contents of a container, if the output is a container
	wholeText                // the text, if the output is a text
	state                    // a state, if the output is the later contents of the same state
)

// target is the file that a path leads to.
type target struct {
	path  string      // with symbolic links followed
	info  os.FileInfo // nil: the file does not exist yet
	folds bool        // its directory does not tell names apart that differ in case
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

// is reports whether two targets are the same file. A character device equals nothing,
// because it does not keep what is written to it.
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

// input is a file that a command reads.
type input struct {
	target
	name    string // of a state: its name
	given   string // its path, as given to the command
	what    string // what it is, for messages
	carried carried
	keep    bool // no output may replace it, whatever is carried
}

// File is an output that can be written.
type File struct {
	target
	Path  string // as given
	flag  string
	form  Content
	state string // the name of the state that it will hold
}

// Content is the form of an output. The form of a graph follows from the file's name.
type Content int

// The forms of outputs.
const (
	Data      Content = iota // anything but a graph
	Container                // a graph file whose name ends in .mlxg or in anything but .mlxt
	Text                     // a graph file whose name ends in .mlxt
)

// Read says that the command reads path, which is described by what, such as "the
// model".
func (f *Files) Read(path, what string) error {
	if path == "" || path == "-" {
		return nil
	}
	if err := f.read(input{target: at(path), given: path, what: what}); err != nil {
		return err
	}
	// Of a folder everything that lies in it may be read, but graphs. What is no folder, or cannot be listed, has no
	// entries.
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		in := filepath.Join(path, e.Name())
		if ext := strings.ToLower(filepath.Ext(in)); ext == ".mlxg" || ext == ".mlxt" {
			continue
		}
		if err := f.read(input{target: at(in), given: in, what: "a file of " + what}); err != nil {
			return err
		}
	}
	return nil
}

// ReadState says that the command reads a state from path. It may then write the later
// contents of the same state to the same file, so that a series of replays can go on
// from there.
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

// ReadGraph says that the command reads a graph file and everything that it refers to: external contents, and its
// kernels' libraries and Metal sources, with the files that these include.
func (f *Files) ReadGraph(m *inputs.File) error {
	if !m.Pipe {
		in := input{target: at(m.Path), given: m.Path, what: "the graph that is read", carried: wholeText, keep: f.Keep}
		if m.Container != nil {
			in.carried = embedded
		}
		if err := f.read(in); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, g := range m.Module.Graphs {
		for i := range g.Kernels {
			switch l := &g.Kernels[i].Library; l.Kind {
			case ir.Metallib:
				if err := f.Read(l.Path, "a library that "+m.Name+" names"); err != nil {
					return err
				}
			case ir.SourceFile:
				if err := f.readSource(l.Path, "a source that "+m.Name+" names", seen); err != nil {
					return err
				}
			}
		}
	}
	for _, b := range m.Module.Blobs() {
		if b.Path != "" {
			if err := f.refer(m.Dir, b.Path, m.Name, seen, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// include matches a line of a Metal source that includes a file by a path relative to the source.
var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"`)

// maxSource bounds the size in bytes of sources that are searched for includes.
const maxSource = 64 << 20

// readSource says that the command reads a Metal source and, recursively, the files that it includes by relative
// paths.
func (f *Files) readSource(path, what string, seen map[string]bool) error {
	path = filepath.Clean(path)
	if seen[path] {
		return nil
	}
	seen[path] = true
	if err := f.Read(path, what); err != nil {
		return err
	}
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Size() > maxSource {
		return nil // whatever compiles the source reports that
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for _, m := range include.FindAllSubmatch(text, -1) {
		if err := f.readSource(filepath.Join(filepath.Dir(path), string(m[1])), "a file that "+path+" includes", seen); err != nil {
			return err
		}
	}
	return nil
}

// refer follows a reference to an external file, and the references in that file. If
// the graph itself (direct) refers to a container, a new container takes what it refers
// to with it.
func (f *Files) refer(dir, name, from string, seen map[string]bool, direct bool) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if seen[path] {
		return nil
	}
	seen[path] = true
	in := input{target: at(path), given: path, what: "a file that " + from + " refers to"}
	var refs []string
	if in.info != nil && in.info.Mode().IsRegular() {
		// If a file cannot be read, whoever needs its contents reports that.
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

// Write says that the command writes data to path, which was given by flag, and checks
// that it can.
func (f *Files) Write(flag, path string) (*File, error) {
	if err := plain(flag, path); err != nil {
		return nil, err
	}
	return f.write(&File{Path: path, flag: flag})
}

// Folder makes the folder at path unless it is there, for files that the command writes beside another one.
func (f *Files) Folder(path string) error { return os.MkdirAll(path, 0o777) }

// Scratch makes a folder of the system's for files that end with the command, and returns what removes it with all that lies in it.
func Scratch(name string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", name); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // what stays is the system's to remove
}

// plain refuses a name that says that the file is a graph or a model.
func plain(flag, path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".mlxg", ".mlxt", ".gguf":
		return cli.BadUsage("%s: %s has the name of a graph or model file, and something else would be written to it: choose another name", flag, cli.Quote(path))
	}
	return nil
}

// WriteState is Write for the contents of the state called name.
func (f *Files) WriteState(flag, path, name string) (*File, error) {
	if err := plain(flag, path); err != nil {
		return nil, err
	}
	return f.write(&File{Path: path, flag: flag, state: name})
}

// WriteGraph says that the command writes a graph to path: as a text or a container,
// depending on its name.
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

// WriteText says that the command writes a graph as text to path, whatever its name.
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

// Error says why an output cannot be written.
type Error struct {
	out *File
	err error
}

func (e *Error) Error() string { return e.out.name() + " cannot be written: " + e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// name is what messages call the output.
func (o *File) name() string { return o.flag + " " + cli.Quote(o.Path) }

// destroys returns an error if writing o would destroy in, which is needed.
func (o *File) destroys(in *input) error {
	if !o.is(in.target) {
		return nil
	}
	switch carries := o.form == Container && in.carried == embedded || o.form == Text && in.carried == wholeText; {
	case carries && in.keep:
		return cli.BadUsage("%s is %s%s, against which alone the result can be proved again: write to another file, or add --force", o.name(), in.what, in.alias(o))
	case carries:
		return nil // the output takes with it what it needs
	case in.carried == state && o.state != "" && o.state == in.name:
		return nil
	case o.form == Text && in.carried == embedded:
		return cli.BadUsage("%s is %s: a text would not hold the contents of the container that it replaces; write to another file", o.name(), in.what)
	case o.form == Container && in.carried == wholeText:
		return cli.BadUsage("%s is %s, a text, and would become a container: name another file, or name it .mlxt for a text", o.name(), in.what)
	}
	return cli.BadUsage("%s is %s%s: it would be destroyed; write to another file", o.name(), in.what, in.alias(o))
}

// alias adds the input's path to a message if it differs from the output's.
func (in *input) alias(o *File) string {
	if in.given == o.Path {
		return ""
	}
	return " (" + cli.Quote(in.given) + ")"
}
