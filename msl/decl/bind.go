package decl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// ErrMismatch is wrapped by errors of Bind that say that the declaration
// describes another dispatch: another one of the same name may fit.
var ErrMismatch = errors.New("the declaration does not describe this dispatch")

// Value is a symbol's value for one dispatch: an integer expression ⌈Num/Div⌉
// of the graph's params, or an f32 (whose bits are not known when it is a param).
type Value struct {
	ir.Extent
	F     float32
	Param ir.ParamID // of an f32 param; −1
}

// Instance is a declaration applied to a dispatch.
type Instance struct {
	Decl     *Decl
	Dispatch *ir.Dispatch
	Graph    *ir.Graph
	Symbols  []Value
	// Views are the bound views of device arguments, by index in Decl.Args.
	Views []ir.View
	// Shapes and strides (in elements) of device arguments. Strides of an outer
	// dimension are constant: Bind refuses others.
	Shapes  [][]ir.Affine
	Strides [][]int64
}

// Bind applies d to a dispatch of g. An error that wraps [ErrMismatch] says
// that a condition of d (a @require, a function constant) does not hold; any
// other error says why the dispatch cannot be described at all.
func (d *Decl) Bind(g *ir.Graph, n *ir.Dispatch) (*Instance, error) {
	in := &Instance{Decl: d, Dispatch: n, Graph: g, Symbols: make([]Value, len(d.Symbols))}
	for i := range in.Symbols {
		in.Symbols[i] = Value{Extent: ir.Ext(0), Param: -1}
	}
	for s, v := range d.Template {
		in.Symbols[s].Extent = ir.Ext(v)
	}
	if err := in.constants(&g.Kernels[n.Kernel]); err != nil {
		return nil, err
	}
	if err := in.arguments(); err != nil {
		return nil, err
	}
	if err := in.grid(); err != nil {
		return nil, err
	}
	for _, l := range d.Lets {
		v, err := in.Eval(l.Value)
		if err != nil {
			return nil, in.errorf("@let %s: %w", d.Symbols[l.Symbol].Name, err)
		}
		in.Symbols[l.Symbol].Extent = v
	}
	for _, r := range d.Requires {
		switch holds, err := in.Holds(r); {
		case err != nil:
			return nil, in.errorf("@require %s: %w", r, err)
		case !holds:
			return nil, in.errorf("@require %s does not hold: %w", r, ErrMismatch)
		}
	}
	if err := in.checkGrid(); err != nil {
		return nil, err
	}
	return in, in.shapes()
}

func (in *Instance) errorf(format string, args ...any) error {
	return fmt.Errorf("%s %s: "+format, append([]any{in.Dispatch.ID, in.Decl.Name}, args...)...)
}

func (in *Instance) constants(k *ir.Kernel) error {
	for _, c := range in.Decl.Constants {
		found := false
		for _, fc := range k.Constants {
			if fc.Index != c.Index {
				continue
			}
			found = true
			if c.Type.Float() {
				in.Symbols[c.Symbol].F = math.Float32frombits(uint32(fc.Bits))
			} else {
				in.Symbols[c.Symbol].Extent = ir.Ext(int64(fc.Bits))
			}
		}
		if !found {
			return in.errorf("function constant %d (%s) has no value", c.Index, c.Name)
		}
	}
	return nil
}

func (in *Instance) arguments() error {
	d := in.Decl
	in.Views = make([]ir.View, len(d.Args))
	for i := range d.Args {
		a := &d.Args[i]
		if a.Mode == Unused || a.Kind == ir.ThreadgroupArg {
			continue
		}
		b := in.Dispatch.Binding(a.Slot)
		if b == nil {
			return in.errorf("argument %d (%s) is not bound", a.Slot, a.Name)
		}
		if a.Kind == ir.DeviceArg {
			switch {
			case b.Kind == ir.BindView:
				in.Views[i] = b.View
			case a.Mode == Read:
				in.Views[i] = ir.View{Mem: ir.NoMem} // inline: nobody else's memory
			default:
				return in.errorf("argument %d (%s) is written but bound inline", a.Slot, a.Name)
			}
			continue
		}
		if err := in.constant(a, b); err != nil {
			return err
		}
	}
	return nil
}

func (in *Instance) constant(a *Arg, b *ir.Binding) error {
	switch b.Kind {
	case ir.BindScalar:
		if a.Count != 1 || b.Type != a.Type {
			return in.errorf("argument %d (%s) is %s, bound as %s", a.Slot, a.Name, a.Type, b.Type)
		}
		if a.Type == ir.F32 {
			in.Symbols[a.Symbol].Param = b.Expr.Terms()[0].Param
		} else {
			in.Symbols[a.Symbol].Extent = ir.Extent{Num: b.Expr, Div: 1}
		}
		return nil
	case ir.BindView:
		return in.errorf("argument %d (%s) is bound to a buffer: its value is not known before the replay", a.Slot, a.Name)
	}
	size := int(a.Type.Size())
	if len(b.Bytes) < size*int(a.Count) {
		return in.errorf("argument %d (%s) has %d bytes, needs %d", a.Slot, a.Name, len(b.Bytes), size*int(a.Count))
	}
	for j := range int(a.Count) {
		raw := b.Bytes[j*size : (j+1)*size]
		v := &in.Symbols[a.Symbol+j]
		switch a.Type {
		case ir.F32:
			v.F = math.Float32frombits(binary.LittleEndian.Uint32(raw))
		default:
			x, ok := integer(a.Type, raw)
			if !ok {
				return in.errorf("argument %d (%s) of type %s is no integer within 63 bits", a.Slot, a.Name, a.Type)
			}
			v.Extent = ir.Ext(x)
		}
	}
	return nil
}

func integer(t ir.DType, raw []byte) (int64, bool) {
	switch t {
	case ir.Bool, ir.U8:
		return int64(raw[0]), true
	case ir.I8:
		return int64(int8(raw[0])), true
	case ir.U16:
		return int64(binary.LittleEndian.Uint16(raw)), true
	case ir.I16:
		return int64(int16(binary.LittleEndian.Uint16(raw))), true
	case ir.U32:
		return int64(binary.LittleEndian.Uint32(raw)), true
	case ir.I32:
		return int64(int32(binary.LittleEndian.Uint32(raw))), true
	case ir.I64:
		return int64(binary.LittleEndian.Uint64(raw)), true
	case ir.U64:
		x := binary.LittleEndian.Uint64(raw)
		return int64(x), x <= math.MaxInt64
	}
	return 0, false
}

// groups and threads give the grid in both units.
func (in *Instance) units() (groups, threads [3]ir.Extent) {
	n := in.Dispatch
	for i, e := range n.Grid {
		tg := int64(n.Threadgroup[i])
		if n.GridKind == ir.Threads {
			threads[i] = reduce(e)
			groups[i] = reduce(ir.Extent{Num: e.Num, Div: e.Div * tg})
		} else {
			groups[i] = reduce(e)
			if e.Div == 1 {
				threads[i] = ir.Extent{Num: e.Num.Scale(tg), Div: 1}
			}
		}
	}
	return groups, threads
}

func (in *Instance) grid() error {
	groups, threads := in.units()
	bind := func(g *Grid, values func(i int) ir.Extent) error {
		if g == nil {
			return nil
		}
		for i := range g {
			if s := g[i].Bind; s >= 0 {
				v := values(i)
				if v.Div == 0 {
					return in.errorf("the grid's threads in dimension %d are not affine", i)
				}
				in.Symbols[s].Extent = v
			}
		}
		return nil
	}
	if err := bind(&in.Decl.Group, func(i int) ir.Extent { return ir.Ext(int64(in.Dispatch.Threadgroup[i])) }); err != nil {
		return err
	}
	if err := bind(in.Decl.Groups, func(i int) ir.Extent { return groups[i] }); err != nil {
		return err
	}
	return bind(in.Decl.Threads, func(i int) ir.Extent { return threads[i] })
}

