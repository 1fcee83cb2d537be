package ir_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

// Waits returns the edges by indices of commands, whatever the IDs are.
func TestWaits(t *testing.T) {
	edges := 0
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range irtest.Module(t).Graphs {
			id := func(place int32) ir.ID { return g.Nodes[place].(ir.Command).Num() }
			w := g.Waits()
			var got []ir.Edge
			for i, n := range g.Nodes {
				same, previous := w.Of(i)
				c, ok := n.(ir.Command)
				if !ok {
					require.Empty(t, same)
					require.Empty(t, previous)
					continue
				}
				for _, k := range same {
					require.Less(t, int(k), i)
					got = append(got, ir.Edge{From: id(k), To: c.Num()})
				}
				for _, k := range previous {
					got = append(got, ir.Edge{From: id(k), To: c.Num(), Previous: true})
				}
			}
			require.True(t, slices.Equal(g.Edges, got), "%v, want %v", got, g.Edges)
			edges += len(got)
			// The canonical order does not depend on the order of the edges before.
			shuffled := *g
			shuffled.Edges = rapid.Permutation(slices.Concat(g.Edges, g.Edges)).Draw(t, "edges")
			shuffled.SortEdges()
			require.True(t, slices.Equal(g.Edges, shuffled.Edges))
		}
	})
	require.Positive(t, edges)
}

func TestLevels(t *testing.T) {
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Scratch, Size: 64})
	fill := func() ir.Command { return b.Fill(ir.ViewOf(x, 0, 64), 0, "") }
	w0, w1 := fill(), fill()
	j := b.Join()
	b.After(j, w0, w1)
	r0 := fill()
	b.Commit(ir.OrderNone, "")
	alone, r1, last := fill(), fill(), fill()
	b.After(r0, j)
	b.After(r1, j)
	b.After(last, r0, alone)
	b.AfterPrevious(alone, last)
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, [][]int32{{0, 1, 5}, {3, 6}, {7}}, g.Levels())
	s := g.Stats()
	require.Equal(t, []int{6, 1, 7, 3, 3}, []int{s.Fills, s.Joins, s.Edges, s.Epochs, s.Largest})

	// With another ordering, no edges and joins are left.
	serial := g.Clone()
	serial.SetOrdering(ir.Serial)
	require.NoError(t, serial.Check())
	require.Empty(t, serial.Edges)
	require.Len(t, serial.Nodes, len(g.Nodes)-1)
	require.Len(t, g.Edges, 7)
}
