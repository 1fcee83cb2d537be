package ir

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
)

// Bounds finds the min and max of expressions over a graph's params. It is for callers that ask
// often: it prepares the constraints once and remembers answers. The graph must keep its params and
// constraints while Bounds is in use, and only one goroutine may use it.
type Bounds struct {
	g    *Graph
	work int64 // steps of search that are left; if negative, their number is not limited

	once     bool // only one question will be asked, so nothing is remembered
	prepared bool
	masks    []paramMask // by constraint: the params that it names
	of       [][]int32   // by param: the constraints that name it
	slack    []int64     // by constraint: Max − LHS where every param has its min; nil if that is negative for one
	left     []int64     // scratch memory of reach
	scratch  [3][]Term
	diff     []Term
	memo     []remembered // a hash table of answers: a new answer replaces the old one of the same hash
	fresh    int          // answers added to memo since it was last enlarged
}

// BoundsWork is how many steps the analysis of a whole graph spends on constraints before it uses
// the bounds of single params alone. It is enough for some ten thousand distinct expressions in a
// graph of dozens of constraints; recordings have a few dozen expressions and one or two
// constraints.
const BoundsWork = 1 << 22

// NewBounds returns the bounds of g's params. It takes constraints into account until it has spent
// work steps on them; later answers are wider, never wrong. If work is negative, there is no limit.
func NewBounds(g *Graph, work int64) *Bounds { return &Bounds{g: g, work: work} }

// paramMask has a bit for each param that a constraint names. Params from number 127 on share one
// bit.
type paramMask [2]uint64

func (m *paramMask) add(p ParamID) {
	i := min(uint32(p), 127)
	m[i/64] |= 1 << (i % 64)
}

func (m paramMask) meets(o *paramMask) bool { return m[0]&o[0]|m[1]&o[1] != 0 }

func maskOf(ts []Term) (m paramMask) {
	for i := range ts {
		m.add(ts[i].Param)
	}
	return m
}

// remembered is a sum of terms and the lowest upper bound that was found for it.
type remembered struct {
	terms []Term
	max   int64
	ok    bool
}

// These are the numbers of answers that are remembered at first and at most. A caller with few
// questions needs little memory.
const (
	boundsMemo    = 1 << 5
	boundsMemoMax = 1 << 11
)

// Graph returns the graph whose params b bounds.
func (b *Bounds) Graph() *Graph { return b.g }

// Range is [Graph.Range].
func (b *Bounds) Range(a Affine) (lo, hi int64, ok bool) {
	if a.lin == nil {
		return a.Const, a.Const, true
	}
	hi, ok1 := b.greatest(*a.lin)
	hi, ok2 := addOK(hi, a.Const)
	minus, ok3 := negated(*a.lin, b.diff[:0])
	b.diff = minus
	lo, ok4 := b.greatest(minus)
	if lo == math.MinInt64 || a.Const == math.MinInt64 {
		return 0, 0, false
	}
	lo, ok5 := addOK(-lo, a.Const)
	return lo, hi, ok1 && ok2 && ok3 && ok4 && ok5
}

// AtMost reports whether Range proves a ≤ limit for all values of the params.
func (b *Bounds) AtMost(a Affine, limit int64) bool { return b.DifferenceAtMost(a, Affine{}, limit) }

// DifferenceAtMost reports whether Range proves x − y ≤ limit for all values of the params. It
// allocates nothing that lasts.
func (b *Bounds) DifferenceAtMost(x, y Affine, limit int64) bool {
	ts := b.diff[:0]
	if x.lin != y.lin {
		var ok bool
		if ts, ok = combined(x.Terms(), 1, y.Terms(), ts); !ok {
			return false
		}
		b.diff = ts
	}
	c, ok := addOK(x.Const, -y.Const)
	if !ok || y.Const == math.MinInt64 {
		return false
	}
	if limit, ok = addOK(limit, -c); !ok || c == math.MinInt64 {
		return false
	}
	if len(ts) == 0 {
		return 0 <= limit
	}
	most, ok := b.box(ts)
	if ok && most <= limit {
		return true
	}
	if len(b.g.Constraints) == 0 {
		return false
	}
	b.prepare()
	if reached, ok := b.reach(ts); ok && reached > limit {
		return false
	}
	most, ok = b.greatest(ts)
	return ok && most <= limit
}

