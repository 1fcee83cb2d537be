package hazard

import "github.com/mlxc/mlxc/ir"

// twice returns a graph with g's memories and two independent sets of its
// params: those of a replay, and behind them those of a later one.
func twice(g *ir.Graph) *ir.Graph {
	if len(g.Params) == 0 {
		return g
	}
	out := &ir.Graph{Name: g.Name, Memories: g.Memories}
	out.Params = append(append(out.Params, g.Params...), g.Params...)
	out.Constraints = append(out.Constraints, g.Constraints...)
	for _, c := range g.Constraints {
		out.Constraints = append(out.Constraints, ir.Constraint{LHS: shift(c.LHS, len(g.Params)), Max: c.Max})
	}
	return out
}

// shift renames the params of a replay to those of the later one.
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

// later returns the region n of a later replay.
func (t *Table) later(n int32) int32 {
	x := &t.regions.all[n]
	if n == 0 || !x.params {
		return n
	}
	if x.twin == 0 {
		by := len(t.g.Params)
		r := ir.Region{Mem: x.Mem, Off: shift(x.Off, by), Run: shift(x.Run, by)}
		for _, d := range x.Dims {
			r.Dims = append(r.Dims, ir.Dim{Count: shift(d.Count, by), Stride: d.Stride})
		}
		twin := t.regions.intern(x.Mem, 0, &r)
		t.regions.all[n].twin = twin
	}
	return t.regions.all[n].twin
}
