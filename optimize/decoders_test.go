package optimize_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/decoders"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Random decoders are proved with every pass, in both directions. A second run leaves nearly all of
// them unchanged, and the others become stable soon; docs/passes.md says what a second run finds in
// them.
func TestDecoders(t *testing.T) {
	sample.Long(t)
	const each = 60
	seeds, from := each, uint64(sample.Run()%sample.Rare*each)
	if sample.Whole() {
		seeds, from = sample.Rare*each, 0
	}
	changed, untold, dispatches, left := 0, 0, 0, 0
	for k := range seeds {
		seed := from + uint64(k)
		g, err := decoders.Graph(seed)
		require.NoError(t, err, seed)
		r := optimizeAll(t, g, seed)
		dispatches, left = dispatches+r.Before.Dispatches, left+r.After.Dispatches

		back := prove.Check(context.Background(), r.Optimized, g, prove.Options{})
		if back.Verdict == prove.Refused && foreigners(g) > foreigners(r.Optimized) {
			require.Contains(t, back.String(), "its kernel has no declaration: what it touches only after says", seed)
			untold++
		} else {
			require.Equal(t, prove.Proved, back.Verdict, "%d: %s", seed, back)
		}

		now, rounds := r, 0
		for before := ""; rounds < 8; rounds++ {
			before = text(now.Optimized)
			next := optimizeAll(t, now.Optimized, seed)
			require.LessOrEqual(t, next.After.Dispatches, now.After.Dispatches, seed)
			if now = next; text(now.Optimized) == before {
				break
			}
		}
		require.Less(t, rounds, 8, "%d does not come to rest", seed)
		if rounds > 0 {
			changed++
			t.Logf("%d is changed by %d more runs", seed, rounds)
		}
	}
	t.Logf("of %d graphs %d are changed by a second run, and %d lost a kernel that only the recording describes; %d dispatches became %d", seeds, changed, untold, dispatches, left)
	require.LessOrEqual(t, changed, 4+seeds/50)
}

// optimizeAll optimizes a graph, which must be proved with nothing undone.
func optimizeAll(t *testing.T, g *ir.Graph, seed uint64) *optimize.Result {
	r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
	require.NoError(t, err, seed)
	require.Equal(t, prove.Proved, r.Proof.Verdict, "%d: %s", seed, r.Proof)
	require.Empty(t, r.Undone(), seed)
	return r
}

func text(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// foreigners counts the dispatches of kernels without declaration.
func foreigners(g *ir.Graph) int { return strings.Count(text(g), "@engine (") }
