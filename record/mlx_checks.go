package record

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// The methods of MLX report mistakes before they ask for a route, since routes, like MLX's kernels, take it that
// operands fit one another.

// present reports operands that are zero Tensors and may not be left out.
func (m MLX) present(op string, ts ...Tensor) bool {
	for i := range ts {
		if m.s.err == nil && ts[i].owner == 0 && ts[i].bad == nil {
			m.s.fail("%s: operand %d is a zero Tensor, which stands for one that is left out: this one cannot be", op, i)
		}
	}
	return m.s.err == nil
}

// axes reports axes that x does not have, and those that do not ascend.
func (m MLX) axes(op string, x Tensor, axes ...int) {
	if !m.present(op, x) {
		return
	}
	for i, a := range axes {
		if a < 0 || a >= x.Rank() {
			m.s.fail("%s: %s has no axis %d", op, m.s.format(x.Shape), a)
		} else if i > 0 && axes[i-1] >= a {
			m.s.fail("%s: the axes %v do not ascend", op, axes)
		}
	}
}

// rank reports operands of fewer dimensions.
func (m MLX) rank(op string, least int, ts ...Tensor) bool {
	for i := range ts {
		if m.s.err == nil && ts[i].Rank() < least {
			m.s.fail("%s: operand %d is %s: it has at least %d dimensions", op, i, m.s.format(ts[i].Shape), least)
		}
	}
	return m.s.err == nil
}

// shaped reports t, if it is not left out, unless it has a type and shape.
func (m MLX) shaped(op, what string, t Tensor, of ir.DType, shape ...ir.Affine) {
	if m.s.err == nil && t.owner != 0 && (t.DType != of || !equalShapes(t.Shape, shape)) {
		m.s.fail("%s: %s is %s%s: want %s%s", op, what, t.DType, m.s.format(t.Shape), of, m.s.format(shape))
	}
}

// indices reports t, if it is not left out, unless it is of integers that kernels take for indices.
func (m MLX) indices(op string, ts ...Tensor) {
	for _, t := range ts {
		if m.s.err == nil && t.owner != 0 && t.DType != ir.U32 && t.DType != ir.I32 {
			m.s.fail("%s: indices are u32 or i32, not %s%s", op, t.DType, m.s.format(t.Shape))
		}
	}
}

// broadcast returns the shape to which shapes are broadcast, and reports those that do not fit.
func (m MLX) broadcast(op string, shapes ...[]ir.Affine) []ir.Affine {
	var out []ir.Affine
	for _, shape := range shapes {
		for len(out) < len(shape) {
			out = slices.Insert(out, 0, ir.Const(1))
		}
		for i := range shape {
			switch at, n := len(out)-len(shape)+i, shape[i]; {
			case out[at].Equal(ir.Const(1)):
				out[at] = n
			case !n.Equal(out[at]) && !n.Equal(ir.Const(1)) && m.s.err == nil:
				m.s.fail("%s: %s cannot be broadcast to %s", op, m.s.format(shape), m.s.format(out))
			}
		}
	}
	return out
}

// product reports two matrices, or batches of them, whose inner dimensions differ.
func (m MLX) product(op string, a, b Tensor) bool {
	if !m.present(op, a, b) || !m.rank(op, 2, a, b) {
		return false
	}
	if x, y := a.Shape[a.Rank()-1], b.Shape[b.Rank()-2]; !x.Equal(y) {
		m.s.fail("%s: %s times %s: the inner dimensions differ", op, m.s.format(a.Shape), m.s.format(b.Shape))
	}
	return m.s.err == nil
}

// batch is t's dimensions before the last two.
func batch(t Tensor) []ir.Affine { return t.Shape[:t.Rank()-2] }

var (
	affineBits   = []int64{2, 3, 4, 5, 6, 8}
	affineGroups = []int64{32, 64, 128}
)

// quantization reports bits and groups that MLX has no kernels for.
func (r *Session) quantization(op string, bits, group int64) {
	if r.err == nil && (!slices.Contains(affineBits, bits) || !slices.Contains(affineGroups, group)) {
		r.fail("%s: MLX has %v bits in groups of %v, not %d bits in groups of %d", op, affineBits, affineGroups, bits, group)
	}
}

