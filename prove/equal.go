package prove

import (
	"hash/maphash"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// mergeEqual gives one name to writes of B that have equal bytes: those of two commands
// that are the same and read the same, and those of a copy and of what it copies. If A
// leaves one of the two out and reads the other, it then reads the same value.
func (p *proof) mergeEqual() {
	h := newHasher(p.b, p.recorded, maphash.MakeSeed())
	itself := newTwins(p.b.g, p.b.g)
	first := map[uint64]int32{}
	for j := range p.b.ops {
		i := int32(j)
		number := h.op(i)
		h.note(i, number)
		o := &p.b.ops[i]
		if w, ok := copied(p.b, p.recorded, i); ok {
			p.recordedNames.join(w, o.wlo)
			h.writes[o.wlo] = h.writes[w]
			continue
		}
		k, ok := first[number]
		if !ok {
			first[number] = i
			continue
		}
		if p.sameResults(itself, &p.b.ops[k], o) {
			for w := range o.whi - o.wlo {
				p.recordedNames.join(p.b.ops[k].wlo+w, o.wlo+w)
			}
		}
	}
}

// sameResults reports whether two commands of B, of the same era, write the same bytes.
func (p *proof) sameResults(t *twins, x, y *op) bool {
	if !x.known || !y.known || x.era != y.era || p.nondeterministic(x) || !t.sameCommand(x.node, y.node).none() || !shapesAlike(p.b, x, p.b, y) {
		return false
	}
	for w := x.wlo; w < x.whi; w++ {
		if !p.b.writes[w].must {
			return false
		}
	}
	for k := range x.rhi - x.rlo {
		r, s := p.recorded.reading(x.rlo+k), p.recorded.reading(y.rlo+k)
		if equal, _ := equalValues(&r, &s, &p.recordedNames, &p.recordedNames); !equal {
			return false
		}
	}
	return p.samePins(x, y)
}

// samePins reports whether two commands of one kernel bind the same bytes where their effects do
// not list what they bind.
func (p *proof) samePins(x, y *op) bool {
	d, ok := x.node.(*ir.Dispatch)
	if !ok || msl.Declared(&p.b.g.Kernels[d.Kernel]) {
		return true
	}
	e := y.node.(*ir.Dispatch)
	for k := range d.Bindings {
		b, c := &d.Bindings[k], &e.Bindings[k]
		if b.Kind == ir.BindView && !p.b.given(b) && !p.b.constant(d, b) && !(p.b.touches(x, d.Effects, &b.View) && p.b.touches(y, e.Effects, &c.View)) && !b.View.Equal(c.View) {
			return false
		}
	}
	return true
}

// nondeterministic reports whether two runs of o on the same input may write different
// bytes.
func (p *proof) nondeterministic(o *op) bool { return o.inst != nil && o.inst.Decl.Nondeterministic }

// copied returns the write whose bytes op i copies. ok is false unless i is a copy and
// all of its source is that one write.
func copied(m *model, t *readings, i int32) (w int32, ok bool) {
	o := &m.ops[i]
	if !m.copies(i) {
		return 0, false
	}
	r := t.reading(o.rlo)
	if !oneWrite(&r) {
		return 0, false
	}
	from := &m.writes[r.writes[0]]
	d, same := m.off(&from.access).Distance(m.off(r.at))
	return r.writes[0], from.must && same && d == 0 && sameShape(m, &from.access, m, r.at)
}

// copies reports whether op i has one read and one write and writes exactly the bytes
// that it reads, in a region of the same shape: it is a copy command, or the term of
// its kernel is the argument itself.
func (m *model) copies(i int32) bool {
	o := &m.ops[i]
	if o.rhi-o.rlo != 1 || o.whi-o.wlo != 1 {
		return false
	}
	if _, isCopy := o.node.(*ir.Copy); isCopy {
		return true
	}
	if o.kind < 0 || !m.writes[o.wlo].must || !sameShape(m, &m.reads[o.rlo], m, &m.writes[o.wlo].access) {
		return false
	}
	for len(m.copying) <= int(o.kind) {
		m.copying = append(m.copying, unsure)
	}
	if !invariants.Caches || m.copying[o.kind] == unsure {
		m.copying[o.kind] = differ
		if m.termCopies(i) {
			m.copying[o.kind] = same
		}
	}
	return m.copying[o.kind] == same
}

// termCopies is copies for a dispatch, decided by the term of its kernel.
func (m *model) termCopies(i int32) (found bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case undecided:
			found = false
		default:
			panic(r)
		}
	}()
	o := &m.ops[i]
	t := newTable(m.g)
	s := &side{m: m, leaf: func(int32, int) int { return 0 },
		read: func(op int32, k int) reading { return reading{m: m, at: &m.reads[m.ops[op].rlo], initial: true} }}
	s.begin(t)
	arg := o.writtenArg(0)
	off, level := s.element(o, arg)
	dt := o.inst.Decl.Args[arg].Elem
	return dt.Float() && s.stored(o.wlo, off, dt, level) == t.intern(node{form: floatLoad, text: dt.String(), args: []termID{off}})
}
