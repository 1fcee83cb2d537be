package prove

import (
	"github.com/mlxc/mlxc/ir"
)

// Options of a proof.
type Options struct {
	// Strict turns a proof that assumes the recording free of races somewhere
	// into "cannot tell".
	Strict bool
}

// Check decides whether after computes what before does. Both graphs must have
// passed [ir.Graph.Check].
func Check(before, after *ir.Graph, o Options) *Result {
	r := &Result{}
	if checkInterface(before, after, r); r.Verdict != Proved {
		return r
	}
	b := build(before, func(d *ir.Dispatch) *ir.Effects { return d.Effects })
	originals := map[ir.ID]*ir.Effects{}
	for i := range b.ops {
		if d, ok := b.ops[i].node.(*ir.Dispatch); ok {
			originals[d.ID] = d.Effects
		}
	}
	sameViews := identicalViews(before, after)
	a := build(after, func(d *ir.Dispatch) *ir.Effects {
		// What a foreign kernel touches is known from the recording alone, and
		// in its terms: it holds after only where its views stayed.
		if !sameViews {
			return nil
		}
		from := provenance(d)
		return originals[from[0]]
	})
	r.Commands = len(a.ops)
	img := image(b, a, r)
	if r.Verdict != Proved {
		return r
	}
	if !pillars(b, a, img, sameViews, r) {
		return r
	}
	r.Assumptions = append(r.Assumptions, "a replay begins after the one before it has ended")
	checkValues(b, a, img, r)
	checkOrder(b, a, img, o.Strict, r)
	checkAliasing(a, r)
	checkClaims(b, a, img, r)
	return r
}

// identicalViews reports whether memories have the same names, sizes and
// aliases in the same order, so that equal views mean equal bytes.
func identicalViews(b, a *ir.Graph) bool {
	if len(b.Memories) != len(a.Memories) {
		return false
	}
	for i := range b.Memories {
		m, n := &b.Memories[i], &a.Memories[i]
		if m.Name != n.Name || m.Kind != n.Kind || m.Size != n.Size || m.Alias != n.Alias || m.AliasOff != n.AliasOff {
			return false
		}
	}
	return true
}

// pillars checks that nothing crosses a command of unknown effects, that none
// was touched, and that no view changed in a graph that has one.
func pillars(b, a *model, img []int, sameViews bool, r *Result) bool {
	unknown := false
	for i := range b.ops {
		unknown = unknown || !b.ops[i].known
	}
	for i := range a.ops {
		if !a.ops[i].known && b.ops[img[i]].known {
			r.add(CannotTell, Values, []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id}, "%s: its effects are known before but not after", a.g.Describe(a.ops[i].node))
			return false
		}
	}
	if !unknown {
		return true
	}
	if !sameViews {
		r.add(CannotTell, Values, nil, nil, "memories changed in a graph with commands of unknown effects")
		return false
	}
	if r.Dropped > 0 {
		r.add(CannotTell, Coverage, nil, nil, "commands were left out of a graph with commands of unknown effects")
		return false
	}
	// Position of each command relative to the pillars.
	era := make([]int, len(b.ops))
	n := 0
	for i := range b.ops {
		if !b.ops[i].known {
			n++
			era[i] = n
			n++
			continue
		}
		era[i] = n
	}
	at := 0
	for i := range a.ops {
		e := era[img[i]]
		if e < at {
			r.add(Refused, Order, []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id}, "%s crosses a command of unknown effects", a.g.Describe(a.ops[i].node))
			return false
		}
		at = e
		x, y := b.ops[img[i]].node, a.ops[i].node
		if !sameBytes(x, y) {
			r.add(CannotTell, Values, []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id}, "%s has another view in a graph with commands of unknown effects", a.g.Describe(y))
			return false
		}
	}
	return true
}

func sameBytes(x, y ir.Node) bool {
	switch x := x.(type) {
	case *ir.Dispatch:
		y := y.(*ir.Dispatch)
		for i := range x.Bindings {
			if !x.Bindings[i].View.Equal(y.Bindings[i].View) {
				return false
			}
		}
	case *ir.Copy:
		y := y.(*ir.Copy)
		return x.Src.Equal(y.Src) && x.Dst.Equal(y.Dst)
	case *ir.Fill:
		return x.Dst.Equal(y.(*ir.Fill).Dst)
	}
	return true
}

