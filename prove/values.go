package prove

import (
	"slices"

	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// history holds the writes to each root memory since the last pillar that can still be seen. Of
// flat must-writes it knows which bytes are still visible. Any other write stays until one
// must-write covers it for all values of the params. So the history does not grow while an arena is
// reused.
type history struct {
	m      *model
	runs   []interval.Partition[int32] // by memory: flat must-writes
	trees  []interval.Tree[int32]      // by memory: the other writes
	gone   []bool                      // by write: a later must-write covers it
	count  []int                       // by memory: how many of the writes in trees are gone
	list   []int32                     // the writes that readings see, one reading after another
	dirty  []ir.MemID                  // the memories written
	first  []bool                      // by memory: it is in dirty
	looked int                         // how many writes were looked at so far
	last   []recent                    // by memory
	looks  []int32                     // by write: how often it was looked at since half of the bound was reached; nil before
	half   int                         // half the bound
	strips int64                       // how many runs of strided writes are in runs

	parts   []part    // ranges that are not analysed further
	partsOf [][]int32 // by memory: its parts, in ascending order
	settled bool      // no more parts are looked for
}

// recent is the last flat reading of a memory, if the memory was not written since.
// Many commands may read what many wrote.
type recent struct {
	lo, end int64
	seen
	valid bool
}

// These constants bound the steps for listing the writes that a read may see and for comparing
// writes that params move one by one. Recordings need a few steps for each access. Beyond the
// bound, the ranges with writes that were looked at too often become parts, and the graph is traced
// again: see part. If that does not help, writes in trees are not found to be covered by others any
// more, which makes the proof weaker but not wrong. A read that may then see more than maxCrowd
// writes ends the proof, which cannot tell.
var (
	lookFree      = 1 << 18 // for a whole graph
	lookPerAccess = 64      // and for each access
	maxCrowd      = 64
)

func (h *history) crowded() bool { return h.looked > h.bound() }

// crowd is the panic value for a read that may see too many writes.
type crowd struct {
	m    *model
	read *access
}

// catchCrowd, when deferred, turns a crowd panic into the result "cannot tell".
func catchCrowd(r **Result) {
	switch x := recover().(type) {
	case nil:
	case crowd:
		*r = &Result{}
		(*r).add(CannotTell, Values, nil, nil, "too many writes may hold or overwrite bytes of %s: params move many ranges over one another, or many commands read what many wrote", x.m.format(x.read))
	default:
		panic(x)
	}
}

func newHistory(m *model, parts []part) *history {
	n := len(m.g.Memories)
	h := &history{
		parts: parts, partsOf: make([][]int32, n),
		m: m, runs: make([]interval.Partition[int32], n), trees: make([]interval.Tree[int32], n), gone: make([]bool, len(m.writes)),
		count: make([]int, n), list: make([]int32, 0, len(m.reads)), first: make([]bool, n), last: make([]recent, n),
	}
	h.half = h.bound() / 2
	for i := range parts {
		h.partsOf[parts[i].mem] = append(h.partsOf[parts[i].mem], int32(i))
	}
	return h
}

// look counts that write i was looked at. After half of the bound it counts for each write by
// itself; few graphs come that far.
func (h *history) look(i int32) {
	if h.looked++; h.looked > h.half {
		if h.looks == nil {
			h.looks = make([]int32, len(h.m.writes))
		}
		h.looks[i]++
	}
}

// bound returns how many writes a graph may look at.
func (h *history) bound() int { return lookFree + lookPerAccess*(len(h.m.reads)+len(h.m.writes)) }

// A constant strided must-write is kept run by run if it has few runs. Then it is known which of
// its bytes are visible, and that several such writes leave no gap.
const (
	maxStrips       = 256 // runs of one region
	stripsPerAccess = 8   // runs of all writes, for each access and beside lookFree
)

// strips reports whether an access is constant and has few runs.
func (m *model) strips(a *access) bool {
	r := &m.shapes.of(a).Region
	return r.HasRuns(maxStrips)
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
	if len(h.partsOf[mem]) > 0 && h.logged(nr) {
		return
	}
	t := &h.trees[mem]
	if w.must && t.Len() > 0 && !h.crowded() {
		t.Overlapping(w.lo, w.end, func(i int32) bool {
			h.look(i)
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
	if w.must && h.m.strips(&w.access) {
		r := h.m.region(&w.access)
		if h.strips += runs(&r); h.strips <= int64(lookFree+stripsPerAccess*(len(h.m.reads)+len(h.m.writes))) {
			r.Runs(nil, func(lo, end int64) bool {
				h.runs[mem].Set(lo, end, nr)
				return true
			})
			return
		}
	}
	t.Insert(w.lo, w.end, nr)
}

// compact rebuilds the tree of a memory without the writes that are gone.
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

// pillar returns what the memories hold that were written since the last pillar, and
// forgets the writes. Later readings see what a memory holds then as initial.
func (h *history) pillar() (out []whole) {
	for _, mem := range h.dirty {
		out = append(out, h.whole(mem))
		h.trees[mem].Reset()
		h.count[mem], h.first[mem] = 0, false
		h.runs[mem].Reset()
		h.last[mem].valid = false
		for _, n := range h.partsOf[mem] {
			p := &h.parts[n]
			p.from, p.whole = len(p.log), false
		}
	}
	h.dirty = h.dirty[:0]
	return out
}

// whole is what a whole memory holds.
type whole struct {
	access
	seen
}

func (h *history) whole(mem ir.MemID) whole {
	a := access{end: h.m.g.Memories[mem].Size, mem: mem}
	return whole{a, h.see(&a)}
}

// reading is what a command reads from one region: the writes that it may see, in the
// order in which they were made, back to one that covers the region. initial says that
// some byte may come from none of them, so that it holds what the memory held at first
// or after the last pillar.
type reading struct {
	m       *model
	at      *access
	writes  []int32
	initial bool
	tainted bool  // initial, and the memory did not hold the same bytes in B then
	part    *part // of a reading of a part: writes are all writes to it, from number `from` of its log on
	from    int
}

// seen is the compact form of a reading: its writes are the n writes of history.list
// from position `from` on. In a reading of a part, n is negative, and there are -n
// writes of the log of part from>>32, from position from%2^32 on.
type seen struct {
	from    int64
	n       int32
	initial bool
}

func (h *history) read(a *access) seen {
	r := &h.last[a.mem]
	if invariants.Caches && r.valid && r.lo == a.lo && r.end == a.end && a.flat() {
		return r.seen
	}
	if h.crowded() && h.first[a.mem] && (len(h.parts) == 0 || h.partOf(a) < 0) {
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

// see computes a reading. read calls it unless the last one can be used again.
func (h *history) see(a *access) seen {
	mem, first := a.mem, len(h.list)
	if !h.first[mem] || h.m.void(a) {
		return seen{initial: true}
	}
	if len(h.parts) > 0 {
		if n := h.partOf(a); n >= 0 {
			return h.seenOf(n)
		}
	}
	byRun := a.flat() || h.m.strips(a)
	at, hole := a.lo, !byRun // hole: some byte may come from no write in h.runs
	each := func(lo, end int64, i int32) bool {
		h.look(i)
		hole = hole || at < lo
		at = end
		if byRun || !h.m.apart(&h.m.writes[i].access, a) {
			h.list = append(h.list, i)
		}
		return true
	}
	if byRun && !a.flat() {
		h.m.region(a).Runs(nil, func(lo, end int64) bool {
			at = lo
			h.runs[mem].Each(lo, end, each)
			hole = hole || at < end
			return true
		})
	} else {
		h.runs[mem].Each(a.lo, a.end, each)
		hole = hole || at < a.end
	}
	initial := hole
	if t := &h.trees[mem]; t.Len() > 0 {
		t.Overlapping(a.lo, a.end, func(i int32) bool {
			h.look(i)
			if w := &h.m.writes[i]; !h.gone[i] && !h.m.apart(&w.access, a) {
				h.list = append(h.list, i)
			}
			return true
		})
	}
	writes := h.list[first:]
	if len(writes) > 1 {
		slices.Sort(writes)
		writes = slices.Compact(writes) // one write may have left several runs
		h.list = h.list[:first+len(writes)]
	}
	for i := len(writes) - 1; i >= 0; i-- {
		if w := &h.m.writes[writes[i]]; w.must && h.m.covers(&w.access, a) {
			first, initial = first+i, false
			break
		}
	}
	if initial && h.trees[mem].Len() > 0 {
		initial = !h.united(h.list[first:], a)
	}
	return seen{int64(first), int32(len(h.list) - first), initial}
}

// reading returns what was seen of a.
func (h *history) reading(a *access, s seen) reading {
	r := reading{m: h.m, at: a, writes: h.writes(&s), initial: s.initial}
	if s.n < 0 {
		r.part, r.from = &h.parts[s.from>>32], int(s.from&(1<<32-1))
	}
	return r
}

// writes returns the writes that were seen.
func (h *history) writes(s *seen) []int32 {
	if s.n < 0 {
		from := s.from & (1<<32 - 1)
		to := from - int64(s.n)
		return h.parts[s.from>>32].log[from:to:to]
	}
	to := s.from + int64(s.n)
	return h.list[s.from:to:to]
}

// names gives writes the names by which they are compared: equal names mean equal
// bytes. A name is a write of B.
type names struct {
	images []int32 // by write of A: a write of B that has its bytes, or noWrite; nil in the names of the writes of B
	m      *model  // the model of B
	// classes is a forest of writes of B that have equal bytes (union-find, Tarjan
	// 1975): the parent of each write, or the write itself if it is a root.
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

// join makes x and y, writes of B, have one name.
func (n *names) join(x, y int32) { n.classes[n.of(y)] = n.of(x) }

// equalValues compares what two readings of equal shape hold. bn and an name the writes
// of their graphs. decided is false if the comparison could not tell.
func equalValues(b, a *reading, bn, an *names) (equal, decided bool) {
	tainted := b.m != a.m && (a.tainted || b.tainted)
	if !tainted && sameLists(b, a, bn, an) { // the usual case
		return true, true
	}
	if b.m.void(b.at) && a.m.void(a.at) { // neither touches a byte, wherever it lies
		return true, true
	}
	if tainted || b.part != nil || a.part != nil {
		return false, false
	}
	if b.given() && a.given() && b.m != a.m {
		found := sameGivenRegions(b, a)
		return found == same, found == differ && b.at.flat() && a.at.flat()
	}
	if slices.ContainsFunc(a.writes, func(w int32) bool { return an.of(w) == noWrite }) {
		return false, false // a write without a known image may still have one
	}
	copies := bn.hasCopies(b) || an.hasCopies(a)
	if !copies && (len(b.writes) == 0 && len(a.writes) == 0 || oneWrite(b) && oneWrite(a)) {
		return false, b.at.flat() && a.at.flat()
	}
	if constant(b) && constant(a) && !b.given() && !a.given() {
		// One reading sees only initial contents and the other sees none, so no two of
		// their segments are equal.
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

// oneWrite reports whether all bytes of a reading come from one write.
func oneWrite(r *reading) bool { return len(r.writes) == 1 && !r.initial }

// samePlace reports whether two readings read the same bytes of memories of one name.
func samePlace(b, a *reading) bool {
	if b.m.names[b.at.mem] != a.m.names[a.at.mem] || !agree(b.m.bounds, b.m.off(b.at), a.m.off(a.at)) {
		return false
	}
	m, n := &b.m.g.Memories[b.at.mem], &a.m.g.Memories[a.at.mem]
	return m == n || m.Kind == n.Kind && m.Kind != ir.Argument
}

// given reports whether a reading reads argument memory.
func (r *reading) given() bool { return r.m.g.Memories[r.at.mem].Kind == ir.Argument }

// sameGivenRegions compares two regions of argument memory of equal shape. It compares
// all bytes from the first to the last, gaps included.
func sameGivenRegions(b, a *reading) answer {
	hull := func(r *reading) given {
		region := r.m.region(r.at)
		lo, end := region.Hull()
		x, _ := argumentBytes(r.m.g, region.Mem, lo, end.Sub(lo))
		return x
	}
	return a.m.twins.sameGiven(hull(b), hull(a))
}

// mustOnly reports whether a reading sees no may-writes. These may overlay one another
// in ways for which segments have no normal form, so a difference there decides
// nothing.
func mustOnly(r *reading) bool {
	for _, w := range r.writes {
		if !r.m.writes[w].must {
			return false
		}
	}
	return true
}

// sameLists compares the writes that two readings see: they must be the same writes,
// each at the same place relative to the region read, and in the same order where they
// may overlap. This is sound for regions that params move, because the bytes read are a
// function of this list.
func sameLists(b, a *reading, bn, an *names) bool {
	if b.part != nil || a.part != nil {
		return sameLog(b, a, bn, an)
	}
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
	if invariants.Caches && a.m.compared == key {
		return true
	}
	alike := sameList(b, a, bn, an)
	if alike {
		a.m.compared = key
	}
	return alike
}

// longList is the length from which on the result of a comparison is remembered.
const longList = 16

// comparison remembers two flat readings that were found equal, because many commands
// may read what many wrote. INVARIANT: what was equal stays equal. A write gets its
// image once, before anybody compares a reading that sees it, and classes are only ever
// joined.
type comparison struct {
	b, a            *int32 // their lists of writes
	classes, images *int32
	n               int
	before, after   access
	initial         bool
}

// sameList is sameLists for lists of equal length.
func sameList(b, a *reading, bn, an *names) bool {
	// Undefined bytes have no value. But the same place of scratch memory of one name
	// is taken to hold the same undefined bytes: the recording reads them as well.
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

// sameOffset reports whether write j of B lies in reading b where write w of A lies in
// reading a. INVARIANT: writes with equal names are both must-writes or both
// may-writes, because images are only given to such pairs.
func sameOffset(b, a *reading, j, w int32) bool {
	x, y := &b.m.writes[j], &a.m.writes[w]
	if x.flat() && y.flat() && b.at.flat() && a.at.flat() {
		return x.lo-b.at.lo == y.lo-a.at.lo && x.end-x.lo == y.end-y.lo
	}
	return sameDistance(b.m.bounds, b.m.off(&x.access), b.m.off(b.at), a.m.off(&y.access), a.m.off(a.at)) && sameShape(b.m, &x.access, a.m, &y.access)
}

// sameDistance reports whether w − x = y − z for all values of the params.
func sameDistance(g *ir.Bounds, w, x, y, z ir.Affine) bool {
	if d, ok := w.Distance(x); ok { // the usual case, without arithmetic on terms
		e, ok := y.Distance(z)
		return ok && d == e
	}
	return agree(g, w.Sub(x), y.Sub(z))
}

// permuted is sameLists for lists whose writes may stand in a different order.
func permuted(b, a *reading, bn, an *names) bool {
	place := make(map[int32]int, len(b.writes))
	for i, w := range b.writes {
		place[bn.of(w)] = i
	}
	// Writes of one name are must-writes of equal bytes (checkFusion), and two of them
	// in one place are never both seen. So no two writes of a match the same write of
	// b, and lists of equal length match one to one.
	order := make([]int, len(a.writes))
	for i, w := range a.writes {
		at, ok := place[an.of(w)]
		if !ok || !sameOffset(b, a, b.writes[at], w) {
			return false
		}
		order[i] = at
	}
	// Pairs whose order differs must not overlap. A sweep over those that overlap by
	// their bounds is fast for long lists of separate writes.
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
