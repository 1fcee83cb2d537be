package record_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// kit is what makes operations and their inputs: of the type that is tested, and of any.
type kit struct {
	record.MLX
	in func(shape ...int64) record.Tensor
	of func(t ir.DType, shape ...int64) record.Tensor
}

// compiledLibrary returns MLX's library of a release, and its kernels.
func compiledLibrary(t *testing.T, version string) (bind.Library, func(string) (ir.Kernel, bool)) {
	library := metallibs.Open(t, version)
	return library, func(function string) (ir.Kernel, bool) {
		k, err := library.Describe(function)
		if err != nil {
			return ir.Kernel{}, false
		}
		out, err := bind.Kernel(k, ir.Library{Kind: ir.Metallib, Path: "mlx.metallib"})
		return out, err == nil
	}
}

// In the dialect of August 2024, quantized products and quantization bind what the library of 0.16.3 wants.
func TestDialectOfAugust2024(t *testing.T) {
	library, compiled := compiledLibrary(t, "0.16.3")
	s := record.New("t", record.Dialect("mlx-0.16"), record.Compiled(compiled))
	m := s.MLX()
	for _, rows := range []int64{1, 6} {
		for _, transposed := range []bool{true, false} {
			x, indices := s.Input(fmt.Sprint("x", rows), ir.F16, 3, rows, 512), s.Input("indices", ir.U32, 3)
			w := m.Quantize(s.Input("w", ir.F16, 4, 512, 512), 4, 64)
			w.Transposed = transposed
			m.GatherQMM(x, w, indices, indices, false)
			w.Codes, w.Scales, w.Biases = w.Codes.Row(ir.Const(0)), w.Scales.Row(ir.Const(0)), w.Biases.Row(ir.Const(0))
			m.QuantizedMatmul(x.Row(ir.Const(1)), w)
			m.Dequantize(w)
		}
	}
	g, err := s.Graph()
	require.NoError(t, err)
	const tail = "_float16_t_gs_64_b_4"
	var want []string
	for _, form := range []string{"qmv_fast", "qvm", "qmm_t", "qmm_n"} {
		end := tail
		if form == "qmm_t" {
			end += "_alN_true"
		}
		want = append(want, "affine_quantize"+tail, "bs_"+form+end, form+end, "affine_dequantize"+tail)
	}
	require.Equal(t, want, functions(g))
	r, err := bind.Check(context.Background(), g, func(*ir.Kernel) bind.Library { return library })
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, len(want), r.Dispatches)
}

