package prove

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/reach"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/passes"
)

// Proving the order of a graph that the pass edges made takes a bounded number of
// steps, searches and comparisons for each command, and a bounded number of edges: from
// 1e4 to 4e4 commands, also where many read what many wrote.
func TestOrderByEdgesIsLinear(t *testing.T) {
	p, err := passes.ParsePipeline("edges")
	require.NoError(t, err)
	families := append(benchgraphs.Families(), benchgraphs.Family{Name: "pieces", Make: benchgraphs.Pieces}, benchgraphs.Family{Name: "nested", Make: benchgraphs.Nested})
	for _, f := range families {
		work := func(n int) float64 {
			g := f.Make(n)
			_, err := passes.Run(context.Background(), g, p, passes.Options{})
			require.NoError(t, err)
			require.Less(t, len(g.Edges), 6*n, f.Name)
			o := order(recordedModel(context.Background(), g, nil))
			require.False(t, len(o.races)+len(o.around) > 0 || o.undecided, f.Name)
			return float64(reach.New(g, 2).Left()-o.paths.index.Left()+o.paths.looks) / float64(n)
		}
		small, large := work(10_000), work(40_000)
		t.Logf("%s: %.1f and %.1f steps a command", f.Name, small, large)
		require.Less(t, large, 1.5*small+1, "%s: four times the commands", f.Name)
	}
}
