package prove

import "github.com/mlxc/mlxc/ir"

// readings are what the commands of a graph read if they run in the order of the list, and what the
// memories that the host sees hold at the end.
type readings struct {
	h       *history
	of      []seen            // by read, as model.reads
	pillars map[int32][]whole // by op, for pillars: what the memories hold that were written since the previous pillar
	final   []whole           // of outputs, states and inputs that are carried to
}

// trace runs through a graph in written order.
func trace(m *model) *readings { return traceLike(m, nil) }

// traceLike is trace for a graph that will be compared with another one: a part of the other graph
// is made a part here too. other may be nil.
func traceLike(m *model, other *history) *readings {
	var parts []part
	if other != nil && len(other.parts) > 0 {
		parts = m.partsLike(other)
	}
	for left := maxRestarts; ; left-- {
		h := newHistory(m, parts)
		h.settled = left <= 0
		if t := h.trace(); t != nil {
			return t
		}
		parts, _ = h.crowdedParts()
	}
}

// trace returns nil if parts were found, so that the graph has to be traced anew.
func (h *history) trace() *readings {
	m := h.m
	t := &readings{h: h, of: make([]seen, len(m.reads)), pillars: map[int32][]whole{}}
	for i := range m.ops {
		o := &m.ops[i]
		if !o.known {
			t.pillars[int32(i)] = h.pillar()
			continue
		}
		for k := o.rlo; k < o.rhi; k++ {
			t.of[k] = h.read(&m.reads[k])
		}
		for w := o.wlo; w < o.whi; w++ {
			h.add(w)
		}
		if !h.settled && h.crowded() {
			if _, found := h.crowdedParts(); found {
				return nil
			}
			h.settled = true
		}
	}
	for i := range m.g.Memories {
		if x := &m.g.Memories[i]; x.Alias == ir.NoMem && (x.Kind == ir.Output || x.Kind == ir.State || x.Kind == ir.Input && !m.readOnly(ir.MemID(i))) {
			t.final = append(t.final, h.whole(ir.MemID(i)))
		}
	}
	return t
}

// reading returns what read k of the graph sees; k counts over all ops.
func (t *readings) reading(k int32) reading { return t.h.reading(&t.h.m.reads[k], t.of[k]) }

// whole returns what was seen of a whole memory.
func (t *readings) whole(w *whole) reading { return t.h.reading(&w.access, w.seen) }

// checkValues goes through A in written order and compares what each command reads with
// what its image reads. Then it compares the final bytes.
func (p *proof) checkValues() {
	for i := range p.a.ops {
		switch {
		case !p.a.ops[i].known:
			p.checkPillar(int32(i), p.current.pillars[int32(i)])
		case !p.dead[i]:
			p.checkReads(int32(i))
		}
	}
	recorded := map[string]*whole{}
	for i := range p.recorded.final {
		w := &p.recorded.final[i]
		recorded[p.b.g.Memories[w.mem].Name] = w
	}
	for i := range p.current.final {
		w := &p.current.final[i]
		x := &p.a.g.Memories[w.mem]
		p.Reads++
		was, now := p.recorded.whole(recorded[x.Name]), p.current.whole(w)
		p.taint(&now)
		equal, decided := equalValues(&was, &now, &p.recordedNames, &p.images)
		switch {
		case equal:
		case decided:
			p.add(Refused, FinalBytes, nil, nil, "%s %%%s ends with other bytes", x.Kind, x.Name)
		default:
			p.add(CannotTell, FinalBytes, nil, nil, "%s %%%s may end with other bytes: ranges that depend on params or may-writes could not be brought into order", x.Kind, x.Name)
		}
	}
}

// reading returns what read k of A sees; k counts over all ops.
func (p *proof) reading(k int32) reading {
	r := p.current.reading(k)
	p.taint(&r)
	return r
}

// checkReads compares what command i of A reads with what its image reads, and finds
// the images of its writes.
func (p *proof) checkReads(i int32) {
	if !p.same[i] {
		p.checkFusion(i)
		return
	}
	o, j := &p.a.ops[i], p.sets.of(i)[0]
	was := &p.b.ops[j]
	fail := func(v Verdict, format string, args ...any) {
		p.add(v, Values, []ir.ID{was.id}, []ir.ID{o.id}, format, append([]any{p.a.g.Describe(o.node)}, args...)...)
	}
	// The same command touches regions of the same shapes, except that a shape may be
	// derived from constraints between params, which each graph may write differently.
	if !p.sameShapes(was, o) {
		fail(CannotTell, "%s may touch other regions than before: the constraints between params do not tell")
		return
	}
	for k := range o.rhi - o.rlo {
		p.Reads++
		x, y := p.recorded.reading(was.rlo+k), p.reading(o.rlo+k)
		equal, decided := equalValues(&x, &y, &p.recordedNames, &p.images)
		switch {
		case equal:
		case decided:
			fail(Refused, "%s reading %s gets its value from elsewhere", p.a.format(y.at))
		default:
			fail(CannotTell, "%s reading %s may get its value from elsewhere: ranges that depend on params, may-writes or commands of unknown effects could not be brought into order", p.a.format(y.at))
		}
	}
	for k := range o.whi - o.wlo {
		p.images.images[o.wlo+k] = was.wlo + k
	}
}

// sameShapes is shapesAlike for a command b of B and a command a of A.
func (p *proof) sameShapes(b, a *op) bool { return shapesAlike(p.b, b, p.a, a) }

// shapesAlike reports whether two commands touch regions that differ only in where they
// begin, and write them with the same certainty.
func shapesAlike(m *model, b *op, n *model, a *op) bool {
	same := b.rhi-b.rlo == a.rhi-a.rlo && b.whi-b.wlo == a.whi-a.wlo
	for k := int32(0); same && k < a.rhi-a.rlo; k++ {
		same = sameShape(m, &m.reads[b.rlo+k], n, &n.reads[a.rlo+k])
	}
	for k := int32(0); same && k < a.whi-a.wlo; k++ {
		w, z := &m.writes[b.wlo+k], &n.writes[a.wlo+k]
		same = w.must == z.must && sameShape(m, &w.access, n, &z.access)
	}
	return same
}
