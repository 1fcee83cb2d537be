package optimize_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// benched is what BenchmarkPipeline runs.
const benched = "annotate,fuse,dce,rename,schedule,barriers,plan"

// cpuTime is what the process has used of all processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// read adds an output that depends on all scratch of g, so that few commands are dead.
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
// the families of internal/testing/benchgraphs: elementwise ones, of which long stretches are fused
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
		layer := benchgraphs.Chained(recorded.Graph(b, "llama_layer_decode"))
		m := layer.Stats().Dispatches
		return benchgraphs.Layers(layer, m, n/m)
	}}}
	for _, f := range benchgraphs.Families() {
		fs = append(fs, family{f.Name, func(n int) *ir.Graph { return read(f.Make(n)) }})
	}
	for _, f := range benchgraphs.ElementwiseFamilies() {
		fs = append(fs, family{f.Name, f.Make})
	}
	for _, f := range fs {
		benchPipeline(b, benched, f.name, f.make)
	}
}

// BenchmarkEdges runs the pass edges alone, and the proof of what it makes: also where many
// commands read what many have written (pieces), and where each writes within what the one
// before wrote (nested).
func BenchmarkEdges(b *testing.B) {
	fs := append(benchgraphs.Families(), benchgraphs.Family{Name: "pieces", Make: benchgraphs.Pieces}, benchgraphs.Family{Name: "nested", Make: benchgraphs.Nested})
	for _, f := range fs {
		benchPipeline(b, "edges", f.Name, f.Make)
	}
}

// benchPipeline measures a pipeline and its proof on graphs of a family.
func benchPipeline(b *testing.B, pipeline, family string, graph func(n int) *ir.Graph) {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(b, err)
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("%s/%d", family, n), func(b *testing.B) {
			before := graph(n)
			stats := before.Stats()
			commands := float64(stats.Dispatches + stats.Copies + stats.Fills)
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
