package infer

import (
	"fmt"
	"slices"
)

// mode is the access that a proposal declares for an argument.
type mode uint8

const (
	unused mode = iota
	read
	write  // all listed bytes are written, none are read
	update // listed bytes may be read or written
)

var modeNames = [...]string{"unused", "read", "write", "update"}

func (m mode) String() string { return modeNames[m] }

// fitted describes what is touched of an argument by expressions; if whole is set, it is all of the view.
type fitted struct {
	mode  mode
	whole bool
	exact bool
	off   expr // in elements
	dims  []fittedDim
	why   string // why it is not exact
}

type fittedDim struct{ count, stride expr }

// uses reports whether f contains a symbol whose bit is set in skip.
func (f *fitted) uses(skip uint64) bool {
	used := f.off.uses(skip)
	for _, d := range f.dims {
		used = used || d.count.uses(skip) || d.stride.uses(skip)
	}
	return used
}

// role returns the mode that covers what is done to a view in any shape.
func role(seen []*observation, v int) (m mode) {
	must := true
	for _, o := range seen {
		t := &o.views[v]
		if len(t.writes) > 0 && m < write {
			m = write
		}
		if len(t.reads) > 0 && m < read {
			m = read
		}
		must = must && t.must.equal(t.writes)
	}
	for _, o := range seen {
		if m >= write && (!must || len(o.views[v].reads) > 0) {
			m = update
		}
	}
	return m
}

// bytesOf returns the bytes of a view that effects with a mode list.
func bytesOf(t *touched, m mode) spans {
	switch m {
	case read:
		return t.reads
	case write:
		return t.writes
	case update:
		return t.all()
	}
	return nil
}

// fit looks for expressions for the bytes of a view in the observations. Without any, the fit is the whole view,
// which widen may improve.
func (s *study) fit(m *model, v int) fitted {
	sl := &s.c.slots[s.c.views[v]]
	f := fitted{mode: role(m.seen, v)}
	if f.mode == unused {
		f.exact = true
		return f
	}
	whole := func() fitted {
		f.whole, f.why = true, "what is touched depends on what memory holds"
		if f.mode == write {
			f.mode = update
		}
		return f
	}
	if s.depends[v] {
		return whole()
	}
	sets := setsOf(m.seen, v, f.mode)
	if exact, ok := fitBoxes(s.tableFor(m, v, f.mode), sets, max(1, sl.Type.Size()), m.least); ok {
		exact.mode, exact.exact = f.mode, true
		return exact
	}
	if s.skips[v] {
		return whole()
	}
	f.whole = true
	return f
}

func setsOf(seen []*observation, v int, m mode) []spans {
	sets := make([]spans, len(seen))
	for i, o := range seen {
		sets[i] = bytesOf(&o.views[v], m)
	}
	return sets
}

// widen gives each view without an exact fit the smallest range around its bytes, or otherwise all of the view.
func (s *study) widen(m *model) {
	for v := range m.fits {
		f := &m.fits[v]
		if f.exact || s.depends[v] || s.skips[v] {
			continue
		}
		if f.mode == write {
			f.mode = update // some bytes may stay as they are
		}
		sets := setsOf(m.seen, v, f.mode)
		hull, ok := fitHulls(s.tableFor(m, v, f.mode), sets, max(1, s.c.slots[s.c.views[v]].Type.Size()), true)
		if ok {
			hull.mode, hull.why = f.mode, "the bytes have no simple form: this is the least range around them"
			*f = hull
			continue
		}
		f.whole, f.why = true, "no expression in the arguments and the grid gives these bytes"
	}
}

// fitBoxes fits expressions to strided sets of bytes.
func fitBoxes(t *table, sets []spans, size int64, least bool) (fitted, bool) {
	boxes := make([]box, len(sets))
	most := 0
	for i, set := range sets {
		b, ok := boxOf(set)
		if !ok || b.off%size != 0 || b.run%size != 0 {
			return fitted{}, false
		}
		for _, d := range b.dims {
			if d.stride%size != 0 {
				return fitted{}, false
			}
		}
		boxes[i] = b
		most = max(most, len(b.dims))
	}
	for n := most; n >= 0; n-- {
		if f, ok := fitRank(t, sets, boxes, n, size, least); ok {
			return f, true
		}
	}
	return fitted{}, false
}

