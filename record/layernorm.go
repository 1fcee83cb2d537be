package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// LayerNorm normalizes the rows of x [..., K], which is f32, f16 or bf16:
//
//	(x − mean(x)) / sqrt(mean((x − mean(x))²) + eps) · w + b
//
// The result has the shape and type of x. w and b have x's type and K elements, or one
// element that serves all columns. A zero Tensor stands for no weight or no bias: as in
// MLX, the kernel then reads a single 1 or 0 with stride 0. The result may replace x:
// Into(x).
//
// Dimensions of x with stride 0 repeat the same rows. As in MLX, these are normalized
// once, and the result has stride 0 there too: [Session.CopyTo] gives every row bytes of
// its own.
func (r *Session) LayerNorm(x, w, b Tensor, eps float32, o ...Option) Tensor {
	const op = "layer_norm"
	if !r.floats(op, x) {
		return r.broken(x.DType, x.Rank())
	}
	k := r.last(op, x)
	w, _ = r.perColumn(op, "weight", w, x.DType, k, 1)
	b, _ = r.perColumn(op, "bias", b, x.DType, k, 0)
	in := tensors(x, w, b)
	a := operation{name: op, numbers: [5]uint64{uint64(math.Float32bits(eps))}}
	return r.send(a, o, in, nil, func(e *encoder, a arrays) array {
		return e.LayerNorm(a[0], a[1], a[2], eps)
	})
}

// LayerNormGrad is the gradient of [Session.LayerNorm]. x [..., K] and w are the arguments
// of the norm, and g [..., K] is the gradient of its result, all of one type: f32, f16 or
// bf16. gx [..., K], gw [K] and gb [K] are the gradients of x, of the weight and of the
// bias. If w is a zero Tensor, there is no weight and gw is a zero Tensor too. gb is always
// computed; if the norm has no bias, ignore gb, and the pass dce removes its dispatch.
//
// As in MLX, one dispatch computes gx and each row's contribution to gw, which is of x's
// type too, and a sum over the rows ([Session.SumRows]) gives each of gw and gb. Options
// Into are matched with the results in their order. gx may replace x or g. The
// contributions take scratch of x's shape; with [Spare] they lie in x or g in its place.
func (r *Session) LayerNormGrad(x, w, g Tensor, eps float32, o ...Option) (gx, gw, gb Tensor) {
	const op = "layer_norm_grad"
	k := r.last(op, x)
	if !x.DType.Float() || !x.contiguous() || !g.rowsOf(x.DType) || !equalShapes(x.Shape, g.Shape) {
		r.fail("%s: x %s%s and g %s%s: want the same contiguous rows of f32, f16 or bf16", op, x.DType, r.format(x.Shape), g.DType, r.format(g.Shape))
		return x, w, w
	}
	hasW := w.Rank() > 0
	into := splitInto(o, 2)
	if hasW {
		into = splitInto(o, 3)
	}
	// The sum comes first, because gx may overwrite g.
	gb = r.SumRows(g, into[len(into)-1]...)
	gx = r.result(op, into[0], x.DType, x.Shape)
	w, ws := r.perColumn(op, "weight", w, x.DType, k, 1)
	each := gx // without a weight the kernel does not touch this argument
	if hasW {
		each = r.scratchOf(op, o, x.DType, x.Shape)
	}
	function, group := layerNormKernel("vjp_layer_norm", x.DType, k)
	r.dispatch(call{
		op: op, function: function, constants: []ir.FunctionConstant{flag(20, "has_w", hasW)},
		kind: ir.Threads, grid: rowGroups(r.rows(x), group), group: [3]uint32{group, 1, 1},
	}, o,
		buf(0, x), buf(1, w), buf(2, g), buf(3, gx), buf(4, each), val(5, eps), val(6, uint32(k)), val(7, ws))
	if hasW {
		gw = r.SumRows(each, into[1]...)
	}
	return gx, gw, gb
}

// floatNames are the names of element types in MLX's kernel names.
var floatNames = map[ir.DType]string{ir.F32: "float32", ir.F16: "float16", ir.BF16: "bfloat16"}

