package record

import (
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// Softmax computes exp(x − max) / Σ exp(x − max) for each row of x [..., K], in f32, with
// the row's maximum and sum.
func (r *Session) Softmax(x Tensor, o ...Option) Tensor {
	if !r.dense("softmax", x, ir.F32) {
		return r.broken(ir.F32, x.Rank())
	}
	k := r.last("softmax", x)
	y := r.result("softmax", o, ir.F32, x.Shape)
	function := "block_softmax_float32"
	threads, looped := routes.RowThreads("softmax", k)
	if looped {
		function = "looped_softmax_float32"
	}
	group := uint32(threads)
	r.dispatch(call{
		op: "softmax", function: function,
		kind: ir.Threads, grid: rowGroups(r.rows(x), group), group: [3]uint32{group, 1, 1},
	}, o,
		buf(0, x), buf(1, y), val(2, int32(k)))
	return y
}

// Gelu computes 0.5·x·(1 + tanh(√(2/π)·x·(1 + 0.044715·x²))) in f32. This approximation is
// what ggml and most models call gelu; [Session.GeluErf] is exact.
func (r *Session) Gelu(x Tensor, o ...Option) Tensor {
	return r.unary("gelu", "v_Gelufloat32float32", x, o)
}

// GeluErf computes x·(1 + erf(x/√2)) / 2 in f32, the definition of gelu.
func (r *Session) GeluErf(x Tensor, o ...Option) Tensor {
	return r.unary("gelu_erf", "v_GeluErffloat32float32", x, o)
}

// Softcap computes cap·tanh(x/cap) in f32, which keeps x within ±cap. cap is finite and
// above 0.
func (r *Session) Softcap(x Tensor, cap float32, o ...Option) Tensor {
	if !(cap > 0) || math.IsInf(float64(cap), 0) {
		r.fail("softcap: the cap is %v, want a finite number above 0", cap)
	}
	if !r.dense("softcap", x, ir.F32) {
		return r.broken(ir.F32, x.Rank())
	}
	y := r.result("softcap", o, ir.F32, x.Shape)
	grid, group := threads1(x.Elements())
	r.dispatch(call{
		op: "softcap", function: "v_Softcapfloat32float32",
		kind: ir.Threads, grid: grid, group: group,
	}, o,
		buf(0, x), buf(1, y), val(3, cap))
	return y
}
