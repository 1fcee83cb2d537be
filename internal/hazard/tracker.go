package hazard

import (
	"github.com/mlxc/mlxc/internal/interval"
	"github.com/mlxc/mlxc/ir"
)

// Kind is the sort of a hazard, from the later access to the earlier one.
type Kind uint8

// The kinds.
const (
	None    Kind = iota
	RAW          // reads what was written
	WAR          // writes what was read
	WAW          // writes what was written
	Unknown      // one of the two may touch anything
)

func (k Kind) String() string { return [...]string{"none", "RAW", "WAR", "WAW", "unknown"}[k] }

// Conflict is why a command must wait.
type Conflict struct {
	Kind  Kind
	With  ir.ID     // the earlier command
	Bytes ir.Region // what the later one touches; meaningless for Unknown
}

// entry is one access.
type entry struct {
	id     ir.ID
	write  bool
	region ir.Region
}

// Tracker remembers accesses, by hull, in one interval tree for each root
// memory that was touched.
type Tracker struct {
	g       *ir.Graph
	trees   map[ir.MemID]*interval.Tree[entry]
	order   []ir.MemID // of trees, so that Reset costs what was used
	any     []ir.ID    // the first command, for an unknown one to conflict with; empty at first
	pillar  ir.ID
	unknown bool
}

// NewTracker returns an empty tracker for regions of g.
func NewTracker(g *ir.Graph) *Tracker {
	return &Tracker{g: g, trees: map[ir.MemID]*interval.Tree[entry]{}}
}

// Reset forgets everything.
func (t *Tracker) Reset() {
	for _, m := range t.order {
		t.trees[m].Reset()
	}
	t.order, t.any, t.unknown = t.order[:0], t.any[:0], false
}

// Empty reports whether nothing was added since the last Reset.
func (t *Tracker) Empty() bool { return len(t.any) == 0 }

// Add remembers what command id touches; nil or incomplete effects may be
// anything.
func (t *Tracker) Add(id ir.ID, e *ir.Effects) {
	if len(t.any) == 0 {
		t.any = append(t.any, id)
	}
	if !e.Known() {
		t.pillar, t.unknown = id, true
		return
	}
	for i := range e.Reads {
		t.insert(id, e.Reads[i], false)
	}
	for i := range e.Writes {
		t.insert(id, e.Writes[i].Region, true)
	}
}

func (t *Tracker) insert(id ir.ID, r ir.Region, write bool) {
	root, lo, end := t.hull(r)
	if t.g.Memories[root].Kind.ReadOnly() || lo >= end {
		return // nobody writes it
	}
	tr := t.trees[root]
	if tr == nil {
		tr = &interval.Tree[entry]{}
		t.trees[root] = tr
	}
	if tr.Len() == 0 {
		t.order = append(t.order, root)
	}
	tr.Insert(lo, end, entry{id, write, r})
}

// hull returns the bytes of the root memory that r can reach.
func (t *Tracker) hull(r ir.Region) (ir.MemID, int64, int64) {
	root, off := t.g.Root(r.Mem)
	lo, end := r.Hull()
	first, _, ok1 := t.g.Range(lo)
	_, last, ok2 := t.g.Range(end)
	if !ok1 || !ok2 {
		first, last = 0, t.g.Memories[root].Size-off
	}
	return root, first + off, last + off
}

// Conflict returns the first conflict found between a command with the given
// effects and what the tracker remembers.
func (t *Tracker) Conflict(e *ir.Effects) (Conflict, bool) {
	if t.Empty() {
		return Conflict{}, false
	}
	if t.unknown {
		return Conflict{Kind: Unknown, With: t.pillar}, true
	}
	if !e.Known() {
		return Conflict{Kind: Unknown, With: t.any[0]}, true
	}
	for i := range e.Reads {
		if c, ok := t.find(e.Reads[i], false); ok {
			return c, true
		}
	}
	for i := range e.Writes {
		if c, ok := t.find(e.Writes[i].Region, true); ok {
			return c, true
		}
	}
	return Conflict{}, false
}

func (t *Tracker) find(r ir.Region, write bool) (c Conflict, found bool) {
	root, lo, end := t.hull(r)
	tr := t.trees[root]
	if tr == nil {
		return c, false
	}
	tr.Overlapping(lo, end, func(x entry) bool {
		if !write && !x.write || Disjoint(t.g, r, x.region) {
			return true
		}
		kind := RAW
		if write {
			kind = WAR
			if x.write {
				kind = WAW
			}
		}
		c, found = Conflict{Kind: kind, With: x.id, Bytes: r}, true
		return false
	})
	return c, found
}