// layerNormKernel returns the kernel for rows of k elements and the size of its threadgroups in threads.
func layerNormKernel(name string, t ir.DType, k int64) (string, uint32) {
	threads, looped := routes.RowThreads(name, k)
	if looped {
		name += "_looped"
	}
	return name + floatNames[t], uint32(threads)
}

// rowGroups returns the grid, in threads, that has one threadgroup for each row.
func rowGroups(rows ir.Affine, group uint32) [3]ir.Extent {
	return [3]ir.Extent{{Num: rows.Scale(int64(group)), Div: 1}, ir.Ext(1), ir.Ext(1)}
}

// perColumn checks that t has one element for each of k columns, or one for all of
// them, and returns it as an operand with the stride between columns. A zero Tensor is replaced by a
// single element of value `absent`.
func (r *Session) perColumn(op, what string, t Tensor, of ir.DType, k int64, absent float32) (Tensor, uint32) {
	switch n := t.Elements(); {
	case t.Rank() == 0 && t.owner != 0:
		r.fail("%s: a %s without dimensions: want %d elements, or one for all", op, what, k)
		return t, 0
	case t.Rank() == 0:
		return once(r.filled(of, absent)), 0
	case t.DType != of || t.Rank() > 1 && !t.contiguous() || !n.Equal(ir.Const(k)) && !n.Equal(ir.Const(1)):
		r.fail("%s: a %s of %s%s for rows of %d %s: want %d of them, or one for all", op, what, t.DType, r.format(t.Shape), k, of, k)
		return t, 0
	case n.Equal(ir.Const(1)):
		return once(t), 0
	}
	stride := t.Strides[t.Rank()-1]
	t.Shape, t.Strides = Dims(k), []int64{stride}
	return t, uint32(stride)
}

// filled returns a tensor of one element with the value v. It lies in
// weight memory, so that the passes know its value.
func (r *Session) filled(t ir.DType, v float32) Tensor {
	key := fill{t, v}
	if out, ok := r.fills[key]; ok {
		return out
	}
	name, ok := map[float32]string{0: "zero", 1: "one"}[v]
	if !ok {
		name = fmt.Sprintf("number_%v", v)
	}
	if t != ir.F32 {
		name += "_" + t.String()
	}
	bits := binary.LittleEndian.Uint32(Elements(t, []float32{v, v})) // the pattern has 4 bytes
	out := r.declare(ir.Memory{Name: r.unused(name), Kind: ir.Weight, DType: t, Shape: []int64{4 / t.Size()}, Init: ir.FillU32(bits)})
	out.Shape = Dims(1)
	r.fills[key] = out
	return out
}

// columnSums holds, by element type, the kernels that sum columns of few rows and of many rows. Those for 16-bit
// types are not MLX's, which accumulate in the 16-bit type.
var columnSums = map[ir.DType][2]string{
	ir.F32:  {"col_reduce_small_1_reduce_sumfloat32", "col_reduce_looped_1_32_32_reduce_sumfloat32"},
	ir.F16:  {"col_sum_small_float16", "col_sum_looped_float16"},
	ir.BF16: {"col_sum_small_bfloat16", "col_sum_looped_bfloat16"},
}

