package ir

import (
	"math"
	"strconv"
)

// ParamID is the index of a param in [Graph.Params].
type ParamID int32

// Param is a named value that the host sets before each replay.
type Param struct {
	Name string
	Type DType // U32, or F32 for arithmetic only (never in an offset, length or grid)
	// Min and Max bound the value, both inclusive. A float64 holds every u32
	// and every f32 exactly.
	Min, Max float64
}

// Constraint is LHS ≤ Max, a linear relation between u32 params that the host
// must respect; replay checks it before it submits. LHS has no constant.
type Constraint struct {
	LHS Affine
	Max int64
}

// Range returns the least and the greatest value that a can take when the
// params keep their bounds and the graph's constraints. Both are safe (never
// too narrow), and exact for boxes cut by one constraint between at most 8
// params with coefficients ±1, which is what recordings have
// (`pos + n <= max`). ok is false when a number on the way leaves 64 bits.
func (g *Graph) Range(a Affine) (lo, hi int64, ok bool) {
	if a.lin == nil {
		return a.Const, a.Const, true
	}
	hi, ok1 := g.boxUpper(a)
	lo, ok2 := g.boxUpperOf(Affine{}, 1, a)
	if len(g.Constraints) > 0 {
		hi, ok1 = g.maximum(a, hi, ok1)
		if minus, ok := (Affine{}).subScaled(1, a); ok {
			lo, ok2 = g.maximum(minus, lo, ok2)
		}
	}
	return -lo, hi, ok1 && ok2 && lo > math.MinInt64
}

// maxRangeWork bounds the terms that one direction of Range looks at:
// recordings have a constraint or two, a hostile file has dozens, and their
// combinations grow with the third power. A bound not tried makes the result
// wider, never wrong.
const maxRangeWork = 512

// maximum improves a bound of a from above by one constraint, then by pairs,
// then by three, until the work is used up.
func (g *Graph) maximum(a Affine, best int64, ok bool) (int64, bool) {
	work := maxRangeWork
	for depth := 1; depth <= min(3, len(g.Constraints)) && work > 0; depth++ {
		if v, found := g.upper(a, g.Constraints, depth, &work); found && (!ok || v < best) {
			best, ok = v, true
		}
	}
	return best, ok
}

// upper bounds a from above. For a constraint LHS ≤ Max and any λ ≥ 0,
// a ≤ λ·Max + max(a − λ·LHS): the candidates for λ are those that cancel one
// param, which is where the optimum of the linear program's dual lies.
func (g *Graph) upper(a Affine, cs []Constraint, depth int, work *int) (int64, bool) {
	best, ok := g.boxUpper(a)
	for i, c := range cs {
		for _, t := range c.LHS.Terms() {
			if *work--; *work < 0 {
				return best, ok
			}
			k := a.Coeff(t.Param)
			if k == 0 || (k > 0) != (t.Coeff > 0) || k%t.Coeff != 0 {
				continue
			}
			*work -= len(a.Terms()) + len(c.LHS.Terms())
			lambda := k / t.Coeff
			gain, ok1 := mulOK(lambda, c.Max)
			if !ok1 {
				continue
			}
			var rest int64
			var ok2 bool
			if depth == 1 {
				rest, ok2 = g.boxUpperOf(a, lambda, c.LHS)
			} else if left, ok := a.subScaled(lambda, c.LHS); ok {
				rest, ok2 = g.upper(left, cs[i+1:], depth-1, work)
			}
			sum, ok3 := addOK(gain, rest)
			if ok2 && ok3 && (!ok || sum < best) {
				best, ok = sum, true
			}
		}
	}
	return best, ok
}

// boxUpper bounds a from above by the bounds of the params alone.
func (g *Graph) boxUpper(a Affine) (int64, bool) { return g.boxUpperOf(a, 0, Affine{}) }

// boxUpperOf bounds a − k·b so.
func (g *Graph) boxUpperOf(a Affine, k int64, b Affine) (int64, bool) {
	v, ok := int64(0), true
	constant, ok1 := difference(a, k, b, func(t Term) {
		if t.Param < 0 || int(t.Param) >= len(g.Params) {
			ok = false
			return
		}
		p := &g.Params[t.Param]
		x := int64(p.Max)
		if t.Coeff < 0 {
			x = int64(p.Min)
		}
		m, ok1 := mulOK(t.Coeff, x)
		s, ok2 := addOK(v, m)
		ok = ok && ok1 && ok2
		v = s
	})
	v, ok2 := addOK(v, constant)
	return v, ok && ok1 && ok2
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }
