package isel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// propose solves for the kernel's unknowns, builds the dispatch, binds it to
// its declaration and checks that it computes what the group computes.
func (f *fitter) propose() bool {
	s := f.newSolution()
	for j, o := range f.results {
		p := f.m.lay.places[o.Member][o.Arg]
		s.base[f.d.Results[j].Arg] = p
	}
	if err := s.complete(); err != nil {
		return f.fail("%w", err)
	}
	d, k, err := s.build()
	if err != nil {
		return f.fail("%w", err)
	}
	if f.m.hit, err = f.m.accept(d, k, f.results); err != nil {
		return f.fail("%w", err)
	}
	return true
}

// accept returns the match of dispatch d of kernel k, if it is one.
func (m *matcher) accept(d *ir.Dispatch, k ir.Kernel, results []Operand) (*Match, error) {
	g := *m.gr.Graph
	g.Kernels, d.Kernel = []ir.Kernel{k}, 0 // not a copy of all kernels for each proposal
	in, err := m.lib.Bind(&g, d)
	if err != nil {
		return nil, err
	}
	if err := in.CheckAliasing(); err != nil {
		m.clash = true
		return nil, err
	}
	hit := &Match{Instance: in, Kernel: k, Results: results}
	if err := m.verify(hit); err != nil {
		return nil, err
	}
	return hit, nil
}

// complete solves the equations. Symbols that they do not determine get the values that suggest returns; verify
// refuses a proposal if such a value matters and is wrong.
func (s *solution) complete() error {
	if err := s.solve(s.eqs); err != nil {
		return err
	}
	eqs := append(slices.Clone(s.eqs), requirements(s.d)...)
	for {
		if err := s.solve(eqs); err != nil {
			return err
		}
		i := s.openSymbol()
		if i < 0 {
			break
		}
		s.ints[i] = s.suggest(i)
	}
	for j := range s.d.Args {
		a := &s.d.Args[j]
		_, based := s.base[j]
		_, bound := s.bound[j]
		if a.Kind == ir.DeviceArg && a.Mode != decl.Unused && !based && !bound {
			return fmt.Errorf("nothing says where its argument %s is", a.Name)
		}
	}
	return nil
}

// suggest returns a value for a symbol that no equation determines: the symbol's value
// where a member runs the same kernel; for the size of a threadgroup that of a member
// whose reductions the kernel computes; for a stride that of a contiguous array.
func (s *solution) suggest(i int) form {
	for _, in := range s.m.gr.Members {
		if in.Decl == s.d {
			return s.extent(in.Symbols[i].Extent)
		}
	}
	for k := range s.d.Group {
		if s.d.Group[k].Bind == i {
			if in := s.m.reducer(s.d); in != nil {
				return number(int64(in.Dispatch.Threadgroup[k]))
			}
			return number(1)
		}
	}
	for j := range s.d.Args {
		a := &s.d.Args[j]
		step := number(1)
		for k := len(a.Strides) - 1; k >= 0; k-- {
			if e := a.Strides[k]; e.Op == term.Symbol && e.Index == i {
				return step
			}
			if n, err := s.eval(integerTerm{e: a.Shape[k]}); err == nil && !n.open() {
				if p, ok := s.integer(term.Mul, step, n); ok && p.isConst() {
					step = p
				}
			}
		}
	}
	return form{}
}

// reducer returns the member whose reductions kernel d would compute.
func (m *matcher) reducer(d *decl.Decl) *decl.Instance {
	want := classes(d)
	for _, in := range m.gr.Members {
		for c := range classes(in.Decl) {
			if want[c] {
				return in
			}
		}
	}
	return nil
}

// classes returns the orders of reduction that a kernel uses (docs/terms.md,
// "Reductions").
func classes(d *decl.Decl) map[string]bool {
	out := map[string]bool{}
	walk(d, func(e *term.Expr) {
		if (e.Op == term.Sum || e.Op == term.MaxOver) && e.Class != "" { // else no order matters
			out[e.Class] = true
		}
	})
	return out
}

// walk calls see with every operation in the terms of d.
func walk(d *decl.Decl, see func(*term.Expr)) {
	for i := range d.Wheres {
		d.Wheres[i].Body.Walk(see)
	}
	for i := range d.Results {
		d.Results[i].Body.Walk(see)
	}
}

func (s *solution) build() (*ir.Dispatch, ir.Kernel, error) {
	d := &ir.Dispatch{}
	var constants []ir.FunctionConstant
	for _, c := range s.d.Constants {
		raw, err := s.encode(c.Symbol, c.Type)
		if err != nil {
			return nil, ir.Kernel{}, err
		}
		constants = append(constants, ir.FunctionConstant{Index: c.Index, Name: c.Name, Type: c.Type, Bits: binary.LittleEndian.Uint64(append(raw, make([]byte, 8)...))})
	}
	for j := range s.d.Args {
		a := &s.d.Args[j]
		if a.Mode == decl.Unused {
			continue
		}
		var b ir.Binding
		var err error
		switch a.Kind {
		case ir.ConstantArg:
			b, err = s.constant(a)
		case ir.DeviceArg:
			b, err = s.buffer(j)
		case ir.ThreadgroupArg:
			var n int64
			if n, err = s.threadgroup(a); err == nil {
				d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: a.Slot, Bytes: uint32(n)})
				continue
			}
		}
		if err != nil {
			return nil, ir.Kernel{}, err
		}
		b.Slot = a.Slot
		d.Bindings = append(d.Bindings, b)
	}
	return d, s.d.Kernel(s.d.Name, constants...), s.grid(d)
}

