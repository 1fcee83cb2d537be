package prove_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// ordered returns g with effects and with the fewest barriers. Its commands stay as
// they are.
func ordered(t *testing.T, g *ir.Graph) *ir.Graph { return optimized(t, g, "annotate,barriers") }

func optimized(t *testing.T, g *ir.Graph, pipeline string) *ir.Graph {
	out := g.Clone()
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	_, err = passes.Run(context.Background(), out, p, passes.Options{})
	require.NoError(t, err)
	return out
}

// racy names the recordings whose own barriers allow several results.
var racy = map[string]bool{"commits": true, "copies_and_fills": true, "unannotated": true}

// Every recording is proved against itself and against what the passes make of it.
func TestPassesAreProved(t *testing.T) {
	for _, name := range recorded.Names(t) {
		g := recorded.Graph(t, name)
		if !racy[name] {
			r := prove.Check(context.Background(), g, g.Clone(), prove.Options{})
			require.Equal(t, prove.Proved, r.Verdict, "%s against itself: %s", name, r)
		}
		r := prove.Check(context.Background(), g, ordered(t, g), prove.Options{})
		require.Equal(t, prove.Proved, r.Verdict, "%s ordered: %s", name, r)
		require.Equal(t, len(ids(g)), r.Commands)
		for _, pipeline := range []string{"", "annotate,fuse,dce,rename{budget=unlimited},reorder,barriers,plan,split,constants"} {
			r := prove.Check(context.Background(), g, optimized(t, g, pipeline), prove.Options{})
			require.Equal(t, prove.Proved, r.Verdict, "%s, %q: %s", name, pipeline, r)
		}
	}
}

func ids(g *ir.Graph) (out []int) {
	for i, n := range g.Nodes {
		if _, ok := n.(ir.Command); ok {
			out = append(out, i)
		}
	}
	return out
}

// The barriers pass places the fewest barriers, so each one is needed: dropping any is
// refused for lack of order.
func TestDroppedBarriersAreRefused(t *testing.T) {
	dropped := 0
	for _, name := range recorded.Names(t) {
		g := recorded.Graph(t, name)
		o := ordered(t, g)
		for i, n := range o.Nodes {
			if _, ok := n.(*ir.Barrier); !ok {
				continue
			}
			m := o.Clone()
			m.Nodes = append(m.Nodes[:i:i], m.Nodes[i+1:]...)
			r := prove.Check(context.Background(), g, m, prove.Options{})
			if name == "unannotated" || i == len(o.Nodes)-1 {
				// The recording has no barrier here either, before a command of unknown
				// effects or the next replay. The proof then assumes that it is free of
				// races here.
				r = prove.Check(context.Background(), g, m, prove.Options{Strict: true})
				require.NotEqual(t, prove.Proved, r.Verdict, "%s", r)
				continue
			}
			require.Equal(t, prove.Refused, r.Verdict, "%s without the barrier at node %d: %s", name, i, r)
			require.Equal(t, prove.Order, r.Findings[0].Point)
			dropped++
		}
	}
	require.Greater(t, dropped, 30)
}

// changed returns the proof of a mutation of one optimized graph.
func changed(t *testing.T, name string, change func(g *ir.Graph)) *prove.Result {
	g := recorded.Graph(t, name)
	o := ordered(t, g)
	for _, n := range o.Nodes { // without stored effects, so that only the change counts
		if d, ok := n.(*ir.Dispatch); ok && o.Kernels[d.Kernel].Library.Kind == ir.Builtin {
			d.Effects = nil
		}
	}
	change(o)
	require.NoError(t, o.Check())
	return prove.Check(context.Background(), g, o, prove.Options{})
}

func dispatch(g *ir.Graph, id ir.ID) *ir.Dispatch {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && d.ID == id {
			return d
		}
	}
	return nil
}

func swap(g *ir.Graph, x, y ir.ID) {
	at := map[ir.ID]int{}
	for i, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			at[c.Num()] = i
		}
	}
	i, j := at[x], at[y]
	g.Nodes[i], g.Nodes[j] = g.Nodes[j], g.Nodes[i]
}

