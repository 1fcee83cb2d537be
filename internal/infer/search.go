package infer

import (
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/mix"
)

// model is a set of conditions on the symbols, and what is fitted to the views under them.
type model struct {
	ks    []condition
	fits  []fitted
	least bool
	seen  []*observation // those that satisfy the conditions
	skip  uint64         // a bit for each symbol that a condition expresses by others
}

// bad returns how many views have no exact fit.
func (m *model) bad() (n int) {
	for i := range m.fits {
		if !m.fits[i].exact {
			n++
		}
	}
	return n
}

// under returns the observations that satisfy the conditions.
func under(seen []*observation, ks []condition) (out []*observation) {
	for _, o := range seen {
		if all(ks, o.vals) {
			out = append(out, o)
		}
	}
	return out
}

// fitAll fits every view to the observations that satisfy the conditions. Exact fits in from, a model of these shapes
// and more, are kept where they still apply.
func (s *study) fitAll(ks []condition, least bool, from *model) *model {
	seen := under(s.seen, ks)
	skip := uint64(0)
	for _, k := range ks {
		if k.kind == tied && k.sym < 64 {
			skip |= 1 << k.sym
		}
	}
	m := &model{ks: ks, least: least, seen: seen, skip: skip}
	for v := range s.c.views {
		if from != nil && from.fits[v].exact && from.fits[v].mode == role(seen, v) && !from.fits[v].uses(skip) {
			m.fits = append(m.fits, from.fits[v])
			continue
		}
		m.fits = append(m.fits, s.fit(m, v))
	}
	return m
}

// tableFor returns the table for the bytes of a view in the observations of a model.
func (s *study) tableFor(m *model, v int, as mode) *table {
	skip := m.skip
	if s.many() { // of a struct of many words, most count for other arguments, or for none
		key := relevance{v, as, len(s.seen)}
		all, ok := s.relevances[key]
		if !ok {
			all = s.relevant(s.seen, v, as, 0, 0)
			s.relevances[key] = all
		}
		// What conditions express is given by other symbols.
		skip = ^s.relevant(m.seen, v, as, all&^skip, skip)
	}
	return s.tableOf(m.seen, skip)
}

// relevance says for which bytes, and from how many observations, relevant symbols were found.
type relevance struct {
	view int
	as   mode
	seen int
}

// relevant returns a bit for each of a few symbols of whose values the bytes of a view are a function, as far as observations show: of
// two with different bytes, one of these symbols differs. They include those in out, and none in skip.
func (s *study) relevant(seen []*observation, v int, as mode, out, skip uint64) uint64 {
	hashes := make([]uint64, len(seen))
	for i, o := range seen {
		for _, x := range bytesOf(&o.views[v], as) {
			hashes[i] = mix.Word(mix.Word(hashes[i], uint64(x.lo)), uint64(x.hi))
		}
	}
	for {
		// Each observation is compared with the first one that has its values of the symbols so far.
		first := map[uint64]int{}
		votes := make([]int, len(s.c.names))
		for i, o := range seen {
			key := uint64(0)
			for k, x := range o.vals {
				if out>>k&1 != 0 {
					key = mix.Word(key, uint64(x))
				}
			}
			j, ok := first[key]
			if !ok {
				first[key] = i
				continue
			}
			if hashes[i] == hashes[j] {
				continue
			}
			var differ []int
			for k, x := range o.vals {
				if x != seen[j].vals[k] && (skip|out)>>k&1 == 0 {
					differ = append(differ, k)
				}
			}
			for _, k := range differ {
				if votes[k]++; len(differ) == 1 { // it must be this one
					votes[k] += len(seen)
				}
			}
		}
		best := 0
		for k, n := range votes {
			if n > votes[best] {
				best = k
			}
		}
		if votes[best] == 0 {
			return out
		}
		out |= 1 << best
	}
}

// tableOf returns the table for shapes. Tables are kept, since the same shapes are asked for repeatedly.
func (s *study) tableOf(seen []*observation, skip uint64) *table {
	key := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+4*len(seen)), skip)
	rows := make([][]int64, len(seen))
	for i, o := range seen {
		rows[i] = o.vals
		key = binary.LittleEndian.AppendUint32(key, uint32(o.number))
	}
	if s.tables == nil || len(s.tables) > 256 {
		s.tables = map[string]*table{}
	}
	t := s.tables[string(key)]
	if t == nil {
		t = newTable(rows, s.c.divided, skip)
		s.tables[string(key)] = t
	}
	return t
}

// search looks for conditions under which all views have an exact fit: at first none, then weak ones that are added
// one by one, and at last all but those that can be left out.
func (s *study) search() *model {
	hopeless := 0
	for _, d := range s.depends {
		if d {
			hopeless++
		}
	}
	weak, mild, hard := s.c.conditions(s.realShapes())
	var best *model
	better := func(m *model) {
		if best == nil || m.bad() < best.bad() {
			best = m
		}
	}
	for _, phase := range []struct {
		try   []condition
		least bool
	}{{nil, false}, {mild, false}, {nil, true}, {mild, true}} {
		from := best
		if best != nil && len(best.ks) > 0 { // of fewer shapes
			from = nil
		}
		m := s.fitAll(nil, phase.least, from)
		better(m)
		for m != nil && m.bad() > hopeless {
			if m = s.narrower(m, phase.try); m != nil {
				better(m)
			}
		}
		if best.bad() <= hopeless {
			return best
		}
	}
	if s.many() { // strides of several dimensions have to be aligned at once
		if better(s.wider(weak, hopeless)); best.bad() <= hopeless {
			return best
		}
	}
	better(s.wider(append(slices.Clone(hard), onePerSymbol(mild)...), hopeless))
	return best
}

// strictest returns the model under all conditions, which few shapes but the graph's own satisfy.
func (s *study) strictest() *model {
	_, mild, hard := s.c.conditions(s.realShapes())
	ks := append(slices.Clone(hard), onePerSymbol(mild)...)
	m := s.fitAll(ks, false, nil)
	if least := s.fitAll(ks, true, m); least.bad() < m.bad() {
		return least
	}
	return m
}

// enough is how many made-up shapes must satisfy conditions for a fit under them to count: anything fits few shapes.
const enough = 5

// narrower returns the model with one more condition that has the fewest bad views, or nil if no condition makes them
// fewer.
func (s *study) narrower(m *model, try []condition) (best *model) {
	for _, k := range try {
		if slices.ContainsFunc(m.ks, func(o condition) bool {
			return o.sym == k.sym && (o.kind == k.kind || o.kind != aligned && k.kind != aligned)
		}) {
			continue
		}
		ks := append(slices.Clone(m.ks), k)
		if n := len(under(s.seen, ks)); n < s.counts.Real+enough || n == len(m.seen) {
			continue
		}
		next := s.fitAll(ks, m.least, m)
		if next.bad() < m.bad() && (best == nil || next.bad() < best.bad()) {
			best = next
		}
	}
	return best
}

// wider begins with all conditions, and leaves out each one without which no more views are bad, as shapes show that do not fulfil it.
func (s *study) wider(ks []condition, hopeless int) *model {
	m := s.fitAll(ks, false, nil)
	if m.bad() > hopeless {
		if least := s.fitAll(ks, true, m); least.bad() < m.bad() {
			m = least
		}
	}
	for i := len(m.ks) - 1; i >= 0; i-- {
		ks := slices.Delete(slices.Clone(m.ks), i, i+1)
		if len(under(s.seen, ks)) == len(m.seen) {
			continue
		}
		if next := s.fitAll(ks, m.least, nil); next.bad() <= m.bad() {
			m = next
		}
	}
	return m
}
