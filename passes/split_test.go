package passes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

func runPasses(t require.TestingT, g *ir.Graph, pipeline string) []*passes.Report {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	r, err := passes.Run(context.Background(), g, p, passes.Options{})
	require.NoError(t, err)
	return r
}

// Ranges within ranges, and many reads of what many wrote, cost split no more for each command than
// other graphs do, counted in cells that hazards visit.
func TestSplitIsLinear(t *testing.T) {
	for name, of := range map[string]func(int) *ir.Graph{"nested": benchgraphs.Nested, "pieces": benchgraphs.Pieces} {
		work := func(n int) float64 {
			g := of(n)
			table := hazard.NewTable(context.Background(), g)
			begins := func(i int) bool { return i == n/10 || i == n-1 }
			table.Latest(begins)
			require.NotEmpty(t, commitsOf(func() *ir.Graph { runPasses(t, g, "split"); return g }()))
			return float64(table.Operations()) / float64(n)
		}
		small, large := work(4_000), work(16_000)
		t.Logf("%s: %.1f and %.1f cells a command", name, small, large)
		require.Less(t, large, 1.5*small+50, name)
	}
}

func commitsOf(g *ir.Graph) (out []*ir.Commit) {
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			out = append(out, c)
		}
	}
	return out
}

// Wherever split cuts, every conflicting pair is ordered over three replays, no new commit orders
// for nothing, everything before a fence's command buffer was ordered before that buffer, no
// command buffer begins with a barrier, and the report counts the existing commits.
func TestSplitOrdersEveryConflict(t *testing.T) {
	orders := map[ir.CommitOrder]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t, rapid.IntRange(1, 25).Draw(t, "commands"), rapid.Bool().Draw(t, "commits"))
		runBarriers(t, g)
		recorded := commitsOf(g)
		ids := idsOf(g)
		pipeline := fmt.Sprintf("split{first=%d,n=%d,max-ms=%v}", rapid.IntRange(1, 12).Draw(t, "first"), rapid.IntRange(1, 6).Draw(t, "n"), rapid.SampledFrom([]float64{0.001, 0.005, 0.02, 1}).Draw(t, "ms"))
		report := runPasses(t, g, pipeline)[0]
		require.Equal(t, ids, idsOf(g))
		if _, _, found := race(stream(g.Nodes, 3)); found {
			t.Fatalf("%s: a conflict that nothing orders", pipeline)
		}
		commits := commitsOf(g)
		require.Equal(t, len(commits)-len(recorded), report.Changed)
		for i, c := range commits {
			if slices.Contains(recorded, c) {
				continue
			}
			orders[c.Order]++
			if c.Order == ir.OrderNone {
				continue
			}
			if c.Order == ir.OrderFence {
				require.NotEqual(t, ir.OrderNone, commits[(i+len(commits)-1)%len(commits)].Order, "a fence behind a commit that orders nothing")
				require.Less(t, i, len(commits)-1)
			}
			was := c.Order
			c.Order = ir.OrderNone
			_, _, found := race(stream(g.Nodes, 3))
			require.True(t, found, "commit %d orders for nothing", i)
			c.Order = was
		}
		if len(commits) > len(recorded) {
			require.IsType(t, &ir.Commit{}, g.Nodes[len(g.Nodes)-1], "a split list ends in a commit")
		}
		idle := false
		for _, n := range g.Nodes {
			switch n.(type) {
			case *ir.Barrier:
				require.False(t, idle, "a barrier at the head of a command buffer")
				idle = true
			case *ir.Commit:
				idle = true
			default:
				idle = false
			}
		}
	})
	for _, o := range []ir.CommitOrder{ir.OrderNone, ir.OrderFence, ir.OrderEvent} {
		require.Positive(t, orders[o], "no cut has the order %s", o)
	}
}

func idsOf(g *ir.Graph) (out []ir.ID) {
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			out = append(out, c.Num())
		}
	}
	return out
}

