package passes_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// DropKernels drops kernels that the pipeline or the recording does not use. The remaining
// dispatches name the same kernels as before.
func TestUnusedKernelsAreDropped(t *testing.T) {
	const text = `mlxt 1
graph g {
  memory %x input 64 f32[16]
  memory %y output 64 f32[16]
  memory %t scratch 64
  kernel @never builtin "v_Expfloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
  kernel @own source "own.metal" sha256 0000000000000000000000000000000000000000000000000000000000000001 "own" args(0 a: device f32 read, 1 b: device f32 write)
  #0 @silu (in = %x, out = %t) grid threads [16, 1, 1] of [16, 1, 1]
  #1 @own (a = %x, b = %y) grid threads [16, 1, 1] of [16, 1, 1]
      effects complete reads %x writes must %y
  barrier
}
`
	m, err := mlxt.Parse(context.Background(), "t", []byte(text))
	require.NoError(t, err)
	r, err := optimize.Run(context.Background(), m.Graphs[0], optimize.Options{Pipeline: passes.DefaultPipeline()})
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict, r.Proof)
	require.Len(t, r.Optimized.Kernels, 1)
	require.Equal(t, "own", r.Optimized.Kernels[0].Name)
	require.NoError(t, r.Optimized.Check())
	last := r.Rows[len(r.Rows)-1].Remarks
	require.Equal(t, "kernels: done: 2 that no dispatch uses are left out", last[len(last)-1].String())
	require.Len(t, m.Graphs[0].Kernels, 3, "the recording keeps its own")

	r, err = optimize.Run(context.Background(), m.Graphs[0], optimize.Options{})
	require.NoError(t, err)
	require.Len(t, r.Optimized.Kernels, 3, "nothing was asked for")
	require.Zero(t, passes.DropKernels(&ir.Graph{}))
}

// A recording leaves the order at its end to the host. The figures count a barrier there all the
// same, so that the pass that adds it does not seem to add one. They do not count it if it is not
// needed.
func TestBarriersAreCountedAsTheOrderNeedsThem(t *testing.T) {
	const text = `mlxt 1
graph g {
  memory %x input 64
  memory %y output 64
  memory %t scratch 64
  #0 copy %x -> %t
  barrier
  #1 copy %t -> %y
}
`
	m, err := mlxt.Parse(context.Background(), "t", []byte(text))
	require.NoError(t, err)
	r, err := optimize.Run(context.Background(), m.Graphs[0], optimize.Options{Pipeline: passes.DefaultPipeline()})
	require.NoError(t, err)
	require.Equal(t, 1, r.Before.Stats.Barriers)
	require.Equal(t, 2, r.Before.Barriers, "#0 of the next replay overwrites what #1 reads")
	for _, row := range r.Rows {
		require.Equal(t, 2, row.After.Barriers, row.Pass)
		require.InDelta(t, r.Before.Modelled.GPU, row.After.Modelled.GPU, 1e-9, row.Pass)
	}

	// Two values are used in turn, so that the barriers within a replay also order each replay
	// after the one before it.
	const turns = `mlxt 1
graph g {
  memory %x input 64
  memory %y output 64
  memory %t scratch 64
  memory %u scratch 64
  #0 copy %x -> %t
  barrier
  #1 copy %t -> %u
  barrier
  #2 copy %u -> %y
  barrier
}
`
	m, err = mlxt.Parse(context.Background(), "t", []byte(turns))
	require.NoError(t, err)
	f, err := optimize.Compare(context.Background(), m.Graphs[0], costModel(t))
	require.NoError(t, err)
	require.Equal(t, 3, f.Stats.Barriers)
	require.Equal(t, 2, f.Barriers)
}

func costModel(t *testing.T) cost.Model {
	m, err := cost.Chip("")
	require.NoError(t, err)
	return m
}
