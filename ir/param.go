package ir

import (
	"math"
	"sort"
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
	// Advance is added to the value of a u32 param from one replay of a submission to the
	// next. Bounds and constraints hold in all of these replays.
	Advance int64
}

// Format writes a value of the param as people do: an integer of a u32 has all of its digits.
func (p *Param) Format(v float64) string {
	if p.Type == F32 {
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
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
	b := Bounds{g: g, work: -1, once: true}
	return b.Range(a)
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

// Greatest returns values of the params that bounds and constraints allow: beginning with the
// last, each is as great as the least values of those before it leave room for. Params of type
// f32 have their least value. Where the least values of all are not allowed, neither are these.
func (g *Graph) Greatest() []uint32 {
	v := make([]uint32, len(g.Params))
	for i := range g.Params {
		p := &g.Params[i]
		if v[i] = uint32(p.Min); p.Type == F32 {
			v[i] = math.Float32bits(float32(p.Min))
		}
	}
	allowed := func() bool {
		for i := range g.Constraints {
			if c := &g.Constraints[i]; c.LHS.Eval(v) > c.Max {
				return false
			}
		}
		return true
	}
	for i := len(v) - 1; i >= 0; i-- {
		p := &g.Params[i]
		if p.Type == F32 {
			continue
		}
		// The constraints leave a range: of a positive coefficient the small values.
		least := v[i]
		v[i] = least + uint32(sort.Search(int(p.Max-p.Min), func(n int) bool {
			v[i] = least + uint32(n) + 1
			return !allowed()
		}))
	}
	return v
}
