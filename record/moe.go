package record

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// TopK returns, for each row of x [..., E] in f32, f16 or bf16, the k largest elements in
// descending order: ids has their indices, u32 [..., k], and values the elements
// themselves, [..., k] of x's type. Of equal elements the one with the lowest index comes
// first. NaN comes after all numbers. k is from 1 to E.
//
// [Into] with a u32 tensor says where the indices go, with one of x's type where the
// elements go.
func (r *Session) TopK(x Tensor, k int64, o ...Option) (ids, values Tensor) {
	if !r.floats("topk", x) || !r.dense("topk", x, x.DType) {
		return r.broken(ir.U32, x.Rank()), r.broken(x.DType, x.Rank())
	}
	e := r.last("topk", x)
	if k < 1 || k > e {
		r.fail("topk: k is %d for rows of %d elements, %s: want 1 to %d", k, e, r.format(x.Shape), e)
		return x, x
	}
	for _, option := range o {
		if t := option.into; option.given && t.DType != ir.U32 && t.DType != x.DType {
			r.fail("topk gives u32 indices and %s elements, Into has %s%s", x.DType, t.DType, r.format(t.Shape))
		}
	}
	shape := append(append([]ir.Affine(nil), x.Shape[:x.Rank()-1]...), ir.Const(k))
	ids = r.result("topk", intoOf(ir.U32, o), ir.U32, shape)
	values = r.result("topk", intoOf(x.DType, o), x.DType, shape)
	group := min(1024, (e+31)/32*32)
	r.dispatch(call{
		op: "topk", function: "topk_" + floatNames[x.DType],
		kind: ir.Threads, grid: [3]ir.Extent{{Num: r.rows(x).Scale(group), Div: 1}, ir.Ext(1), ir.Ext(1)}, group: [3]uint32{uint32(group), 1, 1},
	}, o,
		buf(0, x), buf(1, ids), buf(2, values), val(3, uint32(e)), val(4, uint32(k)))
	return ids, values
}

// intoOf returns those [Into] options whose tensor has element type t.
func intoOf(t ir.DType, options []Option) []Option {
	var out []Option
	for _, o := range options {
		if o.given && o.into.DType == t {
			out = append(out, o)
		}
	}
	return out
}

// GatherMatmul multiplies by matrices that ids pick from a stack, as a layer of a
// mixture of experts does. For x [T, K], all of a token's experts get the same row:
// y[t, j] = experts[ids[t, j]] · x[t]. For x [T, k, K], each gets a row of its own:
// y[t, j] = experts[ids[t, j]] · x[t, j]. ids are u32 [T, k] as
// [Session.TopK] gives them, and the result is [T, k, N] of the type of x.
//
// experts is a [Matrix] of three dimensions: Dense of a tensor
// [E, N, K] of the type of x, or of f16 for x of f32, or Quantized with W [E, N, K·Bits/32], Scales and Biases
// [E, N, K/Group]; or Blocks of E matrices. x is f32, f16 or bf16: with quantized experts of the type of
// their scales.
//
// If an id is E or more, its row of the result is NaN, and no matrix is read.
func (r *Session) GatherMatmul(x Tensor, experts Matrix, ids Tensor, o ...Option) Tensor {
	const op = "gather_matmul"
	if experts.GGML != nil {
		return r.GatherMatmulGGML(x, *experts.GGML, ids, o...)
	}
	typ := ir.F32
	if x.DType.Float() {
		typ = x.DType
	}
	e, n, k, ok := r.stack(op, experts, typ)
	if !ok {
		return x
	}
	if ids.Rank() != 2 || ids.DType != ir.U32 || !ids.Shape[1].IsConst() || !ids.contiguous() {
		r.fail("%s: ids are %s%s: want row-contiguous u32 [T, k], k constant", op, ids.DType, r.format(ids.Shape))
		return x
	}
	if !r.dense(op, x, typ) {
		return x
	}
	rows, slots := ids.Shape[0], ids.Shape[1].Const
	shared := x.Rank() == 2
	fits := (shared || x.Rank() == 3 && x.Shape[1].Equal(ids.Shape[1])) && x.Shape[0].Equal(rows) && x.contiguous()
	if !fits || r.last(op, x) != k {
		r.fail("%s: x %s with ids %s and matrices [%d, %d, %d]: want row-contiguous x [T, K] or [T, k, K] for ids [T, k] and matrices [E, N, K]", op, r.format(x.Shape), r.format(ids.Shape), e, n, k)
		return x
	}
	inputs := x.Shape[0] // the rows of x
	if !shared {
		inputs = inputs.Scale(slots)
	}
	if experts.Q != nil && inputs.IsConst() && inputs.Const <= countingLimit {
		return r.gatherQMV(x, experts.Q, ids, e, inputs.Const, o)
	}
	// These kernels are not MLX's. MLX has no such kernel for f16 matrices. Its kernel
	// for quantized ones takes the number of rows in an array of constants, which cannot
	// depend on params, and a list with one index for each row.
	shape := []ir.Affine{rows, ir.Const(slots), ir.Const(n)}
	y := r.result(op, o, typ, shape)
	var function string
	var args []arg
	switch q := experts.Q; {
	case q != nil:
		function = fmt.Sprintf("gather_qmv_%s_gs_%d_b_%d", routes.TypeName(typ), q.Group, q.Bits)
		args = []arg{buf(0, q.W), buf(1, q.Scales), buf(2, q.Biases)}
	case experts.Dense.DType == typ:
		function, args = "gather_gemv_"+floatNames[typ], []arg{buf(0, experts.Dense)}
	default:
		function, args = "gather_gemv_float16_float32", []arg{buf(0, experts.Dense)}
	}
	row, slot := slots*k, k
	if shared {
		row, slot = k, 0
	}
	at := uint8(len(args))
	r.dispatch(call{
		op: op, function: function,
		grid: [3]ir.Extent{ir.Ext((n + 7) / 8), ir.Ext(slots), {Num: rows, Div: 1}}, group: [3]uint32{32, 2, 1},
	}, o,
		append(args, buf(at, x), buf(at+1, ids), buf(at+2, y), val(at+3, int32(k)), val(at+4, int32(n)), val(at+5, int32(e)), val(at+6, row, slot))...)
	return y
}