// greatest returns an upper bound of a sum of terms.
func (b *Bounds) greatest(ts []Term) (int64, bool) {
	best, ok := b.box(ts)
	if len(b.g.Constraints) == 0 {
		return best, ok
	}
	b.prepare()
	mask, named := maskOf(ts), false
	for i := 0; i < len(b.g.Constraints) && !named; i++ {
		named = b.mask(i).meets(&mask)
	}
	if !named {
		return best, ok
	}
	var x *remembered
	if !b.once {
		x = &b.memo[hashTerms(ts)%uint64(len(b.memo))]
		if invariants.Caches && slices.Equal(x.terms, ts) {
			return x.max, x.ok
		}
	}
	if b.work == 0 {
		return best, ok
	}
	work := int64(maxRangeWork)
	for depth := 1; depth <= min(3, len(b.g.Constraints)) && work > 0; depth++ {
		if v, found := b.upper(ts, 0, depth, &work); found && (!ok || v < best) {
			best, ok = v, true
		}
	}
	if b.work > 0 {
		b.work = max(0, b.work-(maxRangeWork-work))
	}
	if x != nil {
		*x = remembered{append(x.terms[:0], ts...), best, ok}
		if b.fresh++; b.fresh > 2*len(b.memo) && len(b.memo) < boundsMemoMax {
			b.memo, b.fresh = make([]remembered, 4*len(b.memo)), 0
		}
	}
	return best, ok
}

func hashTerms(ts []Term) uint64 {
	h := uint64(len(ts))
	for _, t := range ts {
		h = mix.Word(h^uint64(t.Param)<<1, uint64(t.Coeff))
	}
	return h
}

// maxRangeWork bounds the terms that one direction of Range looks at. Recordings have a constraint
// or two, but a hostile file has dozens, and the number of their combinations grows with the third
// power. If a combination is not tried, the result may be wider, but it is never wrong.
const maxRangeWork = 512

// upper returns an upper bound of a sum of terms a. For a constraint LHS ≤ Max and any λ ≥ 0, a ≤
// λ·Max + max(a − λ·LHS). It tries each λ that cancels one param, because the optimum of the dual
// of the linear program is at such a λ. It does not try the constraints before number from.
func (b *Bounds) upper(ts []Term, from, depth int, work *int64) (int64, bool) {
	best, ok := b.box(ts)
	mask := maskOf(ts)
	for i := from; i < len(b.g.Constraints); i++ {
		if m := b.mask(i); !m.meets(&mask) {
			continue
		}
		c := &b.g.Constraints[i]
		lhs := c.LHS.Terms()
		for _, t := range lhs {
			if *work--; *work < 0 {
				return best, ok
			}
			k := coeffOf(ts, t.Param)
			if k == 0 || (k > 0) != (t.Coeff > 0) || k%t.Coeff != 0 {
				continue
			}
			*work -= int64(len(ts) + len(lhs))
			lambda := k / t.Coeff
			gain, ok1 := mulOK(lambda, c.Max)
			if !ok1 {
				continue
			}
			left, fits := combined(ts, lambda, lhs, b.scratch[depth-1][:0])
			b.scratch[depth-1] = left
			if !fits {
				continue
			}
			var rest int64
			var ok2 bool
			if depth == 1 {
				rest, ok2 = b.box(left)
			} else {
				rest, ok2 = b.upper(left, i+1, depth-1, work)
			}
			sum, ok3 := addOK(gain, rest)
			if ok2 && ok3 && (!ok || sum < best) {
				best, ok = sum, true
			}
		}
	}
	return best, ok
}

func coeffOf(ts []Term, p ParamID) int64 {
	for i := range ts {
		if ts[i].Param == p {
			return ts[i].Coeff
		}
	}
	return 0
}

// box returns the upper bound of a sum of terms that follows from the bounds of its params alone.
func (b *Bounds) box(ts []Term) (int64, bool) {
	v := int64(0)
	for _, t := range ts {
		if t.Param < 0 || int(t.Param) >= len(b.g.Params) {
			return 0, false
		}
		p := &b.g.Params[t.Param]
		x := int64(p.Max)
		if t.Coeff < 0 {
			x = int64(p.Min)
		}
		m, ok1 := mulOK(t.Coeff, x)
		s, ok2 := addOK(v, m)
		if !ok1 || !ok2 {
			return 0, false
		}
		v = s
	}
	return v, true
}

// boxed reports whether the bounds of the params alone prove that a view from lo to end, of the
// given length, lies in a memory of the given size.
func (b *Bounds) boxed(lo, end, length Affine, size int64) bool {
	inside := func(a Affine, least, most int64) bool {
		hi, ok1 := b.box(a.Terms())
		minus, ok2 := negated(a.Terms(), b.diff[:0])
		b.diff = minus
		lo, ok3 := b.box(minus)
		// INVARIANT: the limits of memory sizes keep these numbers far from overflowing 64 bits.
		const far = 1 << 60
		return ok1 && ok2 && ok3 && hi < far && lo < far && a.Const > -far && a.Const < far && a.Const+hi <= most && a.Const-lo >= least
	}
	return inside(lo, 0, size) && inside(end, 0, size) && inside(length, 0, size)
}