func (in *Instance) checkGrid() error {
	groups, threads := in.units()
	check := func(what string, g *Grid, values func(i int) ir.Extent) error {
		if g == nil {
			return nil
		}
		for i := range g {
			if g[i].Check == nil {
				continue
			}
			want, err := in.Eval(g[i].Check)
			if err != nil {
				return in.errorf("@%s: %w", what, err)
			}
			if got := values(i); !got.Equal(want) {
				return in.errorf("@%s dimension %d: %s = ceil((%s) / %d), the dispatch has ceil((%s) / %d): %w", what, i, g[i].Check,
					in.Graph.FormatAffine(want.Num), want.Div, in.Graph.FormatAffine(got.Num), got.Div, ErrMismatch)
			}
		}
		return nil
	}
	if err := check("group", &in.Decl.Group, func(i int) ir.Extent { return ir.Ext(int64(in.Dispatch.Threadgroup[i])) }); err != nil {
		return err
	}
	if err := check("groups", in.Decl.Groups, func(i int) ir.Extent { return groups[i] }); err != nil {
		return err
	}
	return check("threads", in.Decl.Threads, func(i int) ir.Extent { return threads[i] })
}

// shapes evaluates the shapes of device arguments and checks that they stay in
// the bound views.
func (in *Instance) shapes() error {
	d := in.Decl
	in.Shapes = make([][]ir.Affine, len(d.Args))
	in.Strides = make([][]int64, len(d.Args))
	for i := range d.Args {
		a := &d.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == Unused {
			continue
		}
		shape := make([]ir.Affine, len(a.Shape))
		for j, e := range a.Shape {
			v, err := in.affine(e)
			if err != nil {
				return in.errorf("shape of %s: %w", a.Name, err)
			}
			if v.IsConst() && v.Const < 0 {
				return in.errorf("shape of %s: dimension %d is %d", a.Name, j, v.Const)
			}
			shape[j] = v
		}
		strides := make([]int64, len(shape))
		if a.Strides != nil {
			for j, e := range a.Strides {
				v, err := in.affine(e)
				if err != nil {
					return in.errorf("strides of %s: %w", a.Name, err)
				}
				if !v.IsConst() || v.Const < 0 {
					return in.errorf("strides of %s: %s depends on params or is negative", a.Name, e)
				}
				strides[j] = v.Const
			}
		} else {
			step := ir.Const(1)
			for j := len(shape) - 1; j >= 0; j-- {
				if !step.IsConst() {
					return in.errorf("shape of %s: only the outermost dimension may depend on params", a.Name)
				}
				strides[j] = step.Const
				step = shape[j].Scale(step.Const)
			}
		}
		in.Shapes[i], in.Strides[i] = shape, strides
	}
	return nil
}

func (in *Instance) affine(e *term.Expr) (ir.Affine, error) {
	v, err := in.Eval(e)
	if err == nil && v.Div != 1 {
		err = fmt.Errorf("%s is not affine in the params", e)
	}
	return v.Num, err
}

// reduce brings an extent to lowest terms, so that equal extents of the forms
// that declarations use look equal.
func reduce(e ir.Extent) ir.Extent {
	if e.Div == 0 {
		return e
	}
	if e.IsConst() {
		return ir.Ext(e.Eval(nil))
	}
	g := gcd(e.Div, e.Num.Const)
	for _, t := range e.Num.Terms() {
		g = gcd(g, t.Coeff)
	}
	if g <= 1 {
		return e
	}
	terms := append([]ir.Term(nil), e.Num.Terms()...)
	for i := range terms {
		terms[i].Coeff /= g
	}
	return ir.Extent{Num: ir.Linear(e.Num.Const/g, terms...), Div: e.Div / g}
}

