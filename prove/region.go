package prove

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// All regions here are in root memories (see model.rooted).

// apart proves that two accesses of one replay share no byte, whatever the params.
func (m *model) apart(a, b *access) bool {
	if m.outOfBounds(a, b) {
		return true
	}
	if a.flat() && b.flat() {
		return false
	}
	return m.ask(areApart, a, b)
}

// apartAlways is apart for accesses of different replays, whose params are independent
// of one another.
func (m *model) apartAlways(a, b *access) bool {
	return m.outOfBounds(a, b) || !(a.flat() && b.flat()) && m.ask(areApartAlways, a, b)
}

func regionsApart(g *ir.Bounds, x, y ir.Region) bool {
	xlo, xend := x.Hull()
	ylo, yend := y.Hull()
	if g.DifferenceAtMost(xend, ylo, 0) || g.DifferenceAtMost(yend, xlo, 0) {
		return true
	}
	return interleaved(g, x, y, distance) || gaps(x, y)
}

func regionsApartAlways(g *ir.Bounds, x, y ir.Region) bool {
	// Each side has bounds of its own, because the params of the two are independent.
	return interleaved(g, x, y, distanceAlways) || x.Off.IsConst() && y.Off.IsConst() && gaps(x, y)
}

// outOfBounds proves that two accesses share no byte because the bounds of their bytes do not
// overlap.
func (m *model) outOfBounds(a, b *access) bool {
	return a.mem != b.mem || a.end <= b.lo || b.end <= a.lo || m.void(a) || m.void(b)
}

// gaps proves run by run that two regions share no byte. Only the distance between
// their beginnings may depend on params.
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

// interleaved proves that two regions share no byte because they take turns. For some
// period s, every stride of a region is a multiple of s or stays within the bytes that
// the region occupies in each period, and these bytes of the two regions do not meet.
// between bounds how far, modulo s, the second region begins after the first.
func interleaved(g *ir.Bounds, a, b ir.Region, between func(g *ir.Bounds, a, b ir.Affine, s int64) (bounds, bool)) bool {
	for s := range periods(a, b) {
		wa, ok1 := width(g, a, s)
		wb, ok2 := width(g, b, s)
		if !ok1 || !ok2 || wa > s || wb > s {
			continue
		}
		d, ok := between(g, a.Off, b.Off, s)
		// b begins after a has ended, and ends before a begins again.
		if ok && d.lo >= wa && d.hi <= s-wb {
			return true
		}
	}
	return false
}

// periods yields the periods to try: the strides of the two regions, and the steps by
// which params move them, against each other and each by itself.
func periods(a, b ir.Region) func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for _, dims := range [2][]ir.Dim{a.Dims, b.Dims} {
			for _, d := range dims {
				if d.Stride > 0 && !yield(d.Stride) {
					return
				}
			}
		}
		for _, list := range [2][]ir.Term{b.Off.Sub(a.Off).Terms(), slices.Concat(a.Off.Terms(), b.Off.Terms())} {
			s := int64(0)
			for _, t := range list {
				s = gcd(s, t.Coeff)
			}
			if s > 0 && !yield(s) {
				return
			}
		}
	}
}

type bounds struct{ lo, hi int64 }

// width bounds how many bytes, from the first on, r spans within one period of s bytes.
func width(g *ir.Bounds, r ir.Region, s int64) (int64, bool) {
	w := r.Run
	for _, d := range r.Dims {
		if d.Stride%s != 0 {
			w = w.Add(d.Count.AddConst(-1).Scale(d.Stride))
		}
	}
	_, hi, ok := g.Range(w)
	return hi, ok
}

// distance bounds b − a modulo s, as a range within [0, s).
func distance(g *ir.Bounds, a, b ir.Affine, s int64) (bounds, bool) {
	lo, hi, ok := g.Range(rest(b.Sub(a), s))
	return modulo(lo, hi, s, ok)
}

// distanceAlways is distance for regions whose params are independent of one another.
func distanceAlways(g *ir.Bounds, a, b ir.Affine, s int64) (bounds, bool) {
	alo, ahi, ok1 := g.Range(rest(a, s))
	blo, bhi, ok2 := g.Range(rest(b, s))
	return modulo(blo-ahi, bhi-alo, s, ok1 && ok2)
}

// rest returns a without the params that move it by multiples of s only.
func rest(a ir.Affine, s int64) ir.Affine {
	out := ir.Const(a.Const)
	for _, t := range a.Terms() {
		if t.Coeff%s != 0 {
			out = out.Add(ir.Linear(0, t))
		}
	}
	return out
}

// modulo maps [lo, hi] into [0, s). It fails if a multiple of s lies within.
func modulo(lo, hi, s int64, ok bool) (bounds, bool) {
	base := lo / s * s
	if base > lo {
		base -= s
	}
	return bounds{lo - base, hi - base}, ok && hi-base < s
}

// mostMeetings bounds how often a proof searches for values of the params for which two accesses
// share a byte, after it failed to prove them apart. One such pair is enough to refuse the proof.
const mostMeetings = 64

// meet reports whether it found values of the params for which two accesses share a byte. If always
// is set, the accesses belong to different replays, and each has params of its own.
func (m *model) meet(a, b *access, always bool) (found bool) {
	if a.flat() && b.flat() {
		return true
	}
	if m.meetings++; m.meetings > mostMeetings {
		return false
	}
	x, y := m.region(a), m.region(b)
	if !always {
		valuations(m.g, append(expressions(&x), expressions(&y)...), func(params []uint32) bool {
			found = runsMeet(&x, params, &y, params)
			return !found
		})
		return found
	}
	const each = 32 // values of the params tried for either access
	var list [][]uint32
	valuations(m.g, expressions(&x), func(params []uint32) bool {
		list = append(list, slices.Clone(params))
		return len(list) < each
	})
	n := 0
	valuations(m.g, expressions(&y), func(params []uint32) bool {
		found = slices.ContainsFunc(list, func(other []uint32) bool { return runsMeet(&x, other, &y, params) })
		n++
		return !found && n < each
	})
	return found
}

