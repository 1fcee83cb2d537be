package routes

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// unpacked is how many elements a thread of dequantize writes, by bits.
var unpacked = map[int64]int64{2: 4, 3: 8, 4: 2, 5: 8, 6: 4, 8: 1}

// Quantize sends the affine quantization of w, and returns codes, scales and biases.
func (e *Encoder) Quantize(w Array, q Affine) Matrix {
	e.begin()
	row := e.fixed(w.Dim(-1))
	outside := w.Shape[:w.Rank()-1]
	m := Matrix{Affine: q, Transposed: true}
	m.Codes = e.temporary(ir.U32, with(outside, ir.Const(row*q.Bits/32))...)
	m.Scales = e.temporary(w.Type, with(outside, ir.Const(row/q.Group))...)
	m.Biases = e.temporary(w.Type, m.Scales.Shape...)
	if e.Version == August2024 {
		e.seedAffine("affine_quantize", q, []Array{w}, []Array{m.Codes, m.Scales, m.Biases})
		return m
	}
	w = e.rowContiguous(w)
	e.kernel("affine_quantize_%s_gs_%d_b_%d", metal(w.Type), q.Group, q.Bits)
	e.input(0, w)
	e.output(1, m.Codes)
	e.output(2, m.Scales)
	e.output(3, m.Biases)
	each := max(q.Group/32, 1)
	e.quantizeThreads(divide(w.Elements(), each), with(outside, ir.Const(row/each)), w.Strides)
	return m
}

// Dequantize sends the elements of m.
func (e *Encoder) Dequantize(m Matrix) Array {
	e.begin()
	words := e.fixed(m.Codes.Dim(-1))
	outside := m.Codes.Shape[:m.Codes.Rank()-1]
	out := e.temporary(m.Scales.Type, with(outside, ir.Const(words*32/m.Bits))...)
	if e.Version == August2024 {
		e.seedAffine("affine_dequantize", m.Affine, []Array{m.Codes, m.Scales, m.Biases}, []Array{out})
		return out
	}
	m.Codes = e.rowContiguous(m.Codes)
	m.Scales = e.rowContiguous(m.Scales)
	e.input(0, m.Codes)
	e.input(1, m.Scales)
	m.Biases = e.rowContiguous(m.Biases)
	e.input(2, m.Biases)
	e.output(3, out)
	e.kernel("affine_dequantize_%s_gs_%d_b_%d", metal(out.Type), m.Group, m.Bits)
	e.quantizeThreads(divide(out.Elements(), unpacked[m.Bits]), with(outside, ir.Const(words*4)), m.Codes.Strides)
	return out
}

// quantizeThreads sends a grid of n threads, over two dimensions of the shape if n needs more than 32 bits.
func (e *Encoder) quantizeThreads(n Size, shape, strides []Size) {
	g := grid(n, ir.Const(1), ir.Const(1))
	if e.at(n) > math.MaxUint32 {
		x, y := e.flat(shape, strides, 1)
		g = grid(x, y, ir.Const(1))
	}
	e.threads(g, min(1024, e.at(n)), 1, 1)
}
