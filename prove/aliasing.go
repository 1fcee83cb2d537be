package prove

import "github.com/mlxc/mlxc/ir"

// checkAliasing asks every declaration whether the views of a command may
// overlap as they do. Of a kernel without declaration only what the recording
// did is known to be allowed.
func (p *proof) checkAliasing() {
	for i := range p.a.ops {
		o := &p.a.ops[i]
		d, ok := o.node.(*ir.Dispatch)
		switch {
		case !ok: // ir.Check refuses a copy onto itself
		case o.inst != nil:
			var err error
			if f := o.inst.Form(); f != nil {
				err = f.CheckAliasing(d)
			} else {
				err = o.inst.CheckAliasing()
			}
			if err != nil {
				p.add(Refused, Aliasing, nil, []ir.ID{o.id}, "%v", err)
			}
		case o.known:
			if x, y := p.newOverlap(int32(i)); x != nil {
				p.add(CannotTell, Aliasing, p.before(int32(i)), []ir.ID{d.ID}, "%s: %s, which it writes, overlaps %s otherwise than before, and no declaration says that it may",
					p.a.g.Describe(d), p.a.g.FormatRegion(x.region), p.a.g.FormatRegion(y.region))
			}
		}
	}
}

// newOverlap returns a pair of accesses of command i after, one of them a
// write, that meet and did not lie so in the recording.
func (p *proof) newOverlap(i int32) (x, y *access) {
	now := p.a.accessesOf(i)
	was := p.b.accessesOf(p.sets[i][0])
	for k := range p.a.writesOf(i) {
		for l := range now {
			if k == l || apart(p.a.g, now[k], now[l]) {
				continue
			}
			if now[k].region.Off.Sub(now[l].region.Off).Equal(was[k].region.Off.Sub(was[l].region.Off)) && was[k].region.Mem == was[l].region.Mem {
				continue
			}
			return now[k], now[l]
		}
	}
	return nil, nil
}

// accessesOf returns the writes, then the reads of op i.
func (m *model) accessesOf(i int32) []*access {
	var out []*access
	w := m.writesOf(i)
	for k := range w {
		out = append(out, &w[k].access)
	}
	for k := range m.ops[i].reads {
		out = append(out, &m.ops[i].reads[k])
	}
	return out
}
