package dataflow_test

import (
	"context"
	"testing"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// families are lists of n commands, each with two reads and a write: over an arena of
// eight slots that are used again and again; over two halves of a buffer and the whole
// of it in turn; or over a slot for each command.
var families = map[string]func(i int64) (a, b, c [2]int64){
	"arena":    func(i int64) (a, b, c [2]int64) { return slot(i - 1), slot(i - 2), slot(i) },
	"pingpong": func(i int64) (a, b, c [2]int64) { return half(i - 1), half(i - 2), half(i) },
	"fresh": func(i int64) (a, b, c [2]int64) {
		return [2]int64{i * 256, 256}, [2]int64{max(i-7, 0) * 256, 256}, [2]int64{i*256 + 256, 256}
	},
}

func slot(i int64) [2]int64 { return [2]int64{(i & 7) * 256, 256} }

func half(i int64) [2]int64 {
	switch i & 3 {
	case 0:
		return [2]int64{0, 512}
	case 1:
		return [2]int64{0, 256}
	case 2:
		return [2]int64{512, 512}
	}
	return [2]int64{256, 256}
}

func family(name string, n int64) *ir.Graph {
	b := ir.NewBuilder(name)
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: n*256 + 1024})
	k := b.Kernel(ir.Kernel{Name: "k"})
	view := func(x [2]int64) ir.Region { return ir.ViewOf(s, x[0], x[1]).Contiguous() }
	for i := range n {
		x, y, z := families[name](i)
		b.Dispatch(ir.Dispatch{Kernel: k, Effects: &ir.Effects{Complete: true, Reads: []ir.Region{view(x), view(y)}, Writes: []ir.Write{{Region: view(z), Must: true}}}})
	}
	return b.Unfinished()
}

func BenchmarkBuild(b *testing.B) {
	for _, name := range []string{"arena", "pingpong", "fresh"} {
		for _, n := range []int64{1e4, 1e6} {
			b.Run(name+"/"+map[int64]string{1e4: "1e4", 1e6: "1e6"}[n], func(b *testing.B) {
				g := family(name, n)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					dataflow.Build(context.Background(), g)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/command")
			})
		}
	}
}
