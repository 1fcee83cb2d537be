package record

import "github.com/mlxc/mlxc/ir"

// Scalar is an f32 operand of an operation: a number, or a param that the host
// sets before each replay.
type Scalar struct {
	value float32
	param ir.Affine // of one f32 param, or none
}

// Float is the number v.
func Float(v float32) Scalar { return Scalar{value: v} }

// ParamF32 adds an f32 param in [min, max]: a number such as a learning rate that
// may differ from replay to replay. Unlike [Encoder.Param] it stands in no shape
// and no offset.
func (e *Encoder) ParamF32(name string, min, max float32) Scalar {
	return Scalar{param: e.param(ir.Param{Name: name, Type: ir.F32, Min: float64(min), Max: float64(max)})}
}

func (s Scalar) bind(slot uint8) arg {
	if s.param.IsConst() {
		return val(slot, s.value)
	}
	return arg{slot: slot, kind: ir.BindScalar, number: ir.F32, expr: s.param}
}
