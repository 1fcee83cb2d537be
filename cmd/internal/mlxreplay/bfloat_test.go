package mlxreplay

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/npy"
	"github.com/mlxc/mlxc/ir"
)

// TestBFloatFiles: float32 is rounded to bf16, ties to even, and written back unchanged; uint16 are bits.
func TestBFloatFiles(t *testing.T) {
	in, err := npy.Of([]float32{1, 1.00390625, 1.01171875, 3.4e38, float32(math.Inf(-1)), -1e-40}, 6)
	require.NoError(t, err)
	data, err := fromFile(in, ir.BF16)
	require.NoError(t, err)
	assert.Equal(t, []byte{0x80, 0x3f, 0x80, 0x3f, 0x82, 0x3f, 0x80, 0x7f, 0x80, 0xff, 0x01, 0x80}, data)

	out := toFile(data, ir.BF16, []int64{2, 3})
	want, err := npy.Of([]float32{1, 1, 1.015625, float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0x80010000)}, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, want, out)

	bits, err := npy.Of([]uint16{0x3f80, 0x7fc0}, 2)
	require.NoError(t, err)
	data, err = fromFile(bits, ir.BF16)
	require.NoError(t, err)
	assert.Equal(t, bits.Data, data)

	_, err = fromFile(bits, ir.F16)
	assert.EqualError(t, err, "holds uint16, where float16 is wanted")
}
