package judge

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// valuations lists assignments of g's params that its bounds and constraints admit: all
// of them if there are at most limit, otherwise the extremes and a sample. Values of
// f32 params are bits.
func valuations(g *ir.Graph, limit int, rng *rand.Rand) [][]uint32 {
	low := make([]uint32, len(g.Params))
	span := make([]uint64, len(g.Params))
	product := uint64(1)
	for i, p := range g.Params {
		if p.Type == ir.F32 {
			span[i] = 2
		} else {
			low[i], span[i] = uint32(p.Min), uint64(p.Max)-uint64(p.Min)+1
		}
		product = min(product*span[i], 1<<32)
	}
	at := func(i int, k uint64) uint32 {
		p := g.Params[i]
		switch {
		case p.Type == ir.F32 && k == 0:
			return math.Float32bits(float32(p.Min))
		case p.Type == ir.F32:
			return math.Float32bits(float32(p.Max))
		}
		return low[i] + uint32(k)
	}
	var out [][]uint32
	seen := map[string]bool{}
	add := func(v []uint32) {
		key := make([]byte, 0, 4*len(v))
		for _, x := range v {
			key = append(key, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
		if seen[string(key)] || len(out) >= limit {
			return
		}
		seen[string(key)] = true
		if allowed(g, v) {
			out = append(out, v)
		}
	}
	if product <= 4096 {
		var all [][]uint32 // those that the constraints admit
		for k := range int(product) {
			v := make([]uint32, len(g.Params))
			rest := uint64(k)
			for i := range v {
				v[i] = at(i, rest%span[i])
				rest /= span[i]
			}
			if allowed(g, v) {
				all = append(all, v)
			}
		}
		if len(all) > limit { // the extremes of each param come first
			for i := range g.Params {
				byParam := func(v, w []uint32) int { return cmp.Compare(v[i], w[i]) }
				add(slices.MaxFunc(all, byParam))
				add(slices.MinFunc(all, byParam))
			}
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		for _, v := range all {
			add(v)
		}
		return out
	}
	for k := 0; k < 50*limit && len(out) < limit; k++ {
		v := make([]uint32, len(g.Params))
		for i := range v {
			n := rng.Uint64N(span[i])
			switch rng.IntN(3) {
			case 0:
				n = 0
			case 1:
				n = span[i] - 1
			}
			v[i] = at(i, n)
		}
		add(v)
	}
	return out
}

func allowed(g *ir.Graph, v []uint32) bool {
	for _, c := range g.Constraints {
		if c.LHS.Eval(v) > c.Max {
			return false
		}
	}
	return true
}

// translate maps a valuation of a's params to b's params, which have the same names.
func translate(a, b *ir.Graph, v []uint32) []uint32 {
	out := make([]uint32, len(v))
	for i, p := range a.Params {
		id, _ := b.ParamNamed(p.Name)
		out[id] = v[i]
	}
	return out
}
