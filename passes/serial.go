package passes

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// explicit orders a graph by barriers and commits, for passes that read these or that change the
// order of the list. A serial graph gets a barrier after every command, and its bare commits become
// events where conflicts between command buffers need that; later passes find the barriers that are
// not needed. A graph ordered by edges gets the fewest barriers that its conflicts need in the
// order of its list.
func explicit(ctx context.Context, s *State) {
	g := s.Graph
	switch g.Ordering {
	case ir.ByBarriers:
		return
	case ir.ByEdges:
		g.SetOrdering(ir.ByBarriers)
		n := mend(ctx, g)
		s.About("the list", "edges: its order is written as %d barriers", n)
		return
	}
	g.Ordering = ir.ByBarriers
	if slices.ContainsFunc(g.Nodes, isBare) {
		layoutOf(g, s.hazards(ctx)).order(s)
	}
	barrier := ir.Node(&ir.Barrier{}) // all places share one, because it has no fields
	out := make([]ir.Node, 0, 2*len(g.Nodes)+1)
	open, placed := false, 0 // open: a command stands after the last barrier or commit
	for _, n := range g.Nodes {
		switch n.(type) {
		case *ir.Barrier, *ir.Commit:
			open = false
		case ir.Command:
			if open {
				out = append(out, barrier)
				placed++
			}
			open = true
		}
		out = append(out, n)
	}
	if open { // for the next replay
		out = append(out, barrier)
		placed++
	}
	g.Nodes, g.Source = out, withoutNodes(g.Source)
	s.About("the list", "serial: its order is written as %d barriers", placed)
}

func isBare(n ir.Node) bool {
	c, ok := n.(*ir.Commit)
	return ok && c.Order == ir.OrderNone
}

// withoutNodes returns s without the positions of nodes, for a graph whose list has changed.
func withoutNodes(s *ir.Source) *ir.Source {
	if s == nil {
		return nil
	}
	out := *s
	out.Nodes = nil
	return &out
}
