package irtest

import "github.com/mlxc/mlxc/ir"

// Repeat returns g with its list of nodes n times in a row, the commands under
// new ids: a graph of any length whose commands are those of a real one.
func Repeat(g *ir.Graph, n int) *ir.Graph {
	out := g.Clone()
	nodes, next := out.Nodes, ir.ID(0)
	out.Nodes, out.Source = make([]ir.Node, 0, n*len(nodes)), nil
	for range n {
		for _, x := range nodes {
			x = ir.CloneNode(x)
			if c, ok := x.(ir.Command); ok {
				c.Renumber(next, nil)
				next++
			}
			out.Nodes = append(out.Nodes, x)
		}
	}
	return out
}
