package prove

import "github.com/mlxc/mlxc/ir"

// checkAliasing asks every kernel's declaration whether the views of each command may
// overlap as they do. A kernel without declaration is allowed only the overlaps that
// the recording had.
func (p *proof) checkAliasing() {
	for i := range p.a.ops {
		o := &p.a.ops[i]
		d, ok := o.node.(*ir.Dispatch)
		switch {
		case p.usual[i]&unaliased != 0 || !ok: // ir.Check refuses a copy onto itself
		case o.inst != nil:
			if err := p.a.overlap(o, d); err != nil {
				p.add(Refused, Aliasing, nil, []ir.ID{o.id}, "%v", err)
			}
		case o.known:
			if x, y := p.newOverlap(int32(i)); x != nil {
				p.add(CannotTell, Aliasing, p.before(int32(i)), []ir.ID{d.ID}, "%s: %s, which it writes, overlaps %s otherwise than before, and no declaration says that it may",
					p.a.g.Describe(d), p.a.format(x), p.a.format(y))
			}
		}
	}
}

// overlap returns an error if the declaration of d forbids how its views overlap.
func (m *model) overlap(o *op, d *ir.Dispatch) error {
	if o.kind >= 0 {
		return m.kinds[o.kind].form.CheckAliasing(d)
	}
	return o.inst.CheckAliasing()
}

// newOverlap looks for two accesses of command i of A, at least one of them a write,
// that may meet although they did not lie at this distance in the recording. It returns
// nil twice if there are none.
func (p *proof) newOverlap(i int32) (x, y *access) {
	o, was := &p.a.ops[i], &p.b.ops[p.sets.of(i)[0]]
	writes := int(o.whi - o.wlo)
	for k := range writes {
		x = p.a.access(o, k)
		for l := range writes + int(o.rhi-o.rlo) {
			y = p.a.access(o, l)
			if k == l || p.a.apart(x, y) {
				continue
			}
			v, w := p.b.access(was, k), p.b.access(was, l)
			if v.mem != w.mem || !sameDistance(p.a.bounds, p.a.off(x), p.a.off(y), p.b.off(v), p.b.off(w)) {
				return x, y
			}
		}
	}
	return nil, nil
}

// access returns the k-th access of o, counting its writes first and then its reads.
func (m *model) access(o *op, k int) *access {
	if n := int(o.whi - o.wlo); k >= n {
		return &m.reads[int(o.rlo)+k-n]
	}
	return &m.writes[int(o.wlo)+k].access
}