func gcd(a, b int64) int64 {
	if a < 0 {
		a = -a
	}
	if b < 0 {
		b = -b
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Eval computes an integer expression as an extent over the graph's params.
func (in *Instance) Eval(e *term.Expr) (ir.Extent, error) {
	if e.Kind != term.Int {
		return ir.Extent{}, fmt.Errorf("%s is no integer", e)
	}
	switch e.Op {
	case term.Number:
		return ir.Ext(e.Num), nil
	case term.Symbol:
		return in.Symbols[e.Index].Extent, nil
	}
	var v [2]ir.Extent
	if len(e.Args) == 0 || len(e.Args) > 2 {
		return ir.Extent{}, fmt.Errorf("%s has no place in a shape or grid", e)
	}
	for i, a := range e.Args {
		var err error
		if v[i], err = in.Eval(a); err != nil {
			return v[i], err
		}
	}
	if v[0].IsConst() && (len(e.Args) == 1 || v[1].IsConst()) {
		b := int64(0)
		if len(e.Args) == 2 {
			b = v[1].Eval(nil)
		}
		r, err := term.IntOp(e.Op, v[0].Eval(nil), b)
		return ir.Ext(r), err
	}
	notAffine := fmt.Errorf("%s is not affine in the params", e)
	if e.Op == term.CeilDiv && v[1].IsConst() && v[1].Eval(nil) > 0 {
		// ⌈⌈a/b⌉/c⌉ = ⌈a/(b·c)⌉ for positive b, c.
		return reduce(ir.Extent{Num: v[0].Num, Div: v[0].Div * v[1].Eval(nil)}), nil
	}
	if v[0].Div != 1 || len(e.Args) == 2 && v[1].Div != 1 {
		return ir.Extent{}, notAffine
	}
	a, b := v[0].Num, v[1].Num
	switch e.Op {
	case term.Neg:
		return ir.Extent{Num: a.Scale(-1), Div: 1}, nil
	case term.Add:
		return ir.Extent{Num: a.Add(b), Div: 1}, nil
	case term.Sub:
		return ir.Extent{Num: a.Sub(b), Div: 1}, nil
	case term.Mul:
		if b.IsConst() {
			return ir.Extent{Num: a.Scale(b.Const), Div: 1}, nil
		}
		if a.IsConst() {
			return ir.Extent{Num: b.Scale(a.Const), Div: 1}, nil
		}
	case term.Div:
		if b.IsConst() && b.Const > 0 && divides(b.Const, a) {
			return reduce(ir.Extent{Num: a, Div: b.Const}), nil
		}
	case term.Mod:
		if b.IsConst() && b.Const > 0 && divides(b.Const, a) {
			return ir.Ext(0), nil
		}
	}
	return ir.Extent{}, notAffine
}

func divides(k int64, a ir.Affine) bool {
	if a.Const%k != 0 {
		return false
	}
	for _, t := range a.Terms() {
		if t.Coeff%k != 0 {
			return false
		}
	}
	return true
}

// Holds decides a condition for every value of the params; one that holds for
// some values only does not hold.
func (in *Instance) Holds(e *term.Expr) (bool, error) {
	switch e.Op {
	case term.And:
		a, err := in.Holds(e.Args[0])
		if err != nil || !a {
			return false, err
		}
		return in.Holds(e.Args[1])
	case term.Or:
		a, err := in.Holds(e.Args[0])
		if err != nil || a {
			return a, err
		}
		return in.Holds(e.Args[1])
	case term.Not:
		if e.Args[0].Op == term.Pow2 || e.Args[0].Op >= term.Eq && e.Args[0].Op <= term.Ge {
			flip := map[term.Op]term.Op{term.Eq: term.Ne, term.Ne: term.Eq, term.Lt: term.Ge, term.Le: term.Gt, term.Gt: term.Le, term.Ge: term.Lt}
			if op, ok := flip[e.Args[0].Op]; ok {
				return in.Holds(&term.Expr{Op: op, Kind: term.Bool, Args: e.Args[0].Args})
			}
		}
		return false, fmt.Errorf("%s: only comparisons are negated", e)
	case term.Pow2:
		v, err := in.Eval(e.Args[0])
		if err != nil || !v.IsConst() {
			return false, err
		}
		r, err := term.IntOp(term.Pow2, v.Eval(nil), 0)
		return r != 0, err
	}
	a, err := in.affine(e.Args[0])
	if err != nil {
		return false, err
	}
	b, err := in.affine(e.Args[1])
	if err != nil {
		return false, err
	}
	lo, hi, ok := in.Graph.Range(a.Sub(b))
	if !ok {
		return false, fmt.Errorf("%s leaves 64 bits", e)
	}
	switch e.Op {
	case term.Eq:
		return lo == 0 && hi == 0, nil
	case term.Ne:
		return lo > 0 || hi < 0, nil
	case term.Lt:
		return hi < 0, nil
	case term.Le:
		return hi <= 0, nil
	case term.Gt:
		return lo > 0, nil
	case term.Ge:
		return lo >= 0, nil
	}
	return false, fmt.Errorf("%s is no condition", e)
}
