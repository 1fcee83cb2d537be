package hazard

import (
	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Tracker takes commands one by one and tells whether another command conflicts with
// any of them. For a whole graph a [Table] is faster.
//
// A recording has few commands between two barriers, so the tracker begins with a list.
// When the list grows long, it continues with the trees of a sweep.
type Tracker struct {
	g       *ir.Graph
	facts   *bytestate.Facts
	s       *bytestate.State
	ids     []ir.ID
	pillar  int32
	few     []held // accesses in the order of their commands, as long as they are few
	many    bool   // the accesses are in the trees
	scratch []bytestate.Access
	fresh   bool // scratch holds the effects that Try was last called with
}

// held is an access of command n.
type held struct {
	bytestate.Access
	n int32
}

// maxFew is the length from which on searching a list costs more than searching trees.
const maxFew = 24

// grow makes room for memories that were added to the graph.
func (t *Tracker) grow() {
	t.facts.Grow(t.g)
	t.s.Grow()
}

// NewTracker returns an empty tracker for regions of g. While it is in use, g may get
// more memories, each after the memory that it is an alias of, but no more params or
// constraints.
func NewTracker(g *ir.Graph) *Tracker {
	f := bytestate.NewFactsOfReplays(g)
	return &Tracker{g: g, facts: f, s: bytestate.NewState(nil, f, 0), pillar: none}
}

// Reset forgets everything.
func (t *Tracker) Reset() {
	if t.many {
		t.s.Renew()
	}
	t.ids, t.pillar, t.few, t.many = t.ids[:0], none, t.few[:0], false
}

// Empty reports whether nothing was added since the last Reset.
func (t *Tracker) Empty() bool { return len(t.ids) == 0 }

// Add remembers what command id touches. If e is nil or incomplete, that may be
// anything.
func (t *Tracker) Add(id ir.ID, e *ir.Effects) {
	if !e.Known() {
		t.pillar = int32(len(t.ids))
		t.ids = append(t.ids, id)
		return
	}
	t.resolve(e)
	if t.many {
		t.s.Begin()
	}
	t.enter(id)
}

// Try adds command id as Add does, unless it conflicts with a command that the tracker
// remembers. Then it returns the first conflict found and true, and adds nothing.
func (t *Tracker) Try(id ir.ID, e *ir.Effects) (Conflict, bool) {
	t.fresh = false
	c, found := t.Conflict(e)
	if found {
		return c, true
	}
	if !e.Known() || t.Empty() || t.pillar != none {
		t.Add(id, e)
	} else {
		t.enter(id)
	}
	return Conflict{}, false
}

// AddTried adds command id, which the last Try refused, for example after a Reset.
func (t *Tracker) AddTried(id ir.ID, e *ir.Effects) {
	if !t.fresh {
		t.Add(id, e)
		return
	}
	if t.many {
		t.s.Begin()
	}
	t.enter(id)
}

// resolve lists in scratch what e touches.
func (t *Tracker) resolve(e *ir.Effects) {
	t.grow()
	t.scratch, t.fresh = t.scratch[:0], true
	for i := range e.Reads {
		if a, ok := t.facts.Resolve(&e.Reads[i]); ok {
			t.scratch = append(t.scratch, a)
		}
	}
	for i := range e.Writes {
		if a, ok := t.facts.Resolve(&e.Writes[i].Region); ok {
			a.Write = true
			t.scratch = append(t.scratch, a)
		}
	}
}

// enter adds what scratch lists as command id. The state must have been asked about it,
// or its Begin called.
func (t *Tracker) enter(id ir.ID) {
	n := int32(len(t.ids))
	t.ids = append(t.ids, id)
	if !t.many && len(t.few)+len(t.scratch) <= maxFew {
		for i := range t.scratch {
			t.few = append(t.few, held{t.scratch[i], n})
		}
		return
	}
	if !t.many {
		t.plant()
		t.s.Begin()
	}
	t.s.Allow(len(t.scratch))
	t.s.Enter(t.scratch, n)
}

// plant moves the list into the trees.
func (t *Tracker) plant() {
	t.many = true
	var as []bytestate.Access
	for i := 0; i < len(t.few); {
		n := t.few[i].n
		as = as[:0]
		for ; i < len(t.few) && t.few[i].n == n; i++ {
			as = append(as, t.few[i].Access)
		}
		t.s.Begin()
		t.s.Enter(as, n)
	}
	t.few = t.few[:0]
}

// Conflict returns the first conflict found between a command with effects e and the
// commands that the tracker remembers. ok is false if there is none.
func (t *Tracker) Conflict(e *ir.Effects) (Conflict, bool) {
	switch {
	case t.Empty():
		return Conflict{}, false
	case t.pillar != none:
		return Conflict{Kind: Unknown, With: t.ids[t.pillar]}, true
	case !e.Known():
		return Conflict{Kind: Unknown, With: t.ids[0]}, true
	}
	t.resolve(e)
	if !t.many {
		for i := range t.scratch {
			if kind, n := t.search(&t.scratch[i]); kind != None {
				return Conflict{Kind: kind, With: t.ids[n], Bytes: t.regionOf(e, i)}, true
			}
		}
		return Conflict{}, false
	}
	t.s.Begin()
	for i := range t.scratch {
		a := &t.scratch[i]
		for _, h := range t.s.Look(a) {
			c := t.s.Cell(h)
			switch {
			case !a.Write && c.W != none:
				return Conflict{Kind: RAW, With: t.ids[c.W], Bytes: t.regionOf(e, i)}, true
			case a.Write && c.R != none:
				return Conflict{Kind: WAR, With: t.ids[c.R], Bytes: t.regionOf(e, i)}, true
			case a.Write && c.W != none:
				return Conflict{Kind: WAW, With: t.ids[c.W], Bytes: t.regionOf(e, i)}, true
			}
		}
	}
	return Conflict{}, false
}

// search returns the latest command of the list that conflicts with a.
func (t *Tracker) search(a *bytestate.Access) (Kind, int32) {
	for i := len(t.few) - 1; i >= 0; i-- {
		h := &t.few[i]
		if h.Root != a.Root || h.Lo >= a.End || a.Lo >= h.End || !h.Write && !a.Write || !t.facts.Meet(a, &h.Access) {
			continue
		}
		switch {
		case !a.Write:
			return RAW, h.n
		case !h.Write:
			return WAR, h.n
		}
		return WAW, h.n
	}
	return None, 0
}

// regionOf returns the region of e that entry k of scratch was made from.
func (t *Tracker) regionOf(e *ir.Effects, k int) ir.Region {
	for i := range e.Reads {
		if _, ok := t.facts.Resolve(&e.Reads[i]); ok {
			if k == 0 {
				return e.Reads[i]
			}
			k--
		}
	}
	for i := range e.Writes {
		if _, ok := t.facts.Resolve(&e.Writes[i].Region); ok {
			if k == 0 {
				return e.Writes[i].Region
			}
			k--
		}
	}
	panic("hazard: an access of no region")
}
