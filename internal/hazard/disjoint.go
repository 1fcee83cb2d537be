package hazard

import "github.com/mlxc/mlxc/ir"

// Disjoint proves that a and b share no byte, whatever the params. A false
// result means that they may share one.
func Disjoint(g *ir.Graph, a, b ir.Region) bool {
	ma, oa := g.Root(a.Mem)
	mb, ob := g.Root(b.Mem)
	if ma != mb || empty(a) || empty(b) {
		return true
	}
	alo, aend := a.Hull()
	blo, bend := b.Hull()
	if never(g, aend.AddConst(oa).Sub(blo.AddConst(ob))) || never(g, bend.AddConst(ob).Sub(alo.AddConst(oa))) {
		return true
	}
	delta := b.Off.AddConst(ob).Sub(a.Off.AddConst(oa))
	return interleaved(g, a, b, delta) || interleaved(g, b, a, delta.Scale(-1))
}

func empty(r ir.Region) bool {
	if r.Run.IsConst() && r.Run.Const == 0 {
		return true
	}
	for _, d := range r.Dims {
		if d.Count.IsConst() && d.Count.Const == 0 {
			return true
		}
	}
	return false
}

// never reports whether e ≤ 0 for all values of the params.
func never(g *ir.Graph, e ir.Affine) bool {
	_, hi, ok := g.Range(e)
	return ok && hi <= 0
}

// interleaved proves two regions disjoint that take turns: both repeat with
// the same stride S, and within one period of S their bytes lie apart. S is one
// of a's strides, or what the params move them by. delta is b's first byte
// relative to a's.
func interleaved(g *ir.Graph, a, b ir.Region, delta ir.Affine) bool {
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
		// delta modulo S: params whose coefficient is a multiple of S drop out.
		lo, hi, ok := residue(g, delta, s)
		if !ok {
			continue
		}
		// b starts lo…hi into a's period: apart if a has ended by then and b ends
		// before the period does, for every value.
		_, wa1, ok1 := g.Range(wa)
		_, wb1, ok2 := g.Range(wb)
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

// width is how far r reaches within one period of s, when every dimension
// either repeats with a multiple of s or stays within the period.
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

// residue returns the range of e mod s in [0, s), if it does not wrap.
func residue(g *ir.Graph, e ir.Affine, s int64) (lo, hi int64, ok bool) {
	rest := ir.Const(e.Const)
	for _, t := range e.Terms() {
		if t.Coeff%s != 0 {
			rest = rest.Add(ir.Linear(0, t))
		}
	}
	lo, hi, ok = g.Range(rest)
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

// Covers proves that outer contains every byte of inner, whatever the params.
// A false result means that it may not.
func Covers(g *ir.Graph, outer, inner ir.Region) bool {
	mo, oo := g.Root(outer.Mem)
	mi, oi := g.Root(inner.Mem)
	if empty(inner) {
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
		// The same grid of longer runs or more of them.
		if len(outer.Dims) != len(inner.Dims) || !never(g, o.Sub(i)) || !never(g, i.Add(inner.Run).Sub(o.Add(outer.Run))) {
			return false
		}
		for k, d := range outer.Dims {
			if d.Stride != inner.Dims[k].Stride || !never(g, inner.Dims[k].Count.Sub(d.Count)) {
				return false
			}
		}
		return true
	}
	lo, end := inner.Hull()
	return never(g, o.Sub(lo.AddConst(oi))) && never(g, end.AddConst(oi).Sub(o.Add(outer.Run)))
}
