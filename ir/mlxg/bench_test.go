package mlxg_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// nodesModule returns a module with n dispatches like those of a decoded token: each has six
// bindings, two reads, a write, and a label of its own.
func nodesModule(n int) *ir.Module {
	k := ir.Kernel{Name: "qmv", Function: "affine_qmv_fast_float16_t_gs_64_b_4_batch_0"}
	for i, name := range []string{"w", "scales", "x"} {
		k.Args = append(k.Args, ir.Arg{Slot: uint8(i), Name: name, Type: ir.F16})
	}
	k.Args = append(k.Args,
		ir.Arg{Slot: 3, Name: "y", Access: ir.WriteArg, Type: ir.F16},
		ir.Arg{Slot: 4, Name: "shape", Kind: ir.ConstantArg, Type: ir.I32, Count: 2},
		ir.Arg{Slot: 5, Name: "pos", Kind: ir.ConstantArg, Type: ir.U32, Count: 1})
	g := &ir.Graph{
		Name:    "decode",
		Params:  []ir.Param{{Name: "pos", Type: ir.U32, Max: 2047}},
		Kernels: []ir.Kernel{k},
		Memories: []ir.Memory{
			{Name: "w", Kind: ir.Weight, Size: 1 << 30, Init: ir.FillU32(0), Alias: ir.NoMem},
			{Name: "s", Kind: ir.Scratch, Size: 1 << 20, Alias: ir.NoMem},
		},
	}
	pos := ir.Linear(0, ir.Term{Param: 0, Coeff: 1})
	label := []byte("layer 0000000 q_proj")
	for i := range n {
		for j, v := 12, i; j > 5; j-- {
			label[j] = '0' + byte(v%10)
			v /= 10
		}
		off := int64(i%1000) * 4096
		out := ir.ViewOf(1, 4096, 1152)
		g.Nodes = append(g.Nodes, &ir.Dispatch{
			ID: ir.ID(i), Op: "quantized_matmul", Label: string(label),
			Bindings: []ir.Binding{
				ir.BufferArg(0, ir.ViewOf(0, off, 1<<16)), ir.BufferArg(1, ir.ViewOf(0, 1<<28+off, 1<<13)),
				ir.BufferArg(2, ir.ViewOf(1, 0, 1152)), ir.BufferArg(3, out),
				ir.BytesArg(4, ir.ValueBytes([]int32{576, 576})), ir.ScalarArg(5, ir.U32, pos),
			},
			Grid:        [3]ir.Extent{ir.Ext(1), ir.Ext(72), ir.Ext(1)},
			Threadgroup: [3]uint32{32, 2, 1},
			Effects: &ir.Effects{
				Complete: true,
				Reads:    []ir.Region{ir.ViewOf(0, off, 1<<16).Contiguous(), ir.ViewOf(1, 0, 1152).Contiguous()},
				Writes:   []ir.Write{{Region: out.Contiguous(), Must: true}},
			},
		})
	}
	return &ir.Module{Graphs: []*ir.Graph{g}}
}

const benchNodes = 1_000_000

func perNode(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchNodes, "ns/node")
}

func BenchmarkWrite(b *testing.B) {
	m := nodesModule(benchNodes)
	path := filepath.Join(b.TempDir(), "g.mlxg")
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
	}
	perNode(b)
	st, err := os.Stat(path)
	require.NoError(b, err)
	b.ReportMetric(float64(st.Size())/benchNodes, "file-B/node")
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "g.mlxg")
	require.NoError(b, mlxg.WriteFile(context.Background(), path, nodesModule(benchNodes), mlxg.WriteOptions{}))
	b.ReportAllocs()
	for b.Loop() {
		f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
		require.NoError(b, err)
		require.NoError(b, f.Close())
	}
	perNode(b)
}

// Opening and writing both check the module; this measures the check alone.
func BenchmarkCheck(b *testing.B) {
	m := nodesModule(benchNodes)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, m.Check())
	}
	perNode(b)
}

func BenchmarkClone(b *testing.B) {
	m := nodesModule(benchNodes)
	b.ReportAllocs()
	for b.Loop() {
		m.Clone()
	}
	perNode(b)
}

func BenchmarkWriteWeights(b *testing.B) {
	data := make([]byte, 64<<20)
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "d", Blob: ir.NewBlob(data)}}}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		require.NoError(b, mlxg.Write(context.Background(), io.Discard, m, mlxg.WriteOptions{}))
	}
}
