package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
)

// fuse replaces the norm and the multiplication by one norm.
func fuse(t *testing.T, g *ir.Graph) (*ir.Graph, *ir.Dispatch) {
	out := g.Clone()
	norm, mul := out.Nodes[0].(*ir.Dispatch), out.Nodes[2].(*ir.Dispatch)
	norm.Binding(1).View = mul.Binding(1).View
	norm.Binding(2).View = mul.Binding(2).View
	norm.Binding(5).Bytes = ir.ValueBytes(uint32(1))
	out.Nodes = append(out.Nodes[:1], out.Nodes[3:]...)
	require.NoError(t, out.Check())
	return out, norm
}

// A norm and a product equal one norm with a weight if nothing comes between. The judge sees that by terms, and that
// nearly the same is something else.
func TestTerms(t *testing.T) {
	before := recorded.Graph(t, "norm_residual")
	// Unlike the three commands, the two after fusion need an order between replays.
	before.Nodes = append(before.Nodes, &ir.Barrier{})
	testTerms(t, before.Clone())
	// Halves of elements are cells of their own if a command touches half an element.
	y, ok := before.MemoryNamed("y")
	require.True(t, ok)
	before.Nodes = append(before.Nodes, &ir.Copy{ID: 3, Src: ir.ViewOf(0, 2, 2), Dst: ir.ViewOf(y, 6, 2)}, &ir.Barrier{})
	testTerms(t, before)
}

func testTerms(t *testing.T, before *ir.Graph) {
	require.NoError(t, before.Check())
	require.True(t, judge.Close(before, judge.Options{}))
	fused := func(change func(g *ir.Graph, norm *ir.Dispatch)) *ir.Graph {
		after, norm := fuse(t, before)
		norm.Effects = nil
		change(after, norm)
		require.NoError(t, after.Check())
		return after
	}
	terms := judge.Options{Terms: true}
	bits := func(after *ir.Graph) bool { return judge.SameBits(before, after, judge.Options{}) }
	after := fused(func(*ir.Graph, *ir.Dispatch) {})
	require.Equal(t, judge.Harmful, judge.Judge(before, after, judge.Options{}).Verdict, "nobody said that the two are equal")
	j := judge.Judge(before, after, terms)
	require.Equal(t, judge.Harmless, j.Verdict, j.Reason)
	require.Empty(t, j.Remarks)
	require.True(t, bits(after))

	// Moved elsewhere in scratch memory, together with its reader.
	after = fused(func(g *ir.Graph, norm *ir.Dispatch) {
		norm.Binding(2).View.Off = ir.Const(0)
		g.Nodes[2].(*ir.Dispatch).Binding(0).View.Off = ir.Const(0)
	})
	j = judge.Judge(before, after, terms)
	require.Equal(t, judge.Harmless, j.Verdict, j.Reason)

	for name, change := range map[string]func(g *ir.Graph, norm *ir.Dispatch){
		"eps":    func(_ *ir.Graph, n *ir.Dispatch) { n.Binding(3).Bytes = ir.ValueBytes(float32(1e-3)) },
		"weight": func(_ *ir.Graph, n *ir.Dispatch) { n.Binding(1).View = ir.ViewOf(0, 0, 256) }, // the input
		"input":  func(_ *ir.Graph, n *ir.Dispatch) { n.Binding(0).View = n.Binding(2).View },
		"another input": func(_ *ir.Graph, n *ir.Dispatch) {
			n.Binding(0).View = n.Binding(2).View
			n.Binding(2).View.Off = ir.Const(0)
		},
		"another place":    func(_ *ir.Graph, n *ir.Dispatch) { n.Binding(2).View.Off = ir.Const(0) },
		"the rest is gone": func(g *ir.Graph, _ *ir.Dispatch) { g.Nodes = g.Nodes[:1] },
	} {
		after := fused(change)
		require.Equal(t, judge.Harmful, judge.Judge(before, after, terms).Verdict, name)
		require.False(t, bits(after), name)
	}
	// What only another order shows.
	for name, change := range map[string]func(g *ir.Graph, norm *ir.Dispatch){
		"a barrier too few":   func(g *ir.Graph, _ *ir.Dispatch) { g.Nodes = append(g.Nodes[:1], g.Nodes[2:]...) },
		"no order of replays": func(g *ir.Graph, _ *ir.Dispatch) { g.Nodes = g.Nodes[:3] },
		"after its consumer":  func(g *ir.Graph, _ *ir.Dispatch) { g.Nodes[0], g.Nodes[2] = g.Nodes[2], g.Nodes[0] },
	} {
		require.Equal(t, judge.Harmful, judge.Judge(before, fused(change), terms).Verdict, name)
	}

	// Now the norm's own result has another reader.
	before.Nodes[4].(*ir.Dispatch).Binding(1).View = before.Nodes[0].(*ir.Dispatch).Binding(2).View
	require.NoError(t, before.Check())
	require.Equal(t, judge.Harmful, judge.Judge(before, fused(func(*ir.Graph, *ir.Dispatch) {}), terms).Verdict)
}
