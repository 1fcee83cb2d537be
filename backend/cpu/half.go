package cpu

import "math"

// halfTo sets dst[i] to the f32 value of the f16 bits src[i]: exactly, NaN
// payloads included. The slices have one length.
func halfTo(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		// Exponent and fraction keep their order; the bias grows from 15 to 127.
		m := uint32(h & 0x7fff)
		var f uint32
		switch {
		case m-0x0400 < 0x7800: // normal
			f = m<<13 + (127-15)<<23
		case m >= 0x7c00: // infinity, NaN
			f = m<<13 | 0xff<<23
		default: // zero, subnormal: the fraction counts 2^-24
			f = math.Float32bits(float32(m) * (1.0 / (1 << 24)))
		}
		dst[i] = math.Float32frombits(f | uint32(h&0x8000)<<16)
	}
}
