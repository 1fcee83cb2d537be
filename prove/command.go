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
	var inline [2]ir.Binding
	for i := range d.Bindings {
		p, q := resolve(bg, &d.Bindings[i], &inline[0]), resolve(ag, &e.Bindings[i], &inline[1])
		if p.Slot != q.Slot || p.Kind != q.Kind || p.Kind == ir.BindScalar && p.Type != q.Type {
			return "other bindings"
		}
		if p.Kind == ir.BindView {
			if !p.View.Len.Equal(q.View.Len) {
				return "a view of another length"
			}
		} else if !bytes.Equal(p.Bytes, q.Bytes) || !p.Expr.Equal(q.Expr) {
			return "another argument value"
		}
	}
	return ""
}

// resolve is [ir.Graph.Resolve], but copies no binding that stands for itself.
func resolve(g *ir.Graph, b, inline *ir.Binding) *ir.Binding {
	if b.Kind != ir.BindView || g.Memories[b.View.Mem].Kind != ir.Argument {
		return b
	}
	*inline = g.Resolve(*b)
	return inline
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

// translation finds what the commands after touch whose kernels nobody
// declares.
type translation struct {
	b, a  *model
	twins []ir.MemID // by root memory before: that of the same name and size after, NoMem if none
	out   ir.Effects // of the last command
}

func newTranslation(b, a *model) *translation {
	t := &translation{b: b, a: a, twins: make([]ir.MemID, len(b.roots))}
	named := make(map[int32]ir.MemID, len(a.names))
	for i, nr := range a.names {
		named[nr] = ir.MemID(i)
	}
	for i := range t.twins {
		m, ok := named[b.names[i]]
		if !ok || a.g.Memories[m].Alias != ir.NoMem || a.g.Memories[m].Size != b.g.Memories[i].Size {
			m = ir.NoMem
		}
		t.twins[i] = m
	}
	return t
}

// effects returns what e, a dispatch after whose kernel nobody declares,
// touches: what d, its image before, touches by the recording, moved with the
// views that it binds. All regions are in root memories. ok is false where that
// says nothing: a region outside the views or in views that moved apart, or a
// view that lost its alignment, which the kernel may count on. The next call
// overwrites the effects.
func (t *translation) effects(d, e *ir.Dispatch) (out *ir.Effects, ok bool) {
	if d.Effects == nil {
		return nil, true
	}
	if len(d.Bindings) != len(e.Bindings) {
		return nil, false
	}
	stays := t.stays(d, e)
	out = &t.out
	out.Complete, out.Reads, out.Writes = d.Effects.Complete, append(out.Reads[:0], d.Effects.Reads...), append(out.Writes[:0], d.Effects.Writes...)
	for i := range out.Reads {
		if !t.move(&out.Reads[i], d, e, stays) {
			return nil, false
		}
	}
	for i := range out.Writes {
		if !t.move(&out.Writes[i].Region, d, e, stays) {
			return nil, false
		}
	}
	return out, true
}

// stays reports whether e binds the same bytes of memories of the same names as
// d: then all that d touches stays too.
func (t *translation) stays(d, e *ir.Dispatch) (same bool) {
	same = true
	for i := 0; same && i < len(d.Bindings); i++ {
		if d.Bindings[i].Kind != ir.BindView || e.Bindings[i].Kind != ir.BindView {
			continue
		}
		v, w := &d.Bindings[i].View, &e.Bindings[i].View
		x, y := t.b.roots[v.Mem], t.a.roots[w.Mem]
		same = t.twins[x.mem] == y.mem && v.Off.AddConst(x.off).Equal(w.Off.AddConst(y.off))
	}
	return same
}

// move makes of the bytes r that d touches those that e does.
func (t *translation) move(r *ir.Region, d, e *ir.Dispatch, stays bool) (ok bool) {
	at := &t.b.roots[r.Mem]
	twin := t.twins[at.mem]
	r.Off.Const += at.off
	if stays && twin != ir.NoMem {
		r.Mem = twin
		return true
	}
	r.Mem = at.mem
	found, inside, moved := false, false, *r
	put := func(x ir.Region) bool { // whichever view the kernel goes by
		ok := !found || x.Equal(moved)
		found, moved = true, x
		return ok
	}
	for i := range d.Bindings {
		if d.Bindings[i].Kind != ir.BindView || e.Bindings[i].Kind != ir.BindView {
			continue
		}
		v, w := &d.Bindings[i].View, &e.Bindings[i].View
		x, y := t.b.roots[v.Mem], t.a.roots[w.Mem]
		was, is := v.Off.AddConst(x.off), w.Off.AddConst(y.off)
		if x.mem != at.mem || outside(t.b.g, r, was, v.Len) {
			continue
		}
		inside = inside || within(t.b.g, r, was, v.Len)
		if !aligned(was, is, argumentAlign(&t.a.g.Kernels[e.Kernel], d.Bindings[i].Slot)) {
			return false
		}
		z := *r
		z.Mem, z.Off = y.mem, r.Off.Sub(was).Add(is)
		if !put(z) {
			return false
		}
	}
	if !inside {
		// In nobody's view: the memory of the same name is the same bytes.
		x := *r
		x.Mem = twin
		if twin == ir.NoMem || !put(x) {
			return false
		}
	}
	*r = moved
	return true
}

// within proves that r lies in the n bytes from off on.
func within(g *ir.Graph, r *ir.Region, off, n ir.Affine) bool {
	lo, end := r.Hull()
	return atMost(g, off.Sub(lo), 0) && atMost(g, end.Sub(off.Add(n)), 0)
}

// outside proves that r has none of the n bytes from off on.
func outside(g *ir.Graph, r *ir.Region, off, n ir.Affine) bool {
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
