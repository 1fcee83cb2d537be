package infer

import (
	"encoding/binary"
	"slices"
)

// model is a set of conditions on the symbols, and what is fitted to the views under them.
type model struct {
	ks    []condition
	fits  []fitted
	least bool
	table *table
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
	m := &model{ks: ks, least: least, table: s.tableOf(seen, skip)}
	for v := range s.c.views {
		if from != nil && from.fits[v].exact && from.fits[v].mode == role(seen, v) && !from.fits[v].uses(skip) {
			m.fits = append(m.fits, from.fits[v])
			continue
		}
		m.fits = append(m.fits, s.fit(m.table, seen, v, least))
	}
	return m
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
	mild, hard := s.c.conditions(s.realShapes())
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
	better(s.wider(append(slices.Clone(hard), onePerSymbol(mild)...), hopeless))
	return best
}

// strictest returns the model under all conditions, which few shapes but the graph's own satisfy.
func (s *study) strictest() *model {
	mild, hard := s.c.conditions(s.realShapes())
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
		if n := len(under(s.seen, ks)); n < s.counts.Real+enough || n == len(m.table.rows) {
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
		if len(under(s.seen, ks)) == len(m.table.rows) {
			continue
		}
		if next := s.fitAll(ks, m.least, nil); next.bad() <= m.bad() {
			m = next
		}
	}
	return m
}
