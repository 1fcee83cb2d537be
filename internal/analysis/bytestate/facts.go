package bytestate

import (
	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/ir"
)

// Access is a region that a command touches, in a root memory. Number 0 of
// [Facts] is no region: such an access is solid, every byte of its hull, whatever
// the params.
type Access struct {
	Lo, End int64 // hull over all params, in the root memory
	Root    int32
	Region  int32 // a number of Facts; 0: every byte of the hull
	Write   bool
	Must    bool // of a write: the old bytes do not matter
}

// Region is a strided or param-dependent set of bytes of a root memory.
type Region struct {
	ir.Region
	Lo, End         int64 // hull over all params
	CoreLo, CoreEnd int64 // bytes certainly in the region, whatever the params
	Moves           bool  // params move it or change its extent
	Crowd           bool  // the hull of many regions, of which nothing more is known
	period          int64 // of the offset: the greatest common divisor of its coefficients; 0 if it is constant
	next            int32 // of the same bucket
	twin            int32 // the same of a later replay, once asked for; 0 otherwise
}

// fact is what is known of an ordered pair of regions.
type fact uint8

const (
	askedDisjoint fact = 1 << iota
	factDisjoint
	askedCovers
	factCovers // the first contains the second
)

// maxFacts bounds what is remembered of pairs, in entries; the rest is found
// out again.
const maxFacts = 1 << 20

// Facts numbers the regions of a graph, equal ones alike, and remembers what was
// found out about single ones and about pairs: a graph has few expressions and many
// regions of each, and bounding one costs a linear program. Not for concurrent use.
type Facts struct {
	g       *ir.Graph // has the params of a later replay, too, if later is set
	later   int       // how many params a replay has; 0: nobody asks for a later one
	bounds  *ir.Bounds
	roots   []rootOf
	regions []Region // index 0 is none
	heads   map[uint64]int32
	facts   map[uint64]fact
	// near holds facts by a hash of their pair, in front of the map: a place for each,
	// which forgets what was there.
	near [256]pairFact
}

// rootOf is the root of a memory and where the memory begins there.
type rootOf struct {
	off   int64
	mem   int32
	fixed bool // nothing writes it
}

// pairFact is what is known of a pair; key 0 is no pair.
type pairFact struct {
	key uint64
	fact
}

// NewFacts returns the facts of the regions of g, none yet.
func NewFacts(g *ir.Graph) *Facts {
	f := &Facts{g: g, bounds: ir.NewBounds(g, ir.BoundsWork), regions: make([]Region, 1), heads: map[uint64]int32{}, facts: map[uint64]fact{}}
	f.rooted()
	return f
}

// rooted follows every chain of aliases once: a hostile file has long ones.
// Parents stand before their aliases in nearly all graphs.
func (f *Facts) rooted() {
	g := f.g
	fixed := g.Fixed()
	f.roots = make([]rootOf, len(g.Memories))
	for i := range g.Memories {
		f.roots[i] = rootOf{0, int32(i), fixed[i]}
		if p := g.Memories[i].Alias; p != ir.NoMem {
			if int(p) < i {
				f.roots[i] = rootOf{f.roots[p].off + g.Memories[i].AliasOff, f.roots[p].mem, f.roots[p].fixed}
			} else {
				m, off := g.Root(ir.MemID(i))
				f.roots[i] = rootOf{off, int32(m), fixed[m]}
			}
		}
	}
}

// Grow learns of memories that the graph has got since, aliases after their
// parents.
func (f *Facts) Grow(g *ir.Graph) {
	f.g.Memories = g.Memories // f.g may be a copy
	for i := len(f.roots); i < len(g.Memories); i++ {
		m := &g.Memories[i]
		f.roots = append(f.roots, rootOf{0, int32(i), m.Kind.ReadOnly()})
		if m.Alias != ir.NoMem {
			p := f.roots[m.Alias]
			f.roots[i] = rootOf{p.off + m.AliasOff, p.mem, p.fixed}
		}
	}
}