// stack returns the dimensions [e, n, k] of a stack of matrices for vectors of type t. If m is not a valid
// stack, it reports the mistake, and ok is false.
func (r *Session) stack(op string, m Matrix, t ir.DType) (e, n, k int64, ok bool) {
	if q := m.Q; q != nil {
		if q.N < 1 || q.K < 1 || q.Bits < 1 || q.Group < 1 || q.K%q.Group != 0 || q.K*q.Bits%32 != 0 {
			r.fail("%s: quantized experts [%d, %d] of %d bits in groups of %d: each row must be whole groups and whole 32-bit words", op, q.N, q.K, q.Bits, q.Group)
			return 0, 0, 0, false
		}
		if q.W.DType != ir.U32 || q.Scales.DType != t || q.Biases.DType != t {
			r.fail("%s: quantized experts have codes of type %s, scales of type %s and biases of type %s: want u32, %s and %s", op, q.W.DType, q.Scales.DType, q.Biases.DType, t, t)
			return 0, 0, 0, false
		}
		if q.W.Rank() != 3 || !q.W.Shape[0].IsConst() || !q.W.contiguous() || !q.Scales.contiguous() || !q.Biases.contiguous() {
			r.fail("%s: quantized experts have codes %s, scales %s and biases %s: want row-contiguous [E, N, K·bits/32] and twice [E, N, K/group]",
				op, r.format(q.W.Shape), r.format(q.Scales.Shape), r.format(q.Biases.Shape))
			return 0, 0, 0, false
		}
		e = q.W.Shape[0].Const
		codes, groups := Dims(e, q.N, q.K*q.Bits/32), Dims(e, q.N, q.K/q.Group)
		if !equalShapes(q.W.Shape, codes) || !equalShapes(q.Scales.Shape, groups) || !equalShapes(q.Biases.Shape, groups) {
			r.fail("%s: quantized experts have codes %s, scales %s and biases %s: want %s and twice %s for %d matrices [%d, %d] of %d bits in groups of %d",
				op, r.format(q.W.Shape), r.format(q.Scales.Shape), r.format(q.Biases.Shape), r.format(codes), r.format(groups), e, q.N, q.K, q.Bits, q.Group)
			return 0, 0, 0, false
		}
		return e, q.N, q.K, true
	}
	d := m.Dense
	if d.Rank() != 3 || !d.Shape[0].IsConst() || !d.contiguous() || d.DType != t && (t != ir.F32 || d.DType != ir.F16) {
		or := ""
		if t == ir.F32 {
			or = ", or f16"
		}
		r.fail("%s: dense experts are %s%s: want row-contiguous %s [E, N, K]%s", op, d.DType, r.format(d.Shape), t, or)
		return 0, 0, 0, false
	}
	return d.Shape[0].Const, d.Shape[1].Const, d.Shape[2].Const, true
}

