package irtest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

// Module draws a valid module.
func Module(t *rapid.T) *ir.Module {
	m := &ir.Module{}
	used := namer{}
	var shared []ir.Memory
	stateNames := namer{}
	for range rapid.IntRange(0, 2).Draw(t, "shared states") {
		s := ir.Memory{Name: stateNames.draw(t, "state name"), Kind: ir.State, Size: size(t), Alias: ir.NoMem}
		s.Storage = storage(t)
		s.Init = contents(t, s.Size, true)
		s.DType, s.Shape = shape(t, s.Size) // the type decides what a seed means
		shared = append(shared, s)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "graphs") {
		g := &gen{t: t, g: &ir.Graph{Name: used.draw(t, "graph name")}, shared: shared, privateState: fmt.Sprintf("state of %d ", i)}
		m.Graphs = append(m.Graphs, g.graph())
	}
	used = namer{}
	for range rapid.IntRange(0, 2).Draw(t, "data") {
		m.Data = append(m.Data, ir.Data{Name: used.draw(t, "data name"), Blob: blob(t, rapid.Int64Range(0, 40).Draw(t, "data length"))})
	}
	return m
}

// gen draws one graph.
type gen struct {
	t            *rapid.T
	g            *ir.Graph
	shared       []ir.Memory // states that other graphs may declare too
	privateState string      // prefix of the names of the other states
	ids          map[ir.ID]bool
	writable     []ir.MemID
	offset       bool // some dispatch takes an offset from argument memory
}

func (g *gen) graph() *ir.Graph {
	g.ids, g.offset = map[ir.ID]bool{}, false
	g.params()
	g.memories()
	g.kernels()
	g.g.Ordering = rapid.SampledFrom([]ir.Ordering{ir.ByBarriers, ir.ByBarriers, ir.Serial, ir.ByEdges}).Draw(g.t, "ordering")
	g.g.NextHost = g.chance(4, "next host")
	g.nodes()
	g.edges()
	return g.g
}

func (g *gen) bool(what string) bool { return rapid.Bool().Draw(g.t, what) }

// chance is true once in n draws; it shrinks to false.
func (g *gen) chance(n int, what string) bool {
	return rapid.IntRange(0, n-1).Draw(g.t, what) == n-1
}

func (g *gen) upTo(n int64, what string) int64 { return rapid.Int64Range(0, n).Draw(g.t, what) }
