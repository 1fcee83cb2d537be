package isel

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

// Elementwise reports whether each element of the results of d is computed from
// single elements of its operands by operations on floats: what a generated
// kernel may be made of.
func Elementwise(d *decl.Decl) bool {
	ok := len(d.Results) > 0
	walk(d, func(e *term.Expr) {
		if e.Op.Reduction() || e.Op == term.ToInt || e.Kind == term.Float && e.Op != term.Call && !e.Op.Elementwise() {
			ok = false
		}
	})
	return ok
}

var errGenerated = errors.New("no generated kernel computes it")

// Generate returns a dispatch of a generated kernel (docs/kernels.md, "Generated kernels") whose terms are the
// composed terms of an elementwise group. Its results are indexed over all elements or, if an operand is a single row
// or column, over rows and columns. With unrounded, the roundings of intermediates are left out (see
// [Library.Unrounded]).
func (l *Library) Generate(gr *Group, unrounded bool) (*Match, error) {
	lay, err := newLayout(gr)
	if err != nil {
		return nil, err
	}
	m := &matcher{lib: l, gr: gr, lay: lay, unrounded: unrounded}
	if len(gr.Results) == 0 {
		return nil, errGenerated
	}
	for rank := 1; rank <= 2; rank++ {
		for _, shape := range m.shapes(gr.Results[0], rank) {
			hit, e := m.generate(shape)
			if hit != nil {
				return hit, nil
			}
			switch err = e; { // a kernel that is too large is so in any shape
			case errors.Is(err, elementwise.TooLong):
				return nil, &NearMiss{"a generated kernel", err}
			case errors.Is(err, term.TooDeep):
				return nil, &NearMiss{"a generated kernel", fmt.Errorf("their term is %w", term.TooDeep)} // without the whole text of the term
			}
		}
	}
	return nil, err
}

// operand is a load of a generated kernel: where it reads and how it is indexed.
type operand struct {
	place place
	bytes ir.Affine // its length in bytes
}

// writer turns values into the text of a generated kernel.
type writer struct {
	shape    []dim
	vars     []form
	operands map[string]operand
	floats   map[string]ir.Affine // f32 params
	written  map[*value]*term.Expr
}

func (m *matcher) generate(shape []dim) (*Match, error) {
	s := newSpace(m.gr.Graph, m.lay.slots, foldAll)
	defer s.release()
	c := m.composer(s)
	w := &writer{shape: shape, operands: map[string]operand{}, floats: map[string]ir.Affine{}, written: map[*value]*term.Expr{}}
	step := int64(1)
	for k := len(shape) - 1; k >= 0; k-- {
		if shape[k].stride != step && !shape[k].single() || k > 0 && !shape[k].n.IsConst() {
			return nil, errGenerated
		}
		if k > 0 {
			step *= shape[k].n.Const
		}
	}
	for k, d := range shape {
		w.vars = append(w.vars, s.index(-1-k, s.affine(d.n)))
	}
	var bodies []*term.Expr
	for _, o := range m.gr.Results {
		a := &m.gr.Members[o.Member].Decl.Args[o.Arg]
		at := form{}
		for k, d := range shape {
			at = s.addScaled(at, int64(a.Elem.Bits())*d.stride, w.vars[k])
		}
		idx, err := c.indices(o, at)
		if err != nil || !a.Elem.Float() {
			return nil, errGenerated
		}
		x, err := c.result(o, idx)
		if err != nil || x.isInt || s.overflow {
			return nil, errGenerated
		}
		e, err := w.write(s, x.v)
		if err != nil {
			return nil, err
		}
		if !x.v.fits(a.Elem) {
			e = &term.Expr{Op: term.Round, Kind: term.Float, Type: a.Elem, Args: []*term.Expr{e}}
		}
		bodies = append(bodies, e)
	}
	text, names, err := elementwise.Write(len(shape) == 1, bodies...)
	if err != nil {
		return nil, err
	}
	return m.bindGenerated(w, text, names)
}

// maxNodes bounds the operations of a generated kernel: a text with more of them would exceed MaxElementwiseText.
const maxNodes = decl.MaxElementwiseText / 2

// write returns a value as an expression over the indices of the kernel. A value that is needed several times
// becomes one shared node.
func (w *writer) write(s *space, v *value) (*term.Expr, error) {
	if e := w.written[v]; e != nil {
		return e, nil
	}
	if len(w.written) >= maxNodes {
		return nil, elementwise.TooLong
	}
	e, err := w.expression(s, v)
	if err == nil {
		w.written[v] = e
	}
	return e, err
}

