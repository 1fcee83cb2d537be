package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl/term"
)

// Every bf16 survives the round trip through f32 bit by bit, except that any NaN becomes the canonical NaN.
func TestBFloatRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		v, back := [1]float32{}, [1]uint16{}
		bfloatTo(v[:], []uint16{uint16(h)})
		require.Equal(t, uint32(h)<<16, math.Float32bits(v[0]))
		toBFloat(back[:], v[:])
		if v[0] != v[0] {
			require.Equal(t, uint16(nanBFloatBits), back[0], "%#04x", h)
			continue
		}
		require.Equal(t, uint16(h), back[0])
	}
}

// toBFloat rounds as the interpreter of terms does, and a NaN stays a NaN.
func TestToBFloat(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	bits := []uint32{0x7f7fffff, 0xff7fffff, 0x7f7f7fff, 0x7f7f8000, 0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 1, 0x8000, 0x18000, 0x7f800001, 0xff80ffff}
	for range 100000 {
		bits = append(bits, r.Uint32())
	}
	for _, b := range bits {
		f, h, back := math.Float32frombits(b), [1]uint16{}, [1]float32{}
		toBFloat(h[:], []float32{f})
		bfloatTo(back[:], h[:])
		if f != f {
			require.Equal(t, uint16(nanBFloatBits), h[0], "%#x", b)
			continue
		}
		require.Equal(t, float32(term.BF16Round(float64(f))), back[0], "%#x", b)
		require.Equal(t, math.Signbit(float64(f)), math.Signbit(float64(back[0])))
	}
}
