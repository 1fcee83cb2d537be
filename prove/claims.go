package prove

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// checkClaims compares the effects that A stores with the bytes that its commands touch. The proof
// does not use stored effects, but later readers of A may. Stored effects must not leave out a
// byte, and must not say must-write where a write may not happen.
func (p *proof) checkClaims() {
	for i := range p.a.ops {
		o := &p.a.ops[i]
		d, ok := o.node.(*ir.Dispatch)
		if p.usual[i]&claimed != 0 || !ok {
			continue
		}
		foreign := !msl.Declared(&p.a.g.Kernels[d.Kernel])
		switch {
		case foreign && p.a.sameEffects(p.recordedEffects(int32(i), d), p.a.listed(d)):
		case foreign:
			// Only the recording knows what this kernel touches, so A must store
			// exactly that.
			p.add(Refused, Interface, p.before(int32(i)), []ir.ID{d.ID}, "%s: its kernel has no declaration, and the effects that it stores are not those of the recording", p.a.g.Describe(d))
		case o.inst == nil && d.Effects.Known() && !p.saidSo(int32(i), d):
			p.add(Refused, Interface, p.before(int32(i)), []ir.ID{d.ID}, "%s: its declaration does not describe it, and complete effects are stored that the recording does not give", p.a.g.Describe(d))
		case o.inst == nil || !d.Effects.Known():
		case !p.a.claimsAll(o, d.Effects):
			p.add(Refused, Interface, nil, []ir.ID{d.ID}, "%s: the stored effects leave out bytes that the kernel touches, or promise writes that it does not", p.a.g.Describe(d))
		}
	}
}

// saidSo reports whether the recording stores the effects of d, which is command i of A, has no
// term, and implements one command. Then d may have only those effects.
func (p *proof) saidSo(i int32, d *ir.Dispatch) bool {
	e, ok := p.moved.effects(p.b.ops[p.sets.of(i)[0]].node.(*ir.Dispatch), d)
	return ok && p.a.sameEffects(e, p.a.listed(d))
}

// claimsAll reports whether e covers everything that o touches, and calls no write a must-write
// that may not happen.
func (m *model) claimsAll(o *op, e *ir.Effects) bool {
	writes := m.writes[o.wlo:o.whi]
	var reads, claimed []access
	for i := range e.Reads {
		reads = append(reads, m.rooted(&e.Reads[i]))
	}
	for i := range e.Writes {
		w := m.rooted(&e.Writes[i].Region)
		claimed = append(claimed, w)
		if !certain(&e.Writes[i]) {
			reads = append(reads, w)
		}
	}
	for k := o.rlo; k < o.rhi; k++ {
		if !m.anyCovers(reads, &m.reads[k]) {
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
			sure = sure || writes[i].must && m.covers(&writes[i].access, &claimed[k])
		}
		if !sure {
			return false
		}
	}
	return true
}

// claimsThat is a quick test for the usual case of claimsAll: e lists exactly the
// regions that o touches.
func (m *model) claimsThat(o *op, e *ir.Effects) (same bool) {
	writes := m.writes[o.wlo:o.whi]
	same = len(e.Reads) == int(o.maybe-o.rlo) && len(e.Writes) == len(writes)
	for i := 0; same && i < len(e.Reads); i++ {
		same = m.isRegion(&m.reads[int(o.rlo)+i], &e.Reads[i])
	}
	for i := 0; same && i < len(writes); i++ {
		same = writes[i].must == certain(&e.Writes[i]) && m.isRegion(&writes[i].access, &e.Writes[i].Region)
	}
	return same
}

// isRegion compares an access with a stored region.
func (m *model) isRegion(x *access, y *ir.Region) bool {
	if x.flat() {
		at := &m.roots[y.Mem]
		return len(y.Dims) == 0 && y.Off.IsConst() && y.Run.IsConst() && x.mem == at.mem && x.lo == y.Off.Const+at.off && x.end-x.lo == y.Run.Const
	}
	return m.sameRegion(&m.shapes.of(x).Region, y)
}

// sameRegion compares x, a region in a root memory, with the stored region y.
func (m *model) sameRegion(x, y *ir.Region) bool {
	at := &m.roots[y.Mem]
	return x.Mem == at.mem && x.Off.Equal(y.Off.AddConst(at.off)) && sameExtents(x, y)
}

func (m *model) anyCovers(list []access, r *access) bool {
	for i := range list {
		if m.covers(&list[i], r) {
			return true
		}
	}
	return m.void(r)
}

// sameEffects compares x, effects in root memories, with the stored effects y. Either
// may be unknown.
func (m *model) sameEffects(x, y *ir.Effects) bool {
	if x == nil || y == nil {
		return x == y
	}
	if x.Complete != y.Complete || len(x.Reads) != len(y.Reads) || len(x.Writes) != len(y.Writes) {
		return false
	}
	for i := range x.Reads {
		if !m.sameRegion(&x.Reads[i], &y.Reads[i]) {
			return false
		}
	}
	for i := range x.Writes {
		w, z := &x.Writes[i], &y.Writes[i]
		if w.Must != z.Must || w.Atomic != z.Atomic || !m.sameRegion(&w.Region, &z.Region) {
			return false
		}
	}
	return true
}
