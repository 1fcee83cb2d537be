package decl

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Mode is what a kernel does to a device argument.
type Mode uint8

// The modes.
const (
	Unused Mode = iota // never touched, bound or not
	Read
	Write  // must-write: the kernel writes every element, always
	Update // may-write: old bytes may survive, or may decide what is written
	Atomic
)

var modes = [...]string{"unused", "read", "write", "update", "atomic"}

func (m Mode) String() string { return modes[m] }

// Arg is an @arg line.
type Arg struct {
	Slot    uint8
	Name    string
	Kind    ir.ArgKind
	Type    ir.DType // element type of the Metal argument
	Elem    ir.DType // of the declared elements: Type, or what `as` says
	Count   int32    // number of elements of a constant argument
	Mode    Mode
	Shape   []*term.Expr
	Strides []*term.Expr // in elements; nil: row-contiguous
	At      *term.Expr   // where the first element is, in elements; nil: where the view begins
	Whole   bool         // all of the bound view, whatever its length; there is no shape then
	Symbol  int          // of a constant argument: index of its (first) value in Decl.Symbols
}

// Constant is a @constant line.
type Constant struct {
	Index  uint16
	Name   string
	Type   ir.DType
	Symbol int
}

// Grid is a @groups, @threads or @group line. Each dimension is an expression that the
// dispatch must agree with, or a symbol that the dispatch gives a value, or neither
// (`_`).
type Grid [3]struct {
	Check *term.Expr
	Bind  int // index of the symbol in Decl.Symbols, or −1
}

// Where is a @where line.
type Where struct {
	Name string
	Vars []string
	Body *term.Expr
}

// Result is a @term line.
type Result struct {
	Arg  int // index of the written argument in Decl.Args
	Vars []string
	Body *term.Expr
}

// Symbol is a name that integer and float expressions may use.
type Symbol struct {
	Name string
	Kind term.Kind
}

// Decl is one declaration, its template parameters filled in.
type Decl struct {
	Name             string
	Library          ir.LibraryKind // Builtin, or Generated, whose Name is its term
	Of               *ir.Library    // the library of a kernel that another file holds; nil: this one
	EffectsOnly      bool           // nothing says what the kernel computes
	Source           string         // of an effects-only declaration: where it comes from, in the author's words
	File             string         // the .metal file, and the line of @kernel
	Line             int
	Variant          []string // NAME=VALUE of the template parameters that choose lines of the declaration
	Constants        []Constant
	Args             []Arg
	Groups, Threads  *Grid // one of them is nil
	Group            Grid
	Lets             []Let
	Requires         []*term.Expr
	Inplace          [][2]int // pairs (written, read) of arguments
	Nondeterministic bool
	MLX              bool   // name and arguments are those of a kernel of MLX
	MLXLike          string // a kernel of MLX with the same arguments, or ""
	Wheres           []Where
	Results          []Result
	Symbols          []Symbol
	// Template holds the values of integer template parameters, by symbol.
	Template map[int]int64
}

// Let is a @let line.
type Let struct {
	Symbol int
	Value  *term.Expr
}

// Family names what d shares with the declarations of its @kernel line that have the same lines, but for what
// stands in braces: kernels of one template that differ in types and sizes.
func (d *Decl) Family() string {
	return strings.Join(append([]string{fmt.Sprintf("%s:%d", d.File, d.Line)}, d.Variant...), " ")
}

// ArgNamed returns the argument called name.
func (d *Decl) ArgNamed(name string) (*Arg, bool) {
	for i := range d.Args {
		if d.Args[i].Name == name {
			return &d.Args[i], true
		}
	}
	return nil, false
}

// Abbrevs returns the @where lines as the interpreter takes them.
func (d *Decl) Abbrevs() []term.Abbrev {
	out := make([]term.Abbrev, len(d.Wheres))
	for i, w := range d.Wheres {
		out[i] = term.Abbrev{Params: len(w.Vars), Body: w.Body}
	}
	return out
}

// Kernel returns the IR kernel of d under the given graph-unique name, with
// the values of its function constants.
func (d *Decl) Kernel(name string, constants ...ir.FunctionConstant) ir.Kernel {
	k := ir.Kernel{Name: name, Library: ir.Library{Kind: d.Library}, Function: d.Name, Constants: constants}
	for _, a := range d.Args {
		if a.Mode == Unused && a.Kind == ir.DeviceArg {
			continue
		}
		access := ir.ReadArg
		switch a.Mode {
		case Write:
			access = ir.WriteArg
		case Update, Atomic:
			access = ir.ReadWriteArg
		}
		if a.Mode == Unused {
			continue
		}
		k.Args = append(k.Args, ir.Arg{Slot: a.Slot, Name: a.Name, Kind: a.Kind, Access: access, Type: a.Type, Count: a.Count})
	}
	return k
}

func (d *Decl) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: kernel %s: %s", d.File, d.Line, d.Name, fmt.Sprintf(format, args...))
}
