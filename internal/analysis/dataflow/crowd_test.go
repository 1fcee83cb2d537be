package dataflow_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/testkit/benchgraphs"
)

// Where many read what many wrote, the pairs that are listed stay in proportion to
// the commands, and what is left out is said.
func TestSourcesAreLinear(t *testing.T) {
	pairs := func(n int) (per float64) {
		f := dataflow.Build(context.Background(), benchgraphs.Pieces(n))
		sources, readers := 0, 0
		for i := range f.Commands {
			for _, u := range f.Reads(i) {
				sources += len(u.Sources)
			}
			for _, d := range f.Writes(i) {
				readers += len(d.Readers)
			}
		}
		require.Equal(t, sources, readers)
		return float64(sources) / float64(n)
	}
	require.Equal(t, 50.0, pairs(200), "few are listed all")
	require.False(t, dataflow.Build(context.Background(), benchgraphs.Pieces(200)).Crowded())
	small, large := pairs(8_000), pairs(32_000)
	t.Logf("%.1f and %.1f pairs a command", small, large)
	require.Less(t, large, 1.5*small)
	require.Less(t, large, 100.0)

	f := dataflow.Build(context.Background(), benchgraphs.Pieces(8_000))
	require.True(t, f.Crowded())
	require.Contains(t, f.Why(f.Pillar()), "many that read what many wrote")
	require.True(t, f.Live(0), "what a crowded command may read is live")
}
