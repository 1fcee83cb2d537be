package prove

import "github.com/mlxc/mlxc/ir"

// pillars checks that nothing crosses a command of unknown effects, that none
// was touched, and that no view changed in a graph that has one.
func pillars(b, a *model, img []int, sameViews bool, r *Result) bool {
	unknown := false
	for i := range b.ops {
		unknown = unknown || !b.ops[i].known
	}
	for i := range a.ops {
		if !a.ops[i].known && b.ops[img[i]].known {
			r.add(CannotTell, Values, []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id}, "%s: its effects are known before but not after", a.g.Describe(a.ops[i].node))
			return false
		}
	}
	if !unknown {
		return true
	}
	if !sameViews {
		r.add(CannotTell, Values, nil, nil, "memories changed in a graph with commands of unknown effects")
		return false
	}
	if r.Dropped > 0 {
		r.add(CannotTell, Coverage, nil, nil, "commands were left out of a graph with commands of unknown effects")
		return false
	}
	// Position of each command relative to the pillars.
	era := make([]int, len(b.ops))
	n := 0
	for i := range b.ops {
		if !b.ops[i].known {
			n++
			era[i] = n
			n++
			continue
		}
		era[i] = n
	}
	at := 0
	for i := range a.ops {
		e := era[img[i]]
		if e < at {
			r.add(Refused, Order, []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id}, "%s crosses a command of unknown effects", a.g.Describe(a.ops[i].node))
			return false
		}
		at = e
		x, y := b.ops[img[i]].node, a.ops[i].node
		if !sameBytes(b.g, a.g, x, y) {
			r.add(CannotTell, Values, []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id}, "%s has another view in a graph with commands of unknown effects", a.g.Describe(y))
			return false
		}
	}
	return true
}

// sameBytes reports whether two commands bind the same views; what lies in argument
// memory has been compared by value ([sameCommand]).
func sameBytes(bg, ag *ir.Graph, x, y ir.Node) bool {
	switch x := x.(type) {
	case *ir.Dispatch:
		y := y.(*ir.Dispatch)
		for i := range x.Bindings {
			p, q := bg.Resolve(x.Bindings[i]), ag.Resolve(y.Bindings[i])
			if p.Kind != q.Kind || !p.View.Equal(q.View) {
				return false
			}
		}
	case *ir.Copy:
		y := y.(*ir.Copy)
		return x.Src.Equal(y.Src) && x.Dst.Equal(y.Dst)
	case *ir.Fill:
		return x.Dst.Equal(y.(*ir.Fill).Dst)
	}
	return true
}
