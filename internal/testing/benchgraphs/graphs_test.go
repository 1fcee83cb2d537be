package benchgraphs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

func TestFamilies(t *testing.T) {
	for _, f := range benchgraphs.Families() {
		for _, n := range []int{1, 17, 5000} {
			g := f.Make(n)
			require.NoError(t, g.Check(), f.Name)
			s := g.Stats()
			require.Equal(t, n, s.Dispatches, f.Name)
			require.Zero(t, s.Unannotated, f.Name)
			if n < 100 { // comparing is slow
				require.Empty(t, irtest.Diff(&ir.Module{Graphs: []*ir.Graph{g}}, &ir.Module{Graphs: []*ir.Graph{f.Make(n)}}))
			}
			if n == 5000 {
				_, d := hazard.NewTable(context.Background(), g).Levels()
				require.Greater(t, d, n/100, f.Name)
				require.Less(t, d, n, "%s: something may overlap", f.Name)
			}
		}
	}
}

// The work of a sweep for each command does not grow with the graph.
func TestOperationsPerCommand(t *testing.T) {
	for _, f := range benchgraphs.Families() {
		per := func(n int) (sweep, order, edges float64) {
			g := f.Make(n)
			table := hazard.NewTable(context.Background(), g)
			table.Levels()
			sweep = float64(table.Operations()) / float64(n)
			table = hazard.NewTable(context.Background(), g)
			o := table.Order()
			return sweep, float64(table.Operations()) / float64(n), float64(len(o.Next)) / float64(n)
		}
		s1, o1, e1 := per(10_000)
		s2, o2, e2 := per(100_000)
		t.Logf("%s: 1e4: %.1f operations a command for levels, %.1f for the order, %.2f edges; 1e5: %.1f, %.1f, %.2f", f.Name, s1, o1, e1, s2, o2, e2)
		require.InDelta(t, 1, s2/s1, 0.2, f.Name)
		require.InDelta(t, 1, o2/o1, 0.2, f.Name)
		require.InDelta(t, 1, e2/e1, 0.2, f.Name)
	}
}

func BenchmarkHazards(b *testing.B) {
	for _, f := range benchgraphs.Families() {
		for _, n := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", f.Name, n), func(b *testing.B) {
				g := f.Make(n)
				run := func(what string, do func(*hazard.Table)) {
					b.Run(what, func(b *testing.B) {
						b.ReportAllocs()
						for range b.N {
							do(hazard.NewTable(context.Background(), g))
						}
						b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/command")
					})
				}
				run("table", func(*hazard.Table) {})
				run("levels", func(t *hazard.Table) { t.Levels() })
				run("order", func(t *hazard.Table) { t.Order() })
			})
		}
	}
}