// combined appends x − k·y to out. ok is false if a coefficient overflows 64 bits.
func combined(x []Term, k int64, y []Term, out []Term) (_ []Term, ok bool) {
	ok = true
	minus := func(a, b int64) int64 { // a − k·b
		p, ok1 := mulOK(k, b)
		p, ok2 := mulOK(p, -1)
		d, ok3 := addOK(a, p)
		ok = ok && ok1 && ok2 && ok3
		return d
	}
	for len(x) > 0 || len(y) > 0 {
		var t Term
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Param < y[0].Param:
			t, x = x[0], x[1:]
		case len(x) == 0 || y[0].Param < x[0].Param:
			t, y = Term{y[0].Param, minus(0, y[0].Coeff)}, y[1:]
		default:
			t, x, y = Term{x[0].Param, minus(x[0].Coeff, y[0].Coeff)}, x[1:], y[1:]
		}
		if t.Coeff != 0 {
			out = append(out, t)
		}
	}
	return out, ok
}

func negated(ts []Term, out []Term) ([]Term, bool) { return combined(nil, 1, ts, out) }

// mask returns the params of a constraint.
func (b *Bounds) mask(i int) paramMask {
	if b.masks == nil {
		return maskOf(b.g.Constraints[i].LHS.Terms())
	}
	return b.masks[i]
}

// prepare computes masks, of and slack.
func (b *Bounds) prepare() {
	if b.prepared {
		return
	}
	b.prepared = true
	n := len(b.g.Constraints)
	if b.once && n <= 4 {
		return
	}
	if b.once {
		b.masks = make([]paramMask, n)
		for i := range b.masks {
			b.masks[i] = maskOf(b.g.Constraints[i].LHS.Terms())
		}
		return
	}
	b.memo = make([]remembered, boundsMemo)
	b.masks, b.slack, b.left = make([]paramMask, n), make([]int64, n), make([]int64, n)
	b.of = make([][]int32, len(b.g.Params))
	for i := range b.g.Constraints {
		c := &b.g.Constraints[i]
		b.masks[i] = maskOf(c.LHS.Terms())
		// The value of LHS where every param has its min is −max(−LHS) over a box that is that one
		// point.
		slack, possible := c.Max, true
		for _, t := range c.LHS.Terms() {
			if t.Param < 0 || int(t.Param) >= len(b.g.Params) {
				possible = false
				break
			}
			b.of[t.Param] = append(b.of[t.Param], int32(i))
			m, ok1 := mulOK(t.Coeff, -int64(b.g.Params[t.Param].Min))
			s, ok2 := addOK(slack, m)
			slack, possible = s, possible && ok1 && ok2
		}
		if !possible || slack < 0 {
			b.slack = nil
		}
		if b.slack != nil {
			b.slack[i] = slack
		}
	}
}

// reach returns the value of a sum of terms for some values of the params that all constraints
// allow. It starts with every param at its min, and then raises the params that increase the sum as
// far as possible, one after another. A caller whose limit is below v need not search for an upper
// bound. ok is false if the mins themselves violate a constraint.
func (b *Bounds) reach(ts []Term) (v int64, ok bool) {
	if b.slack == nil {
		return 0, false
	}
	copy(b.left, b.slack)
	for _, t := range ts {
		if t.Param < 0 || int(t.Param) >= len(b.g.Params) || b.g.Params[t.Param].Type != U32 {
			return 0, false
		}
		p := &b.g.Params[t.Param]
		x := int64(p.Min)
		if t.Coeff > 0 {
			x += b.raise(t.Param, int64(p.Max)-x)
		}
		m, ok1 := mulOK(t.Coeff, x)
		s, ok2 := addOK(v, m)
		if !ok1 || !ok2 {
			return 0, false
		}
		v = s
	}
	return v, true
}

// raise increases param p by as much as the constraints leave, but at most by most. It returns the
// increase.
func (b *Bounds) raise(p ParamID, most int64) int64 {
	for _, i := range b.of[p] {
		if k := coeffOf(b.g.Constraints[i].LHS.Terms(), p); k > 0 {
			most = min(most, b.left[i]/k)
		}
	}
	for _, i := range b.of[p] {
		k := coeffOf(b.g.Constraints[i].LHS.Terms(), p)
		d, ok1 := mulOK(k, -most)
		s, ok2 := addOK(b.left[i], d)
		if !ok1 || !ok2 {
			// The constraint leaves more room than 64 bits can hold. A smaller number is safe.
			s = b.left[i]
		}
		b.left[i] = s
	}
	return most
}
