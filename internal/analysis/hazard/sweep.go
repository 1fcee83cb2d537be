package hazard

import (
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// sweep runs over the accesses of a table in order and keeps, for every byte,
// what is known of its last writer and of the readers since.
//
// A write that covers a cell retires it, whether it must write or only may: who
// conflicts with what the cell stood for conflicts with the write as well, and
// the write stands after it.
type sweep struct {
	t *Table
	cells
	// What a reader leaves in a cell that has r already. The default keeps the
	// greater number.
	reader func(r, x int32) int32
	// Called with r where a cell is split or keeps its readers although a writer
	// conflicts with them; what it returns takes their place.
	share func(r int32) int32
	// What a crowd of cells remembers of their writers and readers. The default
	// keeps the greatest numbers.
	gather func(members []int32) (w, r int32)

	looked  int // cells that accesses met so far
	allowed int // how many may be, before crowds form

	polls interrupt.Every
	met   []int32
	spans []int32 // of hits, by access of a command: from, to
	mark  int64   // changes when the command began
}

// Cells are looked at one by one, exactly, as long as that is no more than what
// follows: recordings need a few for each access. What params move all over a memory
// makes every access meet every one before it, and so do many writes of pieces that
// many commands read as a whole; beyond the bound more than maxCrowd of the cells that
// an access meets become one, a crowd, which stands for every byte of their hull. That
// orders more than is needed, never less.
var (
	lookFree      = 1 << 16 // of a whole table
	lookPerAccess = 32      // and of each access
	maxCrowd      = 16
)

func newSweep(t *Table) *sweep {
	return &sweep{t: t, cells: newCells(len(t.g.Memories)), allowed: lookFree + lookPerAccess*len(t.accesses)}
}

// done adds the sweep's work to the table's.
func (s *sweep) done() { s.t.ops += s.ops }

// begin starts a command: what the one before found is forgotten.
func (s *sweep) begin() {
	s.hits, s.spans, s.mark = s.hits[:0], s.spans[:0], s.changes
}

// look returns the cells that a meets, exactly as far as [Disjoint] knows. It
// is called once for each access of a command, in their order, before any of
// them is entered.
func (s *sweep) look(a *access) []int32 {
	s.polls.Poll(s.t.ctx, 16) // each may meet many cells
	from := len(s.hits)
	s.find(a.root, a.lo, a.end)
	s.spans = append(s.spans, int32(from), int32(len(s.hits)))
	hits := s.hits[from:]
	s.looked += len(hits)
	if a.region == 0 && s.roots[a.root].loose == 0 {
		return hits // all are solid, and so is a: their hulls decide
	}
	exact := true
	for _, h := range hits {
		if c := &s.nodes[h]; (a.region != 0 || c.region != 0) && !s.meets(a, c) {
			exact = false
			break
		}
	}
	if exact {
		return hits
	}
	s.met = s.met[:0]
	for _, h := range hits {
		if c := &s.nodes[h]; (a.region == 0 && c.region == 0) || s.meets(a, c) {
			s.met = append(s.met, h)
		}
	}
	return s.met
}

// found returns the cells whose hulls meet access k of the command, a.
func (s *sweep) found(k int, a *access) []int32 {
	var hits []int32
	if s.mark == s.changes && 2*k < len(s.spans) {
		hits = s.hits[s.spans[2*k]:s.spans[2*k+1]]
	} else {
		from := len(s.hits)
		s.find(a.root, a.lo, a.end)
		hits = s.hits[from:]
	}
	s.looked += len(hits)
	return hits
}

// enter notes all accesses of a command: reads first, for its writes retire
// them.
func (s *sweep) enter(as []access, x int32) {
	for k := range as {
		if !as[k].write {
			s.addRead(k, &as[k], x)
		}
	}
	for k := range as {
		if as[k].write {
			s.addWrite(k, &as[k], x)
		}
	}
}

func (s *sweep) meets(a *access, c *cell) bool {
	switch {
	case a.region == 0:
		return !s.t.regions.apart(c.region, a.lo, a.end)
	case c.region == 0:
		return !s.t.regions.apart(a.region, c.lo, c.end)
	}
	return !s.t.regions.disjoint(a.region, c.region)
}

func (s *sweep) shared(r int32) int32 {
	if s.share == nil || r == none {
		return r
	}
	return s.share(r)
}

func (s *sweep) read(r, x int32) int32 {
	if s.reader == nil {
		return max(r, x)
	}
	return s.reader(r, x)
}

// addRead notes that x reads a, access k of the command.
func (s *sweep) addRead(k int, a *access, x int32) {
	hits := s.found(k, a)
	if a.region != 0 {
		for _, h := range hits {
			if c := &s.nodes[h]; c.region == a.region {
				c.r = s.read(c.r, x)
				return
			}
		}
		s.insert(a.root, cell{lo: a.lo, end: a.end, region: a.region, w: none, r: s.read(none, x)})
		s.crowd(a)
		return
	}
	at, before := a.lo, int32(0)
	for n, h := range hits {
		c := &s.nodes[h]
		if c.region != 0 {
			break // the solid ones come first
		}
		if n == 0 {
			before = c.prev
		}
		if c.lo > at {
			s.insertSolid(a.root, before, cell{lo: at, end: c.lo, w: none, r: s.read(none, x)})
			c = &s.nodes[h] // the cells may have moved
		}
		at, before = c.end, h
		r := c.r
		if c.lo < a.lo || c.end > a.end {
			r = s.shared(r)
			c = &s.nodes[h]
			c.r = r
		}
		if c.end > a.end { // its tail is not read
			tail := *c
			tail.lo = a.end
			c.end = a.end
			s.changes++
			s.insertSolid(a.root, h, tail)
			c = &s.nodes[h]
		}
		if c.lo < a.lo { // its head is not read
			body := *c
			body.lo, body.r = a.lo, s.read(r, x)
			c.end = a.lo
			s.changes++
			before = s.insertSolid(a.root, h, body)
			continue
		}
		c.r = s.read(r, x)
	}
	if at < a.end {
		if len(hits) == 0 || s.nodes[hits[0]].region != 0 {
			before = s.solidBefore(a.root, a.lo)
		}
		s.insertSolid(a.root, before, cell{lo: at, end: a.end, w: none, r: s.read(none, x)})
	}
	s.crowd(a)
}

// solidBefore returns the last solid cell of a memory that begins before lo, or
// 0.
func (s *sweep) solidBefore(root int32, lo int64) int32 {
	at := int32(0)
	for n := s.roots[root].solid; n != 0; {
		s.ops++
		if c := &s.nodes[n]; c.lo < lo {
			at, n = n, c.right
		} else {
			n = c.left
		}
	}
	return at
}

// addWrite notes that x writes a, access k of the command.
func (s *sweep) addWrite(k int, a *access, x int32) {
	hits := s.found(k, a)
	// The solid cell that becomes a's, or before which a's stands.
	same, before := int32(0), int32(0)
	solid := a.region == 0
	if solid && (len(hits) == 0 || s.nodes[hits[0]].region != 0) {
		before = s.solidBefore(a.root, a.lo)
	}
	for n, h := range hits {
		c := &s.nodes[h]
		if !solid || c.region != 0 {
			switch {
			case c.region == a.region:
				same = h
			case s.covers(a, c):
				if c.region == 0 {
					s.removeSolid(a.root, h)
				} else {
					s.remove(a.root, h)
				}
			case c.r != none && s.share != nil && s.meets(a, c):
				r := s.shared(c.r)
				s.nodes[h].r = r
			}
			continue
		}
		if n == 0 {
			before = c.prev
		}
		if c.lo < a.lo || c.end > a.end {
			r := s.shared(c.r)
			c = &s.nodes[h]
			c.r = r
		}
		switch {
		case c.lo < a.lo: // its head stays
			if c.end > a.end {
				tail := *c
				tail.lo = a.end
				s.insertSolid(a.root, h, tail)
				c = &s.nodes[h]
			}
			c.end = a.lo
			s.changes++
			before = h
		case c.end > a.end: // its tail stays
			c.lo = a.end
			*s.spot(a.root, a.end) = h
			s.changes++
		case same == 0:
			same = h
		default:
			s.removeSolid(a.root, h)
		}
	}
	switch {
	case same != 0:
		c := &s.nodes[same]
		if c.lo != a.lo || c.end != a.end {
			s.changes++
			c.lo, c.end = a.lo, a.end
			*s.spot(a.root, a.lo) = same
		}
		c.w, c.r = x, none
	case solid:
		s.insertSolid(a.root, before, cell{lo: a.lo, end: a.end, w: x, r: none})
	default:
		s.insert(a.root, cell{lo: a.lo, end: a.end, region: a.region, w: x, r: none})
	}
	s.crowd(a)
}

// crowd makes one cell of those that a meets, where there are too many; solid ones
// that reach out of a stay.
func (s *sweep) crowd(a *access) {
	if s.looked > s.allowed {
		s.unite(a)
	}
}

func (s *sweep) unite(a *access) {
	from := len(s.hits)
	s.find(a.root, a.lo, a.end)
	s.looked += len(s.hits) - from
	members := s.hits[from:from]
	c := cell{lo: a.end, end: a.lo}
	for _, h := range s.hits[from:] {
		if m := &s.nodes[h]; m.region != 0 || a.lo <= m.lo && m.end <= a.end {
			c.lo, c.end = min(c.lo, m.lo), max(c.end, m.end)
			members = append(members, h)
		}
	}
	if len(members) > maxCrowd {
		c.w, c.r = s.gathered(members)
		for _, h := range members {
			if s.nodes[h].region == 0 {
				s.removeSolid(a.root, h)
			} else {
				s.remove(a.root, h)
			}
		}
		c.region = s.t.regions.crowd(ir.MemID(a.root), c.lo, c.end)
		s.insert(a.root, c)
	}
	s.hits = s.hits[:from]
}

func (s *sweep) gathered(members []int32) (w, r int32) {
	if s.gather != nil {
		return s.gather(members)
	}
	w, r = none, none
	for _, h := range members {
		w, r = max(w, s.nodes[h].w), max(r, s.nodes[h].r)
	}
	return w, r
}

// covers reports whether a contains every byte of c, whatever the params.
func (s *sweep) covers(a *access, c *cell) bool {
	switch {
	case a.region == 0:
		return a.lo <= c.lo && c.end <= a.end
	case c.region == 0:
		x := &s.t.regions.all[a.region]
		return x.coreLo <= c.lo && c.end <= x.coreEnd
	}
	return s.t.regions.covers(a.region, c.region)
}
