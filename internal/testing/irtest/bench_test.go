package irtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// layers is an annotated graph of a million commands: the layer of a model again
// and again.
func layers(b *testing.B, name string) *ir.Graph {
	g := recorded.Graph(b, name)
	p, err := passes.ParsePipeline("annotate")
	require.NoError(b, err)
	_, err = passes.Run(context.Background(), g, p, passes.Options{})
	require.NoError(b, err)
	return irtest.Repeat(g, 1_000_000/(g.Stats().Dispatches))
}

func perCommand(b *testing.B, f func(g *ir.Graph)) {
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill"} {
		b.Run(name, func(b *testing.B) {
			g := layers(b, name)
			b.ReportAllocs()
			for b.Loop() {
				f(g)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(g.Stats().Dispatches), "ns/command")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	perCommand(b, func(g *ir.Graph) { require.NoError(b, g.Check()) })
}

func BenchmarkClone(b *testing.B) { perCommand(b, func(g *ir.Graph) { g.Clone() }) }

func BenchmarkStats(b *testing.B) { perCommand(b, func(g *ir.Graph) { g.Stats() }) }
