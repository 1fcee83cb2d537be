package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Param declares a u32 param in [min, max]: a number that may differ from replay to replay.
// Declaring it again returns the same param.
func (e *Encoder) Param(name string, min, max uint32) ir.Affine {
	return e.param(ir.Param{Name: name, Type: ir.U32, Min: float64(min), Max: float64(max)})
}

func (e *Encoder) param(p ir.Param) ir.Affine {
	i, ok := e.paramID(p)
	if !ok {
		return ir.Const(0)
	}
	return ir.Linear(0, ir.Term{Param: i, Coeff: 1})
}

func (e *Encoder) paramID(p ir.Param) (ir.ParamID, bool) {
	if i, ok := e.g.ParamNamed(p.Name); ok {
		if p.Advance = e.g.Params[i].Advance; e.g.Params[i] != p { // see Advance
			e.fail("param $%s is a %s in [%v, %v] already, not a %s in [%v, %v]", ir.QuoteName(p.Name), e.g.Params[i].Type, e.g.Params[i].Min, e.g.Params[i].Max, p.Type, p.Min, p.Max)
		}
		return i, true
	}
	if !e.valid(&ir.Graph{Params: []ir.Param{p}}) {
		return 0, false
	}
	e.g.Params = append(e.g.Params, p)
	i := e.values.add(p)
	e.renewTracker()
	return i, true
}

// Require adds the constraint lhs ≤ max, which every replay checks.
func (e *Encoder) Require(lhs ir.Affine, max int64) {
	c := ir.Constraint{LHS: lhs.AddConst(-lhs.Const), Max: max - lhs.Const}
	for _, have := range e.g.Constraints {
		if have.Max == c.Max && have.LHS.Equal(c.LHS) {
			return
		}
	}
	if !e.valid(&ir.Graph{Params: e.g.Params, Constraints: append(slices.Clone(e.g.Constraints), c)}) {
		return
	}
	e.g.Constraints = append(e.g.Constraints, c)
	e.renewTracker()
}

// SetParam sets the value of a param for the recordings that are executed from now on. It
// may be called only between two recordings, because a recording has one value of each
// param. An f32 param gets the f32 nearest to v.
func (e *Encoder) SetParam(name string, v float64) {
	if e.err != nil {
		return
	}
	i, ok := e.g.ParamNamed(name)
	value := v
	if ok && e.g.Params[i].Type == ir.F32 {
		value = float64(float32(v)) // the bounds are f32 values too
	}
	switch {
	case e.on == nil:
		e.fail("SetParam %s: nothing is executed here, so a param has no value: give the value to the replay", ir.QuoteName(name))
	case !ok:
		e.fail("there is no param $%s", ir.QuoteName(name))
	case len(e.g.Nodes) > 0 || len(e.device.pending) > 0:
		e.fail("param $%s can change between two recordings only: Finish first", ir.QuoteName(name))
	case !(value >= e.g.Params[i].Min && value <= e.g.Params[i].Max):
		p := &e.g.Params[i]
		e.fail("param $%s = %s is outside its bound [%s, %s]", ir.QuoteName(name), p.Format(v), p.Format(p.Min), p.Format(p.Max))
	case e.g.Params[i].Type == ir.U32 && v != math.Trunc(v):
		e.fail("param $%s = %v is not a %s", ir.QuoteName(name), v, e.g.Params[i].Type)
	default:
		e.values.give(i, paramBits(e.g.Params[i], value))
	}
}

func paramBits(p ir.Param, v float64) uint32 {
	if p.Type == ir.F32 {
		return math.Float32bits(float32(v))
	}
	return uint32(v)
}

// paramValues holds the values of params for what is executed, as 32 bits each.
type paramValues struct {
	bits []uint32
	set  []bool
}

// add adds a param. A param that can have only one value is set to it.
func (v *paramValues) add(p ir.Param) ir.ParamID {
	v.bits, v.set = append(v.bits, paramBits(p, p.Min)), append(v.set, p.Min == p.Max)
	return ir.ParamID(len(v.bits) - 1)
}

func (v *paramValues) give(i ir.ParamID, bits uint32) { v.bits[i], v.set[i] = bits, true }

// check returns an error if a param of g has no value, or if the values break a constraint.
func (v *paramValues) check(g *ir.Graph) error {
	for i, p := range g.Params {
		if !v.set[i] {
			return fmt.Errorf("param $%s has no value: SetParam before the recording (it is a %s in [%v, %v])", ir.QuoteName(p.Name), p.Type, p.Min, p.Max)
		}
	}
	for _, c := range g.Constraints {
		if x := c.LHS.Eval(v.bits); x > c.Max {
			return fmt.Errorf("params break the constraint %s <= %d: the left side is %d", g.FormatAffine(c.LHS), c.Max, x)
		}
	}
	return nil
}
