package bytestate

import "github.com/mlxc/mlxc/ir"

// NewFactsOfReplays is NewFacts for callers that use [Facts.Later].
func NewFactsOfReplays(g *ir.Graph) *Facts {
	f := NewFacts(g)
	if f.later = len(g.Params); f.later > 0 {
		f.g = twice(g)
		f.bounds = ir.NewBounds(f.g, ir.BoundsWork)
	}
	return f
}

// twice returns a graph with g's memories and two independent sets of its params: first
// those of a replay, then those of a later replay.
func twice(g *ir.Graph) *ir.Graph {
	out := &ir.Graph{Name: g.Name, Memories: g.Memories}
	out.Params = append(append(out.Params, g.Params...), g.Params...)
	out.Constraints = append(out.Constraints, g.Constraints...)
	for _, c := range g.Constraints {
		out.Constraints = append(out.Constraints, ir.Constraint{LHS: shift(c.LHS, len(g.Params)), Max: c.Max})
	}
	return out
}

// shift replaces the params of a replay by those of the later one.
func shift(a ir.Affine, by int) ir.Affine {
	if a.IsConst() {
		return a
	}
	ts := make([]ir.Term, len(a.Terms()))
	for i, t := range a.Terms() {
		ts[i] = ir.Term{Param: t.Param + ir.ParamID(by), Coeff: t.Coeff}
	}
	return ir.Linear(a.Const, ts...)
}

// Later returns the number of region n in a later replay, whose params are independent
// of those of this one.
func (f *Facts) Later(n int32) int32 {
	if n == 0 || f.later == 0 || !f.regions[n].Moves {
		return n
	}
	if x := &f.regions[n]; x.twin == 0 {
		r := ir.Region{Mem: x.Mem, Off: shift(x.Off, f.later), Run: shift(x.Run, f.later)}
		for _, d := range x.Dims {
			r.Dims = append(r.Dims, ir.Dim{Count: shift(d.Count, f.later), Stride: d.Stride})
		}
		twin := f.intern(x.Mem, 0, &r)
		f.regions[n].twin = twin
	}
	return f.regions[n].twin
}
