package mslc_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// ggmlKernels is how many kernels the Metal source of ggml 0.13.1 has, with those of bfloat.
const ggmlKernels = 611

// Kernels of ggml's source compile: two whose products have operands of three types, or all with
// MLXC_LONG=1. The tests of backend/softmetal execute more of them.
func TestGGML(t *testing.T) {
	path := metallibs.GGML(t)
	source, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = mslc.Compile(context.Background(), "ggml-metal.metal", string(source), mslc.Options{Kernels: []string{"kernel_none"}})
	require.ErrorContains(t, err, fmt.Sprintf(`there is no kernel "kernel_none" among %d`, ggmlKernels))
	kernels, want := []string{"kernel_flash_attn_ext_bf16_dk32_dv32", "kernel_flash_attn_ext_vec_bf16_dk32_dv32"}, 2
	if os.Getenv("MLXC_LONG") != "" {
		kernels, want = nil, ggmlKernels
	}
	u, err := mslc.Compile(context.Background(), "ggml-metal.metal", string(source), mslc.Options{Kernels: kernels})
	require.NoError(t, err)
	assert.Len(t, u.Kernels, want)
	for _, k := range u.Kernels {
		_, err := u.Module(k.Name)
		assert.NoError(t, err)
	}
}
