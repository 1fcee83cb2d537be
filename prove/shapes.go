package prove

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// shapes are the regions of a graph that are not flat. Each is kept once, and what is
// proved of two of them is proved once, because layers repeat them.
type shapes struct {
	bounds *ir.Bounds
	list   []shape
	byHash map[uint64]int32 // 1 + the last shape with this hash
	proved []provedPair
}

type shape struct {
	ir.Region
	lo, end int64 // bounds of its bytes over all values of the params
	void    bool
	before  int32 // 1 + the previous shape with the same hash
	pinned  bool  // bounds and constraints determine the values of some expressions in it
	as      access
}

// provedPair is an answer for two regions. The table has one entry for each hash and
// overwrites it, so that a hostile graph cannot make it grow.
type provedPair struct {
	x, y           int32 // numbered as access.shape
	what           question
	known, decided bool // known: the entry is in use
}

// question is a question about two regions of a graph. Its answer depends only on the two, on the
// params, and on the constraints between them.
type question uint8

const (
	areApart question = iota
	areApartAlways
	areCovered // the first covers the second
)

func (q question) answer(g *ir.Bounds, x, y ir.Region) bool {
	switch q {
	case areApart:
		return regionsApart(g, x, y)
	case areApartAlways:
		return regionsApartAlways(g, x, y)
	}
	return regionCovers(g, x, y)
}

const (
	maxSameHash = 8 // shapes of one hash beyond this number are not shared
	pairTable   = 1 << 12
)

func newShapes(g *ir.Graph) shapes {
	return shapes{bounds: ir.NewBounds(g, ir.BoundsWork), byHash: map[uint64]int32{}}
}

// access returns the access to a region of a root memory.
func (s *shapes) access(r ir.Region) access {
	if len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() {
		return access{lo: r.Off.Const, end: r.Off.Const + max(r.Run.Const, 0), mem: r.Mem}
	}
	return s.shape(r)
}

// shape returns the access to a region of a root memory. If the region is not flat, it is added to
// the shapes.
func (s *shapes) shape(r ir.Region) access {
	h := r.Run.Hash(r.Off.Hash(uint64(r.Mem)))
	for i := range r.Dims {
		h = r.Dims[i].Count.Hash(mix.Word(h, uint64(r.Dims[i].Stride)))
	}
	nr, chain := s.byHash[h], 0
	for ; nr != 0; nr, chain = s.list[nr-1].before, chain+1 {
		if s.list[nr-1].Region.Equal(r) {
			break
		}
	}
	if nr == 0 {
		x := shape{Region: r, void: void(&r)}
		x.lo, x.end = hull(s.bounds, r)
		if chain < maxSameHash {
			x.before = s.byHash[h]
			s.byHash[h] = int32(len(s.list) + 1)
		}
		s.list = append(s.list, x)
		nr = int32(len(s.list))
		if p, ok := s.pin(r); ok {
			as := s.access(p) // may add to the list
			s.list[nr-1].pinned, s.list[nr-1].as = true, as
		}
	}
	x := &s.list[nr-1]
	if x.pinned {
		return x.as
	}
	return access{lo: x.lo, end: x.end, mem: r.Mem, shape: nr}
}

// pin puts numbers in the place of expressions that have only one value under the bounds
// of the params and the constraints between them. The same region may be written as
// 128*$n and as 128 if $n is always 1. ok is false if there is nothing to replace.
func (s *shapes) pin(r ir.Region) (out ir.Region, ok bool) {
	number := func(a *ir.Affine) {
		if a.IsConst() {
			return
		}
		if lo, hi, known := s.bounds.Range(*a); known && lo == hi {
			*a, ok = ir.Const(lo), true
		}
	}
	out = r
	out.Dims = slices.Clone(r.Dims)
	number(&out.Off)
	number(&out.Run)
	for i := range out.Dims {
		number(&out.Dims[i].Count)
	}
	if ok {
		out.Dims = slices.DeleteFunc(out.Dims, func(d ir.Dim) bool { return d.Count.IsConst() && d.Count.Const == 1 })
		// Rows without a gap between them are one run.
		for n := len(out.Dims); n > 0; n-- {
			d := out.Dims[n-1]
			if !out.Run.IsConst() || !d.Count.IsConst() || d.Count.Const <= 0 || d.Stride != out.Run.Const {
				break
			}
			if d.Stride > math.MaxInt64/d.Count.Const {
				break
			}
			out.Run, out.Dims = ir.Const(d.Stride*d.Count.Const), out.Dims[:n-1]
		}
	}
	return out, ok
}

func (s *shapes) of(a *access) *shape { return &s.list[a.shape-1] }

// void reports whether an access touches no byte, whatever the params.
func (s *shapes) void(a *access) bool {
	if a.flat() {
		return a.lo >= a.end
	}
	return s.of(a).void
}

// ask answers a question about two accesses, and remembers the answer if both have a
// shape.
func (m *model) ask(what question, a, b *access) bool {
	if a.flat() || b.flat() {
		return what.answer(m.bounds, m.region(a), m.region(b))
	}
	if m.proved == nil {
		m.proved = make([]provedPair, pairTable)
	}
	x := &m.proved[mix.Word(uint64(what), uint64(a.shape)<<32|uint64(b.shape))%pairTable]
	if !invariants.Caches || !x.known || x.what != what || x.x != a.shape || x.y != b.shape {
		*x = provedPair{a.shape, b.shape, what, true, what.answer(m.bounds, m.region(a), m.region(b))}
	}
	return x.decided
}
