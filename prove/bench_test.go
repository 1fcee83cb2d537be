package prove_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// layers repeats a recorded layer: a model of n of them.
func layers(g *ir.Graph, n int) *ir.Graph {
	out := g.Clone()
	next := ir.ID(0)
	out.Nodes = nil
	for range n {
		c := g.Clone()
		for _, x := range c.Nodes {
			switch x := x.(type) {
			case *ir.Dispatch:
				x.ID = next
				next++
			case *ir.Copy:
				x.ID = next
				next++
			case *ir.Fill:
				x.ID = next
				next++
			}
			out.Nodes = append(out.Nodes, x)
		}
		out.Nodes = append(out.Nodes, &ir.Barrier{})
	}
	return out
}

// The proof of a graph of n dispatches; ns/dispatch should not grow with n.
func BenchmarkProof(b *testing.B) {
	g := graphs(b)["llama_layer_decode.txtar"]
	for _, n := range []int{500, 5_000} {
		before := layers(g, n)
		after := before.Clone()
		_, err := passes.Run(after, passes.DefaultPipeline(), passes.Options{})
		require.NoError(b, err)
		b.Run(fmt.Sprint(before.Stats().Dispatches), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				r := prove.Check(before, after, prove.Options{})
				require.Equal(b, prove.Proved, r.Verdict, "%s", r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(before.Stats().Dispatches), "ns/dispatch")
		})
	}
}
