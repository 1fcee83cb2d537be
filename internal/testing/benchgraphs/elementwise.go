package benchgraphs

import "github.com/mlxc/mlxc/ir"

// ElementwiseFamilies returns families of graphs of builtin elementwise kernels. Each
// command reads the result of the one before, so that everything can be fused.
func ElementwiseFamilies() []Family {
	return []Family{{"chain", Chain}, {"residual", Residual}, {"mixed", Mixed}}
}

// The number of elements of each value, in f32, and the kernels of these families.
const (
	elements = 1024

	silu ir.KernelID = iota - 1
	add
	mul
)

// elementwise builds such a graph. Its values take turns in three buffers.
type elementwise struct {
	g       *ir.Graph
	left    int
	scratch ir.MemID
	x, y    ir.View
	written int
}

func beginElementwise(name string, commands int) *elementwise {
	f := func(name string, in ...string) ir.Kernel {
		k := ir.Kernel{Name: name, Function: name, Library: ir.Library{Kind: ir.Builtin}}
		for i, a := range append(in, map[bool]string{true: "out", false: "c"}[len(in) == 1]) {
			access := ir.ReadArg
			if i == len(in) {
				access = ir.WriteArg
			}
			k.Args = append(k.Args, ir.Arg{Slot: uint8(i), Name: a, Kind: ir.DeviceArg, Type: ir.F32, Access: access})
		}
		return k
	}
	g := &ir.Graph{Name: name, Nodes: make([]ir.Node, 0, 2*commands)}
	g.Kernels = []ir.Kernel{f("v_Silufloat32float32", "in"), f("vv_Addfloat32", "a", "b"), f("vv_Multiplyfloat32", "a", "b")}
	b := &elementwise{g: g, left: commands}
	memory := func(name string, kind ir.MemKind, size int64) ir.MemID {
		g.Memories = append(g.Memories, ir.Memory{Name: name, Kind: kind, Size: size, Alias: ir.NoMem})
		return ir.MemID(len(g.Memories) - 1)
	}
	b.x = ir.ViewOf(memory("x", ir.Input, 4*elements), 0, 4*elements)
	b.y = ir.ViewOf(memory("y", ir.Output, 4*elements), 0, 4*elements)
	b.scratch = memory("s", ir.Scratch, 3*4*elements)
	return b
}

// command adds a command and a barrier after it, and returns where its result lies. The
// last command's result is the output.
func (b *elementwise) command(k ir.KernelID, in ...ir.View) ir.View {
	out := b.y
	if b.left--; b.left > 0 {
		out = ir.ViewOf(b.scratch, int64(b.written%3)*4*elements, 4*elements)
		b.written++
	}
	b.dispatch(k, out, in...)
	return out
}

// dispatch adds a dispatch that writes out, and a barrier after it.
func (b *elementwise) dispatch(k ir.KernelID, out ir.View, in ...ir.View) {
	n := out.Len.Const / b.g.Kernels[k].Args[0].Type.Size()
	d := &ir.Dispatch{
		ID: b.id(), Kernel: k, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(n), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{256, 1, 1},
		Effects: &ir.Effects{Complete: true, Writes: []ir.Write{{Region: out.Contiguous(), Must: true}}},
	}
	for i, v := range append(in, out) {
		d.Bindings = append(d.Bindings, ir.Binding{Slot: uint8(i), Kind: ir.BindView, View: v})
	}
	for _, v := range in {
		d.Effects.Reads = append(d.Effects.Reads, v.Contiguous())
	}
	b.g.Nodes = append(b.g.Nodes, d, &ir.Barrier{})
}

// id returns the number of the next command.
func (b *elementwise) id() ir.ID { return ir.ID(len(b.g.Nodes) / 2) }

// Chain makes x = silu(x), again and again. Nothing is shared except within silu.
func Chain(commands int) *ir.Graph {
	b := beginElementwise("chain", commands)
	for x := b.x; b.left > 0; {
		x = b.command(silu, x)
	}
	return b.g
}

// Residual makes x = x + silu(x), again and again. Written as a tree, its term doubles
// at each step.
func Residual(commands int) *ir.Graph {
	b := beginElementwise("residual", commands)
	for x := b.x; b.left > 0; {
		t := b.command(silu, x)
		if b.left == 0 {
			break
		}
		x = b.command(add, x, t)
	}
	return b.g
}

// Mixed makes x = silu(x), x + x, x · x, x + x₀ and x · x₀ in random order, so that few
// stretches are equal.
func Mixed(commands int) *ir.Graph {
	b := beginElementwise("mixed", commands)
	r := random(88172645463325252)
	for x := b.x; b.left > 0; {
		switch r.below(5) {
		case 0:
			x = b.command(silu, x)
		case 1:
			x = b.command(add, x, x)
		case 2:
			x = b.command(mul, x, x)
		case 3:
			x = b.command(add, x, b.x)
		case 4:
			x = b.command(mul, x, b.x)
		}
	}
	return b.g
}

// Anywhere makes x = silu(x), again and again, of 64 elements that lie anywhere in one of two buffers in turn.
func Anywhere(commands int, seed int64) *ir.Graph {
	b := &copying{beginElementwise("anywhere", commands)}
	r := random(seed)
	x := part(b.x, 0, 64)
	for i := int64(0); b.left > 1; i++ {
		to := part(b.buffer(i%2), r.below(elements-64), 64)
		b.dispatch(silu, to, x)
		x = to
	}
	b.dispatch(silu, part(b.y, 0, 64), x)
	return b.g
}
