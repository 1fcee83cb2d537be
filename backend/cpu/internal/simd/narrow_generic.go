package simd

import "math"

// The canonical NaN of each type: what a store makes of any NaN.
const (
	nanHalf   = 0x7e00
	nanBFloat = 0x7fc0
	nanFloat  = 0x7fc00000
)

func halfToGeneric(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		// m is exponent and fraction, which stay adjacent in the f32; the exponent's bias grows from 15 to 127.
		m := uint32(h & 0x7fff)
		var f uint32
		switch {
		case m-0x0400 < 0x7800: // normal
			f = m<<13 + (127-15)<<23
		case m > 0x7c00: // NaN, made quiet as the processor makes it
			f = m<<13 | 0x7fc00000
		case m == 0x7c00: // infinity
			f = 0xff << 23
		default: // zero or subnormal: the fraction is in units of 2^-24
			f = math.Float32bits(float32(m) * (1.0 / (1 << 24)))
		}
		dst[i] = math.Float32frombits(f | uint32(h&0x8000)<<16)
	}
}

func toHalfGeneric(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		b := math.Float32bits(f)
		m := b & 0x7fffffff
		var h uint32
		switch {
		case m-113<<23 < 143<<23-1<<12-113<<23: // 2^-14 … below 65520
			h = (m + 0xfff + m>>13&1 - (127-15)<<23) >> 13
		case m > 0xff<<23:
			dst[i] = nanHalf
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

func bfloatToGeneric(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}

func toBFloatGeneric(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		dst[i] = uint16(upper(f) >> 16)
	}
}

// upper is f with its upper half rounded to bf16, ties to even. Values above the max finite one carry into the exponent
// of infinity.
func upper(f float32) uint32 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0xff<<23 {
		return nanFloat
	}
	return b + 0x7fff + b>>16&1
}

func roundHalfGeneric(x []float32) {
	var h [64]uint16
	for len(x) > 0 {
		k := min(len(x), len(h))
		toHalfGeneric(h[:k], x[:k])
		halfToGeneric(x[:k], h[:k])
		x = x[k:]
	}
}

func roundBFloatGeneric(x []float32) {
	for i, f := range x {
		x[i] = math.Float32frombits(upper(f) &^ 0xffff)
	}
}
