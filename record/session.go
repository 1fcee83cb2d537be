package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/ir"
)

// Session is an [Encoder] with operations: it knows which kernel an operation on
// given shapes takes, with which grid, and where the result goes.
type Session struct {
	*Encoder
	fills map[fill]Tensor // see filled

	shapes bump.Allocator[ir.Affine]
	plans  map[string]*plan // see sendAll
	key    []byte
}

// fill is a constant in place of a weight or bias that a norm does not have.
type fill struct {
	t     ir.DType
	value float32
}

// New returns a session whose graphs are called name. Without settings it only captures.
func New(name string, with ...Setting) *Session {
	return &Session{Encoder: NewEncoder(name, with...), fills: map[fill]Tensor{}, plans: map[string]*plan{}}
}

// Graph ends the recording as [Encoder.Finish] does, which executes it if it is
// [Deferred], and returns the graph. It is an error if nothing was captured.
func (s *Session) Graph() (*ir.Graph, error) {
	r, err := s.Finish()
	if err != nil {
		return nil, err
	}
	if r.Graph == nil {
		return nil, fmt.Errorf("record %s: Graph: nothing was captured: use the setting Capture", ir.QuoteName(s.g.Name))
	}
	if len(r.Graph.Nodes) == 0 {
		return nil, fmt.Errorf("record %s: Graph: nothing was recorded since the last one: Graph and Finish end a recording", ir.QuoteName(s.g.Name))
	}
	return r.Graph, nil
}

// call is one dispatch of an operation.
type call struct {
	op        string
	function  string
	constants []ir.FunctionConstant
	args      []arg // for operations that build their list of arguments in steps
	kind      ir.GridKind
	grid      [3]ir.Extent
	group     [3]uint32
}

// arg is one argument of a call. Small values lie in the arg itself, so that recording
// them allocates nothing.
type arg struct {
	slot   uint8
	kind   ir.BindingKind
	t      Tensor
	number ir.DType // of expr
	expr   ir.Affine
	values [32]byte
	n      int
	data   []byte // in place of values, if there are too many
}

func buf(slot uint8, t Tensor) arg { return arg{slot: slot, kind: ir.BindView, t: t} }

// val binds numbers of 32 and 64 bits inline, one after another.
func val(slot uint8, values ...any) arg {
	a := arg{slot: slot, kind: ir.BindBytes}
	for _, v := range values {
		switch v := v.(type) {
		case int32:
			a.word(uint32(v))
		case uint32:
			a.word(v)
		case float32:
			a.word(math.Float32bits(v))
		case int64:
			a.long(uint64(v))
		case uint64:
			a.long(v)
		default:
			panic(fmt.Sprintf("record: val of a %T", v))
		}
	}
	return a
}

func (a *arg) word(v uint32) {
	binary.LittleEndian.PutUint32(a.values[a.n:], v)
	a.n += 4
}

func (a *arg) long(v uint64) {
	binary.LittleEndian.PutUint64(a.values[a.n:], v)
	a.n += 8
}

// i32 binds x, which may depend on params, as an i32.
func i32(slot uint8, x ir.Affine) arg {
	if x.IsConst() {
		return val(slot, int32(x.Const))
	}
	return arg{slot: slot, kind: ir.BindScalar, number: ir.I32, expr: x}
}

// dispatch encodes c with args. args and o are parameters and not fields of c, because the
// encoder keeps strings of c, and the compiler would then move both to the heap with it.
func (s *Session) dispatch(c call, o []Option, args ...arg) {
	if s.err != nil {
		return
	}
	id, ok := s.kernel(c.function, c.constants)
	if !ok {
		return
	}
	d := s.Dispatch(id).Op(c.op).Label(label(o))
	for i := range args {
		switch a := &args[i]; a.kind {
		case ir.BindView:
			d.buffer(a.slot, &a.t)
		case ir.BindScalar:
			d.Scalar(a.slot, a.number, a.expr)
		default:
			if a.data != nil {
				d.Bytes(a.slot, a.data)
			} else {
				d.Bytes(a.slot, a.values[:a.n])
			}
		}
	}
	d.end(c.kind, c.grid, c.group)
}

// threads1 returns the one-dimensional grid of n threads in threadgroups of up to 256.
func threads1(n ir.Affine) ([3]ir.Extent, [3]uint32) {
	return [3]ir.Extent{{Num: n, Div: 1}, ir.Ext(1), ir.Ext(1)}, groupAlong(n)
}

// flag returns a function constant of type bool.
func flag(index uint16, name string, v bool) ir.FunctionConstant {
	fc := ir.FunctionConstant{Index: index, Name: name, Type: ir.Bool}
	if v {
		fc.Bits = 1
	}
	return fc
}
