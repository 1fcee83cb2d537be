package prove

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// All regions here are in root memories (see model.rooted).

// apart proves that two accesses share no byte, whatever the params.
func (m *model) apart(a, b *access) bool {
	if m.outOfBounds(a, b) {
		return true
	}
	if a.flat() && b.flat() {
		return false
	}
	return m.ask(areApart, a, b)
}

// apartAlways is apart where the two belong to different replays, whose params
// have nothing to do with one another.
func (m *model) apartAlways(a, b *access) bool {
	return m.outOfBounds(a, b) || !(a.flat() && b.flat()) && m.ask(areApartAlways, a, b)
}

func regionsApart(g *ir.Graph, x, y ir.Region) bool {
	xlo, xend := x.Hull()
	ylo, yend := y.Hull()
	if atMost(g, xend.Sub(ylo), 0) || atMost(g, yend.Sub(xlo), 0) {
		return true
	}
	return columns(g, x, y) || columns(g, y, x) || gaps(x, y)
}

func regionsApartAlways(g *ir.Graph, x, y ir.Region) bool {
	// columns bounds each side by itself.
	return columns(g, x, y) || columns(g, y, x) || x.Off.IsConst() && y.Off.IsConst() && gaps(x, y)
}

// outOfBounds proves two accesses apart by their bounds.
func (m *model) outOfBounds(a, b *access) bool {
	return a.mem != b.mem || a.end <= b.lo || b.end <= a.lo || m.void(a) || m.void(b)
}

// gaps proves two regions apart run by run, where nothing but their common
// beginning depends on params.
func gaps(a, b ir.Region) bool {
	delta := b.Off.Sub(a.Off)
	if !delta.IsConst() {
		return false
	}
	a.Off, b.Off = ir.Const(0), delta
	if !a.IsConst() || !b.IsConst() || runs(&a)+runs(&b) > maxSegments {
		return false
	}
	type run struct{ lo, end int64 }
	list := func(r ir.Region) (out []run) {
		r.Runs(nil, func(lo, end int64) bool {
			out = append(out, run{lo, end})
			return true
		})
		slices.SortFunc(out, func(x, y run) int { return cmp.Compare(x.lo, y.lo) })
		return out
	}
	x, y := list(a), list(b)
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i].end <= y[j].lo:
			i++
		case y[j].end <= x[i].lo:
			j++
		default:
			return false
		}
	}
	return true
}

// columns proves two regions apart that lie in different columns of one matrix:
// every stride of both is a multiple of S or stays within one column, and the
// columns do not meet.
func columns(g *ir.Graph, a, b ir.Region) bool {
	for _, d := range a.Dims {
		s := d.Stride
		if s <= 0 {
			continue
		}
		// First column and width of each, modulo S.
		fa, wa, ok1 := column(g, a, s)
		fb, wb, ok2 := column(g, b, s)
		if !ok1 || !ok2 {
			continue
		}
		if fa.hi+wa <= fb.lo && fb.hi+wb <= s || fb.hi+wb <= fa.lo && fa.hi+wa <= s {
			return true
		}
	}
	return false
}

type bounds struct{ lo, hi int64 }

// column returns where r begins modulo s, as a range within [0, s), and how
// many bytes it reaches from there at most.
func column(g *ir.Graph, r ir.Region, s int64) (first bounds, width int64, ok bool) {
	w := r.Run
	for _, d := range r.Dims {
		if d.Stride%s != 0 {
			w = w.Add(d.Count.AddConst(-1).Scale(d.Stride))
		}
	}
	off := ir.Const(r.Off.Const)
	for _, t := range r.Off.Terms() {
		if t.Coeff%s != 0 {
			off = off.Add(ir.Linear(0, t))
		}
	}
	lo, hi, ok1 := g.Range(off)
	_, width, ok2 := g.Range(w)
	if !ok1 || !ok2 || lo < 0 {
		return first, 0, false
	}
	base := lo / s * s
	return bounds{lo - base, hi - base}, width, hi-base < s
}

func void(r *ir.Region) bool {
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

func atMost(g *ir.Graph, a ir.Affine, limit int64) bool {
	_, hi, ok := g.Range(a)
	return ok && hi <= limit
}

// covers proves that outer contains every byte of inner, whatever the params.
func (m *model) covers(outer, inner *access) bool {
	if outer.mem != inner.mem {
		return false
	}
	if outer.flat() && inner.lo >= outer.lo && inner.end <= outer.end {
		return true // bounds of inner hold for all values
	}
	if outer.flat() && inner.flat() {
		return false
	}
	if outer.shape == inner.shape {
		return true
	}
	return m.ask(areCovered, outer, inner)
}

func regionCovers(g *ir.Graph, outer, inner ir.Region) bool {
	if outer.Equal(inner) {
		return true
	}
	if len(outer.Dims) > 0 {
		return false
	}
	lo, end := inner.Hull()
	return atMost(g, outer.Off.Sub(lo), 0) && atMost(g, end.Sub(outer.Off.Add(outer.Run)), 0)
}

// sameShape reports whether two accesses, of graphs with the same params, are
// alike but for where they begin.
func sameShape(m *model, x *access, n *model, y *access) bool {
	if x.flat() && y.flat() {
		return x.end-x.lo == y.end-y.lo
	}
	r, s := m.region(x), n.region(y)
	return sameExtents(&r, &s)
}

// sameExtents is sameShape of regions.
func sameExtents(x, y *ir.Region) bool {
	if !x.Run.Equal(y.Run) || len(x.Dims) != len(y.Dims) {
		return false
	}
	for i, d := range x.Dims {
		if d.Stride != y.Dims[i].Stride || !d.Count.Equal(y.Dims[i].Count) {
			return false
		}
	}
	return true
}

// hull returns bounds of r's bytes over all values of the params.
func hull(g *ir.Graph, r ir.Region) (lo, end int64) {
	a, b := r.Hull()
	first, _, ok1 := g.Range(a)
	_, last, ok2 := g.Range(b)
	if !ok1 || !ok2 {
		return 0, g.Memories[r.Mem].Size
	}
	return first, last
}
