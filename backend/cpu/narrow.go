package cpu

import (
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/ir"
)

// narrow is a 16-bit float type, f16 or bf16, whose values are widened to f32 for arithmetic.
type narrow simd.Narrow

const (
	halfType   = narrow(simd.Half)
	bfloatType = narrow(simd.BFloat)
)

// narrows lists the 16-bit types.
var narrows = []narrow{halfType, bfloatType}

// narrowOf returns f16 or bf16.
func narrowOf(t ir.DType) narrow {
	if t == ir.BF16 {
		return bfloatType
	}
	return halfType
}

// String is the type's name in kernel names of MLX.
func (n narrow) String() string {
	if n == bfloatType {
		return "bfloat16"
	}
	return "float16"
}

// The functions are called by name and not through a variable, so that their arguments
// need not escape.

// from sets dst to the values of src, of one length.
func (n narrow) from(dst []float32, src []uint16) {
	if n == bfloatType {
		simd.BFloatTo(dst, src)
	} else {
		simd.HalfTo(dst, src)
	}
}

// to sets dst to the roundings of src, of one length, to the type.
func (n narrow) to(dst []uint16, src []float32) {
	if n == bfloatType {
		simd.ToBFloat(dst, src)
	} else {
		simd.ToHalf(dst, src)
	}
}

// round sets each element of x to its rounding to the type.
func (n narrow) round(x []float32) {
	if n == bfloatType {
		simd.RoundBFloat(x)
	} else {
		simd.RoundHalf(x)
	}
}

// narrowRun is the number of elements that are gathered or scattered between conversions.
const narrowRun = 64

// gather widens the len(dst) elements of x that are stride apart.
func (n narrow) gather(dst []float32, x []uint16, stride int) {
	if stride == 1 {
		n.from(dst, x[:len(dst)])
		return
	}
	var h [narrowRun]uint16
	for at := 0; at < len(dst); at += len(h) {
		part := dst[at:min(at+len(h), len(dst))]
		for i := range part {
			h[i] = x[(at+i)*stride]
		}
		n.from(part, h[:len(part)])
	}
}

// scatter stores the elements of x, rounded to the type, stride apart in dst.
func (n narrow) scatter(dst []uint16, stride int, x []float32) {
	if stride == 1 {
		n.to(dst[:len(x)], x)
		return
	}
	var h [narrowRun]uint16
	for at := 0; at < len(x); at += len(h) {
		part := x[at:min(at+len(h), len(x))]
		n.to(h[:len(part)], part)
		for i := range part {
			dst[(at+i)*stride] = h[i]
		}
	}
}
