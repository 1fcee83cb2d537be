//go:build linux

package fakemetal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
)

// TestMLXHost runs a program on MLX's own host code on the stand-in for Metal, and captures it: scripts/captures.sh programs builds it, and
// names the program and the files of the log and of the program's outputs.
func TestMLXHost(t *testing.T) {
	program, to := os.Getenv("MLXHOST_PROGRAM"), os.Getenv("MLXHOST_LOG")
	if program == "" || to == "" {
		t.Skip("scripts/captures.sh programs runs this")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	start, stop := shim(t)
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	m := l.Serve(t, fakemetal.Options{})
	device := objc.SystemDefaultDevice()
	require.NotZero(t, device)
	require.Zero(t, start(to, uintptr(device)))
	host, err := purego.Dlopen(filepath.Join(root, "out", "mlxhost", "mlxhost.so"), purego.RTLD_LAZY|purego.RTLD_LOCAL)
	require.NoError(t, err)
	library := filepath.Join(t.TempDir(), "mlx.metallib")
	require.NoError(t, os.WriteFile(library, metallibs.Small(t, mlxKernels...), 0o600))
	var run func(program, library, path string) string
	purego.RegisterLibFunc(&run, host, "mlxhost_run")
	require.Empty(t, run(program, library, to+".outputs"))
	require.Zero(t, stop())
	t.Logf("%d dispatches ran", len(m.Ran()))
	objc.Release(device)
	m.Close()
	for _, text := range l.Failures() { // MLX keeps its device, streams and caches to the end of the process
		require.True(t, strings.HasSuffix(text, " leak"), text)
	}
}

// mlxKernels are the compiled kernels that the programs use.
var mlxKernels = []string{
	"affine_dequantize_float16_t_gs_64_b_4", "affine_qmv_quad_float16_t_gs_64_b_4_d_128_batch_0", "argmax_float16",
	"gg2_copyfloat16float16", "rmsfloat16", "rope_single_float16", "sdpa_vector_float16_t_64_64", "v_Sigmoidfloat16float16", "v_copyfloat16float16", "vv_Addfloat16",
	"vv_Multiplyfloat16",

	"block_softmax_float16", "row_reduce_small_1_reduce_sumfloat32", "steel_gemm_splitk_accum_float16_float32",
	"steel_gemm_splitk_nn_float16_float32_bm16_bn16_bk16_wm2_wn2_MN_naligned_K_taligned", "v_Expfloat32float32", "vs_Multiplyfloat32", "vv_Addfloat32",
}
