package dispatches

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// dispatch is a random dispatch that a declaration describes, as a graph of this
// one command.
type dispatch struct {
	in     *decl.Instance
	graph  *ir.Graph
	node   *ir.Dispatch
	params [][]uint32 // values of the params to run with, at least one
	inline map[int]bool
}

// String has the details by which a person can understand a failing case.
func (x *dispatch) String() string {
	n := x.node
	s := fmt.Sprintf("%s of %s:%d, %s ", x.in.Decl.Name, x.in.Decl.File, x.in.Decl.Line, n.GridKind)
	for i, e := range n.Grid {
		s += fmt.Sprintf("⌈(%s)/%d⌉ ", x.graph.FormatAffine(e.Num), e.Div)
		if i == 2 {
			s += fmt.Sprintf("of %v;", n.Threadgroup)
		}
	}
	for i, sym := range x.in.Decl.Symbols {
		v := x.in.Symbols[i]
		switch {
		case v.Param >= 0:
			s += fmt.Sprintf(" %s=$%s", sym.Name, x.graph.Params[v.Param].Name)
		case sym.Kind == term.Float:
			s += fmt.Sprintf(" %s=%v", sym.Name, v.F)
		case v.Div != 1:
			s += fmt.Sprintf(" %s=⌈(%s)/%d⌉", sym.Name, x.graph.FormatAffine(v.Num), v.Div)
		default:
			s += fmt.Sprintf(" %s=%s", sym.Name, x.graph.FormatAffine(v.Num))
		}
	}
	for _, b := range n.Bindings {
		if b.Kind == ir.BindView {
			s += fmt.Sprintf("; %d: %s", b.Slot, x.graph.FormatView(b.View))
		}
	}
	return s
}

// ErrNoDispatch is wrapped by the error of a declaration that seems to describe
// no dispatch at all.
var ErrNoDispatch = errors.New("no random dispatch")

// random makes a random dispatch of d's kernel, or returns an error that says why there is none. One that is regular is like those of
// models: sizes that a condition divides are multiples of 256, and arguments lie at multiples of 256 bytes of memories of their own. Devices may
// have other code for such.
func random(d *decl.Decl, r *rand.Rand, regular bool) (*dispatch, error) {
	var err error
	for range 30 {
		var extra []*term.Expr
		pair := [2]int{-1, -1}
		if len(d.Inplace) > 0 && r.IntN(3) == 0 {
			pair = d.Inplace[r.IntN(len(d.Inplace))]
			extra = sameView(d, pair)
		}
		var a *assignment
		if a, err = solve(d, r, extra, regular); err != nil {
			if pair[0] >= 0 {
				continue // the kernel cannot run in place with such values: try without
			}
			return nil, err
		}
		// First with params. Where the kernel cannot have them, without.
		for _, params := range []int{r.IntN(3), 0} {
			b := &builder{a: a, r: r, pair: pair}
			var x *dispatch
			if x, err = b.build(params); err == nil {
				return x, nil
			}
		}
	}
	return nil, fmt.Errorf("%w of %s (%s:%d): %w", ErrNoDispatch, d.Name, d.File, d.Line, err)
}

// sameView returns the conditions under which two arguments can be one view.
func sameView(d *decl.Decl, pair [2]int) []*term.Expr {
	out, in := &d.Args[pair[0]], &d.Args[pair[1]]
	var conds []*term.Expr
	equal := func(x, y *term.Expr) {
		conds = append(conds, &term.Expr{Op: term.Eq, Kind: term.Bool, Args: []*term.Expr{x, y}})
	}
	skip := len(out.Shape) - len(in.Shape)
	for j := range skip { // the only row of a matrix is a vector
		equal(out.Shape[j], &term.Expr{Op: term.Number, Num: 1})
	}
	for j := range in.Shape {
		equal(out.Shape[skip+j], in.Shape[j])
		if out.Strides != nil || in.Strides != nil {
			equal(StrideOf(out, skip+j), StrideOf(in, j))
		}
	}
	return conds
}

// StrideOf returns the stride of dimension j as an expression.
func StrideOf(a *decl.Arg, j int) *term.Expr {
	if a.Strides != nil {
		return a.Strides[j]
	}
	e := &term.Expr{Op: term.Number, Num: 1}
	for _, n := range a.Shape[j+1:] {
		e = &term.Expr{Op: term.Mul, Args: []*term.Expr{n, e}}
	}
	return e
}

// builder turns an assignment into a dispatch.
type builder struct {
	a    *assignment
	r    *rand.Rand
	pair [2]int // written and read argument that are one view
	// fixed, if not nil, has the grid; else the grid is random where the declaration
	// leaves it open.
	fixed *witness

	g      *ir.Builder
	syms   []decl.Value
	values []uint32 // of the params, at the assignment
}

