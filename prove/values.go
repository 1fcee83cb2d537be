package prove

import (
	"slices"

	"github.com/mlxc/mlxc/internal/interval"
	"github.com/mlxc/mlxc/ir"
)

// write is one written region that a later read may see.
type write struct {
	op, nr int // the command, and which of its writes
	region ir.Region
	must   bool
	gone   bool // covered by a later must-write
}

// history is what was written to each root memory, as far as it can still be
// seen. A must-write that covers an earlier region for all values of the params
// removes it, so that a reused arena does not grow it.
type history struct {
	g     *ir.Graph
	trees map[ir.MemID]*interval.Tree[*write]
	gone  map[ir.MemID]int
}

func newHistory(g *ir.Graph) *history {
	return &history{g: g, trees: map[ir.MemID]*interval.Tree[*write]{}, gone: map[ir.MemID]int{}}
}

func (h *history) add(w *write) {
	if void(w.region) {
		return
	}
	m := w.region.Mem
	t := h.trees[m]
	if t == nil {
		t = &interval.Tree[*write]{}
		h.trees[m] = t
	}
	lo, end := hull(h.g, w.region)
	if w.must {
		t.Overlapping(lo, end, func(x *write) bool {
			if !x.gone && covers(h.g, w.region, x.region) {
				x.gone = true
				h.gone[m]++
			}
			return true
		})
		if h.gone[m] > 32 && 2*h.gone[m] > t.Len() {
			h.compact(m)
			t = h.trees[m]
		}
	}
	t.Insert(lo, end, w)
}

// compact rebuilds a tree without what is gone.
func (h *history) compact(m ir.MemID) {
	fresh := &interval.Tree[*write]{}
	h.trees[m].Overlapping(-1<<62, 1<<62, func(x *write) bool {
		if !x.gone {
			lo, end := hull(h.g, x.region)
			fresh.Insert(lo, end, x)
		}
		return true
	})
	h.trees[m], h.gone[m] = fresh, 0
}

// value is what a region holds: the writes that it may see, in the order in
// which they were made, back to one that covers it; initial if there is none.
type value struct {
	writes  []*write
	initial bool
}

func (h *history) value(r ir.Region) value {
	v := value{initial: true}
	t := h.trees[r.Mem]
	if t == nil || void(r) {
		return v
	}
	lo, end := hull(h.g, r)
	t.Overlapping(lo, end, func(w *write) bool {
		if !w.gone && !apart(h.g, w.region, r) {
			v.writes = append(v.writes, w)
		}
		return true
	})
	slices.SortFunc(v.writes, func(x, y *write) int {
		if x.op != y.op {
			return x.op - y.op
		}
		return x.nr - y.nr
	})
	for i := len(v.writes) - 1; i >= 0; i-- {
		if w := v.writes[i]; w.must && covers(h.g, w.region, r) {
			v.writes, v.initial = v.writes[i:], false
			break
		}
	}
	return v
}

// reading is a region read in one graph.
type reading struct {
	m      *model
	region ir.Region
	value  value
}

// equalValues compares what two regions of equal shape hold. image maps
// commands after to commands before. The second result is false when the
// comparison could not decide.
func equalValues(b, a reading, image []int) (equal, decided bool) {
	if sameLists(b, a, image) {
		return true, true
	}
	if constant(b) && constant(a) {
		if slices.Equal(segments(b, nil), segments(a, image)) {
			return true, true
		}
		return false, mustOnly(b) && mustOnly(a)
	}
	return false, false
}

// mustOnly: may-writes overlay one another in ways that segments do not bring
// to one form, so a difference there decides nothing.
func mustOnly(r reading) bool {
	for _, w := range r.value.writes {
		if !w.must {
			return false
		}
	}
	return true
}

// sameLists compares the writes that two readings see: the same ones, each at
// the same place relative to the region read, and in the same order where they
// overlap one another. It is sound for symbolic regions: the bytes of a value
// are a function of that list.
func sameLists(b, a reading, image []int) bool {
	if len(b.value.writes) != len(a.value.writes) || b.value.initial != a.value.initial {
		return false
	}
	if b.value.initial && !sameInitial(b, a) {
		return false
	}
	place := map[[2]int]int{}
	for i, w := range b.value.writes {
		place[[2]int{w.op, w.nr}] = i
	}
	order := make([]int, len(a.value.writes))
	for i, w := range a.value.writes {
		j, ok := place[[2]int{image[w.op], w.nr}]
		if !ok {
			return false
		}
		order[i] = j
		x := b.value.writes[j]
		if x.must != w.must || !x.region.Off.Sub(b.region.Off).Equal(w.region.Off.Sub(a.region.Off)) || !sameShape(x.region, w.region) {
			return false
		}
	}
	for i := range order {
		for k := range i {
			if order[k] > order[i] && !apart(a.m.g, a.value.writes[k].region, a.value.writes[i].region) {
				return false
			}
		}
	}
	return true
}

