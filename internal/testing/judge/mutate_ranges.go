package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// changeView edits a random view of a random command. By chance, the effects that lie
// in the view follow or stay.
func changeView(rng *rand.Rand, g *ir.Graph, edit func(v *ir.View), regionEdit func(*ir.Region)) bool {
	i, ok := pick(rng, indices(g, isCommand))
	if !ok {
		return false
	}
	n := g.Nodes[i]
	v, ok := pick(rng, views(n))
	if !ok {
		return false
	}
	old := *v
	edit(v)
	if rng.IntN(3) > 0 {
		follow(n, old, regionEdit)
	}
	switch c := n.(type) { // both views, to stay well-formed
	case *ir.Copy:
		c.Src.Len, c.Dst.Len = v.Len, v.Len
	case *ir.Carry:
		c.Src.Len, c.Dst.Len = v.Len, v.Len
	}
	return true
}

func moveView(rng *rand.Rand, g *ir.Graph) bool {
	by := unitOf(g) * (1 + rng.Int64N(4))
	if rng.IntN(2) == 0 {
		by = -by
	}
	return changeView(rng, g, func(v *ir.View) { v.Off = v.Off.AddConst(by) }, func(r *ir.Region) { r.Off = r.Off.AddConst(by) })
}

// resizeView returns a mutation that makes a view longer or shorter.
func resizeView(sign int64) func(*rand.Rand, *ir.Graph) bool {
	return func(rng *rand.Rand, g *ir.Graph) bool {
		by := sign * unitOf(g)
		return changeView(rng, g, func(v *ir.View) { v.Len = v.Len.AddConst(by) }, func(r *ir.Region) { r.Run = r.Run.AddConst(by) })
	}
}

// changeSource makes a command read or write another memory at the same offset.
func changeSource(rng *rand.Rand, g *ir.Graph) bool {
	to := ir.MemID(rng.IntN(len(g.Memories)))
	same := true
	ok := changeView(rng, g, func(v *ir.View) { same = v.Mem == to; v.Mem = to }, func(r *ir.Region) { r.Mem = to })
	return ok && !same
}

// exchangeBindings exchanges the views of two arguments of a dispatch.
func exchangeBindings(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	vs := views(d)
	if len(vs) < 2 {
		return false
	}
	i, j := rng.IntN(len(vs)), rng.IntN(len(vs))
	a, b := *vs[i], *vs[j]
	if a.Equal(b) {
		return false
	}
	if !a.Len.Equal(b.Len) && rng.IntN(2) == 0 {
		return false
	}
	*vs[i], *vs[j] = b, a
	if d.Effects == nil {
		return true
	}
	for _, r := range regions(d.Effects) {
		switch {
		case r.Equal(a.Contiguous()):
			*r = b.Contiguous()
		case r.Equal(b.Contiguous()):
			*r = a.Contiguous()
		}
	}
	return true
}

// renameFresh moves a value of scratch memory to new memory; renameUsed moves it to
// another part of some scratch memory, free or not.
func renameFresh(rng *rand.Rand, g *ir.Graph) bool {
	return rename(rng, g, func(v ir.View) (ir.MemID, ir.Affine) {
		_, size, _ := g.Range(v.Len)
		g.Memories = append(g.Memories, ir.Memory{Name: fmt.Sprintf("fresh%d", len(g.Memories)), Kind: ir.Scratch, Size: max(size, 1), Alias: ir.NoMem})
		return ir.MemID(len(g.Memories) - 1), ir.Const(0)
	})
}

func renameUsed(rng *rand.Rand, g *ir.Graph) bool {
	return rename(rng, g, func(v ir.View) (ir.MemID, ir.Affine) {
		var scratch []ir.MemID
		for i := range g.Memories {
			if g.Memories[i].Kind == ir.Scratch {
				scratch = append(scratch, ir.MemID(i))
			}
		}
		// In half of the cases to where another command writes.
		if w, ok := pick(rng, indices(g, isCommand)); ok && rng.IntN(2) == 0 {
			if u, ok := writtenScratch(g, g.Nodes[w]); ok {
				return u.Mem, u.Off
			}
		}
		to, _ := pick(rng, scratch)
		_, size, _ := g.Range(v.Len)
		unit := unitOf(g)
		places := (g.Memories[to].Size-size)/unit + 1
		if places < 1 {
			return ir.NoMem, ir.Affine{}
		}
		return to, ir.Const(unit * rng.Int64N(places))
	})
}

