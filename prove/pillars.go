package prove

import "github.com/mlxc/mlxc/ir"

// A pillar may read what it binds, and write anything, depending on what it read. So
// what a memory holds after a pillar is the same in both graphs if it was the same
// before it.

// checkPillar compares what the memories hold when pillar i of A runs with what they
// hold when its image runs. Memories that the pillar binds must hold the same.
func (p *proof) checkPillar(i int32, now []whole) {
	o := &p.a.ops[i]
	recorded := map[string]*whole{}
	for _, j := range p.sets.of(i) {
		list := p.recorded.pillars[j]
		for k := range list {
			recorded[p.b.g.Memories[list[k].mem].Name] = &list[k]
		}
	}
	compare := func(name string, was, now *whole) {
		same := false
		if was != nil && now != nil {
			p.Reads++
			x, y := p.recorded.whole(was), p.current.whole(now)
			p.taint(&y)
			same, _ = equalValues(&x, &y, &p.recordedNames, &p.images)
			same = same && sameShape(p.b, x.at, p.a, y.at)
		}
		if same {
			delete(p.differs, name)
		} else {
			p.differs[name] = true
		}
	}
	for k := range now {
		name := p.a.g.Memories[now[k].mem].Name
		compare(name, recorded[name], &now[k])
		delete(recorded, name)
	}
	for name := range recorded { // written in B, but not in A
		compare(name, nil, nil)
	}
	if len(p.differs) == 0 {
		return
	}
	o.node.EachView(func(v *ir.View) {
		if name := p.a.g.Memories[p.a.roots[v.Mem].mem].Name; p.differs[name] {
			p.add(CannotTell, Values, p.before(i), []ir.ID{o.id}, "%s has unknown effects, and %%%s, which it binds, holds other bytes than before", p.a.g.Describe(o.node), name)
		}
	})
	p.assume(Values, []ir.ID{o.id}, o.id.String()+" reads no memory that it does not bind")
}

// taint marks a reading of A that sees a memory as the last pillar left it, if B holds
// other bytes there.
func (p *proof) taint(r *reading) {
	r.tainted = r.initial && len(p.differs) > 0 && p.differs[p.a.g.Memories[r.at.mem].Name]
}