func (b *builder) build(params int) (*dispatch, error) {
	d := b.a.d
	b.g = ir.NewBuilder("conformance")
	b.symbols(params)
	n, err := b.node()
	if err != nil {
		return nil, err
	}
	x := &dispatch{inline: map[int]bool{}}
	// The first time views are larger than anything that the kernel touches, to learn
	// how much it does touch; the second time they have that size.
	roomy := b.g.Memory(ir.Memory{Name: "roomy", Kind: ir.State, Size: 1 << 40})
	fixed := slices.Clone(n.Bindings)
	for i := range d.Args {
		if a := &d.Args[i]; a.Kind == ir.DeviceArg && a.Mode != decl.Unused {
			n.Bindings = append(n.Bindings, ir.BufferArg(a.Slot, ir.ViewOf(roomy, 0, 1<<40)))
		}
	}
	x.node = b.g.Dispatch(n)
	g := b.g.Unfinished()
	if x.in, err = d.Bind(g, x.node); err != nil {
		return nil, err
	}
	x.node.Bindings = fixed
	g.Memories = g.Memories[:0]
	if err := b.views(x); err != nil {
		return nil, err
	}
	if x.in, err = d.Bind(g, x.node); err != nil {
		return nil, err
	}
	if err := x.in.CheckAliasing(); err != nil {
		return nil, err
	}
	if x.graph, err = b.g.Graph(); err != nil {
		return nil, err
	}
	x.params = b.valuations()
	return x, nil
}

// symbols gives every symbol its value: the number of the assignment, or an expression
// of new params whose value is that number when the params have the values in b.values.
func (b *builder) symbols(params int) {
	d := b.a.d
	b.syms = make([]decl.Value, len(d.Symbols))
	var scalars []int
	for i := range d.Args {
		if x := &d.Args[i]; x.Kind == ir.ConstantArg && x.Mode != decl.Unused && x.Count == 1 {
			switch x.Type {
			case ir.I32, ir.U32, ir.I64, ir.U64, ir.F32:
				scalars = append(scalars, x.Symbol)
			}
		}
	}
	for i := range d.Symbols {
		b.syms[i] = decl.Value{Extent: ir.Ext(b.a.vals[i]), F: b.a.f32s[i], Param: -1}
		if b.a.free[i] && !b.a.floats[i] && b.a.bound(i) {
			scalars = append(scalars, i)
		}
	}
	for range min(params, len(scalars)) {
		i := scalars[b.r.IntN(len(scalars))]
		if b.syms[i].Param >= 0 || !b.syms[i].IsConst() {
			continue
		}
		name := fmt.Sprintf("p%d", len(b.values))
		if b.a.floats[i] {
			v := b.a.f32s[i]
			b.syms[i].Param = b.g.ParamF32(name, min(v, 0), 2*v+1)
			b.values = append(b.values, math.Float32bits(v))
			continue
		}
		e := ir.Extent{Num: b.affine(name, b.a.vals[i]), Div: 1}
		b.syms[i].Extent = e
		if b.r.IntN(2) == 0 { // numbers that are equal are often the same number, such as the rows of the grid and of an argument
			for _, j := range scalars {
				if !b.a.floats[j] && b.a.vals[j] == b.a.vals[i] {
					b.syms[j].Extent = e
				}
			}
		}
	}
}

// affine returns an expression of a new u32 param, in one of the forms that recordings
// have. Its value is v when the param has its value in b.values.
func (b *builder) affine(name string, v int64) ir.Affine {
	coeff := int64(1 + b.r.IntN(2))
	p := v / coeff
	lo, hi := p, p+int64(1+b.r.IntN(5))
	if b.r.IntN(2) == 0 {
		lo = max(0, p-int64(b.r.IntN(4)))
	}
	id := b.g.Param(name, uint32(lo), uint32(hi))
	b.values = append(b.values, uint32(p))
	return ir.Linear(v-coeff*p, ir.Term{Param: id, Coeff: coeff})
}

// eval computes an integer expression over the params.
func (b *builder) eval(e *term.Expr) (ir.Extent, error) {
	in := &decl.Instance{Decl: b.a.d, Graph: b.g.Unfinished(), Symbols: b.syms}
	return in.Eval(e)
}

