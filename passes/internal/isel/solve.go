package isel

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// solution holds what is known so far about the kernel's unknowns, for one proposal.
type solution struct {
	*fitter
	ints  map[int]form       // integer symbols
	base  map[int]place      // views of device arguments
	bound map[int]ir.Binding // device arguments bound inline, without slot
	slots map[int]int        // by read argument: the slot, known once one of its loads was unified
	atoms map[string]*atom
	gone  error // why no dispatch solves the equations
}

var errContradiction = errors.New("its loads, bounds and constants do not fit together")

func (f *fitter) newSolution() *solution {
	s := &solution{fitter: f, ints: map[int]form{}, base: map[int]place{}, bound: map[int]ir.Binding{}, slots: map[int]int{}, atoms: map[string]*atom{}}
	for i, v := range f.d.Template {
		s.ints[i] = number(v)
	}
	return s
}

// The kinds of unknowns. Each unknown is an atom, so that both sides of an equation are
// forms.
const (
	symbolUnknown = iota
	baseUnknown
	elementUnknown
)

func (s *solution) unknown(kind, i int, more form) form {
	b := strconv.AppendInt([]byte("u"), int64(kind), 10)
	b = more.key(append(strconv.AppendInt(append(b, '.'), int64(i), 10), '@'))
	a, ok := s.atoms[string(b)]
	if !ok {
		a = &atom{kind: unknownAtom, op: term.Op(kind), which: i, num: more, open: true, moving: more.moving()}
		s.intern(a)
		s.atoms[string(b)] = a
	}
	return of(a)
}

// eval evaluates an integer expression of the kernel, which may contain unknowns.
func (s *solution) eval(x integerTerm) (form, error) {
	if x.f != nil {
		return *x.f, nil
	}
	e := x.e
	switch e.Op {
	case term.Number:
		return number(e.Num), nil
	case term.Symbol:
		if f, ok := s.ints[e.Index]; ok {
			return f, nil
		}
		for _, l := range s.d.Lets {
			if l.Symbol == e.Index {
				return s.eval(integerTerm{e: l.Value})
			}
		}
		return s.unknown(symbolUnknown, e.Index, form{}), nil
	case term.Var:
		return s.eval(x.vars[e.Index])
	case term.Call:
		vars := make([]integerTerm, len(e.Args))
		for i, a := range e.Args {
			vars[i] = integerTerm{e: a, vars: x.vars}
		}
		return s.eval(integerTerm{e: s.d.Wheres[e.Index].Body, vars: vars})
	case term.ToInt:
		return s.eval(integerTerm{e: e.Args[0], vars: x.vars})
	case term.Load:
		return s.element(x)
	case term.ArgMax:
		return form{}, fmt.Errorf("%s inside an integer", e)
	}
	args := make([]form, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = s.eval(integerTerm{e: a, vars: x.vars}); err != nil {
			return form{}, err
		}
	}
	f, ok := s.integer(e.Op, args...)
	if !ok {
		return f, fmt.Errorf("%s divides by zero or less", e)
	}
	return f, nil
}

// element returns the value that the kernel loads from an integer argument.
func (s *solution) element(x integerTerm) (form, error) {
	arg := x.e.Index
	idx := make([]integerTerm, len(x.e.Args))
	for i, a := range x.e.Args {
		idx[i] = integerTerm{e: a, vars: x.vars}
	}
	if b, ok := s.bound[arg]; ok {
		return s.affine(b.Expr), nil
	}
	at, err := s.address(arg, idx)
	if err != nil {
		return at, err
	}
	if p, ok := s.base[arg]; ok && !at.open() {
		return s.load(p.slot, at, s.d.Args[arg].Elem).f, nil
	}
	return s.unknown(elementUnknown, arg, at), nil
}

