package bytestate

import (
	"context"
	"math"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// None in a cell says that it has no writer, or that nobody read it since.
const None int32 = -1

// State remembers, for every byte, its last writer and the readers since. It is filled
// with the accesses of commands, one command after the other. What is remembered of a
// writer or reader is a number that the caller chooses: a position, a level, a list.
//
// A write removes the cells that it covers, even if it is a may-write: whatever
// conflicts with what such a cell stood for conflicts with the write too, and the write
// comes after it.
type State struct {
	cells
	ctx   context.Context
	facts *Facts
	// Reader returns what a cell whose readers are r remembers after reader x. By
	// default it is the greater number.
	Reader func(r, x int32) int32
	// Share is called with the readers r of a cell that is split, or that keeps them
	// although a writer conflicts with them. Its result replaces r.
	Share func(r int32) int32
	// Gather returns what a crowd, the union of the cells `members`, remembers of their
	// writers and readers. By default these are the max numbers.
	Gather func(members []int32) (w, r int32)

	looked  int // how many cells accesses have met so far
	allowed int // how many they may meet before crowds are formed

	polls   interrupt.Every
	met     []int32 // the result of Look, if it is not all that was found
	visible []int32 // the result of Seen
	spans   []int32 // for each access of a command: where its part of hits begins and ends
	mark    int64   // changes, as it was when the command began
}

// Limits bounds how many cells the accesses of a graph look at one by one. Recordings
// need a few for each access. But if params move many ranges all over a memory, every
// access meets all earlier ones; and so it is if many commands read as a whole what
// many wrote in pieces.
type Limits struct {
	Free      int // cells that every graph may look at
	PerAccess int // and for each of its accesses
	Crowd     int // cells that one access may meet beyond that
}

// limits are used by [State] and its callers. Tests lower them.
var limits = Limits{Free: 1 << 16, PerAccess: 32, Crowd: 16}

// Bound returns the limits in use.
func Bound() Limits { return limits }

// SetBound sets the limits, for tests, and returns a function that restores them.
func SetBound(l Limits) (restore func()) {
	was := limits
	limits = l
	return func() { limits = was }
}

// Looks returns how many cells a graph with so many accesses may look at.
func (l Limits) Looks(accesses int) int { return l.Free + l.PerAccess*accesses }

// NewState returns a state without cells. Its methods poll ctx while they look for
// cells, and panic once it has ended ([interrupt.Poll]).
//
// accesses is how many accesses will be entered. Once they have met more cells than the
// limits allow for that number, cells are united into crowds: if an access meets more
// than Limits.Crowd cells, these become one cell, which stands for every byte of their
// common hull. Then conflicts may be reported that are none, but none is missed. If
// accesses is negative, crowds are never formed, and the caller must bound the work.
func NewState(ctx context.Context, f *Facts, accesses int) *State {
	s := &State{ctx: ctx, facts: f, cells: newCells(len(f.roots)), allowed: math.MaxInt}
	if accesses >= 0 {
		s.allowed = limits.Looks(accesses)
	}
	return s
}

// Allow raises the limit for that many more accesses.
func (s *State) Allow(accesses int) { s.allowed += limits.PerAccess * accesses }

// Renew forgets all cells, and how many were looked at. The limit becomes that of a
// state for no accesses.
func (s *State) Renew() {
	s.Reset()
	s.looked, s.allowed = 0, limits.Free
}

// Grow makes room for memories that the facts know since [Facts.Grow].
func (s *State) Grow() {
	for len(s.roots) < len(s.facts.roots) {
		s.roots = append(s.roots, treeRoots{})
	}
}

// Cell returns cell n. It stays valid until the next access is entered.
func (s *State) Cell(n int32) *Cell { return &s.nodes[n] }

// Looked returns how many cells accesses have met so far.
func (s *State) Looked() int { return s.looked }

// Operations returns how many nodes of trees were visited: a measure of work that does
// not depend on a clock.
func (s *State) Operations() int64 { return s.ops }

// Begin starts a command, and forgets what was found for the one before.
func (s *State) Begin() {
	s.hits, s.spans, s.mark = s.hits[:0], s.spans[:0], s.changes
}

// Look returns the cells that may share a byte with a. It is called for each access of
// a command, in their order, before any of them is entered. The result is valid until
// the next call.
func (s *State) Look(a *Access) []int32 {
	s.polls.Poll(s.ctx, 16) // an access may meet many cells
	from := len(s.hits)
	s.find(a.Root, a.Lo, a.End)
	s.spans = append(s.spans, int32(from), int32(len(s.hits)))
	hits := s.hits[from:]
	s.looked += len(hits)
	if a.Region == 0 && s.roots[a.Root].loose == 0 {
		return hits // all are solid and so is a, so comparing hulls is exact
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

// found returns the cells whose hulls meet a, which is access k of the command.
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

// retirable is found for a write. If the write is loose, it can remove only those solid
// cells that lie in its core. The others matter only where their readers are shared.
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

// Enter notes all accesses of a command under number x: reads first, because its writes
// may remove cells that its reads need.
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

// meets reports whether a and c, whose hulls share a byte, may share one.
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

// AddRead notes that x reads a, which is access k of the command.
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
			break // the solid cells come first
		}
		if n == 0 {
			before = c.prev
		}
		if c.Lo > at {
			s.insertSolid(a.Root, before, Cell{Lo: at, End: c.Lo, W: None, R: s.read(None, x)})
			c = &s.nodes[h] // the slice of cells may have been reallocated
		}
		at, before = c.End, h
		r := c.R
		if c.Lo < a.Lo || c.End > a.End {
			r = s.shared(r)
			c = &s.nodes[h]
			c.R = r
		}
		if c.End > a.End { // the tail of the cell is not read
			tail := *c
			tail.Lo = a.End
			c.End = a.End
			s.changes++
			s.insertSolid(a.Root, h, tail)
			c = &s.nodes[h]
		}
		if c.Lo < a.Lo { // the head of the cell is not read
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

// solidBefore returns the last solid cell of a memory that begins before lo, or 0.
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

// AddWrite notes that x writes a, which is access k of the command.
func (s *State) AddWrite(k int, a *Access, x int32) {
	hits := s.retirable(k, a)
	// same is the solid cell that becomes the cell of a; otherwise the cell of a is put
	// in before the cell `before`.
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
		case c.Lo < a.Lo: // the head of the cell stays
			if c.End > a.End {
				tail := *c
				tail.Lo = a.End
				s.insertSolid(a.Root, h, tail)
				c = &s.nodes[h]
			}
			c.End = a.Lo
			s.changes++
			before = h
		case c.End > a.End: // the tail of the cell stays
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

// Crowd unites the cells that a meets if the limit is exceeded. Solid cells that reach
// beyond a stay as they are.
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
