package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl/term"
)

// TestHalf decodes every f16 by the definition of IEEE 754 binary16.
func TestHalf(t *testing.T) {
	var got [1]float32
	for h := range 1 << 16 {
		halfTo(got[:], []uint16{uint16(h)})
		exponent, fraction := h>>10&31, h&1023
		var want float64
		switch exponent {
		case 0:
			want = math.Ldexp(float64(fraction), -24)
		case 31:
			want = math.Inf(1)
			if fraction != 0 {
				// The payload of a NaN keeps its position at the top of the longer fraction.
				require.Equal(t, uint32(h>>15<<31|0xff<<23|fraction<<13), math.Float32bits(got[0]), "%#04x", h)
				continue
			}
		default:
			want = math.Ldexp(float64(1024+fraction), exponent-25)
		}
		if h>>15 == 1 {
			want = math.Copysign(want, -1)
		}
		require.Equal(t, math.Float32bits(float32(want)), math.Float32bits(got[0]), "%#04x", h)
	}
}

// Every f16 survives the round trip through f32, except that any NaN becomes the canonical NaN. Values between two
// neighbours are rounded to the nearer one, ties to even.
func TestToHalf(t *testing.T) {
	one := func(f float32) uint16 {
		var h [1]uint16
		toHalf(h[:], []float32{f})
		return h[0]
	}
	for h := range 1 << 16 {
		var f [1]float32
		halfTo(f[:], []uint16{uint16(h)})
		if h&0x7fff > 0x7c00 {
			require.Equal(t, uint16(nanHalfBits), one(f[0]), "%#04x", h)
			continue
		}
		require.Equal(t, uint16(h), one(f[0]), "%#04x", h)
		if h&0x7fff >= 0x7c00 {
			continue
		}
		var up [1]float32
		if halfTo(up[:], []uint16{uint16(h + 1)}); h&0x7fff == 0x7bff {
			up[0] = float32(math.Copysign(65536, float64(f[0])))
		}
		middle := (f[0] + up[0]) / 2 // exact
		require.Equal(t, uint16(h+h&1), one(middle), "%#04x: the middle", h)
		require.Equal(t, uint16(h), one(math.Nextafter32(middle, f[0])), "%#04x: below the middle", h)
		require.Equal(t, uint16(h+1), one(math.Nextafter32(middle, up[0])), "%#04x: above the middle", h)
	}
	require.Equal(t, uint16(0x7c00), one(math.MaxFloat32))
	require.Equal(t, uint16(0x8000), one(-math.SmallestNonzeroFloat32))
	require.Equal(t, uint16(0x7e00), one(math.Float32frombits(0x7f800001)))
	r := rand.New(rand.NewPCG(7, 8))
	for range 100000 {
		f := math.Float32frombits(r.Uint32())
		if f != f {
			continue
		}
		got := [1]float32{f}
		halfType.round(got[:])
		require.Equal(t, math.Float32bits(float32(term.F16Round(float64(f)))), math.Float32bits(got[0]), "%v", f)
	}
}
