package record_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Operands that a kernel cannot read are copied where MLX copies them, and the results are those of contiguous
// operands. The copies lie in memory that is given back.
func TestStridedOperands(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(s *record.Session, x record.Tensor) record.Tensor
		sends []string
	}{
		{"norm", func(s *record.Session, x record.Tensor) record.Tensor { return s.RMSNorm(x, 1e-5) }, []string{"g2_copyfloat32float32", "rmsfloat32"}},
		{"layer norm", func(s *record.Session, x record.Tensor) record.Tensor {
			return s.LayerNorm(x, s.RandomWeight("weight", 8, ir.F32, 32), record.Tensor{}, 1e-5)
		}, []string{"g2_copyfloat32float32", "layer_normfloat32"}},
		{"softmax", func(s *record.Session, x record.Tensor) record.Tensor { return s.Softmax(x) }, []string{"g2_copyfloat32float32", "block_softmax_float32"}},
		{"add", func(s *record.Session, x record.Tensor) record.Tensor { return s.Add(x, x) }, []string{"vv_Addfloat32"}},
		{"add of a row", func(s *record.Session, x record.Tensor) record.Tensor {
			return s.Add(x, x.Row(ir.Const(1)))
		}, []string{"g2_Addfloat32"}},
		{"silu", func(s *record.Session, x record.Tensor) record.Tensor { return s.Silu(x) }, []string{"v_Silufloat32float32"}},
		{"product", func(s *record.Session, x record.Tensor) record.Tensor {
			return s.Matmul(x, record.Quantized(record.QTensor{
				W: s.RandomWeight("w", 1, ir.U32, 8, 4), Scales: s.RandomWeight("s", 2, ir.F32, 8, 1), Biases: s.RandomWeight("b", 3, ir.F32, 8, 1),
				N: 8, K: 32, Bits: 4, Group: 32,
			}))
		}, []string{"g2_copyfloat32float32", "affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := record.New("t", record.Live(cpu.New(1)), record.Capture())
			defer s.Close()
			wide := s.RandomWeight("x", 7, ir.F32, 32, 3)
			x := wide.Transpose(0, 1)
			mark := s.ScratchMark()
			y := c.do(s, x)
			require.NoError(t, s.Err())
			require.Equal(t, mark+256*record.Mark((y.Elements().Const*4+255)/256), s.ScratchMark(), "the copy was not given back")
			out := s.Output("y", ir.F32, y.Shape[0].Const, y.Shape[1].Const)
			s.CopyTo("copy", out, y)
			flat := s.Scratch(ir.F32, x.Shape...)
			s.CopyTo("copy", flat, x)
			want := s.Output("want", ir.F32, y.Shape[0].Const, y.Shape[1].Const)
			s.CopyTo("copy", want, c.do(s, flat))
			r, err := s.Finish()
			require.NoError(t, err)
			require.Equal(t, c.sends, functions(r.Graph)[:len(c.sends)])
			a, err := s.Bytes(out)
			require.NoError(t, err)
			b, err := s.Bytes(want)
			require.NoError(t, err)
			require.Equal(t, b, a)
		})
	}
}

// Strided batches of codes are copied too, for kernels of our own, and the product is that of contiguous ones.
func TestStridedCodes(t *testing.T) {
	s := record.New("t", record.Live(cpu.New(1)), record.Capture())
	defer s.Close()
	w := record.AffineMatrix{
		Codes: s.RandomWeight("w", 1, ir.U32, 8, 3, 8), Scales: s.RandomWeight("s", 2, ir.F32, 8, 3, 2), Biases: s.RandomWeight("b", 3, ir.F32, 8, 3, 2),
		Bits: 4, Group: 32, Transposed: true,
	}
	for _, part := range []*record.Tensor{&w.Codes, &w.Scales, &w.Biases} {
		*part = part.Transpose(0, 1)
	}
	x := s.RandomWeight("x", 4, ir.F32, 3, 2, 64)
	out, want := s.Output("y", ir.F32, 3, 2, 8), s.Output("want", ir.F32, 3, 2, 8)
	s.MLX().QuantizedMatmul(x, w, record.Into(out))
	for i, part := range []*record.Tensor{&w.Codes, &w.Scales, &w.Biases} {
		flat := s.State(fmt.Sprint("flat", i), part.DType, part.Shape[0].Const, part.Shape[1].Const, part.Shape[2].Const)
		s.CopyTo("copy", flat, *part)
		*part = flat
	}
	s.MLX().QuantizedMatmul(x, w, record.Into(want))
	r, err := s.Finish()
	require.NoError(t, err)
	require.Equal(t, []string{"g3_copyuint32uint32", "g3_copyfloat32float32", "g3_copyfloat32float32"}, functions(r.Graph)[:3])
	a, err := s.Bytes(out)
	require.NoError(t, err)
	b, err := s.Bytes(want)
	require.NoError(t, err)
	require.Equal(t, b, a)
}

