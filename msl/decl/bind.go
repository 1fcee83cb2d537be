package decl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// ErrMismatch is wrapped by an error of Bind which says that the declaration does not
// describe this dispatch. Another declaration of the same name may.
var ErrMismatch = errors.New("the declaration does not describe this dispatch")

// Value is the value of a symbol for one dispatch: an integer expression ⌈Num/Div⌉ of the graph's
// params, or an f32, whose bits are not known if it is a param.
type Value struct {
	ir.Extent
	F     float32
	Param ir.ParamID // the f32 param that gives the value, or −1
}

// Instance is a declaration applied to a dispatch.
type Instance struct {
	Decl     *Decl
	Dispatch *ir.Dispatch
	Graph    *ir.Graph
	Symbols  []Value
	// Views are the bound views of device arguments, by index in Decl.Args, up to
	// the last device argument at least. An inline argument has memory NoMem.
	Views []ir.View
	// Shapes and strides (in elements) of device arguments. Strides of an outer
	// dimension are constant: Bind refuses others.
	Shapes  [][]ir.Affine
	Strides [][]int64
	// At is where the first element of each argument is, in elements after the start of its view.
	// It is nil if all are at the start. Only declarations of effects have other places.
	At []ir.Affine

	form *Form // the form that [Form.Place] made the instance from, or nil
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
	if err := in.shapes(); err != nil {
		return nil, err
	}
	return in, in.launches()
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
			if fc.Type != c.Type {
				return in.errorf("function constant %d (%s) is %s, the kernel has %s", c.Index, c.Name, c.Type, fc.Type)
			}
			if err := in.set(c.Symbol, c.Type, binary.LittleEndian.AppendUint64(nil, fc.Bits)); err != nil {
				return in.errorf("function constant %d (%s): %w", c.Index, c.Name, err)
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
		bound := in.Dispatch.Binding(a.Slot)
		if bound == nil {
			return in.errorf("argument %d (%s) is not bound", a.Slot, a.Name)
		}
		b := new(in.Graph.Resolve(*bound)) // a view of argument memory becomes inline bytes
		if a.Kind == ir.DeviceArg {
			switch {
			case b.Kind == ir.BindView:
				in.Views[i] = b.View
				if _, off := in.Graph.Root(b.View.Mem); !divides(max(a.Type.Size(), 1), b.View.Off.AddConst(off)) {
					return in.errorf("argument %d (%s): %s begins at no multiple of the %d bytes of a %s", a.Slot, a.Name, in.Graph.FormatView(b.View), a.Type.Size(), a.Type)
				}
			case a.Mode == Read:
				in.Views[i] = ir.View{Mem: ir.NoMem} // inline bytes lie in no memory of the graph
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
			ts := b.Expr.Terms()
			if len(ts) != 1 || b.Expr.Const != 0 || ts[0].Coeff != 1 {
				return in.errorf("argument %d (%s): an f32 expression is one f32 param", a.Slot, a.Name)
			}
			in.Symbols[a.Symbol].Param = ts[0].Param
		} else {
			in.Symbols[a.Symbol].Extent = ir.Extent{Num: b.Expr, Div: 1}
		}
		return nil
	case ir.BindView:
		return in.shared(a, b)
	}
	size := int(a.Type.Size())
	if len(b.Bytes) < size*int(a.Count) {
		return in.errorf("argument %d (%s) has %d bytes, needs %d", a.Slot, a.Name, len(b.Bytes), size*int(a.Count))
	}
	if in.Decl.EffectsOnly && len(b.Bytes) != size*int(a.Count) {
		// What nobody knows the meaning of must be as it was when it was declared.
		return in.errorf("argument %d (%s) has %d bytes, the declaration is of %d: %w", a.Slot, a.Name, len(b.Bytes), size*int(a.Count), ErrMismatch)
	}
	for j := range int(a.Count) {
		if err := in.set(a.Symbol+j, a.Type, b.Bytes[j*size:(j+1)*size]); err != nil {
			return in.errorf("argument %d (%s): %w", a.Slot, a.Name, err)
		}
	}
	return nil
}

// shared takes the elements of an argument from argument memory, where each of them is a value or a part of one.
func (in *Instance) shared(a *Arg, b *ir.Binding) error {
	size := a.Type.Size()
	if n := size * int64(a.Count); in.Graph.Memories[b.View.Mem].Kind == ir.Argument && b.View.Off.IsConst() && (b.View.Len.Equal(ir.Const(n)) || b.View.Len.IsConst() && b.View.Len.Const > n && !in.Decl.EffectsOnly) {
		for j := range int(a.Count) {
			x, ok := in.Graph.ArgumentAt(ir.ViewOf(b.View.Mem, b.View.Off.Const+int64(j)*size, size))
			switch {
			case !ok || x.Kind == ir.BindScalar && (x.Type != a.Type || a.Type == ir.F32):
				return in.errorf("argument %d (%s): element %d is no %s in argument memory", a.Slot, a.Name, j, a.Type)
			case x.Kind == ir.BindScalar:
				in.Symbols[a.Symbol+j].Extent = ir.Extent{Num: x.Expr, Div: 1}
			default:
				if err := in.set(a.Symbol+j, a.Type, x.Bytes); err != nil {
					return in.errorf("argument %d (%s): %w", a.Slot, a.Name, err)
				}
			}
		}
		return nil
	}
	return in.errorf("argument %d (%s) is bound to a buffer: its value is not known before the replay", a.Slot, a.Name)
}

// set gives symbol s the value of an element of type t.
func (in *Instance) set(s int, t ir.DType, raw []byte) error {
	v := &in.Symbols[s]
	switch t {
	case ir.F32:
		v.F = math.Float32frombits(binary.LittleEndian.Uint32(raw))
		return nil
	case ir.F16:
		v.F = float32(term.F16Value(binary.LittleEndian.Uint16(raw)))
		return nil
	case ir.BF16:
		v.F = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw)) << 16)
		return nil
	}
	x, ok := integer(t, raw)
	if !ok {
		return fmt.Errorf("a %s of %#x is no integer within 63 bits", t, raw)
	}
	v.Extent = ir.Ext(x)
	return nil
}

