package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// checkInterface compares what the host sees: inputs, outputs, states and
// weights by name, and params. Argument memory is filled from the params: what a
// dispatch binds of it is compared as its value.
func checkInterface(b, a *ir.Graph, r *Result) {
	if len(b.Params) != len(a.Params) {
		r.add(Refused, Interface, nil, nil, "%d params before, %d after", len(b.Params), len(a.Params))
		return
	}
	for i := range b.Params {
		// Params are compared by place: expressions name them so.
		if b.Params[i] != a.Params[i] {
			r.add(Refused, Interface, nil, nil, "param $%s differs: %v before, %v after", b.Params[i].Name, b.Params[i], a.Params[i])
		}
	}
	if !sameConstraints(b, a) {
		r.add(Refused, Interface, nil, nil, "constraints between params differ")
	}
	before, after := visible(b), visible(a)
	for i := range b.Memories {
		name := b.Memories[i].Name
		x, ok := before[name]
		if !ok || x != ir.MemID(i) {
			continue
		}
		y, ok := after[name]
		if !ok {
			r.add(Refused, Interface, nil, nil, "%s %%%s is missing after", b.Memories[x].Kind, name)
			continue
		}
		m, n := &b.Memories[x], &a.Memories[y]
		switch {
		case m.Kind != n.Kind:
			r.add(Refused, Interface, nil, nil, "%%%s is %s before, %s after", name, m.Kind, n.Kind)
		case m.Size != n.Size:
			r.add(Refused, Interface, nil, nil, "%s %%%s has %d bytes before, %d after", m.Kind, name, m.Size, n.Size)
		case !m.SameContents(n):
			r.add(Refused, Interface, nil, nil, "%s %%%s has other initial contents", m.Kind, name)
		}
	}
	for i := range a.Memories {
		m := &a.Memories[i]
		if _, ok := before[m.Name]; !ok && m.Alias == ir.NoMem && m.Kind != ir.Scratch && m.Kind != ir.Argument {
			r.add(Refused, Interface, nil, nil, "%s %%%s is new after", m.Kind, m.Name)
		}
	}
}

// visible returns the root memories that the host fills or reads, and weights, by
// name.
func visible(g *ir.Graph) map[string]ir.MemID {
	out := map[string]ir.MemID{}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Alias == ir.NoMem && m.Kind != ir.Scratch && m.Kind != ir.Argument {
			out[m.Name] = ir.MemID(i)
		}
	}
	return out
}

// sameConstraints reports whether two graphs admit the same values of the
// params: each one's constraints hold wherever the other's do.
func sameConstraints(b, a *ir.Graph) bool {
	return implied(b, a) && implied(a, b)
}

// implied proves that the constraints of h hold wherever g admits the params.
func implied(g, h *ir.Graph) bool {
	for _, c := range h.Constraints {
		if !slices.ContainsFunc(g.Constraints, func(d ir.Constraint) bool { return c.Max == d.Max && c.LHS.Equal(d.LHS) }) && !atMost(g, c.LHS, c.Max) {
			return false
		}
	}
	return true
}
