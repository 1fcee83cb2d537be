package prove_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/oracle"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Every mutation of a random graph is judged by the slow oracle, whose author
// had not seen the prover: what it calls harmful is never proved, and most of
// what it calls harmless is.
func TestMutationsAgainstOracle(t *testing.T) {
	o := oracle.Options{Replays: oracle.Waited, Cumulative: true, Valuations: 3}
	order := func(g *ir.Graph) error {
		_, err := passes.Run(g, passes.DefaultPipeline(), passes.Options{})
		return err
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var harmful, harmless, proved int
	refused := map[string]int{}
	for seed := range uint64(60) {
		g, err := oracle.Generate(rand.New(rand.NewPCG(7, seed)), o, order)
		require.NoError(t, err)
		for _, m := range oracle.Mutations {
			h, ok := m.Apply(rng, g)
			if !ok {
				continue
			}
			r := prove.Check(g, h, prove.Options{})
			j := oracle.Judge(g, h, o)
			switch j.Verdict {
			case oracle.Harmful:
				harmful++
				if r.Verdict == prove.Proved {
					t.Errorf("seed %d, %s: harmful (%s), but %s", seed, m.Name, j.Reason, r)
				}
			case oracle.Harmless:
				if len(j.Remarks) > 0 {
					continue // a strict prover may refuse these
				}
				harmless++
				if r.Verdict == prove.Proved {
					proved++
				} else {
					refused[fmt.Sprintf("%s: %s (%s)", m.Name, r.Verdict, r.Findings[0].Point)]++
				}
			}
		}
	}
	t.Logf("%d harmful, none proved; %d of %d harmless proved; not proved: %v", harmful, proved, harmless, refused)
	require.Greater(t, harmful, 500)
	require.Greater(t, harmless, 500)
}
