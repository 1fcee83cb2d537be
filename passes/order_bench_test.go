package passes_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/passes"
)

// BenchmarkOrder measures the passes about order on graphs with stored effects, from the effects to
// the new list. min-ns/command is the fastest run; other programs slowed down the others.
// testdata/gen/bench_reorder_peer.py measures ggml's reordering on the same graphs in turns with
// it.
func BenchmarkOrder(b *testing.B) {
	for _, f := range benchgraphs.Families() {
		for _, n := range []int{10_000, 100_000, 1_000_000} {
			g := f.Make(n)
			nodes := slices.Clone(g.Nodes)
			for _, pass := range []string{"reorder", "schedule", "barriers"} {
				b.Run(fmt.Sprintf("%s/%s/%d", pass, f.Name, n), func(b *testing.B) {
					least := time.Duration(1 << 62)
					for range b.N {
						g.Nodes = slices.Clone(nodes)
						start := time.Now()
						require.NoError(b, passes.RunAlone(pass, g))
						least = min(least, time.Since(start))
					}
					g.Nodes = nodes
					b.ReportMetric(float64(least.Nanoseconds())/float64(n), "min-ns/command")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// The number of operations a command, which are visits of tree nodes and edges, grows at most 1.5
// times from 1e4 to 1e5 commands (BenchmarkOrder goes to 1e6). What the passes allocate stays in
// proportion.
func TestOrderScales(t *testing.T) {
	sample.Seldom(t)
	for _, f := range benchgraphs.Families() {
		per := func(n int) (operations, allocations map[string]float64) {
			operations, allocations = map[string]float64{}, map[string]float64{}
			g := f.Make(n)
			nodes := slices.Clone(g.Nodes)
			table := hazard.NewTable(context.Background(), g)
			o := table.Order()
			operations["order"] = float64(table.Operations()+int64(len(o.Next))) / float64(n)
			table = hazard.NewTable(context.Background(), g)
			table.Latest(nil)
			operations["latest"] = float64(table.Operations()) / float64(n)
			for _, pass := range []string{"reorder", "schedule", "barriers"} {
				allocations[pass] = testing.AllocsPerRun(1, func() {
					g.Nodes = slices.Clone(nodes)
					require.NoError(t, passes.RunAlone(pass, g))
				})
			}
			return operations, allocations
		}
		o4, _ := per(10_000)
		o5, a5 := per(100_000)
		t.Logf("%s: operations a command %v at 1e4, %v at 1e5; allocations at 1e5: %v", f.Name, o4, o5, a5)
		for k := range o4 {
			require.InDelta(t, 1, o5[k]/o4[k], 0.5, "%s %s", f.Name, k)
		}
		for k, n := range a5 {
			require.Less(t, n, 10_000.0, "%s %s allocates by the command", f.Name, k)
		}
	}
}
