package record

import (
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// operation is what a plan is made for, beside its operands: a name and numbers, of which floats are their bits.
type operation struct {
	name    string
	numbers [5]uint64
}

// operand is what an operation reads: a tensor, or a number that is bound inline.
type operand struct {
	t      Tensor
	number ir.Affine
	inline bool
}

// tensors returns operands.
func tensors(ts ...Tensor) []operand {
	out := make([]operand, len(ts))
	for i, t := range ts {
		out[i].t = t
	}
	return out
}

// inline is the operand of one i32.
func inline(x ir.Affine) operand { return operand{t: Tensor{DType: ir.I32}, number: x, inline: true} }

// once is t, of one element, as an operand that serves all rows or columns: as in MLX, it has no dimensions then,
// and kernels get the stride 0.
func once(t Tensor) Tensor {
	t.Shape, t.Strides = nil, nil
	return t
}

// plan is what MLX sends for an operation on operands of given types, shapes and strides. Buffers are counted: the
// operands, the result, temporaries.
type plan struct {
	result     routes.Array
	strides    []int64     // of the result; nil if it is row-contiguous
	in         int         // the operand of which the result is a view; −1 if it has memory of its own
	temporary  []ir.Affine // their sizes in bytes
	dispatches []plannedDispatch
}

type plannedDispatch struct {
	kernel  ir.KernelID
	barrier bool
	kind    ir.GridKind
	grid    [3]ir.Extent
	group   [3]uint32
	args    []plannedArg
}

type plannedArg struct {
	slot   uint8
	buffer int       // −1: bytes or number
	skip   ir.Affine // bytes of the buffer's tensor before what is bound
	bytes  []byte    // nil: number
	kind   ir.DType  // of number
	number ir.Affine
}

// send records what MLX sends for an operation (record/internal/routes), and returns the result, which has the given
// shape; nil stands for the shape that MLX gives it. It is the one place where what MLX sends becomes dispatches.
// Temporaries are given back at the end.
//
// A session asks for the same few operations again and again, so send keeps its plans.
func (s *Session) send(a operation, o []Option, in []operand, shape []ir.Affine, ask func(*routes.Encoder, []routes.Array) routes.Array) Tensor {
	rank := len(shape)
	if shape == nil && len(in) > 0 {
		rank = in[0].t.Rank()
	}
	for i := range in {
		if t := &in[i].t; s.err == nil && t.bad != nil {
			s.fail("%s: %s", a.name, *t.bad)
		}
	}
	if s.err != nil {
		return s.broken(in[0].t.DType, rank)
	}
	s.key = a.appendKey(s.key[:0], in)
	p, ok := s.plans[string(s.key)]
	if !ok {
		if p = s.plan(a.name, in, ask); s.err != nil {
			return s.broken(in[0].t.DType, rank)
		}
		s.plans[string(s.key)] = p
	}
	if shape == nil {
		shape = p.result.Shape
	}
	buffers := make([]Tensor, 0, 8)
	for i := range in {
		buffers = append(buffers, in[i].t)
	}
	var out Tensor
	if p.in >= 0 {
		out = in[p.in].t
		out.Off = out.Off.Add(p.result.Offset)
		out.Shape, out.Strides = shape, p.strides
	} else {
		out = s.result(a.name, o, p.result.Type, shape)
		if p.strides != nil {
			out.Strides = p.strides
			if slices.ContainsFunc(o, func(o Option) bool { return o.given }) {
				s.fail("%s: the result has the strides %v of its operand, Into is row-contiguous", a.name, p.strides)
			}
		}
	}
	buffers = append(buffers, out)
	mark := s.ScratchMark()
	for _, size := range p.temporary {
		buffers = append(buffers, s.Scratch(ir.U8, size))
	}
	for i := range p.dispatches {
		s.planned(a.name, o, &p.dispatches[i], in, buffers)
	}
	if len(p.temporary) > 0 && s.err == nil {
		s.ScratchReset(mark)
	}
	return out
}

// planned records a dispatch of a plan.
func (s *Session) planned(op string, o []Option, p *plannedDispatch, in []operand, buffers []Tensor) {
	if s.err != nil {
		return
	}
	if p.barrier && s.manual { // nobody but the operation knows its temporaries
		s.Barrier()
	}
	d := s.Dispatch(p.kernel).Op(op).Label(label(o))
	for i := range p.args {
		switch a := &p.args[i]; {
		case a.bytes != nil:
			d.Bytes(a.slot, a.bytes)
		case a.buffer < 0:
			d.Scalar(a.slot, a.kind, a.number)
		case a.buffer < len(in) && in[a.buffer].inline:
			if x := in[a.buffer].number; x.IsConst() {
				d.Int32(a.slot, int32(x.Const))
			} else {
				d.Scalar(a.slot, ir.I32, x)
			}
		default:
			if v, ok := d.use(a.slot, &buffers[a.buffer]); ok {
				v.Off, v.Len = v.Off.Add(a.skip), v.Len.Sub(a.skip)
				if b := d.bind(a.slot, ir.BindView); b != nil {
					b.View = v
				}
			}
		}
	}
	d.end(p.kind, p.grid, p.group)
}

// appendKey appends what a plan depends on.
func (a operation) appendKey(key []byte, in []operand) []byte {
	key = append(key, a.name...)
	for _, n := range a.numbers {
		key = binary.LittleEndian.AppendUint64(key, n)
	}
	size := func(x ir.Affine) {
		key = binary.AppendVarint(key, x.Const)
		key = append(key, byte(len(x.Terms())))
		for _, t := range x.Terms() {
			key = binary.AppendVarint(binary.AppendVarint(key, int64(t.Param)), t.Coeff)
		}
	}
	for i := range in {
		t := &in[i].t
		key = append(key, byte(t.DType), byte(len(t.Shape)), alignment(t.Off))
		for i := range t.Shape {
			size(t.Shape[i])
			key = binary.AppendVarint(key, t.Strides[i])
		}
	}
	return key
}

// alignment is where a tensor lies between two multiples of 16 bytes: some kernels read several elements at once. An
// offset that depends on params may be anything.
func alignment(off ir.Affine) byte {
	if !off.IsConst() {
		return 1
	}
	return byte(off.Const & 15)
}

// plan asks what MLX sends.
func (s *Session) plan(op string, in []operand, ask func(*routes.Encoder, []routes.Array) routes.Array) *plan {
	e := &routes.Encoder{Chip: s.chip, Version: routes.Release0_32_4, Has: func(kernel string) bool { return len(msl.Declarations(kernel)) > 0 }}
	for _, p := range s.g.Params {
		e.Most = append(e.Most, uint32(max(p.Max, 0)))
	}
	arrays := make([]routes.Array, len(in))
	buffers := map[*routes.Buffer]int{}
	for i := range in {
		t := &in[i].t
		x := routes.Array{Buffer: &routes.Buffer{}, Type: t.DType, Shape: t.Shape, Strides: make([]ir.Affine, len(t.Strides)), Offset: ir.Const(int64(alignment(t.Off)))}
		for i, n := range t.Strides {
			x.Strides[i] = ir.Const(n)
		}
		arrays[i], buffers[x.Buffer] = x, i
	}
	starts := make([]ir.Affine, len(in), len(in)+1) // of the operands and the result in their buffers
	for i := range arrays {
		starts[i] = arrays[i].Offset
	}
	out := ask(e, slices.Clone(arrays))
	if e.Err != nil {
		s.fail("%s: %w", op, e.Err)
		return nil
	}
	p := &plan{result: out, in: -1}
	if i, ok := buffers[out.Buffer]; ok {
		p.in, p.strides = i, s.numbers(op, out.Strides)
		p.result.Offset = out.Offset.Sub(starts[i])
		starts = append(starts, ir.Const(0))
	} else {
		if !out.RowContiguous() {
			p.strides = s.numbers(op, out.Strides)
		}
		buffers[out.Buffer] = len(in)
		starts = append(starts, out.Offset)
	}
	for _, d := range e.Sent {
		p.dispatches = append(p.dispatches, s.plannedOf(op, d, func(a routes.Argument) (int, ir.Affine) {
			i, ok := buffers[a.Buffer]
			if !ok {
				i = len(in) + 1 + len(p.temporary)
				buffers[a.Buffer] = i
				p.temporary = append(p.temporary, a.Buffer.Bytes)
			}
			if i < len(starts) {
				return i, a.Offset.Sub(starts[i])
			}
			return i, a.Offset
		}))
	}
	return p
}

// plannedOf turns one message into a dispatch of the kernel that it names. What a kernel has no use for is left out:
// arguments that its declaration does not have or calls unused, and function constants that it does not know.
func (s *Session) plannedOf(op string, d routes.Dispatch, place func(routes.Argument) (int, ir.Affine)) (p plannedDispatch) {
	ds := msl.Declarations(d.Kernel)
	var constants []ir.FunctionConstant
	for _, c := range d.Constants {
		if len(ds) == 0 {
			break
		}
		if i := slices.IndexFunc(ds[0].Constants, func(x decl.Constant) bool { return int(x.Index) == c.Index }); i >= 0 {
			x := &ds[0].Constants[i]
			constants = append(constants, ir.FunctionConstant{Index: x.Index, Name: x.Name, Type: x.Type, Bits: uint64(c.Value)})
		}
	}
	id, ok := s.kernel(d.Kernel, constants)
	if !ok {
		return p
	}
	p = plannedDispatch{kernel: id, barrier: d.Barrier, kind: ir.Threadgroups, grid: d.Grid}
	for i, n := range d.Group {
		p.group[i] = uint32(n)
	}
	if d.Threads {
		p.kind = ir.Threads
		if anyGroup(ds[0]) {
			p.group = groupAlong(d.Grid[0].Num)
		}
	}
	table := &s.g.Kernels[id]
	for _, a := range d.Arguments {
		arg, ok := table.Arg(uint8(a.Slot))
		if !ok {
			continue
		}
		out := plannedArg{slot: arg.Slot, buffer: -1}
		if a.Buffer != nil {
			out.buffer, out.skip = place(a)
			p.args = append(p.args, out)
			continue
		}
		constant := !slices.ContainsFunc(a.Values, func(n routes.Number) bool { return !n.Value.IsConst() })
		switch {
		case constant:
			for _, n := range a.Values {
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], uint64(n.Value.Const))
				out.bytes = append(out.bytes, b[:n.Bytes]...)
			}
		case len(a.Values) == 1:
			out.kind, out.number = arg.Type, a.Values[0].Value
		default:
			s.fail("%s: argument %d (%s) of %s is an array of which an element depends on a param", op, a.Slot, arg.Name, d.Kernel)
		}
		p.args = append(p.args, out)
	}
	return p
}

// anyGroup reports whether a kernel runs with any threadgroup. MLX takes up to 1024 threads in three dimensions then;
// this recorder takes up to 256 along x, whatever sent the kernel.
func anyGroup(d *decl.Decl) bool {
	for _, g := range d.Group {
		if g.Check != nil || g.Bind >= 0 {
			return false
		}
	}
	return true
}

// groupAlong returns a threadgroup for a grid of n threads along x.
func groupAlong(n ir.Affine) [3]uint32 {
	if n.IsConst() && n.Const < 256 {
		return [3]uint32{uint32(max(n.Const, 1)), 1, 1}
	}
	return [3]uint32{256, 1, 1}
}

// numbers returns strides, which must not depend on params.
func (s *Session) numbers(op string, strides []ir.Affine) []int64 {
	out := s.strides.Take(len(strides))
	for i, x := range strides {
		if !x.IsConst() {
			s.fail("%s: the result has a stride that depends on a param", op)
		}
		out[i] = x.Const
	}
	return out
}
