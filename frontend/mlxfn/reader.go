package mlxfn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/frontend"
)

// maxShape bounds dimensions and the bytes of an array, as graphs do.
const maxShape = 1 << 40

// Variant is one of the types that an argument of a custom kernel may have: int32, float32 or bool.
type Variant any

// layout is what files that say the same version may differ in.
type layout struct {
	metadata bool              // the header has metadata
	states   map[string]string // that are not those of the table
}

// Parse reads a file that is in memory, which it keeps. name stands for the file in errors.
//
// Files have no mark of their format, and those of one version may have different headers. So each layout is tried that the
// version allows, and the one is taken by which the file ends where its last function does.
func Parse(name string, data []byte) (*File, error) {
	r := &reader{name: name, data: data}
	version := r.text("the version of MLX")
	release, ok := releaseOf(version)
	switch {
	case r.err != nil:
		return nil, r.err
	case !ok:
		return nil, r.fail(0, "the file begins with %s, want the version of an MLX that has exported a function", frontend.Name(version))
	case less(release, oldest):
		return nil, r.fail(0, "it is written by MLX %s, whose files are not read: those of %d.%d.%d and later are. Export it by a newer MLX", version, oldest[0], oldest[1], oldest[2])
	}
	var best error
	furthest := int64(-1)
	for _, l := range layouts(release) {
		r := &reader{name: name, data: data, at: r.at, layout: l, states: map[string]string{}}
		for _, b := range before {
			if less(release, b.release) {
				for k, v := range b.states {
					if _, ok := r.states[k]; !ok {
						r.states[k] = v
					}
				}
			}
		}
		for k, v := range l.states {
			r.states[k] = v
		}
		f := &File{Name: name, Version: version, data: data}
		r.file(f)
		if r.err == nil {
			return f, nil
		}
		// Which layout is meant shows by how far it can be read.
		var at *frontend.Error
		if errors.As(r.err, &at) && at.Offset > furthest {
			furthest, best = at.Offset, r.err
		}
	}
	return nil, best
}

// layouts lists those that a release may have written, the likeliest first.
func layouts(release [3]int) []layout {
	switch {
	case less(release, [3]int{0, 32, 1}):
		return []layout{{}}
	case release == [3]int{0, 32, 1}: // and what was developed before it
		return []layout{{metadata: true}, {}, {metadata: true, states: forced}}
	}
	return []layout{{metadata: true, states: transformed}, {metadata: true, states: forced}, {metadata: true}}
}

// releaseOf reads the numbers of a version: "0.32.2.dev20260822+846d1762" is 0.32.2.
func releaseOf(version string) (r [3]int, ok bool) {
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &r[0], &r[1], &r[2])
	return r, n == 3 && r[0] >= 0 && r[1] >= 0 && r[2] >= 0 && len(version) < 64
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// reader reads a file from its beginning on. After the first error, which it keeps, it returns zeros.
type reader struct {
	name   string
	data   []byte
	at     int64
	err    error
	layout layout
	states map[string]string // in place of the table's
}

