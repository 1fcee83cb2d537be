package simd

import "math"

// Several accumulators hide the latency of an addition, and shorten the chain
// of roundings.
func dotGeneric(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		p, q := (*[8]float32)(a), (*[8]float32)(b)
		s0 += p[0] * q[0]
		s1 += p[1] * q[1]
		s2 += p[2] * q[2]
		s3 += p[3] * q[3]
		s4 += p[4] * q[4]
		s5 += p[5] * q[5]
		s6 += p[6] * q[6]
		s7 += p[7] * q[7]
		a, b = a[8:], b[8:]
	}
	for i, v := range a {
		s0 += v * b[i]
	}
	return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
}

func axpyGeneric(alpha float32, x, y []float32) {
	y = y[:len(x)]
	for len(x) >= 4 && len(y) >= 4 {
		p, q := (*[4]float32)(x), (*[4]float32)(y)
		q[0] += alpha * p[0]
		q[1] += alpha * p[1]
		q[2] += alpha * p[2]
		q[3] += alpha * p[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		y[i] += alpha * v
	}
}

func maximumGeneric(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if !(v <= m) { // seldom, so that the processor guesses right
			if v != v {
				return v
			}
			m = v
		}
	}
	return m
}

func scaleToGeneric(dst []float32, alpha float32, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = alpha * v
	}
}

func addToGeneric(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

func mulToGeneric(dst, a, b []float32) {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		dst[i] = v * b[i]
	}
}

// groupSumsGeneric wants len(x) == len(dst)*g and g a multiple of 8.
func groupSumsGeneric(dst, x []float32, g int) {
	for i := range dst {
		v := x[i*g : i*g+g]
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for len(v) >= 8 {
			p := (*[8]float32)(v)
			s0 += p[0]
			s1 += p[1]
			s2 += p[2]
			s3 += p[3]
			s4 += p[4]
			s5 += p[5]
			s6 += p[6]
			s7 += p[7]
			v = v[8:]
		}
		dst[i] = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
	}
}
