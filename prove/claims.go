package prove

import "github.com/mlxc/mlxc/ir"

// checkClaims compares the effects that the graph after stores with what its
// commands touch. The proof does not use them, but whoever reads the graph next
// may: they must not leave out a byte, nor promise a write that may not happen.
func (p *proof) checkClaims() {
	for i := range p.a.ops {
		o := &p.a.ops[i]
		d, ok := o.node.(*ir.Dispatch)
		if !ok {
			continue
		}
		foreign := !p.a.g.Kernels[d.Kernel].Library.Declared()
		switch {
		case foreign && !p.a.sameEffects(p.toldOf(i), d.Effects):
			// Nobody but the recording knows what it touches: not a byte less, nor more.
			p.add(Refused, Interface, p.before(int32(i)), []ir.ID{d.ID}, "%s: nobody but the recording knows its effects, and other ones are stored", p.a.g.Describe(d))
		case o.inst == nil && d.Effects.Known() && !p.saidSo(int32(i), d):
			p.add(Refused, Interface, p.before(int32(i)), []ir.ID{d.ID}, "%s: its declaration does not describe it, and complete effects are stored that the recording does not give", p.a.g.Describe(d))
		case foreign || o.inst == nil || !d.Effects.Known():
		case !p.a.claimsAll(o, d.Effects):
			p.add(Refused, Interface, nil, []ir.ID{d.ID}, "%s: the stored effects leave out bytes that the kernel touches, or promise writes that it does not", p.a.g.Describe(d))
		}
	}
}

// saidSo reports whether the recording stores the effects of d, which is command
// i after and unfused: it has no term.
func (p *proof) saidSo(i int32, d *ir.Dispatch) bool {
	e, ok := translate(p.b.g, p.a.g, p.b.ops[p.sets[i][0]].node.(*ir.Dispatch), d)
	return ok && p.a.sameEffects(e, d.Effects)
}

// toldOf returns what the recording says that command i after touches.
func (p *proof) toldOf(i int) *ir.Effects {
	if p.told == nil {
		return nil
	}
	return p.told[i]
}

// claimsAll reports whether e covers everything that o touches and calls no
// write certain that is not.
func (m *model) claimsAll(o *op, e *ir.Effects) bool {
	if m.claimsThat(o, e) {
		return true
	}
	writes := m.writes[o.wlo:o.whi]
	var reads, claimed []access
	for _, x := range e.Reads {
		reads = append(reads, m.rooted(x))
	}
	for i := range e.Writes {
		w := m.rooted(e.Writes[i].Region)
		claimed = append(claimed, w)
		if !certain(&e.Writes[i]) {
			reads = append(reads, w)
		}
	}
	for i := range o.reads {
		if !m.anyCovers(reads, &o.reads[i]) {
			return false
		}
	}
	for i := range writes {
		if !m.anyCovers(claimed, &writes[i].access) {
			return false
		}
	}
	for k := range claimed {
		if !e.Writes[k].Must {
			continue
		}
		sure := false
		for i := range writes {
			sure = sure || writes[i].must && covers(m.g, &writes[i].access, &claimed[k])
		}
		if !sure {
			return false
		}
	}
	return true
}

// claimsThat is the usual case: the very regions.
func (m *model) claimsThat(o *op, e *ir.Effects) bool {
	writes := m.writes[o.wlo:o.whi]
	if len(e.Reads) != int(o.source) || len(e.Writes) != len(writes) {
		return false
	}
	for i := range e.Reads {
		if !m.sameRegion(&o.reads[i].region, &e.Reads[i]) {
			return false
		}
	}
	for i := range writes {
		if writes[i].must != certain(&e.Writes[i]) || !m.sameRegion(&writes[i].region, &e.Writes[i].Region) {
			return false
		}
	}
	return true
}

// sameRegion compares a region in a root memory with a stored one.
func (m *model) sameRegion(x, y *ir.Region) bool {
	root, off := m.g.Root(y.Mem)
	return x.Mem == root && (off == 0 && x.Off.Equal(y.Off) || off != 0 && x.Off.Equal(y.Off.AddConst(off))) && sameShape(x, y)
}

func (m *model) anyCovers(list []access, r *access) bool {
	for i := range list {
		if covers(m.g, &list[i], r) {
			return true
		}
	}
	return void(&r.region)
}

// sameEffects compares lists of effects, known or not, aliases resolved.
func (m *model) sameEffects(x, y *ir.Effects) bool {
	if x == nil || y == nil {
		return x == y
	}
	if x.Complete != y.Complete || len(x.Reads) != len(y.Reads) || len(x.Writes) != len(y.Writes) {
		return false
	}
	for i := range x.Reads {
		r := m.rooted(x.Reads[i])
		if !m.sameRegion(&r.region, &y.Reads[i]) {
			return false
		}
	}
	for i := range x.Writes {
		w, z := &x.Writes[i], &y.Writes[i]
		r := m.rooted(w.Region)
		if w.Must != z.Must || w.Atomic != z.Atomic || !m.sameRegion(&r.region, &z.Region) {
			return false
		}
	}
	return true
}
