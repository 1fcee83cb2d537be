package metamorph_test

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

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/metamorph"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

var graphs = flag.Int("metamorph.graphs", 300, "random graphs that TestPasses tries")

// particulars matches what differs between findings that say the same.
var particulars = regexp.MustCompile(`#\d+ \w+|[%@$][\w.]+(\[[^]]*\])?|\d+`)

// schedules is the number of orders tried for each stream.
const schedules = 20

// recipes draws recipes.
func recipes() *rapid.Generator[metamorph.Recipe] {
	return rapid.Custom(func(t *rapid.T) metamorph.Recipe {
		op := rapid.Custom(func(t *rapid.T) (o metamorph.Op) {
			copy(o[:], rapid.SliceOfN(rapid.Byte(), len(o), len(o)).Draw(t, "op"))
			return o
		})
		return metamorph.Recipe{
			Params:  rapid.Bool().Draw(t, "params"),
			Effects: rapid.Uint8Max(2).Draw(t, "effects"),
			Commits: rapid.Uint8().Draw(t, "commits"),
			Extra:   rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "extra"),
			Carries: rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "carries"),
			Ops:     rapid.SliceOfN(op, 1, 14).Draw(t, "ops"),
			Passes:  rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "passes"),
		}
	})
}

func text(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// drawParams draws the params of consecutive replays of a recipe's graph.
func drawParams(g *ir.Graph, rng *rand.Rand) (out [][]uint32) {
	for range metamorph.Replays {
		v := make([]uint32, len(g.Params))
		if len(v) > 0 {
			v[0] = rng.Uint32N(4)
			v[1] = 1 + rng.Uint32N(min(3, 4-v[0]))
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
	rapid.Check(t, func(t *rapid.T) {
		r := recipes().Draw(t, "recipe")
		seed := rapid.Uint64().Draw(t, "seed")
		before, err := r.Graph()
		if err != nil {
			t.Fatalf("the recipe makes no graph: %v", err)
		}
		p, err := r.Pipeline()
		if err != nil {
			t.Fatalf("no pipeline: %v", err)
		}
		pipelines[metamorph.Text(p)]++
		rng := rand.New(rand.NewPCG(seed, 1))
		params := drawParams(before, rng)
		after := before.Clone()
		reports, err := passes.Run(context.Background(), after, p, passes.Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", metamorph.Text(p), err, text(before))
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
		if err := metamorph.Compare(device, before, after, params, schedules, rng); err != nil {
			t.Fatalf("%s: %v\n--- before.mlxt ---\n%s--- after.mlxt ---\n%s", metamorph.Text(p), err, text(before), text(after))
		}
	})
	t.Logf("proofs: %v; not proved, numbers and names aside: %v", verdicts, doubts)
	require.Greater(t, verdicts[prove.Proved]*100, *graphs*90)
	t.Logf("%d graphs, %d pipelines; passes that changed something: %v; kernels added: %v", *graphs, len(pipelines), changed, added)
	for _, p := range passes.All() {
		require.True(t, *graphs < 300 || changed[p.Name] > 0, "%s did nothing", p.Name)
	}
}

// random returns a recipe of random numbers, for tests that need no shrinking.
func random(rng *rand.Rand) (r metamorph.Recipe) {
	r.Params, r.Effects, r.Commits = rng.IntN(2) == 0, uint8(rng.IntN(3)), uint8(rng.IntN(256))
	for range 1 + rng.IntN(14) {
		var o metamorph.Op
		for i := range o {
			o[i] = byte(rng.IntN(256))
		}
		r.Ops = append(r.Ops, o)
	}
	for range rng.IntN(3) {
		r.Carries = append(r.Carries, byte(rng.IntN(256)))
	}
	for range 8 {
		r.Passes = append(r.Passes, byte(rng.IntN(256)))
	}
	return r
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
		g, err := random(rng).Graph()
		require.NoError(t, err)
		params := drawParams(g, rng)
		require.NoError(t, metamorph.Compare(device, g, g, params, 5, rng), text(g))
		for _, f := range faults {
			h := g.Clone()
			f.change(h)
			if metamorph.Compare(device, g, h, params, schedules, rng) != nil {
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
		g, err := random(rng).Graph()
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

// The barriers and commits of a stream order what they should.
func TestStreamOrder(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "stream.mlxt", []byte(`mlxt 1

graph g {
  memory %x input 4
  memory %s scratch 4
  memory %y output 4

  #0 copy %x[0:4] -> %s[0:4]
  commit
  #1 fill %y[0:4] 0x00
  barrier
  #2 copy %s[0:4] -> %y[0:4]
  commit event
}
`))
	require.NoError(t, err)
	s := metamorph.NewStream(m.Graphs[0], [][]uint32{nil, nil}, true)
	var got []string
	for i := range 6 {
		for j := range 6 {
			if s.Before(i, j) {
				got = append(got, fmt.Sprintf("%d<%d", i, j))
			}
		}
	}
	require.Equal(t, []string{"0<3", "0<4", "0<5", "1<2", "1<3", "1<4", "1<5", "2<3", "2<4", "2<5", "4<5"}, got)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, s.Order(metamorph.Written))
	require.Equal(t, []int{1, 2, 0, 4, 5, 3}, s.Order(metamorph.Adverse))
}

func ExampleRecipe() {
	r := metamorph.Recipe{Ops: []metamorph.Op{{5, 3}}, Passes: []byte{1, 1}}
	before, err := r.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	after := before.Clone()
	p, _ := passes.ParsePipeline("annotate,barriers")
	if _, err := passes.Run(context.Background(), after, p, passes.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	var device backend.Device = cpu.New(1)
	fmt.Println(metamorph.Compare(device, before, after, [][]uint32{nil, nil, nil}, 20, rand.New(rand.NewPCG(1, 1))))
	// Output: <nil>
}