// sameInitial reports whether the initial contents under two readings are the
// same bytes: the same place of memories of one name that the host sees.
// Undefined bytes are no value; the same place of scratch of one name is taken
// for the same garbage, which the graph before read as well.
func sameInitial(b, a reading) bool {
	m, n := &b.m.g.Memories[b.region.Mem], &a.m.g.Memories[a.region.Mem]
	return m.Name == n.Name && m.Kind == n.Kind && b.region.Off.Equal(a.region.Off) &&
		(m.Kind != ir.Argument || m.SameContents(n)) // else: checkInterface has compared them
}

func sameShape(x, y ir.Region) bool {
	x.Mem, x.Off = y.Mem, y.Off
	return x.Equal(y)
}

// maxSegments bounds the exact comparison of constant regions.
const maxSegments = 1 << 16

func constant(r reading) bool {
	n := runs(r.region)
	if !r.region.IsConst() || n > maxSegments {
		return false
	}
	for _, w := range r.value.writes {
		if n += runs(w.region); !w.region.IsConst() || n > maxSegments {
			return false
		}
	}
	return true
}

func runs(r ir.Region) int64 {
	n := int64(1)
	for _, d := range r.Dims {
		if !d.Count.IsConst() || n > maxSegments {
			return maxSegments + 1
		}
		n *= max(d.Count.Const, 0)
	}
	return n
}

// segment says where the bytes [lo, hi) of a region (counted run after run)
// come from: byte lo + shift of a write, counted likewise, or of a memory's
// initial contents.
type segment struct {
	lo, hi int64
	op, nr int // op −1: initial contents of the memory called name
	name   string
	shift  int64
	soft   bool // a may-write: what was under it matters too, as the next segment
}

// segments returns the exact sources of a constant reading, with commands after
// translated by image.
func segments(r reading, image []int) []segment {
	// Sources by byte of the memory, later writes over earlier ones.
	var cover []segment
	paint := func(lo, hi int64, s segment) {
		var out []segment
		for _, c := range cover {
			if c.hi <= lo || hi <= c.lo || s.soft {
				out = append(out, c)
				continue
			}
			if c.lo < lo {
				left := c
				left.hi = lo
				out = append(out, left)
			}
			if hi < c.hi {
				right := c
				right.lo = hi
				out = append(out, right)
			}
		}
		s.lo, s.hi = lo, hi
		cover = append(out, s)
	}
	lo, end := hull(r.m.g, r.region)
	paint(lo, end, segment{op: -1, name: r.m.g.Memories[r.region.Mem].Name})
	for _, w := range r.value.writes {
		op := w.op
		if image != nil {
			op = image[op]
		}
		at := int64(0)
		w.region.Runs(nil, func(a, b int64) bool {
			if x, y := max(a, lo), min(b, end); x < y {
				paint(x, y, segment{op: op, nr: w.nr, shift: at - a, soft: !w.must})
			}
			at += b - a
			return true
		})
	}
	return project(r.region, cover)
}

// project turns sources by byte of the memory into sources by byte of the
// region, in order, joined where they continue one another.
func project(region ir.Region, cover []segment) []segment {
	var out []segment
	at := int64(0)
	region.Runs(nil, func(a, b int64) bool {
		first := len(out)
		for _, c := range cover {
			if x, y := max(a, c.lo), min(b, c.hi); x < y {
				s := c
				// shift: from the region's count to the write's count.
				s.lo, s.hi = x-a+at, y-a+at
				s.shift = c.shift + a - at
				out = append(out, s)
			}
		}
		slices.SortStableFunc(out[first:], func(p, q segment) int { return int(p.lo - q.lo) })
		at += b - a
		return true
	})
	joined := out[:0]
	for _, s := range out {
		if n := len(joined); n > 0 && !s.soft && !joined[n-1].soft {
			if p := &joined[n-1]; p.hi == s.lo && p.op == s.op && p.nr == s.nr && p.name == s.name && p.shift == s.shift {
				p.hi = s.hi
				continue
			}
		}
		joined = append(joined, s)
	}
	return joined
}
