package prove_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/fusion"
	"github.com/mlxc/mlxc/internal/graphs"
	"github.com/mlxc/mlxc/internal/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// pipeline is what BenchmarkPipeline runs.
const pipeline = "annotate,fuse,dce,rename,schedule,barriers,plan"

// cpuTime is what the process has used of all processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// read adds an output that depends on all scratch of g, so that little is dead.
func read(g *ir.Graph) *ir.Graph {
	g.Memories = append(g.Memories, ir.Memory{Name: "out", Kind: ir.Output, Size: 16, Alias: ir.NoMem})
	out := ir.ViewOf(ir.MemID(len(g.Memories)-1), 0, 16)
	e := &ir.Effects{Complete: true, Writes: []ir.Write{{Region: out.Contiguous(), Must: true}}}
	last := ir.ID(0)
	written := map[ir.MemID]bool{}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			last = max(last, d.ID)
			for i := range d.Effects.Writes {
				written[d.Effects.Writes[i].Mem] = true
			}
		}
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Scratch && written[ir.MemID(i)] {
			e.Reads = append(e.Reads, ir.ViewOf(ir.MemID(i), 0, m.Size).Contiguous())
		}
	}
	g.Nodes = append(g.Nodes, &ir.Dispatch{ID: last + 1, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}, Effects: e})
	return g
}

// BenchmarkPipeline runs the passes and the proof over graphs of n commands:
// the layer of a model that is annotated, fused and proved term by term, and
// the families of internal/graphs: elementwise ones, of which long stretches are fused
// and proved, and those whose kernels have no declarations.
// ns/command is the processor time of the fastest run, the collector's included,
// so that other programs on the machine count less; beside it each pass with its
// checks, and the proof.
func BenchmarkPipeline(b *testing.B) {
	type family struct {
		name string
		make func(n int) *ir.Graph
	}
	fs := []family{{"layer", func(n int) *ir.Graph {
		layer := chained(b, recorded.Graph(b, "llama_layer_decode"))
		m := layer.Stats().Dispatches
		return layers(layer, m, n/m)
	}}}
	for _, f := range graphs.Families() {
		fs = append(fs, family{f.Name, func(n int) *ir.Graph { return read(f.Make(n)) }})
	}
	for _, f := range graphs.ElementwiseFamilies() {
		fs = append(fs, family{f.Name, f.Make})
	}
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(b, err)
	for _, f := range fs {
		for _, n := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				before := f.make(n)
				commands := float64(before.Stats().Dispatches)
				// A compiler's life is short: so does cmd/mlxc.
				defer debug.SetGCPercent(debug.SetGCPercent(400))
				least := time.Duration(1 << 62)
				var parts map[string]time.Duration
				b.ResetTimer()
				for range b.N {
					b.StopTimer()
					after := before.Clone()
					runtime.GC()
					b.StartTimer()
					now := map[string]time.Duration{}
					start := cpuTime()
					last := start
					_, err := passes.Run(context.Background(), after, p, passes.Options{After: func(s passes.Step, _ *ir.Graph) error {
						t := cpuTime()
						now[s.Pass.Name], last = t-last, t
						return nil
					}})
					require.NoError(b, err)
					r := prove.Check(context.Background(), before, after, prove.Options{})
					end := cpuTime()
					require.Equal(b, prove.Proved, r.Verdict, "%s", r)
					now["prove"] = end - last
					if end-start < least {
						least, parts = end-start, now
					}
				}
				b.StopTimer()
				for name, x := range parts {
					b.ReportMetric(float64(x.Nanoseconds())/commands, name)
				}
				b.ReportMetric(float64(least.Nanoseconds())/commands, "ns/command")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// The groups that fuse looks at, a command, do not grow with the graph.
func TestGroupsScale(t *testing.T) {
	annotate, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	tried := func(n int) float64 {
		layer := chained(t, recorded.Graph(t, "llama_layer_decode"))
		m := layer.Stats().Dispatches
		g := layers(layer, m, n/m)
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

// Chains of elementwise commands, with what they share, are fused and proved in work
// that is linear in the commands: groups that are looked at, and bytes and objects
// allocated, do not grow by command. Each is cut where a kernel is full.
func TestElementwiseScales(t *testing.T) {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	annotate, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	for _, f := range graphs.ElementwiseFamilies() {
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
		if f.Name == "mixed" { // each group is another
			n, more = 400, 1_200
		}
		few, many := measure(n), measure(more)
		t.Logf("%s: of %d, %.2f groups, %.0f bytes and %.2f objects a command; of %d %.2f, %.0f and %.2f", f.Name, n, few.tried, few.bytes, few.objects, more, many.tried, many.bytes, many.objects)
		require.Less(t, many.tried, 1.25*few.tried, f.Name)
		require.Less(t, many.bytes, 1.25*few.bytes, f.Name)
		require.Less(t, many.objects, 1.25*few.objects, f.Name)
	}
}
