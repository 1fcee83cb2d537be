package judge_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

var graphs = flag.Int("judge.graphs", 300, "random graphs that TestPasses tries")

// particulars matches what differs between findings that say the same.
var particulars = regexp.MustCompile(`#\d+ \w+|[%@$][\w.]+(\[[^]]*\])?|\d+`)

// schedules is the number of orders tried for each stream.
const schedules = 20

// shrinking makes choices that rapid can shrink.
type shrinking struct{ *rapid.T }

func (c shrinking) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(c.T, "choice") }

// changing is a graph and a pipeline.
type changing struct {
	graph    *ir.Graph
	pipeline passes.Pipeline
}

// GoString is how rapid prints a failure.
func (c changing) GoString() string {
	return fmt.Sprintf("%s\n%s", judge.PipelineText(c.pipeline), text(c.graph))
}

// drawParams draws the params of consecutive replays of a graph of builtin kernels.
func drawParams(g *ir.Graph, rng *rand.Rand) (out [][]uint32) {
	for range 3 {
		v := make([]uint32, len(g.Params))
		if len(v) > 0 {
			v[0] = rng.Uint32N(3)
			v[1] = 1 + rng.Uint32N(min(2, 3-v[0]))
			v[2] = []uint32{0x3727c5ac, 0x3a83126f, 0x3f000000}[rng.IntN(3)] // 1e-5, 1e-3, 0.5
		}
		out = append(out, v)
	}
	return out
}

// Passes keep every bit of every output and state, in every order that their graphs
// allow.
func TestPasses(t *testing.T) {
	sample.Long(t)
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(*graphs)))
	device := cpu.New(1)
	defer func() { require.NoError(t, device.Close()) }()
	pipelines := map[string]int{}
	verdicts := map[prove.Verdict]int{}
	doubts := map[string]int{}  // why the prover did not prove graphs that compute the same bits
	changed := map[string]int{} // how often a pass did something
	added := map[string]int{}   // which kernels passes added
	drawn := rapid.Custom(func(t *rapid.T) changing {
		g, err := judge.GenerateBuiltin(shrinking{t})
		if err != nil {
			t.Fatal(err)
		}
		p, err := judge.Pipeline(shrinking{t})
		if err != nil {
			t.Fatal(err)
		}
		return changing{g, p}
	})
	rapid.Check(t, func(t *rapid.T) {
		c := drawn.Draw(t, "graph")
		seed := rapid.Uint64().Draw(t, "seed")
		before, p := c.graph, c.pipeline
		pipelines[judge.PipelineText(p)]++
		rng := rand.New(rand.NewPCG(seed, 1))
		params := drawParams(before, rng)
		after := before.Clone()
		reports, err := passes.Run(context.Background(), after, p, passes.Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", judge.PipelineText(p), err, text(before))
		}
		v := prove.Check(context.Background(), before, after, prove.Options{})
		verdicts[v.Verdict]++
		if v.Verdict != prove.Proved {
			doubts[v.Verdict.String()+": "+particulars.ReplaceAllString(v.Findings[0].Text, "_")]++
		}
		for i, r := range reports {
			if r.Changed > 0 {
				changed[p[i].Pass.Name]++
			}
		}
		for _, k := range after.Kernels[len(before.Kernels):] {
			added[k.Function]++
		}
		if err := judge.Compare(device, before, after, params, schedules, rng); err != nil {
			t.Fatalf("%s: %v\n--- before.mlxt ---\n%s--- after.mlxt ---\n%s", judge.PipelineText(p), err, text(before), text(after))
		}
	})
	t.Logf("proofs: %v; not proved, numbers and names aside: %v", verdicts, doubts)
	require.Greater(t, verdicts[prove.Proved]*100, *graphs*90)
	t.Logf("%d graphs, %d pipelines; passes that changed something: %v; kernels added: %v", *graphs, len(pipelines), changed, added)
	for _, p := range passes.All() {
		require.True(t, *graphs < 300 || changed[p.Name] > 0, "%s did nothing", p.Name)
	}
}

