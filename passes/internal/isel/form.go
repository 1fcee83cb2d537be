package isel

import (
	"math"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// form is an integer in normal form: c + Σ k·atom, atoms ascending, no k zero.
// Forms are immutable. Equal forms of one space are equal integers. Equal integers may have different
// forms; then a fusion is missed, but nothing is wrong.
type form struct {
	c int64
	t []mono
}

type mono struct {
	k int64
	a *atom
}

type atomKind uint8

const (
	paramAtom    atomKind = iota // a param of the graph
	indexAtom                    // an index variable, 0 ≤ v < ext
	quotientAtom                 // ⌊num / den⌋, den > 1
	opAtom                       // another operation on integers, opaque
	loadAtom                     // an integer element of memory
	unknownAtom                  // a symbol or base of the kernel that is being fitted
)

// atom is an integer that is not decomposed further. Atoms are interned.
type atom struct {
	id     int
	kind   atomKind
	param  ir.ParamID
	num    form  // quotient: the numerator; index: the extent
	den    int64 // quotient: the divisor
	op     term.Op
	args   []form
	value  *value // opAtom whose operand is a float: argmax
	typ    ir.DType
	slot   int    // load
	which  int    // unknown
	level  int    // index: which variable
	hash   uint64 // see setHash
	lo, hi int64
	open   bool    // an unknown occurs in it
	moving bool    // an index variable occurs in it
	alone  [1]mono // 1·itself, so that of need not allocate
}

func number(c int64) form { return form{c: c} }

func (f form) isConst() bool { return len(f.t) == 0 }

func (f form) isZero() bool { return len(f.t) == 0 && f.c == 0 }

func (f form) open() bool {
	return slices.ContainsFunc(f.t, func(m mono) bool { return m.a.open })
}

func (f form) moving() bool {
	return slices.ContainsFunc(f.t, func(m mono) bool { return m.a.moving })
}

func (f form) equal(g form) bool { return f.c == g.c && slices.Equal(f.t, g.t) }

// key names f within its space.
func (f form) key(b []byte) []byte {
	b = strconv.AppendInt(b, f.c, 10)
	for _, m := range f.t {
		b = append(b, '+')
		b = strconv.AppendInt(b, m.k, 10)
		b = append(b, '*')
		b = strconv.AppendInt(b, int64(m.a.id), 10)
	}
	return b
}

// times returns a·b and records overflow. Sizes of a dispatch stay below 2^52, but a term may contain constants
// of any size.
func (s *space) times(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if math.Abs(float64(a))*math.Abs(float64(b)) >= 1<<62 {
		s.overflow = true
		return 0
	}
	return a * b
}

func (s *space) plus(a, b int64) int64 {
	if math.Abs(float64(a)+float64(b)) >= 1<<62 {
		s.overflow = true
		return 0
	}
	return a + b
}

// addScaled is f + k·g.
func (s *space) addScaled(f form, k int64, g form) form {
	out := form{c: s.plus(f.c, s.times(k, g.c))}
	if len(g.t) == 0 || k == 0 {
		out.t = f.t
		return out
	}
	out.t = make([]mono, 0, len(f.t)+len(g.t))
	x, y := f.t, g.t
	for len(x) > 0 || len(y) > 0 {
		var m mono
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].a.id < y[0].a.id:
			m, x = x[0], x[1:]
		case len(x) == 0 || y[0].a.id < x[0].a.id:
			m, y = mono{s.times(k, y[0].k), y[0].a}, y[1:]
		default:
			m, x, y = mono{s.plus(x[0].k, s.times(k, y[0].k)), x[0].a}, x[1:], y[1:]
		}
		if m.k != 0 {
			out.t = append(out.t, m)
		}
	}
	return out
}

func (s *space) add(f, g form) form { return s.addScaled(f, 1, g) }

func (s *space) sub(f, g form) form { return s.addScaled(f, -1, g) }

