package simd

import "fmt"

// Dot returns the sum of a[i]*b[i]. The slices have one length.
func Dot(a, b []float32) float32 {
	sameLen("Dot", "a", len(a), "b", len(b))
	return dot(a, b)
}

// Axpy adds alpha*x to y. The slices have one length.
func Axpy(alpha float32, x, y []float32) {
	sameLen("Axpy", "x", len(x), "y", len(y))
	axpy(alpha, x, y)
}

// SumSquares returns the sum of x[i]*x[i].
func SumSquares(x []float32) float32 { return dot(x, x) }

// Max returns the largest element, NaN if there is a NaN, and -Inf for an
// empty slice.
func Max(x []float32) float32 { return maximum(x) }

// ScaleTo sets dst to alpha*x. The slices have one length; dst may be x.
func ScaleTo(dst []float32, alpha float32, x []float32) {
	sameLen("ScaleTo", "dst", len(dst), "x", len(x))
	scaleTo(dst, alpha, x)
}

// AddTo sets dst to a+b. The slices have one length; dst may be a or b.
func AddTo(dst, a, b []float32) {
	sameLen("AddTo", "dst", len(dst), "a", len(a))
	sameLen("AddTo", "dst", len(dst), "b", len(b))
	addTo(dst, a, b)
}

// MulTo sets dst to the elementwise product of a and b. The slices have one
// length; dst may be a or b.
func MulTo(dst, a, b []float32) {
	sameLen("MulTo", "dst", len(dst), "a", len(a))
	sameLen("MulTo", "dst", len(dst), "b", len(b))
	mulTo(dst, a, b)
}

// ExpTo sets dst to e to the power x, within 1.1 ulp for every float32, subnormal
// results included; exp(+Inf) is +Inf, exp(-Inf) is 0, exp(NaN) is NaN. The
// slices have one length; dst may be x.
func ExpTo(dst, x []float32) {
	sameLen("ExpTo", "dst", len(dst), "x", len(x))
	expTo(dst, x)
}

// SigmoidTo sets dst to y where x < 0 and to 1-y elsewhere, y = 1/(1+exp(|x|)):
// to the bit what [ExpTo] and float32 operations, one after another, make of it,
// whatever NaN that is. It is within 4 ulp or 3e-39, whichever is more, of the
// logistic function: exp(|x|) overflows from 88.73 on. The slices have one
// length; dst may be x.
func SigmoidTo(dst, x []float32) {
	sameLen("SigmoidTo", "dst", len(dst), "x", len(x))
	sigmoidTo(dst, x)
}

// SiluTo sets dst to x/(1+exp(-x)): to the bit what [ExpTo] and float32
// operations, one after another, make of it, whatever NaN that is. It is within
// 4 ulp or 3e-37, whichever is more: exp(-x) overflows below -88.72, where the
// result is -0. silu(-Inf) is NaN, as the quotient -Inf/Inf is. The slices have
// one length; dst may be x.
func SiluTo(dst, x []float32) {
	sameLen("SiluTo", "dst", len(dst), "x", len(x))
	siluTo(dst, x)
}

func sameLen(fn, a string, na int, b string, nb int) {
	if na != nb {
		panic(fmt.Sprintf("simd: %s: len(%s) = %d, len(%s) = %d: want one length", fn, a, na, b, nb))
	}
}
