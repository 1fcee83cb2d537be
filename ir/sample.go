package ir

import (
	"math"
	"slices"
)

// Samples returns at most n choices of values for the params, as bits, that keep bounds and
// constraints: all mins, all maxes, and choices where one param is at its opposite end. Values that
// violate a constraint are moved as far as it demands. It may find none although there are some.
func (g *Graph) Samples(n int) [][]uint32 {
	var out [][]uint32
	add := func(far int, high bool) {
		v := g.ends(far, high)
		if len(out) >= n || !g.keep(v) {
			return
		}
		bits := make([]uint32, len(v))
		for i := range v {
			bits[i] = uint32(v[i])
			if p := &g.Params[i]; p.Type == F32 {
				bits[i] = math.Float32bits(float32(p.Min))
			}
		}
		if !slices.ContainsFunc(out, func(x []uint32) bool { return slices.Equal(x, bits) }) {
			out = append(out, bits)
		}
	}
	add(-1, false)
	add(-1, true)
	for i := range g.Params {
		if len(out) >= n {
			break
		}
		if p := &g.Params[i]; p.Type == U32 && p.Min < p.Max {
			add(i, false)
			add(i, true)
		}
	}
	return out
}

// ends returns the min of each param (or its max, if high is set), and the opposite end of param
// far.
func (g *Graph) ends(far int, high bool) []int64 {
	v := make([]int64, len(g.Params))
	for i := range v {
		p := &g.Params[i]
		if p.Type != U32 {
			continue
		}
		v[i] = int64(p.Min)
		if high != (i == far) {
			v[i] = int64(p.Max)
		}
	}
	return v
}

// keep moves the values v, param by param, until they keep the constraints. It reports whether they
// do. Mending one constraint may break another, so it tries a few times.
func (g *Graph) keep(v []int64) bool {
	over := func(c *Constraint) (int64, bool) {
		sum, ok := int64(0), true
		for _, t := range c.LHS.Terms() {
			x, ok1 := mulOK(t.Coeff, v[t.Param])
			s, ok2 := addOK(sum, x)
			sum, ok = s, ok && ok1 && ok2
		}
		d, ok1 := addOK(sum, -c.Max)
		return d, ok && ok1 && c.Max > math.MinInt64
	}
	for range 4 {
		broken := false
		for k := range g.Constraints {
			c := &g.Constraints[k]
			for _, t := range c.LHS.Terms() {
				by, ok := over(c)
				if !ok {
					return false
				}
				if by <= 0 {
					break
				}
				broken = true
				p := &g.Params[t.Param]
				if t.Coeff > 0 {
					v[t.Param] -= min(ceilDiv(by, t.Coeff), v[t.Param]-int64(p.Min))
				} else {
					v[t.Param] += min(ceilDiv(by, -t.Coeff), int64(p.Max)-v[t.Param])
				}
			}
		}
		if !broken {
			return true
		}
	}
	return false
}
