package passes_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

func text(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// With an unlimited budget, the longest chain of conflicts is as short as the longest
// chain of values, in graphs whose values are read whole and in which no output or state
// is written twice.
func TestRenameUnlimitedReachesTheDepthOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := scratchGraph(t, true)
		h := g.Clone()
		rs := afterPasses(t, h, "rename{budget=unlimited}")
		require.Equal(t, slowValueDepth(g), slowDepth(h), "%s%s%s", remarks(rs), text(g), text(h))
		require.Equal(t, slowValueDepth(g), slowValueDepth(h))
	})
}

// Whatever the budget is, the result is proved, its longest chain of conflicts is no longer than
// before, it adds no more bytes than the budget allows, and no value moves without a gain.
func TestRenameKeepsItsBudgetAndMeaning(t *testing.T) {
	gained := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := scratchGraph(t, rapid.Bool().Draw(t, "simple"))
		depth := slowDepth(g)
		for _, b := range []struct {
			budget string
			bytes  int64
		}{{"0", 0}, {"16", 16}, {"0.25x", 96}, {"1x", 384}, {"1KiB", 1024}, {"unlimited", 1 << 40}} {
			h := g.Clone()
			rs := afterPasses(t, h, "rename{budget="+b.budget+"},barriers")
			requireProved(t, g, h, remarks(rs))
			require.LessOrEqual(t, scratchBytes(h), scratchBytes(g)+b.bytes)
			d := slowDepth(h)
			require.LessOrEqual(t, d, depth)
			if d < depth {
				gained[b.budget]++
			} else {
				require.Zero(t, rs[0].Changed, "moved something for nothing")
			}
		}
	})
	t.Logf("%d proved, %d not decided by the prover", provedSoFar, undecided)
	require.Less(t, 20*undecided, provedSoFar)
	t.Logf("graphs made less deep, by budget: %v", gained)
	for _, b := range []string{"0", "16", "0.25x", "1x", "unlimited"} {
		require.Positive(t, gained[b], "no graph gained anything with budget %s", b)
	}
}

// An independent judge: random graphs with foreign kernels, may-writes, strides,
// params, states and several command buffers mean the same afterwards.
func TestMemoryPassesAgainstOracle(t *testing.T) {
	o := judge.Options{Replays: judge.Waited, Valuations: 3}
	order := func(g *ir.Graph) error {
		_, err := passes.Run(context.Background(), g, annotateAndBarriers(t), passes.Options{})
		return err
	}
	changed := map[string]int{}
	for seed := range uint64(60) {
		g, err := judge.Generate(rand.New(rand.NewPCG(11, seed)), o, order)
		require.NoError(t, err)
		for _, p := range []string{"dce", "rename{budget=0},barriers", "rename{budget=unlimited},barriers", "plan", "dce,rename,barriers,plan"} {
			h := g.Clone()
			rs := afterPasses(t, h, p)
			j := judge.Judge(g, h, o)
			require.Equal(t, judge.Harmless, j.Verdict, "seed %d, %s: %s\n%s\n%s\n%s", seed, p, j.Reason, remarks(rs), text(g), text(h))
			if text(g) != text(h) {
				changed[p]++
			}
		}
	}
	t.Logf("graphs changed, of 60: %v", changed)
	require.Len(t, changed, 5, "a pass did nothing at all")
}

// requireProved requires a proof, or, where ranges depend on params and the prover cannot
// tell, that the oracle finds no difference.
func requireProved(t require.TestingT, g, h *ir.Graph, why string) {
	r := prove.Check(context.Background(), g, h, prove.Options{})
	if r.Verdict == prove.CannotTell {
		undecided++
		j := judge.Judge(g, h, judge.Options{Replays: judge.Waited})
		require.Equal(t, judge.Harmless, j.Verdict, "%s\n%s%s%s", j.Reason, why, text(g), text(h))
		return
	}
	provedSoFar++
	require.Equal(t, prove.Proved, r.Verdict, "%s\n%s%s%s", r, why, text(g), text(h))
}

// provedSoFar and undecided count what requireProved saw.
var provedSoFar, undecided int

