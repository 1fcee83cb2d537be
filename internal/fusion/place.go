package fusion

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/internal/isel"
	"github.com/mlxc/mlxc/ir"
)

// access is what a member touches and the fused dispatch still does.
type access struct {
	region ir.Region
	write  bool
}

// retained lists the accesses of a member that are left: its leaves, and the
// results that the fused dispatch writes.
func (r *round) retained(gr *group, m int) (out []access) {
	c := r.cmds[gr.members[m]]
	for k, j := range c.reads {
		if _, ok := gr.source[isel.Operand{Member: m, Arg: j}]; !ok {
			out = append(out, access{c.effects.Reads[k], false})
		}
	}
	for k, j := range c.writes {
		if slices.Contains(gr.hit.Like.Results, isel.Operand{Member: m, Arg: j}) {
			out = append(out, access{c.effects.Writes[k].Region, true})
		}
	}
	return out
}

// place finds the member in whose place the fused dispatch may stand, the last
// one first: what stands between it and any other member touches nothing that
// this member touched and the fused dispatch still touches.
func (r *round) place(gr *group) (at int, why string) {
	tries := append([]int{gr.members[len(gr.members)-1], gr.members[0]}, gr.members[1:len(gr.members)-1]...)
	for _, t := range tries {
		text := r.blocked(gr, t)
		if text == "" {
			return t, ""
		}
		if why == "" {
			why = text
		}
	}
	return -1, why
}

// blocked says what keeps the group from the place of member at.
func (r *round) blocked(gr *group, at int) string {
	first, last := r.at[gr.members[0]], r.at[gr.members[len(gr.members)-1]]
	target := r.at[at]
	for p := first + 1; p < last; p++ {
		n := r.cur[p]
		if n == nil {
			continue
		}
		if s, ok := n.(*sequence); ok {
			for _, x := range s.nodes {
				if _, ok := ir.NodeID(x); ok {
					n = x
				}
			}
		} else if i := r.from[p]; i < 0 || slices.Contains(gr.members, int(i)) {
			continue
		}
		e := ir.NodeEffects(n)
		for m, i := range gr.members {
			if q := r.at[i]; (q < p) == (target < p) {
				continue // both on one side of n
			}
			for _, a := range r.retained(gr, m) {
				if conflicts(r.g, a, e) {
					id, _ := ir.NodeID(n)
					return fmt.Sprintf("%s stands between and touches %s", id, r.g.FormatRegion(a.region))
				}
			}
		}
	}
	return ""
}

func conflicts(g *ir.Graph, a access, e *ir.Effects) bool {
	if !e.Known() {
		return true
	}
	for i := range e.Writes {
		if !hazard.Disjoint(g, a.region, e.Writes[i].Region) {
			return true
		}
	}
	if a.write {
		for i := range e.Reads {
			if !hazard.Disjoint(g, a.region, e.Reads[i]) {
				return true
			}
		}
	}
	return false
}

// barriers says on which sides of the fused dispatch, in the place of member
// at, a barrier must stand: a member that moved over one was ordered by it, and
// what was ordered before or behind that member must stay so.
func (r *round) barriers(gr *group, at int) (before, after bool) {
	target := r.at[at]
	for _, i := range gr.members {
		q := r.at[i]
		for p := min(q, target); p < max(q, target); p++ {
			crossed := false
			switch n := r.g.Nodes[p].(type) {
			case *ir.Barrier:
				crossed = true
			default:
				if s, ok := r.cur[p].(*sequence); ok {
					crossed = len(s.nodes) > 1
				}
				_ = n
			}
			if crossed {
				before = before || q > target
				after = after || q < target
			}
		}
	}
	return before, after
}
