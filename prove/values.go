package prove

import (
	"slices"

	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/ir"
)

// history is what was written to each root memory since the last command of
// unknown effects, as far as it can still be seen. Of constant must-writes
// without dimensions it knows which bytes are still theirs; the others stay until a
// must-write covers them for all values of the params. So a reused arena does
// not grow it.
type history struct {
	m      *model
	runs   []interval.Partition[int32] // by memory, of flat must-writes
	trees  []interval.Tree[int32]      // by memory, of the other writes
	gone   []bool                      // by write: covered by a later must-write
	count  []int                       // of those in trees, by memory
	list   []int32                     // writes that readings see, one after another
	dirty  []ir.MemID                  // memories written
	first  []bool                      // by memory: it is in dirty
	looked int                         // writes that were looked at so far
	last   []recent                    // by memory
}

// recent is the last flat reading of a memory, if nothing was written to that since:
// many commands may read what many wrote.
type recent struct {
	lo, end int64
	seen
	valid bool
}

// The writes that a read may see are listed, and those that params move compared one
// by one, as long as they are no more than what follows; recordings need a few for
// each access. Beyond it no write is found to be covered by another in a tree, which
// decides less and nothing wrongly, and a read that may see more than maxCrowd of them
// ends the proof: it cannot tell.
var (
	lookFree      = 1 << 18 // of a whole graph
	lookPerAccess = 64      // and of each access
	maxCrowd      = 64
)

func (h *history) crowded() bool {
	return h.looked > lookFree+lookPerAccess*(len(h.m.reads)+len(h.m.writes))
}

// crowd is the panic of a read that may see too many writes.
type crowd struct {
	m    *model
	read *access
}

// catchCrowd, deferred, makes it an answer.
func catchCrowd(r **Result) {
	switch x := recover().(type) {
	case nil:
	case crowd:
		*r = &Result{}
		(*r).add(CannotTell, Values, nil, nil, "too many writes may conflict with or hold what %s touches: of ranges that params move over one another, or of pieces of what many read", x.m.format(x.read))
	default:
		panic(x)
	}
}

func newHistory(m *model) *history {
	n := len(m.g.Memories)
	return &history{
		m: m, runs: make([]interval.Partition[int32], n), trees: make([]interval.Tree[int32], n), gone: make([]bool, len(m.writes)),
		count: make([]int, n), list: make([]int32, 0, len(m.reads)), first: make([]bool, n), last: make([]recent, n),
	}
}

func (h *history) add(nr int32) {
	w := &h.m.writes[nr]
	if h.m.void(&w.access) {
		return
	}
	mem := w.mem
	h.last[mem].valid = false
	if !h.first[mem] {
		h.first[mem] = true
		h.dirty = append(h.dirty, mem)
	}
	t := &h.trees[mem]
	if w.must && t.Len() > 0 && !h.crowded() {
		t.Overlapping(w.lo, w.end, func(i int32) bool {
			h.looked++
			if x := &h.m.writes[i]; !h.gone[i] && h.m.covers(&w.access, &x.access) {
				h.gone[i] = true
				h.count[mem]++
			}
			return true
		})
		if h.count[mem] > 32 && 2*h.count[mem] > t.Len() {
			h.compact(mem)
		}
	}
	if w.must && w.flat() {
		h.runs[mem].Set(w.lo, w.end, nr)
		return
	}
	t.Insert(w.lo, w.end, nr)
}

// compact rebuilds a tree without what is gone.
func (h *history) compact(mem ir.MemID) {
	var left []int32
	t := &h.trees[mem]
	t.Overlapping(-1<<62, 1<<62, func(i int32) bool {
		if !h.gone[i] {
			left = append(left, i)
		}
		return true
	})
	t.Reset()
	for _, i := range left {
		t.Insert(h.m.writes[i].lo, h.m.writes[i].end, i)
	}
	h.count[mem] = 0
}

// pillar returns what the memories hold that were written since the last one,
// and forgets it: whatever they hold then, later readings see it as initial.
func (h *history) pillar() (out []whole) {
	for _, mem := range h.dirty {
		out = append(out, h.whole(mem))
		h.trees[mem].Reset()
		h.count[mem], h.first[mem] = 0, false
		h.runs[mem].Reset()
		h.last[mem].valid = false
	}
	h.dirty = h.dirty[:0]
	return out
}

// whole is what all of a memory holds.
type whole struct {
	access
	seen
}

func (h *history) whole(mem ir.MemID) whole {
	a := access{end: h.m.g.Memories[mem].Size, mem: mem}
	return whole{a, h.see(&a)}
}

// reading is what a command reads from one region: the writes that it may see,
// in the order in which they were made, back to one that covers it; initial if
// some byte may be none's: what the memory held at first or after the last command
// of unknown effects.
type reading struct {
	m       *model
	at      *access
	writes  []int32
	initial bool
	tainted bool // initial, and that is not what the graph before holds
}

// seen is a reading as it is kept: its writes are n of history.list.
type seen struct {
	from    int64
	n       int32
	initial bool
}

func (h *history) read(a *access) seen {
	r := &h.last[a.mem]
	if r.valid && r.lo == a.lo && r.end == a.end && a.flat() {
		return r.seen
	}
	if h.crowded() && h.first[a.mem] {
		n := 0
		h.trees[a.mem].Overlapping(a.lo, a.end, func(i int32) bool {
			if !h.gone[i] {
				n++
			}
			return n <= maxCrowd
		})
		h.runs[a.mem].Each(a.lo, a.end, func(int64, int64, int32) bool {
			n++
			return n <= maxCrowd
		})
		if n > maxCrowd {
			panic(crowd{h.m, a})
		}
	}
	s := h.see(a)
	if a.flat() {
		*r = recent{a.lo, a.end, s, true}
	}
	return s
}

// see is read of an access that is one of few.
func (h *history) see(a *access) seen {
	mem, first := a.mem, len(h.list)
	if !h.first[mem] || h.m.void(a) {
		return seen{initial: true}
	}
	at, hole := a.lo, !a.flat() // hole: some byte is no flat must-write's
	h.runs[mem].Each(a.lo, a.end, func(lo, end int64, i int32) bool {
		h.looked++
		hole = hole || at < lo
		at = end
		if a.flat() || !h.m.apart(&h.m.writes[i].access, a) {
			h.list = append(h.list, i)
		}
		return true
	})
	initial := hole || at < a.end
	if t := &h.trees[mem]; t.Len() > 0 {
		t.Overlapping(a.lo, a.end, func(i int32) bool {
			h.looked++
			if w := &h.m.writes[i]; !h.gone[i] && !h.m.apart(&w.access, a) {
				h.list = append(h.list, i)
			}
			return true
		})
	}
	writes := h.list[first:]
	if len(writes) > 1 {
		slices.Sort(writes)
		writes = slices.Compact(writes) // several runs of one write
		h.list = h.list[:first+len(writes)]
	}
	for i := len(writes) - 1; i >= 0; i-- {
		if w := &h.m.writes[writes[i]]; w.must && h.m.covers(&w.access, a) {
			first, initial = first+i, false
			break
		}
	}
	return seen{int64(first), int32(len(h.list) - first), initial}
}

// reading returns what was seen of a.
func (h *history) reading(a *access, s seen) reading {
	return reading{m: h.m, at: a, writes: h.writes(&s), initial: s.initial}
}

// writes returns the writes that were seen.
func (h *history) writes(s *seen) []int32 {
	to := s.from + int64(s.n)
	return h.list[s.from:to:to]
}

// names gives writes the names by which they are compared: equal names mean
// equal bytes. A name is a write before.
type names struct {
	images []int32 // by write: one before that has its bytes, or noWrite; nil of writes before
	m      *model  // of the graph before
	// classes are trees of writes before that have equal bytes (Tarjan 1975): the parent
	// of each, itself at a root.
	classes []int32
}

func (n *names) of(w int32) int32 {
	if n.images != nil {
		if w = n.images[w]; w == noWrite {
			return w
		}
	}
	for n.classes[w] != w {
		n.classes[w] = n.classes[n.classes[w]]
		w = n.classes[w]
	}
	return w
}

// join gives two writes before one name.
func (n *names) join(x, y int32) { n.classes[n.of(y)] = n.of(x) }

// equalValues compares what two regions of equal shape hold, given names for
// the writes of either graph. The second result is false when the comparison
// could not decide.
func equalValues(b, a *reading, bn, an *names) (equal, decided bool) {
	tainted := b.m != a.m && (a.tainted || b.tainted)
	if !tainted && sameLists(b, a, bn, an) { // the usual case
		return true, true
	}
	if b.m.void(b.at) && a.m.void(a.at) { // no byte, wherever it is
		return true, true
	}
	if tainted {
		return false, false
	}
	if b.given() && a.given() && b.m != a.m {
		found := sameGivenRegions(b, a)
		return found == same, found == differ && b.at.flat() && a.at.flat()
	}
	if slices.ContainsFunc(a.writes, func(w int32) bool { return an.of(w) == noWrite }) {
		return false, false // what is not known to have an image may still have one
	}
	copies := bn.hasCopies(b) || an.hasCopies(a)
	if !copies && (len(b.writes) == 0 && len(a.writes) == 0 || oneWrite(b) && oneWrite(a)) {
		return false, b.at.flat() && a.at.flat()
	}
	if constant(b) && constant(a) && !b.given() && !a.given() {
		// One only of what was there at first, the other of none of it: no segment of
		// theirs is alike.
		unlike := !copies && (len(b.writes) == 0 && !a.initial || len(a.writes) == 0 && !b.initial)
		if unlike {
			return false, mustOnly(b) && mustOnly(a)
		}
		x, y := segments(b, bn), segments(a, an)
		if slices.Equal(x, y) {
			return true, true
		}
		return false, mustOnly(b) && mustOnly(a) && !(copies && (bn.opaque(x) || an.opaque(y)))
	}
	return false, false
}

// oneWrite reports whether all of a reading is one write's.
func oneWrite(r *reading) bool { return len(r.writes) == 1 && !r.initial }

// samePlace reports whether two readings are of the same bytes of memories of
// one name.
func samePlace(b, a *reading) bool {
	if b.m.names[b.at.mem] != a.m.names[a.at.mem] || !b.m.off(b.at).Equal(a.m.off(a.at)) {
		return false
	}
	m, n := &b.m.g.Memories[b.at.mem], &a.m.g.Memories[a.at.mem]
	return m == n || m.Kind == n.Kind && m.Kind != ir.Argument
}

// given: of argument memory.
func (r *reading) given() bool { return r.m.g.Memories[r.at.mem].Kind == ir.Argument }

// sameGivenRegions compares regions of argument memory of equal shape, wherever they
// are, by all bytes between their ends.
func sameGivenRegions(b, a *reading) answer {
	hull := func(r *reading) given {
		region := r.m.region(r.at)
		lo, end := region.Hull()
		x, _ := argumentBytes(r.m.g, region.Mem, lo, end.Sub(lo))
		return x
	}
	return a.m.twins.sameGiven(hull(b), hull(a))
}

// mustOnly: may-writes overlay one another in ways that segments do not bring
// to one form, so a difference there decides nothing.
func mustOnly(r *reading) bool {
	for _, w := range r.writes {
		if !r.m.writes[w].must {
			return false
		}
	}
	return true
}

// sameLists compares the writes that two readings see: the same ones, each at
// the same place relative to the region read, and in the same order where they
// overlap one another. It is sound for symbolic regions: the bytes of a value
// are a function of that list.
func sameLists(b, a *reading, bn, an *names) bool {
	if len(b.writes) != len(a.writes) || b.initial != a.initial {
		return false
	}
	if len(a.writes) < longList || !a.at.flat() || !b.at.flat() {
		return sameList(b, a, bn, an)
	}
	key := comparison{&b.writes[0], &a.writes[0], &bn.classes[0], nil, len(a.writes), *b.at, *a.at, a.initial}
	if an.images != nil {
		key.images = &an.images[0]
	}
	if a.m.compared == key {
		return true
	}
	alike := sameList(b, a, bn, an)
	if alike {
		a.m.compared = key
	}
	return alike
}

// longList is the length from which on a comparison is remembered.
const longList = 16

// comparison is one of two flat readings that found them alike, for many commands may
// read what many wrote. INVARIANT: what was alike stays so: a write gets its image once,
// before anybody compares what reads it, and classes only grow together.
type comparison struct {
	b, a            *int32 // their lists
	classes, images *int32
	n               int
	before, after   access
	initial         bool
}

// sameList is sameLists for lists of equal length.
func sameList(b, a *reading, bn, an *names) bool {
	// Undefined bytes are no value; the same place of scratch of one name is taken
	// for the same garbage, which the graph before read as well.
	if b.initial && !samePlace(b, a) {
		return false
	}
	sorted := true
	for i, w := range a.writes {
		j := b.writes[i]
		if bn.of(j) != an.of(w) {
			sorted = false
			break
		}
		if !sameOffset(b, a, j, w) {
			return false
		}
	}
	return sorted || permuted(b, a, bn, an)
}

// sameOffset reports whether write j before lies in b as write w after in a.
// INVARIANT: writes of equal names are both must-writes or both not: images are
// found for such only.
func sameOffset(b, a *reading, j, w int32) bool {
	x, y := &b.m.writes[j], &a.m.writes[w]
	if x.flat() && y.flat() && b.at.flat() && a.at.flat() {
		return x.lo-b.at.lo == y.lo-a.at.lo && x.end-x.lo == y.end-y.lo
	}
	return sameDistance(b.m.off(&x.access), b.m.off(b.at), a.m.off(&y.access), a.m.off(a.at)) && sameShape(b.m, &x.access, a.m, &y.access)
}

// sameDistance reports whether w − x = y − z.
func sameDistance(w, x, y, z ir.Affine) bool {
	if d, ok := w.Distance(x); ok { // the usual case, without arithmetic on terms
		e, ok := y.Distance(z)
		return ok && d == e
	}
	return w.Sub(x).Equal(y.Sub(z))
}

// permuted is sameLists for writes in another order.
func permuted(b, a *reading, bn, an *names) bool {
	place := make(map[int32]int, len(b.writes))
	for i, w := range b.writes {
		place[bn.of(w)] = i
	}
	// Writes of one name are must-writes of equal bytes (checkFusion); two of them
	// in one place are not both seen, so no two of a find the same one of b, and
	// lists of equal length then pair off.
	order := make([]int, len(a.writes))
	for i, w := range a.writes {
		at, ok := place[an.of(w)]
		if !ok || !sameOffset(b, a, b.writes[at], w) {
			return false
		}
		order[i] = at
	}
	// Pairs in another order must lie apart. A sweep over those that overlap in
	// their bounds keeps long lists of separate writes cheap.
	byLo := make([]int, len(order))
	for i := range byLo {
		byLo[i] = i
	}
	slices.SortFunc(byLo, func(x, y int) int {
		p, q := a.m.writes[a.writes[x]].lo, a.m.writes[a.writes[y]].lo
		switch {
		case p < q:
			return -1
		case p > q:
			return 1
		}
		return x - y
	})
	for n, i := range byLo {
		x := &a.m.writes[a.writes[i]]
		for _, k := range byLo[n+1:] {
			y := &a.m.writes[a.writes[k]]
			if y.lo >= x.end {
				break
			}
			if !a.m.afford(1) {
				return false
			}
			if (order[i] < order[k]) != (i < k) && !a.m.apart(&x.access, &y.access) {
				return false
			}
		}
	}
	return true
}
