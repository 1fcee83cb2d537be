// Package part makes graphs of some of a graph's commands, which can be replayed by themselves.
package part

import "github.com/mlxc/mlxc/ir"

// Kept returns a copy of g in which all that commands write survives the replay, and can be read after it: scratch memory and
// outputs become states, which begin as zeros. So a part of its commands has a meaning too, whatever it leaves unwritten. What it
// hands on to the next replay of a submission is left out.
func Kept(g *ir.Graph) *ir.Graph {
	out := Of(g.Clone(), func(c ir.Command) bool { _, carry := c.(*ir.Carry); return !carry })
	out.Source = nil
	for i := range out.Memories {
		if m := &out.Memories[i]; m.Kind == ir.Scratch || m.Kind == ir.Output {
			m.Kind, m.Every = ir.State, false
		}
	}
	return out
}

// Of returns a graph with those commands of g for which keep returns true. Marks stay, and where edges order the graph, a join
// stands for each command that is left out, so that the others keep their order. The two graphs share what they have in common.
func Of(g *ir.Graph, keep func(c ir.Command) bool) *ir.Graph {
	out := *g
	out.Source = nil
	out.Nodes = make([]ir.Node, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if _, join := n.(*ir.Join); ok && !join && !keep(c) {
			if g.Ordering == ir.ByEdges {
				out.Nodes = append(out.Nodes, &ir.Join{ID: c.Num()})
			}
			continue
		}
		out.Nodes = append(out.Nodes, n)
	}
	return &out
}

// First returns a graph with the first n commands of g's list that are no joins.
func First(g *ir.Graph, n int) *ir.Graph {
	return Of(g, func(ir.Command) bool { n--; return n >= 0 })
}

// Commands lists the commands of g that are no joins.
func Commands(g *ir.Graph) (out []ir.Command) {
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			if _, join := n.(*ir.Join); !join {
				out = append(out, c)
			}
		}
	}
	return out
}
