package dataflow

import (
	"github.com/mlxc/mlxc/internal/hazard"
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
func Covers(g *ir.Graph, outer, inner ir.Region) bool {
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
	return atMost(g, outer.Off.Sub(lo)) && atMost(g, end.Sub(outer.Off.Add(outer.Run)))
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

func atMost(g *ir.Graph, e ir.Affine) bool {
	_, hi, ok := g.Range(e)
	return ok && hi <= 0
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
func Hull(g *ir.Graph, r ir.Region) (lo, end int64) {
	if r.Off.IsConst() && r.Run.IsConst() && len(r.Dims) == 0 {
		return r.Off.Const, r.Off.Const + r.Run.Const
	}
	a, b := r.Hull()
	lo, _, ok1 := g.Range(a)
	_, end, ok2 := g.Range(b)
	if !ok1 || !ok2 {
		return 0, g.Memories[r.Mem].Size
	}
	return lo, end
}

// contiguous reports whether r is one run that no param moves.
func contiguous(r ir.Region) bool {
	return r.Off.IsConst() && r.Run.IsConst() && len(r.Dims) == 0
}

func disjoint(g *ir.Graph, a, b ir.Region) bool {
	if a.Mem != b.Mem {
		return true
	}
	if contiguous(a) && contiguous(b) {
		return a.Off.Const+a.Run.Const <= b.Off.Const || b.Off.Const+b.Run.Const <= a.Off.Const
	}
	return hazard.Disjoint(g, a, b)
}

// hulls remembers the hulls of regions that params move: a graph has few
// expressions and many regions of each, and bounding one costs a linear program.
type hulls map[expression][2]int64

// expression is a region of at most two params a bound and two dimensions.
type expression struct {
	mem      ir.MemID
	off, run bound
	dims     [2]bound
	stride   [2]int64
}

// bound is an affine expression of at most two params.
type bound struct {
	constant int64
	terms    [2]ir.Term
}

func boundOf(a ir.Affine) (b bound, ok bool) {
	ts := a.Terms()
	if len(ts) > 2 {
		return b, false
	}
	b.constant = a.Const
	copy(b.terms[:], ts)
	return b, true
}

func expressionOf(r ir.Region) (e expression, ok bool) {
	if len(r.Dims) > 2 {
		return e, false
	}
	var ok1, ok2 bool
	e.mem = r.Mem
	e.off, ok1 = boundOf(r.Off)
	e.run, ok2 = boundOf(r.Run)
	ok = ok1 && ok2
	for i, d := range r.Dims {
		var ok3 bool
		e.dims[i], ok3 = boundOf(d.Count)
		e.stride[i] = d.Stride
		ok = ok && ok3
	}
	return e, ok
}

func (h hulls) of(g *ir.Graph, r ir.Region) (lo, end int64) {
	if contiguous(r) {
		return r.Off.Const, r.Off.Const + r.Run.Const
	}
	e, ok := expressionOf(r)
	if !ok {
		return Hull(g, r)
	}
	x, ok := h[e]
	if !ok {
		x[0], x[1] = Hull(g, r)
		h[e] = x
	}
	return x[0], x[1]
}
