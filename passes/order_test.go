package passes_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// grouped puts groups around commands of g, some of them within others.
func grouped(t *rapid.T, g *ir.Graph) {
	var out []ir.Node
	open := 0
	for _, n := range g.Nodes {
		switch k := rapid.IntRange(0, 11).Draw(t, "group"); {
		case k == 0:
			out = append(out, &ir.GroupBegin{Label: fmt.Sprint(len(out))})
			open++
		case k == 1 && open > 0:
			out = append(out, &ir.GroupEnd{})
			open--
		}
		out = append(out, n)
	}
	for range open {
		out = append(out, &ir.GroupEnd{})
	}
	g.Nodes = out
}

// labels returns the labels of the groups around each command.
func labels(g *ir.Graph) map[ir.ID][]string {
	out := map[ir.ID][]string{}
	var open []string
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.GroupBegin:
			open = append(open, n.Label)
		case *ir.GroupEnd:
			open = open[:len(open)-1]
		default:
			if c, ok := n.(ir.Command); ok {
				out[c.Num()] = append([]string{}, open...)
			}
		}
	}
	return out
}

func run(t require.TestingT, g *ir.Graph, pipeline string) []*passes.Report {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	r, err := passes.Run(context.Background(), g, p, passes.Options{})
	require.NoError(t, err)
	return r
}

type placed struct {
	id      ir.ID
	effects *ir.Effects
	buffer  int
	epoch   int // within the buffer
}

func places(g *ir.Graph) (out []placed) {
	var p placed
	used := false
	for _, n := range g.Nodes {
		switch n.(type) {
		case *ir.Barrier:
			if used {
				p.epoch++
			}
			used = false
		case *ir.Commit:
			p.buffer, p.epoch, used = p.buffer+1, 0, false
		default:
			if c, ok := n.(ir.Command); ok {
				p.id, p.effects = c.Num(), c.Touches()
				out = append(out, p)
				used = true
			}
		}
	}
	return out
}

// keeps requires that after holds the commands of before, each in its command
// buffer and its groups, conflicting ones in their order, and that consecutive
// replays of it have no race unless before's commits leave them unordered.
func keeps(t *rapid.T, before, after *ir.Graph) {
	b, a := places(before), places(after)
	at := map[ir.ID]int{}
	for i, p := range a {
		at[p.id] = i
	}
	require.Len(t, at, len(b))
	require.Len(t, a, len(b))
	for j := range b {
		require.Equal(t, b[j].buffer, a[at[b[j].id]].buffer, "%s left its command buffer", b[j].id)
		for i := range j {
			if conflict(b[i].effects, b[j].effects) {
				p, q := a[at[b[i].id]], a[at[b[j].id]]
				require.Less(t, at[p.id], at[q.id], "%s and %s conflict", p.id, q.id)
				require.True(t, p.buffer < q.buffer || p.epoch < q.epoch, "%s and %s conflict in one epoch", p.id, q.id)
			}
		}
	}
	require.Equal(t, labels(before), labels(after))
}

// proved requires that the prover proves after to compute what before does.
func proved(t *rapid.T, before, after *ir.Graph) {
	r := prove.Check(context.Background(), before, after, prove.Options{})
	require.Equal(t, prove.Proved, r.Verdict, "%s", r)
}

// greedyReorder is the greedy method of ggml and mlx-native as they write it, comparing
// commands pair by pair. What conflicts follows from effects, where they have a list of
// operations that may be reordered.
func greedyReorder(cs []placed, lookahead int) (out []ir.ID) {
	used := make([]bool, len(cs))
	var epoch []placed
	any := func(list []placed, c placed) bool {
		return slices.ContainsFunc(list, func(x placed) bool { return conflict(x.effects, c.effects) })
	}
	for i := range cs {
		if used[i] {
			continue
		}
		if i > 0 && cs[i].buffer != cs[i-1].buffer {
			epoch = nil
		}
		if any(epoch, cs[i]) {
			crossed := []placed{cs[i]}
			left := lookahead
			for j := i + 1; j < len(cs) && cs[j].buffer == cs[i].buffer && left > 0; j++ {
				if used[j] {
					continue
				}
				left--
				if any(epoch, cs[j]) || any(crossed, cs[j]) {
					crossed = append(crossed, cs[j])
					continue
				}
				used[j] = true
				epoch = append(epoch, cs[j])
				out = append(out, cs[j].id)
			}
			epoch = nil
		}
		epoch = append(epoch, cs[i])
		out = append(out, cs[i].id)
	}
	return out
}

