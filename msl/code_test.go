package msl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl"
)

// TestCode: comments, spaces and other kernels do not change the code of a kernel, and its own tokens do.
func TestCode(t *testing.T) {
	text, err := msl.Source("quantized.metal")
	require.NoError(t, err)
	const kernel, other = "affine_qmv_x2_float_gs_64_b_4", "affine_qmv_x2_float_gs_32_b_4"
	of := func(text string) string { return msl.Code(text, []string{kernel}) }
	code := of(text)
	assert.False(t, strings.Contains(code, "@kernel"))
	assert.Less(t, len(code), len(text))
	assert.True(t, code == of("// a remark\n"+strings.ReplaceAll(text, "\n\n", "\n \n")), "spaces and comments")
	assert.False(t, code == of(strings.Replace(text, "simd_sum", "simd_product", 1)), "what it calls")
	assert.False(t, code == msl.Code(text, []string{other}), "another kernel")
	assert.Equal(t, "a /* b", msl.Code("a /* b", nil))
}