func (r *reader) fail(at int64, format string, args ...any) error {
	if r.err == nil {
		r.err = &frontend.Error{File: r.name, Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	return r.err
}

func (r *reader) left() int64 { return int64(len(r.data)) - r.at }

// take returns the next n bytes.
func (r *reader) take(n int64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > r.left() {
		r.fail(r.at, "%s has %d bytes, and %d are left", what, uint64(n), r.left())
		return nil
	}
	b := r.data[r.at : r.at+n]
	r.at += n
	return b
}

func (r *reader) u64(what string) uint64 {
	if b := r.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) i32(what string) int32 {
	if b := r.take(4, what); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *reader) flag(what string) bool {
	b := r.take(1, what)
	if b != nil && b[0] > 1 {
		r.fail(r.at-1, "%s is %d, want 0 or 1", what, b[0])
	}
	return b != nil && b[0] == 1
}

// count returns how many things follow, each of at least some bytes.
func (r *reader) count(each int64, what string) int {
	at := r.at
	n := r.u64(what)
	if r.err == nil && n > uint64(r.left()/each) {
		r.fail(at, "%s: there are %d, and %d bytes are left", what, n, r.left())
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) text(what string) string {
	n := r.count(1, what)
	return string(r.take(int64(n), what))
}

func list[T any](r *reader, each int64, what string, one func() T) []T {
	n := r.count(each, what)
	out := make([]T, 0, n)
	for range n {
		if r.err != nil {
			return nil
		}
		out = append(out, one())
	}
	return out
}

func (r *reader) ints(what string) []int64 {
	return list(r, 4, what, func() int64 { return int64(r.i32(what)) })
}

// shape reads the shape of an array: no dimension is negative.
func (r *reader) shape(what string) []int64 {
	at := r.at
	s := r.ints(what)
	n := int64(1)
	for _, d := range s {
		if d < 0 || d > 0 && n > maxShape/d {
			r.fail(at, "%s is %v", what, s)
			return nil
		}
		n *= max(d, 1)
	}
	if len(s) > 32 {
		r.fail(at, "%s has %d dimensions", what, len(s))
	}
	return s
}

func (r *reader) dtype(what string) Type {
	at := r.at
	t := Type(r.i32(what))
	size := r.take(1, what)
	if r.err != nil {
		return 0
	}
	if t < 0 || int(t) >= len(types) || int64(size[0]) != types[t].size {
		r.fail(at, "%s is the type %d of %d bytes, which is not known", what, int32(t), size[0])
		return 0
	}
	return t
}

func (r *reader) array(what string) Array {
	return Array{Shape: r.shape("the shape of " + what), Type: r.dtype("the type of " + what)}
}

func (r *reader) ids(what string) []uint64 {
	return list(r, 8, what, func() uint64 { return r.u64(what) })
}

// file reads what follows the version.
func (r *reader) file(f *File) {
	at := r.at
	n := r.i32("the number of functions")
	// The least that a function takes: five counts.
	if r.err == nil && (n < 0 || int64(n) > r.left()/40) {
		r.fail(at, "there are %d functions, and %d bytes are left", n, r.left())
	}
	f.Shapeless = r.flag("the flag for any shapes")
	if r.layout.metadata {
		f.Metadata = r.text("metadata")
	}
	constants := map[uint64]kept{}
	for i := range int(n) {
		if r.err != nil {
			return
		}
		f.Functions = append(f.Functions, r.function(i, constants))
	}
	if r.err == nil && r.left() > 0 {
		r.fail(r.at, "%d bytes follow the last function", r.left())
	}
}

// kept is a constant that later functions may name again.
type kept struct {
	Array
	Constant
}

// function reads one trace. ids, which are addresses of the program that wrote them, become numbers of values.
func (r *reader) function(index int, constants map[uint64]kept) (f Function) {
	what := fmt.Sprintf("of function %d", index+1)
	f.Keywords = list(r, 8, "the keywords "+what, func() string { return r.text("a keyword " + what) })
	inputs := r.ids("the inputs " + what)
	at := r.at
	arrays := list(r, 13, "the arrays of inputs "+what, func() Array { return r.array("an input " + what) })
	if r.err == nil && (len(arrays) != len(inputs) || len(f.Keywords) > len(inputs)) {
		r.fail(at, "there are %d inputs %s, %d arrays of them, and %d keywords", len(inputs), what, len(arrays), len(f.Keywords))
	}
	if r.err != nil {
		return f
	}
	f.Constant = map[int]Constant{}
	values := map[uint64]int{}
	define := func(id uint64, a Array, at int64) int {
		if _, ok := values[id]; ok {
			r.fail(at, "a value %s is defined twice", what)
		}
		values[id] = len(f.Values)
		f.Values = append(f.Values, a)
		return len(f.Values) - 1
	}
	for i, id := range inputs {
		if v, ok := values[id]; ok { // one array may be passed twice
			f.Inputs = append(f.Inputs, v)
			continue
		}
		f.Inputs = append(f.Inputs, define(id, arrays[i], at))
	}
	find := func(ids []uint64, at int64, of string) (out []int) {
		for _, id := range ids {
			v, ok := values[id]
			if !ok {
				r.fail(at, "%s %s is a value that nothing before it defines", of, what)
				return nil
			}
			out = append(out, v)
		}
		return out
	}
	outputsAt := r.at
	outputs := r.ids("the outputs " + what)
	for range r.count(9, "the tape "+what) {
		at := r.at
		id := r.u64("a value " + what)
		switch {
		case r.flag("the flag of a primitive"):
			r.node(&f, id, define, find)
		case r.flag("the flag of a constant"):
			c, ok := constants[id]
			if !ok {
				c.Array = r.array("a constant " + what)
				if r.err == nil {
					c.Constant = Constant{r.at, c.elements() * c.Type.Size()}
					r.take(c.Length, "a constant "+what)
					constants[id] = c
				}
			}
			if r.err == nil {
				f.Constant[define(id, c.Array, at)] = c.Constant
			}
		default:
			if _, ok := values[id]; !ok {
				r.fail(at, "a value %s is neither computed, nor constant, nor an input", what)
			}
		}
		if r.err != nil {
			return f
		}
	}
	f.Outputs = find(outputs, outputsAt, "an output")
	return f
}

// node reads a primitive.
func (r *reader) node(f *Function, id uint64, define func(uint64, Array, int64) int, find func([]uint64, int64, string) []int) {
	at := r.at
	n := Node{In: find(r.ids("the operands of a primitive"), at, "an operand")}
	r.i32("the index of a stream")
	device := r.i32("the device of a stream")
	r.i32("the index of a device")
	if r.err == nil && device != 0 && device != 1 {
		r.fail(r.at-8, "a stream is of the device %d, want 0 for a CPU or 1 for a GPU", device)
	}
	n.GPU, n.At = device == 1, r.at
	n.Name = r.text("the name of a primitive")
	fields, ok := r.states[n.Name]
	if !ok {
		fields, ok = states[n.Name]
	}
	if r.err == nil && !ok {
		r.fail(n.At, "%s is no primitive that is known here, so what follows it cannot be read", frontend.Name(n.Name))
	}
	if r.err != nil {
		return
	}
	for _, c := range fields {
		n.State = append(n.State, r.field(byte(c), n.Name))
	}
	siblings := r.u64("the number of other results of " + n.Name)
	if r.err != nil {
		return
	}
	at = r.at
	if siblings == 0 {
		a := Array{Shape: r.shape("the shape of " + n.Name), Type: r.dtype("the type of " + n.Name)}
		if r.err == nil {
			n.Out = []int{define(id, a, at)}
		}
	} else {
		ids := r.ids("the results of " + n.Name)
		shapes := list(r, 8, "the shapes of "+n.Name, func() []int64 { return r.shape("a shape of " + n.Name) })
		kinds := list(r, 5, "the types of "+n.Name, func() Type { return r.dtype("a type of " + n.Name) })
		if r.err == nil && (uint64(len(ids)) != siblings+1 || len(shapes) != len(ids) || len(kinds) != len(ids)) {
			r.fail(at, "%s has %d results, %d shapes and %d types", n.Name, siblings+1, len(shapes), len(kinds))
		}
		found := false
		for i := range ids {
			if r.err != nil {
				return
			}
			found = found || ids[i] == id
			n.Out = append(n.Out, define(ids[i], Array{shapes[i], kinds[i]}, at))
		}
		if r.err == nil && !found {
			r.fail(at, "%s is not among its own results", n.Name)
		}
	}
	if r.err == nil {
		f.Nodes = append(f.Nodes, n)
	}
}

// field reads a field of a state.
func (r *reader) field(kind byte, name string) any {
	what := "a field of " + name
	switch kind {
	case 'i':
		return int64(r.i32(what))
	case 'f':
		return math.Float32frombits(uint32(r.i32(what)))
	case 'd':
		return math.Float64frombits(r.u64(what))
	case 'u':
		return int64(min(r.u64(what), math.MaxInt64))
	case 'b':
		return r.flag(what)
	case 't':
		return r.dtype(what)
	case 's':
		return r.text(what)
	case 'I', 'S':
		return r.ints(what)
	case 'L':
		return list(r, 8, what, func() int64 { return int64(r.u64(what)) })
	case 'U':
		return list(r, 8, what, func() int64 { return int64(min(r.u64(what), math.MaxInt64)) })
	case 'g':
		return [3]int64{int64(r.i32(what)), int64(r.i32(what)), int64(r.i32(what))}
	case 'V':
		return list(r, 3, what, func() [3]bool { return [3]bool{r.flag(what), r.flag(what), r.flag(what)} })
	case 'o':
		if !r.flag(what) {
			return nil
		}
		return math.Float32frombits(uint32(r.i32(what)))
	case 'A':
		return list(r, 5, what, func() Variant {
			at := r.at
			switch tag := r.i32(what); tag {
			case 0:
				return r.i32(what)
			case 1:
				return math.Float32frombits(uint32(r.i32(what)))
			case 2:
				return r.flag(what)
			default:
				r.fail(at, "an argument of %s is of the kind %d, want 0, 1 or 2", name, tag)
				return nil
			}
		})
	}
	panic("mlxfn: a field of the kind " + string(kind))
}
