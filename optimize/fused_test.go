package optimize_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

// Fusions are counted by operations, of one result and of the whole process, and are logged at the
// level of MLXC_DEBUG that asks for them.
func TestFused(t *testing.T) {
	g := recorded.Graph(t, "norm_residual")
	t.Setenv("MLXC_DEBUG", "1")
	before := map[string]int{}
	for _, f := range optimize.ProcessFused() {
		before[f.Ops] = f.Count
	}
	o := optimize.New("")
	var log bytes.Buffer
	o.Log = &log
	var total int
	for range 2 {
		out, err := o.Optimize(context.Background(), g)
		require.NoError(t, err)
		require.NotEmpty(t, o.Result.Fused)
		total = 0
		for _, f := range o.Result.Fused {
			total += f.Count
		}
		for _, n := range out.Nodes {
			if d, ok := n.(*ir.Dispatch); ok && len(d.From) > 1 {
				total--
			}
		}
		require.Zero(t, total, "each fused dispatch counts once")
	}
	for _, f := range o.Result.Fused {
		before[f.Ops] += 2 * f.Count
	}
	after := map[string]int{}
	for _, f := range optimize.ProcessFused() {
		after[f.Ops] = f.Count
	}
	require.Equal(t, before, after)
	require.Contains(t, log.String(), ": fused "+optimize.FusedText(o.Result.Fused)+" (in all: ")

	// Dispatches that were fused in an earlier run are not counted again.
	again, err := o.Optimize(context.Background(), g)
	require.NoError(t, err)
	_, err = o.Optimize(context.Background(), again)
	require.NoError(t, err)
	require.Empty(t, o.Result.Fused)

	// Without that level nothing is logged, and without the pass fuse nothing is fused.
	t.Setenv("MLXC_DEBUG", "")
	t.Setenv("MLXC_DISABLE", "fuse")
	log.Reset()
	o = optimize.New("")
	o.Log = &log
	_, err = o.Optimize(context.Background(), g)
	require.NoError(t, err)
	require.Empty(t, o.Result.Fused)
	require.Equal(t, "nothing", optimize.FusedText(o.Result.Fused))
	require.Empty(t, log.String())
}

// MLXC_DISABLE removes passes from a program's optimizer. An unknown name is an error that lists
// the passes.
func TestDisabledPasses(t *testing.T) {
	names := func(p passes.Pipeline) (out []string) {
		for _, s := range p {
			out = append(out, s.Pass.Name)
		}
		return out
	}
	all := names(passes.DefaultPipeline())
	require.Equal(t, all, names(optimize.New("").Options.Pipeline))
	t.Setenv("MLXC_DISABLE", "fuse, schedule")
	o := optimize.New("")
	require.NotContains(t, names(o.Options.Pipeline), "fuse")
	require.Len(t, o.Options.Pipeline, len(all)-2)
	require.Equal(t, []string{"annotate", "barriers"}, names(optimize.New("annotate,fuse,barriers").Options.Pipeline))
	g := recorded.Graph(t, "norm_residual")
	_, err := o.Optimize(context.Background(), g)
	require.NoError(t, err)

	t.Setenv("MLXC_DISABLE", "fusion")
	_, err = optimize.New("").Optimize(context.Background(), g)
	require.ErrorContains(t, err, `MLXC_DISABLE="fusion": there is no "fusion", there are annotate, fuse,`)
	t.Setenv("MLXC_DISABLE", "")
	t.Setenv("MLXC_DEBUG", "loud")
	_, err = optimize.New("").Optimize(context.Background(), g)
	require.ErrorContains(t, err, "MLXC_DEBUG")
}

// A dispatch may stand for thousands of copies, which no line can name.
func TestFusedTextIsShort(t *testing.T) {
	ops := func(n int) string { return strings.Repeat("+copy", n)[1:] }
	require.Equal(t, "2 "+ops(16), optimize.FusedText([]optimize.Fused{{Ops: ops(16), Count: 2}}))
	require.Equal(t, "2 "+ops(16)+"+… (17 operations)", optimize.FusedText([]optimize.Fused{{Ops: ops(17), Count: 2}}))
}
