package record

import "github.com/mlxc/mlxc/ir"

// MatmulNN computes x·w for rows x [..., K] and a matrix w [K, N], both f32, f16 or bf16. The result is
// [..., N] of that type; sums are f32. NN is the name in BLAS for a product in which neither operand is transposed;
// [Session.Matmul] is NT. A linear layer y = x·Wᵀ takes the gradient of its output back to
// its input with this product: gx = gy·W.
func (r *Session) MatmulNN(x, w Tensor, o ...Option) Tensor {
	const op = "matmul_nn"
	k := r.last(op, x)
	if !x.DType.Float() || !x.contiguous() || !w.rowsOf(x.DType) || w.Rank() != 2 || !w.Shape[0].Equal(ir.Const(k)) {
		r.fail("%s: x %s%s times w %s%s: want contiguous [M, K] and [K, N] of one type: f32, f16 or bf16", op, x.DType, r.format(x.Shape), w.DType, r.format(w.Shape))
		return x
	}
	n := r.last(op, w)
	shape := append(append([]ir.Affine(nil), x.Shape[:x.Rank()-1]...), ir.Const(n))
	return r.gemmTransposed(op, "gemm_nn_"+floatNames[x.DType], x, w, shape, ir.Const(k), n, r.rows(x), o)
}

// MatmulTN computes xᵀ·w for x [K, M] and w [K, N], both f32, f16 or bf16: element [m, n] of the result
// is Σ_k x[k, m]·w[k, n]. The result is [M, N] of that type; sums are f32. K may depend on params. x and w may have
// more dimensions, whose product is then K. This is the gradient of the matrix of a linear
// layer y = x·Wᵀ: gW = gyᵀ·x.
func (r *Session) MatmulTN(x, w Tensor, o ...Option) Tensor {
	const op = "matmul_tn"
	m, n := r.last(op, x), r.last(op, w)
	if !x.DType.Float() || !x.contiguous() || !w.rowsOf(x.DType) || !r.rows(x).Equal(r.rows(w)) {
		r.fail("%s: x %s%s, transposed, times w %s%s: want contiguous [K, M] and [K, N] of one type: f32, f16 or bf16", op, x.DType, r.format(x.Shape), w.DType, r.format(w.Shape))
		return x
	}
	return r.gemmTransposed(op, "gemm_tn_"+floatNames[x.DType], x, w, Dims(m, n), r.rows(x), n, ir.Const(m), o)
}

func (r *Session) gemmTransposed(op, function string, x, w Tensor, shape []ir.Affine, k ir.Affine, n int64, m ir.Affine, o []Option) Tensor {
	y := r.result(op, o, x.DType, shape)
	r.dispatch(call{
		op: op, function: function,
		grid: [3]ir.Extent{ir.Ext((n + 31) / 32), {Num: m, Div: 32}, ir.Ext(1)}, group: [3]uint32{32, 2, 2},
	}, o,
		buf(0, x), buf(1, w), buf(2, y), i32(3, k), val(4, int32(n)), i32(5, m))
	return y
}
