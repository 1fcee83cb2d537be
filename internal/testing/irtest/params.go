package irtest

import (
	"math"

	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func (g *gen) params() {
	t, used := g.t, namer{}
	for range rapid.IntRange(0, 4).Draw(t, "params") {
		p := ir.Param{Name: used.draw(t, "param name"), Type: ir.U32}
		if g.chance(3, "f32 param") {
			p.Type = ir.F32
			bound := rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), math.SmallestNonzeroFloat32, math.MaxFloat32, float32(math.Copysign(0, -1)), 1e-5, 16777216}))
			a, b := bound.Draw(t, "bound"), bound.Draw(t, "bound")
			p.Min, p.Max = math.Min(float64(a), float64(b)), math.Max(float64(a), float64(b))
		} else {
			top := rapid.SampledFrom([]uint32{0, 1, 7, 2047, 1 << 20, math.MaxUint32}).Draw(t, "magnitude")
			a, b := rapid.Uint32Range(0, top).Draw(t, "bound"), rapid.Uint32Range(0, top).Draw(t, "bound")
			p.Min, p.Max = float64(min(a, b)), float64(max(a, b))
			if g.chance(4, "advances") {
				p.Advance = rapid.Int64Range(-math.MaxUint32, math.MaxUint32).Draw(t, "advance")
			}
		}
		g.g.Params = append(g.g.Params, p)
	}
	ints := g.intParams()
	if len(ints) == 0 {
		return
	}
	for range rapid.IntRange(0, 2).Draw(t, "constraints") {
		var terms []ir.Term
		least := int64(0) // of the left side inside the box
		for _, p := range ints {
			c := rapid.Int64Range(-3, 3).Draw(t, "coefficient")
			if len(terms) == 0 && p == ints[len(ints)-1] && c == 0 {
				c = 1
			}
			if c != 0 {
				terms = append(terms, ir.Term{Param: p, Coeff: c})
			}
			if c > 0 {
				least += c * int64(g.g.Params[p].Min)
			} else {
				least += c * int64(g.g.Params[p].Max)
			}
		}
		g.g.Constraints = append(g.g.Constraints, ir.Constraint{LHS: ir.Linear(0, terms...), Max: least + g.upTo(5000, "slack")})
	}
	// The constraint that recordings have.
	if len(ints) >= 2 && g.bool("pos + n") {
		a, b := ints[0], ints[1]
		least := int64(g.g.Params[a].Min + g.g.Params[b].Min)
		g.g.Constraints = append(g.g.Constraints, ir.Constraint{
			LHS: ir.Linear(0, ir.Term{Param: a, Coeff: 1}, ir.Term{Param: b, Coeff: 1}),
			Max: least + g.upTo(4096, "slack"),
		})
	}
	if len(g.g.Constraints) > 0 && len(g.g.Samples(1)) == 0 { // none may satisfy them together
		g.g.Constraints = g.g.Constraints[:1]
	}
}

func (g *gen) intParams() []ir.ParamID   { return g.paramsOf(ir.U32) }
func (g *gen) floatParams() []ir.ParamID { return g.paramsOf(ir.F32) }

func (g *gen) paramsOf(d ir.DType) []ir.ParamID {
	var out []ir.ParamID
	for i, p := range g.g.Params {
		if p.Type == d {
			out = append(out, ir.ParamID(i))
		}
	}
	return out
}

// affine draws an expression whose value lies in [0, most] for all values that
// the params' bounds allow.
func (g *gen) affine(most int64) ir.Affine {
	var terms []ir.Term
	c := int64(0)
	if ints := g.intParams(); len(ints) > 0 && g.bool("affine") {
		for _, p := range ints {
			hi := max(1, int64(g.g.Params[p].Max))
			if most/hi == 0 || g.bool("skip param") {
				continue
			}
			k := rapid.Int64Range(1, min(most/hi, 1<<20)).Draw(g.t, "coefficient")
			most -= k * hi
			if g.chance(4, "negative") {
				terms = append(terms, ir.Term{Param: p, Coeff: -k})
				c += k * hi
			} else {
				terms = append(terms, ir.Term{Param: p, Coeff: k})
			}
		}
	}
	return ir.Linear(c+g.upTo(most, "constant"), terms...)
}