func (s *space) scale(f form, k int64) form { return s.addScaled(form{}, k, f) }

// of returns the form 1·a.
func of(a *atom) form {
	a.alone[0] = mono{1, a}
	return form{t: a.alone[:]}
}

// affine turns an expression of the graph's params into a form.
func (s *space) affine(a ir.Affine) form {
	f := number(a.Const)
	for _, t := range a.Terms() {
		p, ok := s.params[t.Param]
		if !ok {
			p = &atom{kind: paramAtom, param: t.Param}
			s.params[t.Param] = p
			s.intern(p)
		}
		f = s.addScaled(f, t.Coeff, of(p))
	}
	return f
}

// extent turns ⌈num/div⌉ into a form.
func (s *space) extent(e ir.Extent) form { return s.ceil(s.affine(e.Num), e.Div) }

// ceil is ⌈f / c⌉ = ⌊(f + c − 1) / c⌋.
func (s *space) ceil(f form, c int64) form { return s.div(s.add(f, number(c-1)), c) }

// index returns the variable called level (bound ones from 0, those of results
// below it) with 0 ≤ v < ext; the constant 0 if that is all it can be.
func (s *space) index(level int, ext form) form {
	if ext.isConst() && ext.c == 1 {
		return form{}
	}
	b := append(strconv.AppendInt([]byte("v"), int64(level), 10), '<')
	return of(s.lookup(ext.key(b), func() *atom { return &atom{kind: indexAtom, level: level, num: ext, moving: true, open: ext.open()} }))
}

// lookup interns the atom called key.
func (s *space) lookup(key []byte, make func() *atom) *atom {
	if a, ok := s.atoms[string(key)]; ok {
		return a
	}
	a := make()
	s.intern(a)
	s.atoms[string(key)] = a
	return a
}

func (s *space) intern(a *atom) {
	a.id = s.next
	s.next++
	a.setHash()
}

// div is ⌊f / c⌋ for a constant c ≥ 1.
func (s *space) div(f form, c int64) form {
	if c == 1 {
		return f
	}
	// f = c·q + rem, whose quotient is q + ⌊rem/c⌋. Where a factor is negative, its part of rem is so at first: x − k·⌊x/k⌋
	// has tight bounds, and x + (c − k)·⌊x/k⌋ has not.
	if slices.ContainsFunc(f.t, func(m mono) bool { return m.k < 0 && m.k%c != 0 }) {
		if q, rem := f.divided(c, func(a, b int64) int64 { return a / b }); s.settled(&q, rem, c) {
			return q
		}
	}
	q, rem := f.divided(c, floorDiv)
	if s.settled(&q, rem, c) {
		return q
	}
	// ⌊(g·r + k)/(g·d)⌋ = ⌊r/d⌋ for 0 ≤ k < g.
	g := c
	for _, m := range rem.t {
		g = gcd(g, m.k)
	}
	if g > 1 {
		t := make([]mono, len(rem.t))
		for i, m := range rem.t {
			t[i] = mono{m.k / g, m.a}
		}
		return s.add(q, s.div(form{floorDiv(rem.c, g), t}, c/g))
	}
	// ⌊(⌊x/a⌋ + k)/c⌋ = ⌊(x + k·a)/(a·c)⌋.
	if len(rem.t) == 1 && rem.t[0].k == 1 && rem.t[0].a.kind == quotientAtom {
		a := rem.t[0].a
		return s.add(q, s.div(s.add(a.num, number(s.times(rem.c, a.den))), s.times(a.den, c)))
	}
	b := append(strconv.AppendInt([]byte("q"), c, 10), ':')
	a := s.lookup(rem.key(b), func() *atom {
		return &atom{kind: quotientAtom, num: rem, den: c, open: rem.open(), moving: rem.moving()}
	})
	return s.add(q, of(a))
}

