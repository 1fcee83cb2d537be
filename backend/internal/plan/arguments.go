package plan

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Widest is the maximum of bytes that kernels move at a time: memories that ask for no alignment are aligned to it.
const Widest = 16

// Placed returns the alignment that a memory's place has, whatever kernels bind it.
func Placed(m *ir.Memory) int64 {
	if m.Align == 0 {
		return max(Widest, m.DType.Size())
	}
	return max(m.Align, m.DType.Size())
}

// natural returns the alignment that the address of an argument needs.
func natural(a *ir.Arg) int64 {
	size := max(a.Type.Size(), 1)
	if a.Kind == ir.ConstantArg {
		size = max(size, ConstantAlign)
	}
	return size
}

// Alignments returns the alignments that the places of memories need, by root: what they ask for, and what the
// arguments need to which a graph's commands bind them.
func Alignments(g *ir.Graph) []int64 {
	out := make([]int64, len(g.Memories))
	for i := range out {
		out[i] = Placed(&g.Memories[i])
	}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			bound(g, d, func(root ir.MemID, align int64) { out[root] = max(out[root], align) })
		}
	}
	return out
}

// bound calls f with each memory that a dispatch binds, by its root, and with the alignment that its argument needs.
func bound(g *ir.Graph, d *ir.Dispatch, f func(root ir.MemID, align int64)) {
	k := &g.Kernels[d.Kernel]
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Kind != ir.BindView {
			continue
		}
		if a, ok := k.Arg(b.Slot); ok {
			root, _ := g.Root(b.View.Mem)
			f(root, natural(&a))
		}
	}
	if counts := d.Counts(); counts != nil {
		root, _ := g.Root(counts.Mem)
		f(root, 4)
	}
}

// Arguments returns an error if a dispatch leaves out an argument of its kernel's table, or binds one
// at an address, for some value of the params, that is no multiple of its elements' size, and of
// [ConstantAlign] in constant space.
func Arguments(g *ir.Graph, d *ir.Dispatch) error {
	k := &g.Kernels[d.Kernel]
	for i := range k.Args {
		a := &k.Args[i]
		if a.Kind == ir.ThreadgroupArg {
			continue
		}
		b := d.Binding(a.Slot)
		if b == nil {
			return fmt.Errorf("argument %d (%s) is not bound", a.Slot, a.Name)
		}
		if b.Kind != ir.BindView {
			continue
		}
		root, at := g.Root(b.View.Mem)
		size := natural(a)
		ok := (at+b.View.Off.Const)%size == 0
		if m := &g.Memories[root]; m.Every && m.Size%size != 0 {
			return fmt.Errorf("argument %d (%s): %%%s is kept of every replay and has %d bytes, no multiple of %d: its copies would begin at addresses that the kernel cannot read from",
				a.Slot, a.Name, ir.QuoteName(m.Name), m.Size, size)
		}
		for _, t := range b.View.Off.Terms() {
			ok = ok && t.Coeff%size == 0
		}
		if !ok {
			return fmt.Errorf("argument %d (%s): %s begins at an address that is no multiple of %d bytes, as it has to", a.Slot, a.Name, g.FormatView(b.View), size)
		}
	}
	return nil
}
