package record

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// GGMLFormat is a block format of GGML: how the weights of a matrix lie in a GGUF
// file. The layouts are those of ggml-common.h, block_q4_0 and so on.
type GGMLFormat uint8

// The formats that the kernel library has. In the formulas, d is an f16 of the block,
// code is the integer that is stored for a weight, and scale is an i8.
const (
	Q4_0 GGMLFormat = iota + 1 // a block of 18 bytes has 32 weights d·(code − 8), with codes of 4 bits
	Q8_0                       // a block of 34 bytes has 32 weights d·code, with signed codes of 8 bits
	Q6_K                       // a block of 210 bytes has 256 weights d·scale·(code − 32), with codes of 6 bits and a scale for each 16 weights
)

var ggmlFormats = [...]struct {
	name           string
	weights, bytes int64 // in one block
}{Q4_0: {"q4_0", 32, 18}, Q8_0: {"q8_0", 32, 34}, Q6_K: {"q6_K", 256, 210}}

func (f GGMLFormat) known() bool { return f >= Q4_0 && f <= Q6_K }

// String returns the name as GGML spells it.
func (f GGMLFormat) String() string {
	if !f.known() {
		return fmt.Sprintf("GGMLFormat(%d)", f)
	}
	return ggmlFormats[f].name
}

// RowBytes returns the size in bytes of a row of k weights, or 0 if k weights are not
// a whole number of blocks.
func (f GGMLFormat) RowBytes(k int64) int64 {
	if !f.known() || k < 1 || k%ggmlFormats[f].weights != 0 {
		return 0
	}
	return k / ggmlFormats[f].weights * ggmlFormats[f].bytes
}

// GGMLMatrix is a matrix [N, K] in a block format, byte for byte as in a GGUF file, or
// several such matrices one after another.
type GGMLMatrix struct {
	Format GGMLFormat
	Blocks Tensor // u8: N rows of Format.RowBytes(K) bytes, one after another, in any shape
	N, K   int64
}

func (m GGMLMatrix) String() string { return fmt.Sprintf("%s [%d, %d]", m.Format, m.N, m.K) }

// stackGGML returns how many matrices the blocks of w hold. If they are not a whole
// number of matrices, it reports the mistake, and ok is false.
func (r *Session) stackGGML(op string, w GGMLMatrix) (count int64, ok bool) {
	row := w.Format.RowBytes(w.K)
	if row == 0 || w.N < 1 {
		r.fail("%s: there can be no matrix %s: want q4_0 or q8_0 with K a multiple of 32, or q6_K with K a multiple of 256", op, w)
		return 0, false
	}
	bytes := w.Blocks.Elements()
	if w.Blocks.DType != ir.U8 || !w.Blocks.contiguous() || !bytes.IsConst() || bytes.Const < w.N*row || bytes.Const%(w.N*row) != 0 {
		r.fail("%s: the blocks of %s are %s%s: want row-contiguous u8, %d bytes a matrix (%d rows of %d)",
			op, w, w.Blocks.DType, r.format(w.Blocks.Shape), w.N*row, w.N, row)
		return 0, false
	}
	if !even(w.Blocks.Off) {
		r.fail("%s: the blocks of %s%s begin at byte %s of their memory: want an even offset, because f16 numbers are read from them",
			op, w, r.format(w.Blocks.Shape), r.g.FormatAffine(w.Blocks.Off))
		return 0, false
	}
	return bytes.Const / (w.N * row), true
}

// even reports whether x is even for all values of its params.
func even(x ir.Affine) bool {
	for _, t := range x.Terms() {
		if t.Coeff%2 != 0 {
			return false
		}
	}
	return x.Const%2 == 0
}