// divided returns q and rem of f = c·q + rem, whose factors are divided by div.
func (f form) divided(c int64, div func(a, b int64) int64) (q, rem form) {
	q.c = floorDiv(f.c, c)
	rem.c = f.c - c*q.c
	for _, m := range f.t {
		k := div(m.k, c)
		if k != 0 {
			q.t = append(q.t, mono{k, m.a})
		}
		if r := m.k - c*k; r != 0 {
			rem.t = append(rem.t, mono{r, m.a})
		}
	}
	return q, rem
}

// settled adds ⌊rem/c⌋ to q if that is one number for all values of the variables.
func (s *space) settled(q *form, rem form, c int64) bool {
	lo, hi, ok := s.bounds(rem)
	if !ok || floorDiv(lo, c) != floorDiv(hi, c) {
		return false
	}
	q.c = s.plus(q.c, floorDiv(lo, c))
	return true
}

// mod is f − c·⌊f/c⌋, so that c·⌊f/c⌋ + f mod c is f.
func (s *space) mod(f form, c int64) form { return s.addScaled(f, -c, s.div(f, c)) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
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

// bounds are safe bounds of f for all values of params and index variables.
func (s *space) bounds(f form) (lo, hi int64, ok bool) {
	up, ok1 := s.upper(f)
	down, ok2 := s.upper(s.scale(f, -1))
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	_, hi, ok1 = s.g.Range(up)
	_, lo, ok2 = s.g.Range(down)
	return -lo, hi, ok1 && ok2
}

// upper is an upper bound of f that depends on params only.
func (s *space) upper(f form) (ir.Affine, bool) {
	// u·(x − k·⌊x/k⌋) is u·(x mod k): far tighter than its parts. With x = ⌊y/e⌋ the
	// quotient is the atom ⌊y/(k·e)⌋.
	for _, m := range f.t {
		a := m.a
		if a.kind != quotientAtom {
			continue
		}
		for _, other := range f.t {
			u := other.k
			if other.a == a || (u > 0) == (m.k > 0) || m.k%u != 0 || a.den%(-m.k/u) != 0 {
				continue
			}
			k := -m.k / u
			rest := s.addScaled(s.addScaled(f, -m.k, of(a)), -u, s.div(a.num, a.den/k))
			if len(rest.t) > len(f.t)-2 {
				continue
			}
			up, ok := s.upper(rest)
			return up.AddConst(max(u, 0) * (k - 1)), ok
		}
	}
	up := ir.Const(f.c)
	for _, m := range f.t {
		a := m.a
		switch a.kind {
		case paramAtom:
			up = up.Add(ir.Linear(0, ir.Term{Param: a.param, Coeff: m.k}))
		case indexAtom:
			if m.k < 0 {
				continue
			}
			e, ok := s.upper(a.num)
			if !ok {
				return up, false
			}
			up = up.Add(e.AddConst(-1).Scale(m.k))
		case quotientAtom:
			if m.k > 0 {
				// ⌊(den·x + c)/den⌋ = x + ⌊c/den⌋ stays an expression of params.
				if top, ok := s.upper(a.num); ok {
					if x, ok := quotient(top.AddConst(-top.Const), a.den); ok {
						up = up.Add(x.AddConst(floorDiv(top.Const, a.den)).Scale(m.k))
						continue
					}
				}
			}
			lo, hi, ok := s.bounds(a.num)
			if !ok {
				return up, false
			}
			if m.k > 0 {
				up = up.AddConst(s.times(m.k, floorDiv(hi, a.den)))
			} else {
				up = up.AddConst(s.times(m.k, floorDiv(lo, a.den)))
			}
		case loadAtom:
			if a.lo == a.hi {
				return up, false
			}
			if m.k > 0 {
				up = up.AddConst(s.times(m.k, a.hi))
			} else {
				up = up.AddConst(s.times(m.k, a.lo))
			}
		default:
			return up, false
		}
	}
	return up, !s.overflow
}

// within proves 0 ≤ f < n.
func (s *space) within(f form, n ir.Affine) bool {
	up, ok1 := s.upper(f)
	down, ok2 := s.upper(s.scale(f, -1))
	if !ok1 || !ok2 {
		return false
	}
	_, over, ok1 := s.g.Range(up.Sub(n))
	_, under, ok2 := s.g.Range(down)
	return ok1 && ok2 && over < 0 && under <= 0
}

// paramsOnly returns f as an expression of the graph's params; false if it is none.
func (f form) paramsOnly() (ir.Affine, bool) {
	a := ir.Const(f.c)
	for _, m := range f.t {
		if m.a.kind != paramAtom {
			return a, false
		}
		a = a.Add(ir.Linear(0, ir.Term{Param: m.a.param, Coeff: m.k}))
	}
	return a, true
}

// asExtent returns f as ⌈num/div⌉ with num an expression of params; false if it is none.
func (f form) asExtent() (ir.Extent, bool) {
	if a, ok := f.paramsOnly(); ok {
		return ir.Extent{Num: a, Div: 1}, true
	}
	// ⌊(num + div − 1)/div⌋, see ceil.
	if f.c == 0 && len(f.t) == 1 && f.t[0].k == 1 && f.t[0].a.kind == quotientAtom {
		q := f.t[0].a
		if a, ok := q.num.paramsOnly(); ok {
			return ir.Extent{Num: a.AddConst(1 - q.den), Div: q.den}, true
		}
	}
	return ir.Extent{}, false
}

// integer applies an operation of terms to forms.
func (s *space) integer(op term.Op, args ...form) (form, bool) {
	a := args[0]
	switch op {
	case term.Neg:
		return s.scale(a, -1), true
	case term.Add:
		return s.add(a, args[1]), true
	case term.Sub:
		return s.sub(a, args[1]), true
	case term.Mul:
		b := args[1]
		if a.isConst() {
			a, b = b, a
		}
		if b.isConst() {
			return s.scale(a, b.c), true
		}
		// Multiply out, so that a stride times a sum of indices falls apart.
		out := s.addScaled(s.scale(a, b.c), a.c, form{t: b.t})
		for _, x := range a.t {
			for _, y := range b.t {
				out = s.addScaled(out, s.times(x.k, y.k), s.product(x.a, y.a))
			}
		}
		return out, true
	case term.Div, term.Mod, term.CeilDiv:
		b := args[1]
		if !b.isConst() || b.c <= 0 {
			if b.isConst() {
				return form{}, false
			}
			break
		}
		switch op {
		case term.Div:
			return s.div(a, b.c), true
		case term.Mod:
			return s.mod(a, b.c), true
		}
		return s.ceil(a, b.c), true
	case term.Min, term.Max:
		if a.isConst() && args[1].isConst() {
			if op == term.Min {
				return number(min(a.c, args[1].c)), true
			}
			return number(max(a.c, args[1].c)), true
		}
	}
	return s.opaque(op, ir.Invalid, args...), true
}

// product is the atom x·y; its operands commute.
func (s *space) product(x, y *atom) form {
	if y.id < x.id {
		x, y = y, x
	}
	return s.opaque(term.Mul, ir.Invalid, of(x), of(y))
}

// opaque returns an operation on integers as an atom that is not simplified.
func (s *space) opaque(op term.Op, t ir.DType, args ...form) form {
	b := strconv.AppendInt([]byte("o"), int64(op), 10)
	b = append(strconv.AppendInt(append(b, '.'), int64(t), 10), '(')
	a := &atom{kind: opAtom, op: op, typ: t, args: args}
	for _, f := range args {
		b = append(f.key(b), ',')
		a.open, a.moving = a.open || f.open(), a.moving || f.moving()
	}
	return of(s.lookup(b, func() *atom { return a }))
}
