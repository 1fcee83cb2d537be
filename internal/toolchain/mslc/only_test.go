package mslc_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/msl"
)

// folder is where the compiler ran.
var folder = regexp.MustCompile(`directory: "[^"]*"`)

// TestOnly: a source from which instances were taken compiles to what the whole source does if the
// others alone are asked for.
func TestOnly(t *testing.T) {
	sample.Seldom(t)
	for file, keep := range map[string][]string{
		"quantized.metal": {"affine_qmv_fast_float_gs_64_b_4_batch_0_pr_0_hgs_0_r_4", "affine_qmm_t_x2_float_gs_32_b_8_alN_true"},
		"copy.metal":      {"v_copyfloat16float16", "gg2_copyfloat32float32"},
		"gemv.metal":      {"gemv_float32_bm1_bn8_sm1_sn32_tm4_tn4_nc0_axpby0", "gather_gemv_float32"},
	} {
		text, err := msl.Source(file)
		require.NoError(t, err)
		some, err := mslc.Compile(context.Background(), file, msl.Only(text, keep), mslc.Options{Lines: true})
		require.NoError(t, err)
		require.Len(t, some.Kernels, len(keep))
		whole, err := mslc.Compile(context.Background(), file, text, mslc.Options{Lines: true, Kernels: keep})
		require.NoError(t, err)
		for _, name := range keep {
			want, err := whole.Module(name)
			require.NoError(t, err)
			got, err := some.Module(name)
			require.NoError(t, err)
			require.True(t, folder.ReplaceAllString(want, "") == folder.ReplaceAllString(got, ""), "%s: %s", file, name)
		}
	}
}
