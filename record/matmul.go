package record

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// Embed looks up rows of a table [N, K]: row i of the result is row ids[i] of the table.
// ids are i32 or u32 of any shape, and the result is f32 [number of ids, K].
func (r *Session) Embed(ids Tensor, table Matrix, o ...Option) Tensor {
	if t := ids.DType; t == ir.U32 {
		ids.DType = ir.I32 // the kernel reads i32, and an index from Argmax fits
	}
	if !r.dense("embed", ids, ir.I32) || !r.matrix("embed", table) {
		return r.broken(ir.F32, 2)
	}
	n, k := table.dims()
	rows := ids.Elements()
	shape := []ir.Affine{rows, ir.Const(k)}
	y := r.result("embed", o, ir.F32, shape)
	c := call{
		op: "embed", kind: ir.Threads,
		grid: [3]ir.Extent{ir.Ext(k), {Num: rows, Div: 1}, ir.Ext(1)}, group: [3]uint32{uint32(min(k, 256)), 1, 1},
	}
	if q, blocks := table.Q, table.GGML; blocks != nil {
		c.function = ggmlFormats[blocks.Format].embed
		c.args = []arg{buf(0, ids), buf(1, blocks.Blocks), buf(2, y), val(3, int32(k)), val(4, int32(n))}
	} else if q != nil {
		c.function = r.spell("affine_embed_float_gs_%d_b_%d", q.Group, q.Bits)
		c.args = []arg{buf(0, ids), buf(1, q.W), buf(2, q.Scales), buf(3, q.Biases), buf(4, y), val(5, int32(k)), val(6, int32(n))}
	} else {
		c.function = "embed_float32"
		if table.Dense.DType == ir.F16 {
			c.function = "embed_float16"
		}
		c.args = []arg{buf(0, ids), buf(1, table.Dense), buf(2, y), val(3, int32(k)), val(4, int32(n))}
	}
	r.dispatch(c, o, c.args...)
	return y
}

// Matmul computes x·Wᵀ for rows x [..., K] in f32 and a matrix W [N, K]. The result is
// f32 [..., N]. As in MLX, few rows take a matrix-vector kernel and more rows a
// matrix-matrix kernel (docs/kernels.md).
func (r *Session) Matmul(x Tensor, w Matrix, o ...Option) Tensor {
	if w.GGML != nil {
		return r.MatmulGGML(x, *w.GGML, o...)
	}
	if !r.dense("matmul", x, ir.F32) || !r.matrix("matmul", w) {
		return r.broken(ir.F32, max(x.Rank(), 1))
	}
	n, k := w.dims()
	if got := r.last("matmul", x); got != k {
		r.fail("matmul: rows of %d elements times a matrix [%d, %d]", got, n, k)
	}
	shape := r.shapes.Take(x.Rank())
	copy(shape, x.Shape[:x.Rank()-1])
	shape[x.Rank()-1] = ir.Const(n)
	rows := r.rows(x)
	single := rows.IsConst() && rows.Const == 1
	switch {
	case w.Q != nil && rows.IsConst() && rows.Const < qmvLimit:
		return r.qmv(x, w.Q, shape, rows, o)
	case w.Q != nil:
		return r.qmm(x, w.Q, shape, rows, o)
	case single:
		return r.gemv(x, w.Dense, shape, n, k, o)
	}
	return r.gemm(x, w.Dense, shape, n, k, rows, o)
}

// qmvLimit is the number of rows from which on MLX takes qmm_t in place of qmv. MLX's
// number depends on the chip and the matrix; this one is for older chips and matrices of
// up to 2048 × 2048 (docs/kernels.md has the whole table).
const qmvLimit = 6

