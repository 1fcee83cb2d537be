package cpu

import "math"

// halfTo sets dst[i] to the f32 value of the f16 bits src[i], exactly. The slices
// have one length.
func halfTo(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		// m is exponent and fraction, which stay adjacent in the f32; the exponent's bias grows from 15 to 127.
		m := uint32(h & 0x7fff)
		var f uint32
		switch {
		case m-0x0400 < 0x7800: // normal
			f = m<<13 + (127-15)<<23
		case m >= 0x7c00: // infinity, NaN
			f = m<<13 | 0xff<<23
		default: // zero or subnormal: the fraction is in units of 2^-24
			f = math.Float32bits(float32(m) * (1.0 / (1 << 24)))
		}
		dst[i] = math.Float32frombits(f | uint32(h&0x8000)<<16)
	}
}

// toHalf sets dst[i] to the f16 nearest to src[i], ties to even. Values from 65520 on become infinity, and subnormals
// are kept. A NaN becomes the canonical NaN of nan.go. The slices have one length.
func toHalf(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		b := math.Float32bits(f)
		m := b & 0x7fffffff
		var h uint32
		switch {
		case m-113<<23 < 143<<23-1<<12-113<<23: // 2^-14 … below 65520
			h = (m + 0xfff + m>>13&1 - (127-15)<<23) >> 13
		case m > 0xff<<23:
			dst[i] = nanHalfBits
			continue
		case m > 113<<23:
			h = 0x7c00
		default:
			// The last bit of 1/2 as an f32 is 2^-24, the unit of subnormal halves: adding 1/2
			// rounds to it.
			h = math.Float32bits(math.Float32frombits(m)+0.5) - math.Float32bits(0.5)
		}
		dst[i] = uint16(h | b>>16&0x8000)
	}
}
