package fusion_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/passes/internal/fusion"
	"github.com/mlxc/mlxc/prove"
)

// The number of groups that fuse examines per command does not grow with the graph.
func TestGroupsScale(t *testing.T) {
	annotate, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	tried := func(n int) float64 {
		layer := benchgraphs.Chained(recorded.Graph(t, "llama_layer_decode"))
		m := layer.Stats().Dispatches
		g := benchgraphs.Layers(layer, m, n/m)
		_, err := passes.Run(context.Background(), g, annotate, passes.Options{})
		require.NoError(t, err)
		count := int64(0)
		fusion.Run(context.Background(), g, fusion.Options{Tried: &count})
		return float64(count) / float64(n)
	}
	few, many := tried(500), tried(20_000)
	t.Logf("groups a command: %.2f of 500, %.2f of 20,000", few, many)
	require.Positive(t, few)
	require.InDelta(t, 1, many/few, 0.5)
}

// Chains of elementwise commands with shared values are fused and proved in work that is linear in the number of
// commands, counted as groups examined and as bytes and objects allocated. Each chain is cut where a kernel is full.
func TestElementwiseScales(t *testing.T) {
	sample.Seldom(t)
	p, err := passes.ParsePipeline("annotate,fuse,dce,rename,schedule,barriers,plan")
	require.NoError(t, err)
	annotate, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	for _, f := range benchgraphs.ElementwiseFamilies() {
		type work struct{ tried, bytes, objects float64 }
		measure := func(n int) (w work) {
			before := f.Make(n)
			require.NoError(t, before.Check())
			g := before.Clone()
			_, err := passes.Run(context.Background(), g, annotate, passes.Options{})
			require.NoError(t, err)
			count := int64(0)
			fusion.Run(context.Background(), g, fusion.Options{Tried: &count, Generate: true})
			w.tried = float64(count) / float64(n)
			after := before.Clone()
			var from, to runtime.MemStats
			runtime.ReadMemStats(&from)
			_, err = passes.Run(context.Background(), after, p, passes.Options{})
			require.NoError(t, err)
			r := prove.Check(context.Background(), before, after, prove.Options{})
			runtime.ReadMemStats(&to)
			require.Equal(t, prove.Proved, r.Verdict, "%s", r)
			require.Less(t, after.Stats().Dispatches, n/20+2, f.Name)
			w.bytes, w.objects = float64(to.TotalAlloc-from.TotalAlloc)/float64(n), float64(to.Mallocs-from.Mallocs)/float64(n)
			return w
		}
		n, more := 1_000, 8_000
		if f.Name == "mixed" { // no two groups are alike
			n, more = 400, 1_200
		}
		few, many := measure(n), measure(more)
		t.Logf("%s: of %d, %.2f groups, %.0f bytes and %.2f objects a command; of %d %.2f, %.0f and %.2f", f.Name, n, few.tried, few.bytes, few.objects, more, many.tried, many.bytes, many.objects)
		require.Less(t, many.tried, 1.25*few.tried, f.Name)
		require.Less(t, many.bytes, 1.25*few.bytes, f.Name)
		require.Less(t, many.objects, 1.25*few.objects, f.Name)
	}
}

// Where a graph repeats itself, a kernel is sought for each group once, also for groups of copies, however long the
// graph is. What comes of it is what comes of searching around each command, and it is proved.
func TestCopiesScale(t *testing.T) {
	for _, f := range append(benchgraphs.CopyFamilies(), benchgraphs.ElementwiseFamilies()[:2]...) {
		judged := func(n int) int64 {
			before := f.Make(n)
			require.NoError(t, before.Check(), f.Name)
			_, err := passes.Run(context.Background(), before, pipeline(t, "annotate"), passes.Options{})
			require.NoError(t, err)
			run := func(o fusion.Options) *ir.Graph {
				g := before.Clone()
				fusion.Run(context.Background(), g, o)
				return g
			}
			count := int64(0)
			o := fusion.Options{Judged: &count, Generate: true}
			after := run(o)
			r := prove.Check(context.Background(), before, after, prove.Options{})
			require.Equal(t, prove.Proved, r.Verdict, "%s: %s", f.Name, r)
			if n < 1_000 {
				o.Judged = nil
				require.Equal(t, format(run(fusion.Anew(o))), format(after), f.Name)
			}
			return count
		}
		judged(100)
		few, many := judged(2_000), judged(8_000)
		t.Logf("%s: a kernel is sought for %d groups of 2,000 commands, and for %d of 8,000", f.Name, few, many)
		require.LessOrEqual(t, many, few+few/10, f.Name)
	}
}

// A kernel that moves values as they are could stand for any number of copies. It stands for as many as the prover
// compares, so that a long chain of copies becomes a few kernels, and the result is proved.
func TestFusionsStandForWhatIsCompared(t *testing.T) {
	for _, f := range benchgraphs.CopyFamilies() {
		if f.Name != "typed halves" {
			continue
		}
		before := f.Make(20_000)
		after, anew := before.Clone(), before.Clone()
		fusion.Run(context.Background(), after, fusion.Options{Generate: true})
		fusion.Run(context.Background(), anew, fusion.Anew(fusion.Options{Generate: true}))
		require.Equal(t, format(anew), format(after))
		most := 0
		for _, n := range after.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				most = max(most, len(d.From))
			}
		}
		require.Greater(t, most, 1_000)
		require.Less(t, len(after.Nodes), 50)
		r := prove.Check(context.Background(), before, after, prove.Options{})
		require.Equal(t, prove.Proved, r.Verdict, "%s", r)
	}
}

func pipeline(t *testing.T, text string) passes.Pipeline {
	p, err := passes.ParsePipeline(text)
	require.NoError(t, err)
	return p
}

func format(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }
