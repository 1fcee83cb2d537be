package infer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// mode is what a proposal says of an argument.
type mode uint8

const (
	unused mode = iota
	read
	write  // must
	update // may
)

var modeNames = [...]string{"unused", "read", "write", "update"}

func (m mode) String() string { return modeNames[m] }

// fitted is the effects of an argument as expressions. It is all of the view if whole.
type fitted struct {
	mode  mode
	whole bool
	exact bool
	off   expr // in elements
	dims  []fittedDim
	why   string // why it is no more than that
}

type fittedDim struct{ count, stride expr }

// uses reports whether f has a symbol of which a bit is set.
func (f *fitted) uses(skip uint64) bool {
	used := f.off.uses(skip)
	for _, d := range f.dims {
		used = used || d.count.uses(skip) || d.stride.uses(skip)
	}
	return used
}

// study is what is known of a class.
type study struct {
	x    *Observer
	c    *class
	r    *rand.Rand
	most uint32 // indices are below it
	// tolerated are the kinds of findings that the graph's own dispatches have.
	tolerated []string
	only      func(*shape) bool // the shapes that may be made up; nil: any
	seen      []*observation    // accepted
	have      map[string]bool
	declared  bool   // the checker looks at the kernel's declaration, too
	depends   []bool // by view: what is touched depends on contents
	counts    Counts
	notes     []string
	endless   int
	tables    map[string]*table // of shapes, by their numbers
}

// maxEndless is how many shapes may run out of time before no more are made up.
const maxEndless = 2

func (x *Observer) study(c *class) *study {
	h := fnv.New64a()
	// Not of where the library lies: the same kernel has the same shapes.
	fmt.Fprint(h, c.kernel.Function, c.kind, c.group, c.names)
	return &study{x: x, c: c, r: rand.New(rand.NewPCG(x.o.Seed, h.Sum64())), most: 8, have: map[string]bool{}, depends: make([]bool, len(c.views))}
}

// note keeps a sentence, once.
func (s *study) note(format string, args ...any) {
	if n := quote(fmt.Sprintf(format, args...)); !slices.Contains(s.notes, n) && len(s.notes) < 16 {
		s.notes = append(s.notes, n)
	}
}

// real observes the graph's own shapes.
func (s *study) real(ctx context.Context) error {
	for _, f := range s.c.forms {
		s.counts.Dispatches += 1 + len(f.others)
		samples := f.graph.Samples(6)
		if len(samples) == 0 {
			samples = [][]uint32{f.graph.Greatest()}
		}
		// Between the ends, too.
		for range 2 {
			mid := make([]uint32, len(f.graph.Params))
			for i := range mid {
				lo, hi := samples[0][i], samples[min(1, len(samples)-1)][i]
				mid[i] = lo
				if hi > lo && f.graph.Params[i].Type == ir.U32 {
					mid[i] += uint32(s.r.Uint64N(uint64(hi-lo) + 1))
				}
			}
			if keeps(f.graph, mid) {
				samples = append(samples, mid)
			}
		}
		for _, params := range samples {
			vals, lens := s.c.values(f, params)
			sh := &shape{vals: vals, lens: lens, form: f, params: params, real: true}
			if s.have[fmt.Sprint(vals, lens)] {
				continue
			}
			s.have[fmt.Sprint(vals, lens)] = true
			if s.c.threads(sh) == 0 {
				s.note("%s has no threads", s.c.say(sh))
				continue
			}
			if err := s.one(ctx, sh); err != nil {
				return err
			}
		}
	}
	return nil
}

// keeps reports whether values of the params keep the graph's constraints.
func keeps(g *ir.Graph, params []uint32) bool {
	for i := range g.Constraints {
		if g.Constraints[i].LHS.Eval(params) > g.Constraints[i].Max {
			return false
		}
	}
	return true
}

// one observes a shape of the graph. Indices become smaller until they lead nowhere else.
func (s *study) one(ctx context.Context, sh *shape) error {
	var beyond []int
	for most := s.most; ; most /= 2 {
		s.counts.Runs += int(allKinds)
		o, err := s.x.observe(ctx, s.c, sh, allKinds, most, nil, s.declared)
		var no *refused
		switch {
		case errors.As(err, &no):
			if no.ends {
				s.endless++
			}
			if len(no.beyond) > 0 && most > 1 {
				beyond = no.beyond
				continue
			}
			s.note("%s was not observed: %s", s.c.say(sh), no.why)
			return nil
		case err != nil:
			return err
		}
		if s.most = most; len(beyond) > 0 {
			// Other contents led out of these views: they hold what indices lead to.
			for _, v := range beyond {
				s.depends[v] = true
			}
		}
		for _, k := range kindsOf(o.findings) {
			if !slices.Contains(s.tolerated, k) {
				s.tolerated = append(s.tolerated, k)
				s.note("%s: the checker finds: %s", s.c.say(sh), k)
			}
		}
		s.counts.Real++
		s.accept(o)
		return nil
	}
}

