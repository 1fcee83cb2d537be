package prove

import "github.com/mlxc/mlxc/ir"

// readings are what the commands of a graph read in written order, and what
// every visible memory holds at the end.
type readings struct {
	of    [][]reading // by op and read; of a pillar, by memory written since the one before
	final map[string]*reading
}

// trace runs through a graph in written order.
func trace(m *model) *readings {
	h := newHistory(m)
	out := &readings{of: make([][]reading, len(m.ops))}
	slab := []reading{}
	for i := range m.ops {
		o := &m.ops[i]
		if !o.known {
			out.of[i] = h.pillar()
			continue
		}
		if cap(slab)-len(slab) < len(o.reads) {
			slab = make([]reading, 0, max(len(o.reads), 1024))
		}
		first := len(slab)
		for k := range o.reads {
			slab = append(slab, h.read(&o.reads[k]))
		}
		out.of[i] = slab[first:len(slab):len(slab)]
		for w := o.wlo; w < o.whi; w++ {
			h.add(w)
		}
	}
	out.final = h.final()
	return out
}

// final returns what outputs and states hold.
func (h *history) final() map[string]*reading {
	out := map[string]*reading{}
	for i := range h.m.g.Memories {
		x := &h.m.g.Memories[i]
		if x.Alias != ir.NoMem || x.Kind != ir.Output && x.Kind != ir.State {
			continue
		}
		whole := h.m.rooted(ir.ViewOf(ir.MemID(i), 0, x.Size).Contiguous())
		r := h.read(&whole)
		out[x.Name] = &r
	}
	return out
}

// checkValues compares what corresponding commands read, in the written order
// of the graph after, and then the final bytes.
func (p *proof) checkValues() {
	for i := range p.a.ops {
		switch now := p.current.of[i]; {
		case !p.a.ops[i].known:
			p.checkPillar(int32(i), now)
		case !p.dead[i]:
			for k := range now {
				p.taint(&now[k])
			}
			p.checkReads(int32(i), now)
		}
	}
	final := p.current.final
	for i := range p.a.g.Memories {
		x := &p.a.g.Memories[i]
		y := final[x.Name]
		if y == nil || y.at.region.Mem != ir.MemID(i) {
			continue
		}
		p.Reads++
		p.taint(y)
		equal, decided := equalValues(p.recorded.final[x.Name], y, p.recordedNames, p.images)
		switch {
		case equal:
		case decided:
			p.add(Refused, FinalBytes, nil, nil, "%s %%%s ends with other bytes", x.Kind, x.Name)
		default:
			p.add(CannotTell, FinalBytes, nil, nil, "%s %%%s may end with other bytes: ranges that depend on params or may-writes could not be brought into order", x.Kind, x.Name)
		}
	}
}

// checkReads compares what command i after reads with what its image reads, and
// finds the images of its writes.
func (p *proof) checkReads(i int32, now []reading) {
	o := &p.a.ops[i]
	if !p.unfused(i) {
		p.checkFusion(i, now)
		return
	}
	j := p.sets[i][0]
	was, x := &p.b.ops[j], p.recorded.of[j]
	fail := func(v Verdict, format string, args ...any) {
		p.add(v, Values, []ir.ID{was.id}, []ir.ID{o.id}, format, append([]any{p.a.g.Describe(o.node)}, args...)...)
	}
	// The same command touches regions of the same shapes, but for what their form
	// owes to constraints between params, which each graph may write in its way.
	if !p.sameShapes(was, o) {
		fail(CannotTell, "%s may touch other regions than before: the constraints between params do not tell")
		return
	}
	for k := range now {
		p.Reads++
		equal, decided := equalValues(&x[k], &now[k], p.recordedNames, p.images)
		switch {
		case equal:
		case decided:
			fail(Refused, "%s reading %s gets its value from elsewhere", p.a.g.FormatRegion(now[k].at.region))
		default:
			fail(CannotTell, "%s reading %s may get its value from elsewhere: ranges that depend on params, may-writes or commands of unknown effects could not be brought into order", p.a.g.FormatRegion(now[k].at.region))
		}
	}
	for k := range o.whi - o.wlo {
		p.images[o.wlo+k] = p.recordedNames[was.wlo+k]
	}
}

// sameShapes reports whether two commands touch regions that are alike but for
// where they begin, and write them with the same certainty.
func (p *proof) sameShapes(b, a *op) bool {
	same := len(b.reads) == len(a.reads) && b.whi-b.wlo == a.whi-a.wlo
	for k := 0; same && k < len(a.reads); k++ {
		same = sameShape(&b.reads[k].region, &a.reads[k].region)
	}
	for k := int32(0); same && k < a.whi-a.wlo; k++ {
		w, z := &p.b.writes[b.wlo+k], &p.a.writes[a.wlo+k]
		same = w.must == z.must && sameShape(&w.region, &z.region)
	}
	return same
}