// What limits the depth is said: an output that is written again cannot move.
func TestRenameSaysWhatLimitsTheDepth(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "t", []byte(`mlxt 1
graph g {
  memory %x input 16
  memory %y output 16
  memory %z output 16
  memory %t scratch 16
  #0 copy %x[0:16] -> %y[0:16]
  #1 copy %y[0:16] -> %z[0:16]
  #2 copy %x[0:16] -> %t[0:16]
  #3 copy %t[0:16] -> %y[0:16]
}
`))
	if err != nil {
		t.Fatal(err)
	}
	rs := afterPasses(t, m.Graphs[0], "rename{budget=unlimited}")
	require.Zero(t, rs[0].Changed)
	require.Equal(t, "rename{budget=unlimited} #3 copy: not done: it waits for an earlier access of %y[0:16]: output bytes cannot be renamed\n", remarks(rs))
}

func TestRenameBudgets(t *testing.T) {
	for _, bad := range []string{"", "x", "-1", "1.5", "12x3", "-1x", "9999999999GiB", "many"} {
		p, err := passes.ParsePipeline("rename{budget=" + bad + "}")
		require.NoError(t, err)
		g := small(t)
		_, err = passes.Run(context.Background(), g, p, passes.Options{})
		require.ErrorContains(t, err, "budget="+bad+": want bytes", bad)
	}
}

// There are sixty-four chains through two places. The more bytes may be added, the more chains run
// concurrently; with bytes for all of them, the depth is that of one chain.
func TestRenameTradesBytesForDepth(t *testing.T) {
	g := chains(64, false)
	depth := func(g *ir.Graph) int { // slowDepth is too slow for this graph
		_, n := hazard.NewTable(context.Background(), g).Levels()
		return n
	}
	depths := []int{depth(g)}
	for _, b := range []string{"0", "1x", "3x", "7x", "31x", "unlimited"} {
		h := g.Clone()
		afterPasses(t, h, "rename{budget="+b+"},barriers")
		requireProved(t, g, h, "")
		depths = append(depths, depth(h))
	}
	t.Log(depths)
	require.True(t, slices.IsSortedFunc(depths, func(a, b int) int { return b - a }), "%v", depths)
	for i, pairs := range []int{1, 2, 4, 8, 32} {
		// Each pair of places takes a new chain every two levels; greed costs a few.
		require.LessOrEqual(t, depths[i+1], 2*64/pairs+4)
	}
	require.Equal(t, 3, depths[len(depths)-1])
}

// One budget serves memories of both storage modes, and a value stays in its mode.
func TestRenameWithTwoStorageModes(t *testing.T) {
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 512})
	mems := []ir.MemID{b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 64}), b.Memory(ir.Memory{Name: "p", Kind: ir.Scratch, Storage: ir.Private, Size: 64})}
	for i := range int64(8) {
		v := ir.ViewOf(mems[i%2], 0, 64)
		b.Copy(v, ir.ViewOf(x, 0, 64), "")
		b.Copy(ir.ViewOf(y, 64*i, 64), v, "")
	}
	g := b.Unfinished()
	for _, k := range []struct {
		budget string
		depth  int
		bytes  [2]int64 // shared and private bytes added
	}{{"63", 8, [2]int64{0, 0}}, {"192", 4, [2]int64{64, 64}}, {"256", 4, [2]int64{64, 64}}, {"384", 2, [2]int64{192, 192}}, {"unlimited", 2, [2]int64{192, 192}}} {
		h := g.Clone()
		afterPasses(t, h, "rename{budget="+k.budget+"},barriers")
		requireProved(t, g, h, "")
		var bytes [2]int64
		for _, m := range h.Memories[len(g.Memories):] {
			bytes[m.Storage] += m.Size
		}
		t.Log(k.budget, slowDepth(h), bytes)
		for i, n := range h.Nodes {
			if c, ok := n.(*ir.Copy); ok && h.Memories[c.Dst.Mem].Kind == ir.Scratch {
				id := c.Num()
				require.Equal(t, ir.Storage(id/2%2), h.Memories[c.Dst.Mem].Storage, "node %d", i)
			}
		}
		require.LessOrEqual(t, slowDepth(h), k.depth)
		require.Equal(t, k.bytes, bytes, "budget %s", k.budget)
	}
}