// Bounds returns the bounds of expressions over the params.
func (f *Facts) Bounds() *ir.Bounds { return f.bounds }

// Fixed reports whether no command writes memory m.
func (f *Facts) Fixed(m ir.MemID) bool { return f.roots[m].fixed }

// At returns region n, which must not be changed.
func (f *Facts) At(n int32) *Region { return &f.regions[n] }

// Len returns how many numbers there are, number 0 among them.
func (f *Facts) Len() int { return len(f.regions) }

// Rooted returns r as a region of its root memory.
func (f *Facts) Rooted(r *ir.Region) ir.Region {
	out, root := *r, &f.roots[r.Mem]
	out.Mem, out.Off = ir.MemID(root.mem), r.Off.AddConst(root.off)
	return out
}

// Resolve returns where r lies; false where no command can meet another there: r
// has no byte, or nothing writes its memory.
func (f *Facts) Resolve(r *ir.Region) (Access, bool) {
	if f.roots[r.Mem].fixed {
		return Access{}, false
	}
	return f.Place(r)
}

// Place is Resolve of memory that may be fixed: false if r has no byte.
func (f *Facts) Place(r *ir.Region) (Access, bool) {
	root := &f.roots[r.Mem]
	if !r.Off.IsConst() || !r.Run.IsConst() {
		return f.loose(root, r)
	}
	lo, run := r.Off.Const+root.off, r.Run.Const
	// Dimensions that leave no hole make a longer run.
	for i := len(r.Dims) - 1; i >= 0; i-- {
		d := &r.Dims[i]
		if !d.Count.IsConst() || d.Count.Const > 1 && d.Stride > run {
			return f.loose(root, r)
		}
		if d.Count.Const <= 0 {
			return Access{}, false
		}
		run += (d.Count.Const - 1) * d.Stride
	}
	return Access{Lo: lo, End: lo + run, Root: root.mem}, run > 0
}

func (f *Facts) loose(root *rootOf, r *ir.Region) (Access, bool) {
	if Empty(r) {
		return Access{}, false
	}
	n := f.intern(ir.MemID(root.mem), root.off, r)
	x := &f.regions[n]
	return Access{Lo: x.Lo, End: x.End, Root: root.mem, Region: n}, x.Lo < x.End
}

// intern returns the number of r, which is in the root memory from byte off of
// it on.
func (f *Facts) intern(root ir.MemID, off int64, r *ir.Region) int32 {
	start := r.Off.AddConst(off)
	h := r.Run.Hash(start.Hash(uint64(root)))
	for i := range r.Dims {
		h = r.Dims[i].Count.Hash(mix.Word(h, uint64(r.Dims[i].Stride)))
	}
	head := f.heads[h]
	for i := head; i != 0; i = f.regions[i].next {
		x := &f.regions[i]
		if x.Mem == root && x.Off.Equal(start) && x.Run.Equal(r.Run) && sameDims(x.Dims, r.Dims) {
			return i
		}
	}
	x := Region{Region: ir.Region{Mem: root, Off: start, Run: r.Run, Dims: r.Dims}, next: head, Moves: !r.IsConst()}
	x.period = period(x.Off)
	lo, end := x.Hull()
	first, lastLo, ok1 := f.bounds.Range(lo)
	firstEnd, last, ok2 := f.bounds.Range(end)
	if ok1 && ok2 {
		x.Lo, x.End = first, last
	} else {
		x.Lo, x.End = 0, f.g.Memories[root].Size
	}
	if len(r.Dims) == 0 && ok1 && ok2 {
		x.CoreLo, x.CoreEnd = lastLo, firstEnd
	}
	f.regions = append(f.regions, x)
	n := int32(len(f.regions) - 1)
	f.heads[h] = n
	return n
}

// Meet reports whether two accesses may share a byte, under the same params.
func (f *Facts) Meet(a, b *Access) bool {
	return a.Root == b.Root && a.Lo < b.End && b.Lo < a.End && f.meet(a.Region, b.Region, a.Lo, a.End, b.Lo, b.End)
}

