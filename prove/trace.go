package prove

import "github.com/mlxc/mlxc/ir"

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
