package record_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/record"
)

// quantizedStack is a stack of matrices [E, R, C] of random codes, and what they stand for.
type quantizedStack struct {
	record.AffineMatrix
	values  []float64
	r, c, e int
}

func (p *products) stack(e, r, c int, bits, group int64, transposed bool) quantizedStack {
	codes := make([]byte, e*r*c*int(bits)/8)
	for i := range codes {
		codes[i] = byte(p.random.Uint32())
	}
	groups := int64(c) / group
	scales, s := p.numbers(int64(e), int64(r), groups)
	biases, b := p.numbers(int64(e), int64(r), groups)
	q := quantizedStack{record.AffineMatrix{
		Codes: p.bytes(ir.U32, codes, int64(e), int64(r), int64(c)*bits/32), Scales: scales, Biases: biases,
		Bits: bits, Group: group, Transposed: transposed,
	}, nil, r, c, e}
	for i := range e * r * c {
		code := 0
		for j := range int(bits) {
			at := i*int(bits) + j
			code |= int(codes[at/8]>>(at%8)&1) << j
		}
		q.values = append(q.values, s[i/int(group)]*float64(code)+b[i/int(group)])
	}
	return q
}

// times multiplies row x with matrix e.
func (q *quantizedStack) times(x []float64, e int) (out []float64) {
	w := q.values[e*q.r*q.c:][:q.r*q.c]
	if q.Transposed {
		for n := range q.r {
			sum := 0.0
			for k, v := range x {
				sum += v * w[n*q.c+k]
			}
			out = append(out, sum)
		}
		return out
	}
	out = make([]float64, q.c)
	for k, v := range x {
		for n := range out {
			out[n] += v * w[k*q.c+n]
		}
	}
	return out
}

// products is a session on the CPU without a compiled library, with inputs of a type.
type products struct {
	t *testing.T
	*record.Session
	typ    ir.DType
	random *rand.Rand
	inputs int
}

func (p *products) bytes(t ir.DType, data []byte, shape ...int64) record.Tensor {
	p.inputs++
	x := p.Input(fmt.Sprint("in", p.inputs), t, shape...)
	require.NoError(p.t, p.Write(x, data))
	return x
}

// numbers returns an input of quarters between −1 and 1, which all types have.
func (p *products) numbers(shape ...int64) (record.Tensor, []float64) {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	values, wide := make([]float32, n), make([]float64, n)
	for i := range values {
		wide[i] = float64(p.random.IntN(9)-4) / 4
		values[i] = float32(wide[i])
	}
	return p.bytes(p.typ, record.Elements(p.typ, values), shape...), wide
}

func (p *products) indices(of []uint32, shape ...int64) record.Tensor {
	var data []byte
	for _, i := range of {
		data = append(data, byte(i), byte(i>>8), byte(i>>16), byte(i>>24))
	}
	return p.bytes(ir.U32, data, shape...)
}

