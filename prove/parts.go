package prove

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// part is a range of a memory in which hundreds of strided writes or may-writes overlap, so that
// finding the visible writes of each read would take too long. A part is not analysed further: a
// read of it sees all writes to it, in the order in which they were made. That is enough to prove a
// graph that leaves the part alone, and costs one step for each access. The rest of the graph is
// proved as usual.
type part struct {
	mem     ir.MemID
	lo, end int64
	log     []int32 // all writes that may touch the part
	from    int     // the first write in log that was made since the last pillar or, if whole, covers the part
	whole   bool
	agreed  agreement
}

// agreement remembers how many writes of two logs were found equal. One log belongs to a part of A,
// the other to a part of B. INVARIANT: what was equal stays equal; see comparison.
type agreement struct {
	with            *part
	before, after   int // where the logs begin
	classes, images *int32
	shift           int64 // how far the part of A lies behind that of B
	n               int
}

// maxRestarts bounds how often a graph is traced anew because parts were found.
const maxRestarts = 8

// partOf returns the index in h.parts of the part that an access touches, or -1. A read touches at
// most one part, and lies within it: see withReads.
func (h *history) partOf(a *access) int {
	list := h.partsOf[a.mem]
	k, _ := slices.BinarySearchFunc(list, a.lo, func(n int32, lo int64) int {
		if h.parts[n].end <= lo {
			return -1
		}
		return 1
	})
	if k < len(list) && h.parts[list[k]].lo < a.end {
		return int(list[k])
	}
	return -1
}

// logged adds a write to the logs of all parts that it touches. It returns true if the whole write
// lies in one part.
func (h *history) logged(nr int32) (all bool) {
	w := &h.m.writes[nr]
	for rest := w.access; ; {
		n := h.partOf(&rest)
		if n < 0 {
			return false
		}
		p := &h.parts[n]
		if w.must && h.m.covers(&w.access, &access{lo: p.lo, end: p.end, mem: p.mem}) {
			p.from, p.whole = len(p.log), true
		}
		p.log = append(p.log, nr)
		if w.end <= p.end {
			return p.lo <= w.lo
		}
		rest = access{lo: p.end, end: w.end, mem: w.mem}
	}
}

// seenOf returns what a read of part n sees.
func (h *history) seenOf(n int) seen {
	p := &h.parts[n]
	if len(p.log) == p.from {
		return seen{initial: true}
	}
	return seen{from: int64(n)<<32 | int64(p.from), n: int32(p.from - len(p.log)), initial: !p.whole}
}

// sameLog is sameLists for two readings of which at least one is of a part.
func sameLog(b, a *reading, bn, an *names) bool {
	if a.part == nil || b.part == nil || len(a.writes) != len(b.writes) || a.initial != b.initial || a.initial && !samePlace(b, a) {
		return false
	}
	shift, fixed := a.m.off(a.at).Distance(b.m.off(b.at))
	now := agreement{with: b.part, before: b.from, after: a.from, classes: &bn.classes[0], shift: shift}
	if an.images != nil {
		now.images = &an.images[0]
	}
	known := &a.part.agreed
	if invariants.Caches && fixed {
		was := *known
		was.n = 0
		if was == now {
			now.n = known.n
		}
	}
	for now.n < len(a.writes) {
		j, w := b.writes[now.n], a.writes[now.n]
		if !a.m.afford(1) || bn.of(j) != an.of(w) || !sameOffset(b, a, j, w) {
			break
		}
		now.n++
	}
	if fixed {
		*known = now
	}
	return now.n >= len(a.writes)
}

// span is a range of bytes.
type span struct{ lo, end int64 }

// crowdedParts returns the parts of a graph that were looked at too often so far, together with
// those that exist already. grown is false if no part is new.
func (h *history) crowdedParts() (out []part, grown bool) {
	spans := make([][]span, len(h.m.g.Memories))
	for i := range h.parts {
		p := &h.parts[i]
		spans[p.mem] = append(spans[p.mem], span{p.lo, p.end})
	}
	for w, n := range h.looks {
		if int(n) > lookPerAccess/2 { // more looks than an access may take on average from half of the bound on
			x := &h.m.writes[w]
			spans[x.mem] = append(spans[x.mem], span{x.lo, x.end})
			grown = true
		}
	}
	if !grown {
		return nil, false
	}
	return h.m.withReads(spans), true
}

// withReads returns parts that contain the given spans, by memory. They are enlarged until each
// read lies inside one part or touches none.
func (m *model) withReads(spans [][]span) (out []part) {
	reads := make([][]span, len(spans))
	for i := range m.reads {
		if a := &m.reads[i]; len(spans[a.mem]) > 0 && !m.void(a) {
			reads[a.mem] = append(reads[a.mem], span{a.lo, a.end})
		}
	}
	const rounds = 16
	for mem := range spans {
		if len(spans[mem]) == 0 {
			continue
		}
		x := &m.g.Memories[mem]
		all := []span{{0, x.Size}}
		if m.pillars > 0 || x.Kind != ir.Scratch {
			spans[mem] = all // it is read as a whole
		}
		for n, grown := 0, true; grown; n++ {
			if spans[mem], grown = joinedSpans(spans[mem]), false; n >= rounds {
				spans[mem] = all
				break
			}
			list := spans[mem]
			for _, r := range reads[mem] {
				k, _ := slices.BinarySearchFunc(list, r.lo, func(s span, lo int64) int {
					if s.end <= lo {
						return -1
					}
					return 1
				})
				if k < len(list) && list[k].lo < r.end && (r.lo < list[k].lo || r.end > list[k].end) {
					spans[mem], grown = append(spans[mem], r), true
				}
			}
		}
		for _, s := range spans[mem] {
			out = append(out, part{mem: ir.MemID(mem), lo: s.lo, end: s.end})
		}
	}
	return out
}

// joinedSpans sorts spans and joins those that share a byte.
func joinedSpans(list []span) []span {
	slices.SortFunc(list, func(x, y span) int { return cmp.Compare(x.lo, y.lo) })
	var out []span
	for _, s := range list {
		if n := len(out); n > 0 && s.lo < out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// partsLike returns the parts of another graph in the memories of m with the same names.
func (m *model) partsLike(other *history) []part {
	spans := make([][]span, len(m.g.Memories))
	found := false
	for i := range other.parts {
		p := &other.parts[i]
		for mem, name := range m.names {
			if name == other.m.names[p.mem] && m.g.Memories[mem].Alias == ir.NoMem && p.lo < m.g.Memories[mem].Size {
				spans[mem], found = append(spans[mem], span{p.lo, min(p.end, m.g.Memories[mem].Size)}), true
			}
		}
	}
	if !found {
		return nil
	}
	return m.withReads(spans)
}
