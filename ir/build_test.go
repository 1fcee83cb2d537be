package ir_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// One step of a decoder: y = rms_norm(x)·w, then y becomes a row of a cache.
func ExampleBuilder() {
	b := ir.NewBuilder("step")
	pos := b.Param("pos", 0, 2047)
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 256, DType: ir.F32, Shape: []int64{64}, Init: ir.FillU32(0x3f800000)})
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 256})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 256})
	kv := b.Memory(ir.Memory{Name: "kv", Kind: ir.State, Size: 2048 * 256, Init: ir.FillU32(0)})
	rms := b.Kernel(ir.Kernel{Name: "rms", Function: "rmsfloat32", Args: []ir.Arg{
		{Slot: 0, Name: "x", Type: ir.F32, Access: ir.ReadArg},
		{Slot: 1, Name: "w", Type: ir.F32, Access: ir.ReadArg},
		{Slot: 2, Name: "out", Type: ir.F32, Access: ir.WriteArg},
		{Slot: 3, Name: "eps", Kind: ir.ConstantArg, Type: ir.F32, Count: 1},
	}})

	all := func(m ir.MemID) ir.View { return ir.ViewOf(m, 0, 256) }
	b.Dispatch(ir.Dispatch{
		Kernel:      rms,
		Bindings:    []ir.Binding{ir.BufferArg(0, all(x)), ir.BufferArg(1, all(w)), ir.BufferArg(2, all(y)), ir.BytesArg(3, ir.ValueBytes(float32(1e-5)))},
		Grid:        [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)},
		Threadgroup: [3]uint32{32, 1, 1},
		Op:          "rms_norm",
		Effects: &ir.Effects{
			Complete: true,
			Reads:    []ir.Region{all(x).Contiguous(), all(w).Contiguous()},
			Writes:   []ir.Write{{Region: all(y).Contiguous(), Must: true}},
		},
	})
	b.Barrier()
	row := ir.View{Mem: kv, Off: ir.Linear(0, ir.Term{Param: pos, Coeff: 256}), Len: ir.Const(256)}
	b.Copy(row, all(y), "append")

	g, err := b.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.FormatView(row))
	s := g.Stats()
	fmt.Println(s.Dispatches, "dispatch,", s.Copies, "copy,", s.Barriers, "barrier,", s.Epochs, "epochs")
	// Output:
	// %kv[256*$pos:256*$pos + 256]
	// 1 dispatch, 1 copy, 1 barrier, 2 epochs
}

func TestBuilderRefuses(t *testing.T) {
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4})
	b.Fill(ir.ViewOf(x, 0, 4), 0, "")
	g, err := b.Graph()
	require.Nil(t, g)
	require.EqualError(t, err, "graph g: #0 fill: destination %x[0:4] writes input memory (weights and inputs are read-only to a graph)")
}

func TestBuilder(t *testing.T) {
	b := ir.NewBuilder("g")
	pos, temp := b.Param("pos", 1, 9), b.ParamF32("t", -1, 0.5)
	b.Require(ir.Linear(3, ir.Term{Param: pos, Coeff: 2}), 10)
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Storage: ir.Private, Size: 64, Alias: 7, AliasOff: 5})
	a := b.Alias("a", s, 16, 8)
	k := b.Kernel(ir.Kernel{Name: "k", Function: "f", Args: []ir.Arg{{Slot: 0, Name: "x"}, {Slot: 1, Name: "y", Kind: ir.ConstantArg, Type: ir.U32, Count: 1}}})
	b.KernelAt(k).Args[0].Type = ir.F32
	b.SetSize(s, 128)
	require.Equal(t, "g", b.Unfinished().Name)
	d := b.Dispatch(ir.Dispatch{ID: 77, Kernel: k, Bindings: []ir.Binding{ir.ScalarArg(1, ir.U32, ir.Const(3)), ir.BufferArg(0, ir.ViewOf(a, 0, 8))},
		Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}})
	d.Label = "later"
	b.Group("g")
	c := b.Copy(ir.ViewOf(s, 0, 4), ir.ViewOf(s, 64, 4), "c")
	f := b.Fill(ir.ViewOf(s, 0, 4), 9, "f")
	b.EndGroup()
	b.Barrier()
	b.Commit(ir.OrderEvent, "end")
	g, err := b.Graph()
	require.NoError(t, err)

	require.Equal(t, []ir.Param{{Name: "pos", Type: ir.U32, Min: 1, Max: 9}, {Name: "t", Type: ir.F32, Min: -1, Max: 0.5}}, g.Params)
	require.Equal(t, []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: pos, Coeff: 2}), Max: 7}}, g.Constraints, "the constant moves to the right")
	require.Equal(t, []ir.Memory{
		{Name: "s", Kind: ir.State, Storage: ir.Private, Size: 128, Alias: ir.NoMem},
		{Name: "a", Kind: ir.State, Storage: ir.Private, Size: 8, Alias: s, AliasOff: 16},
	}, g.Memories)
	require.Equal(t, []ir.Node{d, &ir.GroupBegin{Label: "g"}, c, f, &ir.GroupEnd{}, &ir.Barrier{}, &ir.Commit{Order: ir.OrderEvent, Label: "end"}}, g.Nodes)
	require.Equal(t, []ir.ID{0, 1, 2}, []ir.ID{d.ID, c.ID, f.ID})
	require.Equal(t, []uint8{0, 1}, []uint8{d.Bindings[0].Slot, d.Bindings[1].Slot}, "sorted")
	require.Equal(t, "later", g.Nodes[0].(*ir.Dispatch).Label)
	require.Equal(t, ir.BindScalar, d.Binding(1).Kind)
	require.Nil(t, d.Binding(2))

	root, off := g.Root(a)
	require.Equal(t, s, root)
	require.Equal(t, int64(16), off)

	id, ok := g.ParamNamed("t")
	require.True(t, ok)
	require.Equal(t, temp, id)
	_, ok = g.ParamNamed("u")
	require.False(t, ok)
	mem, ok := g.MemoryNamed("a")
	require.True(t, ok)
	require.Equal(t, a, mem)
	mem, ok = g.MemoryNamed("b")
	require.False(t, ok)
	require.Equal(t, ir.NoMem, mem)
	blob := ir.NewBlob([]byte("x"))
	m := &ir.Module{Graphs: []*ir.Graph{g}, Data: []ir.Data{{Name: "d", Blob: blob}}}
	require.Same(t, g, m.Graph("g"))
	require.Nil(t, m.Graph("h"))
	require.Same(t, blob, m.Lookup("d"))
	require.Nil(t, m.Lookup("e"))
}

func TestValueBytes(t *testing.T) {
	require.Equal(t, []byte{1, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}, ir.ValueBytes(true, int32(-1), uint32(2), int64(3)))
	require.Equal(t, []byte{0, 0, 0x80, 0x3f, 1, 0, 0xc0, 0x7f}, ir.ValueBytes(float32(1), math.Float32frombits(0x7fc00001)))
	require.Equal(t, []byte{1, 0, 0, 0, 2, 0, 0, 0}, ir.ValueBytes([]int32{1, 2}))
	require.PanicsWithValue(t, "ir.ValueBytes: int has no fixed size", func() { ir.ValueBytes(1) })
}
