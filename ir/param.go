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
	Type DType // U32, or F32 for a number that is used in arithmetic only (never in an offset, length or grid)
	// Min and Max bound the value, both inclusive. A float64 holds every u32
	// and every f32 exactly.
	Min, Max float64
	// Advance is added to the value of a u32 param from one replay of a submission to the
	// next. Bounds and constraints hold in all of these replays.
	Advance int64
}

// Format writes a value of the param for people. A u32 is written with all of its digits.
func (p *Param) Format(v float64) string {
	if p.Type == F32 {
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Constraint is LHS ≤ Max, a linear relation between u32 params. The host must respect it, and a
// replay checks it before it submits. LHS has no constant.
type Constraint struct {
	LHS Affine
	Max int64
}

// Range returns the min and the max of a over all values of the params that their bounds and the
// graph's constraints allow. The result is never too narrow. It is exact if there is one
// constraint, between at most 8 params with coefficients ±1, which is what recordings have (`pos +
// n <= max`). ok is false if an intermediate number overflows 64 bits.
func (g *Graph) Range(a Affine) (lo, hi int64, ok bool) {
	if a.lin == nil {
		return a.Const, a.Const, true
	}
	b := Bounds{g: g, work: -1, once: true}
	return b.Range(a)
}

func itoa(v int64) string { return strconv.FormatInt(v, 10) }

// Greatest returns large values of the params that bounds and constraints allow. Beginning with the
// last param, each gets the largest value that is possible while all params before it have their
// mins. Params of type f32 have their min. If the constraints do not allow the mins of all params,
// neither do they allow the result.
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
		// The constraints leave a range. For a positive coefficient it begins at the min.
		least := v[i]
		v[i] = least + uint32(sort.Search(int(p.Max-p.Min), func(n int) bool {
			v[i] = least + uint32(n) + 1
			return !allowed()
		}))
	}
	return v
}
