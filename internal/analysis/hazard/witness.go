package hazard

import "github.com/mlxc/mlxc/ir"

// maxSamples bounds the assignments of the params that are tried.
const maxSamples = 64

// samples returns assignments of the params ([ir.Graph.Samples]).
func (j *judge) samples() [][]uint32 {
	if !j.have {
		j.have = true
		j.points = j.t.g.Samples(maxSamples)
	}
	return j.points
}

// witness looks for values of the params with which two regions share a byte, and
// returns them with the first bytes shared.
func (j *judge) witness(x, y *ir.Region) (params []uint32, lo, end int64, ok bool) {
	found := func(a, b int64) bool {
		lo, end, ok = a, b, true
		return false
	}
	if x.IsConst() && y.IsConst() {
		shared(x, y, nil, found)
		return nil, lo, end, ok
	}
	for _, p := range j.samples() {
		if shared(x, y, p, found); ok {
			return p, lo, end, true
		}
	}
	return nil, 0, 0, false
}

// solid returns region n of the facts or, if n is 0, the region of all bytes of [lo,
// end).
func (t *Table) solid(n, root int32, lo, end int64) ir.Region {
	if n != 0 {
		return t.facts.At(n).Region
	}
	return ir.ViewOf(ir.MemID(root), lo, end-lo).Contiguous()
}

// shared calls yield with the pieces that two regions share for given values of the
// params, until yield returns false. Of regions with many runs it looks at the first
// ones only.
func shared(x, y *ir.Region, params []uint32, yield func(lo, end int64) bool) {
	p, q := placeOf(x, params), placeOf(y, params)
	if p.lo >= q.end || q.lo >= p.end || p.lo == p.end || q.lo == q.end {
		return
	}
	left, more := maxWalk, true
	x.Runs(params, func(a, b int64) bool {
		left--
		if b <= q.lo || a >= q.end {
			return left > 0
		}
		y.Runs(params, func(c, d int64) bool {
			left--
			if lo, end := max(a, c), min(b, d); lo < end {
				more = yield(lo, end)
			}
			return more && left > 0
		})
		return more && left > 0
	})
}
