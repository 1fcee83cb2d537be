package prove

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// If bounds do not decide a question, values of the params may. One assignment for which two graphs
// differ shows that they differ. If there are few assignments, trying all of them shows that they
// do not differ.

// answer is the answer to a question about all values of the params.
type answer uint8

const (
	same   answer = iota // for all values
	differ               // for at least one
	unsure
)

// and combines the answers for two parts of a question.
func (x answer) and(y answer) answer {
	switch {
	case x == differ || y == differ:
		return differ
	case x == unsure || y == unsure:
		return unsure
	}
	return same
}

const (
	maxValuations = 1 << 10 // assignments tried, if there are no more
	someValues    = 64      // assignments tried, if there are more
)

// valuations calls yield with assignments of the params that g admits until yield returns false. It
// varies only the params on which the expressions in use depend. all says that every such
// assignment was tried.
func valuations(g *ir.Graph, use []ir.Affine, yield func(params []uint32) bool) (all bool) {
	v := &valuer{g: g, params: make([]uint32, len(g.Params)), involved: make([]bool, len(g.Params))}
	for _, a := range use {
		v.involve(a)
	}
	for again := true; again; {
		again = false
		for _, c := range g.Constraints {
			if slices.ContainsFunc(c.LHS.Terms(), func(t ir.Term) bool { return v.involved[t.Param] }) {
				again = v.involve(c.LHS) || again
			}
		}
	}
	total := 1.0
	for i := range g.Params {
		p := &g.Params[i]
		v.params[i] = bitsOf(p, p.Min)
		if !v.involved[i] {
			continue
		}
		v.list = append(v.list, ir.ParamID(i))
		if p.Type == ir.F32 {
			total = math.Inf(1) // too many: only values near the bounds are tried
		} else {
			total *= p.Max - p.Min + 1
		}
	}
	if total <= maxValuations {
		v.every(0, yield)
		return true
	}
	v.some(yield)
	return false
}

type valuer struct {
	g        *ir.Graph
	params   []uint32
	involved []bool
	list     []ir.ParamID // the params that vary
}

// bitsOf returns the bits of value v for p, as the host passes them.
func bitsOf(p *ir.Param, v float64) uint32 {
	if p.Type == ir.F32 {
		return math.Float32bits(float32(v))
	}
	return uint32(v)
}

func (v *valuer) involve(a ir.Affine) (more bool) {
	for _, t := range a.Terms() {
		more = more || !v.involved[t.Param]
		v.involved[t.Param] = true
	}
	return more
}

// admitted reports whether the constraints between the params that vary hold.
func (v *valuer) admitted() bool {
	for _, c := range v.g.Constraints {
		if t := c.LHS.Terms(); v.involved[t[0].Param] && c.LHS.Eval(v.params) > c.Max {
			return false
		}
	}
	return true
}

// every tries all values of the params list[i:].
func (v *valuer) every(i int, yield func([]uint32) bool) bool {
	if i == len(v.list) {
		return !v.admitted() || yield(v.params)
	}
	p := &v.g.Params[v.list[i]]
	for x := uint64(p.Min); x <= uint64(p.Max); x++ {
		v.params[v.list[i]] = uint32(x)
		if !v.every(i+1, yield) {
			return false
		}
	}
	return true
}

// At the bounds and between them, some tries always the same values.
func (v *valuer) some(yield func([]uint32) bool) {
	rng := rand.New(rand.NewPCG(1, uint64(len(v.list))))
	for k := range someValues {
		order := slices.Clone(v.list)
		if k >= 4 {
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if v.choose(order, k, rng); v.admitted() && !yield(v.params) {
			return
		}
	}
}

// choose assigns the params values in the given order. Each value is drawn from those that the
// earlier values leave possible.
func (v *valuer) choose(order []ir.ParamID, k int, rng *rand.Rand) {
	set := make([]bool, len(v.params))
	for n, id := range order {
		p := &v.g.Params[id]
		low := k == 0 || k == 2 && n%2 == 0 || k == 3 && n%2 == 1 || k >= 4 && rng.IntN(3) == 0
		high := k == 1 || k == 2 && n%2 == 1 || k == 3 && n%2 == 0 || k >= 4 && rng.IntN(2) == 0
		if p.Type == ir.F32 {
			v.params[id] = bitsOf(p, p.Min)
			if high && !low {
				v.params[id] = bitsOf(p, p.Max)
			}
			continue
		}
		lo, hi := int64(p.Min), int64(p.Max)
		for _, c := range v.g.Constraints {
			if own := c.LHS.Coeff(id); own != 0 {
				lo, hi = v.within(c, id, own, set, lo, hi)
			}
		}
		if lo > hi {
			lo, hi = int64(p.Min), int64(p.Max)
		}
		x := lo
		switch {
		case low:
		case high:
			x = hi
		default:
			x += rng.Int64N(hi - lo + 1)
		}
		v.params[id], set[id] = uint32(x), true
	}
}

// within narrows the range of a param to what constraint c allows. own is its
// coefficient in c. Params that have no value yet are taken at the value that leaves
// the most room.
func (v *valuer) within(c ir.Constraint, id ir.ParamID, own int64, set []bool, lo, hi int64) (int64, int64) {
	left := float64(c.Max) // exact below 2^53; beyond that the attempt may fail
	for _, t := range c.LHS.Terms() {
		q := &v.g.Params[t.Param]
		switch {
		case t.Param == id:
		case set[t.Param]:
			left -= float64(t.Coeff) * float64(v.params[t.Param])
		case t.Coeff > 0:
			left -= float64(t.Coeff) * q.Min
		default:
			left -= float64(t.Coeff) * q.Max
		}
	}
	if bound := left / float64(own); own > 0 && bound < float64(hi) {
		hi = int64(math.Floor(bound))
	} else if own < 0 && bound > float64(lo) {
		lo = int64(math.Ceil(bound))
	}
	return lo, hi
}

// sameAffine compares two expressions over the params of g.
func sameAffine(g *ir.Graph, x, y ir.Affine) answer {
	if x.Equal(y) {
		return same
	}
	d := x.Sub(y)
	if lo, hi, ok := g.Range(d); ok && lo == 0 && hi == 0 {
		return same
	} else if ok && (lo > 0 || hi < 0) {
		return differ
	}
	return tried(g, []ir.Affine{d}, func(params []uint32) bool { return d.Eval(params) == 0 })
}

// sameExtent compares two dimensions of a grid.
func sameExtent(g *ir.Graph, x, y ir.Extent) answer {
	if x.Equal(y) {
		return same
	}
	if x.IsConst() && y.IsConst() {
		if x.Eval(nil) == y.Eval(nil) {
			return same
		}
		return differ
	}
	if x.Div == y.Div && sameAffine(g, x.Num, y.Num) == same {
		return same
	}
	// Both are the same fraction. Numbers of a grid are below 2^47, so that nothing overflows.
	if x.Div <= 1<<12 && y.Div <= 1<<12 && x.Num.Scale(y.Div).Equal(y.Num.Scale(x.Div)) {
		return same
	}
	return tried(g, []ir.Affine{x.Num, y.Num}, func(params []uint32) bool { return x.Eval(params) == y.Eval(params) })
}

// tried asks equal for assignments of the params that the expressions in use depend on.
func tried(g *ir.Graph, use []ir.Affine, equal func(params []uint32) bool) answer {
	out := unsure
	if valuations(g, use, func(params []uint32) bool {
		if !equal(params) {
			out = differ
		}
		return out != differ
	}) && out != differ {
		out = same
	}
	return out
}
