package fusion

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/internal/isel"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// access is what a member touches and the fused dispatch still does.
type access struct {
	region ir.Region
	write  bool
}

// retained lists the accesses of a member that are left: its leaves, and the
// results that the fused dispatch writes.
func (r *round) retained(gr *group, m int) (out []access) {
	c := &r.cmds[gr.members[m]]
	for k, j := range c.reads {
		if _, ok := gr.source[isel.Operand{Member: m, Arg: j}]; !ok {
			out = append(out, access{c.effects.Reads[k], false})
		}
	}
	for k, j := range c.writes {
		if slices.Contains(gr.match.Results, isel.Operand{Member: m, Arg: j}) {
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
	first, last := r.cmds[gr.members[0]].at, r.cmds[gr.members[len(gr.members)-1]].at
	target := r.cmds[at].at
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
			if q := r.cmds[i].at; (q < p) == (target < p) {
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
	target := r.cmds[at].at
	for _, i := range gr.members {
		q := r.cmds[i].at
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

// describe builds the group that isel looks at: which loads have their source
// in it, and which results somebody else reads. It says no if a read sees a
// member's write but not exactly it.
func (r *round) describe(members []int) (*isel.Group, bool) {
	gr := &isel.Group{Graph: r.g, Source: map[isel.Operand]isel.Operand{}}
	for m, i := range members {
		c := &r.cmds[i]
		gr.Members = append(gr.Members, c.in)
		uses := r.flow.Reads(i)
		for k, j := range c.reads {
			for _, s := range uses[k].Sources {
				p := slices.Index(members, int(s.Command))
				if p < 0 {
					continue
				}
				if !r.linked(i, k) {
					return nil, false
				}
				gr.Source[isel.Operand{Member: m, Arg: j}] = isel.Operand{Member: p, Arg: r.cmds[s.Command].writes[s.Write]}
			}
		}
		defs := r.flow.Writes(i)
		for k, j := range c.writes {
			o := isel.Operand{Member: m, Arg: j}
			outside := defs[k].Final
			for _, u := range defs[k].Readers {
				outside = outside || !slices.Contains(members, int(u.Command))
			}
			if outside {
				gr.Results = append(gr.Results, o)
			} else {
				gr.Spare = append(gr.Spare, o)
			}
		}
	}
	return gr, true
}

// linked reports whether read k of command i is all that one must-write wrote,
// as elements of the same type.
func (r *round) linked(i, k int) bool {
	u := &r.flow.Reads(i)[k]
	s, ok := u.Single()
	if !ok {
		return false
	}
	p := &r.cmds[s.Command]
	if p.in == nil || !u.Region.Equal(r.flow.Writes(int(s.Command))[s.Write].Region) {
		return false
	}
	c := &r.cmds[i]
	return element(p.in, p.writes[s.Write]) == element(c.in, c.reads[k])
}

func element(in *decl.Instance, arg int) ir.DType { return in.Decl.Args[arg].Elem }