func TestReorderIsGreedy(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 40).Draw(t, "n"), rapid.Bool().Draw(t, "commits"))
		grouped(t, g)
		// The recording gets the barriers that it needs: the prover refuses one with races.
		run(t, g, "barriers")
		lookahead := rapid.SampledFrom([]int{0, 1, 3, 64}).Draw(t, "lookahead")
		after := g.Clone()
		rs := run(t, after, fmt.Sprintf("reorder{lookahead=%d}", lookahead))
		var got []ir.ID
		for _, p := range places(after) {
			got = append(got, p.id)
		}
		cs := places(g)
		require.Equal(t, greedyReorder(cs, lookahead), got)
		require.Equal(t, ups(cs, got), rs[0].Changed, "one command that moves up is one move")
		moved += rs[0].Changed
		keeps(t, g, after)
		proved(t, g, after)
		run(t, after, "barriers")
		if i, j, found := race(stream(after.Nodes, 3)); found {
			t.Fatalf("race of %d and %d", i, j)
		}
		proved(t, g, after)
	})
	require.Positive(t, moved)
}

// ups counts the commands that stand before one recorded earlier.
func ups(cs []placed, order []ir.ID) (n int) {
	at := map[ir.ID]int{}
	for i, c := range cs {
		at[c.id] = i
	}
	for i, x := range order {
		for _, y := range order[i+1:] {
			if at[y] < at[x] {
				n++
				break
			}
		}
	}
	return n
}

// After schedule and barriers, each command buffer has as many epochs as its
// longest chain of conflicts has commands.
func TestScheduleReachesTheDepth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 40).Draw(t, "n"), rapid.Bool().Draw(t, "commits"))
		grouped(t, g)
		run(t, g, "barriers")
		after := g.Clone()
		run(t, after, "schedule{chip="+rapid.SampledFrom([]string{"m1", "m3-max", "m5-max"}).Draw(t, "chip")+"}")
		keeps(t, g, after)
		proved(t, g, after)
		require.Equal(t, depths(places(g)), epochs(places(after)), "before barriers")
		again := g.Clone()
		run(t, again, "schedule")
		once := again.Clone()
		run(t, again, "barriers")
		require.Equal(t, depths(places(g)), epochs(places(again)))
		if ds := depths(places(g)); len(ds) == 1 && again.Stats().Commits == 0 {
			_, depth := hazard.NewTable(context.Background(), g).Levels()
			require.Equal(t, depth, ds[0])
			barriers, _ := counts(again.Nodes)
			require.Contains(t, []int{ds[0] - 1, ds[0]}, barriers, "one more for the next replay")
		}
		if i, j, found := race(stream(again.Nodes, 3)); found {
			t.Fatalf("race of %d and %d", i, j)
		}
		proved(t, g, again)
		twice := g.Clone()
		run(t, twice, "schedule")
		require.Equal(t, places(once), places(twice), "two schedules of one graph differ")
	})
}

// depths returns the longest chain of conflicts of each command buffer.
func depths(cs []placed) map[int]int {
	out := map[int]int{}
	levels := make([]int, len(cs))
	for j := range cs {
		for i := range j {
			if cs[i].buffer == cs[j].buffer && conflict(cs[i].effects, cs[j].effects) {
				levels[j] = max(levels[j], levels[i]+1)
			}
		}
		out[cs[j].buffer] = max(out[cs[j].buffer], levels[j]+1)
	}
	return out
}

func epochs(cs []placed) map[int]int {
	out := map[int]int{}
	for _, c := range cs {
		out[c.buffer] = max(out[c.buffer], c.epoch+1)
	}
	return out
}

func TestLookaheadIsANumber(t *testing.T) {
	for _, v := range []string{"", "-1", "x", "1.5"} {
		p, err := passes.ParsePipeline("reorder{lookahead=" + v + "}")
		require.NoError(t, err)
		_, err = passes.Run(context.Background(), small(t), p, passes.Options{})
		require.ErrorContains(t, err, fmt.Sprintf("lookahead=%s: want a number from 0 on", v))
	}
}