func (r *Session) qmv(x Tensor, w *QTensor, shape []ir.Affine, rows ir.Affine, o []Option) Tensor {
	y := r.result("quantized_matmul", o, ir.F32, shape)
	// MLX 0.32.4 takes qmv_fast wherever K is a multiple of what one simdgroup reads in a
	// step. It has a variant for N that is not a multiple of 8 (pr_1), which the kernel
	// library lacks, so qmv_fast is taken only if N is a multiple of 8.
	step, name := int64(512), "affine_qmv_float_gs_%d_b_%d_batch_0_pr_0_hgs_0_r_4"
	if w.Bits == 8 {
		step = 256
	}
	if w.K%step == 0 && w.N%8 == 0 {
		name = "affine_qmv_fast_float_gs_%d_b_%d_batch_0_pr_0_hgs_0_r_4"
	}
	r.dispatch(call{
		op: "quantized_matmul", function: r.spell(name, w.Group, w.Bits),
		grid: [3]ir.Extent{{Num: rows, Div: 1}, ir.Ext((w.N + 7) / 8), ir.Ext(1)}, group: [3]uint32{32, 2, 1},
	}, o,
		buf(0, w.W), buf(1, w.Scales), buf(2, w.Biases), buf(3, x), buf(4, y), val(5, int32(w.K)), val(6, int32(w.N)))
	return y
}

func (r *Session) qmm(x Tensor, w *QTensor, shape []ir.Affine, rows ir.Affine, o []Option) Tensor {
	y := r.result("quantized_matmul", o, ir.F32, shape)
	name := "affine_qmm_t_float_gs_%d_b_%d_alN_false_batch_0"
	if w.N%32 == 0 {
		name = "affine_qmm_t_float_gs_%d_b_%d_alN_true_batch_0"
	}
	r.dispatch(call{
		op: "quantized_matmul", function: r.spell(name, w.Group, w.Bits),
		grid: [3]ir.Extent{ir.Ext((w.N + 31) / 32), {Num: rows, Div: 32}, ir.Ext(1)}, group: [3]uint32{32, 2, 2},
	}, o,
		buf(0, w.W), buf(1, w.Scales), buf(2, w.Biases), buf(3, x), buf(4, y), val(5, int32(w.K)), val(6, int32(w.N)), i32(7, rows))
	return y
}

// gemv chooses the tiles that MLX chooses for a row-contiguous matrix.
func (r *Session) gemv(x, w Tensor, shape []ir.Affine, n, k int64, o []Option) Tensor {
	y := r.result("matmul", o, ir.F32, shape)
	if w.DType == ir.F16 {
		r.dispatch(call{
			op: "matmul", function: "gemv_float16_float32",
			grid: [3]ir.Extent{ir.Ext((n + 7) / 8), ir.Ext(1), ir.Ext(1)}, group: [3]uint32{32, 2, 1},
		}, o,
			buf(0, w), buf(1, x), buf(2, y), val(3, int32(k)), val(4, int32(n)))
		return y
	}
	t := routes.GemvTile(k, n)
	r.dispatch(call{
		op:       "matmul",
		function: r.spell("gemv_float32_bm%d_bn%d_sm%d_sn%d_tm%d_tn%d_nc0_axpby0", t.BM, t.BN, t.SM, t.SN, t.TM, t.TN),
		grid:     [3]ir.Extent{ir.Ext((n + t.Results - 1) / t.Results), ir.Ext(1), ir.Ext(1)},
		group:    [3]uint32{32, uint32(t.BN), uint32(t.BM)},
	}, o,
		buf(0, w), buf(1, x), buf(3, y), val(4, int32(k)), val(5, int32(n)), val(6, int32(k)), val(11, int64(0)), val(12, int64(0)))
	return y
}

func (r *Session) gemm(x, w Tensor, shape []ir.Affine, n, k int64, rows ir.Affine, o []Option) Tensor {
	y := r.result("matmul", o, ir.F32, shape)
	function := "gemm_nt_float32"
	if w.DType == ir.F16 {
		function = "gemm_nt_float16_float32"
	}
	r.dispatch(call{
		op: "matmul", function: function,
		grid: [3]ir.Extent{ir.Ext((n + 31) / 32), {Num: rows, Div: 32}, ir.Ext(1)}, group: [3]uint32{32, 2, 2},
	}, o,
		buf(0, x), buf(1, w), buf(2, y), val(3, int32(k)), val(4, int32(n)), i32(5, rows))
	return y
}
