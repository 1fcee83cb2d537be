package values

import (
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// For a kernel without declaration it is known which bytes it touches (the recording's complete effects) and which
// views it binds, but not through which view it touches which byte. So a region moves with every view that
// may contain it, and all values that may lie in one view form one web; the proof demands this too. A view that
// contains no touched byte is just an address that the kernel is given: the view and its memory stay where they
// are, and so do the values that it may overlap.

// foreign is what the builder records about dispatches of kernels without declaration.
type foreign struct {
	carried []carried
	of      []int32   // by index in carried: an element of builder.parent, of the web that it moves with
	views   []boundTo // of one dispatch, in scratch
	inside  []bool    // by region of one dispatch: some view contains all of it
}

// boundTo is a view of scratch that a dispatch binds.
type boundTo struct {
	view    ir.View // of the root
	binding int32
	of      int32 // an element of builder.parent, of the web that it moves with; −1 if it stays
}

// carried is something besides accesses that moves with a web: a view, or a region without bytes.
type carried struct {
	command int32
	index   int32 // of the binding, read or write
	align   int64 // of a view: the alignment in bytes that the kernel may rely on
	what    part
}

type part uint8

const (
	aView part = iota
	aRead
	aWrite
)

// foreignDispatch returns n if it is a dispatch of a kernel that has no declaration, or whose declaration only states
// effects. Its regions may lie anywhere in its views, and its table of arguments comes from the recording.
func (b *builder) foreignDispatch(n ir.Node) (*ir.Dispatch, bool) {
	d, ok := n.(*ir.Dispatch)
	if !ok {
		return nil, false
	}
	if k := &b.Graph.Kernels[d.Kernel]; !k.Library.Declared() && (!msl.Declared(k) || msl.EffectsOnly(k)) {
		return d, true
	}
	return d, false
}

// joinViews joins the accesses that may lie in one view of d, which is command i, into one web.
func (b *builder) joinViews(i int32, d *ir.Dispatch, all []dataflow.Use, ds []dataflow.Def, ofUse, ofDef []int32) {
	x := &b.foreign
	us := all[:len(d.Effects.Reads)]
	for k := len(us); k < len(all); k++ {
		if all[k].Update < 0 && ofUse[k] >= 0 { // a read that the effects do not list cannot be moved in them
			b.pinned(ofUse[k], pin{unlisted, i})
		}
	}
	regions := len(us) + len(ds)
	region := func(k int) (r *ir.Region, of int32) {
		if k < len(us) {
			return &us[k].Region, ofUse[k]
		}
		return &ds[k-len(us)].Region, ofDef[k-len(us)]
	}
	x.views, x.inside = x.views[:0], append(x.inside[:0], make([]bool, regions)...)
	if v := d.Counts(); v != nil {
		if m := b.rooted(v).Mem; b.scratch[m] {
			b.holds(m, pin{unlisted, i})
		}
	}
	for j := range d.Bindings {
		if d.Bindings[j].Kind != ir.BindView {
			continue
		}
		at := boundTo{b.rooted(&d.Bindings[j].View), int32(j), -1}
		if !b.scratch[at.view.Mem] {
			continue
		}
		touched := false
		for k := range regions {
			r, of := region(k)
			if of < 0 || r.Mem != at.view.Mem {
				continue
			}
			out, in := place(b.Graph, r, &at.view)
			if out {
				continue
			}
			if at.of < 0 {
				at.of = of
			} else {
				b.union(at.of, of)
			}
			x.inside[k] = x.inside[k] || in
			touched = touched || b.meets(r, &at.view, in)
		}
		if !touched { // perhaps no effect touches it; then the view must stay
			if at.of >= 0 {
				b.pinned(at.of, pin{unlisted, i})
			}
			at.of = -1
			b.holds(at.view.Mem, pin{unlisted, i})
		} else {
			b.carries(at.of, carried{i, at.binding, argumentAlign(&b.Graph.Kernels[d.Kernel], d.Bindings[j].Slot), aView})
		}
		x.views = append(x.views, at)
	}
	for k := range us {
		if of := ofUse[k]; of >= 0 && !x.inside[k] {
			b.pinned(of, pin{astray, i})
		} else if r := &us[k].Region; of < 0 && b.scratch[r.Mem] {
			b.joinVoid(r, carried{command: i, index: int32(k), what: aRead})
		}
	}
	for k := range ds {
		if of := ofDef[k]; of >= 0 && !x.inside[len(us)+k] {
			b.pinned(of, pin{astray, i})
		} else if r := &ds[k].Region; of < 0 && b.scratch[r.Mem] {
			b.joinVoid(r, carried{command: i, index: int32(k), what: aWrite})
		}
	}
}

// meets reports that r has a byte of v for all values of the params for which v has bytes: where it has none the kernel is
// given just an address, which must stay. The caller knows that r may have one, and says whether r lies in v as a whole.
// False may also mean that it is not known.
func (b *builder) meets(r *ir.Region, v *ir.View, in bool) bool {
	if !in {
		return len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() && v.Off.IsConst() && v.Len.IsConst() && v.Len.Const > 0
	}
	if r.Equal(v.Contiguous()) {
		return true
	}
	positive := func(a ir.Affine) bool {
		lo, _, ok := b.Graph.Range(a)
		return ok && lo > 0
	}
	some := positive(r.Run)
	for i := range r.Dims {
		some = some && positive(r.Dims[i].Count)
	}
	return some
}

// joinVoid finds the web that a region without bytes moves with. Like other regions it moves with every view that
// may contain it.
func (b *builder) joinVoid(r *ir.Region, c carried) {
	of, inside, stays := int32(-1), false, false
	for k := range b.foreign.views {
		at := &b.foreign.views[k]
		if r.Mem != at.view.Mem {
			continue
		}
		switch out, in := place(b.Graph, r, &at.view); {
		case out:
		case at.of < 0:
			stays = true
		default:
			inside = inside || in
			if of < 0 {
				of = at.of
			} else {
				b.union(of, at.of)
			}
		}
	}
	if stays = stays || !inside; !stays {
		b.carries(of, c)
		return
	}
	b.holds(r.Mem, pin{unlisted, c.command})
	if of >= 0 {
		b.pinned(of, pin{astray, c.command})
	}
}

func (b *builder) carries(of int32, c carried) {
	b.foreign.carried = append(b.foreign.carried, c)
	b.foreign.of = append(b.foreign.of, of)
}

// carry adds to the webs the views and empty regions that move with them, once webs are numbered.
func (b *builder) carry(number []int32) {
	x := &b.foreign
	for k, of := range x.of {
		// INVARIANT: a view moves with an access, so its web has a number.
		x.of[k] = number[b.find(of)] - 1
	}
	count := make([]int32, len(b.Webs)+1)
	for _, w := range x.of {
		count[w+1]++
	}
	for w := range b.Webs {
		count[w+1] += count[w]
	}
	sorted := make([]carried, len(x.carried))
	for k, w := range x.of {
		sorted[count[w]] = x.carried[k]
		count[w]++
	}
	first := int32(0)
	for w := range b.Webs {
		b.Webs[w].carried, first = sorted[first:count[w]:count[w]], count[w]
	}
}

// holds records that a root memory must stay as it is.
func (b *builder) holds(m ir.MemID, p pin) {
	if b.held == nil {
		b.held = make([]pin, len(b.Graph.Memories))
	}
	if b.held[m].why == free {
		b.held[m] = p
	}
}

// hold finds the memories that must stay because of command i, which runs no kernel without declaration: those bound
// by a view that no access moves along with, and, if the command's views do not fit its effects, all that it binds.
func (b *builder) hold(i int32, ofUse, ofDef []int32, fits bool) {
	view := func(v *ir.View, moves bool) {
		if m := b.roots[v.Mem].mem; b.scratch[m] && !fits {
			b.holds(m, pin{misfit, i})
		} else if b.scratch[m] && !moves {
			b.holds(m, pin{unlisted, i})
		}
	}
	switch n := b.Flow.Commands[i].(type) {
	case *ir.Copy:
		view(&n.Src, ofUse[0] >= 0)
		view(&n.Dst, ofDef[0] >= 0)
	case *ir.Fill:
		view(&n.Dst, ofDef[0] >= 0)
	case *ir.Dispatch:
		if v := n.Counts(); v != nil {
			view(v, false)
		}
		slots := b.accesses(n.Kernel)
		reads, writes := 0, 0
		for j := range n.Bindings {
			x := &n.Bindings[j]
			if x.Kind != ir.BindView {
				continue
			}
			moves := false
			if int(x.Slot) < len(slots) {
				switch slots[x.Slot] { // counted in the order that the method bindings expects
				case read:
					moves = reads < len(ofUse) && ofUse[reads] >= 0
					reads++
				case write:
					moves = writes < len(ofDef) && ofDef[writes] >= 0
					writes++
				}
			}
			view(&x.View, moves)
		}
	}
}

// rooted returns a view of the root memory.
func (b *builder) rooted(v *ir.View) ir.View {
	at := b.roots[v.Mem]
	return ir.View{Mem: at.mem, Off: v.Off.AddConst(at.off), Len: v.Len}
}

// place compares a region and a view of one root: out if r is known to have no byte in v, in if all of r is known to
// be in v. Both are false if neither can be shown.
func place(g *ir.Graph, r *ir.Region, v *ir.View) (out, in bool) {
	if len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() && v.Off.IsConst() && v.Len.IsConst() { // the usual case
		lo, end := r.Off.Const, r.Off.Const+r.Run.Const
		from, to := v.Off.Const, v.Off.Const+v.Len.Const
		return end <= from || to <= lo, from <= lo && end <= to
	}
	if out = outside(g, r, v); out {
		return true, false
	}
	return false, within(g, r, v)
}

// within proves that r lies in v. Both are of one root.
func within(g *ir.Graph, r *ir.Region, v *ir.View) bool {
	lo, end := r.Hull()
	return atMost(g, v.Off.Sub(lo)) && atMost(g, end.Sub(v.Off.Add(v.Len)))
}

// outside proves that r has no byte of v. Both are of one root.
func outside(g *ir.Graph, r *ir.Region, v *ir.View) bool {
	lo, end := r.Hull()
	return atMost(g, end.Sub(v.Off)) || atMost(g, v.Off.Add(v.Len).Sub(lo))
}

func atMost(g *ir.Graph, e ir.Affine) bool {
	if e.IsConst() {
		return e.Const <= 0
	}
	_, hi, ok := g.Range(e)
	return ok && hi <= 0
}

// argumentAlign returns the alignment in bytes that a kernel may rely on: that of the argument's type or, if the type
// is not known, of Metal's largest vector type (long4; Metal Shading Language Specification, "Vector Data Types").
func argumentAlign(k *ir.Kernel, slot uint8) int64 {
	const vector = 32
	if a, ok := k.Arg(slot); ok && a.Type.Size() > 0 {
		return a.Type.Size()
	}
	return vector
}