var errValue = errors.New("a constant does not fit its type")

// encode is the value of a symbol as an element of type t.
func (s *solution) encode(symbol int, t ir.DType) ([]byte, error) {
	if t.Float() {
		v, ok := s.floats[symbol]
		if !ok {
			v = &value{op: term.Real} // its value does not matter; if it did, verify would refuse
		}
		if v.op != term.Real || t != ir.F32 {
			return nil, errValue
		}
		return binary.LittleEndian.AppendUint32(nil, v.bits), nil
	}
	f, ok := s.ints[symbol]
	if !ok || !f.isConst() {
		return nil, errValue
	}
	raw := binary.LittleEndian.AppendUint64(nil, uint64(f.c))[:t.Size()]
	if _, x, err := decode(t, raw); err != nil || x != f.c {
		return nil, errValue
	}
	return raw, nil
}

// decode returns the value of an element of type t.
func decode(t ir.DType, raw []byte) (float32, int64, error) {
	size := t.Size()
	if size == 0 || int64(len(raw)) < size {
		return 0, 0, fmt.Errorf("%d bytes hold no %s", len(raw), t)
	}
	x := binary.LittleEndian.Uint64(append(bytes.Clone(raw[:size]), make([]byte, 8)...))
	switch t {
	case ir.F32:
		return math.Float32frombits(uint32(x)), 0, nil
	case ir.F16:
		return float32(term.F16Value(uint16(x))), 0, nil
	case ir.BF16:
		return math.Float32frombits(uint32(x) << 16), 0, nil
	case ir.Bool:
		return 0, int64(min(x, 1)), nil
	}
	if t.Signed() {
		shift := 64 - 8*size
		return 0, int64(x<<shift) >> shift, nil
	}
	if x > math.MaxInt64 {
		return 0, 0, errValue
	}
	return 0, int64(x), nil
}

func (s *solution) constant(a *decl.Arg) (ir.Binding, error) {
	if a.Count == 1 {
		if v, ok := s.floats[a.Symbol]; ok && v.op == term.Symbol && a.Type == ir.F32 {
			return ir.Binding{Kind: ir.BindScalar, Type: ir.F32, Expr: v.par}, nil
		}
		if f, ok := s.ints[a.Symbol]; ok && !f.isConst() && !a.Type.Float() {
			return scalarBinding(a, f)
		}
	}
	var raw []byte
	for i := range int(a.Count) {
		b, err := s.encode(a.Symbol+i, a.Type)
		if err != nil {
			return ir.Binding{}, fmt.Errorf("argument %s: %w", a.Name, err)
		}
		raw = append(raw, b...)
	}
	return ir.Binding{Kind: ir.BindBytes, Bytes: raw}, nil
}

func scalarBinding(a *decl.Arg, f form) (ir.Binding, error) {
	x, ok := f.paramsOnly()
	switch a.Type {
	case ir.I32, ir.U32, ir.I64, ir.U64:
	default:
		ok = false
	}
	if !ok {
		return ir.Binding{}, fmt.Errorf("argument %s: %w", a.Name, errValue)
	}
	return ir.Binding{Kind: ir.BindScalar, Type: a.Type, Expr: x}, nil
}

// buffer binds a device argument: to a member's view if one begins there and is long enough, otherwise to
// exactly the bytes that the kernel touches.
func (s *solution) buffer(j int) (ir.Binding, error) {
	a := &s.d.Args[j]
	if b, ok := s.bound[j]; ok {
		if !b.Expr.IsConst() {
			return b, nil
		}
		raw := binary.LittleEndian.AppendUint64(nil, uint64(b.Expr.Const))[:a.Elem.Size()]
		if _, x, err := decode(a.Elem, raw); err != nil || x != b.Expr.Const {
			return b, fmt.Errorf("argument %s: %w", a.Name, errValue)
		}
		return ir.Binding{Kind: ir.BindBytes, Bytes: raw}, nil
	}
	need, err := s.length(a)
	if err != nil {
		return ir.Binding{}, err
	}
	return ir.Binding{Kind: ir.BindView, View: s.m.view(s.base[j], need)}, nil
}

// view returns n bytes from p on: a member's view if one begins there and is long enough.
func (m *matcher) view(p place, n ir.Affine) ir.View {
	for i, in := range m.gr.Members {
		for k, q := range m.lay.places[i] {
			if q.slot == p.slot && q.off.Equal(p.off) && atMost(m.gr.Graph, n.Sub(in.Views[k].Len), 0) {
				return in.Views[k]
			}
		}
	}
	s := &m.lay.slots[p.slot]
	return ir.View{Mem: s.root, Off: s.at.Add(p.off), Len: n}
}

