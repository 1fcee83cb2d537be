package optimize_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/testkit/decoders"
	"github.com/mlxc/mlxc/internal/testkit/oracle"
	"github.com/mlxc/mlxc/internal/testkit/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Where nearly every access meets too many others to be told apart, passes leave more
// alone, and what they do is proved all the same.
func TestCrowdsAreProved(t *testing.T) {
	sample.Long(t)
	rng := rand.New(rand.NewPCG(uint64(sample.Run()), 5))
	var graphs []*ir.Graph
	for k := range 30 {
		g, err := decoders.Graph(uint64(1000 + 30*sample.Run() + k))
		require.NoError(t, err)
		graphs = append(graphs, g)
		g, err = oracle.Generate(rng, oracle.Options{}, func(g *ir.Graph) error {
			_, err := passes.Run(context.Background(), g, must(t, "annotate,barriers"), passes.Options{})
			return err
		})
		require.NoError(t, err)
		graphs = append(graphs, g)
	}
	less := 0
	for k, g := range graphs {
		run := func() *optimize.Result {
			r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
			require.NoError(t, err, k)
			require.Equal(t, prove.Proved, r.Proof.Verdict, "%d: %s\n%s", k, r.Proof, text(g))
			return r
		}
		whole := run()
		restore := bytestate.SetBound(bytestate.Limits{Crowd: 1 + k%3})
		r := run()
		restore()
		if len(whole.Undone()) == 0 { // else the prover cannot tell with or without bounds
			require.Empty(t, r.Undone(), "%d\n%s", k, text(g))
		}
		if text(r.Optimized) != text(whole.Optimized) {
			less++
		}
	}
	t.Logf("%d of %d graphs become another", less, len(graphs))
	require.Positive(t, less)
}

func must(t *testing.T, text string) passes.Pipeline {
	p, err := passes.ParsePipeline(text)
	require.NoError(t, err)
	return p
}