// rename moves the bytes of one written view, and what later commands read of it until
// a command writes the whole view again. The renaming is correct if all commands touch
// the view as a whole or in part, and the new place is free.
func rename(rng *rand.Rand, g *ir.Graph, place func(ir.View) (ir.MemID, ir.Affine)) bool {
	first, ok := pick(rng, indices(g, isCommand))
	if !ok {
		return false
	}
	v, ok := writtenScratch(g, g.Nodes[first])
	if !ok {
		return false
	}
	to, off := place(v)
	if to == ir.NoMem || to == v.Mem && off.Equal(v.Off) {
		return false
	}
	root, base := g.Root(v.Mem)
	inside := func(m ir.MemID, at ir.Affine) (ir.Affine, bool) {
		r, b := g.Root(m)
		delta := at.AddConst(b).Sub(v.Off.AddConst(base))
		_, most, ok := g.Range(delta.Sub(v.Len)) // it begins before the view ends
		return delta, ok && r == root && delta.IsConst() && delta.Const >= 0 && most < 0
	}
	for i := first; i < len(g.Nodes); i++ {
		n := g.Nodes[i]
		if w, ok := writtenScratch(g, n); i > first && ok && w.Len.Equal(v.Len) {
			if d, ok := inside(w.Mem, w.Off); ok && d.Const == 0 {
				break // from here on it is another value; what this command reads of the old one is not moved
			}
		}
		eachPlace(n, func(m *ir.MemID, at *ir.Affine) {
			if d, ok := inside(*m, *at); ok {
				*m, *at = to, off.Add(d)
			}
		})
	}
	return true
}

// writtenScratch returns the view in scratch memory that a command writes, if there is
// one.
func writtenScratch(g *ir.Graph, n ir.Node) (ir.View, bool) {
	scratch := func(v ir.View) bool { return g.Memories[v.Mem].Kind == ir.Scratch }
	switch n := n.(type) {
	case *ir.Copy:
		return n.Dst, scratch(n.Dst)
	case *ir.Fill:
		return n.Dst, scratch(n.Dst)
	case *ir.Dispatch:
		for _, b := range n.Bindings {
			if a, ok := g.Kernels[n.Kernel].Arg(b.Slot); ok && b.Kind == ir.BindView && a.Access == ir.WriteArg && scratch(b.View) {
				return b.View, true
			}
		}
	}
	return ir.View{}, false
}

func moveAlias(rng *rand.Rand, g *ir.Graph) bool {
	m, ok := pickMemory(rng, g, func(m *ir.Memory) bool { return m.Alias != ir.NoMem })
	if ok {
		by := unitOf(g) * (1 + rng.Int64N(2))
		if rng.IntN(2) == 0 {
			by = -by
		}
		m.AliasOff += by
	}
	return ok
}

// resolveAlias replaces an alias in a command by the memory that it lies in.
func resolveAlias(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, func(n ir.Node) bool {
		for _, v := range views(n) {
			if g.Memories[v.Mem].Alias != ir.NoMem {
				return true
			}
		}
		return false
	}))
	if !ok {
		return false
	}
	eachPlace(g.Nodes[i], func(m *ir.MemID, at *ir.Affine) {
		root, off := g.Root(*m)
		*m, *at = root, at.AddConst(off)
	})
	return true
}

func pickMemory(rng *rand.Rand, g *ir.Graph, which func(*ir.Memory) bool) (*ir.Memory, bool) {
	var ms []*ir.Memory
	for i := range g.Memories {
		if which(&g.Memories[i]) {
			ms = append(ms, &g.Memories[i])
		}
	}
	return pick(rng, ms)
}

// moveUnlisted moves a view that the effects of its dispatch leave out.
func moveUnlisted(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, func(d *ir.Dispatch) bool { return d.Effects.Known() })
	if !ok {
		return false
	}
	by := word * []int64{1, -1, 2, -2}[rng.IntN(4)]
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Kind != ir.BindView || g.Memories[b.View.Mem].Kind == ir.Argument {
			continue
		}
		listed := false
		follow(d, b.View, func(*ir.Region) { listed = true })
		if listed {
			continue
		}
		if b.View.Off = b.View.Off.AddConst(by); rng.IntN(4) == 0 {
			b.View.Mem = ir.MemID(rng.IntN(len(g.Memories)))
		}
		return true
	}
	return false
}