// MLX's operations with kernels of MLX's own library bind what these want, in each type, and say what they touch.
func TestMLXOperations(t *testing.T) {
	library, compiled := compiledLibrary(t, "0.32.4")
	absent := record.Tensor{}
	cases := []struct {
		name string
		do   func(k kit) record.Tensor
		want string // the last kernel, with its type left out
	}{
		{"rms_norm", func(k kit) record.Tensor {
			return k.RMSNorm(k.in(2, 3, 576), k.in(576), 1e-5)
		}, "rms%s"},
		{"rms_norm without a weight", func(k kit) record.Tensor {
			return k.RMSNorm(k.in(3, 8192), absent, 1e-5)
		}, "rms_looped%s"},
		{"rms_norm_vjp", func(k kit) record.Tensor {
			gx, gw := k.RMSNormVJP(k.in(40, 64), k.in(64), k.in(40, 64).Transpose(0, 1).Transpose(0, 1), 1e-5)
			require.Equal(t, record.Dims(64), gw.Shape)
			return gx
		}, "col_reduce_looped_1_32_32_reduce_sum%s"},
		{"layer_norm_vjp", func(k kit) record.Tensor {
			_, _, gb := k.LayerNormVJP(k.in(5, 64), k.in(64), k.in(64), k.in(5, 64), 1e-5)
			return gb
		}, "col_reduce_small_1_reduce_sum%s"},
		{"rope by a table", func(k kit) record.Tensor {
			return k.Rope(k.in(2, 4, 7, 64), k.of(ir.I32, 2), k.of(ir.F32, 16), record.Rope{Dims: 32, Scale: 1})
		}, "rope_freqs_%s"},
		{"rope of one position", func(k kit) record.Tensor {
			return k.Rope(k.in(1, 4, 1, 64), k.of(ir.I32, 1), absent, record.Rope{Dims: 64, Traditional: true, Base: 10000, Scale: 1})
		}, "rope_single_%s"},
		{"attention, masked", func(k kit) record.Tensor {
			return k.Attention(k.in(2, 4, 3, 64), k.in(2, 2, 40, 64), k.in(2, 2, 40, 64), k.of(ir.Bool, 3, 40), k.in(4), 0.125, false)
		}, "sdpa_vector_%t_64_64"},
		{"attention of many queries", func(k kit) record.Tensor {
			return k.Attention(k.in(1, 4, 33, 128), k.in(1, 4, 40, 128), k.in(1, 4, 40, 128), absent, absent, 0.1, true)
		}, "steel_attention_%s_bq32_bk16_bd128_bv128_wm4_wn1_mask%s"},
		{"attention of no kernel", func(k kit) record.Tensor {
			return k.Attention(k.in(1, 4, 20, 48), k.in(1, 2, 40, 48), k.in(1, 2, 40, 48), absent, absent, 0.1, true)
		}, "steel_gemm_fused_nn_%s_%s_bm64_bn64_bk16_wm%w_wn2"},
		{"quantized_matmul of a batch", func(k kit) record.Tensor {
			w := record.AffineMatrix{Codes: k.of(ir.U32, 3, 96, 40), Scales: k.in(3, 96, 2), Biases: k.in(3, 96, 2), Bits: 5, Group: 128, Transposed: true}
			return k.QuantizedMatmul(k.in(3, 2, 256), w)
		}, "affine_qmv_%t_gs_128_b_5_batch_1_pr_0_hgs_0_r_4"},
		{"quantized_matmul, not transposed", func(k kit) record.Tensor {
			w := record.AffineMatrix{Codes: k.of(ir.U32, 2048, 32), Scales: k.in(2048, 4), Biases: k.in(2048, 4), Bits: 4, Group: 64}
			return k.QuantizedMatmul(k.in(1, 2048), w)
		}, "col_reduce_small_1_reduce_sum%s"},
		{"gather_qmm", func(k kit) record.Tensor {
			w := record.AffineMatrix{Codes: k.of(ir.U32, 8, 64, 64), Scales: k.in(8, 64, 8), Biases: k.in(8, 64, 8), Bits: 4, Group: 64, Transposed: true}
			return k.GatherQMM(k.in(5, 1, 512), w, absent, k.of(ir.U32, 5), false)
		}, "affine_gather_qmv_fast_%t_gs_64_b_4"},
		{"quantize", func(k kit) record.Tensor {
			return k.Dequantize(k.Quantize(k.in(6, 256), 6, 64))
		}, "affine_dequantize_%t_gs_64_b_6"},
		{"addmm", func(k kit) record.Tensor {
			return k.AddMM(k.in(1, 300), k.in(300, 64), k.in(64), 2, 0.5)
		}, "gemv_t_%s_bm1_bn2_sm8_sn4_tm4_tn4_nc0_axpby1"},
		{"where", func(k kit) record.Tensor {
			return k.Where(k.Elementwise("less", []record.Tensor{k.in(4, 5), k.in(5)}), k.in(4, 1), k.in(4, 5))
		}, "g2_Select%s"},
		{"sum", func(k kit) record.Tensor {
			return k.Reduce("sum", k.in(100, 70), []int{1})
		}, "row_reduce_simple_sum%s"},
		{"argmin", func(k kit) record.Tensor {
			return k.ArgReduce("argmin", k.in(3, 50), 1)
		}, "argmin_%s"},
		{"argsort", func(k kit) record.Tensor {
			return k.ArgSort(k.in(3, 50), 1)
		}, "carg_block_sort_%s_uint32_bn32_tn4"},
		{"concatenate", func(k kit) record.Tensor {
			return k.Concatenate(1, []record.Tensor{k.in(2, 3), k.in(2, 4)})
		}, "gg2_copy%s%s"},
		{"cumsum", func(k kit) record.Tensor {
			return k.CumSum(k.in(2, 30), 1, false, true)
		}, "contig_scan_inclusive_sum_%s_%s"},
		{"exp of integers", func(k kit) record.Tensor {
			return k.Elementwise("exp", []record.Tensor{k.of(ir.I32, 30)})
		}, "v_Expfloat32float32"},
		{"astype", func(k kit) record.Tensor {
			return k.AsType(k.LogSumExp(k.in(3, 40)), ir.I32)
		}, "v_copy%sint32"},
	}
	for typ, names := range map[ir.DType][2]string{ir.F32: {"float32", "float"}, ir.F16: {"float16", "float16_t"}, ir.BF16: {"bfloat16", "bfloat16_t"}} {
		for _, c := range cases {
			t.Run(fmt.Sprint(c.name, " ", typ), func(t *testing.T) {
				s := record.New("t", record.Compiled(compiled))
				of := func(typ ir.DType, shape ...int64) record.Tensor {
					return s.Input(fmt.Sprint("in", len(shape), shape, typ), typ, shape...)
				}
				in := func(shape ...int64) record.Tensor { return of(typ, shape...) }
				c.do(kit{s.MLX(), in, of})
				g, err := s.Graph()
				require.NoError(t, err)
				var want string
				for i := 0; i < len(c.want); i++ {
					switch {
					case c.want[i] != '%':
						want += c.want[i : i+1]
					case c.want[i+1] == 'w': // simdgroups of a tile
						want += map[bool]string{true: "2", false: "1"}[typ == ir.F32]
						i++
					case c.want[i+1] == 's':
						want += names[0]
						i++
					default:
						want += names[1]
						i++
					}
				}
				all := functions(g)
				require.Equal(t, want, all[len(all)-1])
				r, err := bind.Check(context.Background(), g, func(*ir.Kernel) bind.Library { return library })
				require.NoError(t, err)
				require.Empty(t, r.Faults)
			})
		}
	}
	s := record.New("t")
	s.MLX().Reduce("sum", s.Input("x", ir.F32, 100, 70), []int{1})
	require.ErrorContains(t, s.Err(), `the kernel library has no function "row_reduce_simple_sumfloat32"`)
}