// quantized reports a matrix whose parts do not fit together, or of which x has not the inner dimension; x may be left
// out.
func (m MLX) quantized(op string, x Tensor, w AffineMatrix) {
	m.s.quantization(op, w.Bits, w.Group)
	if !m.present(op, w.Codes, w.Scales, w.Biases) || !m.rank(op, 2, w.Codes, w.Scales, w.Biases) {
		return
	}
	codes, scales := w.Codes.Shape, w.Scales.Shape
	last := codes[len(codes)-1]
	row := last.Const * 32 / w.Bits // elements
	if !last.IsConst() || last.Const*32%w.Bits != 0 || row%w.Group != 0 || w.Codes.DType != ir.U32 || len(codes) != len(scales) ||
		!equalShapes(codes[:len(codes)-1], scales[:len(scales)-1]) || !scales[len(scales)-1].Equal(ir.Const(row/w.Group)) {
		m.s.fail("%s: codes %s%s and scales %s are no matrix of %d bits in groups of %d", op, w.Codes.DType, m.s.format(codes), m.s.format(scales), w.Bits, w.Group)
		return
	}
	m.shaped(op, "the biases", w.Biases, w.Scales.DType, scales...)
	if x.owner == 0 || m.s.err != nil || !m.rank(op, 1, x) {
		return
	}
	inner := ir.Const(row)
	if !w.Transposed {
		inner = codes[len(codes)-2]
	}
	if k := x.Shape[x.Rank()-1]; !k.Equal(inner) || x.DType != w.Scales.DType {
		m.s.fail("%s: rows %s%s times a matrix whose inner dimension is %s, with scales of %s", op, x.DType, m.s.format(x.Shape), m.s.g.FormatAffine(inner), w.Scales.DType)
	}
}

// floats reports x unless it is of f32, f16 or bf16, of at least one dimension.
func (m MLX) floats(op string, x Tensor) bool { return m.present(op, x) && m.s.floats(op, x) }

// norm reports x, and what the last dimension is scaled or moved by, unless they fit.
func (m MLX) norm(op string, x Tensor, by ...Tensor) {
	if !m.floats(op, x) {
		return
	}
	for _, t := range by {
		m.shaped(op, "a weight", t, x.DType, x.Shape[x.Rank()-1])
	}
}

func (m MLX) attention(q, k, v, mask, sinks Tensor) {
	const op = "scaled_dot_product_attention"
	if !m.present(op, q, k, v) || !m.s.floats(op, q, k, v) {
		return
	}
	for _, t := range []Tensor{q, k, v} {
		if t.Rank() != 4 {
			m.s.fail("%s: %s: want [batch, heads, rows, elements]", op, m.s.format(t.Shape))
			return
		}
	}
	hq, hk := q.Shape[1], k.Shape[1]
	if !hq.IsConst() || !hk.IsConst() || hk.Const < 1 || hq.Const%hk.Const != 0 || !q.Shape[3].Equal(k.Shape[3]) || !equalShapes(k.Shape[:3], v.Shape[:3]) || !q.Shape[0].Equal(k.Shape[0]) {
		m.s.fail("%s: q %s, k %s and v %s do not fit", op, m.s.format(q.Shape), m.s.format(k.Shape), m.s.format(v.Shape))
		return
	}
	scores := []ir.Affine{q.Shape[0], hq, q.Shape[2], k.Shape[2]}
	if mask.owner != 0 && !equalShapes(m.broadcast(op, scores, mask.Shape), scores) {
		m.s.fail("%s: the mask %s does not fit the scores %s", op, m.s.format(mask.Shape), m.s.format(scores))
	}
	if mask.owner != 0 && mask.DType != ir.Bool && mask.DType != q.DType {
		m.s.fail("%s: the mask is %s: want bool, or %s as the queries", op, mask.DType, q.DType)
	}
	m.shaped(op, "sinks", sinks, q.DType, hq)
}