func integer(t ir.DType, raw []byte) (int64, bool) {
	switch t {
	case ir.Bool:
		return int64(min(raw[0], 1)), true
	case ir.U8:
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
	if in.Decl.Groups != nil && in.Dispatch.GridKind == ir.Threads {
		// The kernel counts on whole threadgroups.
		for i, e := range in.Dispatch.Grid {
			if tg := int64(in.Dispatch.Threadgroup[i]); e.Div != 1 || !divides(tg, e.Num) {
				return in.errorf("the grid's ceil((%s) / %d) threads in dimension %d leave a threadgroup of %d partly empty", in.Graph.FormatAffine(e.Num), e.Div, i, tg)
			}
		}
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
		if a.Kind == ir.ConstantArg || a.Mode == Unused {
			continue
		}
		if a.Whole {
			in.Shapes[i], in.Strides[i] = []ir.Affine{in.lengthOf(i)}, []int64{1}
			continue
		}
		if err := in.begin(i); err != nil {
			return err
		}
		shape := make([]ir.Affine, len(a.Shape))
		for j, e := range a.Shape {
			v, err := in.affine(e)
			if err != nil {
				return in.errorf("shape of %s: %w", a.Name, err)
			}
			if lo, _, ok := in.Graph.Range(v); !ok || lo < 0 {
				return in.errorf("shape of %s: dimension %d, %s = %s, can be %d", a.Name, j, e, in.Graph.FormatAffine(v), lo)
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
				var ok bool
				if step, ok = scale(shape[j], step.Const); !ok {
					return in.errorf("shape of %s: it has 2^%d elements or more", a.Name, limitBits)
				}
			}
		}
		in.Shapes[i], in.Strides[i] = shape, strides
		if a.Kind == ir.ThreadgroupArg {
			if err := in.threadgroup(a, shape); err != nil {
				return err
			}
			in.Shapes[i], in.Strides[i] = nil, nil
		}
	}
	return nil
}

// lengthOf returns the bytes that are bound to device argument i.
func (in *Instance) lengthOf(i int) ir.Affine {
	if in.Views[i].Mem == ir.NoMem {
		return ir.Const(inlineSize(in.Graph.Resolve(*in.Dispatch.Binding(in.Decl.Args[i].Slot))))
	}
	return in.Views[i].Len
}

// begin evaluates where the first element of argument i is.
func (in *Instance) begin(i int) error {
	a := &in.Decl.Args[i]
	if a.At == nil {
		return nil
	}
	v, err := in.affine(a.At)
	if err != nil {
		return in.errorf("place of %s: %w", a.Name, err)
	}
	if lo, _, ok := in.Graph.Range(v); !ok || lo < 0 {
		return in.errorf("place of %s: %s = %s, can be %d", a.Name, a.At, in.Graph.FormatAffine(v), lo)
	}
	if in.At == nil {
		in.At = make([]ir.Affine, len(in.Decl.Args))
	}
	in.At[i] = v
	return nil
}

// launches checks that wherever the grid is empty, the arguments that the kernel
// must write are empty too: a dispatch without threads writes nothing.
func (in *Instance) launches() error {
	for k, e := range in.Dispatch.Grid {
		if lo, _, ok := in.Graph.Range(e.Num); ok && lo > 0 {
			continue
		}
		for i := range in.Decl.Args {
			if a := &in.Decl.Args[i]; a.Kind == ir.DeviceArg && a.Mode == Write && !in.emptyWith(i, e.Num) {
				return in.errorf("dimension %d of the grid, %s, may be 0, and %s would be written all the same", k, in.Graph.FormatAffine(e.Num), a.Name)
			}
		}
	}
	return nil
}

// emptyWith reports that argument i has no element where n ≤ 0.
func (in *Instance) emptyWith(i int, n ir.Affine) bool {
	for _, d := range in.Shapes[i] {
		_, hi, ok1 := in.Graph.Range(d)
		if hi <= 0 && ok1 {
			return true
		}
		most, ok2 := scale(n, hi)
		if !ok1 || !ok2 {
			continue
		}
		// d ≤ hi·n for all params: it is 0 where n is.
		if _, over, ok := in.Graph.Range(d.Sub(most)); ok && over <= 0 {
			return true
		}
	}
	return false
}

// threadgroup checks that the dispatch gives a threadgroup argument the memory
// that its shape needs.
func (in *Instance) threadgroup(a *Arg, shape []ir.Affine) error {
	need := int64(a.Elem.Bits())
	for _, d := range shape {
		v, ok := scale(d, need)
		if !ok || !v.IsConst() {
			return in.errorf("threadgroup argument %d (%s): its size depends on params or is absurd", a.Slot, a.Name)
		}
		need = v.Const
	}
	have := int64(0)
	for _, t := range in.Dispatch.ThreadgroupMemory {
		if t.Slot == a.Slot {
			have = int64(t.Bytes)
		}
	}
	if 8*have < need {
		return in.errorf("threadgroup argument %d (%s) has %d bytes, needs %d", a.Slot, a.Name, have, (need+7)/8)
	}
	return nil
}

// limitBits is the number of bits that any number in the computation of effects may
// have. It is far above the size of any memory, and far enough below 64 that sums and
// products of two such numbers do not overflow.
const limitBits = 52

func small(a ir.Affine) bool {
	const limit = 1 << limitBits
	ok := a.Const < limit && a.Const > -limit
	for _, t := range a.Terms() {
		ok = ok && t.Coeff < limit && t.Coeff > -limit
	}
	return ok
}

// scale returns k·a, and whether it stays within limitBits.
func scale(a ir.Affine, k int64) (ir.Affine, bool) {
	const limit = 1 << limitBits
	ok := math.Abs(float64(a.Const)*float64(k)) < limit
	for _, t := range a.Terms() {
		ok = ok && math.Abs(float64(t.Coeff)*float64(k)) < limit
	}
	return a.Scale(k), ok
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
	v, err := in.eval(e)
	if err == nil && !small(v.Num) {
		err = fmt.Errorf("%s reaches 2^%d", e, limitBits)
	}
	return v, err
}

func (in *Instance) eval(e *term.Expr) (ir.Extent, error) {
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
		if _, ok := scale(ir.Const(v[0].Eval(nil)), b); e.Op == term.Mul && !ok {
			return ir.Extent{}, fmt.Errorf("%s reaches 2^%d", e, limitBits)
		}
		r, err := term.IntOp(e.Op, v[0].Eval(nil), b)
		return ir.Ext(r), err
	}
	notAffine := fmt.Errorf("%s is not affine in the params", e)
	if e.Op == term.CeilDiv && v[1].IsConst() && v[1].Eval(nil) > 0 {
		// ⌈⌈a/b⌉/c⌉ = ⌈a/(b·c)⌉ for positive b, c.
		div, ok := scale(ir.Const(v[0].Div), v[1].Eval(nil))
		if !ok {
			return ir.Extent{}, fmt.Errorf("%s: its divisor reaches 2^%d", e, limitBits)
		}
		return reduce(ir.Extent{Num: v[0].Num, Div: div.Const}), nil
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
		if a.IsConst() {
			a, b = b, a
		}
		if b.IsConst() {
			p, ok := scale(a, b.Const)
			if !ok {
				return ir.Extent{}, fmt.Errorf("%s reaches 2^%d", e, limitBits)
			}
			return ir.Extent{Num: p, Div: 1}, nil
		}
	case term.Min, term.Max:
		// Where one of the two is never the greater, params or not, it is known which.
		lo, hi, ok := in.Graph.Range(a.Sub(b))
		switch {
		case ok && hi <= 0 && e.Op == term.Min, ok && lo >= 0 && e.Op == term.Max:
			return ir.Extent{Num: a, Div: 1}, nil
		case ok && lo >= 0 && e.Op == term.Min, ok && hi <= 0 && e.Op == term.Max:
			return ir.Extent{Num: b, Div: 1}, nil
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

// Holds reports whether a condition holds for all values of the params. It reports
// false if the condition holds for some values only.
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
		if x := e.Args[0]; x.Op.Comparison() {
			return in.Holds(&term.Expr{Op: x.Op.Negated(), Kind: term.Bool, Args: x.Args})
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
