package benchgraphs

import "github.com/mlxc/mlxc/ir"

// Layers returns a model of n layers. g is one layer, recorded as m commands or
// rewritten from them.
func Layers(g *ir.Graph, m, n int) *ir.Graph {
	out := g.Clone()
	out.Nodes = nil
	for i := range n {
		shift := ir.ID(i * m)
		for _, x := range g.Clone().Nodes {
			if d, ok := x.(*ir.Dispatch); ok {
				d.ID += shift
				for k := range d.From {
					d.From[k] += shift
				}
			}
			out.Nodes = append(out.Nodes, x)
		}
		out.Nodes = append(out.Nodes, &ir.Barrier{})
	}
	return out
}

// Chained makes the output y of a recorded layer the same memory as its input x, so
// that each layer depends on the one before. It panics if the layer has no such
// memories.
func Chained(g *ir.Graph) *ir.Graph {
	x, ok1 := g.MemoryNamed("x")
	y, ok2 := g.MemoryNamed("y")
	if !ok1 || !ok2 {
		panic("benchgraphs: a layer has an input x and an output y")
	}
	g.Memories[x].Kind, g.Memories[x].Init = ir.State, ir.FillU32(0)
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			for i := range d.Bindings {
				if v := &d.Bindings[i].View; d.Bindings[i].Kind == ir.BindView && v.Mem == y {
					v.Mem = x
				}
			}
		}
	}
	if err := g.Check(); err != nil {
		panic(err)
	}
	return g
}
