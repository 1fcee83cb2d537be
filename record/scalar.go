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
// may differ from replay to replay. Unlike [Session.Param] it stands in no shape
// and no offset.
func (r *Session) ParamF32(name string, min, max float32) Scalar {
	return Scalar{param: ir.Linear(0, ir.Term{Param: r.b.ParamF32(name, min, max), Coeff: 1})}
}

func (s Scalar) bind(slot uint8) ir.Binding {
	if s.param.IsConst() {
		return val(slot, s.value)
	}
	return ir.ScalarArg(slot, ir.F32, s.param)
}

// StateFrom adds a state, as [Session.State], that is init before the first
// replay: ir.FillU32(math.Float32bits(1)) for ones, ir.Init{Kind:
// ir.InitRandom, Seed: 1} for f32 numbers in [−1, 1).
func (r *Session) StateFrom(name string, init ir.Init, t ir.DType, shape ...int64) Tensor {
	return r.memory(ir.Memory{Name: name, Kind: ir.State, DType: t, Shape: shape, Init: init})
}
