package dataflow_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/ir"
)

// Where many commands read what many wrote, the pairs that are listed stay in
// proportion to the commands, and the commands that count as unknown say so.
func TestSourcesAreLinear(t *testing.T) {
	pairs := func(n int) (per float64) {
		f := dataflow.Build(context.Background(), benchgraphs.Pieces(n))
		sources, readers := 0, 0
		for i := range f.Commands {
			for _, u := range f.Reads(i) {
				sources += len(u.Sources)
			}
			for _, d := range f.Writes(i) {
				readers += len(d.Readers)
			}
		}
		require.Equal(t, sources, readers)
		return float64(sources) / float64(n)
	}
	require.Equal(t, 50.0, pairs(200), "few are listed all")
	require.False(t, dataflow.Build(context.Background(), benchgraphs.Pieces(200)).Crowded())
	small, large := pairs(8_000), pairs(32_000)
	t.Logf("%.1f and %.1f pairs a command", small, large)
	require.Less(t, large, 1.5*small)
	require.Less(t, large, 100.0)

	f := dataflow.Build(context.Background(), benchgraphs.Pieces(8_000))
	require.True(t, f.Crowded())
	require.Contains(t, f.Why(f.Pillar()), "many that read what many wrote")
	require.True(t, f.Live(0), "what a crowded command may read is live")
}

// A strided write with too many runs to enter one by one, over many written pieces, is compared
// only with writes that it can hide, so that many such writes do not count as a crowd.
func TestStridedWritesOverManyPieces(t *testing.T) {
	const n = 4_000
	b := ir.NewBuilder("strided")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: n * 64})
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	write := func(r ir.Region, reads ...ir.Region) {
		b.Dispatch(ir.Dispatch{Kernel: k, Effects: &ir.Effects{Complete: true, Reads: reads, Writes: []ir.Write{{Region: r, Must: true}}}})
	}
	row := func(i int64) ir.Region { return ir.ViewOf(s, i*64, 64).Contiguous() }
	for i := range int64(n) {
		write(row(i))
	}
	for i := range int64(n) {
		write(ir.Region{Mem: s, Off: ir.Const(i % 16 * 4), Run: ir.Const(4), Dims: []ir.Dim{{Count: ir.Const(400), Stride: n / 400 * 64}}})
	}
	for i := range int64(n) {
		write(row(i), row(i))
	}
	f := dataflow.Build(context.Background(), b.Unfinished())
	require.False(t, f.Crowded())
	require.Len(t, f.Reads(2 * n)[0].Sources, 1+16, "the piece and the last of each column")
	require.Len(t, f.Reads(2*n + 1)[0].Sources, 1, "no column lies there")
}

// Strided writes of few runs are known run by run: if columns leave no gap between them, a read of
// all of them sees neither older writes nor bytes that nothing wrote.
func TestColumnsThatLeaveNoGap(t *testing.T) {
	const n, rows = 1_000, 64
	b := ir.NewBuilder("columns")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: n * rows * 4})
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	write := func(r ir.Region, reads ...ir.Region) {
		b.Dispatch(ir.Dispatch{Kernel: k, Effects: &ir.Effects{Complete: true, Reads: reads, Writes: []ir.Write{{Region: r, Must: true}}}})
	}
	all := ir.ViewOf(s, 0, n*rows*4).Contiguous()
	write(all)
	for i := range int64(n) {
		write(ir.Region{Mem: s, Off: ir.Const(i * 4), Run: ir.Const(4), Dims: []ir.Dim{{Count: ir.Const(rows), Stride: n * 4}}})
	}
	write(ir.ViewOf(s, 0, 4).Contiguous(), all)
	f := dataflow.Build(context.Background(), b.Unfinished())
	require.False(t, f.Crowded())
	require.Len(t, f.Reads(n + 1)[0].Sources, n)
	require.False(t, f.Reads(n + 1)[0].Initial)
	require.False(t, f.Live(0), "nothing of it is left")

	b = ir.NewBuilder("halves")
	rowsOf := ir.Linear(0, ir.Term{Param: b.Param("n", 1, rows), Coeff: 1})
	s = b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: rows * 64})
	k = b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	for i := range int64(2) {
		write(ir.Region{Mem: s, Off: ir.Const(i * 32), Run: ir.Const(32), Dims: []ir.Dim{{Count: rowsOf, Stride: 64}}})
	}
	write(ir.ViewOf(s, 0, 4).Contiguous(), ir.Region{Mem: s, Run: rowsOf.Scale(64)})
	f = dataflow.Build(context.Background(), b.Unfinished())
	require.Len(t, f.Reads(2)[0].Sources, 2)
	require.False(t, f.Reads(2)[0].Initial)
}
