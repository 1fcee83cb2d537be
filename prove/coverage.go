package prove

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// findDead marks the commands of A whose results reach no output, no state, and no memory that a
// pillar may read. They need no image, because nobody reads what they write.
func (p *proof) findDead() {
	p.dead = make([]bool, len(p.a.ops))
	live := make([]bool, len(p.a.ops))
	last := seen{}
	logs := map[int64]span{} // by part: the writes of its log that were marked
	mark := func(s *seen) {
		if s.n < 0 {
			from := s.from & (1<<32 - 1)
			to, was := from-int64(s.n), logs[s.from>>32]
			if to < was.lo || was.lo == was.end {
				was = span{to, to}
			}
			// Commands are visited from the last one to the first, so that the readers of a write
			// were marked before it.
			for _, w := range p.current.h.parts[s.from>>32].log[from:max(from, was.lo)] {
				live[p.a.writes[w].op] = true
			}
			for _, w := range p.current.h.parts[s.from>>32].log[min(to, was.end):to] {
				live[p.a.writes[w].op] = true
			}
			logs[s.from>>32] = span{min(from, was.lo), max(to, was.end)}
			return
		}
		if s.from == last.from && s.n <= last.n {
			return // the search would take quadratic time if many commands read what many wrote
		}
		last = *s
		for _, w := range p.current.h.writes(s) {
			live[p.a.writes[w].op] = true
		}
	}
	for i := range p.current.final {
		mark(&p.current.final[i].seen)
	}
	for i := len(p.a.ops) - 1; i >= 0; i-- {
		o := &p.a.ops[i]
		if !o.known {
			list := p.current.pillars[int32(i)]
			for k := range list {
				mark(&list[k].seen)
			}
			continue
		}
		if p.dead[i] = !live[i]; p.dead[i] {
			p.Dead++
			continue
		}
		for k := o.rlo; k < o.rhi; k++ {
			mark(&p.current.of[k])
		}
	}
}

// checkCoverage compares every live command of A with its image, finds commands of B
// that were left out, and checks that nothing crosses a pillar.
func (p *proof) checkCoverage() {
	implemented := make([]bool, len(p.b.ops))
	for i := range p.a.ops {
		if p.dead[i] {
			continue
		}
		o := &p.a.ops[i]
		set := p.sets.of(int32(i))
		if len(set) == 0 {
			p.add(Refused, Coverage, nil, []ir.ID{o.id}, "%s implements no command of before", p.a.g.Describe(o.node))
			continue
		}
		for _, j := range set {
			// Running a command twice is right if its kernel promises the same result
			// from the same input.
			if implemented[j] && !p.repeatable(j) {
				p.add(Refused, Coverage, []ir.ID{p.b.ops[j].id}, []ir.ID{o.id}, "%s is implemented twice", p.b.g.Describe(p.b.ops[j].node))
			}
			implemented[j] = true
		}
		if !p.checkCommand(int32(i)) {
			return
		}
	}
	for j := range implemented {
		if implemented[j] {
			continue
		}
		p.Dropped++
		if o := &p.b.ops[j]; !o.known {
			p.add(Refused, Coverage, []ir.ID{o.id}, nil, "%s is left out, but its effects are unknown", p.b.g.Describe(o.node))
		}
	}
}

// repeatable reports whether running command j of B again with the same input is known
// to write the same bytes.
func (p *proof) repeatable(j int32) bool {
	o := &p.b.ops[j]
	_, dispatch := o.node.(*ir.Dispatch)
	return !dispatch || o.inst != nil && !o.inst.Decl.Nondeterministic
}

// checkCommand compares command i of A with its image. It returns false if the checks
// that follow would make no sense.
func (p *proof) checkCommand(i int32) bool {
	o, set := &p.a.ops[i], p.sets.of(i)
	if len(set) == 1 {
		was := &p.b.ops[set[0]]
		why := difference{}
		if !p.same[i] {
			why = p.twins.sameCommand(was.node, o.node)
		}
		d, ok := o.node.(*ir.Dispatch)
		switch {
		case why == anotherKernel && was.inst != nil && o.inst != nil: // its term may be equal nevertheless: point 5
		case !why.none():
			v := Refused
			if why.unsure {
				v = CannotTell
			}
			p.add(v, Interface, p.before(i), []ir.ID{o.id}, "%s is not %s of before: %s", p.a.g.Describe(o.node), p.b.g.Describe(was.node), why.text)
			return true
		case !o.known && was.known && ok && !msl.Declared(&p.a.g.Kernels[d.Kernel]):
			p.add(CannotTell, Coverage, p.before(i), []ir.ID{o.id}, "%s has no declaration, and its views changed so that the recording does not say what it touches", p.a.g.Describe(o.node))
			return false // every later command would seem to cross it
		case !o.known && !was.known && !sameViews(p.b.g, p.a.g, was.node.(*ir.Dispatch), d):
			p.add(CannotTell, Values, p.before(i), []ir.ID{o.id}, "%s has unknown effects and another view than before", p.a.g.Describe(o.node))
		case why.none():
			p.checkPinned(i)
		}
	}
	// Each pillar is an era of its own: it can be the image of exactly one pillar, and
	// of nothing beside it.
	for _, j := range set {
		if was := &p.b.ops[j]; was.era != o.era {
			p.add(Refused, Order, []ir.ID{was.id}, []ir.ID{o.id}, "%s crosses a command of unknown effects", p.a.g.Describe(o.node))
			break
		}
	}
	return true
}

// before returns the IDs of the commands of B that command i of A implements.
func (p *proof) before(i int32) []ir.ID {
	set := p.sets.of(i)
	out := make([]ir.ID, len(set))
	for k, j := range set {
		out[k] = p.b.ops[j].id
	}
	return out
}

// sameViews reports whether two dispatches, which sameCommand finds to be the same,
// bind the same bytes of memories of the same names.
func sameViews(bg, ag *ir.Graph, d, e *ir.Dispatch) bool {
	for i := range d.Bindings {
		if d.Bindings[i].Kind != ir.BindView || bg.Memories[d.Bindings[i].View.Mem].Kind == ir.Argument {
			continue // bytes that the host gives were compared already
		}
		if !samePlaces(bg, ag, d.Bindings[i].View, e.Bindings[i].View) {
			return false
		}
	}
	return true
}

// samePlaces reports whether two views begin at the same byte of memories of one name.
func samePlaces(bg, ag *ir.Graph, v, w ir.View) bool {
	vm, voff := bg.Root(v.Mem)
	wm, woff := ag.Root(w.Mem)
	m, n := &bg.Memories[vm], &ag.Memories[wm]
	return m.Name == n.Name && m.Kind == n.Kind && m.Size == n.Size && v.Off.AddConst(voff).Equal(w.Off.AddConst(woff))
}