func (s *study) accept(o *observation) {
	o.number = len(s.seen)
	s.seen = append(s.seen, o)
	for v := range o.views {
		s.depends[v] = s.depends[v] || o.views[v].varies
	}
}

// realShapes are the shapes of the graph that were observed.
func (s *study) realShapes() (out []*shape) {
	for _, o := range s.seen {
		if o.real {
			out = append(out, o.shape)
		}
	}
	return out
}

// make observes made-up shapes that fulfil the conditions until n were accepted, or too many
// were not. It returns those accepted.
func (s *study) make(ctx context.Context, n int, ks []condition, each bool) (out []*observation, err error) {
	real := s.realShapes()
	if len(real) == 0 {
		return nil, nil
	}
	for try := 0; len(out) < n && try < 4*n+8 && s.endless < maxEndless; try++ {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		one := -1
		if each && try < n/2 {
			one = try % len(s.c.names)
		}
		sh := s.c.vary(s.r, real[s.r.IntN(len(real))], ks, one)
		key := fmt.Sprint(sh.vals, sh.lens)
		if s.have[key] || !all(ks, sh.vals) || !s.c.cheap(sh) || s.c.threads(sh) == 0 {
			continue
		}
		s.have[key] = true
		if s.only != nil && !s.only(sh) {
			continue
		}
		kinds := allKinds
		if try%3 > 0 {
			kinds = 1
		}
		s.counts.Runs += int(kinds)
		o, err := s.x.observe(ctx, s.c, sh, kinds, s.most, s.tolerated, s.declared)
		var no *refused
		switch {
		case errors.As(err, &no):
			s.counts.Refused++
			if no.ends {
				s.endless++
				s.note("%s: %s", s.c.say(sh), no.why)
			}
			continue
		case err != nil:
			return nil, err
		}
		s.counts.Made++
		out = append(out, o)
	}
	return out, nil
}

// role returns the bytes of a view that a proposal must cover, by what is done to them in any
// shape.
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

// bytesOf are the bytes that the effects of a view list, by its role.
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

