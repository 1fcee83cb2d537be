package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
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
				// The payload moves to the top of the longer fraction.
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
