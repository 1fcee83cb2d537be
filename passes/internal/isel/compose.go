package isel

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// composer evaluates the terms of a group symbolically, over forms of index variables.
type composer struct {
	*space
	members []*decl.Instance
	places  [][]place
	source  map[Operand]Operand
	level   int // number of bound variables in scope
	budget  int // operations that may still be evaluated, see maxOperations
	// memo holds values that may be needed again, by their indices: loads of what a member wrote, and
	// abbreviations (@where) of a declaration.
	memo map[string]scalar
	key  []byte
	// unrounded leaves out the rounding of what a member reads of another, unless a
	// condition or an integer depends on it: rewrite round (docs/terms.md). dropped
	// holds the results whose rounding was left out.
	unrounded bool
	dropped   map[Operand]bool
	inexact   []bool // Group.Unrounded
	exact     int    // nesting of conditions and integers around the current expression
}

// maxOperations bounds the operations in a group's terms; an operation that is needed several times counts once.
const maxOperations = 20000

var errTooLarge = fmt.Errorf("the composed term has more than %d operations", maxOperations)

func newComposer(s *space, members []*decl.Instance, places [][]place, source map[Operand]Operand) *composer {
	return &composer{space: s, members: members, places: places, source: source, budget: maxOperations}
}

// frame gives the names in an expression their meaning.
type frame struct {
	member int
	vars   []form
}

// result returns the element at idx of an argument that a member writes.
func (c *composer) result(o Operand, idx []form) (scalar, error) {
	d := c.members[o.Member].Decl
	for i := range d.Results {
		if d.Results[i].Arg == o.Arg {
			return c.eval(d.Results[i].Body, frame{o.Member, idx})
		}
	}
	return scalar{}, fmt.Errorf("%s has no term for %s", d.Name, d.Args[o.Arg].Name)
}

// address returns the position in bits of element idx of argument o, relative to its view.
func (c *composer) address(o Operand, idx []form) form {
	in := c.members[o.Member]
	at := form{}
	bits := int64(in.Decl.Args[o.Arg].Elem.Bits())
	for k, i := range idx {
		at = c.addScaled(at, c.times(in.Strides[o.Arg][k], bits), i)
	}
	return at
}

// indices inverts address: it returns the indices of the element of argument o at bit `at` of its view, if
// one is there for all values of the variables.
func (c *composer) indices(o Operand, at form) ([]form, error) {
	in := c.members[o.Member]
	shape, strides := in.Shapes[o.Arg], in.Strides[o.Arg]
	bits := int64(in.Decl.Args[o.Arg].Elem.Bits())
	order := make([]int, 0, len(shape))
	for k, n := range shape {
		if !n.IsConst() || n.Const != 1 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(strides[y], strides[x]) })
	idx := make([]form, len(shape))
	for _, k := range order {
		step := c.times(strides[k], bits)
		if step <= 0 {
			return nil, fmt.Errorf("dimension %d of %s has stride %d", k, in.Decl.Args[o.Arg].Name, strides[k])
		}
		idx[k] = c.div(at, step)
		at = c.addScaled(at, -step, idx[k])
		if !c.within(idx[k], shape[k]) {
			return nil, fmt.Errorf("the elements read are not the elements of %s that %s writes", in.Decl.Args[o.Arg].Name, in.Dispatch.ID)
		}
	}
	if !at.isZero() {
		return nil, fmt.Errorf("the elements read lie between those of %s that %s writes", in.Decl.Args[o.Arg].Name, in.Dispatch.ID)
	}
	return idx, nil
}

