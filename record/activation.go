package record

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// Softmax computes exp(x − max) / Σ exp(x − max) for each row of x [..., K], which is f32, f16 or bf16, with
// the row's maximum and sum. It computes in f32: MLX's softmax with precise set.
func (r *Session) Softmax(x Tensor, o ...Option) Tensor {
	if !r.floats("softmax", x) {
		return r.broken(x.DType, x.Rank())
	}
	r.last("softmax", x)
	return r.send(operation{name: "softmax"}, o, tensors(x), nil, func(e *encoder, a arrays) array {
		return e.Softmax(a[0], true)
	})
}

// Gelu computes 0.5·x·(1 + tanh(√(2/π)·x·(1 + 0.044715·x²))). This approximation is
// what ggml and most models call gelu; [Session.GeluErf] is exact. f16 and bf16 are computed as MLX's nn.gelu_approx,
// each of whose operations rounds to the type.
func (r *Session) Gelu(x Tensor, o ...Option) Tensor {
	return r.unary("gelu", "Gelu", x, o)
}

// GeluErf computes x·(1 + erf(x/√2)) / 2, the definition of gelu: MLX's nn.gelu, each of whose operations rounds to the
// type of x, f32, f16 or bf16.
func (r *Session) GeluErf(x Tensor, o ...Option) Tensor {
	return r.unary("gelu_erf", "GeluErf", x, o)
}

// Softcap computes cap·tanh(x/cap), which keeps x within ±cap. cap is finite and
// above 0. x is f32, f16 or bf16; as in MLX, cap is rounded to its type, and so is what each operation makes.
func (r *Session) Softcap(x Tensor, cap float32, o ...Option) Tensor {
	if !(cap > 0) || math.IsInf(float64(cap), 0) {
		r.fail("softcap: the cap is %v, want a finite number above 0", cap)
	}
	if !r.floats("softcap", x) || !r.dense("softcap", x, x.DType) {
		return r.broken(x.DType, x.Rank())
	}
	y, of := r.result("softcap", o, x.DType, x.Shape), floatNames[x.DType]
	grid, group := threads1(x.Elements())
	r.dispatch(call{
		op: "softcap", function: "v_Softcap" + of + of,
		kind: ir.Threads, grid: grid, group: group,
	}, o,
		buf(0, x), buf(1, y), val(3, cap))
	return y
}
