package bytestate

import (
	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// Access is a region that a command touches, as bytes of a root memory. If Region is 0,
// the access is solid: it touches every byte of its hull for every value of the params.
type Access struct {
	Lo, End int64 // the hull over all values of the params
	Root    int32
	Region  int32 // a number of Facts; 0: every byte of the hull
	Write   bool
	Must    bool // of a write: it certainly happens, so the old bytes do not matter
}

// Region is a set of bytes of a root memory that is strided or that params move.
type Region struct {
	ir.Region
	Lo, End         int64 // the hull over all values of the params
	CoreLo, CoreEnd int64 // bytes that belong to the region for every value of the params
	Moves           bool  // params move the region or change its extent
	Crowd           bool  // the hull of many regions, which are not told apart any more
	period          int64 // of the offset: the greatest common divisor of its coefficients; 0 if it is constant
	next            int32 // the next region in the same bucket
	twin            int32 // the number of the same region in a later replay, once it was asked for; 0 otherwise
}

// fact is what is known of an ordered pair of regions: a set of bits.
type fact uint8

const (
	askedDisjoint fact = 1 << iota
	factDisjoint
	askedCovers
	factCovers // the first contains the second
)

// maxFacts bounds the pairs that are remembered. Beyond it all are forgotten, and
// computed again when needed.
const maxFacts = 1 << 20

// Facts numbers the regions of a graph, with one number for equal regions, and
// remembers what was computed about regions and about pairs of them. This pays because
// a graph has many regions but few different expressions, and to bound one costs a
// linear program. Not for concurrent use.
type Facts struct {
	g       *ir.Graph // if later is set, a copy with two sets of params: one for a replay, one for a later replay
	later   int       // how many params one replay has; 0 if Later is not used
	bounds  *ir.Bounds
	roots   []rootOf
	regions []Region // index 0 stands for none
	heads   map[uint64]int32
	facts   map[uint64]fact
	// near is a small cache in front of facts: one entry for each hash of a pair, which
	// is overwritten.
	near [256]pairFact
}

// rootOf says where a memory lies: off bytes into its root memory.
type rootOf struct {
	off   int64
	mem   int32
	fixed bool // no command writes it
}

// pairFact is what is known of a pair; key 0 stands for no pair.
type pairFact struct {
	key uint64
	fact
}

// NewFacts returns the facts of a graph of which nothing was asked yet.
func NewFacts(g *ir.Graph) *Facts {
	f := &Facts{g: g, bounds: ir.NewBounds(g, ir.BoundsWork), regions: make([]Region, 1), heads: map[uint64]int32{}, facts: map[uint64]fact{}}
	f.rooted()
	return f
}

// rooted resolves the aliases of all memories. It follows every chain only once,
// because a hostile file may have long ones. In nearly all graphs a memory stands
// before its aliases.
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

// Grow makes f know the memories that were added to the graph since. Each must stand
// after the memory that it is an alias of.
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

// Len returns how many numbers are in use, number 0 included.
func (f *Facts) Len() int { return len(f.regions) }

// Rooted returns r as a region of its root memory.
func (f *Facts) Rooted(r *ir.Region) ir.Region {
	out, root := *r, &f.roots[r.Mem]
	out.Mem, out.Off = ir.MemID(root.mem), r.Off.AddConst(root.off)
	return out
}

// Resolve returns r as an access. ok is false if no command can conflict with another
// there: r has no byte, or nothing writes its memory.
func (f *Facts) Resolve(r *ir.Region) (Access, bool) {
	if f.roots[r.Mem].fixed {
		return Access{}, false
	}
	return f.Place(r)
}

// Place is Resolve for memories that may be fixed: ok is false only if r has no byte.
func (f *Facts) Place(r *ir.Region) (Access, bool) {
	root := &f.roots[r.Mem]
	if !r.Off.IsConst() || !r.Run.IsConst() {
		return f.loose(root, r)
	}
	lo, run := r.Off.Const+root.off, r.Run.Const
	// A dimension that leaves no gap only makes the run longer.
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

// intern returns the number of r, whose memory begins at byte off of memory root.
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

// Meet reports whether two accesses may share a byte, for the same values of the
// params.
func (f *Facts) Meet(a, b *Access) bool {
	return a.Root == b.Root && a.Lo < b.End && b.Lo < a.End && f.meet(a.Region, b.Region, a.Lo, a.End, b.Lo, b.End)
}

// meet is Meet for regions a and b whose hulls share a byte.
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

// Within reports whether a contains every byte of b, whatever the params.
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

// Disjoint reports whether two regions certainly share no byte.
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

// Covers reports whether region a certainly contains region b.
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

// cheap reports whether a question about two regions is answered faster than it is
// looked up in the map.
func (f *Facts) cheap(x, y *Region) bool {
	return len(f.g.Constraints)+len(x.Dims)+len(y.Dims) == 0 && x.Run.IsConst() && y.Run.IsConst()
}

// ask answers a question about two regions, and remembers the answer.
func (f *Facts) ask(a, b int32, question fact) bool {
	key := uint64(a)<<32 | uint64(b)
	near := &f.near[(uint32(a)*37+uint32(b))%uint32(len(f.near))]
	if invariants.Caches && near.key == key && near.fact&question != 0 {
		return near.fact&(question<<1) != 0
	}
	x, y := &f.regions[a], &f.regions[b]
	cheap := f.cheap(x, y)
	if !invariants.Caches || near.key != key {
		*near = pairFact{key: key}
		if invariants.Caches && !cheap {
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

// crowd adds a region that stands for every byte of [lo, end).
func (f *Facts) crowd(root ir.MemID, lo, end int64) int32 {
	f.regions = append(f.regions, Region{Region: ir.ViewOf(root, lo, end-lo).Contiguous(), Lo: lo, End: end, Crowd: true})
	return int32(len(f.regions) - 1)
}

// Apart reports whether region a certainly has no byte in [lo, end), although its hull
// meets it.
func (f *Facts) Apart(a int32, lo, end int64) bool {
	x := &f.regions[a]
	// A region without dimensions, whose offsets leave no gap between its runs, fills
	// its hull when all values of the params are taken together. Then it is not apart.
	return (len(x.Dims) > 0 || end-lo < x.period) && DisjointIn(f.bounds, x.Region, ir.ViewOf(x.Mem, lo, end-lo).Contiguous())
}