// address returns the position in bits of an element, within the slot of its argument.
func (s *solution) address(arg int, idx []integerTerm) (form, error) {
	a := &s.d.Args[arg]
	bits := int64(a.Elem.Bits())
	var at form
	if p, ok := s.base[arg]; ok {
		at = s.scale(s.affine(p.off), 8)
	} else {
		at = s.unknown(baseUnknown, arg, form{})
	}
	stride := number(bits)
	for k := len(idx) - 1; k >= 0; k-- {
		i, err := s.eval(idx[k])
		if err != nil {
			return at, err
		}
		if a.Strides != nil {
			if stride, err = s.eval(integerTerm{e: a.Strides[k]}); err != nil {
				return at, err
			}
			stride = s.scale(stride, bits)
		}
		step, _ := s.integer(term.Mul, stride, i)
		at = s.add(at, step)
		if a.Strides == nil && k > 0 {
			n, err := s.eval(integerTerm{e: a.Shape[k]})
			if err != nil {
				return at, err
			}
			stride, _ = s.integer(term.Mul, stride, n)
		}
	}
	return at, nil
}

// residual returns the difference of the two sides of the equation, a form that must be zero.
func (s *solution) residual(q equation) (form, error) {
	var x form
	var err error
	if q.arg >= 0 {
		if at, ok := s.slots[q.arg]; ok && at != q.slot {
			return x, fmt.Errorf("%s would lie in two places", s.d.Args[q.arg].Name)
		}
		s.slots[q.arg] = q.slot
		x, err = s.address(q.arg, q.idx)
	} else {
		x, err = s.eval(q.x)
	}
	if err != nil {
		return x, err
	}
	return s.sub(x, q.want), nil
}

// solve applies equations until no equation determines anything new.
func (s *solution) solve(eqs []equation) error {
	done := make([]bool, len(eqs))
	for again := true; again; {
		again = false
		for i, q := range eqs {
			if done[i] {
				continue
			}
			r, err := s.residual(q)
			if err != nil {
				return err
			}
			if !r.open() {
				if !r.isZero() {
					return errContradiction
				}
				done[i] = true
				continue
			}
			again = s.step(r) || again
			if s.gone != nil {
				return s.gone
			}
		}
	}
	return nil
}

// step uses r = 0, which holds for all values of the index variables: the coefficient of each variable is zero, and
// so is the part without variables.
func (s *solution) step(r form) bool {
	if u, load := elements(r); u != nil {
		return s.assignElement(u, of(load))
	}
	rest := form{c: r.c}
	coeff := map[*atom]form{} // by index variable: its coefficient, which contains unknowns
	plain := map[*atom]int64{}
	var order []*atom
	for _, m := range r.t {
		switch a := m.a; {
		case !a.moving:
			rest.t = append(rest.t, m)
		case !a.open:
			plain[a] += m.k
		case a.kind == opAtom && a.op == term.Mul && len(a.args[0].t) == 1 && len(a.args[1].t) == 1:
			u, v := a.args[0].t[0].a, a.args[1].t[0].a
			if v.open {
				u, v = v, u
			}
			if !u.open || v.open || u.moving {
				return false
			}
			if _, ok := coeff[v]; !ok {
				order = append(order, v)
			}
			coeff[v] = s.addScaled(coeff[v], m.k, of(u))
		default:
			return false // an unknown is inside an operation on an index variable
		}
	}
	for _, v := range order {
		if s.learn(s.add(coeff[v], number(plain[v]))) {
			return true
		}
	}
	return s.learn(rest)
}

// elements returns an unknown element of r = 0 and the load that it must be, if they alone have a coefficient: bytes of
// a number have 1 and 256. If it is another load after all, verify refuses what follows.
func elements(r form) (u, load *atom) {
	if r.c != 0 {
		return nil, nil
	}
	for _, m := range r.t {
		if m.a.kind != unknownAtom || int(m.a.op) != elementUnknown {
			continue
		}
		same := 0
		for _, o := range r.t {
			if o.k == m.k || o.k == -m.k {
				same++
			}
			if o.k == -m.k && o.a.kind == loadAtom {
				load = o.a
			}
		}
		if same == 2 && load != nil {
			return m.a, load
		}
		load = nil
	}
	return nil, nil
}