// One mutation of each kind, with the verdict and the point of the proof that must
// notice it.
func TestMutations(t *testing.T) {
	const layer = "llama_layer_decode"
	cases := []struct {
		name   string
		graph  string
		change func(g *ir.Graph)
		want   prove.Verdict
		point  prove.Point
	}{
		{"independent dispatches swapped", layer, func(g *ir.Graph) { swap(g, 2, 3) }, prove.Proved, 0},
		{"dependent dispatches swapped", layer, func(g *ir.Graph) { swap(g, 0, 1) }, prove.Refused, prove.Values},
		{"inline byte", layer, func(g *ir.Graph) { dispatch(g, 0).Binding(3).Bytes[0] ^= 1 }, prove.Refused, prove.Interface},
		{"grid", layer, func(g *ir.Graph) { dispatch(g, 1).Grid[0] = ir.Ext(255) }, prove.Refused, prove.Interface},
		{"threadgroup", layer, func(g *ir.Graph) { dispatch(g, 1).Threadgroup[0] = 128 }, prove.Refused, prove.Interface},
		{"read elsewhere", layer, func(g *ir.Graph) {
			v := &dispatch(g, 2).Binding(3).View
			v.Off = v.Off.AddConst(-1024)
		}, prove.Refused, prove.Values},
		{"weight of another matrix", layer, func(g *ir.Graph) {
			dispatch(g, 3).Binding(0).View.Mem = dispatch(g, 4).Binding(0).View.Mem
		}, prove.Refused, prove.Values},
		{"cache row shifted", layer, func(g *ir.Graph) {
			for _, n := range g.Nodes {
				if d, ok := n.(*ir.Dispatch); ok && d.Op == "kv_write" {
					d.Binding(1).View.Off = ir.Const(0)
					return
				}
			}
		}, prove.CannotTell, prove.Values},
		{"provenance forged", layer, func(g *ir.Graph) { dispatch(g, 3).From = []ir.ID{4} }, prove.Proved, 0},
		{"provenance of nobody", layer, func(g *ir.Graph) { dispatch(g, 3).From = []ir.ID{99} }, prove.Proved, 0},
		{"param bound", layer, func(g *ir.Graph) { g.Params[0].Max = 30 }, prove.Refused, prove.Interface},
		{"state contents", layer, func(g *ir.Graph) {
			i, _ := g.MemoryNamed("k_cache")
			g.Memories[i].Init = ir.FillU32(1)
		}, prove.Refused, prove.Interface},
		{"weight seed", layer, func(g *ir.Graph) {
			i, _ := g.MemoryNamed("attn_q")
			g.Memories[i].Init.Seed++
		}, prove.Refused, prove.Interface},
		{"stored effects that leave bytes out", layer, func(g *ir.Graph) { dispatch(g, 3).Effects = &ir.Effects{Complete: true} }, prove.Refused, prove.Interface},
		{"stored effects gone", layer, func(g *ir.Graph) { dispatch(g, 3).Effects = nil }, prove.Proved, 0},
		{"live dispatch dropped", layer, func(g *ir.Graph) {
			for i, n := range g.Nodes {
				if c, ok := n.(ir.Command); ok && c.Num() == 3 {
					g.Nodes = append(g.Nodes[:i:i], g.Nodes[i+1:]...)
					return
				}
			}
		}, prove.Refused, prove.Values},
		{"last write dropped", "norm_residual", func(g *ir.Graph) { g.Nodes = g.Nodes[:len(g.Nodes)-1] }, prove.Refused, prove.FinalBytes},
		{"scratch renamed", "norm_residual", func(g *ir.Graph) {
			g.Memories = append(g.Memories, ir.Memory{Name: "fresh", Kind: ir.Scratch, Size: 512, Alias: ir.NoMem})
			fresh := ir.ViewOf(ir.MemID(len(g.Memories)-1), 0, 512)
			dispatch(g, 0).Binding(2).View = fresh
			dispatch(g, 1).Binding(0).View = fresh
		}, prove.Proved, 0},
		{"scratch renamed at the writer only", "norm_residual", func(g *ir.Graph) {
			g.Memories = append(g.Memories, ir.Memory{Name: "fresh", Kind: ir.Scratch, Size: 512, Alias: ir.NoMem})
			dispatch(g, 0).Binding(2).View = ir.ViewOf(ir.MemID(len(g.Memories)-1), 0, 512)
		}, prove.Refused, prove.Values},
		{"result in place of the operand", "norm_residual", func(g *ir.Graph) {
			v := dispatch(g, 0).Binding(2).View
			dispatch(g, 1).Binding(2).View = v
			dispatch(g, 2).Binding(0).View = v
		}, prove.Refused, prove.Order}, // the next replay overwrites what #2 may still read
		{"result in place of the operand, replays ordered", "norm_residual", func(g *ir.Graph) {
			v := dispatch(g, 0).Binding(2).View
			dispatch(g, 1).Binding(2).View = v
			dispatch(g, 2).Binding(0).View = v
			g.Nodes = append(g.Nodes, &ir.Barrier{})
		}, prove.Proved, 0},
		{"result beside the operand", "norm_residual", func(g *ir.Graph) {
			v := dispatch(g, 0).Binding(2).View
			v.Off = v.Off.AddConst(4)
			dispatch(g, 1).Binding(2).View = v
			dispatch(g, 2).Binding(0).View = v
			g.Nodes = append(g.Nodes, &ir.Barrier{})
		}, prove.Refused, prove.Aliasing},
		{"commit's order dropped", "commits", func(g *ir.Graph) {
			for _, n := range g.Nodes {
				if c, ok := n.(*ir.Commit); ok {
					c.Order = ir.OrderNone
				}
			}
		}, prove.Refused, prove.Order},
		{"crossing the unknown", "unannotated", func(g *ir.Graph) { swap(g, 1, 2) }, prove.Refused, prove.Order},
		{"foreign view moved", "two_streams", func(g *ir.Graph) {
			v := &dispatch(g, 0).Binding(1).View
			v.Off = v.Off.AddConst(0)
			v.Len = v.Len.AddConst(0)
			v.Mem = dispatch(g, 4).Binding(1).View.Mem
		}, prove.Refused, prove.Values},
		{"columns swapped in time", "ring_buffer", func(g *ir.Graph) { swap(g, 0, 1) }, prove.Proved, 0},
	}
	for _, c := range cases {
		r := changed(t, c.graph, c.change)
		require.Equal(t, c.want, r.Verdict, "%s: %s", c.name, r)
		if c.want != prove.Proved {
			require.Equal(t, c.point, r.Findings[0].Point, "%s: %s", c.name, r)
		}
	}
}

