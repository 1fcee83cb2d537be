package benchgraphs

import "github.com/mlxc/mlxc/ir"

// Pieces returns a graph in which half of the commands write a word each, and the other
// half read all of these words at once: the greatest possible number of pairs of a
// write and a read.
func Pieces(commands int) *ir.Graph {
	n := int64(commands / 2)
	b := ir.NewBuilder("pieces")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 4 * n})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4 * n})
	k := b.Kernel(ir.Kernel{Name: "sum", Function: "sum", Library: ir.Library{Kind: ir.Metallib, Path: "m.metallib", Digest: ir.Digest{1}}, Args: []ir.Arg{
		{Slot: 0, Name: "a", Kind: ir.DeviceArg, Access: ir.ReadArg, Type: ir.F32}, {Slot: 1, Name: "o", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}}})
	for i := range n {
		b.Copy(ir.ViewOf(s, 4*i, 4), ir.ViewOf(x, 0, 4), "")
	}
	b.Barrier()
	for i := range n {
		all, out := ir.ViewOf(s, 0, 4*n), ir.ViewOf(y, 4*i, 4)
		b.Dispatch(ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, all), ir.BufferArg(1, out)},
			Effects: &ir.Effects{Complete: true, Reads: []ir.Region{all.Contiguous()}, Writes: []ir.Write{{Region: out.Contiguous(), Must: true}}},
			Grid:    [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}})
	}
	b.Barrier()
	return must(b)
}

// Nested returns a graph of fills, each within the range of the one before.
func Nested(commands int) *ir.Graph {
	n := int64(commands)
	b := ir.NewBuilder("nested")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 8 * n})
	for i := range n {
		b.Fill(ir.ViewOf(y, 4*i, 8*(n-i)), 1, "")
		b.Barrier()
	}
	return must(b)
}

// must returns the graph that was built. Building it cannot fail, because nothing in it
// depends on its size.
func must(b *ir.Builder) *ir.Graph {
	g, err := b.Graph()
	if err != nil {
		panic(err)
	}
	return g
}
