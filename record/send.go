package record

import (
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// operation is what a plan is made for, beside its operands: a name and numbers, of which floats are their bits.
type operation struct {
	name    string
	numbers [5]uint64
	detail  string // what else tells one plan from another
	exact   bool   // kernels of the compiled library come first (see [MLX])
}

type (
	encoder = routes.Encoder
	array   = routes.Array
	arrays  = []routes.Array
	// asked asks routes for an operation, and returns its results.
	asked = func(*encoder, arrays) arrays
)

// operand is what an operation reads: a tensor, or a number that is bound inline.
type operand struct {
	t      Tensor
	number ir.Affine
	inline bool
	spare  bool // see [Donate]
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
// operands, the results, temporaries and numbers.
type plan struct {
	results    []plannedResult
	temporary  []*routes.Buffer
	dispatches []plannedDispatch
}

type plannedResult struct {
	routes.Array
	strides []int64   // nil if it is row-contiguous
	bytes   ir.Affine // of its memory, if it has strides
	in      int       // the operand of which it is a view; −1 if it has memory of its own
}

type plannedDispatch struct {
	kernel  ir.KernelID
	barrier bool
	stated  bool // the kernel has no declaration, so the dispatch states what it touches
	kind    ir.GridKind
	grid    [3]ir.Extent
	group   [3]uint32
	args    []plannedArg
}

type plannedArg struct {
	slot   uint8
	buffer int       // −1: bytes or number
	skip   ir.Affine // bytes of the buffer's tensor before what is bound
	writes bool
	part   routes.Array // what is touched of it, of a kernel without a declaration; else not present
	steps  []int64      // the strides of part
	bytes  []byte       // nil: number
	kind   ir.DType     // of number
	number ir.Affine
}

// send records what MLX sends for an operation of one result, which has the given shape; nil stands for the shape that
// MLX gives it.
func (s *Session) send(a operation, o []Option, in []operand, shape []ir.Affine, ask func(*encoder, arrays) array) Tensor {
	var one [1]Tensor
	s.sendAll(a, o, in, shape, one[:], func(e *encoder, x arrays) arrays { return arrays{ask(e, x)} })
	return one[0]
}

// sendAll records what MLX sends for an operation (record/internal/routes), and stores the results in out. It is the
// one place where what MLX sends becomes dispatches. Temporaries are given back at the end.
//
// A session asks for the same few operations again and again, so sendAll keeps up to maxPlans plans.
func (s *Session) sendAll(a operation, o []Option, in []operand, shape []ir.Affine, out []Tensor, ask asked) {
	for i := range in {
		if t := &in[i].t; s.err == nil && t.bad != nil {
			s.fail("%s: %s", a.name, *t.bad)
		}
	}
	s.donated(a.name, o, in)
	s.key = a.appendKey(s.key[:0], in)
	p, ok := s.plans[string(s.key)]
	if s.err == nil && (!ok || !invariants.Caches) {
		if p = s.plan(a, in, ask); s.err == nil {
			if len(s.plans) >= maxPlans {
				clear(s.plans)
			}
			s.plans[string(s.key)] = p
		}
	}
	if s.err != nil {
		rank := len(shape)
		if shape == nil && len(in) > 0 {
			rank = in[0].t.Rank()
		}
		for i := range out {
			out[i] = s.broken(in[0].t.DType, rank)
		}
		return
	}
	buffers := make([]Tensor, 0, 8)
	for i := range in {
		buffers = append(buffers, in[i].t)
	}
	options := [][]Option{o}
	if len(out) > 1 {
		options = splitInto(o, len(out))
	}
	for i := range out {
		of, r := shape, &p.results[i]
		if of == nil {
			of = r.Shape
		}
		if r.in >= 0 {
			t := in[r.in].t
			t.Off, t.DType, t.Shape, t.Strides = t.Off.Add(r.Offset), r.Type, of, r.strides
			out[i] = t
			for _, into := range options[i] {
				if into.given && a.name != "copy" { // MLX returns the operand itself, which is wanted elsewhere
					s.CopyTo("copy", into.into, t)
					out[i] = into.into
				}
			}
		} else {
			out[i] = s.resultLaid(a.name, options[i], of, r)
		}
		buffers = append(buffers, out[i])
	}
	mark := s.ScratchMark()
	for _, b := range p.temporary {
		if b.Number != ir.Invalid {
			buffers = append(buffers, s.filled(b.Number, b.Value))
		} else {
			buffers = append(buffers, s.Scratch(ir.U8, b.Bytes))
		}
	}
	for i := range p.dispatches {
		s.planned(a.name, o, &p.dispatches[i], in, buffers)
	}
	if len(p.temporary) > 0 && s.err == nil {
		s.ScratchReset(mark)
	}
}

const maxPlans = 4096

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
			t := buffers[a.buffer]
			if p.stated {
				place := t
				if a.part.Present() {
					place.Off, place.DType = t.Off.Add(a.skip), a.part.Type
					place.Shape, place.Strides = a.part.Shape, a.steps
				}
				switch {
				case !a.writes:
					d.Reads(place)
				case a.part.Present():
					d.Writes(place)
				default:
					d.Updates(place)
				}
			}
			if v, ok := d.use(a.slot, &t); ok {
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
	key = append(append(append(key, a.name...), 0), a.detail...)
	key = append(key, 0, byte(flagOf(a.exact)))
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
		key = append(key, byte(flagOf(t.owner != 0)), byte(flagOf(in[i].inline)), byte(flagOf(in[i].spare)), byte(t.DType), byte(len(t.Shape)), alignment(t.Off))
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
func (s *Session) plan(a operation, in []operand, ask asked) *plan {
	op := a.name
	has := func(kernel string) bool {
		if a.exact {
			_, stated := s.foreign(kernel, true)
			return stated || len(msl.Declarations(kernel)) > 0
		}
		file := msl.FileOf(kernel)
		return file != "" && file != msl.PlainLoops
	}
	e := &routes.Encoder{Chip: s.chip, Version: s.version, Has: has, Flat: s.compiled == nil, Once: s.once}
	for _, p := range s.g.Params {
		e.Most = append(e.Most, uint32(max(p.Max, 0)))
	}
	arrays := make([]routes.Array, len(in))
	buffers := map[*routes.Buffer]int{}
	starts := make([]ir.Affine, len(in)) // of the operands and the results in their buffers
	for i := range in {
		t := &in[i].t
		if t.owner == 0 && !in[i].inline {
			continue // one that may be left out
		}
		x := array{
			Buffer: &routes.Buffer{}, Type: t.DType, Shape: t.Shape, Strides: make([]ir.Affine, len(t.Strides)),
			Offset: ir.Const(int64(alignment(t.Off))), Spare: in[i].spare,
		}
		if x.Spare {
			x.Buffer.Bytes = t.Elements().Scale(t.DType.Size())
		}
		for i, n := range t.Strides {
			x.Strides[i] = ir.Const(n)
		}
		arrays[i], buffers[x.Buffer], starts[i] = x, i, x.Offset
	}
	p := &plan{}
	for i, x := range ask(e, arrays) {
		r := plannedResult{Array: x, in: -1}
		at, ok := buffers[x.Buffer]
		switch {
		case e.Err != nil:
			s.fail("%s: %w", op, e.Err)
			return nil
		case ok && at < len(in):
			r.in, r.strides = at, s.numbers(op, x.Strides)
			r.Offset = x.Offset.Sub(starts[at])
			starts = append(starts, ir.Const(0))
		default:
			buffers[x.Buffer] = len(in) + i
			if !x.RowContiguous() {
				r.strides, r.bytes = s.laid(op, x), x.Buffer.Bytes
			}
			starts = append(starts, x.Offset)
		}
		p.results = append(p.results, r)
	}
	for _, d := range e.Sent {
		p.dispatches = append(p.dispatches, s.plannedOf(a, d, func(a routes.Argument) (int, ir.Affine) {
			i, ok := buffers[a.Buffer]
			if !ok {
				i = len(starts) + len(p.temporary)
				buffers[a.Buffer] = i
				p.temporary = append(p.temporary, a.Buffer)
			}
			if i < len(starts) {
				return i, a.Offset.Sub(starts[i])
			}
			return i, a.Offset
		}))
	}
	return p
}

// foreign returns a kernel of the compiled library, if it is to be taken: where ours is missing or, if it is to come
// first, wherever there is one.
func (s *Session) foreign(kernel string, first bool) (k ir.Kernel, ok bool) {
	if s.compiled == nil || !first && len(msl.Declarations(kernel)) > 0 {
		return k, false
	}
	return s.compiled(kernel)
}

// plannedOf turns one message into a dispatch of the kernel that it names. What a kernel has no use for is left out:
// arguments that its declaration does not have or calls unused, and function constants that it does not know.
func (s *Session) plannedOf(op operation, d routes.Dispatch, place func(routes.Argument) (int, ir.Affine)) (p plannedDispatch) {
	ds := msl.Declarations(d.Kernel)
	foreign, stated := s.foreign(d.Kernel, op.exact)
	known := foreign.Constants
	if !stated && len(ds) > 0 {
		for _, c := range ds[0].Constants {
			known = append(known, ir.FunctionConstant{Index: c.Index, Name: c.Name, Type: c.Type})
		}
	}
	var constants []ir.FunctionConstant
	for _, c := range d.Constants {
		if i := slices.IndexFunc(known, func(x ir.FunctionConstant) bool { return int(x.Index) == c.Index }); i >= 0 {
			x := known[i]
			x.Bits = uint64(c.Value)
			constants = append(constants, x)
		}
	}
	var id ir.KernelID
	ok := true
	if stated {
		foreign.Name, foreign.Constants = specialized(foreign.Name, constants), constants
		id = s.Kernel(foreign)
	} else {
		id, ok = s.kernel(d.Kernel, constants)
	}
	if !ok || s.err != nil {
		return p
	}
	p = plannedDispatch{kernel: id, barrier: d.Barrier, stated: stated, kind: ir.Threadgroups, grid: d.Grid}
	for i, n := range d.Group {
		p.group[i] = uint32(n)
	}
	if d.Threads {
		p.kind = ir.Threads
		if !stated && anyGroup(ds[0]) {
			p.group = groupAlong(d.Grid[0].Num)
		}
	}
	table := &s.g.Kernels[id]
	for _, a := range d.Arguments {
		arg, ok := table.Arg(uint8(a.Slot))
		if !ok {
			continue
		}
		out := plannedArg{slot: arg.Slot, buffer: -1, writes: a.Written}
		if a.Buffer != nil {
			out.buffer, out.skip = place(a)
			if stated {
				out.part, out.steps = touched(a.Touched)
			}
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
			// Arrays of our kernels have room for more dimensions than there may be.
			if more := int(arg.Type.Size())*int(arg.Count) - len(out.bytes); !stated && arg.Kind == ir.ConstantArg && more > 0 {
				out.bytes = append(out.bytes, make([]byte, more)...)
			}
		case len(a.Values) == 1:
			out.kind, out.number = arg.Type, a.Values[0].Value
		default:
			s.fail("%s: argument %d (%s) of %s is an array of which an element depends on a param", op.name, a.Slot, arg.Name, d.Kernel)
		}
		p.args = append(p.args, out)
	}
	return p
}

// touched returns what a kernel touches of an array with its strides, without the dimensions that repeat elements. It is
// not present where regions cannot say it: of more than four dimensions that do not join, or under strides with params.
func touched(a routes.Array) (part routes.Array, steps []int64) {
	if slices.ContainsFunc(a.Strides, func(x ir.Affine) bool { return !x.IsConst() }) {
		return part, nil
	}
	part = a
	part.Shape = nil
	for i, d := range a.Shape {
		if !d.Equal(ir.Const(1)) && a.Strides[i].Const != 0 {
			part.Shape, steps = append(part.Shape, d), append(steps, a.Strides[i].Const)
		}
	}
	if len(part.Shape) > 4 && !a.RowContiguous() {
		return routes.Array{}, nil
	}
	return part, steps
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

// laid returns the strides of a result that is not row-contiguous. Those of dimensions of one element say nothing, and
// become what follows from the dimensions behind them.
func (s *Session) laid(op string, a routes.Array) []int64 {
	strides := s.numbers(op, a.Strides)
	step := int64(1)
	for i := len(strides) - 1; i >= 0; i-- {
		switch d := a.Shape[i]; {
		case d.Equal(ir.Const(1)):
			strides[i] = step
		case strides[i] != 0:
			step *= max(d.Const, 1)
		}
	}
	return strides
}

// resultLaid is [Session.result] for a result that may have strides.
func (s *Session) resultLaid(op string, o []Option, shape []ir.Affine, p *plannedResult) Tensor {
	t := p.Type
	if p.strides == nil {
		return s.result(op, o, t, shape)
	}
	for i := range o {
		if into := o[i].into; o[i].given {
			if into.DType != t || !equalShapes(into.Shape, shape) || !slices.Equal(into.Strides, p.strides) {
				s.fail("%s gives %s%s with the strides %v of its operand, Into has %s%s with strides %v: CopyTo copies the result to others",
					op, t, s.format(shape), p.strides, into.DType, s.format(into.Shape), into.Strides)
			}
			return into
		}
	}
	out := s.Scratch(ir.U8, p.bytes)
	out.DType, out.Shape, out.Strides = t, shape, p.strides
	return out
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
