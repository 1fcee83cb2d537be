package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// Rope applies rotary position embedding to x [L, heads, dim] in f32, f16 or bf16, whose row l has
// position pos + l. In each head it turns the pairs of elements (2i, 2i+1) if traditional,
// else (i, i+dim/2), by the angle position · theta^(−2i/dim). The result has the shape of x.
func (r *Session) Rope(x Tensor, pos ir.Affine, theta float64, traditional bool, o ...Option) Tensor {
	by := Rope{Traditional: traditional, Base: float32(theta), Scale: 1}
	if x.Rank() > 0 {
		by.Dims = x.Shape[x.Rank()-1].Const
	}
	return r.RopeBy(x, pos, Tensor{}, by, o...)
}

// RopeBy is [Session.Rope] with positions times by.Scale. freqs [dim/2], f32, may be left out; if it is not, pair i turns
// by position / freqs[i] in place of position · by.Base^(−2i/by.Dims). by.Dims may be less than dim: the elements of a head
// behind them stay as they are, and x may be Into itself then.
func (r *Session) RopeBy(x Tensor, pos ir.Affine, freqs Tensor, by Rope, o ...Option) Tensor {
	if !r.heads("rope", x) {
		return r.broken(x.DType, 3)
	}
	d := x.Shape[2].Const
	if by.Dims < 2 || by.Dims > d || by.Dims%2 != 0 || freqs.owner == 0 && !(by.Base > 0) {
		r.fail("rope of %d elements of heads of %d with base %v: want an even number of elements, at most those of a head, and a base above 0", by.Dims, d, by.Base)
		return r.broken(x.DType, 3)
	}
	if freqs.owner != 0 && (freqs.DType != ir.F32 || freqs.Rank() != 1 || !freqs.Shape[0].Equal(ir.Const(by.Dims/2))) {
		r.fail("rope: frequencies are %s%s: want f32[%d]", freqs.DType, r.format(freqs.Shape), by.Dims/2)
		return r.broken(x.DType, 3)
	}
	part := by.Dims < d
	if part {
		y := r.result("rope", o, x.DType, x.Shape)
		if y.Mem != x.Mem || !y.Off.Equal(x.Off) || !slices.Equal(y.Strides, x.Strides) {
			r.CopyTo("rope", y, x, o...)
		}
		x, o = y, slices.DeleteFunc(slices.Clone(o), func(o Option) bool { return o.given })
	}
	way := routes.Rope{InPlace: part, Dims: by.Dims, Traditional: by.Traditional, Base: by.Base, Scale: by.Scale, Together: !part, Backward: by.Backward}
	a := operation{name: "rope", numbers: [5]uint64{uint64(by.Dims), flagOf(by.Traditional), bitsOf(by.Base), bitsOf(by.Scale), flagOf(part) | flagOf(by.Backward)<<1}}
	in := []operand{{t: x}, inline(pos), {t: freqs}}
	y := r.send(a, o, in, x.Shape, func(e *encoder, a arrays) array {
		return e.Rope(headsFirst(a[0]), a[1], a[2], way)
	})
	if part {
		return x
	}
	return y
}

// headsFirst returns x [L, heads, dim] as MLX has it: [1, heads, L, dim], in the same memory.
func headsFirst(x routes.Array) routes.Array {
	x.Shape = []ir.Affine{ir.Const(1), x.Shape[1], x.Shape[0], x.Shape[2]}
	x.Strides = []ir.Affine{ir.Const(0), x.Strides[1], x.Strides[0], x.Strides[2]}
	return x
}

// KVWrite writes x [L, heads, dim] to positions pos, pos+1, … of a cache
// [positions, heads, dim]. In this layout the written bytes are contiguous, so that a pass
// can let the kernel that computes x write them itself.
func (r *Session) KVWrite(cache, x Tensor, pos ir.Affine, o ...Option) {
	if r.fitsCache(cache, x, pos) {
		r.CopyTo("kv_write", cache.Rows(pos, x.Shape[0]), x, o...)
	}
}

// KVWriteRounded is [Session.KVWrite] of f32 keys and values to caches of f16 or bf16, by one dispatch: each element is
// rounded to the nearest, ties to even. k and v have one shape.
func (r *Session) KVWriteRounded(kcache, vcache, k, v Tensor, pos ir.Affine, o ...Option) {
	if !r.floats("kv_write", k, v) || !r.floats("kv_write", kcache, vcache) || !r.fitsCache(kcache, k, pos) || !r.fitsCache(vcache, v, pos) {
		return
	}
	t := kcache.DType
	if k.DType != ir.F32 || t == ir.F32 || !equalShapes(k.Shape, v.Shape) {
		r.fail("kv_write: keys %s%s and values %s into caches of %s: want f32 of one shape into f16 or bf16", k.DType, r.format(k.Shape), r.format(v.Shape), t)
		return
	}
	text := fmt.Sprintf("out0[i] = round(%v, in0[i]); out1[i] = round(%[1]v, in1[i])", t)
	o = append(slices.Clone(o), Into(kcache.Rows(pos, k.Shape[0])), Into(vcache.Rows(pos, v.Shape[0])))
	r.elementwise("kv_write", text, 2, []Tensor{k, v}, nil, o)
}