// retarget makes a binding bind another view, and moves what the effects say of it.
func retarget(d *ir.Dispatch, b *ir.Binding, to ir.View) {
	was := b.View
	follow(d, was, func(r *ir.Region) { r.Mem, r.Off = to.Mem, r.Off.Sub(was.Off).Add(to.Off) })
	b.View = to
}

// pickView draws a dispatch and one of its views that is no argument.
func pickView(rng *rand.Rand, g *ir.Graph) (*ir.Dispatch, *ir.Binding, bool) {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return nil, nil, false
	}
	b := &d.Bindings[rng.IntN(len(d.Bindings))]
	return d, b, b.Kind == ir.BindView && g.Memories[b.View.Mem].Kind != ir.Argument
}

// borrowView replaces a view by one of another command.
func borrowView(rng *rand.Rand, g *ir.Graph) bool {
	d, b, ok := pickView(rng, g)
	_, other, also := pickView(rng, g)
	if !ok || !also || !b.View.Len.Equal(other.View.Len) || b.View.Equal(other.View) {
		return false
	}
	retarget(d, b, other.View)
	return true
}

// forwardCopy makes readers of a copy read what was copied, and may drop the copy. This is
// harmless if nobody else reads the copy and nothing was written since.
func forwardCopy(rng *rand.Rand, g *ir.Graph) (done bool) {
	i, ok := pick(rng, indices(g, is[*ir.Copy]))
	if !ok {
		return false
	}
	c := g.Nodes[i].(*ir.Copy)
	root := func(v ir.View) ir.View {
		m, off := g.Root(v.Mem)
		return ir.View{Mem: m, Off: v.Off.AddConst(off), Len: v.Len}
	}
	for _, n := range g.Nodes[i:] {
		d, ok := n.(*ir.Dispatch)
		for k := 0; ok && k < len(d.Bindings); k++ {
			b := &d.Bindings[k]
			if a, _ := g.Kernels[d.Kernel].Arg(b.Slot); b.Kind == ir.BindView && a.Access == ir.ReadArg && root(b.View).Equal(root(c.Dst)) {
				retarget(d, b, c.Src)
				done = true
			}
		}
	}
	if done && rng.IntN(2) == 0 {
		g.Nodes = slices.Delete(g.Nodes, i, i+1)
	}
	return done
}

// moveScratch moves the views of a scratch memory to another one, new or in use: those of
// all commands, or those from some command on.
func moveScratch(rng *rand.Rand, g *ir.Graph) bool {
	scratch := func(m *ir.Memory) bool { return m.Kind == ir.Scratch && isRoot(m) }
	old, ok := pickMemory(rng, g, scratch)
	to, _ := pickMemory(rng, g, scratch)
	if !ok {
		return false
	}
	from, _ := g.MemoryNamed(old.Name)
	target, _ := g.MemoryNamed(to.Name)
	by := ir.Const(word * rng.Int64N(12))
	if rng.IntN(2) == 0 {
		g.Memories = append(g.Memories, ir.Memory{Name: "fresh", Kind: ir.Scratch, Size: old.Size + by.Const, Alias: ir.NoMem})
		target = ir.MemID(len(g.Memories) - 1)
	}
	first := 0
	if rng.IntN(3) == 0 {
		first = rng.IntN(len(g.Nodes))
	}
	for _, n := range g.Nodes[first:] {
		eachPlace(n, func(m *ir.MemID, off *ir.Affine) {
			if *m == from {
				*m, *off = target, off.Add(by)
			}
		})
	}
	return true
}

// changeCarry moves what a carry reads or writes, or gives it another destination.
func changeCarry(rng *rand.Rand, g *ir.Graph) bool {
	c, ok := pickNode[*ir.Carry](rng, g, nil)
	if !ok {
		return false
	}
	by := word * (1 - 2*rng.Int64N(2))
	switch rng.IntN(4) {
	case 0:
		c.Src.Off = c.Src.Off.AddConst(by)
	case 1:
		c.Dst.Off = c.Dst.Off.AddConst(by)
	case 2:
		c.Src.Len = ir.Const(word * (1 + rng.Int64N(4)))
		c.Dst.Len = c.Src.Len
	default:
		c.Dst.Mem = ir.MemID(rng.IntN(len(g.Memories)))
	}
	return true
}
