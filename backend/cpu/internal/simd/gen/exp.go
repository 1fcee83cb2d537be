package main

import "math"

// e^x = 2^n e^r, n the integer next to x/ln 2 and r = x - n ln 2, which two FMAs
// with ln 2 in two parts get right to the last bit. On |r| <= ln(2)/2
//
//	e^r = 1 + r + r²(c0 + c1 r + c2 r² + c3 r³ + c4 r⁴)
//
// is within 3.2e-9, 1/20 ulp: a minimax fit of the relative error, each
// coefficient rounded to float32 before the next ones were fitted. The order of
// the two additions keeps the roundings near 1 ulp together.
//
// Below -104 the result is less than half the least subnormal, and above 89
// more than the greatest float32: x is clamped there.
type exponential struct {
	machine
	low, high, perLn2, ln2, ln2Rest, one, sign operand

	coefficients []operand
}

// newExponential loads the constants. Those at the end are the first to stay in memory.
func newExponential(m machine) *exponential {
	c := m.constants(6,
		0xc2d00000, // -104
		0x42b20000, // 89
		0x3fb8aa3b, // 1/ln 2
		0x3f317218, // ln 2, rounded up
		0xb102e308, // ln 2 minus that
		math.Float32bits(1),
		0x3efffffe, // c0
		0x3e2aaa49,
		0x3d2aac58,
		0x3c091cc3,
		0x3ab5265a,    // c4
		uint32(1)<<31, // the sign
	)
	return &exponential{m, c[0], c[1], c[2], c[3], c[4], c[5], c[11], []operand{c[10], c[9], c[8], c[7], c[6]}}
}

// exp sets r to e^r. A NaN stays one.
func (e *exponential) exp(r vec) {
	e.max(r, e.low, in(r))
	e.min(r, e.high, in(r))
	n := e.vecs(1)[0]
	e.mul(n, r, e.perLn2)
	e.round(n, n)
	e.fnma(r, n, e.ln2)
	e.fnma(r, n, e.ln2Rest)
	p := e.horner(r, e.coefficients)
	square := e.vecs(1)[0]
	e.mul(square, r, in(r))
	e.fma(r, square, in(p))
	e.add(r, r, e.one)
	e.freeVecs(p, square)
	e.timesPowerOfTwo(r, n, e.one)
}

// forEach applies a function to each element.
func (e *exponential) forEach(f func(x vec)) {
	dst, x, n := e.stream("dst"), e.stream("x"), e.arg("n")
	body := func() {
		v := e.load(x, 0, 1)
		f(v[0])
		e.store(dst, 0, v...)
	}
	e.loop(n, e.width(), body)
	e.tail(n, body)
	e.end()
}

func expTo(m machine) {
	e := newExponential(m)
	e.forEach(e.exp)
}

// sigmoidTo takes the steps of the term of v_Sigmoid, each rounded: y or 1-y, y = 1/(1+e^|x|), by the sign of x.
func sigmoidTo(m machine) {
	e := newExponential(m)
	e.forEach(func(x vec) {
		signed := e.copy(in(x))
		e.abs(x, e.sign)
		e.exp(x)
		e.add(x, x, e.one)
		e.div(x, e.one, x)
		rest := e.vecs(1)[0]
		e.sub(rest, e.one, x)
		e.selectSigned(x, signed, x, rest)
	})
}

// siluTo takes the steps of the term of v_Silu, each rounded: x/(1+e^-x).
func siluTo(m machine) {
	e := newExponential(m)
	e.forEach(func(x vec) {
		dividend := e.copy(in(x))
		e.neg(x, e.sign)
		e.exp(x)
		e.add(x, x, e.one)
		e.div(x, in(dividend), x)
	})
}