// load returns element idx of a read argument: what its source wrote there, else a leaf.
func (c *composer) load(o Operand, idx []form) (scalar, error) {
	in := c.members[o.Member]
	a := &in.Decl.Args[o.Arg]
	if in.Views[o.Arg].Mem == ir.NoMem {
		return c.inline(in, a, idx)
	}
	at := c.address(o, idx)
	p := c.places[o.Member][o.Arg]
	src, ok := c.source[o]
	if !ok {
		return c.space.load(p.slot, c.addScaled(at, 8, c.affine(p.off)), a.Elem), nil
	}
	if c.exact > 0 && c.inexact != nil && c.inexact[src.Member] {
		return scalar{}, fmt.Errorf("%s lacks roundings, and its result decides something", c.members[src.Member].Dispatch.ID)
	}
	q := c.places[src.Member][src.Arg]
	from := &c.members[src.Member].Decl.Args[src.Arg]
	if from.Elem != a.Elem {
		return scalar{}, fmt.Errorf("%s writes %s, %s reads %s", c.members[src.Member].Dispatch.ID, from.Elem, in.Dispatch.ID, a.Elem)
	}
	if p.slot != q.slot {
		return scalar{}, fmt.Errorf("%s and its source lie apart", a.Name)
	}
	inner, err := c.indices(src, c.addScaled(at, 8, c.affine(p.off.Sub(q.off))))
	if err != nil {
		return scalar{}, err
	}
	x, err := c.result(src, inner)
	if err == nil && c.unrounded && c.exact == 0 && !x.isInt && x.v.op == term.Round && !x.v.isStored() {
		c.dropped[src] = true
		x.v = x.v.args[0]
	}
	return x, err
}

// inline returns an element of an argument that the dispatch binds to inline bytes or to a scalar
// expression of params.
func (c *composer) inline(in *decl.Instance, a *decl.Arg, idx []form) (scalar, error) {
	b := in.Dispatch.Binding(a.Slot)
	for _, i := range idx {
		if !i.isZero() {
			return scalar{}, fmt.Errorf("%s is bound inline and read at more than one place", a.Name)
		}
	}
	if b.Kind == ir.BindScalar {
		if b.Type != a.Elem {
			return scalar{}, fmt.Errorf("%s is %s, bound as %s", a.Name, a.Elem, b.Type)
		}
		if a.Elem.Float() {
			return scalar{v: c.make(value{op: term.Symbol, par: b.Expr})}, nil
		}
		return scalar{isInt: true, f: c.affine(b.Expr)}, nil
	}
	return c.element(a.Elem, b.Bytes)
}

// element decodes the first element of raw.
func (c *composer) element(t ir.DType, raw []byte) (scalar, error) {
	f, i, err := decode(t, raw)
	if err != nil {
		return scalar{}, err
	}
	if t.Float() {
		return scalar{v: c.real(f)}, nil
	}
	return scalar{isInt: true, f: number(i)}, nil
}

func (c *composer) symbol(in *decl.Instance, i int) scalar {
	v := in.Symbols[i]
	if in.Decl.Symbols[i].Kind == term.Int {
		return scalar{isInt: true, f: c.extent(v.Extent)}
	}
	if v.Param >= 0 {
		return scalar{v: c.make(value{op: term.Symbol, par: ir.Linear(0, ir.Term{Param: v.Param, Coeff: 1})})}
	}
	return scalar{v: c.real(v.F)}
}

func (c *composer) eval(e *term.Expr, fr frame) (scalar, error) {
	if c.budget--; c.budget < 0 {
		return scalar{}, errTooLarge
	}
	if e.Kind == term.Bool || e.Op == term.ArgMax || e.Op == term.ToInt || e.Op.FromBits() {
		c.exact++
		defer func() { c.exact-- }()
	}
	in := c.members[fr.member]
	switch e.Op {
	case term.Number:
		return scalar{isInt: true, f: number(e.Num)}, nil
	case term.Real:
		return scalar{v: c.real(float32(e.Val))}, nil
	case term.Symbol:
		return c.symbol(in, e.Index), nil
	case term.Var:
		return scalar{isInt: true, f: fr.vars[e.Index]}, nil
	case term.Call:
		idx, err := c.forms(e.Args, fr)
		if err != nil {
			return scalar{}, err
		}
		return c.once('w', fr.member, e.Index, idx, func() (scalar, error) {
			return c.eval(in.Decl.Wheres[e.Index].Body, frame{fr.member, idx})
		})
	case term.Load:
		idx, err := c.forms(e.Args, fr)
		if err != nil {
			return scalar{}, err
		}
		o := Operand{fr.member, e.Index}
		if _, ok := c.source[o]; !ok {
			return c.load(o, idx)
		}
		return c.once('l', fr.member, e.Index, idx, func() (scalar, error) { return c.load(o, idx) })
	case term.Sum, term.MaxOver, term.ArgMax:
		return c.reduce(e, fr)
	}
	var room [3]scalar // enough for most operations
	args := room[:0]
	for _, a := range e.Args {
		x, err := c.eval(a, fr)
		if err != nil {
			return scalar{}, err
		}
		args = append(args, x)
	}
	return c.apply(e, args)
}

