package isel

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// fitter unifies the terms of one kernel with the terms of a group: it walks both trees together and collects
// equations between them. Operands of commutative operations are tried in both orders.
type fitter struct {
	m       *matcher
	*space  // the space of the group's terms
	p       *pattern
	d       *decl.Decl
	results []Operand // by result of d: the group's result that it would be
	shapes  [][]dim   // by result of d: the dimensions proposed for it

	floats map[int]*value // by symbol
	eqs    []equation
	err    error // why the last proposal failed
	tries  int
	slots  map[int]int // by read argument: its slot, on the path to the current pair
}

// maxTries bounds the proposals of one kernel for one group.
const maxTries = 16

// integerTerm is an integer expression of the kernel under given indices, to be
// evaluated when its symbols are known.
type integerTerm struct {
	e    *term.Expr
	vars []integerTerm
	f    *form // instead of e
}

func fixed(f form) integerTerm { return integerTerm{f: &f} }

// equation says that an integer of the kernel equals one of the group.
type equation struct {
	x    integerTerm
	want form
	// For an address, x is unused: element idx of argument arg must be at bit `want` of its slot.
	arg  int // −1: the equation is not about an address
	idx  []integerTerm
	slot int
}

// pair is two subterms that must be equal.
type pair struct {
	e    *term.Expr
	vars []integerTerm
	v    *value
}

// run unifies all pairs, then proposes; it reports whether a proposal was
// accepted.
func (f *fitter) run(todo []pair) bool {
	if f.tries >= maxTries {
		return false
	}
	if len(todo) == 0 {
		f.tries++
		return f.propose()
	}
	p := todo[len(todo)-1]
	todo = todo[: len(todo)-1 : len(todo)-1]
	e, v := p.e, p.v
	sub := func(e *term.Expr, v *value) pair { return pair{e, p.vars, v} }
	if e.Kind == term.Int {
		if v.op != term.ToF32 {
			return false
		}
		return f.equate(todo, integerTerm{e: e, vars: p.vars}, v.ints[0])
	}
	switch e.Op {
	case term.Call:
		vars := make([]integerTerm, len(e.Args))
		for i, a := range e.Args {
			vars[i] = integerTerm{e: a, vars: p.vars}
		}
		return f.run(append(todo, pair{f.d.Wheres[e.Index].Body, vars, v}))
	case term.ToF32:
		return f.run(append(todo, sub(e.Args[0], v)))
	case term.Round:
		if v.isStored() {
			v = v.args[0]
		}
		if e.Type == ir.F32 {
			return f.run(append(todo, sub(e.Args[0], v)))
		}
		return v.op == term.Round && v.typ == e.Type && f.run(append(todo, sub(e.Args[0], v.args[0]))) ||
			v.fits(e.Type) && f.run(append(todo, sub(e.Args[0], v)))
	case term.Real:
		return v.op == term.Real && v.bits == math.Float32bits(float32(e.Val)) && f.run(todo)
	case term.Symbol:
		if v.op != term.Real && v.op != term.Symbol {
			return false
		}
		if old, ok := f.floats[e.Index]; ok {
			return old == v && f.run(todo)
		}
		f.floats[e.Index] = v
		ok := f.run(todo)
		if !ok {
			delete(f.floats, e.Index)
		}
		return ok
	case term.Load:
		if v.op != term.Load || v.typ != f.d.Args[e.Index].Elem {
			return false
		}
		q := equation{want: v.addr, arg: e.Index, slot: v.slot}
		at, seen := f.slots[q.arg]
		if seen && at != q.slot {
			return f.apart(q.arg)
		}
		for _, a := range e.Args {
			q.idx = append(q.idx, integerTerm{e: a, vars: p.vars})
		}
		if !seen {
			f.slots[q.arg] = q.slot
			defer delete(f.slots, q.arg)
		}
		return f.with(q, todo)
	case term.Sum, term.MaxOver:
		if v.op != e.Op || v.class != e.Class {
			return false
		}
		vars := append(p.vars[:len(p.vars):len(p.vars)], fixed(f.index(v.index, v.ints[0])))
		todo = append(todo, pair{e.Args[1], vars, v.args[0]})
		return f.equate(todo, integerTerm{e: e.Args[0], vars: p.vars}, v.ints[0])
	}
	if v.op != e.Op {
		return false
	}
	if integers(e) {
		if len(v.ints) != len(e.Args) {
			return false
		}
		q := equation{x: integerTerm{e: e.Args[0], vars: p.vars}, want: v.ints[0], arg: -1}
		if len(e.Args) == 1 {
			return f.with(q, todo)
		}
		f.eqs = append(f.eqs, q)
		ok := f.equate(todo, integerTerm{e: e.Args[1], vars: p.vars}, v.ints[1])
		f.eqs = f.eqs[:len(f.eqs)-1]
		return ok
	}
	if len(v.args) != len(e.Args) {
		return false
	}
	if commutes(e.Op) {
		for flip := range 2 {
			x, y := v.args[flip], v.args[1-flip]
			if f.looks(e.Args[0], x) && f.looks(e.Args[1], y) && f.run(append(todo, sub(e.Args[1], y), sub(e.Args[0], x))) {
				return true
			}
			if x == y {
				break
			}
		}
		return false
	}
	for i := len(e.Args) - 1; i >= 0; i-- {
		todo = append(todo, sub(e.Args[i], v.args[i]))
	}
	return f.run(todo)
}