// trace runs through a graph in written order: what each command reads, and
// what every visible memory holds at the end.
func trace(m *model) (reads [][]reading, final map[string]reading) {
	h := newHistory(m.g)
	reads = make([][]reading, len(m.ops))
	for i := range m.ops {
		o := &m.ops[i]
		for _, x := range o.reads {
			reads[i] = append(reads[i], reading{m, x.region, h.value(x.region)})
		}
		for k, x := range o.writes {
			h.add(&write{op: i, nr: k, region: x.region, must: x.must})
		}
	}
	final = map[string]reading{}
	for i := range m.g.Memories {
		x := &m.g.Memories[i]
		if x.Alias == ir.NoMem && (x.Kind == ir.Output || x.Kind == ir.State) {
			whole := ir.ViewOf(ir.MemID(i), 0, x.Size).Contiguous()
			final[x.Name] = reading{m, whole, h.value(whole)}
		}
	}
	return reads, final
}

// checkValues compares what corresponding commands read, and the final bytes.
// Unknown commands read everything: that nothing crosses them (pillars) makes
// their values equal.
func checkValues(b, a *model, img []int, r *Result) {
	br, bf := trace(b)
	ar, af := trace(a)
	for i := range a.ops {
		x, y := br[img[i]], ar[i]
		ids := func() ([]ir.ID, []ir.ID) { return []ir.ID{b.ops[img[i]].id}, []ir.ID{a.ops[i].id} }
		if len(x) != len(y) || len(b.ops[img[i]].writes) != len(a.ops[i].writes) {
			p, q := ids()
			r.add(Refused, Values, p, q, "%s touches other regions than before", a.g.Describe(a.ops[i].node))
			continue
		}
		for k := range y {
			if !sameShape(x[k].region, y[k].region) {
				p, q := ids()
				r.add(Refused, Values, p, q, "%s reads a region of another shape", a.g.Describe(a.ops[i].node))
				continue
			}
			r.Reads++
			equal, decided := equalValues(x[k], y[k], img)
			if equal {
				continue
			}
			p, q := ids()
			v, why := Refused, "gets its value from elsewhere"
			if !decided {
				v, why = CannotTell, "may get its value from elsewhere: ranges that depend on params or may-writes could not be brought into order"
			}
			r.add(v, Values, p, q, "%s reading %s %s", a.g.Describe(a.ops[i].node), a.g.FormatRegion(y[k].region), why)
		}
		for k := range a.ops[i].writes {
			w, z := b.ops[img[i]].writes[k], a.ops[i].writes[k]
			if w.must != z.must || !sameShape(w.region, z.region) {
				p, q := ids()
				r.add(Refused, Values, p, q, "%s writes a region of another shape", a.g.Describe(a.ops[i].node))
			}
		}
	}
	for i := range a.g.Memories {
		name := a.g.Memories[i].Name
		y, ok := af[name]
		if !ok || y.region.Mem != ir.MemID(i) {
			continue
		}
		r.Reads++
		equal, decided := equalValues(bf[name], y, img)
		switch {
		case equal:
		case decided:
			r.add(Refused, FinalBytes, nil, nil, "%s %%%s ends with other bytes", a.g.Memories[i].Kind, name)
		default:
			r.add(CannotTell, FinalBytes, nil, nil, "%s %%%s may end with other bytes: ranges that depend on params or may-writes could not be brought into order", a.g.Memories[i].Kind, name)
		}
	}
}

// checkAliasing asks every declaration whether the views of a command may
// overlap as they do.
func checkAliasing(a *model, r *Result) {
	for i := range a.ops {
		if in := a.ops[i].inst; in != nil {
			if err := in.CheckAliasing(); err != nil {
				r.add(Refused, Aliasing, nil, []ir.ID{a.ops[i].id}, "%v", err)
			}
		}
	}
}
