package infer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// contradicted returns the views of which an observation has bytes that the model lacks, or lacks bytes that the
// model says are written (narrow), and those of which it has fewer bytes than a model that is marked exact (loose).
func (s *study) contradicted(m *model, o *observation) (narrow, loose []int) {
	for v := range m.fits {
		f, t := &m.fits[v], &o.views[v]
		if f.whole {
			if f.mode == read && len(t.writes) > 0 {
				narrow = append(narrow, v)
			}
			continue
		}
		var got spans
		if f.mode != unused {
			var ok bool
			if got, ok = f.box(o.vals, max(1, s.c.slots[s.c.views[v]].Type.Size())).spans(); !ok {
				narrow = append(narrow, v)
				continue
			}
		}
		wrong := false
		switch f.mode {
		case unused:
			wrong = len(t.all()) > 0
		case read:
			wrong = len(t.writes) > 0 || len(t.reads.minus(got)) > 0
		case write:
			wrong = len(t.reads) > 0 || !t.must.equal(got)
		case update:
			wrong = len(t.all().minus(got)) > 0
		}
		switch {
		case wrong:
			narrow = append(narrow, v)
		case f.exact && !bytesOf(t, f.mode).equal(got):
			loose = append(loose, v)
		}
	}
	return narrow, loose
}

// maxRounds is how often expressions are fitted again with shapes that contradicted them.
const maxRounds = 5

// infer returns a model of the class that holds for everything that was observed, and sets s.counts.HeldOut. The
// model is nil if no shape of the graph could be observed.
func (s *study) infer(ctx context.Context) (*model, error) {
	if err := s.real(ctx); err != nil {
		return nil, err
	}
	if len(s.realShapes()) == 0 {
		return nil, nil
	}
	first, err := s.make(ctx, s.x.o.Shapes, nil, true)
	if err != nil {
		return nil, err
	}
	for _, o := range first {
		s.accept(o)
	}
	// Engines make shapes that satisfy the conditions of the graph's shapes.
	_, mild, _ := s.c.conditions(s.realShapes())
	first, err = s.make(ctx, s.x.o.Shapes/2, onePerSymbol(mild), false)
	if err != nil {
		return nil, err
	}
	for _, o := range first {
		s.accept(o)
	}
	if s.search().bad() > 0 {
		// Some more that are as close to the graph's as possible.
		_, mild, hard := s.c.conditions(s.realShapes())
		if first, err = s.make(ctx, s.x.o.Shapes/4, append(hard, onePerSymbol(mild)...), false); err != nil {
			return nil, err
		}
		for _, o := range first {
			s.accept(o)
		}
	}
	rounds := maxRounds
	if s.many() { // their shapes take little
		rounds *= 2
	}
	widen := make([]bool, len(s.c.views))
	for round := 0; ; round++ {
		var m *model
		if round < rounds-2 {
			m = s.search()
		} else {
			m = s.strictest() // the model was contradicted each time so far
		}
		s.widen(m)
		for v, w := range widen {
			if f := &m.fits[v]; w && !f.whole {
				f.mode = role(under(s.seen, m.ks), v)
				if f.mode == write {
					f.mode = update
				}
				*f = fitted{mode: f.mode, whole: true, why: "each expression that fitted was contradicted by another shape"}
			}
		}
		out, err := s.make(ctx, s.x.o.HeldOut, m.ks, false)
		if err != nil {
			return nil, err
		}
		var wrong []int
		for _, o := range out {
			narrow, loose := s.contradicted(m, o)
			if round < rounds-2 {
				narrow = append(narrow, loose...)
			}
			for _, v := range loose {
				m.fits[v].exact, m.fits[v].why = false, "in some shapes fewer bytes are touched"
			}
			for _, v := range narrow {
				if !slices.Contains(wrong, v) {
					wrong = append(wrong, v)
				}
			}
		}
		depends := slices.Clone(s.depends)
		for _, o := range out {
			s.accept(o)
		}
		if len(wrong) == 0 && slices.Equal(depends, s.depends) {
			s.counts.HeldOut = len(out)
			return m, nil
		}
		if round >= rounds-1 {
			for _, v := range wrong {
				widen[v] = true
			}
		}
		if round >= rounds+len(s.c.views) {
			return nil, fmt.Errorf("kernel %s: no declaration holds on the shapes that were observed", s.c.kernel.Function)
		}
	}
}

// onePerSymbol keeps the first condition of each kind for each symbol.
func onePerSymbol(ks []condition) (out []condition) {
	for _, k := range ks {
		if !slices.ContainsFunc(out, func(o condition) bool { return o.kind == k.kind && o.sym == k.sym }) {
			out = append(out, k)
		}
	}
	return out
}

// split returns a class for each form, in the order of commands.
func (c *class) split() (out []*class) {
	for _, f := range c.forms {
		one := *c
		one.forms = []*form{f}
		out = append(out, &one)
	}
	slices.SortStableFunc(out, func(a, b *class) int { return cmp.Compare(a.forms[0].node.ID, b.forms[0].node.ID) })
	return out
}