func (f *fitter) with(q equation, todo []pair) bool {
	f.eqs = append(f.eqs, q)
	ok := f.run(todo)
	f.eqs = f.eqs[:len(f.eqs)-1]
	return ok
}

func (f *fitter) equate(todo []pair, x integerTerm, want form) bool {
	if !f.possible(x.e, want) {
		return false
	}
	return f.with(equation{x: x, want: want, arg: -1}, todo)
}

// possible returns false if x cannot equal want whatever the unknowns are. Most kernels with the same operators
// differ in a template parameter or an element type.
func (f *fitter) possible(x *term.Expr, want form) bool {
	switch x.Op {
	case term.Number:
		return !want.isConst() || want.c == x.Num
	case term.Symbol:
		v, ok := f.d.Template[x.Index]
		return !ok || !want.isConst() || want.c == v
	case term.Load:
		if len(want.t) != 1 || want.c != 0 || want.t[0].a.kind != loadAtom {
			return true
		}
		a := want.t[0].a
		at, seen := f.slots[x.Index]
		return a.typ == f.d.Args[x.Index].Elem && (!seen || at == a.slot)
	}
	return true
}

// apart records that an argument of the kernel would have to be two different values of the group.
func (f *fitter) apart(arg int) bool {
	if f.tries == 0 {
		f.err = fmt.Errorf("its argument %s would lie in two places", f.d.Args[arg].Name)
	}
	return false
}

// looks reports whether e and v have the same operator tree.
func (f *fitter) looks(e *term.Expr, v *value) bool {
	want := leafConverted
	if e.Kind != term.Int {
		want = f.p.memo[e] // holds all subexpressions of a result
	}
	return want == f.m.lib.opTree(v)
}

// integerResult unifies an integer result, such as u32(argmax(…)) or a load of integers, with x. It appends the
// pairs of float subterms that remain to be unified to todo.
func (f *fitter) integerResult(e *term.Expr, vars []integerTerm, x form, todo []pair) ([]pair, bool) {
	for e.Op == term.ToInt || e.Op == term.Call {
		if e.Op == term.Call {
			inner := make([]integerTerm, len(e.Args))
			for i, a := range e.Args {
				inner[i] = integerTerm{e: a, vars: vars}
			}
			e, vars = f.d.Wheres[e.Index].Body, inner
			continue
		}
		e = e.Args[0]
	}
	if len(x.t) == 1 && x.c == 0 && x.t[0].k == 1 && x.t[0].a.kind == opAtom {
		switch a := x.t[0].a; {
		case a.op == term.ToInt:
			return f.integerResult(e, vars, a.args[0], todo)
		case a.op == term.ArgMax && e.Op == term.ArgMax:
			v := a.value
			if len(v.ints) != len(e.Args)-1 { // only one of the two has a place
				return nil, false
			}
			for i, x := range e.Args[2:] {
				f.eqs = append(f.eqs, equation{x: integerTerm{e: x, vars: vars}, want: v.ints[1+i], arg: -1})
			}
			inner := append(vars[:len(vars):len(vars)], fixed(f.index(v.index, v.ints[0])))
			f.eqs = append(f.eqs, equation{x: integerTerm{e: e.Args[0], vars: vars}, want: v.ints[0], arg: -1})
			return append(todo, pair{e.Args[1], inner, v.args[0]}), true
		}
	}
	if e.Op == term.Load && len(x.t) == 1 && x.c == 0 && x.t[0].k == 1 && x.t[0].a.kind == loadAtom {
		a := x.t[0].a
		if a.typ != f.d.Args[e.Index].Elem {
			return nil, false
		}
		q := equation{want: a.num, arg: e.Index, slot: a.slot}
		for _, i := range e.Args {
			q.idx = append(q.idx, integerTerm{e: i, vars: vars})
		}
		f.eqs = append(f.eqs, q)
		return todo, true
	}
	f.eqs = append(f.eqs, equation{x: integerTerm{e: e, vars: vars}, want: x, arg: -1})
	return todo, true
}

func (f *fitter) fail(format string, args ...any) bool {
	f.err = fmt.Errorf(format, args...)
	return false
}
