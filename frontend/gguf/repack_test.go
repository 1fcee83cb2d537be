package gguf

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/ir"
)

// affine is what a tensor is repacked to.
type affine struct {
	codes, scales, biases []byte
	bits                  int64
}

func repack(t *testing.T, typ ggufio.Type, blocks []byte) affine {
	t.Helper()
	r := repacked[typ]
	require.NotNil(t, r, typ)
	var d frontend.Digests
	codes, scales, biases := r.repack(blocks, "", ir.F32, &d)
	require.NoError(t, d.Compute(t.Context()))
	bytes := func(b *ir.Blob) []byte {
		data, err := b.Bytes()
		require.NoError(t, err)
		return data
	}
	return affine{bytes(codes), bytes(scales), bytes(biases), r.bits}
}

// decode is MLX's affine dequantization, element by element.
func decode(a affine, i int) float32 {
	code := uint32(0)
	switch a.bits {
	case 4:
		code = binary.LittleEndian.Uint32(a.codes[i/8*4:]) >> (4 * (i % 8)) & 15
	case 8:
		code = uint32(a.codes[i])
	}
	f := func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*(i/32):])) }
	return f(a.scales)*float32(code) + f(a.biases)
}

// Every element of every block keeps its value, bit for bit up to the sign of zero (d·0
// + m is +0 where the block format says −0). The expected values are those of the gguf
// package (testdata/gen/repack.py).
func TestRepackIsLossless(t *testing.T) {
	raw, err := os.ReadFile("../../testdata/repack.json")
	require.NoError(t, err)
	var cases []struct{ Type, Blocks, Values string }
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.Len(t, cases, 3)
	for _, c := range cases {
		blocks, err := hex.DecodeString(c.Blocks)
		require.NoError(t, err)
		values, err := hex.DecodeString(c.Values)
		require.NoError(t, err)
		types := map[string]ggufio.Type{"Q4_0": ggufio.Q4_0, "Q4_1": ggufio.Q4_1, "Q8_0": ggufio.Q8_0}
		a := repack(t, types[c.Type], blocks)
		for i := range len(values) / 4 {
			want := math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
			require.Equal(t, want, decode(a, i), "%s element %d", c.Type, i)
		}
	}
}

// The first block of the demonstration model, worked out by hand.
func TestFirstBlock(t *testing.T) {
	block, err := hex.DecodeString("0f30d8b9458765406f65164b677664502267655a")
	require.NoError(t, err)
	a := repack(t, ggufio.Q4_1, block)
	var words []uint32
	for i := 0; i < 16; i += 4 {
		words = append(words, binary.LittleEndian.Uint32(a.codes[i:]))
	}
	require.Equal(t, []uint32{0xb65f0575, 0xa5720467, 0x41664684, 0x56625676}, words)
	require.Equal(t, float32(0.12683105), math.Float32frombits(binary.LittleEndian.Uint32(a.scales)))
	require.Equal(t, float32(-0.73046875), math.Float32frombits(binary.LittleEndian.Uint32(a.biases)))
}
