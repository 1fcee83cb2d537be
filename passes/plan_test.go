package passes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

// commitsAmong strews commits into a graph that is ordered by barriers: ordered
// ones anywhere, bare ones where the order stays sound.
func commitsAmong(t *rapid.T, g *ir.Graph) {
	var out []ir.Node
	for _, n := range g.Nodes {
		switch rapid.IntRange(0, 9).Draw(t, "commit") {
		case 0:
			out = append(out, &ir.Commit{Order: ir.OrderEvent})
		case 1:
			out = append(out, &ir.Commit{})
		}
		out = append(out, n)
	}
	g.Nodes = out
	afterPasses(t, g, "barriers")
	switch rapid.IntRange(0, 3).Draw(t, "end") {
	case 0:
		g.Nodes = append(g.Nodes, &ir.Barrier{})
	case 1:
		g.Nodes = append(g.Nodes, &ir.Commit{Order: ir.CommitOrder(rapid.IntRange(0, 2).Draw(t, "end order"))})
	}
}

// ordered returns a function that reports whether two commands of two replays in a row are ordered:
// by a barrier in their common command buffer, or by an ordering commit. Commands are numbered
// through.
func ordered(g *ir.Graph) func(i, j int) bool {
	type place struct{ buffer, barrier, event int }
	var at []place
	var p place
	for range 2 {
		for _, n := range g.Nodes {
			switch n := n.(type) {
			case *ir.Barrier:
				p.barrier++
			case *ir.Commit:
				p.buffer++
				if n.Order != ir.OrderNone {
					p.event++
				}
			default:
				at = append(at, p)
			}
		}
	}
	return func(i, j int) bool {
		a, b := at[i], at[j]
		return a.event < b.event || a.buffer == b.buffer && a.barrier < b.barrier
	}
}

// A plan never needs a new order: if two commands that nothing orders, in one replay or across two,
// conflict after the plan, they conflicted before it.
func TestPlanNeedsNoNewOrder(t *testing.T) {
	shrunk := 0
	rapid.Check(t, func(t *rapid.T) {
		g := scratchGraph(t, rapid.Bool().Draw(t, "simple"))
		commitsAmong(t, g)
		h := g.Clone()
		rs := afterPasses(t, h, "plan")
		requireProved(t, g, h, "")
		if scratchBytes(h) < scratchBytes(g) {
			shrunk++
		} else {
			require.Zero(t, rs[0].Changed)
			require.Equal(t, text(g), text(h))
		}
		before, after := touchesOf(g), touchesOf(h)
		n := len(before)
		sure := ordered(g)
		for j := range 2 * n {
			for i := range j {
				if !sure(i, j) && after[i%n].conflicts(after[j%n]) {
					require.True(t, before[i%n].conflicts(before[j%n]), "commands %d and %d of %d conflict now, and nothing orders them\n%s\n%s", i, j, n, text(g), text(h))
				}
			}
		}
	})
	require.Positive(t, shrunk)
}

// Rename with all the bytes it wants, then plan: no more scratch than before plan,
// and proved as a whole.
func TestPlanAfterRename(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := scratchGraph(t, rapid.Bool().Draw(t, "simple"))
		h := g.Clone()
		afterPasses(t, h, "dce,rename{budget=unlimited},barriers")
		renamed, depth := scratchBytes(h), slowDepth(h)
		afterPasses(t, h, "plan")
		require.LessOrEqual(t, scratchBytes(h), renamed)
		require.LessOrEqual(t, slowDepth(h), max(depth, h.Stats().Epochs), "sharing adds chains, but none longer than the epochs")
		requireProved(t, g, h, "")
	})
}