// The comparison sees the harm that a faulty pass does: without a barrier or commit
// that it needs, most graphs compute something else in some order, and so they do if
// two conflicting commands change places.
func TestFaultsShow(t *testing.T) {
	sample.Long(t)
	device := cpu.New(1)
	defer func() { require.NoError(t, device.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	trailing := 0
	faults := []struct {
		name   string
		change func(*ir.Graph)
	}{
		{"no barriers", func(g *ir.Graph) {
			g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool { _, ok := n.(*ir.Barrier); return ok })
		}},
		{"no barrier at the end", func(g *ir.Graph) {
			if _, ok := g.Nodes[len(g.Nodes)-1].(*ir.Barrier); ok {
				g.Nodes = g.Nodes[:len(g.Nodes)-1]
				trailing++
			}
		}},
		{"commits order nothing", func(g *ir.Graph) {
			for _, n := range g.Nodes {
				if c, ok := n.(*ir.Commit); ok {
					c.Order = ir.OrderNone
				}
			}
		}},
		{"the list turned round", func(g *ir.Graph) { slices.Reverse(g.Nodes) }},
		{"nothing carried", func(g *ir.Graph) {
			g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool { _, ok := n.(*ir.Carry); return ok })
		}},
		{"a command lost", func(g *ir.Graph) { g.Nodes = g.Nodes[1:] }},
	}
	seen := map[string]int{}
	for range 150 {
		g, err := judge.GenerateBuiltin(rng)
		require.NoError(t, err)
		params := drawParams(g, rng)
		require.NoError(t, judge.Compare(device, g, g, params, 5, rng), text(g))
		for _, f := range faults {
			h := g.Clone()
			f.change(h)
			if judge.Compare(device, g, h, params, schedules, rng) != nil {
				seen[f.name]++
			}
		}
	}
	t.Logf("%v; %d graphs end in a barrier", seen, trailing)
	for _, f := range faults {
		require.GreaterOrEqual(t, seen[f.name], 10, f.name)
	}
}

// The graphs have every feature that makes rewriting hard.
func TestGraphsAreVaried(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := map[string]int{}
	kernels := map[string]int{}
	commands := 0
	for range 400 {
		g, err := judge.GenerateBuiltin(rng)
		require.NoError(t, err)
		has := map[string]bool{"params": len(g.Params) > 0}
		for _, n := range g.Nodes {
			if _, ok := n.(ir.Command); ok {
				commands++
			}
			switch n := n.(type) {
			case *ir.Copy:
				has["copies"] = true
				has["params in a view"] = has["params in a view"] || !n.Dst.Off.IsConst()
			case *ir.Fill:
				has["fills"] = true
			case *ir.Carry:
				has["carries"] = true
				has["carries to a state"] = has["carries to a state"] || g.Memories[n.Dst.Mem].Kind == ir.State
			case *ir.Commit:
				has["commits"] = true
				has["bare commits"] = has["bare commits"] || n.Order == ir.OrderNone
			case *ir.Dispatch:
				kernels[g.Kernels[n.Kernel].Function]++
				has["stored effects"] = has["stored effects"] || n.Effects != nil
				has["unknown effects"] = has["unknown effects"] || n.Effects == nil
				has["a variable grid"] = has["a variable grid"] || !n.Grid[0].IsConst()
				for _, b := range n.Bindings {
					switch b.Kind {
					case ir.BindScalar:
						has["scalars of params"] = has["scalars of params"] || !b.Expr.IsConst()
					case ir.BindView:
						m := g.Memories[b.View.Mem]
						has["aliases"] = has["aliases"] || m.Alias != ir.NoMem
						has["states"] = has["states"] || m.Kind == ir.State
						has["params in a view"] = has["params in a view"] || !b.View.Off.IsConst()
						has["variable lengths"] = has["variable lengths"] || !b.View.Len.IsConst()
					}
				}
			}
		}
		for k, v := range has {
			if v {
				seen[k]++
			}
		}
	}
	t.Log(commands, seen, kernels)
	for _, k := range []string{"params", "copies", "fills", "carries", "carries to a state", "commits", "bare commits", "stored effects", "unknown effects", "a variable grid", "scalars of params", "aliases", "states", "params in a view", "variable lengths"} {
		require.GreaterOrEqual(t, seen[k], 25, k)
	}
	for _, k := range []string{"v_copyfloat32float32", "v_Silufloat32float32", "vv_Addfloat32", "vv_Multiplyfloat32", "g2_copyfloat32float32", "gg2_copyfloat32float32", "g2_Addfloat32", "rmsfloat32", "affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "rope_single_float32"} {
		require.GreaterOrEqual(t, kernels[k], 25, k)
	}
	require.Greater(t, commands, 400*4)
}
