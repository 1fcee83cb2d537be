package prove

import (
	"bytes"

	"github.com/mlxc/mlxc/ir"
)

// sameCommand compares everything of an unfused command but where its views
// lie; it returns what differs, or "".
func sameCommand(bg, ag *ir.Graph, x, y ir.Node) string {
	switch x := x.(type) {
	case *ir.Copy:
		y, ok := y.(*ir.Copy)
		if !ok || !x.Dst.Len.Equal(y.Dst.Len) || !x.Src.Len.Equal(y.Src.Len) {
			return "another command or length"
		}
		return ""
	case *ir.Fill:
		y, ok := y.(*ir.Fill)
		if !ok || x.Value != y.Value || !x.Dst.Len.Equal(y.Dst.Len) {
			return "another command, value or length"
		}
		return ""
	}
	d, ok1 := x.(*ir.Dispatch)
	e, ok2 := y.(*ir.Dispatch)
	if !ok1 || !ok2 {
		return "another kind of command"
	}
	if k, l := &bg.Kernels[d.Kernel], &ag.Kernels[e.Kernel]; !sameKernel(k, l) {
		if k.Function != l.Function {
			return anotherKernel
		}
		return "another library, constant or argument table"
	}
	if d.GridKind != e.GridKind || d.Threadgroup != e.Threadgroup || !sameExtent(d.Grid[0], e.Grid[0]) || !sameExtent(d.Grid[1], e.Grid[1]) || !sameExtent(d.Grid[2], e.Grid[2]) {
		return "another grid or threadgroup"
	}
	if len(d.ThreadgroupMemory) != len(e.ThreadgroupMemory) || len(d.Bindings) != len(e.Bindings) {
		return "other bindings"
	}
	for i := range d.ThreadgroupMemory {
		if d.ThreadgroupMemory[i] != e.ThreadgroupMemory[i] {
			return "other threadgroup memory"
		}
	}
	for i := range d.Bindings {
		p, q := bg.Resolve(d.Bindings[i]), ag.Resolve(e.Bindings[i])
		if p.Slot != q.Slot || p.Kind != q.Kind || p.Type != q.Type {
			return "other bindings"
		}
		if !bytes.Equal(p.Bytes, q.Bytes) || !p.Expr.Equal(q.Expr) {
			return "another argument value"
		}
		if p.Kind == ir.BindView && !p.View.Len.Equal(q.View.Len) {
			return "a view of another length"
		}
	}
	return ""
}

func sameExtent(x, y ir.Extent) bool {
	return x.Equal(y) || x.IsConst() && y.IsConst() && x.Eval(nil) == y.Eval(nil)
}

const anotherKernel = "another kernel"

// sameKernel compares the code, its specialization and its argument table.
func sameKernel(k, l *ir.Kernel) bool {
	if k.Library.Kind != l.Library.Kind || k.Library.Digest != l.Library.Digest || k.Function != l.Function ||
		len(k.Constants) != len(l.Constants) || len(k.Args) != len(l.Args) {
		return false
	}
	for i, c := range k.Constants {
		if d := l.Constants[i]; c.Index != d.Index || c.Type != d.Type || c.Bits != d.Bits {
			return false
		}
	}
	for i, x := range k.Args {
		if x != l.Args[i] {
			return false
		}
	}
	return true
}

// translate returns what a dispatch after touches whose kernel nobody
// declares: what its image before touches by the recording, moved with the
// views that it binds. ok is false where that says nothing: a region outside
// the views or in views that moved apart, or a view that lost its alignment,
// which the kernel may count on.
func translate(bg, ag *ir.Graph, d, e *ir.Dispatch) (out *ir.Effects, ok bool) {
	if d.Effects == nil {
		return nil, true
	}
	if len(d.Bindings) != len(e.Bindings) {
		return nil, false
	}
	move := func(r ir.Region) (ir.Region, bool) {
		root, off := bg.Root(r.Mem)
		r.Mem, r.Off = root, r.Off.AddConst(off)
		found, inside, moved := false, false, r
		put := func(x ir.Region) bool { // whichever view the kernel goes by
			ok := !found || x.Equal(moved)
			found, moved = true, x
			return ok
		}
		for i := range d.Bindings {
			if d.Bindings[i].Kind != ir.BindView || e.Bindings[i].Kind != ir.BindView {
				continue
			}
			v, w := d.Bindings[i].View, e.Bindings[i].View
			vm, voff := bg.Root(v.Mem)
			wm, woff := ag.Root(w.Mem)
			from, to := v.Off.AddConst(voff), w.Off.AddConst(woff)
			if vm != root || outside(bg, r, from, v.Len) {
				continue
			}
			inside = inside || within(bg, r, from, v.Len)
			if !aligned(from, to, argumentAlign(&ag.Kernels[e.Kernel], d.Bindings[i].Slot)) {
				return r, false
			}
			x := r
			x.Mem, x.Off = wm, r.Off.Sub(from).Add(to)
			if !put(x) {
				return r, false
			}
		}
		if inside {
			return moved, true
		}
		// In nobody's view: the memory of the same name is the same bytes.
		m, ok := ag.MemoryNamed(bg.Memories[root].Name)
		if !ok || ag.Memories[m].Alias != ir.NoMem || ag.Memories[m].Size != bg.Memories[root].Size {
			return r, false
		}
		r.Mem = m
		return r, put(r)
	}
	out = &ir.Effects{Complete: d.Effects.Complete}
	for _, r := range d.Effects.Reads {
		x, ok := move(r)
		if !ok {
			return nil, false
		}
		out.Reads = append(out.Reads, x)
	}
	for _, w := range d.Effects.Writes {
		x, ok := move(w.Region)
		if !ok {
			return nil, false
		}
		w.Region = x
		out.Writes = append(out.Writes, w)
	}
	return out, true
}

// within proves that r lies in the n bytes from off on.
func within(g *ir.Graph, r ir.Region, off, n ir.Affine) bool {
	lo, end := r.Hull()
	return atMost(g, off.Sub(lo), 0) && atMost(g, end.Sub(off.Add(n)), 0)
}

// outside proves that r has none of the n bytes from off on.
func outside(g *ir.Graph, r ir.Region, off, n ir.Affine) bool {
	lo, end := r.Hull()
	return atMost(g, end.Sub(off), 0) || atMost(g, off.Add(n).Sub(lo), 0)
}

// argumentAlign returns the alignment in bytes that a kernel may count on: that of
// the argument's type, or, where nobody says it, the greatest of Metal's vector
// types (long4; Metal Shading Language Specification, "Vector Data Types").
func argumentAlign(k *ir.Kernel, slot uint8) int64 {
	const vector = 32
	if a, ok := k.Arg(slot); ok && a.Type.Size() > 0 {
		return a.Type.Size()
	}
	return vector
}

// aligned reports whether a view that began at from is as well aligned at to,
// as far as multiples of n go.
func aligned(from, to ir.Affine, n int64) bool {
	for !divides(n, from) {
		n /= 2
	}
	return divides(n, to)
}

func divides(n int64, a ir.Affine) bool {
	for _, t := range a.Terms() {
		if t.Coeff%n != 0 {
			return false
		}
	}
	return a.Const%n == 0
}