// gatherQMV dispatches MLX's affine_gather_qmv: a batch of matrix-vector products,
// each of which has the index of a row of x (lhs) and the index of a matrix (rhs). e is
// the number of matrices and inputs the number of rows of x. The batch has two
// dimensions, tokens and the experts of a token. Like MLX's host code, this merges
// them into one where a single stride steps through both.
func (r *Session) gatherQMV(x Tensor, w *QTensor, ids Tensor, e, inputs int64, o []Option) Tensor {
	const op = "gather_matmul"
	rows, slots := ids.Shape[0].Const, ids.Shape[1].Const
	y := r.result(op, o, x.DType, Dims(rows, slots, w.N))
	shared := x.Rank() == 2
	ndim, batch, lhs, rhs := 2, [2]int64{rows, slots}, [2]int64{1, 0}, [2]int64{slots, 1}
	if !shared || rows == 1 || slots == 1 {
		ndim, batch, lhs, rhs = 1, [2]int64{rows * slots, 1}, [2]int64{1, 0}, [2]int64{1, 0}
	}
	if shared && rows == 1 {
		lhs[0] = 0 // all experts get the one row of x
	}
	step, name := int64(512), "affine_gather_qmv"
	if w.Bits == 6 || w.Bits == 8 {
		step = 256
	}
	if w.K%step == 0 && w.N%8 == 0 {
		name = "affine_gather_qmv_fast"
	}
	words, groups := w.K*w.Bits/32, w.K/w.Group
	r.dispatch(call{
		op: op, function: fmt.Sprintf("%s_%s_gs_%d_b_%d", name, routes.TypeName(x.DType), w.Group, w.Bits),
		grid: [3]ir.Extent{ir.Ext(1), ir.Ext((w.N + 7) / 8), ir.Ext(rows * slots)}, group: [3]uint32{32, 2, 1},
	}, o,
		buf(0, w.W), buf(1, w.Scales), buf(2, w.Biases), buf(3, x), counting(4, inputs), buf(5, ids), buf(6, y), val(7, int32(w.K)), val(8, int32(w.N)),
		val(9, int32(1)), val(10, int32(inputs), int32(1), int32(w.K)), val(11, w.K, w.K, int64(1)), // x: batch dimensions, shape, strides
		val(12, int32(1)), val(13, int32(e), int32(w.N), int32(words)), val(14, w.N*words, words, int64(1)), // w: the same
		val(15, w.N*groups, groups, int64(1)), val(16, w.N*groups, groups, int64(1)), // strides of scales and biases
		val(17, int32(ndim)), val(18, int32(batch[0]), int32(batch[1])), val(19, lhs[0], lhs[1]), val(20, rhs[0], rhs[1]))
	return y
}

// countingLimit is the max number of u32 indices that can be bound inline,
// because Metal's setBytes takes at most 4 KiB.
const countingLimit = 1024

// counting binds the n indices 0, 1, …, n−1 inline, as u32.
func counting(slot uint8, n int64) arg {
	data := make([]byte, 0, 4*n)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, uint32(i))
	}
	return arg{slot: slot, kind: ir.BindBytes, data: data}
}

// WeightedSum combines the results of a token's experts:
// y[t, i] = Σ_j weights[t, j] · x[t, j, i] for x [T, k, N] and weights [T, k], both
// f32, f16 or bf16. The result is [T, N] of that type. As in MLX, products are rounded to it; they are added in f32.
// k must be constant.
func (r *Session) WeightedSum(x, weights Tensor, o ...Option) Tensor {
	const op = "weighted_sum"
	if !r.floats(op, x, weights) || !r.dense(op, x, x.DType) || !r.dense(op, weights, x.DType) {
		return x
	}
	if x.Rank() != 3 || weights.Rank() != 2 || !equalShapes(x.Shape[:2], weights.Shape) || !x.Shape[1].IsConst() || !x.contiguous() || !weights.contiguous() {
		r.fail("%s: x %s with weights %s: want row-contiguous [T, k, N] and [T, k]", op, r.format(x.Shape), r.format(weights.Shape))
		return x
	}
	n := r.last(op, x)
	y := r.result(op, o, x.DType, []ir.Affine{x.Shape[0], ir.Const(n)})
	r.dispatch(call{
		op: op, function: "weighted_sum_" + floatNames[x.DType],
		kind: ir.Threads, grid: [3]ir.Extent{ir.Ext(n), {Num: x.Shape[0], Div: 1}, ir.Ext(1)}, group: [3]uint32{uint32(min(n, 256)), 1, 1},
	}, o,
		buf(0, x), buf(1, weights), buf(2, y), val(3, int32(x.Shape[1].Const)))
	return y
}
