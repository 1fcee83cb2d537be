package isel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// A proposal that computes the right terms but does not write all elements of the result is refused.
func TestVerifyComparesRegions(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "test", []byte(`mlxt 1

graph g {
  memory %x input 256 f32[64]
  memory %y output 256 f32[64]
  memory %t scratch 256 f32[64]
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)

  #0 @silu (in = %x[0:256], out = %t[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
  barrier
  #1 @silu (in = %t[0:256], out = %y[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
}
`))
	require.NoError(t, err)
	g := m.Graphs[0]
	gr := &Group{Graph: g, Source: map[Operand]Operand{{1, 0}: {0, 1}}, Results: []Operand{{1, 1}}}
	for _, i := range []int{0, 2} {
		in, err := msl.Bind(g, g.Nodes[i].(*ir.Dispatch))
		require.NoError(t, err)
		gr.Members = append(gr.Members, in)
	}
	hit, err := Builtin().Generate(gr, false)
	require.NoError(t, err)
	lay, err := newLayout(gr)
	require.NoError(t, err)
	match := &matcher{lib: Builtin(), gr: gr, lay: lay}
	require.NoError(t, match.verify(hit))

	// The same dispatch, over half of the elements.
	less := *hit.Instance.Dispatch
	less.Grid[0] = ir.Ext(32)
	less.Bindings = append([]ir.Binding(nil), less.Bindings...)
	for i := range less.Bindings {
		less.Bindings[i].View.Len = ir.Const(128)
	}
	ds, err := msl.DeclarationsOf(&hit.Kernel)
	require.NoError(t, err)
	var in *decl.Instance
	in, err = ds[0].Bind(hit.Instance.Graph, &less)
	require.NoError(t, err)
	require.ErrorContains(t, match.verify(&Match{Instance: in, Kernel: hit.Kernel, Results: hit.Results}), "it writes %y[0:128], the group %y[0:256]")
}
