package passes

import (
	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/ir"
)

// barriers drops every barrier and places as few as the order of the commands
// allows: one before each command that conflicts with something since the last.
// Putting a barrier as late as possible is optimal for a fixed order: every
// barrier that any correct placement needs lies in an interval of places, and
// taking the last place of the first interval stabs the most others.
//
// A barrier orders the commands of its own command buffer only. Where a
// conflict crosses commits that order nothing, the last of them becomes an
// event, which orders everything before it.
func barriers(g *ir.Graph, _ Values, r *Report) error {
	epoch := hazard.NewTracker(g)   // since the last barrier or ordered commit of this command buffer
	earlier := hazard.NewTracker(g) // of earlier command buffers that nothing orders yet
	buffer := []pending(nil)        // commands of this command buffer, for earlier once it is committed
	var bare *ir.Commit             // the last commit that orders nothing; set while earlier has anything
	recorded := g.Stats().Barriers
	out := make([]ir.Node, 0, len(g.Nodes))
	kept := 0
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			continue
		case *ir.Commit:
			out = append(out, n)
			epoch.Reset()
			if n.Order != ir.OrderNone {
				earlier.Reset()
			} else {
				for _, p := range buffer {
					earlier.Add(p.id, p.effects)
				}
				bare = n
			}
			buffer = buffer[:0]
			continue
		}
		id, ok := ir.NodeID(n)
		if !ok {
			out = append(out, n)
			continue
		}
		e := ir.NodeEffects(n)
		if c, ok := earlier.Conflict(e); ok {
			bare.Order = ir.OrderEvent
			r.Did(n, "%s on %s of an earlier command buffer: the commit before it now orders by event", c.Kind, c.With)
			earlier.Reset()
		}
		if c, ok := epoch.Conflict(e); ok {
			out = append(out, &ir.Barrier{})
			kept++
			if c.Kind == hazard.Unknown {
				r.Not(n, "barrier against %s: the effects of one of them are unknown", c.With)
			}
			epoch.Reset()
		}
		epoch.Add(id, e)
		buffer = append(buffer, pending{id, e})
		out = append(out, n)
	}
	if r != nil {
		r.Changed += max(recorded-kept, kept-recorded)
	}
	g.Nodes = out
	return nil
}

type pending struct {
	id      ir.ID
	effects *ir.Effects
}