// learn uses f = 0, where f contains no index variable, and solves it if it has exactly one unknown.
func (s *solution) learn(f form) bool {
	var u mono
	for _, m := range f.t {
		if m.a.open {
			if u.a != nil {
				return false
			}
			u = m
		}
	}
	if u.a == nil {
		return false
	}
	rest, ok := s.divide(s.addScaled(f, -u.k, of(u.a)), -u.k)
	if !ok {
		s.gone = errContradiction
		return false
	}
	switch u.a.kind {
	case quotientAtom:
		// ⌊x/d⌋ = v has several solutions. Declarations divide sizes without a rest, so
		// x = d·v is meant.
		return s.learn(s.addScaled(u.a.num, -u.a.den, rest))
	case unknownAtom:
		return s.assign(u.a, rest)
	}
	return false
}

// divide returns f/k if that is a form.
func (s *solution) divide(f form, k int64) (form, bool) {
	if f.c%k != 0 {
		return f, false
	}
	out := form{c: f.c / k}
	for _, m := range f.t {
		if m.k%k != 0 {
			return f, false
		}
		out.t = append(out.t, mono{m.k / k, m.a})
	}
	return out, true
}

func (s *solution) assign(u *atom, f form) bool {
	switch int(u.op) {
	case symbolUnknown:
		if _, ok := f.asExtent(); !ok {
			s.gone = fmt.Errorf("%s would depend on memory", s.d.Symbols[u.which].Name)
			return false
		}
		s.ints[u.which] = f
	case baseUnknown:
		a, ok := f.paramsOnly()
		bytes, whole := quotient(a, 8)
		if !ok || !whole {
			s.gone = errContradiction
			return false
		}
		s.base[u.which] = place{s.slots[u.which], bytes}
	case elementUnknown:
		return s.assignElement(u, f)
	}
	return true
}

// assignElement binds an integer argument so that its element u equals f: to memory that has the element, or to
// an inline number.
func (s *solution) assignElement(u *atom, f form) bool {
	a := &s.d.Args[u.which]
	if x, ok := f.paramsOnly(); ok {
		if len(a.Shape) != 1 || a.Elem.Float() || a.Type != a.Elem {
			s.gone = errContradiction
			return false
		}
		s.bound[u.which] = ir.Binding{Kind: ir.BindScalar, Type: a.Elem, Expr: x}
		return true
	}
	if len(f.t) == 1 && f.c == 0 && f.t[0].k == 1 && f.t[0].a.kind == loadAtom && f.t[0].a.typ == a.Elem {
		l := f.t[0].a
		s.slots[u.which] = l.slot
		return s.step(s.sub(u.num, l.num))
	}
	s.gone = errContradiction
	return false
}

// openSymbol returns the first integer symbol without a value, or −1.
func (s *solution) openSymbol() int {
next:
	for i, y := range s.d.Symbols {
		if _, ok := s.ints[i]; ok || y.Kind != term.Int {
			continue
		}
		for _, l := range s.d.Lets {
			if l.Symbol == i {
				continue next
			}
		}
		return i
	}
	return -1
}

// requirements returns the equations in the @require lines of d.
func requirements(d *decl.Decl) (out []equation) {
	var walk func(e *term.Expr)
	walk = func(e *term.Expr) {
		switch e.Op {
		case term.And:
			walk(e.Args[0])
			walk(e.Args[1])
		case term.Eq:
			if e.Args[1].Op == term.Number && e.Args[0].Kind == term.Int {
				out = append(out, equation{x: integerTerm{e: e.Args[0]}, want: number(e.Args[1].Num), arg: -1})
			}
		}
	}
	for _, r := range d.Requires {
		walk(r)
	}
	return out
}
