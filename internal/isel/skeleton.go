package isel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// A skeleton is the tree of a term's operators, without what stands at its
// leaves: L for an element, C for a constant or symbol, I for a converted
// integer, i for an integer. Operands that commute are sorted. Equal terms have
// equal skeletons, so a group looks up the kernels that it may become.

func key(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// skeleton of a value, remembered in it.
func (s *space) skeleton(v *value) string {
	if v.skel != "" {
		return v.skel
	}
	switch v.op {
	case term.Load:
		v.skel = "L"
	case term.Real, term.Symbol:
		v.skel = "C"
	case term.ToF32:
		v.skel = "I"
	default:
		if v.isStored() {
			v.skel = "L"
			break
		}
		var parts []string
		for range v.ints {
			if v.op != term.Sum && v.op != term.MaxOver && v.op != term.ArgMax {
				parts = append(parts, "i")
			}
		}
		for _, a := range v.args {
			parts = append(parts, s.skeleton(a))
		}
		v.skel = operator(v.op, v.typ.String(), v.class, parts)
	}
	return v.skel
}

func (s *space) skeletonOf(x scalar) string {
	if !x.isInt {
		return s.skeleton(x.v)
	}
	if f := x.f; f.c == 0 && len(f.t) == 1 && f.t[0].k == 1 && f.t[0].a.kind == opAtom {
		switch a := f.t[0].a; a.op {
		case term.ArgMax:
			return s.skeleton(a.value)
		case term.ToInt:
			return s.skeletonOf(scalar{isInt: true, f: a.args[0]})
		}
	}
	return "i"
}

func operator(op term.Op, typ, class string, parts []string) string {
	switch op {
	case term.Add, term.Mul, term.Min, term.Max:
		slices.Sort(parts)
	case term.Round:
		class = typ
	}
	return strconv.Itoa(int(op)) + class + "(" + strings.Join(parts, ",") + ")"
}

// shapes of the terms of one declaration, by expression.
type skeletons struct {
	d    *decl.Decl
	memo map[*term.Expr]string
	// of a member of a group: loads may be another member's term
	members *outline
	at      int
}

// of is the skeleton of e where a float or a condition is wanted.
func (k *skeletons) of(e *term.Expr) string {
	if s, ok := k.memo[e]; ok {
		return s
	}
	s := k.compute(e)
	k.memo[e] = s
	return s
}

func (k *skeletons) compute(e *term.Expr) string {
	switch {
	case e.Op == term.ToInt:
		return k.of(e.Args[0])
	case e.Op == term.ArgMax:
		return operator(e.Op, "", "", []string{k.of(e.Args[1])})
	case e.Op == term.Call:
		return k.of(k.d.Wheres[e.Index].Body)
	case e.Op == term.Load && e.Kind == term.Int && k.members != nil:
		if s := k.members.load(k.at, e.Index); s != "L" {
			return s
		}
		return "i"
	case e.Kind == term.Int:
		return "i"
	}
	switch e.Op {
	case term.Load:
		if k.members != nil {
			return k.members.load(k.at, e.Index)
		}
		return "L"
	case term.Mul:
		if k.members != nil && k.members.drop {
			for i, a := range e.Args {
				if k.one(a) {
					return k.float(e.Args[1-i])
				}
			}
		}
	case term.Real, term.Symbol:
		return "C"
	case term.ToF32:
		return k.float(e.Args[0])
	case term.Round:
		inner := k.float(e.Args[0])
		if e.Type.Bits() == 32 || strings.HasPrefix(inner, rounding(e.Type)) || e.Type == ir.F16 && inner == asF16 || e.Args[0].Op == term.Load && inner == "L" && k.d.Args[e.Args[0].Index].Elem == e.Type {
			return inner // it changes nothing
		}
	case term.Sum, term.MaxOver:
		return operator(e.Op, "", e.Class, []string{k.float(e.Args[1])})
	}
	parts := make([]string, len(e.Args))
	for i, a := range e.Args {
		if integers(e) {
			parts[i] = "i"
		} else {
			parts[i] = k.float(a)
		}
	}
	return operator(e.Op, e.Type.String(), "", parts)
}

// one reports whether e is an element of a weight of ones.
func (k *skeletons) one(e *term.Expr) bool {
	switch e.Op {
	case term.Round:
		return k.one(e.Args[0])
	case term.Load:
		return Ones(k.members.gr.Members[k.at], e.Index)
	}
	return false
}

// float is the skeleton of e where an integer is converted.
func (k *skeletons) float(e *term.Expr) string {
	if e.Kind == term.Int {
		return "I"
	}
	return k.of(e)
}

// asF16 is the skeleton of a half made of an integer.
var asF16 = operator(term.AsF16, "", "", []string{"i"})

// integers reports whether e is a condition on integers, or a half made of one.
func integers(e *term.Expr) bool {
	if e.Op == term.Pow2 || e.Op == term.AsF16 {
		return true
	}
	return e.Op >= term.Eq && e.Op <= term.Ge && e.Args[0].Kind == term.Int && e.Args[1].Kind == term.Int
}
