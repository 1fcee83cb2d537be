package passes_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// The passes about order keep random graphs (params, strides, aliases, may-writes, atomics,
// pillars, commits) free of races, over three replays in a row in one command buffer, and keep what
// they compute. Both package judge, which knows nothing of this package, and the prover confirm
// that.
func TestOrderIsJudged(t *testing.T) {
	o := judge.Options{Replays: judge.Streamed, Valuations: 3}
	moved := 0
	for seed := range uint64(60) {
		g, err := judge.Generate(rand.New(rand.NewPCG(11, seed)), o, func(g *ir.Graph) error {
			p, err := passes.ParsePipeline("annotate,barriers")
			require.NoError(t, err)
			_, err = passes.Run(context.Background(), g, p, passes.Options{})
			return err
		})
		require.NoError(t, err)
		for _, pipeline := range []string{"barriers", "reorder", "reorder,barriers", "schedule", "schedule,barriers", "reorder{lookahead=2},schedule,barriers"} {
			after := g.Clone()
			for _, r := range run(t, after, pipeline) {
				moved += r.Changed
			}
			j := judge.Judge(g, after, o)
			require.Equal(t, judge.Harmless, j.Verdict, "seed %d, %s: %s", seed, pipeline, j.Reason)
			require.Empty(t, j.Remarks, "seed %d, %s", seed, pipeline)
			r := prove.Check(context.Background(), g, after, prove.Options{})
			require.Equal(t, prove.Proved, r.Verdict, "seed %d, %s: %s", seed, pipeline, r)
		}
	}
	require.Positive(t, moved)
}
