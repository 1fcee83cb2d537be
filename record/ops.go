package record

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// last returns the size of the innermost dimension.
func (r *Session) last(op string, t Tensor) int64 {
	if t.Rank() == 0 || !t.Shape[t.Rank()-1].IsConst() {
		r.fail("%s: the innermost dimension of %s must be constant", op, r.format(t.Shape))
		return 1
	}
	return t.Shape[t.Rank()-1].Const
}

// rows returns the number of rows: the elements of all dimensions but the
// innermost.
func (r *Session) rows(t Tensor) ir.Affine {
	t.Shape = t.Shape[:max(t.Rank()-1, 0)]
	return t.Elements()
}

// RMSNorm normalizes the rows of x [..., K] in f32, f16 or bf16: x / sqrt(mean(x²) + eps). It has no
// weight: as in MLX, the kernel reads a single 1 with stride 0 in its place, and
// [Session.Mul] multiplies by a weight.
func (r *Session) RMSNorm(x Tensor, eps float32, o ...Option) Tensor {
	const op = "rms_norm"
	if !r.floats(op, x) {
		return r.broken(x.DType, x.Rank())
	}
	r.last(op, x)
	in := []operand{{t: x}, {t: once(r.filled(x.DType, 1))}}
	return r.send(operation{name: op, numbers: [5]uint64{uint64(math.Float32bits(eps))}}, o, in, nil, func(e *encoder, a arrays) array {
		return e.RMSNorm(a[0], a[1], eps)
	})
}

// Mul multiplies elementwise tensors of one type: f32, f16 or bf16. b has a's shape, or is a single row by which
// every row of a is multiplied. The result has a's shape.
func (r *Session) Mul(a, b Tensor, o ...Option) Tensor {
	return r.binary("elementwise_mul", "Multiply", a, b, o)
}

// Add adds elementwise, with the shapes of [Session.Mul].
func (r *Session) Add(a, b Tensor, o ...Option) Tensor {
	return r.binary("elementwise_add", "Add", a, b, o)
}

func (r *Session) binary(op, kernel string, a, b Tensor, o []Option) Tensor {
	if !r.floats(op, a, b) {
		return r.broken(a.DType, a.Rank())
	}
	if k := r.last(op, a); !equalShapes(a.Shape, b.Shape) {
		if n := b.Elements(); !n.Equal(ir.Const(k)) {
			r.fail("%s: %s and %s do not fit: the second must have the first's shape or be one row of it", op, r.format(a.Shape), r.format(b.Shape))
		} else if b.Rank() > 1 {
			b = b.Reshape(n)
		}
	}
	return r.send(operation{name: op}, o, tensors(a, b), a.Shape, func(e *encoder, x arrays) array {
		return e.Binary(kernel, x[0], x[1], x[0].Type)
	})
}

// Silu computes x / (1 + exp(−x)); in f16 and bf16 x times its rounded sigmoid, as MLX does.
func (r *Session) Silu(x Tensor, o ...Option) Tensor { return r.unary("silu", "Silu", x, o) }

// Sigmoid computes 1 / (1 + exp(−x)).
func (r *Session) Sigmoid(x Tensor, o ...Option) Tensor { return r.unary("sigmoid", "Sigmoid", x, o) }

func (r *Session) unary(op, kernel string, x Tensor, o []Option) Tensor {
	if !r.floats(op, x) {
		return r.broken(x.DType, x.Rank())
	}
	return r.send(operation{name: op}, o, tensors(x), nil, func(e *encoder, a arrays) array {
		return e.Unary(kernel, a[0], a[0].Type)
	})
}

// Argmax returns the index of the max of each row of x [..., K], which is f32, f16 or bf16, as
// u32 [...]; u32 [1] if x has one dimension. Of equal elements the one with the lowest
// index counts.
//
// Few long rows are recorded as two dispatches: the first finds the max of each part of a row, the second searches the
// part with the highest max. A single dispatch would use only one threadgroup per row. Besides, a pass may fuse the
// first step into the product that computes the row.
func (r *Session) Argmax(x Tensor, o ...Option) Tensor {
	if !r.floats("argmax", x) || !r.dense("argmax", x, x.DType) {
		return r.broken(ir.U32, max(x.Rank()-1, 1))
	}
	k := r.last("argmax", x)
	shape := x.Shape[:x.Rank()-1]
	if len(shape) == 0 {
		shape = Dims(1)
	}
	rows := r.rows(x)
	if _, most, ok := r.g.Range(rows); k >= longRow && k%argmaxPart == 0 && ok && most <= fewRows {
		return r.argmaxInSteps(x, r.result("argmax", o, ir.U32, shape), k, rows, o)
	}
	x = x.Reshape(rows, ir.Const(k))
	return r.send(operation{name: "argmax"}, o, tensors(x), shape, func(e *encoder, a arrays) array {
		return e.ArgReduce("argmax", a[0], 1)
	})
}

const (
	argmaxPart = 16    // consecutive elements of which the first step keeps the max
	longRow    = 16384 // row length in elements from which on two dispatches are faster than one threadgroup per row
	fewRows    = 16    // with more rows, one dispatch has enough threadgroups
)

// argmaxInSteps records Argmax as two dispatches.
func (r *Session) argmaxInSteps(x, y Tensor, k int64, rows ir.Affine, o []Option) Tensor {
	parts := k / argmaxPart
	top, of := r.Scratch(x.DType, rows, ir.Const(parts)), floatNames[x.DType]
	r.dispatch(call{
		op: "max_parts", function: "max_parts_" + of,
		grid: [3]ir.Extent{ir.Ext((parts + 63) / 64), {Num: rows, Div: 1}, ir.Ext(1)}, group: [3]uint32{256, 1, 1},
	}, o,
		buf(0, x), buf(1, top), val(2, uint32(parts)))
	r.dispatch(call{
		op: "argmax", function: "argmax_parts_" + of,
		grid: [3]ir.Extent{{Num: rows, Div: 1}, ir.Ext(1), ir.Ext(1)}, group: [3]uint32{uint32(min(1024, (parts+127)/128*32)), 1, 1},
	}, o,
		buf(0, x), buf(1, top), buf(2, y), val(3, uint32(parts)))
	return y
}

// CopyTo copies src to dst by a dispatch. Both have one type and shape, and either may be strided, such as a column of a
// matrix. op names the operation in the graph.
func (r *Session) CopyTo(op string, dst, src Tensor, o ...Option) {
	for _, t := range []*Tensor{&src, &dst} {
		if t.bad != nil {
			r.fail("%s: %s", op, *t.bad)
		}
	}
	switch {
	case src.DType != dst.DType:
		r.fail("%s: cannot copy %s to %s: both are of one type; Encoder.Copy copies bytes", op, src.DType, dst.DType)
	case src.Rank() == 0 || !equalShapes(src.Shape, dst.Shape):
		r.fail("%s: cannot copy %s to %s: want the same dimensions, at least one", op, r.format(src.Shape), r.format(dst.Shape))
	}
	r.send(operation{name: op}, o, tensors(src, dst), dst.Shape, func(e *encoder, a arrays) array {
		return e.CopyInto(a[0], a[1])
	})
}