// QuantizedCache are keys or values of a cache in 8 bits: Codes i8 [positions, heads, dim] and Scales f16 [positions, heads, dim/32], one
// for each 32 codes of a head. An element is its code times its scale. They are those of GGML's q8_0, which has them in one block.
type QuantizedCache struct{ Codes, Scales Tensor }

// KVWriteQuantized is [Session.KVWrite] of keys and values to caches of 8 bits, by one dispatch. k and v have one type, f32, f16 or
// bf16, and one shape. The scale of 32 elements is the greatest magnitude over 127; a group with an infinity or a NaN becomes NaN.
func (r *Session) KVWriteQuantized(keys, values QuantizedCache, k, v Tensor, pos ir.Affine, o ...Option) {
	const op = "kv_write"
	if !r.floats(op, k, v) || !r.dense(op, k, k.DType) || !r.dense(op, v, k.DType) {
		return
	}
	if !equalShapes(k.Shape, v.Shape) {
		r.fail("%s: keys %s and values %s: want one shape", op, r.format(k.Shape), r.format(v.Shape))
		return
	}
	for _, c := range []QuantizedCache{keys, values} {
		if !r.quantized(op, c) || !r.fitsCache(c.Codes, k, pos) {
			return
		}
	}
	at := func(slot uint8, t Tensor) arg { return buf(slot, t.Rows(pos, k.Shape[0])) }
	n := k.Shape[1].Const * k.Shape[2].Const
	r.dispatch(call{
		op: op, function: "kv_write_q8_0_" + floatNames[k.DType],
		kind: ir.Threads, grid: [3]ir.Extent{ir.Ext(n), {Num: k.Shape[0], Div: 1}, ir.Ext(2)}, group: [3]uint32{uint32(min(n, 256)), 1, 1},
	}, o,
		buf(0, k), buf(1, v), at(2, keys.Codes), at(3, keys.Scales), at(4, values.Codes), at(5, values.Scales))
}

// quantized fails unless codes have their scales.
func (r *Session) quantized(op string, q QuantizedCache) bool {
	if !r.dense(op, q.Codes, ir.I8) || !r.dense(op, q.Scales, ir.F16) {
		return false
	}
	c, s := q.Codes.Shape, q.Scales.Shape
	if len(c) != 3 || len(s) != 3 || !c[1].IsConst() || !c[2].IsConst() || c[2].Const%32 != 0 || !s[0].Equal(c[0]) || !s[1].Equal(c[1]) || !s[2].Equal(ir.Const(c[2].Const/32)) {
		r.fail("%s: codes %s with scales %s: want [positions, heads, dim] with [positions, heads, dim/32], and dim a multiple of 32", op, r.format(c), r.format(s))
		return false
	}
	return true
}

// fitsCache fails unless x can be written to positions of a cache from pos on.
func (r *Session) fitsCache(cache, x Tensor, pos ir.Affine) bool {
	if cache.Rank() != 3 || x.Rank() != 3 || !cache.Shape[1].Equal(x.Shape[1]) || !cache.Shape[2].Equal(x.Shape[2]) {
		r.fail("kv_write: %s into %s: want [L, heads, dim] into [positions, heads, dim]", r.format(x.Shape), r.format(cache.Shape))
		return false
	}
	return r.within("kv_write", pos.Add(x.Shape[0]), cache)
}

// SDPA computes causal scaled-dot-product attention with grouped heads:
// softmax(scale · q·kᵀ) · v for queries q [L, Hq, D] over the first n positions of the caches
// k and v [positions, Hkv, D]. Query i of the L sees positions 0 to n − L + i. Hq is a
// multiple of Hkv, and D is 64, 96, 128 or 256. Everything has one type, f32, f16 or bf16, or the caches are f16 and the
// rest f32. The result is [L, Hq, D].
func (r *Session) SDPA(q, k, v Tensor, n ir.Affine, scale float32, o ...Option) Tensor {
	return r.SDPABy(q, k, v, n, Attention{Scale: scale}, o...)
}

// Attention says how [Session.SDPABy] attends.
type Attention struct {
	Scale float32 // of queries times keys
	// Window is how many positions a query sees, its own among them; 0: all.
	Window int64
	// Cap keeps scores within ±Cap, as [Session.Softcap] does, but in f32; 0: no bounds.
	Cap float32
	// Sinks [Hq], of the type of the queries, are one more score of each head, without a value. They may be left out, and
	// do not go together with Cap.
	Sinks Tensor
}

