package mlxt_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// recording returns a graph of n dispatches such as a recorder writes.
func recording(n int) *ir.Module {
	b := ir.NewBuilder("decode")
	pos := b.Param("pos", 0, 2047)
	x := b.Memory(ir.Memory{Name: "scratch", Kind: ir.Scratch, Size: 1 << 20})
	w := b.Memory(ir.Memory{Name: "blk.0.attn_norm.weight", Kind: ir.Weight, Size: 2304, DType: ir.F32, Shape: []int64{576}, Init: ir.FillU32(0x3f800000)})
	kv := b.Memory(ir.Memory{Name: "kv", Kind: ir.State, Size: 2048 * 256})
	k := b.Kernel(ir.Kernel{Name: "rmsfloat32", Function: "rmsfloat32", Args: []ir.Arg{
		{Slot: 0, Name: "x", Type: ir.F32},
		{Slot: 1, Name: "w", Type: ir.F32},
		{Slot: 2, Name: "out", Type: ir.F32, Access: ir.WriteArg},
		{Slot: 3, Name: "eps", Kind: ir.ConstantArg, Type: ir.F32, Count: 1},
		{Slot: 4, Name: "axis_size", Kind: ir.ConstantArg, Type: ir.U32, Count: 1},
		{Slot: 5, Name: "N", Kind: ir.ConstantArg, Type: ir.U32, Count: 1},
	}})
	row := ir.View{Mem: kv, Off: ir.Linear(0, ir.Term{Param: pos, Coeff: 256}), Len: ir.Const(256)}
	for i := range n {
		in, out := ir.ViewOf(x, int64(i%64)*2304, 2304), row
		b.Dispatch(ir.Dispatch{
			Kernel: k,
			Bindings: []ir.Binding{
				ir.BufferArg(0, in), ir.BufferArg(1, ir.ViewOf(w, 0, 2304)), ir.BufferArg(2, out),
				ir.BytesArg(3, ir.ValueBytes(float32(1e-5))), ir.BytesArg(4, ir.ValueBytes(uint32(576))),
				ir.ScalarArg(5, ir.U32, ir.Linear(1, ir.Term{Param: pos, Coeff: 1})),
			},
			Grid:        [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)},
			Threadgroup: [3]uint32{160, 1, 1},
			Op:          "rms_norm",
			Label:       "attn_norm",
			Effects: &ir.Effects{Complete: true,
				Reads:  []ir.Region{in.Contiguous(), ir.ViewOf(w, 0, 2304).Contiguous()},
				Writes: []ir.Write{{Region: out.Contiguous(), Must: true}}},
		})
		if i%4 == 3 {
			b.Barrier()
		}
	}
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return &ir.Module{Graphs: []*ir.Graph{g}}
}

var sizes = []int{1000, 10000, 100000}

func rate(b *testing.B, n int) {
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "dispatches/s")
}

func BenchmarkPrint(b *testing.B) {
	for _, n := range sizes {
		m := recording(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				require.NoError(b, mlxt.Print(io.Discard, m))
			}
			rate(b, n)
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range sizes {
		text := []byte(mlxt.Format(recording(n)))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for range b.N {
				_, err := mlxt.Parse(context.Background(), "g.mlxt", text)
				require.NoError(b, err)
			}
			rate(b, n)
		})
	}
}
