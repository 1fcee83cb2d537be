package prove_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// BenchmarkProof proves graphs of n recorded dispatches. ns/dispatch should not grow
// with n.
func BenchmarkProof(b *testing.B) {
	layer := benchgraphs.Chained(recorded.Graph(b, "llama_layer_decode"))
	m := layer.Stats().Dispatches
	for _, pipeline := range []string{"annotate,barriers", "annotate,fuse,barriers"} {
		for _, n := range []int{500, 5_000} {
			before, after := benchgraphs.Layers(layer, m, n), layer.Clone()
			p, err := passes.ParsePipeline(pipeline)
			require.NoError(b, err)
			_, err = passes.Run(context.Background(), after, p, passes.Options{})
			require.NoError(b, err)
			after = benchgraphs.Layers(after, m, n)
			b.Run(fmt.Sprintf("%s/%d", pipeline, m*n), func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					r := prove.Check(context.Background(), before, after, prove.Options{})
					require.Equal(b, prove.Proved, r.Verdict, "%s", r)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m*n), "ns/dispatch")
			})
		}
	}
}
