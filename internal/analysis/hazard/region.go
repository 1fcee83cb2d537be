package hazard

import (
	"github.com/mlxc/mlxc/ir"
)

// region is a strided or param-dependent set of bytes of a root memory. Equal
// ones are one, so that they compare by number and facts about pairs are found
// once.
type region struct {
	ir.Region
	lo, end         int64 // hull over all params
	coreLo, coreEnd int64 // bytes certainly in the region, whatever the params
	params          bool
	period          int64 // of the offset: the greatest common divisor of its coefficients; 0 if it is constant
	hash            uint64
	next            int32 // of the same bucket
	twin            int32 // the same of a later replay, once asked for; 0 otherwise
	crowd           bool  // the hull of many regions, of which nothing more is known
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

// regions interns. Number 0 is no region: the access is solid, every byte of
// its hull, whatever the params.
type regions struct {
	g      *ir.Graph
	bounds *ir.Bounds
	all    []region
	heads  map[uint64]int32
	facts  map[uint64]fact
	// near holds facts by a hash of their pair, in front of the map: a place for each,
	// which forgets what was there.
	near [256]pairFact
}

// pairFact is what is known of a pair; key 0 is no pair.
type pairFact struct {
	key uint64
	fact
}

func newRegions(g *ir.Graph) regions {
	return regions{g: g, bounds: ir.NewBounds(g, ir.BoundsWork), all: make([]region, 1), heads: map[uint64]int32{}, facts: map[uint64]fact{}}
}

// mix is one step of FNV-1a on a word (Fowler, Noll, Vo), with a shift against
// its weakness in high bits.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x100000001b3
	return h ^ h>>29
}

func mixAffine(h uint64, a ir.Affine) uint64 {
	h = mix(h, uint64(a.Const))
	for _, t := range a.Terms() {
		h = mix(mix(h, uint64(t.Param)+1), uint64(t.Coeff))
	}
	return h
}

// intern returns the number of r, which is in the root memory from byte off of
// it on.
func (rs *regions) intern(root ir.MemID, off int64, r *ir.Region) int32 {
	start := r.Off.AddConst(off)
	h := mixAffine(mixAffine(mix(0xcbf29ce484222325, uint64(root)), start), r.Run)
	for _, d := range r.Dims {
		h = mixAffine(mix(h, uint64(d.Stride)), d.Count)
	}
	head := rs.heads[h]
	for i := head; i != 0; i = rs.all[i].next {
		x := &rs.all[i]
		if x.Mem == root && x.Off.Equal(start) && x.Run.Equal(r.Run) && sameDims(x.Dims, r.Dims) {
			return i
		}
	}
	x := region{Region: ir.Region{Mem: root, Off: start, Run: r.Run, Dims: r.Dims}, hash: h, next: head, params: !r.IsConst()}
	x.period = period(x.Off)
	lo, end := x.Hull()
	first, lastLo, ok1 := rs.bounds.Range(lo)
	firstEnd, last, ok2 := rs.bounds.Range(end)
	if ok1 && ok2 {
		x.lo, x.end = first, last
	} else {
		x.lo, x.end = 0, rs.g.Memories[root].Size
	}
	if len(r.Dims) == 0 && ok1 && ok2 {
		x.coreLo, x.coreEnd = lastLo, firstEnd
	}
	rs.all = append(rs.all, x)
	n := int32(len(rs.all) - 1)
	rs.heads[h] = n
	return n
}

func sameDims(a, b []ir.Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Stride != b[i].Stride || !a[i].Count.Equal(b[i].Count) {
			return false
		}
	}
	return true
}

// disjoint reports whether two regions share no byte.
func (rs *regions) disjoint(a, b int32) bool {
	if a == b {
		return false
	}
	x, y := &rs.all[a], &rs.all[b]
	if x.Mem != y.Mem || x.end <= y.lo || y.end <= x.lo {
		return true
	}
	return rs.ask(a, b, askedDisjoint)
}

// covers reports whether region a contains region b.
func (rs *regions) covers(a, b int32) bool {
	if a == b {
		return true
	}
	x, y := &rs.all[a], &rs.all[b]
	if x.crowd || x.Mem != y.Mem || x.lo > y.lo || x.end < y.end {
		return false
	}
	return rs.ask(a, b, askedCovers)
}

// cheap reports whether finding out about two regions costs less than a look into the
// map.
func (rs *regions) cheap(x, y *region) bool {
	return len(rs.g.Constraints)+len(x.Dims)+len(y.Dims) == 0 && x.Run.IsConst() && y.Run.IsConst()
}

// ask returns the fact behind the given question, which is found out once, or rarely.
func (rs *regions) ask(a, b int32, question fact) bool {
	key := uint64(a)<<32 | uint64(b)
	near := &rs.near[(uint32(a)*37+uint32(b))%uint32(len(rs.near))]
	if near.key == key && near.fact&question != 0 {
		return near.fact&(question<<1) != 0
	}
	x, y := &rs.all[a], &rs.all[b]
	cheap := rs.cheap(x, y)
	if near.key != key {
		*near = pairFact{key: key}
		if !cheap {
			near.fact = rs.facts[key]
		}
	}
	if near.fact&question == 0 {
		found := false
		switch question {
		case askedDisjoint:
			found = DisjointIn(rs.bounds, x.Region, y.Region)
		case askedCovers:
			found = CoversIn(rs.bounds, x.Region, y.Region)
		}
		if near.fact |= question; found {
			near.fact |= question << 1
		}
		if !cheap {
			if len(rs.facts) >= maxFacts {
				clear(rs.facts)
			}
			rs.facts[key] = near.fact
		}
	}
	return near.fact&(question<<1) != 0
}

// crowd returns a region of its own for every byte of [lo, end).
func (rs *regions) crowd(root ir.MemID, lo, end int64) int32 {
	rs.all = append(rs.all, region{Region: ir.ViewOf(root, lo, end-lo).Contiguous(), lo: lo, end: end, crowd: true})
	return int32(len(rs.all) - 1)
}

// apart reports whether region a has no byte of [lo, end), given that its hull
// has one.
func (rs *regions) apart(a int32, lo, end int64) bool {
	x := &rs.all[a]
	// Without dimensions and gaps between offsets the hull is the union over all
	// params: it decides.
	return (len(x.Dims) > 0 || end-lo < x.period) && DisjointIn(rs.bounds, x.Region, ir.ViewOf(x.Mem, lo, end-lo).Contiguous())
}
