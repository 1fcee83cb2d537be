package routes

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// What MLX sent in August 2024, before its release 0.17: quantized products, plain and gathered, and quantization.

// seedBits are the bits of a code that there were.
var seedBits = map[int64]bool{2: true, 4: true, 8: true}

// seedMatrixFrom is the rows from which on a matrix-matrix kernel was taken, by whether the matrix is transposed.
var seedMatrixFrom = map[bool]int64{true: 6, false: 4}

func (e *Encoder) seedBits(q Affine) {
	if !seedBits[q.Bits] {
		e.fail("codes of %d bits: MLX of August 2024 has 2, 4 and 8", q.Bits)
	}
}

func (e *Encoder) seedQuantizedMatmul(x Array, m Matrix) Array {
	n, ok := e.outer(m)
	if !ok {
		return Array{}
	}
	out := e.temporary(x.Type, with(x.Shape[:x.Rank()-1], ir.Const(n))...)
	x = e.rowContiguous(x)
	m.Codes, m.Scales, m.Biases = e.rowContiguous(m.Codes), e.rowContiguous(m.Scales), e.rowContiguous(m.Biases)
	k := e.fixed(x.Dim(-1))
	e.seedProduct("", quantizedProduct{x: x, m: m, out: out, k: k, n: n, rows: divide(x.Elements(), k), batch: ir.Const(1)}, nil)
	return out
}

func (e *Encoder) seedGatherQMM(x Array, m Matrix, lhs, rhs Array) Array {
	n, ok := e.outer(m)
	if !ok {
		return Array{}
	}
	out := e.temporary(x.Type, append(with(lhs.Shape), x.Dim(-2), ir.Const(n))...)
	x, m = e.contiguousMatrix(x), e.contiguousMatrices(m)
	p := quantizedProduct{x: x, m: m, out: out, k: e.fixed(x.Dim(-1)), n: n, rows: x.Dim(-2), batch: product(lhs.Shape)}
	e.seedProduct("bs_", p, []Array{lhs, rhs})
	return out
}

// seedProduct sends a product: few rows of a transposed matrix bind it before x, all others behind.
func (e *Encoder) seedProduct(prefix string, p quantizedProduct, indices []Array) {
	e.seedBits(p.m.Affine)
	few := e.at(p.rows) < seedMatrixFrom[p.m.Transposed]
	operands := []Array{p.x, p.m.Codes, p.m.Scales, p.m.Biases}
	numbers := []Size{p.rows, ir.Const(p.n), ir.Const(p.k)}
	if few {
		numbers = sizes(p.k, p.n)
	}
	form, tail, across := "qvm", "", p.n/64
	switch {
	case p.m.Transposed && few:
		form, across = "qmv", ceil(p.n, 8)
		if p.n%8 == 0 && p.k%512 == 0 {
			form = "qmv_fast"
		}
		operands = append(operands[1:], p.x)
	case p.m.Transposed:
		form, tail, across = "qmm_t", aligned(p.n, 32), ceil(p.n, 32)
	case !few:
		form, across = "qmm_n", p.n/32
		if p.n%32 != 0 {
			e.fail("[quantized_matmul] The output size should be divisible by 32 but received %d.", p.n)
		}
	}
	e.kernel("%s%s_%s_gs_%d_b_%d%s", prefix, form, metal(p.x.Type), p.m.Group, p.m.Bits, tail)
	slot := 0
	for _, a := range append(operands, indices...) {
		e.input(slot, a)
		slot++
	}
	e.output(slot, p.out)
	for _, n := range numbers {
		slot++
		e.i32(slot, n)
	}
	if indices != nil {
		e.count(slot+1, indices[0].Rank())
		e.i32(slot+2, indices[0].Shape...)
		e.i64(slot+3, indices[0].Strides...)
		e.i64(slot+4, indices[1].Strides...)
		e.shapes(slot+5, p)
	}
	if few {
		e.threadgroups(grid(ir.Const(across), p.rows, p.batch), 32, 2, 1)
	} else {
		e.threadgroups([3]ir.Extent{ir.Ext(across), tiles(p.rows, 32), {Num: p.batch, Div: 1}}, 32, 2, 2)
	}
}

// seedAffine sends one of the kernels of quantization, whose results are out: of w alone codes, scales and biases; with
// scales and biases codes, or the elements of codes.
func (e *Encoder) seedAffine(kernel string, q Affine, in, out []Array) {
	e.seedBits(q)
	for i := range in {
		in[i] = e.rowContiguous(in[i])
	}
	t, w := out[0].Type, in[0]
	each, last := ir.Const(0), e.fixed(w.Dim(-1))
	switch kernel {
	case "affine_quantize":
		t, each, last = w.Type, divide(w.Elements(), q.Group/32), last/(q.Group/32)
	case "affine_quantize_scales_biases":
		t, each, last = w.Type, divide(w.Elements(), 8/q.Bits), last/(8/q.Bits)
	default:
		each, last = w.Elements().Scale(4), last*4
	}
	e.next.Kernel = fmt.Sprintf("%s_%s_gs_%d_b_%d", kernel, metal(t), q.Group, q.Bits)
	for i, a := range in {
		e.input(i, a)
	}
	for i, a := range out {
		e.output(len(in)+i, a)
	}
	e.quantizeThreads(each, with(w.Shape[:w.Rank()-1], ir.Const(last)), w.Strides)
}

// QuantizeAs sends the codes of w for given scales and biases, which only MLX of August 2024 has a kernel for.
func (e *Encoder) QuantizeAs(w, scales, biases Array, q Affine) Array {
	e.begin()
	if e.Version != August2024 {
		e.fail("quantization by given scales and biases: only MLX of August 2024 has it")
		return Array{}
	}
	codes := e.temporary(ir.U32, with(w.Shape[:w.Rank()-1], ir.Const(e.fixed(w.Dim(-1))*q.Bits/32))...)
	e.seedAffine("affine_quantize_scales_biases", q, []Array{w, scales, biases}, []Array{codes})
	return codes
}
