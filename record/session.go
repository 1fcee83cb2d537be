package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Session captures dispatches into a graph.
type Session struct {
	b       *ir.Builder
	kernels map[string]ir.KernelID
	arena   arena
	tracker tracker
	ones    *Tensor // the weight of a norm without weight
	err     error
}

// New starts a recording called name.
func New(name string) *Session {
	r := &Session{b: ir.NewBuilder(name), kernels: map[string]ir.KernelID{}}
	r.arena.mem = ir.NoMem
	r.tracker.g = r.b.Unfinished()
	return r
}

// Finish returns the graph, or the first mistake of the recording.
func (r *Session) Finish() (*ir.Graph, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.arena.mem != ir.NoMem {
		r.b.SetSize(r.arena.mem, max(r.arena.peak, arenaAlign))
	}
	return r.b.Graph()
}

func (r *Session) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("record %s: "+format, append([]any{r.b.Unfinished().Name}, args...)...)
	}
}

// Param adds a u32 param in [min, max].
func (r *Session) Param(name string, min, max uint32) ir.Affine {
	return ir.Linear(0, ir.Term{Param: r.b.Param(name, min, max), Coeff: 1})
}

// Require adds the constraint lhs ≤ max.
func (r *Session) Require(lhs ir.Affine, max int64) { r.b.Require(lhs, max) }

func (r *Session) memory(m ir.Memory) Tensor {
	size := int64(m.DType.Bits())
	for _, d := range m.Shape {
		size *= d
	}
	m.Size = (size + 7) / 8
	shape := Dims(m.Shape...)
	strides, _ := contiguous(shape)
	return Tensor{Mem: r.b.Memory(m), DType: m.DType, Shape: shape, Strides: strides}
}

// Weight adds a weight with the given contents.
func (r *Session) Weight(name string, contents *ir.Blob, t ir.DType, shape ...int64) Tensor {
	return r.memory(ir.Memory{Name: name, Kind: ir.Weight, DType: t, Shape: shape, Init: ir.Init{Kind: ir.InitBlob, Blob: contents}})
}

// RandomWeight adds a weight with pseudo-random contents (see
// [ir.Memory.WriteInit]): for tests and benchmarks.
func (r *Session) RandomWeight(name string, seed uint64, t ir.DType, shape ...int64) Tensor {
	return r.memory(ir.Memory{Name: name, Kind: ir.Weight, DType: t, Shape: shape, Init: ir.Init{Kind: ir.InitRandom, Seed: seed}})
}

// Input adds a memory that the host fills before each replay.
func (r *Session) Input(name string, t ir.DType, shape ...int64) Tensor {
	return r.memory(ir.Memory{Name: name, Kind: ir.Input, DType: t, Shape: shape})
}

// Output adds a memory that the host reads after each replay.
func (r *Session) Output(name string, t ir.DType, shape ...int64) Tensor {
	return r.memory(ir.Memory{Name: name, Kind: ir.Output, DType: t, Shape: shape})
}

// State adds a memory that survives from replay to replay, at first all zero.
func (r *Session) State(name string, t ir.DType, shape ...int64) Tensor {
	return r.memory(ir.Memory{Name: name, Kind: ir.State, DType: t, Shape: shape, Init: ir.FillU32(0)})
}

// Group opens a labelled group of dispatches; EndGroup closes it.
func (r *Session) Group(label string) { r.b.Group(label) }

// EndGroup closes the innermost open group.
func (r *Session) EndGroup() { r.b.EndGroup() }

func (r *Session) format(shape []ir.Affine) string {
	s := "["
	for i, d := range shape {
		if i > 0 {
			s += ", "
		}
		s += r.b.Unfinished().FormatAffine(d)
	}
	return s + "]"
}

// kernel returns the IR kernel of a library function, specialized.
func (r *Session) kernel(function string, constants []ir.FunctionConstant) (ir.KernelID, bool) {
	name := function
	for _, c := range constants { // rope_float32.forward.traditional: the flags that are set
		if c.Bits != 0 {
			name += "." + c.Name
		}
	}
	if id, ok := r.kernels[name]; ok {
		return id, true
	}
	ds := msl.Declarations(function)
	if len(ds) == 0 {
		r.fail("the kernel library has no function %q", function)
		return 0, false
	}
	id := r.b.Kernel(ds[0].Kernel(name, constants...))
	r.kernels[name] = id
	return id, true
}

// flag is a bool function constant.
func flag(index uint16, name string, v bool) ir.FunctionConstant {
	fc := ir.FunctionConstant{Index: index, Name: name, Type: ir.Bool}
	if v {
		fc.Bits = 1
	}
	return fc
}

// call is one dispatch before it is appended.
type call struct {
	op        string
	function  string
	constants []ir.FunctionConstant
	args      []ir.Binding
	kind      ir.GridKind
	grid      [3]ir.Extent
	group     [3]uint32
	options   []Option
}

// dispatch appends c, after a barrier where one is needed.
func (r *Session) dispatch(c call) {
	if r.err != nil {
		return
	}
	id, ok := r.kernel(c.function, c.constants)
	if !ok {
		return
	}
	if r.tracker.conflicts(r.b.KernelAt(id), c.args) {
		r.b.Barrier()
		r.tracker.reset()
	}
	r.tracker.add(r.b.KernelAt(id), c.args)
	d := r.b.Dispatch(ir.Dispatch{Kernel: id, Bindings: c.args, GridKind: c.kind, Grid: c.grid, Threadgroup: c.group, Op: c.op, Label: label(c.options)})
	// A dispatch that the kernel's declaration does not describe is a mistake
	// of the recorder's caller: say it here, where the shapes are at hand.
	in, err := msl.Bind(r.b.Unfinished(), d)
	if err == nil {
		err = in.CheckAliasing()
	}
	if err == nil {
		_, err = in.Effects()
	}
	if err != nil {
		r.fail("%w", err)
	}
}

// threads1 is a grid of n threads in threadgroups of up to 256.
func threads1(n ir.Affine) ([3]ir.Extent, [3]uint32) {
	group := uint32(256)
	if n.IsConst() && n.Const < 256 {
		group = uint32(max(n.Const, 1))
	}
	return [3]ir.Extent{{Num: n, Div: 1}, ir.Ext(1), ir.Ext(1)}, [3]uint32{group, 1, 1}
}
