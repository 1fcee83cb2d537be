package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/oracle"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
)

// normThenWeight says that a norm with a weight equals a norm with weight one and then
// a multiplication by the weight: the term of the first is the composition of the terms
// of the other two.
func normThenWeight(before, after *ir.Graph, d *ir.Dispatch) (oracle.Stand, bool) {
	if after.Kernels[d.Kernel].Function != "rmsfloat32" || d.Binding(5).Bytes[0] != 1 {
		return oracle.Stand{}, false
	}
	one, _ := after.MemoryNamed("one")
	view := func(v ir.View) oracle.Operand { return oracle.Operand{View: &v} }
	return oracle.Stand{Name: "norm then weight", Steps: []oracle.Step{
		{Of: 0, At: map[uint8]oracle.Operand{0: view(d.Binding(0).View), 1: view(ir.ViewOf(one, 0, 4)), 2: {Temp: 0}}},
		{Of: 1, At: map[uint8]oracle.Operand{0: {Temp: 0}, 1: view(d.Binding(1).View), 2: view(d.Binding(2).View)}},
	}}, true
}

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

func TestFusion(t *testing.T) {
	before := recorded.Graph(t, "norm_residual")
	// Unlike the three commands, the two after fusion need an order between replays.
	before.Nodes = append(before.Nodes, &ir.Barrier{})
	require.True(t, oracle.Close(before, oracle.Options{}))
	o := oracle.Options{Equivalences: []oracle.Equivalence{normThenWeight}}

	after, _ := fuse(t, before)
	j := oracle.Judge(before, after, o)
	require.Equal(t, oracle.Harmless, j.Verdict, j.Reason)
	require.Equal(t, oracle.Harmful, oracle.Judge(before, after, oracle.Options{}).Verdict, "nobody said that the two are equal")

	// Moved elsewhere in scratch memory, together with its reader.
	after, norm := fuse(t, before)
	norm.Binding(2).View.Off = ir.Const(0)
	after.Nodes[2].(*ir.Dispatch).Binding(0).View.Off = ir.Const(0)
	j = oracle.Judge(before, after, o)
	require.Equal(t, oracle.Harmless, j.Verdict, j.Reason)

	bad := map[string]func(g *ir.Graph, norm *ir.Dispatch){
		"another input": func(g *ir.Graph, n *ir.Dispatch) {
			n.Binding(0).View = n.Binding(2).View
			n.Binding(2).View.Off = ir.Const(0)
		},
		"another place":       func(g *ir.Graph, n *ir.Dispatch) { n.Binding(2).View.Off = ir.Const(0) },
		"a barrier too few":   func(g *ir.Graph, n *ir.Dispatch) { g.Nodes = append(g.Nodes[:1], g.Nodes[2:]...) },
		"the rest is gone":    func(g *ir.Graph, n *ir.Dispatch) { g.Nodes = g.Nodes[:1] },
		"no order of replays": func(g *ir.Graph, n *ir.Dispatch) { g.Nodes = g.Nodes[:3] },
		"after its consumer":  func(g *ir.Graph, n *ir.Dispatch) { g.Nodes[0], g.Nodes[2] = g.Nodes[2], g.Nodes[0] },
	}
	for name, change := range bad {
		after, norm := fuse(t, before)
		change(after, norm)
		require.NoError(t, after.Check(), name)
		require.Equal(t, oracle.Harmful, oracle.Judge(before, after, o).Verdict, name)
	}

	// Now the norm's own result has another reader.
	second := before.Clone()
	second.Nodes[4].(*ir.Dispatch).Binding(1).View = second.Nodes[0].(*ir.Dispatch).Binding(2).View
	require.NoError(t, second.Check())
	after, _ = fuse(t, second)
	require.Equal(t, oracle.Harmful, oracle.Judge(second, after, o).Verdict)
}
