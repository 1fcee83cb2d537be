package dataflow

import (
	"math/bits"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/ir"
)

// Rooted returns the same bytes as a region of the root memory.
func Rooted(g *ir.Graph, r ir.Region) ir.Region {
	root, off := g.Root(r.Mem)
	r.Mem, r.Off = root, r.Off.AddConst(off)
	return r
}

// Covers proves that outer has every byte of inner, whatever the params. Both
// are rooted (see [Rooted]). A false result means that it may not.
func Covers(b *ir.Bounds, outer, inner ir.Region) bool {
	if outer.Mem != inner.Mem {
		return false
	}
	if outer.Equal(inner) || Empty(&inner) {
		return true
	}
	lo, end := inner.Off, inner.Off.Add(inner.Run)
	if len(outer.Dims) == 0 {
		lo, end = inner.Hull()
	} else if !sameDims(outer, inner) {
		return false
	}
	return b.DifferenceAtMost(outer.Off, lo, 0) && b.DifferenceAtMost(end, outer.Off.Add(outer.Run), 0)
}

// sameDims: the runs of two regions repeat in the same way.
func sameDims(a, b ir.Region) bool {
	if len(a.Dims) != len(b.Dims) {
		return false
	}
	for i, d := range a.Dims {
		if d.Stride != b.Dims[i].Stride || !d.Count.Equal(b.Dims[i].Count) {
			return false
		}
	}
	return true
}

// Empty reports whether r has no byte, whatever the params.
func Empty(r *ir.Region) bool {
	if r.Run.IsConst() && r.Run.Const <= 0 {
		return true
	}
	for _, d := range r.Dims {
		if d.Count.IsConst() && d.Count.Const <= 0 {
			return true
		}
	}
	return false
}

// Hull returns bounds [lo, end) of the bytes of a rooted region over all values
// of the params.
func Hull(bounds *ir.Bounds, r ir.Region) (lo, end int64) {
	if r.Off.IsConst() && r.Run.IsConst() && len(r.Dims) == 0 {
		return r.Off.Const, r.Off.Const + r.Run.Const
	}
	a, b := r.Hull()
	lo, _, ok1 := bounds.Range(a)
	_, end, ok2 := bounds.Range(b)
	if !ok1 || !ok2 {
		return 0, bounds.Graph().Memories[r.Mem].Size
	}
	return lo, end
}

// contiguous reports whether r is one run that no param moves.
func contiguous(r *ir.Region) bool {
	return r.Off.IsConst() && r.Run.IsConst() && len(r.Dims) == 0
}

func disjoint(bounds *ir.Bounds, a, b ir.Region) bool {
	if a.Mem != b.Mem {
		return true
	}
	if contiguous(&a) && contiguous(&b) {
		return a.Off.Const+a.Run.Const <= b.Off.Const || b.Off.Const+b.Run.Const <= a.Off.Const
	}
	return hazard.DisjointIn(bounds, a, b)
}

// facts remembers what was found about regions that params move, or that repeat: a
// graph has few expressions and many regions of each, and bounding one costs a
// linear program. A fact depends on the regions' expressions and on the params and
// the sizes of memories, which stay. A table has one place for each hash and forgets
// what was there. Not for concurrent use.
type facts struct {
	g      *ir.Graph
	bounds *ir.Bounds
	hulls  []hull // nil until somebody asks
	pairs  []pair
	shift  uint
}

// hull is what [Hull] says of a region.
type hull struct {
	region  ir.Region
	lo, end int64
	known   bool
}

// pair is what is known of two regions.
type pair struct {
	a, b             ir.Region
	disjoint, covers answer
}

type answer uint8

const (
	unasked answer = iota
	no
	yes
)

func answerOf(x bool) answer {
	if x {
		return yes
	}
	return no
}

func newFacts(g *ir.Graph) *facts { return &facts{g: g, bounds: ir.NewBounds(g, ir.BoundsWork)} }

// forget is for memories whose numbers changed.
func (f *facts) forget() { f.hulls, f.pairs = nil, nil }

func (f *facts) room() {
	log := bits.Len(uint(min(len(f.g.Nodes), 400)))
	f.hulls, f.pairs, f.shift = make([]hull, 1<<log), make([]pair, 1<<log), uint(64-log)
}

func hash(h uint64, r *ir.Region) uint64 {
	h = r.Run.Hash(r.Off.Hash(h ^ uint64(r.Mem)))
	for i := range r.Dims {
		h = r.Dims[i].Count.Hash(mix.Word(h, uint64(r.Dims[i].Stride)))
	}
	return h
}

func (f *facts) hull(r *ir.Region) (lo, end int64) {
	if contiguous(r) {
		return r.Off.Const, r.Off.Const + r.Run.Const
	}
	if f.hulls == nil {
		f.room()
	}
	x := &f.hulls[hash(0, r)>>f.shift]
	if !x.known || !x.region.Equal(*r) {
		*x = hull{region: *r, known: true}
		x.lo, x.end = Hull(f.bounds, *r)
	}
	return x.lo, x.end
}

func (f *facts) pair(a, b *ir.Region) *pair {
	if f.hulls == nil {
		f.room()
	}
	x := &f.pairs[hash(hash(0, a), b)>>f.shift]
	if !x.a.Equal(*a) || !x.b.Equal(*b) {
		*x = pair{a: *a, b: *b}
	}
	return x
}

func (f *facts) disjoint(a, b *ir.Region) bool {
	if a.Mem != b.Mem || contiguous(a) && contiguous(b) {
		return disjoint(f.bounds, *a, *b)
	}
	p := f.pair(a, b)
	if p.disjoint == unasked {
		p.disjoint = answerOf(disjoint(f.bounds, *a, *b))
	}
	return p.disjoint == yes
}

func (f *facts) covers(outer, inner *ir.Region) bool {
	if outer.Mem != inner.Mem {
		return false
	}
	if contiguous(outer) && contiguous(inner) {
		return inner.Run.Const <= 0 || outer.Off.Const <= inner.Off.Const && inner.Off.Const+inner.Run.Const <= outer.Off.Const+outer.Run.Const
	}
	p := f.pair(outer, inner)
	if p.covers == unasked {
		p.covers = answerOf(Covers(f.bounds, *outer, *inner))
	}
	return p.covers == yes
}
