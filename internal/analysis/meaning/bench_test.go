package meaning_test

import (
	"fmt"
	"testing"

	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
)

// BenchmarkOf reports the time for each command, which must not grow with the graph.
func BenchmarkOf(b *testing.B) {
	for _, f := range benchgraphs.Families() {
		for _, n := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", f.Name, n), func(b *testing.B) {
				g := f.Make(n)
				b.ReportAllocs()
				b.ResetTimer()
				for b.Loop() {
					if _, err := meaning.Of(b.Context(), g); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/command")
			})
		}
	}
}