// length returns how many bytes after the begin of an argument the kernel reaches.
func (s *solution) length(a *decl.Arg) (ir.Affine, error) {
	fail := fmt.Errorf("the size of argument %s is not affine in the params", a.Name)
	end := number(1)
	stride := number(1)
	for k := len(a.Shape) - 1; k >= 0; k-- {
		n, err := s.eval(integerTerm{e: a.Shape[k]})
		if err != nil {
			return ir.Affine{}, err
		}
		if a.Strides != nil {
			if stride, err = s.eval(integerTerm{e: a.Strides[k]}); err != nil {
				return ir.Affine{}, err
			}
		}
		step, ok := s.integer(term.Mul, stride, s.add(n, number(-1)))
		if !ok {
			return ir.Affine{}, fail
		}
		end = s.add(end, step)
		if a.Strides == nil {
			stride, _ = s.integer(term.Mul, stride, n)
		}
	}
	bits, ok := s.scale(end, int64(a.Elem.Bits())).paramsOnly()
	if !ok {
		return bits, fail
	}
	out, ok := quotient(bits, 8)
	if lo, _, inRange := s.g.Range(out); !ok || !inRange || lo < 0 {
		return out, fail
	}
	return out, nil
}

func (s *solution) threadgroup(a *decl.Arg) (int64, error) {
	n := number(int64(a.Elem.Bits()))
	for _, e := range a.Shape {
		x, err := s.eval(integerTerm{e: e})
		if err != nil {
			return 0, err
		}
		n, _ = s.integer(term.Mul, n, x)
	}
	if !n.isConst() || n.c < 0 || n.c > 1<<20 {
		return 0, fmt.Errorf("the size of threadgroup argument %s: %w", a.Name, errValue)
	}
	return (n.c + 7) / 8, nil
}

// grid sets the dispatch's grid and threadgroup.
func (s *solution) grid(d *ir.Dispatch) error {
	spec := s.d.Groups
	if spec == nil {
		spec, d.GridKind = s.d.Threads, ir.Threads
	}
	// The grid is computed from extents, as Bind does it. Forms would simplify quotients further, but Bind expects
	// the very same expression.
	in, err := s.instance()
	if err != nil {
		return err
	}
	dimension := func(g *decl.Grid, k int) (ir.Extent, bool) {
		switch {
		case g[k].Bind >= 0:
			return in.Symbols[g[k].Bind].Extent, true
		case g[k].Check != nil:
			x, err := in.Eval(g[k].Check)
			return x, err == nil
		}
		return ir.Ext(1), true
	}
	for k := range 3 {
		var ok bool
		if d.Grid[k], ok = dimension(spec, k); !ok {
			return fmt.Errorf("dimension %d of the grid is no quotient of params", k)
		}
	}
	free := s.m.threads(d)
	for k := range 3 {
		if s.d.Group[k].Bind < 0 && s.d.Group[k].Check == nil {
			d.Threadgroup[k] = free[k]
			continue
		}
		e, ok := dimension(&s.d.Group, k)
		if !ok || !e.IsConst() || e.Num.Const < 1 || e.Num.Const > math.MaxUint16 || e.Div != 1 {
			return fmt.Errorf("dimension %d of the threadgroup depends on params or is absurd", k)
		}
		d.Threadgroup[k] = uint32(e.Num.Const)
	}
	return nil
}

// instance holds the values of the integer symbols.
func (s *solution) instance() (*decl.Instance, error) {
	in := &decl.Instance{Decl: s.d, Graph: s.g, Dispatch: &ir.Dispatch{}, Symbols: make([]decl.Value, len(s.d.Symbols))}
	for i := range in.Symbols {
		in.Symbols[i] = decl.Value{Extent: ir.Ext(0), Param: -1}
		if f, ok := s.ints[i]; ok {
			if in.Symbols[i].Extent, ok = f.asExtent(); !ok {
				return nil, fmt.Errorf("%s is no quotient of params", s.d.Symbols[i].Name)
			}
		}
	}
	for _, l := range s.d.Lets {
		x, err := in.Eval(l.Value)
		if err != nil {
			return nil, err
		}
		in.Symbols[l.Symbol].Extent = x
	}
	return in, nil
}

// threads returns a threadgroup size for a kernel that accepts any: that of a member with the same grid, or else
// a row of up to 256 threads.
func (m *matcher) threads(d *ir.Dispatch) [3]uint32 {
	for _, in := range m.gr.Members {
		n := in.Dispatch
		if n.GridKind == d.GridKind && n.Grid[0].Equal(d.Grid[0]) && n.Grid[1].Equal(d.Grid[1]) && n.Grid[2].Equal(d.Grid[2]) && !isCopy(in) {
			return n.Threadgroup
		}
	}
	if d.Grid[0].IsConst() {
		return [3]uint32{uint32(max(1, min(d.Grid[0].Eval(nil), 256))), 1, 1}
	}
	return [3]uint32{256, 1, 1}
}