// expressions returns the expressions that a region depends on.
func expressions(r *ir.Region) []ir.Affine {
	out := []ir.Affine{r.Off, r.Run}
	for _, d := range r.Dims {
		out = append(out, d.Count)
	}
	return out
}

// runsMeet reports whether two regions share a byte for given values of their params.
// It looks at their first runs only.
func runsMeet(a *ir.Region, of []uint32, b *ir.Region, with []uint32) (found bool) {
	type run struct{ lo, end int64 }
	list := func(r *ir.Region, params []uint32) (out []run) {
		r.Runs(params, func(lo, end int64) bool {
			out = append(out, run{lo, end})
			return len(out) < maxSegments
		})
		slices.SortFunc(out, func(x, y run) int { return cmp.Compare(x.lo, y.lo) })
		return out
	}
	x, y := list(a, of), list(b, with)
	// Runs of one region may overlap, so the max end so far counts.
	xend, yend := int64(-1<<62), int64(-1<<62)
	for i, j := 0, 0; i < len(x) || j < len(y); {
		if j == len(y) || i < len(x) && x[i].lo <= y[j].lo {
			if x[i].lo < yend && x[i].end > x[i].lo {
				return true
			}
			xend = max(xend, x[i].end)
			i++
		} else {
			if y[j].lo < xend && y[j].end > y[j].lo {
				return true
			}
			yend = max(yend, y[j].end)
			j++
		}
	}
	return false
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
		return true // the bounds of inner hold for all values of the params
	}
	if outer.flat() && inner.flat() {
		return false
	}
	if outer.shape == inner.shape {
		return true
	}
	return m.ask(areCovered, outer, inner)
}

func regionCovers(g *ir.Bounds, outer, inner ir.Region) bool {
	if outer.Equal(inner) {
		return true
	}
	if len(outer.Dims) > 0 {
		return coversGrid(g, outer, inner)
	}
	lo, end := inner.Hull()
	return g.DifferenceAtMost(outer.Off, lo, 0) && g.DifferenceAtMost(end, outer.Off.Add(outer.Run), 0)
}

// coversGrid is regionCovers for two regions with the same strides, of which the outer
// has longer runs or more of them.
func coversGrid(g *ir.Bounds, outer, inner ir.Region) bool {
	if len(outer.Dims) != len(inner.Dims) || !g.DifferenceAtMost(outer.Off, inner.Off, 0) || !g.DifferenceAtMost(inner.Off.Add(inner.Run), outer.Off.Add(outer.Run), 0) {
		return false
	}
	for k, d := range outer.Dims {
		if d.Stride != inner.Dims[k].Stride || !g.DifferenceAtMost(inner.Dims[k].Count, d.Count, 0) {
			return false
		}
	}
	return true
}

// sameShape reports whether two accesses, of graphs with the same params, differ at
// most in where they begin.
func sameShape(m *model, x *access, n *model, y *access) bool {
	if x.flat() && y.flat() {
		return x.end-x.lo == y.end-y.lo
	}
	r, s := m.region(x), n.region(y)
	return sameExtents(&r, &s) || extentsAgree(m.bounds, &r, &s)
}

// sameOnce is sameShape, but ignores how often a byte is read: a dimension of stride 0
// reads the same bytes again, and so does not change where a byte lies in the region.
func sameOnce(m *model, x *access, n *model, y *access) bool {
	if x.flat() && y.flat() {
		return x.end-x.lo == y.end-y.lo
	}
	r, s := m.region(x), n.region(y)
	r.Dims, s.Dims = withoutRepeats(r.Dims), withoutRepeats(s.Dims)
	return sameExtents(&r, &s) || extentsAgree(m.bounds, &r, &s)
}

func withoutRepeats(dims []ir.Dim) []ir.Dim {
	for i := range dims {
		if dims[i].Stride == 0 {
			return slices.DeleteFunc(slices.Clone(dims), func(d ir.Dim) bool { return d.Stride == 0 })
		}
	}
	return dims
}

// sameExtents is sameShape for regions.
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
func hull(g *ir.Bounds, r ir.Region) (lo, end int64) {
	a, b := r.Hull()
	first, _, ok1 := g.Range(a)
	_, last, ok2 := g.Range(b)
	if !ok1 || !ok2 {
		return 0, g.Graph().Memories[r.Mem].Size
	}
	return first, last
}

// extentsAgree is sameExtents for all values of the params that bounds and constraints
// admit, however the extents are written. Both graphs admit the same values (point 0).
func extentsAgree(g *ir.Bounds, x, y *ir.Region) bool {
	if len(x.Dims) != len(y.Dims) || !agree(g, x.Run, y.Run) {
		return false
	}
	for i, d := range x.Dims {
		if d.Stride != y.Dims[i].Stride || !agree(g, d.Count, y.Dims[i].Count) {
			return false
		}
	}
	return true
}

// agree proves that x = y for all values of the params.
func agree(g *ir.Bounds, x, y ir.Affine) bool {
	return x.Equal(y) || g.DifferenceAtMost(x, y, 0) && g.DifferenceAtMost(y, x, 0)
}
