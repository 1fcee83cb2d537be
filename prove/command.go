package prove

import (
	"bytes"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// difference says in what two commands differ. The zero value says that they do not differ.
type difference struct {
	text   string
	unsure bool // they may differ for some values of the params, but none was found
}

func (d difference) none() bool { return d.text == "" }

// differing turns the result of a comparison into a difference; text names what was
// compared.
func differing(found answer, text string) difference {
	switch found {
	case same:
		return difference{}
	case differ:
		return difference{text: text}
	}
	return difference{text + ", or one that cannot be told from it for all values of the params", true}
}

// sameCommand compares everything of two unfused commands except where their views of
// memory that commands write begin. It returns what differs.
func (t *twins) sameCommand(x, y ir.Node) difference {
	switch x := x.(type) {
	case *ir.Copy:
		y, ok := y.(*ir.Copy)
		if !ok {
			return difference{text: "another kind of command"}
		}
		return differing(sameAffine(t.b, x.Dst.Len, y.Dst.Len), "another length")
	case *ir.Carry:
		y, ok := y.(*ir.Carry)
		if !ok {
			return difference{text: "another kind of command"}
		}
		return differing(sameAffine(t.b, x.Dst.Len, y.Dst.Len), "another length")
	case *ir.Fill:
		y, ok := y.(*ir.Fill)
		if !ok {
			return difference{text: "another kind of command"}
		}
		if x.Value != y.Value {
			return difference{text: "another value"}
		}
		return differing(sameAffine(t.b, x.Dst.Len, y.Dst.Len), "another length")
	}
	d, ok1 := x.(*ir.Dispatch)
	e, ok2 := y.(*ir.Dispatch)
	if !ok1 || !ok2 {
		return difference{text: "another kind of command"}
	}
	if k, l := &t.b.Kernels[d.Kernel], &t.a.Kernels[e.Kernel]; !sameKernel(k, l) {
		if k.Function != l.Function {
			return anotherKernel
		}
		return difference{text: "another library, constant or argument table"}
	}
	return t.sameArguments(d, e)
}

// sameArguments is sameCommand for two dispatches of one kernel.
func (t *twins) sameArguments(d, e *ir.Dispatch) difference {
	if d.GridKind != e.GridKind || d.Threadgroup != e.Threadgroup {
		return difference{text: "another grid or threadgroup"}
	}
	grid := same
	for i := range d.Grid {
		grid = grid.and(sameExtent(t.b, d.Grid[i], e.Grid[i]))
	}
	if grid != same {
		return differing(grid, "another grid or threadgroup")
	}
	v, w := d.Counts(), e.Counts()
	if (v == nil) != (w == nil) {
		return difference{text: "a grid in memory, in one of them"}
	}
	// A declared kernel's grid counts are compared like any other read. What a kernel
	// without declaration touches follows from its bindings, and grid counts are none
	// of them.
	if v != nil && !msl.Declared(&t.b.Kernels[d.Kernel]) && !samePlaces(t.b, t.a, *v, *w) {
		return difference{text: "a grid elsewhere in memory"}
	}
	if len(d.ThreadgroupMemory) != len(e.ThreadgroupMemory) || len(d.Bindings) != len(e.Bindings) {
		return difference{text: "other bindings"}
	}
	for i := range d.ThreadgroupMemory {
		if d.ThreadgroupMemory[i] != e.ThreadgroupMemory[i] {
			return difference{text: "other threadgroup memory"}
		}
	}
	unsure := difference{}
	for i := range d.Bindings {
		switch found := t.sameBinding(&d.Bindings[i], &e.Bindings[i]); {
		case found.unsure:
			unsure = found
		case !found.none():
			return found
		}
	}
	return unsure
}

// sameBinding compares the bytes that two bindings give a kernel, or, for views of
// other memory, their lengths.
func (t *twins) sameBinding(p, q *ir.Binding) difference {
	if p.Slot != q.Slot {
		return difference{text: "other bindings"}
	}
	if p.Kind == ir.BindBytes && q.Kind == ir.BindBytes { // the usual case
		if !bytes.Equal(p.Bytes, q.Bytes) {
			return difference{text: "another argument value"}
		}
		return difference{}
	}
	var room [2][1]ir.Value
	x, ok1 := givenBy(t.b, p, &room[0])
	y, ok2 := givenBy(t.a, q, &room[1])
	switch {
	case ok1 != ok2:
		return difference{text: "other bindings"}
	case ok1:
		return differing(t.sameGiven(x, y), "another argument value")
	}
	return differing(sameAffine(t.b, p.View.Len, q.View.Len), "a view of another length")
}

var anotherKernel = difference{text: "another kernel"}

// sameKernel compares the code of two kernels, their specialization and their argument
// tables.
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

// translation finds what commands of A touch whose kernels have no declaration.
type translation struct {
	b, a  *model
	twins []ir.MemID // by root memory of B: the memory of A with the same name and size, NoMem if there is none
	// The results for the last command: what it touches, and whether it binds the same
	// bytes as its image.
	out    ir.Effects
	stayed bool
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

// effects returns what e touches, a dispatch of A whose kernel has no declaration: the
// effects that the recording stores for d, its image, moved with the views that e
// binds. All regions are in root memories. ok is false where this does not determine
// the effects: a region lies outside the views, or in several views that moved apart,
// or a view lost an alignment that the kernel may rely on. The next call overwrites the
// result.
func (t *translation) effects(d, e *ir.Dispatch) (out *ir.Effects, ok bool) {
	t.stayed = false
	was := t.b.listed(d)
	if was == nil {
		return nil, true
	}
	if len(d.Bindings) != len(e.Bindings) {
		return nil, false
	}
	stays := t.stays(d, e)
	t.stayed = stays
	out = &t.out
	out.Complete, out.Reads, out.Writes = was.Complete, append(out.Reads[:0], was.Reads...), append(out.Writes[:0], was.Writes...)
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

// stays reports whether e binds the same bytes as d, in memories of the same names.
// Then everything that d touches stays in place too.
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

// move moves r, bytes that d touches, to the bytes that e touches, and adds them to the
// result.
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
	put := func(x ir.Region) bool { // a region may lie in several views: all of them must move it to the same place
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
		// No view holds this region, so it stays where it is, in the memory of the same
		// name.
		x := *r
		x.Mem = twin
		if twin == ir.NoMem || !put(x) {
			return false
		}
	}
	*r = moved
	return true
}

// within proves that r lies within the n bytes from off on.
func within(g *ir.Graph, r *ir.Region, off, n ir.Affine) bool {
	lo, end := r.Hull()
	return atMost(g, off.Sub(lo), 0) && atMost(g, end.Sub(off.Add(n)), 0)
}

// outside proves that r touches none of the n bytes from off on.
func outside(g *ir.Graph, r *ir.Region, off, n ir.Affine) bool {
	lo, end := r.Hull()
	return atMost(g, end.Sub(off), 0) || atMost(g, off.Add(n).Sub(lo), 0)
}

// argumentAlign returns the alignment in bytes that a kernel may rely on: that of the
// argument's type or, if the type is not known, that of Metal's largest vector type
// (long4; Metal Shading Language Specification, "Vector Data Types").
func argumentAlign(k *ir.Kernel, slot uint8) int64 {
	const vector = 32
	if a, ok := k.Arg(slot); ok && a.Type.Size() > 0 {
		return a.Type.Size()
	}
	return vector
}

// aligned reports whether a view that is moved from `from` to `to` keeps its alignment,
// up to n bytes.
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