// node makes the dispatch without its buffers: kernel, grid and constants.
func (b *builder) node() (ir.Dispatch, error) {
	d := b.a.d
	var n ir.Dispatch
	for _, l := range d.Lets {
		v, err := b.eval(l.Value)
		if err != nil {
			return n, err
		}
		b.syms[l.Symbol].Extent = v
	}
	var constants []ir.FunctionConstant
	for _, c := range d.Constants {
		fc := ir.FunctionConstant{Index: c.Index, Name: c.Name, Type: c.Type, Bits: uint64(b.a.vals[c.Symbol])}
		if c.Type.Float() {
			fc.Bits = uint64(math.Float32bits(b.a.f32s[c.Symbol]))
		}
		constants = append(constants, fc)
	}
	n.Kernel = b.g.Kernel(d.Kernel("kernel", constants...))
	if err := b.grid(&n); err != nil {
		return n, err
	}
	for i := range d.Args {
		x := &d.Args[i]
		switch {
		case x.Kind == ir.ThreadgroupArg:
			bytes := int64(x.Elem.Bits())
			for _, e := range x.Shape {
				v, err := b.eval(e)
				if err != nil {
					return n, err
				}
				bytes *= v.Eval(nil)
			}
			n.ThreadgroupMemory = append(n.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: x.Slot, Bytes: uint32((bytes/8 + 15) / 16 * 16)})
		case x.Kind == ir.ConstantArg && x.Mode != decl.Unused:
			n.Bindings = append(n.Bindings, b.constant(x))
		}
	}
	return n, nil
}

func (b *builder) constant(x *decl.Arg) ir.Binding {
	v := b.syms[x.Symbol]
	switch {
	case v.Param >= 0:
		return ir.ScalarArg(x.Slot, ir.F32, ir.Linear(0, ir.Term{Param: v.Param, Coeff: 1}))
	case !v.IsConst():
		return ir.ScalarArg(x.Slot, x.Type, v.Num)
	}
	var data []byte
	for j := range int(x.Count) {
		data = appendElement(data, x.Type, b.a.vals[x.Symbol+j], b.a.f32s[x.Symbol+j])
	}
	return ir.BytesArg(x.Slot, data)
}

// appendElement appends an element of a constant argument.
func appendElement(data []byte, t ir.DType, v int64, f float32) []byte {
	if t == ir.F32 {
		v = int64(math.Float32bits(f))
	}
	raw := binary.LittleEndian.AppendUint64(nil, uint64(v))
	return append(data, raw[:t.Size()]...)
}

// grid sets the grid and threadgroup size of the dispatch, in threads or in
// threadgroups.
func (b *builder) grid(n *ir.Dispatch) error {
	d := b.a.d
	if b.fixed != nil {
		n.GridKind, n.Threadgroup = b.fixed.Kind, b.fixed.Group
		for i, v := range b.fixed.Grid {
			n.Grid[i] = ir.Ext(v)
		}
		return nil
	}
	threads := 1
	for i, g := range d.Group {
		switch {
		case g.Bind >= 0:
			n.Threadgroup[i] = uint32(b.a.vals[g.Bind])
		case g.Check != nil:
			v, err := b.eval(g.Check)
			if err != nil {
				return err
			}
			if !v.IsConst() {
				return fmt.Errorf("the threadgroup depends on params")
			}
			n.Threadgroup[i] = uint32(v.Eval(nil))
		default:
			n.Threadgroup[i] = []uint32{1, 2, 3, 8, 32, 100, 256}[b.r.IntN(7)]
			for uint32(threads)*n.Threadgroup[i] > 1024 {
				n.Threadgroup[i] = max(1, n.Threadgroup[i]/2)
			}
		}
		threads *= int(max(1, n.Threadgroup[i]))
	}
	lines := d.Threads
	n.GridKind = ir.Threads
	if d.Groups != nil {
		lines, n.GridKind = d.Groups, ir.Threadgroups
	}
	for i, g := range lines {
		n.Grid[i] = ir.Ext(1)
		switch {
		case g.Bind >= 0:
			n.Grid[i] = b.syms[g.Bind].Extent
		case g.Check != nil:
			v, err := b.eval(g.Check)
			if err != nil {
				return err
			}
			n.Grid[i] = v
		}
	}
	if b.r.IntN(2) == 0 {
		b.otherUnit(n)
	}
	return nil
}

