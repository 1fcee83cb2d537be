package optimize_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/testing/decoders"
	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// If nearly every access meets too many others to be told apart, passes leave more alone, and their
// results are still proved.
func TestCrowdsAreProved(t *testing.T) {
	sample.Seldom(t)
	rng := rand.New(rand.NewPCG(uint64(sample.Run()), 5))
	var graphs []*ir.Graph
	for k := range 30 {
		g, err := decoders.Graph(uint64(1000 + 30*sample.Run() + k))
		require.NoError(t, err)
		graphs = append(graphs, g)
		g, err = judge.Generate(rng, judge.Options{}, func(g *ir.Graph) error {
			_, err := passes.Run(context.Background(), g, must(t, "annotate,barriers"), passes.Options{})
			return err
		})
		require.NoError(t, err)
		graphs = append(graphs, g)
	}
	less := 0
	for k, g := range graphs {
		run := func() *optimize.Result {
			r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
			require.NoError(t, err, k)
			require.Equal(t, prove.Proved, r.Proof.Verdict, "%d: %s\n%s", k, r.Proof, text(g))
			return r
		}
		whole := run()
		restore := bytestate.SetBound(bytestate.Limits{Crowd: 1 + k%3})
		r := run()
		restore()
		if len(whole.Undone()) == 0 { // else the prover cannot tell with or without bounds
			require.Empty(t, r.Undone(), "%d\n%s", k, text(g))
		}
		if text(r.Optimized) != text(whole.Optimized) {
			less++
		}
	}
	t.Logf("%d of %d graphs become another", less, len(graphs))
	require.Positive(t, less)
}

// Columns that many commands write, and bytes that many may write, are left alone. What stands
// before and after them is optimized as usual. The numbers are 1,000 columns and 2,000 may-writes,
// which are still told apart, and more columns than are told apart.
func TestManyColumnsAndMayWrites(t *testing.T) {
	sample.Seldom(t)
	for _, c := range []struct {
		name string
		n    int64
		each func(b *ir.Builder, k ir.KernelID, x, s, z ir.MemID, i, n int64)
		rest func(b *ir.Builder, s, z ir.MemID, n int64)
	}{
		{"columns", 1000, column, readAll},
		{"more columns", 6000, column, readAll},
		{"may-writes", 2000, mayWrite, nil},
	} {
		b := ir.NewBuilder("g")
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 256, DType: ir.F32, Shape: []int64{64}})
		s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: c.n*4*64 + 256})
		w := b.Memory(ir.Memory{Name: "t", Kind: ir.Scratch, Size: 4096})
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 512})
		z := b.Memory(ir.Memory{Name: "z", Kind: ir.Output, Size: c.n * 4 * 64})
		add := b.Kernel(msl.Declarations("vv_Addfloat32")[0].Kernel("add"))
		engine := b.Kernel(ir.Kernel{Name: "engine", Function: "engine", Library: ir.Library{Kind: ir.SourceFile, Path: "engine.metal", Digest: ir.Digest{1}},
			Args: []ir.Arg{{Slot: 0, Name: "x", Kind: ir.DeviceArg, Access: ir.ReadArg, Type: ir.F32}, {Slot: 1, Name: "y", Kind: ir.DeviceArg, Access: ir.ReadWriteArg, Type: ir.F32}}})
		chain := func(from, to ir.View) {
			for i := range int64(4) {
				next := ir.ViewOf(w, 256*i, 256)
				if i == 3 {
					next = to
				}
				b.Dispatch(ir.Dispatch{Kernel: add, Bindings: []ir.Binding{ir.BufferArg(0, from), ir.BufferArg(1, ir.ViewOf(x, 0, 256)), ir.BufferArg(2, next)},
					GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(64), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}})
				b.Barrier()
				from = next
			}
		}
		chain(ir.ViewOf(x, 0, 256), ir.ViewOf(y, 0, 256))
		b.Fill(ir.ViewOf(s, 0, 256), 0, "")
		b.Barrier()
		for i := range c.n {
			c.each(b, engine, x, s, z, i, c.n)
		}
		if c.rest != nil {
			c.rest(b, s, z, c.n)
		}
		chain(ir.ViewOf(y, 0, 256), ir.ViewOf(y, 256, 256))
		g, err := b.Graph()
		require.NoError(t, err, c.name)
		r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
		require.NoError(t, err, c.name)
		require.Equal(t, prove.Proved, r.Proof.Verdict, "%s: %s", c.name, r.Proof)
		require.Empty(t, r.Undone(), c.name)
		require.Equal(t, 2, r.Proof.Fused, c.name)
		require.Less(t, r.After.Barriers, r.Before.Barriers, c.name)
	}
}

// engineCall adds a dispatch of a kernel without declaration that reads and writes the given
// regions.
func engineCall(b *ir.Builder, k ir.KernelID, x, y ir.View, read, write ir.Region, must bool) {
	b.Dispatch(ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, x), ir.BufferArg(1, y)}, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1},
		Effects: &ir.Effects{Complete: true, Reads: []ir.Region{read}, Writes: []ir.Write{{Region: write, Must: must}}}})
	b.Barrier()
}

// column writes a column of a matrix of 64 rows of n elements.
func column(b *ir.Builder, k ir.KernelID, x, s, z ir.MemID, i, n int64) {
	r := ir.Region{Mem: s, Off: ir.Const(4 * i), Run: ir.Const(4), Dims: []ir.Dim{{Count: ir.Const(64), Stride: 4 * n}}}
	from := ir.ViewOf(x, 0, 4)
	engineCall(b, k, from, ir.ViewOf(s, 0, n*4*64), from.Contiguous(), r, true)
}

func readAll(b *ir.Builder, s, z ir.MemID, n int64) {
	b.Copy(ir.ViewOf(z, 0, n*4*64), ir.ViewOf(s, 0, n*4*64), "")
	b.Barrier()
}

// mayWrite adds a command that reads bytes and may write them; all such commands use the same
// bytes.
func mayWrite(b *ir.Builder, k ir.KernelID, x, s, z ir.MemID, i, n int64) {
	from, all, to := ir.ViewOf(x, 0, 4), ir.ViewOf(s, 0, 256), ir.ViewOf(z, 4*i, 4)
	engineCall(b, k, from, all, from.Contiguous(), all.Contiguous(), false)
	engineCall(b, k, all, to, all.Contiguous(), to.Contiguous(), true)
}

func must(t *testing.T, text string) passes.Pipeline {
	p, err := passes.ParsePipeline(text)
	require.NoError(t, err)
	return p
}
