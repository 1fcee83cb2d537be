package prove_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// layers repeats a layer, recorded as m commands or what became of them: a
// model of n of them.
func layers(g *ir.Graph, m, n int) *ir.Graph {
	out := g.Clone()
	out.Nodes = nil
	for i := range n {
		shift := ir.ID(i * m)
		for _, x := range g.Clone().Nodes {
			if d, ok := x.(*ir.Dispatch); ok {
				d.ID += shift
				for k := range d.From {
					d.From[k] += shift
				}
			}
			out.Nodes = append(out.Nodes, x)
		}
		out.Nodes = append(out.Nodes, &ir.Barrier{})
	}
	return out
}

// chained makes a layer's output its input, so that the next one depends on it.
func chained(b testing.TB, g *ir.Graph) *ir.Graph {
	x, ok1 := g.MemoryNamed("x")
	y, ok2 := g.MemoryNamed("y")
	require.True(b, ok1 && ok2)
	g.Memories[x].Kind, g.Memories[x].Init = ir.State, ir.FillU32(0)
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			for i := range d.Bindings {
				if v := &d.Bindings[i].View; d.Bindings[i].Kind == ir.BindView && v.Mem == y {
					v.Mem = x
				}
			}
		}
	}
	require.NoError(b, g.Check())
	return g
}

// The proof of a graph of n recorded dispatches; ns/dispatch should not grow
// with n.
func BenchmarkProof(b *testing.B) {
	layer := chained(b, recorded.Graph(b, "llama_layer_decode"))
	m := layer.Stats().Dispatches
	for _, pipeline := range []string{"annotate,barriers", "annotate,fuse,barriers"} {
		for _, n := range []int{500, 5_000} {
			before, after := layers(layer, m, n), layer.Clone()
			p, err := passes.ParsePipeline(pipeline)
			require.NoError(b, err)
			_, err = passes.Run(context.Background(), after, p, passes.Options{})
			require.NoError(b, err)
			after = layers(after, m, n)
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
