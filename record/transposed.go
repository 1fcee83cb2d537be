package record

import "github.com/mlxc/mlxc/ir"

// MatmulNN computes x·w for rows x [M, K] and a matrix w [K, N], both f32 (BLAS
// calls it NN: no operand is transposed; [Session.Matmul] is NT). It is what
// brings the gradient of a linear layer's output back to its input: for y = x·Wᵀ,
// gx = gy·W.
func (r *Session) MatmulNN(x, w Tensor, o ...Option) Tensor {
	const op = "matmul_nn"
	k := r.last(op, x)
	if !x.rowsOf(ir.F32) || !w.rowsOf(ir.F32) || w.Rank() != 2 || !w.Shape[0].Equal(ir.Const(k)) {
		r.fail("%s: x %s%s times w %s%s: want contiguous f32 [M, K] and [K, N]", op, x.DType, r.format(x.Shape), w.DType, r.format(w.Shape))
		return x
	}
	n := r.last(op, w)
	shape := append(append([]ir.Affine(nil), x.Shape[:x.Rank()-1]...), ir.Const(n))
	return r.gemmTransposed(op, "gemm_nn_float32", x, w, shape, ir.Const(k), n, r.rows(x), o)
}

// MatmulTN computes xᵀ·w for x [K, M] and w [K, N], both f32: Σ over the K rows of
// the products of their elements. It is the gradient of a linear layer's matrix:
// for y = x·Wᵀ, gW = gyᵀ·x. K may depend on params; so may more dimensions than
// one, if both have them.
func (r *Session) MatmulTN(x, w Tensor, o ...Option) Tensor {
	const op = "matmul_tn"
	m, n := r.last(op, x), r.last(op, w)
	if !x.rowsOf(ir.F32) || !w.rowsOf(ir.F32) || !r.rows(x).Equal(r.rows(w)) {
		r.fail("%s: x %s%s, transposed, times w %s%s: want contiguous f32 [K, M] and [K, N]", op, x.DType, r.format(x.Shape), w.DType, r.format(w.Shape))
		return x
	}
	return r.gemmTransposed(op, "gemm_tn_float32", x, w, Dims(m, n), r.rows(x), n, ir.Const(m), o)
}

func (r *Session) gemmTransposed(op, function string, x, w Tensor, shape []ir.Affine, k ir.Affine, n int64, m ir.Affine, o []Option) Tensor {
	y := r.result(op, o, ir.F32, shape)
	r.dispatch(call{
		op: op, function: function,
		grid: [3]ir.Extent{ir.Ext((n + 31) / 32), {Num: m, Div: 32}, ir.Ext(1)}, group: [3]uint32{32, 2, 2},
	}, o,
		buf(0, x), buf(1, w), buf(2, y), i32(3, k), val(4, int32(n)), i32(5, m))
	return y
}
