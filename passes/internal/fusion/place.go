package fusion

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// obstacle is what keeps a group from being fused at some place.
type obstacle struct {
	g      *ir.Graph
	node   ir.Command
	region ir.Region
}

func (o *obstacle) String() string {
	id := o.node.Num()
	return fmt.Sprintf("%s stands between and touches %s", id, o.g.FormatRegion(o.region))
}

// place finds the member at whose place the fused dispatch can stand, trying the last one first. Nothing between that
// place and another member may conflict with the accesses of that member that the fused dispatch keeps.
func (r *round) place(gr *group) (at int32, why *obstacle) {
	members := gr.members()
	last := len(members) - 1
	for k := range members {
		t := members[0]
		switch k {
		case 0:
			t = members[last]
		case 1:
		default:
			t = members[k-1]
		}
		x := r.blocked(gr, t)
		if x == nil {
			return t, nil
		}
		if why == nil {
			why = x
		}
	}
	return -1, why
}

// changed reports whether a fusion in this round has moved or removed a command between the members of a group.
func (r *round) changed(gr *group) bool {
	members := gr.members()
	for p := r.at[members[0]] + 1; p < r.at[members[len(members)-1]]; p++ {
		if r.from[p] < 0 {
			continue
		}
		n := r.cur[p]
		if n == nil {
			return true
		}
		if _, ok := n.(*sequence); ok {
			return true
		}
	}
	return false
}

// blocked returns what keeps the group from standing at the place of member `at`, or nil.
func (r *round) blocked(gr *group, at int32) *obstacle {
	members := gr.members()
	first, last := r.at[members[0]], r.at[members[len(members)-1]]
	target := r.at[at]
	for p := first + 1; p < last; p++ {
		if r.cur[p] == nil {
			continue
		}
		n, _ := r.cur[p].(ir.Command)
		var e *ir.Effects
		if i := r.from[p]; i < 0 {
			continue
		} else if s, ok := r.cur[p].(*sequence); ok {
			n, e = s.cmd.node, s.cmd.effects
		} else if slices.Contains(members, i) {
			continue
		} else {
			e = r.cmds[i].effects
		}
		for _, x := range gr.v.kept {
			i := members[x.member]
			if q := r.at[i]; (q < p) == (target < p) {
				continue // both on the same side of n
			}
			if a := access(r.cmds[i].effects, x); conflicts(r.g, a, x.write, e) {
				return &obstacle{r.g, n, *a}
			}
		}
	}
	return nil
}

// access returns the region of a kept access.
func access(e *ir.Effects, x kept) *ir.Region {
	if x.write {
		return &e.Writes[x.index].Region
	}
	return &e.Reads[x.index]
}

// conflicts reports whether an access may conflict with a command of effects e.
func conflicts(g *ir.Graph, a *ir.Region, write bool, e *ir.Effects) bool {
	if !e.Known() {
		return true
	}
	for i := range e.Writes {
		if !bytestate.Disjoint(g, *a, e.Writes[i].Region) {
			return true
		}
	}
	if write {
		for i := range e.Reads {
			if !bytestate.Disjoint(g, *a, e.Reads[i]) {
				return true
			}
		}
	}
	return false
}

// barriers says on which sides of a fused dispatch at member `at` a barrier is needed: if a member moved over a
// barrier, everything that the barrier ordered relative to that member must stay ordered.
func (r *round) barriers(gr *group, at int32) (before, after bool) {
	target := r.at[at]
	for _, i := range gr.members() {
		q := r.at[i]
		for p := min(q, target); p < max(q, target); p++ {
			crossed := false
			switch r.g.Nodes[p].(type) {
			case *ir.Barrier:
				crossed = true
			default:
				if s, ok := r.cur[p].(*sequence); ok {
					crossed = s.before || s.after
				}
			}
			if crossed {
				before = before || q > target
				after = after || q < target
			}
		}
	}
	return before, after
}