// SumRows adds up the rows of x [..., K], which is f32, f16 or bf16. The sums are added in
// f32; the result is [K], of x's type. The elements of a row must be contiguous; if x has two
// dimensions, there may be gaps between its rows.
func (r *Session) SumRows(x Tensor, o ...Option) Tensor {
	const op = "sum_rows"
	k := r.last(op, x)
	stride, rows := k, r.rows(x)
	apart := x.Rank() == 2 && x.Strides[1] == 1
	if apart {
		stride = x.Strides[0]
	}
	if !x.DType.Float() || !apart && !x.contiguous() {
		r.fail("%s: %s%s: want rows of f32, f16 or bf16, each contiguous", op, x.DType, r.format(x.Shape))
		return x
	}
	y := r.result(op, o, x.DType, Dims(k))
	few, looped := columnSums[x.DType][0], columnSums[x.DType][1]
	if rows.IsConst() && rows.Const < 32 {
		c := r.sumOfColumns(op, few, x, y, rows, stride, k)
		c.grid, c.group = [3]ir.Extent{ir.Ext((k + 127) / 128), ir.Ext(1), ir.Ext(1)}, [3]uint32{uint32(min((k+3)/4, 32)), uint32(min(rows.Const, 8)), 1}
		r.dispatch(c, o, c.args...)
		return y
	}
	parts := partsOfColumns(rows, k)
	if parts < 2 || x.DType != ir.F32 || stride != k {
		r.sumOfMany(op, looped, x, y, rows, 1, stride, k, o)
		return y
	}
	// As many rows in each part, then those that remain, then the parts.
	each := rows.Const / parts
	rest := rows.Const - parts*each
	all := parts + min(rest, 1)
	sums := r.Scratch(x.DType, Dims(all, k)...)
	x = x.Reshape(Dims(rows.Const, k)...)
	r.sumOfMany(op, looped, x, sums.Rows(ir.Const(0), ir.Const(parts)), ir.Const(each), parts, k, k, o)
	if rest > 0 {
		r.sumOfMany(op, looped, x.Rows(ir.Const(parts*each), ir.Const(rest)), sums.Row(ir.Const(parts)), ir.Const(rest), 1, k, k, o)
	}
	r.sumOfMany(op, looped, sums, y, ir.Const(all), 1, k, k, o)
	return y
}

// partsOfColumns is in how many parts long columns are added up: a threadgroup has 32 columns, so that few columns would keep a few cores busy and leave
// the others idle. MLX does the same in a kernel of its own. 1: all at once.
func partsOfColumns(rows ir.Affine, k int64) int64 {
	const (
		enough = 96  // threadgroups with which parts gain nothing (H200)
		groups = 512 // threadgroups of parts
		least  = 256 // rows of a part
	)
	tiles := (k + 31) / 32
	if !rows.IsConst() || tiles >= enough {
		return 1
	}
	return max(1, min(rows.Const/least, groups/tiles))
}

// sumOfMany sums the columns of n parts of x, one behind the other, of so many rows each.
func (r *Session) sumOfMany(op, function string, x, y Tensor, rows ir.Affine, n, stride, k int64, o []Option) {
	c := r.sumOfColumns(op, function, x, y, rows, stride, k)
	if n > 1 {
		c.args[4], c.args[5], c.args[6] = val(4, int32(n)), val(5, rows.Const*stride), val(6, int32(1))
	}
	c.args = append(c.args, val(11, int64(0)))
	c.kind, c.grid, c.group = ir.Threads, [3]ir.Extent{ir.Ext((k + 31) / 32 * 256), ir.Ext(n), ir.Ext(1)}, [3]uint32{256, 1, 1}
	r.dispatch(c, o, c.args...)
}

// sumOfColumns is a call of a kernel that sums columns. It can reduce over several dimensions; the arguments say that there is one.
func (r *Session) sumOfColumns(op, function string, x, y Tensor, rows ir.Affine, stride, k int64) call {
	n := val(2, uint64(rows.Const))
	if !rows.IsConst() {
		n = arg{slot: 2, kind: ir.BindScalar, number: ir.U64, expr: rows}
	}
	return call{op: op, function: function, args: []arg{buf(0, x), buf(1, y), n, val(3, k), val(4, int32(0)), val(5, int64(0)), val(6, int32(0)), val(8, stride), val(10, uint64(1))}}
}

// rowsOf reports whether t is row-contiguous and has the given element type.
func (t Tensor) rowsOf(of ir.DType) bool { return t.DType == of && t.contiguous() }

func equalShapes(a, b []ir.Affine) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// splitInto returns the options of each of n results: the Into options are matched with
// the results in their order, all other options apply to every result. Surplus Into
// options go to the last result, where [Session.result] reports them.
func splitInto(options []Option, n int) [][]Option {
	out := make([][]Option, n)
	next := 0
	for _, o := range options {
		if !o.given {
			for i := range out {
				out[i] = append(out[i], o)
			}
			continue
		}
		out[next] = append(out[next], o)
		next = min(next+1, n-1)
	}
	return out
}
