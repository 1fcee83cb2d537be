package simd

import "math"

// exp32 computes in float64, where neither the reduction nor the scaling by a
// power of two can lose anything that a float32 would show.
//
// With n the integer next to x/ln 2 and r = x - n ln 2, |r| <= ln(2)/2,
// e^x = 2^n e^r; the Taylor polynomial of e^r of degree 8 is within
// (ln(2)/2)^9/9! = 2e-10, 1/300 ulp of a float32.
func exp32(x float32) float32 {
	if !(x > -104) { // e^-104 is less than half the least subnormal
		if x != x {
			return x
		}
		return 0
	}
	if x > 89 { // e^89 is more than the greatest float32
		return float32(math.Inf(1))
	}
	const round = 3 << 51 // adding it leaves the integer in the low bits
	v := float64(x)
	t := v*(1/math.Ln2) + round
	r := v - (t-round)*math.Ln2
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720+r*(1./5040+r*(1./40320))))))))
	return float32(p * math.Float64frombits((math.Float64bits(t)+1023)<<52))
}

func expToGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = exp32(v)
	}
}

// sigmoid32 takes the steps of the term of v_Sigmoid, each rounded to float32.
func sigmoid32(x float32) float32 {
	d := 1 + exp32(math.Float32frombits(math.Float32bits(x)&^(1<<31)))
	y := 1 / d
	if x < 0 {
		return y
	}
	return 1 - y
}

func sigmoidToGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = sigmoid32(v)
	}
}

// siluToGeneric takes the steps of the term of v_Silu, each rounded to float32.
func siluToGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		d := 1 + exp32(-v)
		dst[i] = v / d
	}
}