// MLX's quantized products in forms that only our newer kernels have, by these and without a compiled library: against
// float64, and with the kernels that MLX takes.
func TestMLXProductsOfOurOwn(t *testing.T) {
	type form = func(p *products) (record.Tensor, []float64)
	batch := func(bits, group int64, transposed bool, rows, r, c int) form {
		return func(p *products) (record.Tensor, []float64) {
			q := p.stack(3, r, c, bits, group, transposed)
			k := r
			if transposed {
				k = c
			}
			x, v := p.numbers(3, int64(rows), int64(k))
			var want []float64
			for i := range 3 * rows {
				want = append(want, q.times(v[i*k:][:k], i/rows)...)
			}
			return p.MLX().QuantizedMatmul(x, q.AffineMatrix), want
		}
	}
	one := func(bits, group int64, lead []int64, r, c int) form {
		return func(p *products) (record.Tensor, []float64) {
			q := p.stack(1, r, c, bits, group, false)
			q.Codes, q.Scales, q.Biases = q.Codes.Row(ir.Const(0)), q.Scales.Row(ir.Const(0)), q.Biases.Row(ir.Const(0))
			x, v := p.numbers(append(lead, int64(r))...)
			var want []float64
			for i := range len(v) / r {
				want = append(want, q.times(v[i*r:][:r], 0)...)
			}
			return p.MLX().QuantizedMatmul(x, q.AffineMatrix), want
		}
	}
	// As layers of experts do: x [2, 5, 1, rows, K], and for each of its matrices two experts of four.
	gathered := func(bits, group int64, transposed bool, rows, r, c int) form {
		return func(p *products) (record.Tensor, []float64) {
			q := p.stack(4, r, c, bits, group, transposed)
			k := r
			if transposed {
				k = c
			}
			x, v := p.numbers(2, 5, 1, int64(rows), int64(k))
			var of []uint32
			for range 20 {
				of = append(of, uint32(p.random.IntN(4)))
			}
			var want []float64
			for i, e := range of {
				for row := range rows {
					want = append(want, q.times(v[(i/2*rows+row)*k:][:k], int(e))...)
				}
			}
			return p.MLX().GatherQMM(x, q.AffineMatrix, record.Tensor{}, p.indices(of, 2, 5, 2), false), want
		}
	}
	few := func(bits, group int64, rows, n, k int) form {
		return func(p *products) (record.Tensor, []float64) {
			q := p.stack(1, n, k, bits, group, true)
			q.Codes, q.Scales, q.Biases = q.Codes.Row(ir.Const(0)), q.Scales.Row(ir.Const(0)), q.Biases.Row(ir.Const(0))
			x, v := p.numbers(int64(rows), int64(k))
			var want []float64
			for i := range rows {
				want = append(want, q.times(v[i*k:][:k], 0)...)
			}
			return p.MLX().QuantizedMatmul(x, q.AffineMatrix), want
		}
	}
	// 45 rows, each with an expert of four of which one has none, in the order of experts.
	sorted := func(bits, group int64, transposed bool, r, c int) form {
		return func(p *products) (record.Tensor, []float64) {
			q := p.stack(4, r, c, bits, group, transposed)
			k := r
			if transposed {
				k = c
			}
			x, v := p.numbers(45, 1, int64(k))
			var of []uint32
			var want []float64
			for i := range 45 {
				of = append(of, []uint32{0, 2, 3}[min(i/20, 2)])
				want = append(want, q.times(v[i*k:][:k], int(of[i]))...)
			}
			return p.MLX().GatherQMM(x, q.AffineMatrix, record.Tensor{}, p.indices(of, 45), true), want
		}
	}
	for _, c := range []struct {
		name string
		typ  ir.DType
		do   form
		want string // the last kernel
		chip string // another than the usual one
	}{
		{"few rows of a batch", ir.F16, batch(3, 32, false, 2, 40, 96), "affine_qvm_float16_t_gs_32_b_3_batch_1", ""},
		{"few rows of a batch, transposed", ir.BF16, batch(4, 64, true, 2, 40, 192), "affine_qmv_bfloat16_t_gs_64_b_4_batch_1_pr_0_hgs_0_r_4", ""},
		{"many rows of a batch", ir.F32, batch(8, 128, false, 33, 40, 128), "affine_qmm_n_float_gs_128_b_8_batch_1", ""},
		{"many rows of a batch, transposed", ir.F16, batch(6, 64, true, 33, 40, 64), "affine_qmm_t_float16_t_gs_64_b_6_alN_false_batch_1", ""},
		{"few rows", ir.F32, one(2, 32, []int64{2}, 70, 96), "affine_qvm_float_gs_32_b_2_batch_0", ""},
		{"few rows, of several dimensions", ir.F32, one(5, 64, []int64{3, 1}, 70, 128), "affine_qvm_float_gs_64_b_5_batch_0", ""},
		{"few long rows", ir.F32, one(4, 64, []int64{2, 1}, 1030, 64), "col_reduce_small_1_reduce_sumfloat32", ""},
		{"few long rows of bf16", ir.BF16, one(4, 64, []int64{2}, 1030, 64), "col_reduce_small_1_reduce_sumbfloat16", ""},
		{"few very long rows of f16", ir.F16, one(4, 64, []int64{2}, 8200, 64), "col_reduce_looped_1_32_32_reduce_sumfloat16", ""},
		{"few long rows of a batch", ir.F32, batch(4, 64, false, 2, 1030, 64), "col_reduce_small_1_reduce_sumfloat32", ""},
		{"a long row of a batch", ir.F16, batch(3, 32, false, 1, 1024, 64), "col_reduce_small_1_reduce_sumfloat16", ""},
		{"few very long rows of a batch", ir.BF16, batch(8, 32, false, 3, 8200, 32), "col_reduce_looped_1_32_32_reduce_sumbfloat16", ""},
		{"many rows", ir.F16, one(4, 32, []int64{2, 20}, 70, 64), "affine_qmm_n_float16_t_gs_32_b_4_batch_0", ""},
		{"few rows of experts", ir.F16, gathered(4, 64, false, 1, 40, 64), "affine_gather_qvm_float16_t_gs_64_b_4", ""},
		{"few rows of experts, transposed", ir.F16, gathered(5, 32, true, 1, 40, 96), "affine_gather_qmv_float16_t_gs_32_b_5", ""},
		{"few rows of experts in f32", ir.F32, gathered(3, 128, true, 1, 40, 128), "affine_gather_qmv_float_gs_128_b_3", ""},
		{"few rows of experts in bf16, whole steps", ir.BF16, gathered(4, 64, true, 1, 40, 512), "affine_gather_qmv_fast_bfloat16_t_gs_64_b_4", ""},
		{"many rows of experts", ir.BF16, gathered(2, 128, false, 33, 40, 128), "affine_gather_qmm_n_bfloat16_t_gs_128_b_2", ""},
		{"many rows of experts, transposed", ir.F32, gathered(8, 32, true, 33, 64, 32), "affine_gather_qmm_t_float_gs_32_b_8_alN_true", ""},
		{"short rows", ir.F16, few(4, 32, 2, 70, 64), "affine_qmv_quad_float16_t_gs_32_b_4_d_64_batch_0", ""},
		{"short rows of a batch", ir.F32, batch(8, 64, true, 2, 40, 128), "affine_qmv_quad_float_gs_64_b_8_d_128_batch_1", ""},
		{"a few rows together", ir.BF16, few(3, 64, 4, 41, 192), "affine_qmv_wide_bfloat16_t_gs_64_b_3_nv_4_kl_8_batch_0", "applegpu_g16s"},
		{"a few rows together, more than a tile", ir.F32, few(4, 32, 7, 41, 96), "affine_qmv_wide_float_gs_32_b_4_nv_4_kl_8_batch_0", "applegpu_g16s"},
		{"a few rows of a batch together", ir.F16, batch(5, 32, true, 3, 40, 96), "affine_qmv_wide_float16_t_gs_32_b_5_nv_3_kl_8_batch_1", "applegpu_g16s"},
		{"few rows, ragged", ir.F16, few(4, 64, 2, 41, 512), "affine_qmv_fast_float16_t_gs_64_b_4_batch_0_pr_1_hgs_0_r_4", ""},
		{"few rows of a batch, ragged", ir.BF16, batch(6, 64, true, 2, 41, 256), "affine_qmv_fast_bfloat16_t_gs_64_b_6_batch_1_pr_1_hgs_0_r_4", ""},
		{"few rows of a batch, whole", ir.F32, batch(6, 64, true, 2, 40, 256), "affine_qmv_fast_float_gs_64_b_6_batch_1_pr_0_hgs_0_r_4", ""},
		{"many rows in parts", ir.F16, few(4, 64, 40, 64, 512), "steel_gemm_splitk_accum_float16_float32", ""},
		{"many rows in parts, ragged", ir.F32, few(3, 32, 33, 41, 192), "steel_gemm_splitk_accum_float32_float32", ""},
		{"rows of experts in order", ir.F16, sorted(4, 64, true, 40, 64), "affine_gather_qmm_rhs_nt_float16_t_gs_64_b_4_bm_16_bn_32_bk_32_wm_1_wn_2", ""},
		{"rows of experts in order, not transposed", ir.BF16, sorted(6, 32, false, 40, 96), "affine_gather_qmm_rhs_nn_bfloat16_t_gs_32_b_6_bm_16_bn_32_bk_32_wm_1_wn_2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := []record.Setting{record.Live(cpu.New(1)), record.Capture()}
			if c.chip != "" {
				settings = append(settings, record.Chip(c.chip))
			}
			s := record.New("t", settings...)
			p := &products{t, s, c.typ, rand.New(rand.NewPCG(1, 2)), 0}
			got, want := c.do(p)
			require.NoError(t, s.Err())
			var shape []int64
			for _, n := range got.Shape {
				shape = append(shape, n.Const)
			}
			out := s.State("out", c.typ, shape...)
			s.CopyTo("copy", out.Reshape(got.Elements()), got.Reshape(got.Elements()))
			g, err := s.Finish()
			require.NoError(t, err)
			names := functions(g.Graph)
			require.Equal(t, c.want, names[len(names)-2])
			data := make([]byte, out.Elements().Const*c.typ.Size())
			require.NoError(t, s.Read(out, data))
			require.NoError(t, s.Close())
			most := 1.0
			for _, w := range want {
				most = max(most, math.Abs(w))
			}
			tolerance := map[ir.DType]float64{ir.F32: 1e-5, ir.F16: 4e-3, ir.BF16: 3e-2}[c.typ]
			for i, v := range wide(c.typ, data) {
				require.InDelta(t, want[i], v, tolerance*most, "element %d", i)
			}
		})
	}
}

// wide returns elements as float64.
func wide(t ir.DType, data []byte) (out []float64) {
	for ; len(data) > 0; data = data[t.Size():] {
		switch t {
		case ir.F16:
			out = append(out, term.F16Value(binary.LittleEndian.Uint16(data)))
		case ir.BF16:
			out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data))<<16)))
		default:
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
		}
	}
	return out
}
