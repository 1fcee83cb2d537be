package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// Embed looks up rows of a table [N, K]: row i of the result is row ids[i] of the table.
// ids are i32 or u32 of any shape, and the result is [number of ids, K]: of the type of a quantized table's scales or of
// a dense table, but f32 of a dense table in f16, whose rows [Session.EmbedNarrow] leaves as they are, and of a table in
// blocks, whose rows [Session.EmbedGGML] makes in other types.
func (r *Session) Embed(ids Tensor, table Matrix, o ...Option) Tensor {
	t := ir.F32
	switch {
	case table.Q != nil:
		t = table.Q.Scales.DType
	case table.Dense.DType == ir.BF16:
		t = ir.BF16
	}
	return r.embed(ids, table, t, o)
}

// EmbedNarrow is [Session.Embed] of a dense table in f16 or bf16, whose type the result has.
func (r *Session) EmbedNarrow(ids, table Tensor, o ...Option) Tensor {
	if t := table.DType; r.err == nil && t != ir.F16 && t != ir.BF16 {
		r.fail("embed: a table of %s: want f16 or bf16", t)
	}
	return r.embed(ids, Dense(table), table.DType, o)
}

// EmbedGGML is [Session.Embed] of a table in a block format, with rows in f32, f16 or bf16: weights are decoded in f32 and
// rounded.
func (r *Session) EmbedGGML(ids Tensor, table GGMLMatrix, t ir.DType, o ...Option) Tensor {
	if r.err == nil && !t.Float() {
		r.fail("embed: rows in %s of %s: want f32, f16 or bf16", t, table)
	}
	return r.embed(ids, Blocks(table), t, o)
}

func (r *Session) embed(ids Tensor, table Matrix, t ir.DType, o []Option) Tensor {
	if t := ids.DType; t == ir.U32 {
		ids.DType = ir.I32 // the kernel reads i32, and an index from Argmax fits
	}
	if !r.dense("embed", ids, ir.I32) || !r.matrix("embed", table, t) {
		return r.broken(t, 2)
	}
	n, k := table.dims()
	rows := ids.Elements()
	shape := []ir.Affine{rows, ir.Const(k)}
	y := r.result("embed", o, t, shape)
	c := call{
		op: "embed", kind: ir.Threads,
		grid: [3]ir.Extent{ir.Ext(k), {Num: rows, Div: 1}, ir.Ext(1)}, group: groupAlong(ir.Const(k)),
	}
	if q, blocks := table.Q, table.GGML; blocks != nil {
		c.function = ggmlFormats[blocks.Format].embed[t]
		c.args = []arg{buf(0, ids), buf(1, blocks.Blocks), buf(2, y), val(3, int32(k)), val(4, int32(n))}
	} else if q != nil {
		c.function = fmt.Sprintf("affine_embed_%s_gs_%d_b_%d", routes.TypeName(t), q.Group, q.Bits)
		c.args = []arg{buf(0, ids), buf(1, q.W), buf(2, q.Scales), buf(3, q.Biases), buf(4, y), val(5, int32(k)), val(6, int32(n))}
	} else {
		c.function = "embed_" + floatNames[table.Dense.DType]
		if t != ir.F32 {
			c.function += "_" + floatNames[t]
		}
		c.args = []arg{buf(0, ids), buf(1, table.Dense), buf(2, y), val(3, int32(k)), val(4, int32(n))}
	}
	r.dispatch(c, o, c.args...)
	return y
}

// Matmul computes x·Wᵀ for rows x [..., K] and a matrix W [N, K]. The result is [..., N], of x's type, which is also that
// of W or of its scales and biases; only a dense W may be f16 where x is f32. As in MLX, few rows take a matrix-vector
// kernel and more rows a matrix-matrix kernel (docs/kernels.md).
func (r *Session) Matmul(x Tensor, w Matrix, o ...Option) Tensor {
	if w.GGML != nil {
		return r.MatmulGGML(x, *w.GGML, o...)
	}
	if !r.floats("matmul", x) || !r.matrix("matmul", w, x.DType) {
		return r.broken(x.DType, max(x.Rank(), 1))
	}
	n, k := w.dims()
	if got := r.last("matmul", x); got != k {
		r.fail("matmul: rows of %d elements times a matrix [%d, %d]", got, n, k)
	}
	shape := r.shapes.Take(x.Rank())
	copy(shape, x.Shape[:x.Rank()-1])
	shape[x.Rank()-1] = ir.Const(n)
	if x.Rank() == 1 {
		x = x.Reshape(ir.Const(1), ir.Const(k))
	}
	if q := w.Q; q != nil {
		in := tensors(x, q.W.Reshape(Dims(n, k*q.Bits/32)...), q.Scales.Reshape(Dims(n, k/q.Group)...), q.Biases.Reshape(Dims(n, k/q.Group)...))
		a := operation{name: "quantized_matmul", numbers: [5]uint64{uint64(q.Bits), uint64(q.Group)}}
		return r.send(a, o, in, shape, func(e *encoder, a arrays) array {
			m := routes.Matrix{Codes: a[1], Scales: a[2], Biases: a[3], Affine: routes.Affine{Bits: q.Bits, Group: q.Group}, Transposed: true}
			return e.QuantizedMatmul(a[0], m)
		})
	}
	rows := r.rows(x)
	mlx := w.Dense.DType == x.DType && rows.Equal(ir.Const(1)) && k > 1 && n > 1 // our library has MLX's kernel
	compiled := x.DType != ir.F32 && r.compiled != nil && !mlx                   // a compiled library's comes first
	if compiled {
		mlx = rows.IsConst()
	}
	if !mlx {
		return r.gemm(x, w.Dense, shape, n, k, rows, o)
	}
	return r.send(operation{name: "matmul", exact: compiled}, o, tensors(x, w.Dense.Transpose(0, 1)), shape, func(e *encoder, a arrays) array {
		return e.Matmul(a[0], a[1])
	})
}

// gemm multiplies rows by kernels of our own, where our library has none of MLX's: MLX has no kernel for rows of f32 and
// a matrix of f16. Its kernels for many rows take no number of rows that depends on params. Those for rows of one element
// (gemv_t) and for a matrix of one row are not in our library. In 16 bits [Session.Matmul] takes a compiled library's first.
func (r *Session) gemm(x, w Tensor, shape []ir.Affine, n, k int64, rows ir.Affine, o []Option) Tensor {
	y := r.result("matmul", o, x.DType, shape)
	function := "gemm_nt_" + floatNames[x.DType]
	switch mixed := w.DType != x.DType; {
	case mixed && rows.Equal(ir.Const(1)):
		r.dispatch(call{
			op: "matmul", function: "gemv_float16_float32",
			grid: [3]ir.Extent{ir.Ext((n + 7) / 8), ir.Ext(1), ir.Ext(1)}, group: [3]uint32{32, 2, 1},
		}, o,
			buf(0, w), buf(1, x), buf(2, y), val(3, int32(k)), val(4, int32(n)))
		return y
	case mixed:
		function = "gemm_nt_float16_float32"
	}
	r.dispatch(call{
		op: "matmul", function: function,
		grid: [3]ir.Extent{ir.Ext((n + 31) / 32), {Num: rows, Div: 32}, ir.Ext(1)}, group: [3]uint32{32, 2, 2},
	}, o,
		buf(0, x), buf(1, w), buf(2, y), val(3, int32(k)), val(4, int32(n)), i32(5, rows))
	return y
}
