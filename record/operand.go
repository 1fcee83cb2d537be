package record

import "github.com/mlxc/mlxc/ir"

// dense checks that t has row-contiguous elements of type want, and reports a mistake if
// not. Most kernels need this, because they get the address of the first element and no
// strides.
func (r *Session) dense(op string, t Tensor, want ir.DType) bool {
	switch {
	case r.err != nil:
	case t.bad != nil:
		r.fail("%s: %s", op, *t.bad)
	case t.DType != want:
		r.fail("%s takes %s, not %s%s", op, want, t.DType, r.format(t.Shape))
	case t.Rank() == 0:
		r.fail("%s: a tensor has at least one dimension", op)
	case !t.contiguous():
		r.fail("%s: %s%s with strides %v is not row-contiguous: copy it with CopyTo first", op, t.DType, r.format(t.Shape), t.Strides)
	default:
		return true
	}
	return false
}

// floats checks that operands have one type, f32, f16 or bf16, and at least one dimension, and reports a mistake if not.
func (r *Session) floats(op string, ts ...Tensor) bool {
	for i := range ts {
		switch t := &ts[i]; {
		case r.err != nil:
		case t.bad != nil:
			r.fail("%s: %s", op, *t.bad)
		case !t.DType.Float():
			r.fail("%s takes f32, f16 or bf16, not %s%s", op, t.DType, r.format(t.Shape))
		case t.DType != ts[0].DType:
			r.fail("%s takes operands of one type, not %s%s and %s%s", op, ts[0].DType, r.format(ts[0].Shape), t.DType, r.format(t.Shape))
		case t.Rank() == 0:
			r.fail("%s: a tensor has at least one dimension", op)
		case len(t.Strides) != len(t.Shape):
			r.fail("%s: %s%s has %d strides", op, t.DType, r.format(t.Shape), len(t.Strides))
		default:
			continue
		}
		return false
	}
	return true
}

// matrix checks the parts of a Matrix as dense does, and that their shapes fit together. t is the type of what it is
// multiplied by.
func (r *Session) matrix(op string, m Matrix, t ir.DType) bool {
	if m.GGML != nil {
		return r.oneGGML(op, *m.GGML)
	}
	q := m.Q
	if q == nil {
		if t := m.Dense; r.err == nil && t.bad == nil && (t.Rank() != 2 || !t.Shape[0].IsConst() || !t.Shape[1].IsConst()) {
			r.fail("%s: want a dense matrix [N, K] of constant size, not %s", op, r.format(t.Shape))
			return false
		}
		if t == ir.F32 && m.Dense.DType == ir.F16 {
			t = ir.F16
		}
		return r.dense(op, m.Dense, t)
	}
	if r.err == nil && (q.N < 1 || q.K < 1 || q.Bits < 1 || q.Group < 1 || q.K%q.Group != 0 || q.K*q.Bits%32 != 0) {
		r.fail("%s: a quantized matrix [%d, %d] of %d bits in groups of %d: each row must be whole groups and whole 32-bit words", op, q.N, q.K, q.Bits, q.Group)
	}
	r.quantization(op, q.Bits, q.Group)
	if !r.dense(op, q.W, ir.U32) || !r.dense(op, q.Scales, t) || !r.dense(op, q.Biases, t) {
		return false
	}
	words, groups := ir.Const(q.N*(q.K*q.Bits/32)), ir.Const(q.N*(q.K/q.Group))
	if !q.W.Elements().Equal(words) || !q.Scales.Elements().Equal(groups) || !q.Biases.Elements().Equal(groups) {
		r.fail("%s: a quantized matrix [%d, %d] of %d bits in groups of %d needs %s words, %s scales and %s biases, and has %s, %s and %s", op, q.N, q.K, q.Bits, q.Group,
			r.g.FormatAffine(words), r.g.FormatAffine(groups), r.g.FormatAffine(groups), r.g.FormatAffine(q.W.Elements()), r.g.FormatAffine(q.Scales.Elements()), r.g.FormatAffine(q.Biases.Elements()))
		return false
	}
	return true
}

// heads checks that t is [L, heads, dim] of f32, f16 or bf16, with heads and dim constant and the elements
// of a head contiguous. It reports a mistake if not.
func (r *Session) heads(op string, t Tensor) bool {
	switch {
	case r.err != nil:
	case t.bad != nil:
		r.fail("%s: %s", op, *t.bad)
	case t.Rank() != 3 || !t.Shape[1].IsConst() || !t.Shape[2].IsConst():
		r.fail("%s takes [L, heads, dim], with heads and dim constant, not %s", op, r.format(t.Shape))
	case !t.DType.Float() || t.Strides[2] != 1:
		r.fail("%s takes f32, f16 or bf16 with the elements of each head contiguous, not %s%s with strides %v", op, t.DType, r.format(t.Shape), t.Strides)
	default:
		return true
	}
	return false
}

// within checks that n is never more than the number of positions of the cache, and reports
// a mistake if it may be. Behind the cache, the same memory may hold another tensor.
func (r *Session) within(op string, n ir.Affine, cache Tensor) bool {
	if r.err != nil || !cache.Shape[0].IsConst() {
		return r.err == nil
	}
	if _, hi, ok := r.g.Range(n); !ok || hi > cache.Shape[0].Const {
		r.fail("%s: %s positions may be more than the %d of the cache: choose lower bounds for the params, or add a constraint with Require", op, r.g.FormatAffine(n), cache.Shape[0].Const)
		return false
	}
	return true
}