// otherUnit changes the grid from threads to threadgroups or back, if that
// gives the same threads.
func (b *builder) otherUnit(n *ir.Dispatch) {
	grid, group := n.Grid, n.Threadgroup
	if n.GridKind == ir.Threadgroups {
		for i, e := range grid {
			if e.Div != 1 {
				return
			}
			grid[i] = ir.Extent{Num: e.Num.Scale(int64(group[i])), Div: 1}
		}
		n.GridKind, n.Grid = ir.Threads, grid
		return
	}
	for i, e := range grid {
		free := b.a.d.Group[i].Check == nil && b.a.d.Group[i].Bind < 0
		switch size := int64(group[i]); {
		case size == 0:
			return
		case e.IsConst() && e.Eval(nil)%size == 0:
			grid[i] = ir.Ext(e.Eval(nil) / size)
		case free:
			group[i] = 1
		default:
			return
		}
	}
	n.GridKind, n.Grid, n.Threadgroup = ir.Threadgroups, grid, group
}

// views binds every device argument to a view of a memory, at a random aligned
// offset, which may depend on a param, with random slack after the bytes that the
// kernel touches and a margin around the view that it must not touch. Arguments share
// one memory or have one each. Small read arguments are sometimes bound as bytes.
// regularAlign is how many bytes the places of arguments of a regular dispatch are multiples of.
const regularAlign = 256

func (b *builder) views(x *dispatch) error {
	d := b.a.d
	shared := b.r.IntN(3) == 0 && !b.a.regular
	var top int64
	g := b.g.Unfinished()
	for i := range d.Args {
		a := &d.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || i == b.pair[0] {
			continue
		}
		region, err := x.in.Region(i)
		if err != nil {
			return err
		}
		_, end := region.Hull()
		_, size, ok := g.Range(end.Sub(region.Off))
		if !ok {
			return fmt.Errorf("%s has no size", a.Name)
		}
		size = max(0, size)
		if i != b.pair[1] && a.Mode == decl.Read && size > 0 && size <= 64 && b.r.IntN(4) == 0 && !b.a.regular {
			raw := make([]byte, (size+3)/4*4)
			fillElements(raw, a.Elem, b.r, noOdd, 1)
			x.node.Bindings = append(x.node.Bindings, ir.BytesArg(a.Slot, raw))
			x.inline[i] = true
			continue
		}
		align := max(a.Type.Size(), 1)
		if i == b.pair[1] {
			align = max(align, d.Args[b.pair[0]].Type.Size())
		}
		slack := []int64{0, 0, align, int64(b.r.IntN(100))}[b.r.IntN(4)]
		if !shared {
			top = 0
		}
		memory := ir.Memory{Name: "m_" + a.Name, Kind: ir.State}
		if b.a.regular {
			align, slack, memory.Align = regularAlign, 0, regularAlign
		}
		top += 64 + align*int64(b.r.IntN(40))
		top = (top + align - 1) / align * align
		v := ir.View{Off: ir.Const(top), Len: ir.Const(size + slack)}
		if b.r.IntN(4) == 0 { // like the row of a cache: the offset depends on a param
			p := b.affine(fmt.Sprintf("at%d", i), 2)
			v.Off = ir.Const(top).Add(p.Scale(align))
			_, far, _ := g.Range(v.Off)
			top = far
		}
		top += size + slack
		v.Mem = 0
		switch {
		case !shared:
			if a.Mode == decl.Read && i != b.pair[1] && b.r.IntN(2) == 0 {
				memory.Kind = ir.Input
			}
			memory.Size = top + 64
			v.Mem = b.g.Memory(memory)
		case len(g.Memories) == 0:
			b.g.Memory(ir.Memory{Name: "shared", Kind: ir.State, Size: 1})
		}
		if shared {
			b.g.SetSize(0, top+64)
		}
		x.node.Bindings = append(x.node.Bindings, ir.BufferArg(a.Slot, v))
		if i == b.pair[1] {
			x.node.Bindings = append(x.node.Bindings, ir.BufferArg(d.Args[b.pair[0]].Slot, v))
		}
	}
	slices.SortFunc(x.node.Bindings, func(a, b ir.Binding) int { return int(a.Slot) - int(b.Slot) })
	return nil
}

// valuations returns the values of the params to run with: those that the
// dispatch was drawn for, the bounds, and something between.
func (b *builder) valuations() [][]uint32 {
	if len(b.values) == 0 {
		return [][]uint32{nil}
	}
	out := [][]uint32{b.values}
	g := b.g.Unfinished()
	for k := range 3 {
		v := make([]uint32, len(b.values))
		for i, p := range g.Params {
			switch {
			case p.Type == ir.F32:
				v[i] = math.Float32bits(float32(p.Min + (p.Max-p.Min)*b.r.Float64()))
			case k == 0:
				v[i] = uint32(p.Min)
			case k == 1:
				v[i] = uint32(p.Max)
			default:
				v[i] = uint32(p.Min) + uint32(b.r.IntN(int(p.Max-p.Min)+1))
			}
		}
		out = append(out, v)
	}
	return out
}