// fitRank fits expressions to the sets that have n strided dimensions, and checks them with all sets.
func fitRank(t *table, sets []spans, boxes []box, n int, size int64, least bool) (fitted, bool) {
	var rows []int
	for i := range boxes {
		if len(boxes[i].dims) == n && len(sets[i]) > 0 {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 || n > 0 && 2*len(rows) < min(len(sets), 6) {
		return fitted{}, false
	}
	rows = some(rows)
	sub := t
	if len(rows) < len(sets) {
		sub = t.of(rows)
	}
	column := func(get func(b *box) int64) (expr, bool) {
		y := make([]int64, len(rows))
		for k, i := range rows {
			y[k] = get(&boxes[i]) / size
		}
		return sub.fit(y, least)
	}
	var f fitted
	var ok bool
	if f.off, ok = column(func(b *box) int64 { return b.off }); !ok {
		return f, false
	}
	for k := range n {
		var d fittedDim
		if d.count, ok = column(func(b *box) int64 { return b.dims[k].count * size }); !ok {
			return f, false
		}
		if d.stride, ok = column(func(b *box) int64 { return b.dims[k].stride }); !ok {
			return f, false
		}
		f.dims = append(f.dims, d)
	}
	run, ok := column(func(b *box) int64 { return b.run })
	if !ok {
		return f, false
	}
	f.dims = append(f.dims, fittedDim{run, constant(1)})
	holds := func() bool {
		for i, set := range sets {
			if got, ok := f.box(t.rows[i], size).spans(); !ok || !got.equal(set) {
				return false
			}
		}
		return true
	}
	if holds() {
		return f, true
	}
	// Rows longer than their stride merge to one run: the length of a row may be the minimum of both.
	if last := len(f.dims) - 1; last > 0 && f.dims[last-1].stride.least == nil && run.least == nil {
		if inner := f.dims[last-1].stride; !inner.isConst() || !run.isConst() {
			f.dims[last].count = expr{sum: run.sum, plus: run.plus, least: &inner}
			return f, holds()
		}
	}
	return f, false
}

// maxRows is the maximum number of shapes that expressions are fitted to; they are checked with all.
const maxRows = 40

// some returns at most maxRows rows: the first, which are the graph's, and others at equal distances.
func some(rows []int) []int {
	if len(rows) <= maxRows {
		return rows
	}
	out := slices.Clone(rows[:maxRows/4])
	rest := rows[maxRows/4:]
	for i := range maxRows - len(out) {
		out = append(out, rest[i*len(rest)/(maxRows-maxRows/4)])
	}
	return out
}

// fitHulls fits expressions to the smallest ranges around the sets.
func fitHulls(t *table, sets []spans, size int64, least bool) (fitted, bool) {
	var rows []int
	var off, length []int64
	for i, set := range sets {
		if len(set) == 0 {
			continue
		}
		h := set.hull()
		lo := h.lo / size
		rows, off, length = append(rows, i), append(off, lo), append(length, -floorDiv(-h.hi, size)-lo)
	}
	if len(rows) == 0 {
		return fitted{}, false
	}
	sub := t.of(rows)
	var f fitted
	var ok bool
	if f.off, ok = sub.fit(off, least); !ok {
		return f, false
	}
	n, ok := sub.fit(length, least)
	f.dims = []fittedDim{{n, constant(1)}}
	return f, ok
}

// of returns the table for some of the shapes.
func (t *table) of(rows []int) *table {
	if len(rows) == len(t.rows) {
		return t
	}
	key := fmt.Sprint(rows)
	if t.parts[key] == nil {
		var out [][]int64
		for _, i := range rows {
			out = append(out, t.rows[i])
		}
		t.parts[key] = newTable(out, t.more, t.skip)
	}
	return t.parts[key]
}

// box evaluates f for values of the symbols, in bytes.
func (f *fitted) box(vals []int64, size int64) box {
	b := box{off: f.off.eval(vals) * size}
	last := len(f.dims) - 1
	for _, d := range f.dims[:last] {
		b.dims = append(b.dims, boxDim{d.count.eval(vals), d.stride.eval(vals) * size})
	}
	b.run = f.dims[last].count.eval(vals) * size
	return b
}