func (w *writer) expression(s *space, v *value) (*term.Expr, error) {
	switch v.op {
	case term.Real:
		f := math.Float32frombits(v.bits)
		if f != f {
			return nil, errGenerated
		}
		e := &term.Expr{Op: term.Real, Kind: term.Float, Val: math.Abs(float64(f))}
		if math.Signbit(float64(f)) {
			e = &term.Expr{Op: term.Neg, Kind: term.Float, Args: []*term.Expr{e}}
		}
		return e, nil
	case term.Symbol:
		name := "p" + string(s.affine(v.par).key(nil))
		w.floats[name] = v.par
		return &term.Expr{Op: term.Symbol, Kind: term.Float, Name: name}, nil
	case term.Load:
		return w.load(v)
	}
	if len(v.ints) > 0 {
		return nil, errGenerated
	}
	e := &term.Expr{Op: v.op, Kind: term.Float, Type: v.typ}
	if v.op.Condition() {
		e.Kind = term.Bool
	}
	for _, a := range v.args {
		x, err := w.write(s, a)
		if err != nil {
			return nil, err
		}
		e.Args = append(e.Args, x)
	}
	return e, nil
}

// load finds how an operand is indexed whose element lies at a bit that is linear in the indices of the kernel.
func (w *writer) load(v *value) (*term.Expr, error) {
	base := form{c: v.addr.c}
	coeff := make([]int64, len(w.vars))
next:
	for _, t := range v.addr.t {
		for k, x := range w.vars {
			if len(x.t) == 1 && x.t[0].a == t.a {
				coeff[k] = t.k
				continue next
			}
		}
		base.t = append(base.t, t)
	}
	off, ok := base.paramsOnly()
	bytes, whole := quotient(off, 8)
	if !ok || !whole || !v.typ.Float() {
		return nil, errGenerated
	}
	unit := int64(v.typ.Bits())
	// The strides with which a generated kernel can read an operand: as all elements in order, one row, one column, or
	// one element.
	n := len(w.shape)
	name := func(k int) *term.Expr { return &term.Expr{Op: term.Var, Kind: term.Int, Name: []string{"i", "j"}[k]} }
	fits := func(want ...int64) bool {
		for k := range want {
			if coeff[k] != want[k] && !w.shape[k].single() {
				return false
			}
		}
		return true
	}
	e := &term.Expr{Op: term.Load, Kind: term.Float, Type: v.typ, Name: fmt.Sprintf("x%d@%s", v.slot, base.key(nil))}
	elems := ir.Const(1)
	switch {
	case n == 1 && fits(unit):
		e.Args, elems = []*term.Expr{name(0)}, w.shape[0].n
	case n == 2 && fits(unit*w.shape[1].n.Const, unit):
		e.Args, elems = []*term.Expr{name(0), name(1)}, w.shape[0].n.Scale(w.shape[1].n.Const)
	case n == 2 && fits(0, unit):
		e.Args, elems = []*term.Expr{name(1)}, w.shape[1].n
	case n == 2 && fits(unit, 0):
		e.Args, elems = []*term.Expr{name(0)}, w.shape[0].n
	case fits(make([]int64, n)...):
		e.Args = []*term.Expr{{Op: term.Number, Kind: term.Int}}
	default:
		return nil, errGenerated
	}
	e.Name += fmt.Sprint(v.typ, len(e.Args), e.Args[0])
	w.operands[e.Name] = operand{place{v.slot, bytes}, elems.Scale(v.typ.Size())}
	return e, nil
}

// bindGenerated builds the dispatch of a generated kernel from its text and verifies it like any other.
func (m *matcher) bindGenerated(w *writer, text string, names elementwise.Names) (*Match, error) {
	ds, err := msl.DeclarationsOf(&ir.Kernel{Library: ir.Library{Kind: ir.Generated}, Function: text})
	if err != nil {
		return nil, err
	}
	k := ds[0].Kernel("elementwise")
	d := &ir.Dispatch{GridKind: ir.Threads}
	slot := uint8(0)
	bind := func(b ir.Binding) {
		b.Slot = slot
		d.Bindings = append(d.Bindings, b)
		slot++
	}
	for _, n := range names.Operands {
		o := w.operands[n]
		bind(ir.Binding{Kind: ir.BindView, View: m.view(o.place, o.bytes)})
	}
	for _, o := range m.gr.Results {
		bind(ir.Binding{Kind: ir.BindView, View: m.gr.Members[o.Member].Views[o.Arg]})
	}
	for _, n := range names.Constants {
		p := w.floats[n]
		if p.IsConst() {
			return nil, errGenerated
		}
		bind(ir.Binding{Kind: ir.BindScalar, Type: ir.F32, Expr: p})
	}
	d.Grid = [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}
	for i, x := range w.shape {
		d.Grid[len(w.shape)-1-i] = ir.Extent{Num: x.n, Div: 1}
	}
	d.Threadgroup = m.threads(d)
	return m.accept(d, k, m.gr.Results)
}
