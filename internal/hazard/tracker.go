package hazard

import "github.com/mlxc/mlxc/ir"

// Tracker remembers commands one by one and tells whether another one
// conflicts with any of them. For a whole graph a [Table] is faster.
type Tracker struct {
	s       *sweep
	ids     []ir.ID
	pillar  int32
	scratch []access
}

// grow learns of memories that the graph has got since.
func (t *Tracker) grow() {
	g := t.s.t.g
	for i := len(t.s.t.roots); i < len(g.Memories); i++ {
		t.s.t.roots = append(t.s.t.roots, rootOf{0, int32(i), g.Memories[i].Kind.ReadOnly()})
		if m := &g.Memories[i]; m.Alias != ir.NoMem {
			p := t.s.t.roots[m.Alias]
			t.s.t.roots[i] = rootOf{p.off + m.AliasOff, p.mem, p.readOnly}
		}
		t.s.roots = append(t.s.roots, treeRoots{})
	}
	t.s.t.regions.g.Memories = g.Memories // it may be a copy, see twice
}

// NewTracker returns an empty tracker for regions of g. While it is in use g may
// get more memories, aliases after their parents, but no other params or
// constraints.
func NewTracker(g *ir.Graph) *Tracker {
	t := &Table{g: g, regions: newRegions(twice(g)), roots: rootsOf(g)}
	return &Tracker{s: newSweep(t), pillar: none}
}

// Reset forgets everything.
func (t *Tracker) Reset() {
	t.s.reset()
	t.ids, t.pillar = t.ids[:0], none
}

// Empty reports whether nothing was added since the last Reset.
func (t *Tracker) Empty() bool { return len(t.ids) == 0 }

// Add remembers what command id touches; nil or incomplete effects may be
// anything.
func (t *Tracker) Add(id ir.ID, e *ir.Effects) {
	t.grow()
	n := int32(len(t.ids))
	t.ids = append(t.ids, id)
	if !e.Known() {
		t.pillar = n
		return
	}
	t.scratch = t.scratch[:0]
	for i := range e.Reads {
		t.resolve(&e.Reads[i], false)
	}
	for i := range e.Writes {
		t.resolve(&e.Writes[i].Region, true)
	}
	t.s.begin()
	t.s.enter(t.scratch, n)
}

func (t *Tracker) resolve(r *ir.Region, write bool) {
	if a, ok := t.s.t.resolve(r); ok {
		a.write = write
		t.scratch = append(t.scratch, a)
	}
}

// Try adds command id, as Add does, unless it conflicts with what the tracker
// remembers: then it returns the first conflict found, and forgets nothing.
func (t *Tracker) Try(id ir.ID, e *ir.Effects) (Conflict, bool) {
	if t.Empty() || t.pillar != none || !e.Known() {
		if c, found := t.Conflict(e); found {
			return c, true
		}
		t.Add(id, e)
		return Conflict{}, false
	}
	t.grow()
	t.scratch = t.scratch[:0]
	t.s.begin()
	for i := range e.Reads {
		if c, found := t.meet(&e.Reads[i], false); found {
			return c, true
		}
	}
	for i := range e.Writes {
		if c, found := t.meet(&e.Writes[i].Region, true); found {
			return c, true
		}
	}
	t.s.enter(t.scratch, int32(len(t.ids)))
	t.ids = append(t.ids, id)
	return Conflict{}, false
}

// meet looks r up, and keeps what it found for who adds it.
func (t *Tracker) meet(r *ir.Region, write bool) (Conflict, bool) {
	a, ok := t.s.t.resolve(r)
	if !ok {
		return Conflict{}, false
	}
	a.write = write
	t.scratch = append(t.scratch, a)
	return t.judge(t.s.look(&a), r, write)
}

// Conflict returns the first conflict found between a command with the given
// effects and what the tracker remembers.
func (t *Tracker) Conflict(e *ir.Effects) (Conflict, bool) {
	switch {
	case t.Empty():
		return Conflict{}, false
	case t.pillar != none:
		return Conflict{Kind: Unknown, With: t.ids[t.pillar]}, true
	case !e.Known():
		return Conflict{Kind: Unknown, With: t.ids[0]}, true
	}
	t.grow()
	for i := range e.Reads {
		if c, ok := t.find(&e.Reads[i], false); ok {
			return c, true
		}
	}
	for i := range e.Writes {
		if c, ok := t.find(&e.Writes[i].Region, true); ok {
			return c, true
		}
	}
	return Conflict{}, false
}

func (t *Tracker) find(r *ir.Region, write bool) (Conflict, bool) {
	a, ok := t.s.t.resolve(r)
	if !ok {
		return Conflict{}, false
	}
	t.s.begin()
	return t.judge(t.s.look(&a), r, write)
}

// judge returns the conflict of an access to r with cells that it meets.
func (t *Tracker) judge(cells []int32, r *ir.Region, write bool) (Conflict, bool) {
	for _, h := range cells {
		c := &t.s.nodes[h]
		switch {
		case !write && c.w != none:
			return Conflict{Kind: RAW, With: t.ids[c.w], Bytes: *r}, true
		case write && c.r != none:
			return Conflict{Kind: WAR, With: t.ids[c.r], Bytes: *r}, true
		case write && c.w != none:
			return Conflict{Kind: WAW, With: t.ids[c.w], Bytes: *r}, true
		}
	}
	return Conflict{}, false
}
