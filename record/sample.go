package record

import "github.com/mlxc/mlxc/ir"

// Sampling says how [Session.Sample] draws.
type Sampling struct {
	Temp Scalar // below 1e-30, such as 0: always the index of the max, as Argmax finds it
	TopP Scalar // draw only from the likeliest elements with this total probability; 1: from all
	// SeedLow and SeedHigh are the halves of a 64-bit seed, and Position is the position of the token to draw. With
	// the row's number, they alone determine the random number.
	SeedLow, SeedHigh, Position ir.Affine
}

// Sample draws an index from each row of logits x [..., K] in f32, f16 or bf16; the result is u32 [...], or u32 [1] if x has
// one dimension. For equal bits of x the drawn index is the same on every device: msl/sample.metal
// defines it, and cpu.Sample computes it on the host.
func (r *Session) Sample(x Tensor, s Sampling, o ...Option) Tensor {
	if !r.floats("sample", x) || !r.dense("sample", x, x.DType) {
		return r.broken(ir.U32, max(x.Rank()-1, 1))
	}
	k := r.last("sample", x)
	shape := x.Shape[:x.Rank()-1]
	if len(shape) == 0 {
		shape = Dims(1)
	}
	y := r.result("sample", o, ir.U32, shape)
	number := func(slot uint8, a ir.Affine) arg {
		if a.IsConst() {
			return val(slot, uint32(a.Const))
		}
		return arg{slot: slot, kind: ir.BindScalar, number: ir.U32, expr: a}
	}
	r.dispatch(call{
		op: "sample", function: "sample_" + floatNames[x.DType],
		kind: ir.Threadgroups, grid: [3]ir.Extent{{Num: r.rows(x), Div: 1}, ir.Ext(1), ir.Ext(1)}, group: [3]uint32{uint32(min(1024, (k+31)/32*32)), 1, 1},
	}, o,
		buf(0, x), buf(1, y), s.Temp.bind(2), s.TopP.bind(3), number(4, s.SeedLow), number(5, s.SeedHigh), number(6, s.Position), val(7, uint32(k)))
	return y
}