// SDPABy is [Session.SDPA] with windows, bounded scores, or sinks.
func (r *Session) SDPABy(q, k, v Tensor, n ir.Affine, by Attention, o ...Option) Tensor {
	if !r.heads("sdpa", q) || !r.floats("sdpa", k, v) || !r.heads("sdpa", k) || !r.heads("sdpa", v) {
		return r.broken(q.DType, 3)
	}
	types := routes.TypeName(q.DType)
	if k.DType != q.DType {
		if q.DType != ir.F32 || k.DType != ir.F16 {
			r.fail("sdpa: queries are %s, keys and values %s: want one type, or keys and values of f16 for queries of f32", q.DType, k.DType)
			return r.broken(q.DType, 3)
		}
		types += "_" + routes.TypeName(k.DType)
	}
	return r.attend(q, k, v, types, n, by, o)
}

// SDPAQuantized is [Session.SDPABy] over caches of 8 bits ([Session.KVWriteQuantized]), of queries in f32, f16 or bf16.
func (r *Session) SDPAQuantized(q Tensor, k, v QuantizedCache, n ir.Affine, by Attention, o ...Option) Tensor {
	if !r.heads("sdpa", q) || !r.quantized("sdpa", k) || !r.quantized("sdpa", v) {
		return r.broken(q.DType, 3)
	}
	return r.attend(q, k.Codes, v.Codes, routes.TypeName(q.DType)+"_q8_0", n, by, o, k.Scales, v.Scales)
}

// attend records attention by the kernels for types of queries and of keys and values. scales are those of keys and values that
// are quantized.
func (r *Session) attend(q, k, v Tensor, types string, n ir.Affine, by Attention, o []Option, scales ...Tensor) Tensor {
	if !r.dense("sdpa", q, q.DType) || !r.floats("sdpa", q) || !r.within("sdpa", n, k) || !r.within("sdpa", n, v) {
		return r.broken(q.DType, 3)
	}
	if !k.Shape[1].Equal(v.Shape[1]) || !k.Shape[2].Equal(q.Shape[2]) || !v.Shape[2].Equal(q.Shape[2]) {
		r.fail("sdpa: queries %s, keys %s and values %s: want as many heads of keys as of values, and the same head size in all three", r.format(q.Shape), r.format(k.Shape), r.format(v.Shape))
		return r.broken(q.DType, 3)
	}
	hq, hkv, d := q.Shape[1].Const, k.Shape[1].Const, r.last("sdpa", q)
	if hkv == 0 || hq%hkv != 0 {
		r.fail("sdpa: the number of query heads, %d, is not a multiple of the number of key heads, %d", hq, hkv)
		return q
	}
	sinks := by.Sinks.owner != 0
	if by.Window < 0 || by.Cap < 0 || by.Cap != by.Cap || math.IsInf(float64(by.Cap), 0) || by.Cap > 0 && sinks {
		r.fail("sdpa: a window of %d positions, scores within ±%v, sinks: %t: want no negative numbers, and no sinks beside a bound of scores", by.Window, by.Cap, sinks)
		return q
	}
	if sinks && (!r.dense("sdpa", by.Sinks, q.DType) || by.Sinks.Rank() != 1 || !by.Sinks.Shape[0].Equal(ir.Const(hq))) {
		r.fail("sdpa: sinks are %s%s: want %s[%d]", by.Sinks.DType, r.format(by.Sinks.Shape), q.DType, hq)
		return q
	}
	y := r.result("sdpa", o, q.DType, q.Shape)
	upTo := func(t Tensor) Tensor {
		t.Shape = []ir.Affine{n, t.Shape[1], t.Shape[2]}
		return t
	}
	c := call{
		op: "sdpa",
		args: []arg{
			buf(0, q), buf(1, upTo(k)), buf(2, upTo(v)), buf(3, y), val(4, int32(hq/hkv)), i32(5, n),
			val(6, uint64(k.Strides[1])), val(7, uint64(k.Strides[0])), val(8, uint64(v.Strides[1])), val(9, uint64(v.Strides[0])), val(10, by.Scale),
		},
		grid: [3]ir.Extent{ir.Ext(hq), {Num: q.Shape[0], Div: 1}, ir.Ext(1)}, group: [3]uint32{256, 1, 1},
	}
	// Not MLX's sdpa_vector, which writes [Hq, L, D], whose strides depend on L, and is slower
	// (docs/rationale.md).
	form := "sdpa_rows"
	switch {
	case by.Cap > 0:
		form = "sdpa_rows_capped"
	case sinks:
		form = "sdpa_rows_sinks"
	case by.Window > 0:
		form = "sdpa_rows_window"
	default:
		c.constants = []ir.FunctionConstant{flag(22, "do_causal", true)}
	}
	if form != "sdpa_rows" {
		window := by.Window
		if window == 0 {
			window = math.MaxInt32
		}
		c.args = append(c.args, val(11, int32(min(window, math.MaxInt32))))
	}
	if by.Cap > 0 {
		c.args = append(c.args, val(12, by.Cap))
	}
	if sinks {
		c.args = append(c.args, buf(12, by.Sinks))
	}
	for _, t := range scales {
		c.args = append(c.args, buf(c.args[len(c.args)-1].slot+1, upTo(t)))
	}
	c.function = fmt.Sprintf("%s_%s_%d_%d", form, types, d, d)
	r.dispatch(c, o, c.args...)
	return y
}