// Results lie in the memory of an operand that is given up, where MLX takes it, and are what they are elsewhere.
func TestDonate(t *testing.T) {
	type operands = []record.Tensor
	f32 := func(s *record.Session, name string, shape ...int64) record.Tensor {
		x := s.Scratch(ir.F32, record.Dims(shape...)...)
		s.CopyTo("copy", x, s.RandomWeight(name, uint64(len(name)), ir.F32, shape...))
		return x
	}
	for _, c := range []struct {
		name   string
		shapes [][]int64
		do     func(m record.MLX, x operands, o ...record.Option) operands
		in     int // the result whose memory is that of the operand which is given up; −1: none
	}{
		{"one operand", [][]int64{{4, 6}}, func(m record.MLX, x operands, o ...record.Option) operands {
			return operands{m.Elementwise("sigmoid", x, o...)}
		}, 0},
		{"two operands", [][]int64{{4, 6}, {4, 6}}, func(m record.MLX, x operands, o ...record.Option) operands {
			return operands{m.Elementwise("multiply", x, o...)}
		}, 0},
		{"an operand that is used twice", [][]int64{{4, 6}}, func(m record.MLX, x operands, o ...record.Option) operands {
			return operands{m.Elementwise("multiply", operands{x[0], x[0]}, o...)}
		}, -1},
		{"rms norm", [][]int64{{4, 64}, {64}}, func(m record.MLX, x operands, o ...record.Option) operands {
			return operands{m.RMSNorm(x[0], x[1], 1e-5, o...)}
		}, 0},
		{"softmax", [][]int64{{4, 64}}, func(m record.MLX, x operands, o ...record.Option) operands {
			return operands{m.Softmax(x[0], true, o...)}
		}, 0},
		{"gradient of a layer norm", [][]int64{{4, 64}, {64}, {64}, {4, 64}}, func(m record.MLX, x operands, o ...record.Option) operands {
			gx, gw, gb := m.LayerNormVJP(x[0], x[1], x[2], x[3], 1e-5, o...)
			return operands{gx, gw, gb}
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := record.New("t", record.Live(cpu.New(1)))
			defer s.Close()
			var x operands
			for i, shape := range c.shapes {
				x = append(x, f32(s, fmt.Sprintf("%*d", i+1, i), shape...))
			}
			var want, got []record.Tensor
			for i, y := range c.do(s.MLX(), x) {
				want = append(want, s.State(fmt.Sprint("want", i), y.DType, y.Elements().Const))
				s.CopyTo("copy", want[i], y.Reshape(y.Elements()))
			}
			for i, y := range c.do(s.MLX(), x, record.Donate(x[0])) {
				require.NoError(t, s.Err())
				require.Equal(t, i == c.in, y.Mem == x[0].Mem && y.Off.Equal(x[0].Off), "result %d", i)
				got = append(got, s.State(fmt.Sprint("got", i), y.DType, y.Elements().Const))
				s.CopyTo("copy", got[i], y.Reshape(y.Elements()))
			}
			_, err := s.Finish()
			require.NoError(t, err)
			for i := range want {
				a, err := s.Bytes(want[i])
				require.NoError(t, err)
				b, err := s.Bytes(got[i])
				require.NoError(t, err)
				require.Equal(t, a, b, "result %d", i)
			}
		})
	}
	s := record.New("t")
	x, y := s.Input("x", ir.F32, 4), s.Input("y", ir.F32, 4)
	s.MLX().Elementwise("sigmoid", operands{x}, record.Donate(y))
	require.ErrorContains(t, s.Err(), "sigmoid: Donate has f32[4], which is no operand")
}

// The barrier between a copy and its reader is the operation's, even where the caller places all others.
func TestTemporariesUnderManualBarriers(t *testing.T) {
	s := record.New("t", record.ManualBarriers())
	s.RMSNorm(s.Input("x", ir.F32, 32, 3).Transpose(0, 1), 1e-5)
	r, err := s.Finish()
	require.NoError(t, err)
	require.Empty(t, r.Races())
	require.Len(t, r.Graph.Nodes, 3)
}

// A chip decides which kernel MLX takes.
func TestChips(t *testing.T) {
	product := func(chip string, rows int64, more ...record.Setting) (string, error) {
		s := record.New("t", append(more, record.Chip(chip))...)
		s.Matmul(s.Input("x", ir.F32, rows, 512), record.Quantized(record.QTensor{
			W: s.RandomWeight("w", 1, ir.U32, 64, 64), Scales: s.RandomWeight("s", 2, ir.F32, 64, 16), Biases: s.RandomWeight("b", 3, ir.F32, 64, 16),
			N: 64, K: 512, Bits: 4, Group: 32,
		}))
		g, err := s.Graph()
		if err != nil {
			return "", err
		}
		return functions(g)[0], nil
	}
	const vector, matrix = "affine_qmv_fast_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", "affine_qmm_t_float_gs_32_b_4_alN_true_batch_0"
	for chip, limit := range map[string]int64{"applegpu_g13g": 14, "applegpu_g13d": 32, "applegpu_g15s": 13, "applegpu_g17p": 33} {
		for rows, want := range map[int64]string{limit - 1: vector, limit: matrix} {
			got, err := product(chip, rows)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s, %d rows", chip, rows)
		}
		for rows, want := range map[int64]string{1: vector, 2: matrix} {
			got, err := product(chip, rows, record.WeightsOnce())
			require.NoError(t, err)
			require.Equal(t, want, got, "%s, %d rows that read weights once", chip, rows)
		}
	}
	_, err := record.New("t", record.Dialect("mlx-1.0")).Graph()
	require.ErrorContains(t, err, `there is no dialect "mlx-1.0": there are mlx-0.16 and mlx-0.32`)
	_, err = product("M4", 1)
	require.ErrorContains(t, err, `"M4" is not the architecture of an Apple GPU`)
}

