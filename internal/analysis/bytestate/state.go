package bytestate

import (
	"context"
	"math"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// None is no number: a cell without a writer, or without a reader since.
const None int32 = -1

// State keeps, for every byte, what is known of its last writer and of the readers
// since, as commands are entered one after the other. What is remembered of a writer
// or reader is a number of the caller's: a position, a level, a list.
//
// A write that covers a cell retires it, whether it must write or only may: who
// conflicts with what the cell stood for conflicts with the write as well, and
// the write stands after it.
type State struct {
	cells
	ctx   context.Context
	facts *Facts
	// What a Reader leaves in a cell that has r already. The default keeps the
	// greater number.
	Reader func(r, x int32) int32
	// Called with r where a cell is split or keeps its readers although a writer
	// conflicts with them; what it returns takes their place.
	Share func(r int32) int32
	// What a crowd of cells remembers of their writers and readers. The default
	// keeps the greatest numbers.
	Gather func(members []int32) (w, r int32)

	looked  int // cells that accesses met so far
	allowed int // how many may be, before crowds form

	polls   interrupt.Every
	met     []int32 // what Look returns, where it is not all that it found
	visible []int32 // what Seen returns
	spans   []int32 // of hits, by access of a command: from, to
	mark    int64   // changes when the command began
}

// Limits bound the cells that accesses look at one by one. Recordings need a few for
// each access; but what params move all over a memory makes every access meet every
// one before it, and so do many writes of pieces that many commands read as a whole.
type Limits struct {
	Free      int // looks that a graph has
	PerAccess int // and for each of its accesses
	Crowd     int // cells that an access may meet beyond that
}

// limits are what [State] and its users keep to; tests lower them.
var limits = Limits{Free: 1 << 16, PerAccess: 32, Crowd: 16}

// Bound returns the limits.
func Bound() Limits { return limits }

// SetBound is for tests: it sets the limits, and returns what sets them back.
func SetBound(l Limits) (restore func()) {
	was := limits
	limits = l
	return func() { limits = was }
}

// Looks is how many cells so many accesses may look at.
func (l Limits) Looks(accesses int) int { return l.Free + l.PerAccess*accesses }

// NewState returns a state without cells; polls for the end of ctx while it looks
// for cells ([interrupt.Poll]).
//
// Where accesses have met more cells than the limits allow for that many of them,
// more than Limits.Crowd of those that one meets become one, a crowd, which stands
// for every byte of their hull: conflicts are found that are none, and none is lost.
// Of a negative number of accesses crowds never form: the caller bounds them.
func NewState(ctx context.Context, f *Facts, accesses int) *State {
	s := &State{ctx: ctx, facts: f, cells: newCells(len(f.roots)), allowed: math.MaxInt}
	if accesses >= 0 {
		s.allowed = limits.Looks(accesses)
	}
	return s
}

// Allow makes room for more accesses than the state was made for.
func (s *State) Allow(accesses int) { s.allowed += limits.PerAccess * accesses }

// Renew forgets all cells, and how many were looked at, as of a state that was made
// for no access.
func (s *State) Renew() {
	s.Reset()
	s.looked, s.allowed = 0, limits.Free
}

// Grow makes room for memories that the facts have learned of.
func (s *State) Grow() {
	for len(s.roots) < len(s.facts.roots) {
		s.roots = append(s.roots, treeRoots{})
	}
}

// Cell returns a cell by its number, which is valid until the next one is entered.
func (s *State) Cell(n int32) *Cell { return &s.nodes[n] }

// Looked returns the number of cells that accesses have met.
func (s *State) Looked() int { return s.looked }

// Operations returns the number of nodes of trees that were visited: a measure of
// work that no clock disturbs.
func (s *State) Operations() int64 { return s.ops }

// Begin starts a command: what the one before found is forgotten.
func (s *State) Begin() {
	s.hits, s.spans, s.mark = s.hits[:0], s.spans[:0], s.changes
}

// Look returns the cells that a meets, exactly as far as [Disjoint] knows. It
// is called once for each access of a command, in their order, before any of
// them is entered.
func (s *State) Look(a *Access) []int32 {
	s.polls.Poll(s.ctx, 16) // each may meet many cells
	from := len(s.hits)
	s.find(a.Root, a.Lo, a.End)
	s.spans = append(s.spans, int32(from), int32(len(s.hits)))
	hits := s.hits[from:]
	s.looked += len(hits)
	if a.Region == 0 && s.roots[a.Root].loose == 0 {
		return hits // all are solid, and so is a: their hulls decide
	}
	exact := true
	for _, h := range hits {
		if c := &s.nodes[h]; (a.Region != 0 || c.Region != 0) && !s.meets(a, c) {
			exact = false
			break
		}
	}
	if exact {
		return hits
	}
	s.met = s.met[:0]
	for _, h := range hits {
		if c := &s.nodes[h]; (a.Region == 0 && c.Region == 0) || s.meets(a, c) {
			s.met = append(s.met, h)
		}
	}
	return s.met
}

// found returns the cells whose hulls meet access k of the command, a.
func (s *State) found(k int, a *Access) []int32 {
	var hits []int32
	if s.mark == s.changes && 2*k < len(s.spans) {
		hits = s.hits[s.spans[2*k]:s.spans[2*k+1]]
	} else {
		from := len(s.hits)
		s.find(a.Root, a.Lo, a.End)
		hits = s.hits[from:]
	}
	s.looked += len(hits)
	return hits
}

// retirable is found for a write. A loose one retires no solid cells but those that lie
// in its core, so that of the others only their readers matter, where they are shared.
func (s *State) retirable(k int, a *Access) []int32 {
	if a.Region == 0 || s.Share != nil || 2*k < len(s.spans) {
		return s.found(k, a)
	}
	from := len(s.hits)
	if x := s.facts.At(a.Region); x.CoreLo < x.CoreEnd {
		s.findSolid(a.Root, x.CoreLo, x.CoreEnd)
	}
	s.findLoose(a.Root, a.Lo, a.End)
	s.looked += len(s.hits) - from
	return s.hits[from:]
}

// Enter notes all accesses of a command: reads first, for its writes retire
// them.
func (s *State) Enter(as []Access, x int32) {
	for k := range as {
		if !as[k].Write {
			s.AddRead(k, &as[k], x)
		}
	}
	for k := range as {
		if as[k].Write {
			s.AddWrite(k, &as[k], x)
		}
	}
}

// meets reports whether a and cell c, whose hulls share a byte, may share one.
func (s *State) meets(a *Access, c *Cell) bool {
	return s.facts.meet(a.Region, c.Region, a.Lo, a.End, c.Lo, c.End)
}

func (s *State) shared(r int32) int32 {
	if s.Share == nil || r == None {
		return r
	}
	return s.Share(r)
}

func (s *State) read(r, x int32) int32 {
	if s.Reader == nil {
		return max(r, x)
	}
	return s.Reader(r, x)
}

// AddRead notes that x reads a, access k of the command.
func (s *State) AddRead(k int, a *Access, x int32) {
	hits := s.found(k, a)
	if a.Region != 0 {
		for _, h := range hits {
			if c := &s.nodes[h]; c.Region == a.Region {
				c.R = s.read(c.R, x)
				return
			}
		}
		s.insert(a.Root, Cell{Lo: a.Lo, End: a.End, Region: a.Region, W: None, R: s.read(None, x)})
		s.Crowd(a)
		return
	}
	at, before := a.Lo, int32(0)
	for n, h := range hits {
		c := &s.nodes[h]
		if c.Region != 0 {
			break // the solid ones come first
		}
		if n == 0 {
			before = c.prev
		}
		if c.Lo > at {
			s.insertSolid(a.Root, before, Cell{Lo: at, End: c.Lo, W: None, R: s.read(None, x)})
			c = &s.nodes[h] // the cells may have moved
		}
		at, before = c.End, h
		r := c.R
		if c.Lo < a.Lo || c.End > a.End {
			r = s.shared(r)
			c = &s.nodes[h]
			c.R = r
		}
		if c.End > a.End { // its tail is not read
			tail := *c
			tail.Lo = a.End
			c.End = a.End
			s.changes++
			s.insertSolid(a.Root, h, tail)
			c = &s.nodes[h]
		}
		if c.Lo < a.Lo { // its head is not read
			body := *c
			body.Lo, body.R = a.Lo, s.read(r, x)
			c.End = a.Lo
			s.changes++
			before = s.insertSolid(a.Root, h, body)
			continue
		}
		c.R = s.read(r, x)
	}
	if at < a.End {
		if len(hits) == 0 || s.nodes[hits[0]].Region != 0 {
			before = s.solidBefore(a.Root, a.Lo)
		}
		s.insertSolid(a.Root, before, Cell{Lo: at, End: a.End, W: None, R: s.read(None, x)})
	}
	s.Crowd(a)
}

// solidBefore returns the last solid cell of a memory that begins before lo, or
// 0.
func (s *State) solidBefore(root int32, lo int64) int32 {
	at := int32(0)
	for n := s.roots[root].solid; n != 0; {
		s.ops++
		if c := &s.nodes[n]; c.Lo < lo {
			at, n = n, c.right
		} else {
			n = c.left
		}
	}
	return at
}

// AddWrite notes that x writes a, access k of the command.
func (s *State) AddWrite(k int, a *Access, x int32) {
	hits := s.retirable(k, a)
	// The solid cell that becomes a's, or before which a's stands.
	same, before := int32(0), int32(0)
	solid := a.Region == 0
	if solid && (len(hits) == 0 || s.nodes[hits[0]].Region != 0) {
		before = s.solidBefore(a.Root, a.Lo)
	}
	for n, h := range hits {
		c := &s.nodes[h]
		if !solid || c.Region != 0 {
			switch {
			case c.Region == a.Region:
				same = h
			case s.covers(a, c):
				if c.Region == 0 {
					s.removeSolid(a.Root, h)
				} else {
					s.remove(a.Root, h)
				}
			case c.R != None && s.Share != nil && s.meets(a, c):
				r := s.shared(c.R)
				s.nodes[h].R = r
			}
			continue
		}
		if n == 0 {
			before = c.prev
		}
		if c.Lo < a.Lo || c.End > a.End {
			r := s.shared(c.R)
			c = &s.nodes[h]
			c.R = r
		}
		switch {
		case c.Lo < a.Lo: // its head stays
			if c.End > a.End {
				tail := *c
				tail.Lo = a.End
				s.insertSolid(a.Root, h, tail)
				c = &s.nodes[h]
			}
			c.End = a.Lo
			s.changes++
			before = h
		case c.End > a.End: // its tail stays
			c.Lo = a.End
			*s.spot(a.Root, a.End) = h
			s.changes++
		case same == 0:
			same = h
		default:
			s.removeSolid(a.Root, h)
		}
	}
	switch {
	case same != 0:
		c := &s.nodes[same]
		if c.Lo != a.Lo || c.End != a.End {
			s.changes++
			c.Lo, c.End = a.Lo, a.End
			*s.spot(a.Root, a.Lo) = same
		}
		c.W, c.R = x, None
	case solid:
		s.insertSolid(a.Root, before, Cell{Lo: a.Lo, End: a.End, W: x, R: None})
	default:
		s.insert(a.Root, Cell{Lo: a.Lo, End: a.End, Region: a.Region, W: x, R: None})
	}
	s.Crowd(a)
}

// Crowd makes one cell of those that a meets, where there are too many; solid ones
// that reach out of a stay.
func (s *State) Crowd(a *Access) {
	if s.looked > s.allowed {
		s.unite(a)
	}
}

func (s *State) unite(a *Access) {
	from := len(s.hits)
	s.find(a.Root, a.Lo, a.End)
	s.looked += len(s.hits) - from
	members := s.hits[from:from]
	c := Cell{Lo: a.End, End: a.Lo}
	for _, h := range s.hits[from:] {
		if m := &s.nodes[h]; m.Region != 0 || a.Lo <= m.Lo && m.End <= a.End {
			c.Lo, c.End = min(c.Lo, m.Lo), max(c.End, m.End)
			members = append(members, h)
		}
	}
	if len(members) > limits.Crowd {
		c.W, c.R = s.gathered(members)
		for _, h := range members {
			if s.nodes[h].Region == 0 {
				s.removeSolid(a.Root, h)
			} else {
				s.remove(a.Root, h)
			}
		}
		c.Region = s.facts.crowd(ir.MemID(a.Root), c.Lo, c.End)
		s.insert(a.Root, c)
	}
	s.hits = s.hits[:from]
}

func (s *State) gathered(members []int32) (w, r int32) {
	if s.Gather != nil {
		return s.Gather(members)
	}
	w, r = None, None
	for _, h := range members {
		w, r = max(w, s.nodes[h].W), max(r, s.nodes[h].R)
	}
	return w, r
}

// covers reports whether a has every byte of c, whatever the params.
func (s *State) covers(a *Access, c *Cell) bool {
	return s.facts.contains(a.Region, c.Region, a.Lo, a.End, c.Lo, c.End)
}

// Holds reports whether c has every byte of a, whatever the params.
func (s *State) Holds(c *Cell, a *Access) bool {
	return s.facts.contains(c.Region, a.Region, c.Lo, c.End, a.Lo, a.End)
}
