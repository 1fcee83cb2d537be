package reach_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/reach"
	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

// The paths found are those of the transitive closure.
func TestPathsAgainstTheClosure(t *testing.T) {
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range irtest.Module(t).Graphs {
			if g.Ordering != ir.ByEdges {
				continue
			}
			replays := rapid.IntRange(1, 3).Draw(t, "replays")
			places := len(g.Nodes)
			n := replays * places
			x, w := reach.New(g, replays), g.Waits()
			before := make([][]bool, n) // by node: the nodes with a path to it
			for i := range n {
				before[i] = make([]bool, n)
				same, previous := w.Of(i % places)
				r := i / places
				add := func(k int) {
					before[i][k] = true
					for j := range k {
						before[i][j] = before[i][j] || before[k][j]
					}
				}
				for _, k := range same {
					add(r*places + int(k))
				}
				for _, k := range previous {
					if r > 0 {
						add((r-1)*places + int(k))
					}
				}
			}
			for b := range int32(n) {
				var want []int32
				for a := range b {
					path, decided := x.Path(a, b)
					require.True(t, decided)
					require.Equal(t, before[b][a], path, "from %d to %d", a, b)
					if path {
						yes++
					} else {
						no++
						want = append(want, a)
					}
				}
				from := make([]int32, b)
				for i := range from {
					from[i] = int32(i)
				}
				if b > 0 {
					from = append(from, rapid.Int32Range(0, b-1).Draw(t, "twice"))
				}
				missing, decided := x.Missing(from, b)
				require.True(t, decided)
				slices.Sort(missing)
				require.True(t, slices.Equal(want, slices.Compact(missing)), "%v to %d, want %v", missing, b, want)
			}
		}
	})
	require.Positive(t, yes)
	require.Positive(t, no)
}

// Long chains, and nodes without a path in a large graph, take steps in proportion to
// the graph, and searches end with the budget.
func TestSteps(t *testing.T) {
	const n = 1 << 14
	b := ir.NewBuilder("g")
	var js []*ir.Join
	for i := range n {
		js = append(js, b.Join())
		if i > 1 {
			b.After(js[i], js[i-2]) // two chains
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	x := reach.New(g, 1)
	all := x.Left()
	for i := range int32(n - 2) {
		path, decided := x.Path(i%2, i+2)
		require.True(t, path && decided)
	}
	require.LessOrEqual(t, all-x.Left(), 2*n, "the tree answers")
	path, decided := x.Path(0, n-1)
	require.True(t, !path && decided)
	for decided {
		path, decided = x.Path(0, n-1)
		require.False(t, path)
	}
	require.Negative(t, x.Left())
}
