package prove_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
)

// The declarations of a source that a program has registered are believed only by a proof
// that is given the source, which names them as an assumption.
func TestChecksRegisteredSources(t *testing.T) {
	require.NoError(t, msl.Register("thrice.metal", `
// @kernel   thrice_float32
// @arg 0 x  device f32[n] read
// @arg 1 y  device f32[n] write
// @threads  n, 1, 1
// @group    _, _, _
// @term     y[i] = round(f32, x[i] * 3.0)
`))
	s := record.New("g")
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	s.Dispatch(s.Function("thrice_float32")).Buffer(0, x).Buffer(1, y).Threads(record.Size(4), [3]uint32{4, 1, 1})
	s.Barrier() // against the next replay
	before, err := s.Graph()
	require.NoError(t, err)
	check := func(after *ir.Graph, o prove.Options) *prove.Result {
		return prove.Check(context.Background(), before, after, o)
	}
	generated := func(text string) *ir.Graph {
		g := before.Clone()
		k := ir.Kernel{Library: ir.Library{Kind: ir.Generated}, Function: text}
		ds, err := msl.DeclarationsOf(&k)
		require.NoError(t, err)
		g.Kernels[0] = ds[0].Kernel("k")
		return g
	}
	const assumption = "kernels do what thrice.metal declares: thrice_float32"
	same, other := generated("out0[i] = round(f32, in0[i] * 3.0)"), generated("out0[i] = round(f32, in0[i] * 4.0)")
	for name, after := range map[string]*ir.Graph{"itself": before.Clone(), "generated": same} {
		r := check(after, prove.Options{Sources: []string{"thrice.metal", "unused.metal"}})
		require.Equal(t, prove.Proved, r.Verdict, "%s: %s", name, r)
		require.Equal(t, []string{assumption}, r.Assumptions)
		r = check(after, prove.Options{Sources: []string{"thrice.metal"}, Strict: true})
		require.Equal(t, prove.CannotTell, r.Verdict)
		require.Equal(t, "only given that "+assumption, r.Findings[0].Text)
		r = check(after, prove.Options{Sources: []string{"unused.metal"}})
		require.Equal(t, prove.CannotTell, r.Verdict)
		require.Contains(t, r.Findings[0].Text, "runs kernel thrice_float32, which is declared by thrice.metal, a source that a program has registered")
	}
	require.Equal(t, prove.Refused, check(other, prove.Options{Sources: []string{"thrice.metal"}}).Verdict, "the declaration says what it computes")

	// A kernel that only the graph after runs is asked about, too.
	r := prove.Check(context.Background(), same, before, prove.Options{})
	require.Equal(t, prove.CannotTell, r.Verdict)
	r = prove.Check(context.Background(), same, before, prove.Options{Sources: []string{"thrice.metal"}})
	require.Equal(t, prove.Proved, r.Verdict, "%s", r)
	require.Empty(t, prove.Check(context.Background(), same, same, prove.Options{Sources: []string{"thrice.metal"}}).Assumptions)
}
