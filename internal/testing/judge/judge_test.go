package judge_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/ir"
)

func TestIdentityIsHarmless(t *testing.T) {
	same := func(g *ir.Graph, o judge.Options) {
		j := judge.Judge(g, g.Clone(), o)
		require.Equal(t, judge.Harmless, j.Verdict, "%s: %s\n%s", g.Name, j.Reason, text(g))
		require.Empty(t, j.Remarks, text(g))
	}
	for _, g := range recordedGraphs(t) {
		same(g, judge.Options{Valuations: 2})
	}
	for seed := range uint64(100) {
		g, o := generate(t, seed)
		same(g, o)
	}
}

// Many random executions find no difference that trying both orders of each race, and
// the written order, does not find.
func TestRandomExecutionsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	harmful := 0
	for seed := range uint64(25) {
		g, o := generate(t, 1000+seed)
		o.Random = 40
		j := judge.Judge(g, g, o)
		require.Equal(t, judge.Harmless, j.Verdict, j.Reason)
		for _, m := range judge.Mutations[:10] { // those that change the order
			h, ok := m.Apply(rng, g)
			if !ok {
				continue
			}
			o.Random, o.Exhaustive, o.Pairs = 60, -1, -1
			slow := judge.Judge(g, h, o)
			o.Random, o.Exhaustive, o.Pairs = -1, 0, 0
			fast := judge.Judge(g, h, o)
			if slow.Verdict == judge.Harmful {
				harmful++
				require.Equal(t, judge.Harmful, fast.Verdict, "%s: %s\n%s\n%s", m.Name, slow.Reason, text(g), text(h))
			}
		}
	}
	require.Greater(t, harmful, 30)
}

// The same seed gives the same graph and the same verdict.
func TestDeterminism(t *testing.T) {
	a, o := generate(t, 9)
	b, _ := generate(t, 9)
	require.Equal(t, text(a), text(b))
	for i, m := range judge.Mutations {
		x, ok := m.Apply(rand.New(rand.NewPCG(1, uint64(i))), a)
		y, again := m.Apply(rand.New(rand.NewPCG(1, uint64(i))), b)
		require.Equal(t, ok, again, m.Name)
		if ok {
			require.Equal(t, text(x), text(y), m.Name)
			require.Equal(t, judge.Judge(a, x, o), judge.Judge(b, y, o), m.Name)
		}
	}
}

// The generated graphs have each of the features that make judging hard.
func TestGeneratedGraphsAreVaried(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(150) {
		g, o := generate(t, 2000+seed)
		require.NoError(t, g.Check())
		require.Empty(t, judge.Undefined(g, o))
		has := map[string]bool{"params": len(g.Params) > 0, "edges": len(g.Edges) > 0}
		commands := 0
		for _, n := range g.Nodes {
			if _, ok := n.(ir.Command); ok {
				commands++
			}
			switch n := n.(type) {
			case *ir.Join:
				has["joins"] = true
				commands--
			case *ir.Barrier:
				has["barriers"] = true
			case *ir.Commit:
				has["commits"] = true
				has["bare commits"] = has["bare commits"] || n.Order == ir.OrderNone
			case *ir.Fill:
				has["fills"] = true
			case *ir.Copy:
				has["copies"] = true
			case *ir.Carry:
				has["carries"] = true
			case *ir.Dispatch:
				builtin := g.Kernels[n.Kernel].Library.Kind == ir.Builtin
				has["declared kernels"] = has["declared kernels"] || builtin
				has["unknown effects"] = has["unknown effects"] || !builtin && !n.Effects.Known()
				if n.Effects == nil {
					continue
				}
				for _, b := range n.Bindings {
					has["scalars"] = has["scalars"] || b.Kind == ir.BindScalar
					has["argument memory"] = has["argument memory"] || b.Kind == ir.BindView && g.Memories[b.View.Mem].Kind == ir.Argument
					arg, _ := g.Kernels[n.Kernel].Arg(b.Slot)
					has["constants in memory"] = has["constants in memory"] || b.Kind == ir.BindView && arg.Kind == ir.ConstantArg && !g.Memories[b.View.Mem].Kind.ReadOnly()
					has["unlisted views"] = has["unlisted views"] || arg.Name == "u"
					has["aliases"] = has["aliases"] || b.Kind == ir.BindView && g.Memories[b.View.Mem].Alias != ir.NoMem
				}
				for _, w := range n.Effects.Writes {
					has["may-writes"] = has["may-writes"] || !w.Must
					has["atomics"] = has["atomics"] || w.Atomic
					has["strided writes"] = has["strided writes"] || len(w.Dims) > 0
					has["writes at a param"] = has["writes at a param"] || !w.Off.IsConst()
				}
			}
		}
		require.GreaterOrEqual(t, commands, 4)
		require.LessOrEqual(t, commands, 25)
		for k, v := range has {
			if v {
				seen[k]++
			}
		}
	}
	t.Log(seen)
	for _, k := range []string{"params", "barriers", "commits", "bare commits", "edges", "joins", "fills", "copies", "carries", "declared kernels", "unknown effects", "scalars", "argument memory", "constants in memory", "unlisted views", "aliases", "may-writes", "atomics", "strided writes", "writes at a param"} {
		require.GreaterOrEqual(t, seen[k], 5, k)
	}
}