// fit looks for expressions for a view in the observations that fulfil the conditions. What has
// none is not widened yet.
func (s *study) fit(t *table, seen []*observation, v int, least bool) fitted {
	sl := &s.c.slots[s.c.views[v]]
	f := fitted{mode: role(seen, v)}
	if f.mode == unused {
		f.exact = true
		return f
	}
	if s.depends[v] {
		f.whole, f.why = true, "what is touched depends on what memory holds"
		if f.mode == write {
			f.mode = update
		}
		return f
	}
	sets := setsOf(seen, v, f.mode)
	if exact, ok := fitBoxes(t, sets, max(1, sl.Type.Size()), least); ok {
		exact.mode, exact.exact = f.mode, true
		return exact
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

// widen gives the views without a form the range around their bytes, or all of the view.
func (s *study) widen(m *model) {
	for v := range m.fits {
		f := &m.fits[v]
		if f.exact || s.depends[v] {
			continue
		}
		seen := under(s.seen, m.ks)
		if f.mode == write {
			f.mode = update // some bytes may stay as they are
		}
		hull, ok := fitHulls(m.table, setsOf(seen, v, f.mode), max(1, s.c.slots[s.c.views[v]].Type.Size()), true)
		if ok {
			hull.mode, hull.why = f.mode, "the bytes have no simple form: this is the least range around them"
			*f = hull
			continue
		}
		f.whole, f.why = true, "no expression in the arguments and the grid gives these bytes"
	}
}

// fitBoxes fits strided sets.
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

// fitRank fits the sets that have n strided dimensions, and holds the result against all.
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
	// Rows that are cut at their ends look whole, and are one run, where they are long enough.
	if last := len(f.dims) - 1; last > 0 && f.dims[last-1].stride.least == nil && run.least == nil {
		if inner := f.dims[last-1].stride; !inner.isConst() || !run.isConst() {
			f.dims[last].count = expr{sum: run.sum, plus: run.plus, least: &inner}
			return f, holds()
		}
	}
	return f, false
}

// maxRows is how many shapes expressions are made from; they are held against all.
const maxRows = 40

// some returns at most maxRows rows: the first, which are the graph's, and others from all over.
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

// fitHulls fits the ranges around the sets.
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

// of is the table of some of the shapes.
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

// box evaluates f, in bytes.
func (f *fitted) box(vals []int64, size int64) box {
	b := box{off: f.off.eval(vals) * size}
	last := len(f.dims) - 1
	for _, d := range f.dims[:last] {
		b.dims = append(b.dims, boxDim{d.count.eval(vals), d.stride.eval(vals) * size})
	}
	b.run = f.dims[last].count.eval(vals) * size
	return b
}

// model is a set of conditions with what they make of the views.
type model struct {
	ks    []condition
	fits  []fitted
	least bool
	table *table
}

// bad is how many views are not exact though they could be.
func (m *model) bad() (n int) {
	for i := range m.fits {
		if !m.fits[i].exact {
			n++
		}
	}
	return n
}

// under returns the observations that fulfil conditions.
func under(seen []*observation, ks []condition) (out []*observation) {
	for _, o := range seen {
		if all(ks, o.vals) {
			out = append(out, o)
		}
	}
	return out
}

// fitAll fits every view. Those that have a form in from, a model of the same shapes and more,
// keep it.
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

// tableOf returns the table of shapes; the same ones are asked for again and again.
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

// search looks for conditions under which all views have a form: none, then few and weak ones
// added one by one, and at last as few as can be left of all.
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
		m := s.fitAll(nil, phase.least, best)
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

// strictest is the model under all conditions: the graph's own shapes, and little else.
func (s *study) strictest() *model {
	mild, hard := s.c.conditions(s.realShapes())
	ks := append(slices.Clone(hard), onePerSymbol(mild)...)
	m := s.fitAll(ks, false, nil)
	if least := s.fitAll(ks, true, m); least.bad() < m.bad() {
		return least
	}
	return m
}

// enough is how many made-up shapes must fulfil conditions before a form under them means
// something: of few shapes anything is true.
const enough = 5

// narrower returns the model with one more condition that has the fewest bad views, or nil if
// none has fewer.
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

// wider begins with all conditions, and leaves out one after the other as long as no view
// loses its form.
func (s *study) wider(ks []condition, hopeless int) *model {
	m := s.fitAll(ks, false, nil)
	if m.bad() > hopeless {
		if least := s.fitAll(ks, true, m); least.bad() < m.bad() {
			m = least
		}
	}
	for i := len(m.ks) - 1; i >= 0; i-- {
		if next := s.fitAll(slices.Delete(slices.Clone(m.ks), i, i+1), m.least, nil); next.bad() <= m.bad() {
			m = next
		}
	}
	return m
}

// contradicted returns the views of which an observation has bytes that a model lacks, or lacks
// what it promises, and those of which it has fewer than a model that counts as exact.
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

// maxRounds is how often expressions are made anew from shapes that contradicted them.
const maxRounds = 5

// infer returns a model of the class that holds on everything that was observed, and how many
// shapes it was not made from.
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
	// Shapes that keep all that the graph's keep are the ones that engines make.
	mild, _ := s.c.conditions(s.realShapes())
	first, err = s.make(ctx, s.x.o.Shapes/2, onePerSymbol(mild), false)
	if err != nil {
		return nil, err
	}
	for _, o := range first {
		s.accept(o)
	}
	if s.search().bad() > 0 {
		// Some more that are as close to the graph's as can be.
		mild, hard := s.c.conditions(s.realShapes())
		if first, err = s.make(ctx, s.x.o.Shapes/4, append(hard, onePerSymbol(mild)...), false); err != nil {
			return nil, err
		}
		for _, o := range first {
			s.accept(o)
		}
	}
	widen := make([]bool, len(s.c.views))
	for round := 0; ; round++ {
		var m *model
		if round < maxRounds-2 {
			m = s.search()
		} else {
			m = s.strictest() // what was found so far was wrong each time
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
			if round < maxRounds-2 {
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
		if round >= maxRounds-1 {
			for _, v := range wrong {
				widen[v] = true
			}
		}
		if round >= maxRounds+len(s.c.views) {
			return nil, fmt.Errorf("kernel %s: no declaration holds on the shapes that were observed", s.c.kernel.Function)
		}
	}
}

// onePerSymbol keeps the first condition of each kind of a symbol.
func onePerSymbol(ks []condition) (out []condition) {
	for _, k := range ks {
		if !slices.ContainsFunc(out, func(o condition) bool { return o.kind == k.kind && o.sym == k.sym }) {
			out = append(out, k)
		}
	}
	return out
}

// split is a class for each form whose values differ from others'.
func (c *class) split() (out []*class) {
	for _, f := range c.forms {
		one := *c
		one.forms = []*form{f}
		out = append(out, &one)
	}
	slices.SortStableFunc(out, func(a, b *class) int { return cmp.Compare(a.forms[0].node.ID, b.forms[0].node.ID) })
	return out
}