// once evaluates with make abbreviation n (kind 'w') of a member, or what its argument n loads (kind 'l'), at given
// indices. The result is cached per number of bound variables, and results inside and outside of conditions
// or integers are kept apart.
func (c *composer) once(kind byte, member, n int, idx []form, make func() (scalar, error)) (scalar, error) {
	exact := byte('-')
	if c.exact > 0 {
		exact = '!'
	}
	k := append(c.key[:0], kind, exact)
	k = binary.AppendUvarint(k, uint64(member))
	k = binary.AppendUvarint(k, uint64(n))
	k = binary.AppendUvarint(k, uint64(c.level))
	for _, f := range idx {
		k = f.key(append(k, ','))
	}
	c.key = k
	if x, ok := c.memo[string(k)]; ok {
		return x, nil
	}
	key := string(k)
	x, err := make()
	if err == nil {
		if c.memo == nil {
			c.memo = c.space.memo()
		}
		c.memo[key] = x
	}
	return x, err
}

func (c *composer) forms(es []*term.Expr, fr frame) ([]form, error) {
	out := make([]form, len(es))
	for i, e := range es {
		x, err := c.eval(e, fr)
		if err != nil {
			return nil, err
		}
		out[i] = x.f
	}
	return out, nil
}

func (c *composer) reduce(e *term.Expr, fr frame) (scalar, error) {
	bound, err := c.eval(e.Args[0], fr)
	if err != nil {
		return scalar{}, err
	}
	ints := []form{bound.f}
	if len(e.Args) == 3 { // with the place of the max of an argmax
		place, err := c.eval(e.Args[2], fr)
		if err != nil {
			return scalar{}, err
		}
		ints = append(ints, place.f)
	}
	level := c.level
	c.level++
	defer func() { c.level-- }()
	vars := append(slices.Clone(fr.vars), c.index(level, bound.f))
	body, err := c.eval(e.Args[1], frame{fr.member, vars})
	if err != nil {
		return scalar{}, err
	}
	return c.reduction(e, level, ints, c.float(body)), nil
}

func (c *composer) reduction(e *term.Expr, level int, ints []form, body *value) scalar {
	v := c.make(value{op: e.Op, class: e.Class, index: level, ints: ints, args: []*value{body}})
	if e.Op != term.ArgMax {
		return scalar{v: v}
	}
	return scalar{isInt: true, f: of(c.lookup(strconv.AppendInt([]byte("a"), int64(v.id), 10), func() *atom {
		return &atom{kind: opAtom, op: term.ArgMax, value: v, moving: true}
	}))}
}

// apply applies an operation to evaluated operands.
func (c *composer) apply(e *term.Expr, args []scalar) (scalar, error) {
	ints := true
	for _, a := range args {
		ints = ints && a.isInt
	}
	switch {
	case e.Op == term.ToInt:
		f := args[0].f
		lo, hi, ok := c.bounds(f)
		l, h := rangeOf(e.Type)
		if ok && l <= lo && hi <= h && l < h {
			return scalar{isInt: true, f: f}, nil
		}
		return scalar{isInt: true, f: c.opaque(term.ToInt, e.Type, f)}, nil
	case e.Kind == term.Int:
		fs := make([]form, len(args))
		for i, a := range args {
			fs[i] = a.f
		}
		f, ok := c.integer(e.Op, fs...)
		if !ok {
			return scalar{}, fmt.Errorf("%s divides by zero or less", e)
		}
		return scalar{isInt: true, f: f}, nil
	case e.Kind == term.Bool && ints && e.Op.Comparison():
		return scalar{v: c.make(value{op: e.Op, ints: []form{args[0].f, args[1].f}})}, nil
	case e.Op == term.Pow2, e.Op.FromBits():
		return scalar{v: c.make(value{op: e.Op, ints: []form{args[0].f}})}, nil
	case e.Op == term.ToF32:
		return scalar{v: c.float(args[0])}, nil
	}
	v := value{op: e.Op, args: make([]*value, len(args))}
	if e.Op == term.Round {
		v.typ = e.Type
	}
	for i, a := range args {
		v.args[i] = c.float(a)
	}
	return scalar{v: c.make(v)}, nil
}