// chain is a graph of fills of one memory, each of so many bytes and independent
// of all others, with a barrier behind the commands in after.
func chain(t require.TestingT, bytes []int64, after ...int) *ir.Graph {
	b := ir.NewBuilder("chain")
	for i, n := range bytes {
		m := b.Memory(ir.Memory{Name: fmt.Sprintf("m%d", i), Kind: ir.Output, Size: n})
		b.Fill(ir.ViewOf(m, 0, n), 0, "")
		if slices.Contains(after, i) {
			b.Barrier()
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// buffers returns the number of commands of each command buffer.
func buffers(g *ir.Graph) []int {
	out := []int{0}
	for _, n := range g.Nodes {
		if _, ok := n.(*ir.Commit); ok {
			out = append(out, 0)
		} else if _, ok := n.(ir.Command); ok {
			out[len(out)-1]++
		}
	}
	return out
}

func repeated(n int, bytes int64) []int64 { return slices.Repeat([]int64{bytes}, n) }

func TestSplitPlaces(t *testing.T) {
	// At 78 % of 68 GB/s, 5,304,000 bytes take 0.1 ms; a launch takes 0.0013 ms.
	const tenth = 5_304_000
	for _, c := range []struct {
		name, options string
		bytes         []int64
		barriers      []int
		want          []int
	}{
		{"too few", "", repeated(64, 8), nil, []int{64}},
		{"the first 64", "", repeated(65, 8), nil, []int{64, 1, 0}},
		{"the first tenth", "", repeated(2000, 8), nil, []int{200, 1800, 0}},
		{"as many as asked", "{first=10}", repeated(100, 8), nil, []int{10, 90, 0}},
		{"the others alike", "{first=10,n=4}", repeated(100, 8), nil, []int{10, 30, 30, 30, 0}},
		{"one", "{first=10,n=1}", repeated(100, 8), nil, []int{100}},
		{"at the epoch before", "{first=10}", repeated(100, 8), []int{7, 30}, []int{8, 92, 0}},
		{"at the epoch behind", "{first=10}", repeated(100, 8), []int{3, 12}, []int{13, 87, 0}},
		{"no epoch near", "{first=10}", repeated(100, 8), []int{2, 40}, []int{10, 90, 0}},
		{"the others at epochs", "{first=10,n=4}", repeated(100, 8), []int{7, 9, 35, 44, 69}, []int{10, 26, 34, 30, 0}},
		{"by time", "{n=1,max-ms=0.35}", repeated(7, tenth), nil, []int{3, 3, 1, 0}},
		{"by time, at epochs", "{n=1,max-ms=0.35}", repeated(7, tenth), []int{1, 3, 5}, []int{2, 2, 3, 0}},
		{"by time, in a long epoch", "{n=1,max-ms=0.35}", repeated(7, tenth), []int{0}, []int{1, 3, 3, 0}},
		{"one that takes too long", "{n=1,max-ms=0.35}", []int64{tenth, 9 * tenth, tenth, tenth}, nil, []int{1, 1, 2, 0}},
		{"by time, on a faster chip", "{n=1,max-ms=0.35,chip=m1-pro}", repeated(7, tenth), nil, []int{7}},
		{"by number and time", "{first=2,n=2,max-ms=0.35}", repeated(7, tenth), nil, []int{2, 3, 2, 0}},
	} {
		g := chain(t, c.bytes, c.barriers...)
		r := runPasses(t, g, "split"+c.options)[0]
		require.Equal(t, c.want, buffers(g), c.name)
		require.Equal(t, len(c.want)-1, r.Changed, c.name)
		remarks := fmt.Sprint(r.Remarks)
		require.Equal(t, c.name == "one that takes too long", strings.Contains(remarks, "a command buffer of its own and still more than 0.35 ms: 0.901 ms"), remarks)
		require.Equal(t, len(c.want) == 1, strings.Contains(remarks, "is enough"), remarks)
	}
	for _, bad := range []string{"first=0", "n=65", "n=x", "max-ms=0", "max-ms=x", "chip=m0"} {
		p, err := passes.ParsePipeline("split{" + bad + "}")
		require.NoError(t, err)
		_, err = passes.Run(context.Background(), chain(t, repeated(3, 8)), p, passes.Options{})
		want := bad + ": want a number"
		if bad == "chip=m0" {
			want = `there is no chip "m0"`
		}
		require.ErrorContains(t, err, want)
	}
}

// Recorded commits stay where they are, and serve as cuts.
func TestSplitKeepsCommits(t *testing.T) {
	g := chain(t, repeated(100, 8))
	own := &ir.Commit{Label: "mine"}
	g.Nodes = slices.Insert(g.Nodes, 12, ir.Node(own))
	runPasses(t, g, "split{first=10}")
	require.Equal(t, []int{12, 88}, buffers(g), "near enough to be the first cut")
	require.Same(t, own, g.Nodes[12])
	runPasses(t, g, "split{first=40}")
	require.Equal(t, []int{12, 28, 60, 0}, buffers(g))
}

// Many rows take the time of their operations, not of their bytes: those of a
// layer for one token and for sixteen differ by its products, of 16 rows instead
// of one, at about four operations (w·scale + bias, times x, added) for each of
// the layer's weights.
func TestSplitCountsOperations(t *testing.T) {
	ms := map[string]float64{}
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill"} {
		r := runPasses(t, recorded.Graph(t, name), "annotate,barriers,split")[2]
		require.Len(t, r.Remarks, 1)
		var commands int
		var v float64
		_, err := fmt.Sscanf(r.Remarks[0].Text, "%d commands modelled at %g ms", &commands, &v)
		require.NoError(t, err)
		ms[name] = v
	}
	const weights = 2*256*256 + 2*128*256 + 3*512*256
	want := 16 * 4 * weights / 1.3e12 * 1e3
	require.InDelta(t, want, ms["llama_layer_prefill"]-ms["llama_layer_decode"], 0.5*want)
}

// What split makes of the examples is proved.
func TestSplitIsProved(t *testing.T) {
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill", "ring_buffer", "two_streams", "norm_residual"} {
		for _, s := range []string{"{first=2,n=3}", "{first=5,n=2}", "{n=1,max-ms=0.01}"} {
			g := recorded.Graph(t, name)
			after := g.Clone()
			runPasses(t, after, "annotate,barriers,split"+s)
			r := prove.Check(context.Background(), g, after, prove.Options{})
			require.Equal(t, prove.Proved, r.Verdict, "%s, %s: %s", name, s, r)
		}
	}
}
