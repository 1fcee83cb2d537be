package profile

import "github.com/mlxc/mlxc/ir"

// Full is the graph with the effects that kernels declare.
func Full(g *Graph) *ir.Graph { return g.full }
