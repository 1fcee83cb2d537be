package passes_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// chains is n independent chains of three copies through two values of scratch,
// all in the same two places: whole, or of halves and wholes in turn.
func chains(n int64, halves bool) *ir.Graph {
	b := ir.NewBuilder("chains")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 512})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: n * 512})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 1024, Align: 256})
	for i := range n {
		size, off := int64(512), int64(0)
		if halves && i%2 == 1 {
			size, off = 256, 256*(i/2%2)
		}
		p, q := ir.ViewOf(s, off, size), ir.ViewOf(s, 512+off, size)
		b.Copy(p, ir.ViewOf(x, 0, size), "")
		b.Copy(q, p, "")
		b.Copy(ir.ViewOf(y, i*512, size), q, "")
	}
	return b.Unfinished()
}

// layers is one long chain: each value is read by the next command and the one
// after it, in an arena of four places.
func layers(n int64) *ir.Graph {
	b := ir.NewBuilder("layers")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 512})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 1024, Align: 256})
	slot := func(i int64) ir.View { return ir.ViewOf(s, (i&3)*256, 256) }
	b.Fill(slot(0), 0, "")
	for i := range n - 2 {
		b.Copy(slot(i+1), slot(i), "")
	}
	b.Copy(ir.ViewOf(y, 0, 256), slot(n-2), "")
	return b.Unfinished()
}

func BenchmarkMemoryPasses(b *testing.B) {
	for _, f := range []struct {
		name string
		make func(n int64) *ir.Graph
	}{
		{"whole", func(n int64) *ir.Graph { return chains(n/3, false) }},
		{"halves", func(n int64) *ir.Graph { return chains(n/3, true) }},
		{"layers", layers},
	} {
		for _, pass := range []string{"dce", "rename{budget=0}", "rename{budget=1x}", "rename{budget=unlimited}", "plan"} {
			for _, n := range []int64{1e4, 3e5} {
				b.Run(fmt.Sprintf("%s/%s/%d", f.name, pass, n), func(b *testing.B) {
					p, err := passes.ParsePipeline(pass)
					if err != nil {
						b.Fatal(err)
					}
					g := f.make(n)
					var marked []ir.Node
					for i, x := range g.Nodes {
						if i%8 == 7 {
							marked = append(marked, &ir.Barrier{})
						}
						marked = append(marked, x)
					}
					g.Nodes = marked
					b.ResetTimer()
					for range b.N {
						b.StopTimer()
						h := g.Clone()
						b.StartTimer()
						if _, err := passes.Run(context.Background(), h, p, passes.Options{}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/command")
				})
			}
		}
	}
}