// With a compiled library at hand, operations take its kernels where ours are missing. They bind what those want, and the
// recording says what they touch.
func TestCompiledKernels(t *testing.T) {
	library, compiled := compiledLibrary(t, "0.32.4")
	s := record.New("t", record.Compiled(compiled))
	x := s.Input("x", ir.BF16, 1, 256)
	many := s.Input("many", ir.F16, 100, 2048)
	wide := s.Input("wide", ir.F16, 8, 4, 4, 4)
	weights := func(t ir.DType, n, k int64) record.Matrix {
		return record.Dense(s.RandomWeight(fmt.Sprint("w", t, n), 1, t, n, k))
	}
	s.Matmul(x, weights(ir.BF16, 64, 256))
	s.Matmul(many, weights(ir.F16, 96, 2048))
	s.Matmul(x, record.Quantized(record.QTensor{
		W: s.RandomWeight("w", 1, ir.U32, 64, 24), Scales: s.RandomWeight("s", 2, ir.BF16, 64, 4), Biases: s.RandomWeight("b", 3, ir.BF16, 64, 4),
		N: 64, K: 256, Bits: 3, Group: 64,
	}))
	s.Sigmoid(wide.Transpose(0, 3).Transpose(1, 2))
	s.CopyTo("copy", s.Output("out", ir.F16, 4, 4, 4, 8), wide.Transpose(0, 3))
	g, err := s.Graph()
	require.NoError(t, err)
	require.Equal(t, []string{
		"gemv_bfloat16_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0",
		"steel_gemm_splitk_nt_float16_float32_bm32_bn32_bk16_wm2_wn2_MN_naligned_K_taligned", "steel_gemm_splitk_accum_float16_float32",
		"affine_qmv_bfloat16_t_gs_64_b_3_batch_0_pr_0_hgs_0_r_4", "v_Sigmoidfloat16float16", "gg3_copyfloat16float16",
	}, functions(g))
	r, err := bind.Check(context.Background(), g, func(*ir.Kernel) bind.Library { return library })
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, 6, r.Dispatches)
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && g.Kernels[d.Kernel].Library.Kind == ir.Metallib {
			require.True(t, d.Effects.Complete)
			require.Len(t, d.Effects.Writes, 1)
		}
	}
}

// Operations in 16 bits take the kernels of their type; results have it too.
func TestOperationsIn16Bits(t *testing.T) {
	for typ, name := range map[ir.DType]string{ir.F16: "float16", ir.BF16: "bfloat16"} {
		t.Run(name, func(t *testing.T) {
			s := record.New("t")
			x := s.Input("x", typ, 2, 64)
			w := record.Quantized(record.QTensor{
				W: s.RandomWeight("w", 1, ir.U32, 64, 8), Scales: s.RandomWeight("s", 2, typ, 64, 1), Biases: s.RandomWeight("b", 3, typ, 64, 1),
				N: 64, K: 64, Bits: 4, Group: 64,
			})
			many := s.Input("many", typ, 2, 64, 64)
			heads := s.Input("heads", typ, 2, 3, 64)
			cache := s.State("cache", typ, 32, 3, 64)
			for _, y := range []record.Tensor{
				s.Matmul(x, w), s.Matmul(many, w), s.Add(s.RMSNorm(x, 1e-5), x), s.Mul(x, s.Input("row", typ, 64)), s.Silu(x),
				s.Sigmoid(x), s.Softmax(x), s.LayerNorm(x, record.Tensor{}, record.Tensor{}, 1e-5), s.Rope(heads, ir.Const(3), 10000, true),
				s.SDPA(heads, cache, cache, ir.Const(9), 0.125), s.Embed(s.Input("ids", ir.I32, 5), w),
			} {
				require.Equal(t, typ, y.DType)
			}
			s.CopyTo("copy", cache.Rows(ir.Const(2), ir.Const(2)), heads)
			require.Equal(t, ir.U32, s.Argmax(x).DType)
			g, err := s.Graph()
			require.NoError(t, err)
			want := []string{
				"affine_qmv_T_t_gs_64_b_4_batch_0_pr_0_hgs_0_r_4", "affine_qmm_t_T_t_gs_64_b_4_alN_true_batch_0",
				"rmsT", "vv_AddT", "g2_MultiplyT", "v_SiluTT", "v_SigmoidTT", "block_softmax_precise_T", "layer_normT", "rope_T",
				"sdpa_rows_T_t_64_64", "affine_embed_T_t_gs_64_b_4", "v_copyTT", "argmax_T",
			}
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "T", name)
			}
			require.Equal(t, want, functions(g))
		})
	}
}