// MatmulGGML computes x·Wᵀ for rows x [..., K] in f32 and a matrix W [N, K] in a block
// format, which is not repacked. The result is f32 [..., N]. The whole matrix is read
// again for each row, so this is meant for few rows.
func (r *Session) MatmulGGML(x Tensor, w GGMLMatrix, o ...Option) Tensor {
	const op = "quantized_matmul_ggml"
	count, ok := r.stackGGML(op, w)
	switch {
	case !ok:
		return x
	case count != 1:
		r.fail("%s: the blocks of %s hold %d matrices: want one", op, w, count)
		return x
	case x.DType != ir.F32 || x.Rank() < 1 || !x.contiguous() || r.last(op, x) != w.K:
		r.fail("%s: %s%s times %s: want row-contiguous f32 rows of %d", op, x.DType, r.format(x.Shape), w, w.K)
		return x
	}
	shape := r.shapes.Take(x.Rank())
	copy(shape, x.Shape[:x.Rank()-1])
	shape[x.Rank()-1] = ir.Const(w.N)
	y := r.result(op, o, ir.F32, shape)
	r.dispatch(call{
		op: op, function: ggmlKernels[w.Format].rows,
		grid: [3]ir.Extent{ir.Ext((w.N + 7) / 8), {Num: r.rows(x), Div: 1}, ir.Ext(1)}, group: [3]uint32{32, 2, 1},
	}, o,
		buf(0, w.Blocks), buf(1, x), buf(2, y), val(3, int32(w.K)), val(4, int32(w.N)))
	return y
}

// GatherMatmulGGML is [Session.GatherMatmul] for matrices in a block format:
// y[t, j] = experts[ids[t, j]] · x[t] for x [T, K], and
// experts[ids[t, j]] · x[t, j] for x [T, k, K]. x is f32, experts.Blocks holds the
// matrices one after another, ids are u32 [T, k], and the result is f32 [T, k, N].
//
// If an id is outside the stack, its row of the result is NaN, and no matrix is read.
func (r *Session) GatherMatmulGGML(x Tensor, experts GGMLMatrix, ids Tensor, o ...Option) Tensor {
	const op = "quantized_matmul_id_ggml"
	w := experts
	count, ok := r.stackGGML(op, w)
	if !ok {
		return x
	}
	if ids.DType != ir.U32 || ids.Rank() != 2 || !ids.Shape[1].IsConst() || !ids.contiguous() {
		r.fail("%s: ids are %s%s: want row-contiguous u32 [T, k], k constant", op, ids.DType, r.format(ids.Shape))
		return x
	}
	rows, slots := ids.Shape[0], ids.Shape[1].Const
	shared := x.Rank() == 2
	fits := (shared || x.Rank() == 3 && x.Shape[1].Equal(ids.Shape[1])) && x.Shape[0].Equal(rows)
	if !fits || x.DType != ir.F32 || !x.contiguous() || r.last(op, x) != w.K {
		r.fail("%s: %s%s with ids %s times %d matrices %s: want row-contiguous f32 [T, %d] or [T, k, %d]",
			op, x.DType, r.format(x.Shape), r.format(ids.Shape), count, w, w.K, w.K)
		return x
	}
	row, slot := slots*w.K, w.K
	if shared {
		row, slot = w.K, 0
	}
	shape := r.shapes.Take(3)
	shape[0], shape[1], shape[2] = rows, ids.Shape[1], ir.Const(w.N)
	y := r.result(op, o, ir.F32, shape)
	r.dispatch(call{
		op: op, function: ggmlKernels[w.Format].experts,
		grid: [3]ir.Extent{ir.Ext((w.N + 7) / 8), ir.Ext(slots), {Num: rows, Div: 1}}, group: [3]uint32{32, 2, 1},
	}, o,
		buf(0, w.Blocks), buf(1, x), buf(2, ids), buf(3, y), val(4, int32(w.K)), val(5, int32(w.N)), val(6, int32(count)), val(7, row, slot))
	return y
}

var ggmlKernels = [...]struct{ rows, experts string }{
	Q4_0: {"ggml_mul_mv_q4_0_f32", "ggml_mul_mv_id_q4_0_f32"},
	Q8_0: {"ggml_mul_mv_q8_0_f32", "ggml_mul_mv_id_q8_0_f32"},
	Q6_K: {"ggml_mul_mv_q6_K_f32", "ggml_mul_mv_id_q6_K_f32"},
}
