package cpu

import "math"

// bfloatTo sets dst[i] to the f32 value of the bf16 bits src[i]: its upper half.
// The slices have one length.
func bfloatTo(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}

// toBFloat sets dst[i] to the bf16 nearest to src[i], ties to even. A NaN becomes the canonical NaN of
// nan.go. The slices have one length.
func toBFloat(dst []uint16, src []float32) {
	dst = dst[:len(src)]
	for i, f := range src {
		b := math.Float32bits(f)
		if b&0x7fffffff > 0xff<<23 {
			dst[i] = nanBFloatBits
			continue
		}
		dst[i] = uint16((b + 0x7fff + b>>16&1) >> 16) // values above the max finite one carry into the exponent of infinity
	}
}

// narrow is a 16-bit float type, f16 or bf16, whose values are widened to f32 for arithmetic.
type narrow uint8

const (
	halfType narrow = iota
	bfloatType
)

// narrows lists the 16-bit types.
var narrows = []narrow{halfType, bfloatType}

// String is the type's name in kernel names of MLX.
func (n narrow) String() string {
	if n == bfloatType {
		return "bfloat16"
	}
	return "float16"
}

// The functions are called by name and not through a variable, so that their arguments
// need not escape.

func (n narrow) from(dst []float32, src []uint16) {
	if n == bfloatType {
		bfloatTo(dst, src)
	} else {
		halfTo(dst, src)
	}
}

func (n narrow) to(dst []uint16, src []float32) {
	if n == bfloatType {
		toBFloat(dst, src)
	} else {
		toHalf(dst, src)
	}
}

// round sets each element of x to its rounding to the type.
func (n narrow) round(x []float32) {
	var h [64]uint16
	for len(x) > 0 {
		k := min(len(x), len(h))
		n.to(h[:k], x[:k])
		n.from(x[:k], h[:k])
		x = x[k:]
	}
}

// gather widens the len(dst) elements of x that are stride apart.
func (n narrow) gather(dst []float32, x []uint16, stride int) {
	if stride == 1 {
		n.from(dst, x[:len(dst)])
		return
	}
	for i := range dst {
		n.from(dst[i:i+1], x[i*stride:][:1])
	}
}

// scatter stores the elements of x, rounded to the type, stride apart in dst.
func (n narrow) scatter(dst []uint16, stride int, x []float32) {
	if stride == 1 {
		n.to(dst[:len(x)], x)
		return
	}
	for i := range x {
		n.to(dst[i*stride:][:1], x[i:i+1])
	}
}
