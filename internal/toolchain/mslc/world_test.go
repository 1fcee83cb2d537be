//go:build sources

package mslc_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// everything names the environment variable that makes tests compile all kernels of all files: that
// takes half an hour. Without it, of a file that takes long only one kernel is compiled.
const everything = "MLXC_LONG"

// uncounted stands where it has not been counted how many kernels are described alike.
const uncounted = -1

// world are the files that others have written, with the number of kernels that they have, how many
// of these are described exactly as in MLX's compiled library of version 0.32.4, and how many it
// does not have. (The sources are a little older. The others differ as their arguments do in the
// newer version, or because one compiler sees that an argument is not used, and the other does not.)
var world = []struct {
	file                   string
	kernels, alike, absent int
	one                    string // the kernel that is compiled alone; "" for all
}{
	{"arange", 11, 11, 0, ""},
	{"arg_reduce", 24, 24, 0, ""},
	{"binary", 4122, 4122, 0, "vv_Addfloat32"},
	{"binary_two", 225, 225, 0, ""},
	{"conv", 18, 18, 0, ""},
	{"copy", 2496, 2496, 0, "v_copyfloat32float16"},
	{"dot", 3, 3, 0, ""},
	{"fence", 3, 0, 3, ""},
	{"fft", 101, 101, 0, "fft_mem_256_float2_float2"},
	{"fp_quantized", 480, 294, 84, "mxfp4_quantize_dequantize_float_gs_32_b_4_hgs_false"},
	{"gemv", 256, 256, 0, "gemv_float32_bm1_bn8_sm1_sn32_tm4_tn4_nc0_axpby0"},
	{"gemv_masked", 528, 456, 0, "gemv_t_outmask_float32_opmask_float32_float32_bm1_bn1_sm8_sn4_tm4_tn1_nc0"},
	{"layer_norm", 12, 12, 0, ""},
	{"logsumexp", 6, 6, 0, ""},
	{"quantized", 2052, uncounted, 0, "affine_dequantize_float_gs_128_b_2"},
	{"random", 2, 2, 0, ""},
	{"reduce", 2396, uncounted, 0, "all_reduce_sumfloat32"},
	{"rms_norm", 12, 12, 0, ""},
	{"rope", 18, 18, 0, ""},
	{"scaled_dot_product_attention", 57, 51, 6, ""},
	{"scan", 456, 456, 0, "contig_scan_inclusive_sum_float32_float32"},
	{"searchsorted", 26, 26, 0, ""},
	{"softmax", 10, 10, 0, ""},
	{"sort", 264, 264, 0, "carg_block_sort_float32_uint32_bn32_tn4"},
	{"ternary", 212, 212, 0, ""},
	{"unary", 877, 877, 0, ""},
	{"steel/attn/kernels/steel_attention", 42, 0, 42, ""},
	{"steel/conv/kernels/steel_conv", 108, uncounted, 0, "implicit_gemm_conv_2d_float32_bm32_bn8_bk16_wm4_wn1_channel_l_filter_s"},
	{"steel/conv/kernels/steel_conv_3d", 36, uncounted, 0, "implicit_gemm_conv_3d_float32_bm32_bn8_bk16_wm4_wn1_filter_s"},
	{"steel/conv/kernels/steel_conv_general", 18, 18, 0, ""},
	{"steel/gemm/kernels/steel_gemm_fused", 96, uncounted, 0, "steel_gemm_fused_nt_float16_float16_bm64_bn64_bk16_wm2_wn2"},
	{"steel/gemm/kernels/steel_gemm_gather", 66, uncounted, 0, "steel_gather_mm_nn_float16_float16_bm64_bn64_bk16_wm2_wn2"},
	{"steel/gemm/kernels/steel_gemm_masked", 768, uncounted, 0, "steel_gemm_block_outmask_bool__opmask_bool__nn_float16_float16_bm32_bn32_bk16_wm2_wn2_MN_taligned_K_taligned"},
	{"steel/gemm/kernels/steel_gemm_segmented", 60, uncounted, 0, "steel_segmented_mm_nn_float16_float16_bm64_bn64_bk16_wm2_wn2"},
	{"steel/gemm/kernels/steel_gemm_splitk", 264, uncounted, 0, "steel_gemm_splitk_nt_float32_float32_bm16_bn16_bk16_wm2_wn2_MN_taligned_K_taligned"},
}

// sources returns the folder of sources, which scripts/fetch-metal-sources.sh fetches.
func sources(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "out", "metal-sources", name)
	if _, err := os.Stat(filepath.Join(dir, "commit")); err != nil {
		t.Fatalf("the Metal sources of %s are missing: run scripts/fetch-metal-sources.sh (%v)", name, err)
	}
	return dir
}

// comparable leaves out of a description what compilers may do differently: names and order of
// threadgroup variables.
func comparable(k air.Kernel) air.Kernel {
	k.Threadgroup = slices.Clone(k.Threadgroup)
	for i := range k.Threadgroup {
		k.Threadgroup[i].Name = ""
	}
	slices.SortFunc(k.Threadgroup, func(a, b air.ThreadgroupMemory) int {
		return int(a.Size<<8 + a.Align - b.Size<<8 - b.Align)
	})
	k.Args = slices.Clone(k.Args)
	for i := range k.Args {
		k.Args[i].Fields = nil // mslc does not list the fields of structs
	}
	return k
}

// becomesObject compiles a module on the way that kernels of compiled libraries take as well, which
// knows all functions of AIR that it calls.
func becomesObject(t *testing.T, k air.Kernel, module string) {
	t.Helper()
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	_, err = host.Build(context.Background(), c, air.Input{Name: "world", IR: []byte(module), Kernel: &k})
	assert.NoError(t, err, k.Name)
}

func TestMLX(t *testing.T) {
	dir := sources(t, "mlx")
	lib := metallibs.Open(t, "0.32.4")
	for _, w := range world {
		t.Run(filepath.Base(w.file), func(t *testing.T) {
			file := filepath.Join(dir, "mlx", "backend", "metal", "kernels", w.file+".metal")
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			o := mslc.Options{Include: []string{dir}}
			all := w.one == "" || os.Getenv(everything) != ""
			if !all {
				o.Kernels = []string{w.one}
			}
			u, err := mslc.Compile(context.Background(), file, string(source), o)
			require.NoError(t, err)
			alike, absent := 0, 0
			for _, k := range u.Kernels {
				text, err := u.Module(k.Name)
				require.NoError(t, err)
				if k.Name == w.one || k.Name == u.Kernels[len(u.Kernels)-1].Name {
					becomesObject(t, k, text)
				}
				theirs, err := lib.Describe(k.Name)
				switch {
				case err != nil:
					absent++
				default:
					differ := cmp.Diff(comparable(*theirs), comparable(k))
					if differ == "" {
						alike++
					} else if !all {
						t.Logf("library -, compiled here +: %s", differ)
					}
				}
			}
			if all && w.alike == uncounted {
				assert.Len(t, u.Kernels, w.kernels)
			} else if all {
				assert.Equal(t, []int{w.kernels, w.alike, w.absent}, []int{len(u.Kernels), alike, absent}, "kernels, as in the library, not in the library")
			} else {
				assert.Equal(t, []int{1, 1}, []int{len(u.Kernels), alike}, "%s is not described as in the library", w.one)
			}
		})
	}
}