// meet is Meet of regions a and b whose hulls share a byte.
func (f *Facts) meet(a, b int32, alo, aend, blo, bend int64) bool {
	switch {
	case a == 0 && b == 0:
		return true
	case a == 0:
		return !f.Apart(b, alo, aend)
	case b == 0:
		return !f.Apart(a, blo, bend)
	}
	return !f.Disjoint(a, b)
}

// Within reports whether a has every byte of b, whatever the params.
func (f *Facts) Within(a, b *Access) bool {
	return a.Root == b.Root && f.contains(a.Region, b.Region, a.Lo, a.End, b.Lo, b.End)
}

func (f *Facts) contains(a, b int32, alo, aend, blo, bend int64) bool {
	switch {
	case a == 0:
		return alo <= blo && bend <= aend
	case b == 0:
		x := &f.regions[a]
		return x.CoreLo <= blo && bend <= x.CoreEnd
	}
	return f.Covers(a, b)
}

// Disjoint reports whether two regions share no byte.
func (f *Facts) Disjoint(a, b int32) bool {
	if a == b {
		return false
	}
	x, y := &f.regions[a], &f.regions[b]
	if x.Mem != y.Mem || x.End <= y.Lo || y.End <= x.Lo {
		return true
	}
	return f.ask(a, b, askedDisjoint)
}

// Covers reports whether region a contains region b.
func (f *Facts) Covers(a, b int32) bool {
	if a == b {
		return true
	}
	x, y := &f.regions[a], &f.regions[b]
	if x.Crowd || x.Mem != y.Mem || x.Lo > y.Lo || x.End < y.End {
		return false
	}
	return f.ask(a, b, askedCovers)
}

// cheap reports whether finding out about two regions costs less than a look into the
// map.
func (f *Facts) cheap(x, y *Region) bool {
	return len(f.g.Constraints)+len(x.Dims)+len(y.Dims) == 0 && x.Run.IsConst() && y.Run.IsConst()
}

// ask returns the fact behind the given question, which is found out once, or rarely.
func (f *Facts) ask(a, b int32, question fact) bool {
	key := uint64(a)<<32 | uint64(b)
	near := &f.near[(uint32(a)*37+uint32(b))%uint32(len(f.near))]
	if near.key == key && near.fact&question != 0 {
		return near.fact&(question<<1) != 0
	}
	x, y := &f.regions[a], &f.regions[b]
	cheap := f.cheap(x, y)
	if near.key != key {
		*near = pairFact{key: key}
		if !cheap {
			near.fact = f.facts[key]
		}
	}
	if near.fact&question == 0 {
		found := false
		switch question {
		case askedDisjoint:
			found = DisjointIn(f.bounds, x.Region, y.Region)
		case askedCovers:
			found = CoversIn(f.bounds, x.Region, y.Region)
		}
		if near.fact |= question; found {
			near.fact |= question << 1
		}
		if !cheap {
			if len(f.facts) >= maxFacts {
				clear(f.facts)
			}
			f.facts[key] = near.fact
		}
	}
	return near.fact&(question<<1) != 0
}

// crowd returns a region of its own for every byte of [lo, end).
func (f *Facts) crowd(root ir.MemID, lo, end int64) int32 {
	f.regions = append(f.regions, Region{Region: ir.ViewOf(root, lo, end-lo).Contiguous(), Lo: lo, End: end, Crowd: true})
	return int32(len(f.regions) - 1)
}

// Apart reports whether region a has no byte of [lo, end), given that its hull
// has one.
func (f *Facts) Apart(a int32, lo, end int64) bool {
	x := &f.regions[a]
	// Without dimensions and gaps between offsets the hull is the union over all
	// params: it decides.
	return (len(x.Dims) > 0 || end-lo < x.period) && DisjointIn(f.bounds, x.Region, ir.ViewOf(x.Mem, lo, end-lo).Contiguous())
}
