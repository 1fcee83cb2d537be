package bytestate

import "github.com/mlxc/mlxc/ir"

// Disjoint proves that a and b share no byte, whatever the params. A false result means
// that they may share one. Both regions must be in root memories.
func Disjoint(g *ir.Graph, a, b ir.Region) bool { return DisjointIn(ir.NewBounds(g, -1), a, b) }

// DisjointIn is Disjoint for callers with many questions about one graph, whose bounds
// they keep.
func DisjointIn(bounds *ir.Bounds, a, b ir.Region) bool {
	g := bounds.Graph()
	ma, oa := g.Root(a.Mem)
	mb, ob := g.Root(b.Mem)
	if ma != mb || Empty(&a) || Empty(&b) {
		return true
	}
	alo, aend := a.Hull()
	blo, bend := b.Hull()
	if bounds.DifferenceAtMost(aend, blo, ob-oa) || bounds.DifferenceAtMost(bend, alo, oa-ob) {
		return true
	}
	if len(a.Dims) == 0 && len(b.Dims) == 0 && sameTerms(a.Off, b.Off) {
		return false // no param moves one relative to the other, and no region has gaps
	}
	if len(a.Dims)+len(b.Dims) == 0 && a.Run.IsConst() && b.Run.IsConst() && a.Run.Const+b.Run.Const > periodBetween(a.Off, b.Off) {
		return false // interleaved would find the same in this frequent case, but with arithmetic on terms
	}
	delta := b.Off.AddConst(ob).Sub(a.Off.AddConst(oa))
	// For regions without dimensions, the second call would ask the same again.
	return interleaved(bounds, a, b, delta) || len(a.Dims)+len(b.Dims) > 0 && interleaved(bounds, b, a, delta.Scale(-1))
}

// sameTerms reports whether two expressions differ by a constant.
func sameTerms(a, b ir.Affine) bool {
	_, ok := a.Distance(b)
	return ok
}

// interleaved proves that two regions share no byte because they take turns: both
// repeat with the same stride S, and within one period of S their bytes lie apart. S is
// one of a's strides, or the step by which params move the regions. delta is the
// distance of b's first byte from a's.
func interleaved(bounds *ir.Bounds, a, b ir.Region, delta ir.Affine) bool {
	for i := 0; i <= len(a.Dims); i++ {
		s := period(delta)
		if i < len(a.Dims) {
			s = a.Dims[i].Stride
		}
		if s <= 0 {
			continue
		}
		wa, ok := width(a, s)
		if !ok {
			continue
		}
		wb, ok := width(b, s)
		if !ok {
			continue
		}
		if wa.IsConst() && wb.IsConst() && wa.Const+wb.Const > s {
			continue // together they are longer than a period
		}
		// The params whose coefficient is a multiple of S do not matter to delta modulo
		// S.
		lo, hi, ok := residue(bounds, delta, s)
		if !ok {
			continue
		}
		// b begins lo…hi bytes into a's period. The two are apart if, for every value
		// of the params, a has ended by then and b ends before the period does.
		_, wa1, ok1 := bounds.Range(wa)
		_, wb1, ok2 := bounds.Range(wb)
		if ok1 && ok2 && lo >= wa1 && hi+wb1 <= s {
			return true
		}
	}
	return false
}

// period returns the greatest common divisor of a's coefficients.
func period(a ir.Affine) int64 {
	d := int64(0)
	for _, t := range a.Terms() {
		for x := t.Coeff; x != 0; {
			d, x = x, d%x
		}
	}
	return max(d, -d)
}

// periodBetween returns the period of a − b.
func periodBetween(a, b ir.Affine) int64 {
	d := int64(0)
	gcd := func(x int64) {
		for x != 0 {
			d, x = x, d%x
		}
	}
	x, y := a.Terms(), b.Terms()
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Param < y[0].Param:
			gcd(x[0].Coeff)
			x = x[1:]
		case len(x) == 0 || y[0].Param < x[0].Param:
			gcd(y[0].Coeff)
			y = y[1:]
		default:
			gcd(x[0].Coeff - y[0].Coeff)
			x, y = x[1:], y[1:]
		}
	}
	return max(d, -d)
}

// width returns how many bytes r spans within one period of s. It fails if a dimension
// neither repeats with a multiple of s nor stays within the period.
func width(r ir.Region, s int64) (ir.Affine, bool) {
	w := r.Run
	for _, d := range r.Dims {
		if d.Stride%s == 0 {
			continue
		}
		w = w.Add(d.Count.AddConst(-1).Scale(d.Stride))
	}
	return w, true
}

// residue returns the range of e modulo s within [0, s). It fails if the range wraps
// around.
func residue(bounds *ir.Bounds, e ir.Affine, s int64) (lo, hi int64, ok bool) {
	rest := ir.Const(e.Const)
	for _, t := range e.Terms() {
		if t.Coeff%s != 0 {
			rest = rest.Add(ir.Linear(0, t))
		}
	}
	lo, hi, ok = bounds.Range(rest)
	if !ok {
		return 0, 0, false
	}
	base := lo / s
	if lo%s < 0 {
		base--
	}
	lo, hi = lo-base*s, hi-base*s
	return lo, hi, hi < s
}

// Covers proves that outer contains every byte of inner, whatever the params. A false
// result means that it may not. Both regions must be in root memories.
func Covers(g *ir.Graph, outer, inner ir.Region) bool {
	return CoversIn(ir.NewBounds(g, -1), outer, inner)
}

// CoversIn is Covers for callers with many questions about one graph, whose bounds they
// keep.
func CoversIn(bounds *ir.Bounds, outer, inner ir.Region) bool {
	g := bounds.Graph()
	mo, oo := g.Root(outer.Mem)
	mi, oi := g.Root(inner.Mem)
	if Empty(&inner) {
		return true
	}
	if mo != mi {
		return false
	}
	o, i := outer.Off.AddConst(oo), inner.Off.AddConst(oi)
	if o.Equal(i) && outer.Run.Equal(inner.Run) && sameDims(outer.Dims, inner.Dims) {
		return true
	}
	if len(outer.Dims) > 0 {
		// Both are grids of the same strides, and outer has longer runs or more of
		// them.
		if len(outer.Dims) != len(inner.Dims) || !bounds.DifferenceAtMost(o, i, 0) || !bounds.DifferenceAtMost(i.Add(inner.Run), o.Add(outer.Run), 0) {
			return false
		}
		for k, d := range outer.Dims {
			if d.Stride != inner.Dims[k].Stride || !bounds.DifferenceAtMost(inner.Dims[k].Count, d.Count, 0) {
				return false
			}
		}
		return true
	}
	lo, end := inner.Hull()
	return bounds.DifferenceAtMost(o, lo.AddConst(oi), 0) && bounds.DifferenceAtMost(end.AddConst(oi), o.Add(outer.Run), 0)
}
