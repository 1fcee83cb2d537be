package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// MLX has MLX's operations by their names and with their semantics: operands of any type that MLX takes, in any layout,
// broadcast where MLX broadcasts. Each records the dispatches that MLX's host code sends (docs/kernels.md, "Routes"). The
// operations of [Session] itself are those that our library has kernels for. These take the kernels of a compiled library
// ([Compiled]), so that a recording sends what MLX sends; without one, or where it lacks a kernel, they take ours, and an
// operation that neither has is an error that names the kernel.
//
// A zero Tensor stands for an operand that MLX lets one leave out.
type MLX struct{ s *Session }

// MLX returns the operations of MLX.
func (s *Session) MLX() MLX { return MLX{s} }

// bitsOf returns a float as a number of an operation.
func bitsOf(v float32) uint64 { return uint64(math.Float32bits(v)) }

func flagOf(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// one records an operation of one result.
func (m MLX) one(a operation, o []Option, in []Tensor, ask func(*encoder, arrays) array) Tensor {
	if len(in) == 0 || in[0].owner == 0 {
		m.s.fail("%s: its first operand is a zero Tensor", a.name)
		return m.s.broken(ir.F32, 1)
	}
	a.exact = true
	return m.s.send(a, o, tensors(in...), nil, ask)
}

// Elementwise computes an operation of one or two operands by MLX's name, such as "exp" or "less", whose result may be
// boolean. Integers are converted first where MLX does it.
func (m MLX) Elementwise(name string, operands []Tensor, o ...Option) Tensor {
	if m.present(name, operands...) {
		shapes := make([][]ir.Affine, len(operands))
		for i := range operands {
			shapes[i] = operands[i].Shape
		}
		for i := range operands {
			if m.s.err == nil && operands[i].DType != operands[0].DType {
				m.s.fail("%s takes operands of one type, not %s and %s: AsType converts", name, operands[0].DType, operands[i].DType)
			}
		}
		m.broadcast(name, shapes...)
	}
	return m.one(operation{name: name, detail: "elementwise"}, o, operands, func(e *encoder, x arrays) array {
		return e.Elementwise(name, x...)
	})
}

// AsType converts x.
func (m MLX) AsType(x Tensor, t ir.DType, o ...Option) Tensor {
	if m.present("astype", x) && t.Size() == 0 {
		m.s.fail("astype: %s is no type of elements", t)
	}
	return m.one(operation{name: "astype", numbers: [5]uint64{uint64(t)}}, o, []Tensor{x}, func(e *encoder, x arrays) array {
		return e.AsType(x[0], t)
	})
}

// Contiguous returns x, or a copy of x if it is not row-contiguous.
func (m MLX) Contiguous(x Tensor, o ...Option) Tensor {
	return m.one(operation{name: "contiguous"}, o, []Tensor{x}, func(e *encoder, x arrays) array {
		return e.Contiguous(x[0])
	})
}

// Where selects a where condition holds, and b elsewhere.
func (m MLX) Where(condition, a, b Tensor, o ...Option) Tensor {
	if m.present("where", condition, a, b) {
		m.broadcast("where", condition.Shape, a.Shape, b.Shape)
		if condition.DType != ir.Bool || a.DType != b.DType {
			m.s.fail("where: %s selects from %s and %s: want bool, and two of one type", condition.DType, a.DType, b.DType)
		}
	}
	return m.one(operation{name: "where"}, o, []Tensor{condition, a, b}, func(e *encoder, x arrays) array {
		return e.Select(x[0], x[1], x[2])
	})
}

// Reduce reduces axes, in ascending order, by sum, prod, max, min, and, or.
func (m MLX) Reduce(op string, x Tensor, axes []int, o ...Option) Tensor {
	if m.axes(op, x, axes...); m.s.err == nil && (len(axes) == 0 || !slices.Contains([]string{"sum", "prod", "max", "min", "and", "or"}, op)) {
		m.s.fail("%s over the axes %v: want sum, prod, max, min, and, or, over at least one axis", op, axes)
	}
	a := operation{name: op, detail: fmt.Sprint("reduce ", axes)}
	return m.one(a, o, []Tensor{x}, func(e *encoder, x arrays) array {
		return e.Reduce(routes.ReduceOp(op), x[0], axes)
	})
}

// ArgReduce returns the indices along an axis that argmin or argmax finds, as u32.
func (m MLX) ArgReduce(op string, x Tensor, axis int, o ...Option) Tensor {
	if m.axes(op, x, axis); m.s.err == nil && op != "argmin" && op != "argmax" {
		m.s.fail("%s: want argmin or argmax", op)
	}
	a := operation{name: op, numbers: [5]uint64{uint64(axis)}}
	return m.one(a, o, []Tensor{x}, func(e *encoder, x arrays) array { return e.ArgReduce(op, x[0], axis) })
}

// CumSum adds up along an axis.
func (m MLX) CumSum(x Tensor, axis int, reverse, inclusive bool, o ...Option) Tensor {
	m.axes("cumsum", x, axis)
	a := operation{name: "cumsum", numbers: [5]uint64{uint64(axis), flagOf(reverse), flagOf(inclusive)}}
	return m.one(a, o, []Tensor{x}, func(e *encoder, x arrays) array {
		return e.Scan(x[0], axis, reverse, inclusive)
	})
}

// Sort sorts along an axis.
func (m MLX) Sort(x Tensor, axis int, o ...Option) Tensor { return m.sort("sort", x, axis, o) }

// ArgSort returns the indices that sort x along an axis, as u32.
func (m MLX) ArgSort(x Tensor, axis int, o ...Option) Tensor { return m.sort("argsort", x, axis, o) }

func (m MLX) sort(name string, x Tensor, axis int, o []Option) Tensor {
	m.axes(name, x, axis)
	a := operation{name: name, numbers: [5]uint64{uint64(axis)}}
	return m.one(a, o, []Tensor{x}, func(e *encoder, x arrays) array { return e.Sort(x[0], axis, name == "argsort") })
}

// Take returns the rows of table, along its first dimension, that ids say.
func (m MLX) Take(table, ids Tensor, o ...Option) Tensor {
	if m.present("take", table, ids) && m.rank("take", 1, table) {
		m.indices("take", ids)
	}
	return m.one(operation{name: "take"}, o, []Tensor{table, ids}, func(e *encoder, x arrays) array {
		return e.Take(x[0], x[1])
	})
}

// TakeAlongAxis returns the elements of x that ids name along an axis.
func (m MLX) TakeAlongAxis(x, ids Tensor, axis int, o ...Option) Tensor {
	const op = "take_along_axis"
	if m.axes(op, x, axis); m.present(op, x, ids) {
		m.indices(op, ids)
		if want := slices.Clone(x.Shape); ids.Rank() != len(want) {
			m.s.fail("%s: ids %s of %s: want as many dimensions", op, m.s.format(ids.Shape), m.s.format(x.Shape))
		} else if want[axis] = ids.Shape[axis]; !equalShapes(want, ids.Shape) {
			m.s.fail("%s: ids %s of %s: they differ in other dimensions than axis %d", op, m.s.format(ids.Shape), m.s.format(x.Shape), axis)
		}
	}
	a := operation{name: op, numbers: [5]uint64{uint64(axis)}}
	return m.one(a, o, []Tensor{x, ids}, func(e *encoder, x arrays) array {
		return e.TakeAlongAxis(x[0], x[1], axis)
	})
}

// Concatenate puts tensors behind one another along an axis.
func (m MLX) Concatenate(axis int, parts []Tensor, o ...Option) Tensor {
	const op = "concatenate"
	if m.present(op, parts...) && len(parts) > 0 {
		m.axes(op, parts[0], axis)
		for _, p := range parts {
			if m.s.err != nil {
				break
			}
			want := slices.Clone(parts[0].Shape)
			if p.Rank() == len(want) {
				want[axis] = p.Shape[axis]
			}
			m.shaped(op, "a part", p, parts[0].DType, want...)
		}
	}
	a := operation{name: op, numbers: [5]uint64{uint64(axis)}}
	return m.one(a, o, parts, func(e *encoder, x arrays) array { return e.Concatenate(axis, x...) })
}

// Softmax is the softmax over the last dimension; precise computes in f32 whatever the type.
func (m MLX) Softmax(x Tensor, precise bool, o ...Option) Tensor {
	m.floats("softmax", x)
	a := operation{name: "softmax", numbers: [5]uint64{flagOf(precise)}}
	return m.one(a, o, []Tensor{x}, func(e *encoder, x arrays) array { return e.Softmax(x[0], precise) })
}

// LogSumExp is log Σ exp over the last dimension.
func (m MLX) LogSumExp(x Tensor, o ...Option) Tensor {
	m.floats("logsumexp", x)
	return m.one(operation{name: "logsumexp"}, o, []Tensor{x}, func(e *encoder, x arrays) array {
		return e.LogSumExp(x[0])
	})
}

// RMSNorm is x/√(mean x² + eps)·w over the last dimension. w may be left out.
func (m MLX) RMSNorm(x, w Tensor, eps float32, o ...Option) Tensor {
	m.norm("rms_norm", x, w)
	a := operation{name: "rms_norm", numbers: [5]uint64{bitsOf(eps)}}
	return m.one(a, o, []Tensor{x, w}, func(e *encoder, x arrays) array { return e.RMSNorm(x[0], x[1], eps) })
}

// RMSNormVJP returns the gradients of x and w, for a gradient g of the result.
func (m MLX) RMSNormVJP(x, w, g Tensor, eps float32, o ...Option) (gx, gw Tensor) {
	if m.norm("rms_norm_vjp", x, w); m.present("rms_norm_vjp", x, w, g) {
		m.shaped("rms_norm_vjp", "the gradient", g, x.DType, x.Shape...)
	}
	var out [2]Tensor
	a := operation{name: "rms_norm_vjp", numbers: [5]uint64{bitsOf(eps)}}
	a.exact = true
	m.s.sendAll(a, o, tensors(x, w, g), nil, out[:], func(e *encoder, x arrays) arrays {
		gx, gw := e.RMSNormVJP(x[0], x[1], x[2], eps)
		return arrays{gx, gw}
	})
	return out[0], out[1]
}

// LayerNormVJP returns the gradients of x, w and b, for a gradient g of the result.
func (m MLX) LayerNormVJP(x, w, b, g Tensor, eps float32, o ...Option) (gx, gw, gb Tensor) {
	if m.norm("layer_norm_vjp", x, w, b); m.present("layer_norm_vjp", x, w, b, g) {
		m.shaped("layer_norm_vjp", "the gradient", g, x.DType, x.Shape...)
	}
	var out [3]Tensor
	a := operation{name: "layer_norm_vjp", numbers: [5]uint64{bitsOf(eps)}}
	a.exact = true
	m.s.sendAll(a, o, tensors(x, w, b, g), nil, out[:], func(e *encoder, x arrays) arrays {
		gx, gw, gb := e.LayerNormVJP(x[0], x[1], x[2], x[3], eps)
		return arrays{gx, gw, gb}
	})
	return out[0], out[1], out[2]
}

// Rope says how [MLX.Rope] rotates: the first Dims elements of each row, by positions times Scale.
type Rope struct {
	Dims        int64
	Traditional bool
	Base, Scale float32 // Base is not used where there are frequencies
	Backward    bool    // by the negative angles, as the gradient of a rotation is turned
}

// Rope rotates rows of x [B, …, T, D]. offset is the position of the first row, i32, one or one for each of B; freqs
// [Dims/2], f32, may be left out.
func (m MLX) Rope(x, offset, freqs Tensor, r Rope, o ...Option) Tensor {
	if m.floats("rope", x) && m.present("rope", x, offset) && m.rank("rope", 3, x) {
		if d := x.Shape[x.Rank()-1]; !d.IsConst() || r.Dims < 2 || r.Dims%2 != 0 || r.Dims > d.Const {
			m.s.fail("rope: %d of the elements of rows %s: want an even number of them", r.Dims, m.s.format(x.Shape))
		}
		if n := offset.Elements(); m.s.err == nil && (offset.DType != ir.I32 || !n.Equal(ir.Const(1)) && !n.Equal(x.Shape[0])) {
			m.s.fail("rope: offsets are %s%s: want one i32, or one for each of %s", offset.DType, m.s.format(offset.Shape), m.s.g.FormatAffine(x.Shape[0]))
		}
		m.shaped("rope", "the frequencies", freqs, ir.F32, ir.Const(r.Dims/2))
	}
	a := operation{name: "rope", numbers: [5]uint64{uint64(r.Dims), flagOf(r.Traditional), bitsOf(r.Base), bitsOf(r.Scale), flagOf(r.Backward)}}
	return m.one(a, o, []Tensor{x, offset, freqs}, func(e *encoder, x arrays) array {
		return e.Rope(x[0], x[1], x[2], routes.Rope{Dims: r.Dims, Traditional: r.Traditional, Base: r.Base, Scale: r.Scale, Backward: r.Backward, Stored: m.s.compiled == nil})
	})
}

// Attention is scaled dot product attention of q [B, Hq, L, D] over k [B, Hk, N, D] and v [B, Hk, N, V]: mask, boolean or
// added, and sinks [Hq] may be left out. A window is a boolean mask.
func (m MLX) Attention(q, k, v, mask, sinks Tensor, scale float32, causal bool, o ...Option) Tensor {
	m.attention(q, k, v, mask, sinks)
	a := operation{name: "scaled_dot_product_attention", numbers: [5]uint64{bitsOf(scale), flagOf(causal)}}
	return m.one(a, o, []Tensor{q, k, v, mask, sinks}, func(e *encoder, x arrays) array {
		return e.Attention(x[0], x[1], x[2], routes.Attention{Scale: scale, Causal: causal, Mask: x[3], Sinks: x[4]})
	})
}

// AddMM is α·a·b + β·c, batches and c broadcast. c may be left out.
func (m MLX) AddMM(a, b, c Tensor, alpha, beta float32, o ...Option) Tensor {
	if m.product("addmm", a, b) {
		to := append(m.broadcast("addmm", batch(a), batch(b)), a.Shape[a.Rank()-2], b.Shape[b.Rank()-1])
		if c.owner != 0 && len(m.broadcast("addmm", to, c.Shape)) > len(to) {
			m.s.fail("addmm: %s has more dimensions than the product %s", m.s.format(c.Shape), m.s.format(to))
		}
	}
	op := operation{name: "addmm", numbers: [5]uint64{bitsOf(alpha), bitsOf(beta)}}
	return m.one(op, o, []Tensor{a, b, c}, func(e *encoder, x arrays) array {
		return e.AddMM(x[0], x[1], x[2], alpha, beta)
	})
}

// GatherMM multiplies a[lhs] by b[rhs]. Indices may be left out, and then count; sorted says that rhs ascends.
func (m MLX) GatherMM(a, b, lhs, rhs Tensor, sorted bool, o ...Option) Tensor {
	m.product("gather_mm", a, b)
	m.indices("gather_mm", lhs, rhs)
	if lhs.owner != 0 && rhs.owner != 0 {
		m.broadcast("gather_mm", lhs.Shape, rhs.Shape)
	}
	op := operation{name: "gather_mm", numbers: [5]uint64{flagOf(sorted)}}
	return m.one(op, o, []Tensor{a, b, lhs, rhs}, func(e *encoder, x arrays) array {
		return e.GatherMM(x[0], x[1], x[2], x[3], sorted)
	})
}

// AffineMatrix is a matrix in affine quantization, as MLX has it: codes [..., N, K·Bits/32] in u32, scales and biases
// [..., N, K/Group]; [..., K, N] with rows along N if it is not transposed.
type AffineMatrix struct {
	Codes, Scales, Biases Tensor
	Bits, Group           int64
	Transposed            bool
}

func (m AffineMatrix) numbers(more ...uint64) (n [5]uint64) {
	copy(n[:], append([]uint64{uint64(m.Bits), uint64(m.Group), flagOf(m.Transposed)}, more...))
	return n
}

// matrix returns m with the arrays that stand for its parts.
func (m AffineMatrix) matrix(x arrays) routes.Matrix {
	return routes.Matrix{Codes: x[0], Scales: x[1], Biases: x[2], Affine: routes.Affine{Bits: m.Bits, Group: m.Group}, Transposed: m.Transposed}
}

// QuantizedMatmul multiplies x [..., M, K] by w, batches broadcast.
func (m MLX) QuantizedMatmul(x Tensor, w AffineMatrix, o ...Option) Tensor {
	if m.present("quantized_matmul", x) {
		m.quantized("quantized_matmul", x, w)
	}
	a := operation{name: "quantized_matmul", numbers: w.numbers()}
	return m.one(a, o, []Tensor{x, w.Codes, w.Scales, w.Biases}, func(e *encoder, x arrays) array {
		return e.QuantizedMatmul(x[0], w.matrix(x[1:]))
	})
}

// GatherQMM multiplies x[lhs] by w[rhs], as [MLX.GatherMM].
func (m MLX) GatherQMM(x Tensor, w AffineMatrix, lhs, rhs Tensor, sorted bool, o ...Option) Tensor {
	if m.present("gather_qmm", x) && m.rank("gather_qmm", 2, x) {
		m.quantized("gather_qmm", x, w)
	}
	m.indices("gather_qmm", lhs, rhs)
	if lhs.owner != 0 && rhs.owner != 0 {
		m.broadcast("gather_qmm", lhs.Shape, rhs.Shape)
	}
	a := operation{name: "gather_qmm", numbers: w.numbers(flagOf(sorted))}
	return m.one(a, o, []Tensor{x, w.Codes, w.Scales, w.Biases, lhs, rhs}, func(e *encoder, x arrays) array {
		return e.GatherQMM(x[0], w.matrix(x[1:]), x[4], x[5], sorted)
	})
}

// Quantize quantizes the rows of w.
func (m MLX) Quantize(w Tensor, bits, group int64, o ...Option) AffineMatrix {
	m.s.quantization("quantize", bits, group)
	if m.floats("quantize", w) && m.rank("quantize", 2, w) {
		if k := w.Shape[w.Rank()-1]; !k.IsConst() || k.Const%group != 0 {
			m.s.fail("quantize: the rows of %s are not whole groups of %d", m.s.format(w.Shape), group)
		}
	}
	var out [3]Tensor
	a := operation{name: "quantize", numbers: [5]uint64{uint64(bits), uint64(group)}}
	a.exact = true
	m.s.sendAll(a, o, tensors(w), nil, out[:], func(e *encoder, x arrays) arrays {
		q := e.Quantize(x[0], routes.Affine{Bits: bits, Group: group})
		return arrays{q.Codes, q.Scales, q.Biases}
	})
	return AffineMatrix{Codes: out[0], Scales: out[1], Biases: out[2], Bits: bits, Group: group, Transposed: true}
}

// Dequantize returns the elements of w.
func (m MLX) Dequantize(w AffineMatrix, o ...Option) Tensor {
	m.quantized("dequantize", Tensor{}, w)
	a := operation{name: "dequantize", numbers: w.numbers()}
	return m.one(a, o, []Tensor{w.Codes, w.Scales, w.Biases}, func(e *encoder, x arrays) array {
		return e.Dequantize(w.matrix(x))
	})
}
