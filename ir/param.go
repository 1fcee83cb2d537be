package ir

import "strconv"

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
