package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// If the lists of writes differ, regions that depend on no param can still be compared
// byte by byte: what is one write in one graph may be covered by two in the other.

// maxSegments bounds the number of runs in an exact comparison.
const maxSegments = 1 << 12

func constant(r *reading) bool {
	// Painting one write over the others looks at all of them, so the cost is
	// quadratic.
	if len(r.writes) > 8 && !r.m.afford(len(r.writes)*len(r.writes)) {
		return false
	}
	n := r.m.constantRuns(r.at)
	if n > maxSegments {
		return false
	}
	for _, w := range r.writes {
		if n += r.m.constantRuns(&r.m.writes[w].access); n > maxSegments {
			return false
		}
	}
	return true
}

// constantRuns is runs for an access. For one that params move it returns more than
// maxSegments.
func (m *model) constantRuns(a *access) int64 {
	if a.flat() {
		return 1
	}
	r := m.region(a)
	if !r.IsConst() {
		return maxSegments + 1
	}
	return runs(&r)
}

func runs(r *ir.Region) int64 {
	n := int64(1)
	for _, d := range r.Dims {
		if !d.Count.IsConst() || n > maxSegments {
			return maxSegments + 1
		}
		n *= max(d.Count.Const, 0)
	}
	return n
}

// segment says where the bytes [lo, hi) of a reading come from. Bytes are counted in the order of
// the region's runs. Byte i is byte i+shift of a write of B, counted in the same way, or of the
// initial contents of a memory.
type segment struct {
	lo, hi int64
	write  int32 // −1: the initial contents of the memory called name
	name   string
	shift  int64
	soft   bool // a may-write: the bytes beneath it matter too, and follow as the next segment
}

// segments returns where exactly the bytes of a constant reading come from. Copies are
// followed to what they copied; writes have the names of n.
func segments(r *reading, n *names) []segment { return n.expand(n.uncopied(r), 0) }

// uncopied is segments without following copies.
func (n *names) uncopied(r *reading) []segment {
	// Segments by byte of the memory; later writes are painted over earlier ones.
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
	paint(r.at.lo, r.at.end, segment{write: -1, name: r.m.g.Memories[r.at.mem].Name})
	for _, nr := range r.writes {
		w := &r.m.writes[nr]
		at := int64(0)
		r.m.region(&w.access).Runs(nil, func(a, b int64) bool {
			if x, y := max(a, r.at.lo), min(b, r.at.end); x < y {
				paint(x, y, segment{write: n.of(nr), shift: at - a, soft: !w.must})
			}
			at += b - a
			return true
		})
	}
	return project(r.m.region(r.at), cover)
}

// maxCopies bounds how many copies of copies are followed.
const maxCopies = 64

// expand replaces each segment that a copy of B wrote by the segments that it copied.
func (n *names) expand(list []segment, depth int) []segment {
	var out []segment
	for _, s := range list {
		var from []segment
		if s.write >= 0 && !s.soft && depth < maxCopies {
			from = n.copied(n.m.writes[s.write].op, depth)
		}
		if from == nil {
			out = append(out, s)
			continue
		}
		for _, c := range from {
			lo, hi := max(c.lo-s.shift, s.lo), min(c.hi-s.shift, s.hi)
			if lo < hi {
				out = append(out, segment{lo: lo, hi: hi, write: c.write, name: c.name, shift: s.shift + c.shift})
			}
		}
	}
	for i := range out {
		if w := &out[i].write; *w >= 0 {
			*w = (&names{classes: n.classes}).of(*w)
		}
	}
	return joined(out)
}

// copied returns the segments that op, of B, copies. It returns nil if op is no copy,
// or if its source is not known byte by byte.
func (n *names) copied(op int32, depth int) []segment {
	o := &n.m.ops[op]
	if n.m.trace == nil || !n.m.copies(op) {
		return nil
	}
	if list, ok := n.m.copySources[op]; ok {
		return list
	}
	var list []segment
	r := n.m.trace.reading(o.rlo)
	// The log of a part would tell where the bytes come from as well. But it is long, and
	// painting it would take the steps that the rest of the graph may need.
	if r.part == nil && constant(&r) && mustOnly(&r) && !r.given() {
		home := &names{classes: n.classes, m: n.m}
		list = home.expand(home.uncopied(&r), depth+1)
	}
	if n.m.copySources == nil {
		n.m.copySources = map[int32][]segment{}
	}
	n.m.copySources[op] = list
	return list
}

// hasCopies reports whether a reading sees something that a copy of B wrote.
func (n *names) hasCopies(r *reading) bool {
	return slices.ContainsFunc(r.writes, func(w int32) bool {
		x := n.of(w)
		return x >= 0 && n.m.copies(n.m.writes[x].op)
	})
}

// opaque reports whether the list still contains a copy, because its source is not
// known.
func (n *names) opaque(list []segment) bool {
	return slices.ContainsFunc(list, func(s segment) bool { return s.write >= 0 && n.m.copies(n.m.writes[s.write].op) })
}

// project turns segments by byte of the memory into segments by byte of the region, in
// order and joined where they continue one another.
func project(region ir.Region, cover []segment) []segment {
	var out []segment
	at := int64(0)
	region.Runs(nil, func(a, b int64) bool {
		first := len(out)
		for _, c := range cover {
			if x, y := max(a, c.lo), min(b, c.hi); x < y {
				s := c
				// From here on shift counts from the region's start to the write's
				// start.
				s.lo, s.hi = x-a+at, y-a+at
				s.shift = c.shift + a - at
				out = append(out, s)
			}
		}
		slices.SortStableFunc(out[first:], func(p, q segment) int { return int(p.lo - q.lo) })
		at += b - a
		return true
	})
	return joined(out)
}

// joined merges, in place, segments that continue one another.
func joined(list []segment) []segment {
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && !s.soft && !out[n-1].soft {
			if p := &out[n-1]; p.hi == s.lo && p.write == s.write && p.name == s.name && p.shift == s.shift {
				p.hi = s.hi
				continue
			}
		}
		out = append(out, s)
	}
	return out
}
