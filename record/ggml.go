package record

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// GGMLFormat is a block format of GGML: how the weights of a matrix lie in a GGUF
// file. The layouts are those of ggml-common.h, block_q4_0 and so on.
type GGMLFormat uint8

// The formats that the kernel library has. Of q5_0 and so on a block has 32 weights, of those on _K 256;
// msl/ggml.metal says what lies where.
const (
	Q4_0 GGMLFormat = iota + 1
	Q8_0
	Q6_K
	Q4_1
	Q5_0
	Q5_1
	IQ4_NL
	MXFP4
	Q2_K
	Q3_K
	Q4_K
	Q5_K
)

type ggmlFormat struct {
	name                      string
	weights, bytes            int64               // in one block
	few, many, experts, embed map[ir.DType]string // its kernels, by the type of vectors and results
}

var ggmlFormats = [...]ggmlFormat{
	Q4_0: ofGGML("q4_0", 32, 18), Q4_1: ofGGML("q4_1", 32, 20), Q5_0: ofGGML("q5_0", 32, 22), Q5_1: ofGGML("q5_1", 32, 24),
	Q8_0: ofGGML("q8_0", 32, 34), IQ4_NL: ofGGML("iq4_nl", 32, 18), MXFP4: ofGGML("mxfp4", 32, 17),
	Q2_K: ofGGML("q2_K", 256, 84), Q3_K: ofGGML("q3_K", 256, 110), Q4_K: ofGGML("q4_K", 256, 144), Q5_K: ofGGML("q5_K", 256, 176),
	Q6_K: ofGGML("q6_K", 256, 210),
}

func ofGGML(name string, weights, bytes int64) ggmlFormat {
	kernels := func(operation string) map[ir.DType]string {
		out := map[ir.DType]string{}
		for _, t := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
			out[t] = fmt.Sprintf("ggml_%s_%s_%s", operation, name, t)
		}
		return out
	}
	return ggmlFormat{name, weights, bytes, kernels("mul_mv"), kernels("mul_mm"), kernels("mul_mv_id"), kernels("get_rows")}
}

func (f GGMLFormat) known() bool { return f >= 1 && int(f) < len(ggmlFormats) }

// GGMLFormatNamed returns the format that GGML calls by this name, in capitals or not.
func GGMLFormatNamed(name string) (GGMLFormat, bool) {
	for f, g := range ggmlFormats {
		if f > 0 && strings.EqualFold(g.name, name) {
			return GGMLFormat(f), true
		}
	}
	return 0, false
}

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
	if !w.Format.known() {
		r.fail("%s: there can be no matrix %s: the format is not known", op, w)
		return 0, false
	}
	row := w.Format.RowBytes(w.K)
	if row == 0 || w.N < 1 {
		r.fail("%s: there can be no matrix %s: want N of at least 1 and K a multiple of %d", op, w, ggmlFormats[w.Format].weights)
		return 0, false
	}
	bytes := w.Blocks.Elements()
	if w.Blocks.DType != ir.U8 || !w.Blocks.contiguous() || !bytes.IsConst() || bytes.Const < w.N*row || bytes.Const%(w.N*row) != 0 {
		r.fail("%s: the blocks of %s are %s%s: want row-contiguous u8, %d bytes a matrix (%d rows of %d)",
			op, w, w.Blocks.DType, r.format(w.Blocks.Shape), w.N*row, w.N, row)
		return 0, false
	}
	if ggmlFormats[w.Format].bytes%2 == 0 && !even(w.Blocks.Off) {
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

// ggmlTileRows is the number of rows from which on tiles of a matrix in blocks are decoded, as of one in affine codes by
// MLX's routes for chips with few cores.
const ggmlTileRows = 6

// MatmulGGML computes x·Wᵀ for rows x [..., K] in f32, f16 or bf16 and a matrix W [N, K] in a
// block format, which is not repacked. The result is [..., N] of the type of x; sums are f32. Few rows take a kernel that
// reads the matrix once for each, more rows or a number that depends on params one that
// decodes tiles of it.
func (r *Session) MatmulGGML(x Tensor, w GGMLMatrix, o ...Option) Tensor {
	const op = "quantized_matmul_ggml"
	switch {
	case !r.oneGGML(op, w):
		return x
	case !x.DType.Float() || x.Rank() < 1 || !x.contiguous() || r.last(op, x) != w.K:
		r.fail("%s: %s%s times %s: want row-contiguous rows of %d in f32, f16 or bf16", op, x.DType, r.format(x.Shape), w, w.K)
		return x
	}
	shape := r.shapes.Take(x.Rank())
	copy(shape, x.Shape[:x.Rank()-1])
	shape[x.Rank()-1] = ir.Const(w.N)
	y := r.result(op, o, x.DType, shape)
	if rows := r.rows(x); rows.IsConst() && rows.Const < ggmlTileRows {
		r.dispatch(call{
			op: op, function: ggmlFormats[w.Format].few[x.DType],
			grid: [3]ir.Extent{ir.Ext((w.N + 7) / 8), {Num: rows, Div: 1}, ir.Ext(1)}, group: [3]uint32{32, 2, 1},
		}, o,
			buf(0, w.Blocks), buf(1, x), buf(2, y), val(3, int32(w.K)), val(4, int32(w.N)))
	} else {
		r.dispatch(call{
			op: op, function: ggmlFormats[w.Format].many[x.DType],
			grid: [3]ir.Extent{ir.Ext((w.N + 31) / 32), {Num: rows, Div: 32}, ir.Ext(1)}, group: [3]uint32{32, 2, 2},
		}, o,
			buf(0, x), buf(1, w.Blocks), buf(2, y), val(3, int32(w.K)), val(4, int32(w.N)), i32(5, rows))
	}
	return y
}

// oneGGML reports whether w is one matrix, and a mistake if it is not.
func (r *Session) oneGGML(op string, w GGMLMatrix) bool {
	count, ok := r.stackGGML(op, w)
	if ok && count != 1 {
		r.fail("%s: the blocks of %s hold %d matrices: want one", op, w, count)
	}
	return ok && count == 1
}

// GatherMatmulGGML is [Session.GatherMatmul] for matrices in a block format:
// y[t, j] = experts[ids[t, j]] · x[t] for x [T, K], and
// experts[ids[t, j]] · x[t, j] for x [T, k, K]. x is f32, f16 or bf16, experts.Blocks holds
// the matrices one after another, ids are u32 [T, k], and the result is [T, k, N] of the type of x.
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
	if !fits || !x.DType.Float() || !x.contiguous() || r.last(op, x) != w.K {
		r.fail("%s: %s%s with ids %s times %d matrices %s: want row-contiguous [T, %d] or [T, k, %d] in f32, f16 or bf16",
			op, x.DType, r.format(x.Shape), r.format(ids.Shape), count, w, w.K, w.K)
		return x
	}
	row, slot := slots*w.K, w.K
	if shared {
		row, slot = w.K, 0
	}
	shape := r.shapes.Take(3)
	shape[0], shape[1], shape[2] = rows, ids.Shape[1], ir.Const(w.N)
	y := r.result(op, o, x.DType, shape)
	r.dispatch(call{
		op: op, function: ggmlFormats[w.Format].experts[x.DType],
		grid: [3]ir.Extent{ir.Ext((w.N + 7) / 8), ir.Ext(slots), {Num: rows, Div: 1}}, group: [3]uint32{32, 2, 1},
	}, o,
		buf(0, w.Blocks), buf(1, x), buf(2, ids), buf(3, y), val(4, int32(w.K)), val(5, int32(w.N)), val(6, int32(count)), val(7, row, slot))
	return y
}