// Provenance is only a hint: it may be missing, or refer to an earlier file. And equal
// values are equal in both directions.
func TestChecksProvenance(t *testing.T) {
	strip := func(g *ir.Graph) *ir.Graph {
		g = g.Clone()
		for _, n := range g.Nodes {
			if c, ok := n.(ir.Command); ok {
				c.Renumber(c.Num(), nil)
			}
		}
		return g
	}
	for _, name := range recorded.Names(t) {
		g := recorded.Graph(t, name)
		if name == "unannotated" {
			continue // the recording races, and with the graphs exchanged that is a race of A
		}
		original := ordered(t, g)
		first := optimized(t, original, "annotate,fuse{generate=false},dce,rename,schedule,barriers,plan")
		second := optimized(t, first, "")
		for _, c := range []struct {
			what          string
			before, after *ir.Graph
		}{
			{"itself, provenance lost", original, strip(original)},
			{"optimized, provenance lost", original, strip(second)},
			{"optimized twice, after the recording", original, second},
			{"optimized twice, after the first time", first, second},
			{"optimized twice, after the first time, provenance lost", strip(first), strip(second)},
			{"the recording after the optimized", first, original},
			{"the recording after the optimized, provenance lost", strip(first), strip(original)},
			{"the recording after the optimized twice", second, original},
			{"the first after the second", second, first},
		} {
			r := prove.Check(context.Background(), c.before, c.after, prove.Options{})
			assert.Equal(t, prove.Proved, r.Verdict, "%s, %s: %s", name, c.what, r)
		}
	}
}
