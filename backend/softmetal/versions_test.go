//go:build unix

package softmetal_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// varied are kernels of every kind: rows and coroutines, simdgroup functions and matrices,
// halves and bfloats, threadgroup memory, function constants, private arrays.
var varied = []string{
	"affine_qmm_t_float_gs_64_b_4_alN_false_batch_0", "affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4",
	"argmax_float32", "block_softmax_float32", "col_reduce_small_1_reduce_sumfloat32", "g3_copyfloat32float32",
	"gemm_nt_float32", "ggml_mul_mv_q6_K_f32", "layer_normbfloat16", "rms_loopedfloat16", "rope_float32",
	"sdpa_vector_float_64_64", "topk_float32", "v_Gelufloat32float32", "v_copyfloat16float16",
	"vjp_layer_normfloat32", "vv_Addfloat16",
}

// TestVersions compares the oldest supported clang with the default one: the kernels that they compile compute the
// same bits, except those of NaNs.
func TestVersions(t *testing.T) {
	sample.Seldom(t)
	ctx := context.Background()
	used, err := clang.Find(ctx)
	require.NoError(t, err)
	oldest, err := clang.Oldest(ctx)
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		options softmetal.Options
		kernels []string
	}{
		{"source", softmetal.Options{}, varied},
		{"library", softmetal.Options{Library: metallibs.Path(t, "0.32.4")}, []string{
			"affine_qmm_t_float_gs_64_b_4_alN_false_batch_0", "block_softmax_float32", "layer_normbfloat16",
			"sdpa_vector_float_64_64", "v_copyfloat16float16", "vjp_layer_normfloat32",
		}},
		{"checked", softmetal.Options{Check: true}, []string{"layer_normbfloat16", "gemm_nt_float32"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var devices []*softmetal.Device
			for _, compiler := range []clang.Compiler{used, oldest} {
				t.Setenv(clang.Env, compiler.Path)
				o := c.options
				o.Workers = 1
				d, err := softmetal.New(ctx, o)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, d.Close()) })
				devices = append(devices, d)
				assert.Contains(t, d.Info().Description, fmt.Sprint("clang ", compiler.Version))
			}
			ran := map[string]int{}
			most := 3 // cases of a function: each may have other function constants, and be compiled again for them
			if sample.Whole() {
				most = 20
			}
			kernels := sample.Of(t, c.name, c.kernels, sample.Few)
			require.NoError(t, conformance.Sample(20, 5, func([]string, func(string) string) []string { return kernels }, func(x *conformance.Case) error {
				if ran[x.Function]++; ran[x.Function] > most {
					return nil
				}
				one, err := x.Run(devices[0])
				require.NoError(t, err)
				two, err := x.Run(devices[1])
				require.NoError(t, err)
				for m := range one {
					require.NoError(t, sameNumbers(one[m], two[m]), "%v, memory %d", x, m)
				}
				return nil
			}))
			assert.Len(t, ran, len(kernels))
		})
	}
}

// sameNumbers compares memory that holds floats of 32 or 16 bits, or integers. All NaNs are equal.
func sameNumbers(one, two []byte) error {
	for i := 0; i+4 <= len(one); i += 4 {
		a, b := binary.LittleEndian.Uint32(one[i:]), binary.LittleEndian.Uint32(two[i:])
		if a == b || nan32(a) && nan32(b) || sameHalf(uint16(a), uint16(b)) && sameHalf(uint16(a>>16), uint16(b>>16)) {
			continue
		}
		return fmt.Errorf("at byte %d %08x and %08x", i, a, b)
	}
	return nil
}

func nan32(a uint32) bool { return math.Float32frombits(a) != math.Float32frombits(a) }

// sameHalf compares 16 bits that may be a half or a bfloat. All NaNs are equal.
func sameHalf(a, b uint16) bool {
	nan := func(a, b, infinity uint16) bool { return a&0x7fff > infinity && b&0x7fff > infinity }
	return a == b || nan(a, b, 0x7c00) || nan(a, b, 0x7f80)
}
