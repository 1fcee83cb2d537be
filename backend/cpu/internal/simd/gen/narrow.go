package main

// A narrowFloat is a float of 16 bits.
type narrowFloat uint8

const (
	half   narrowFloat = iota // f16
	bfloat                    // bf16, the upper half of a float32
)

// eachNarrow is each where what is left is taken one by one: no machine masks 16 bits.
func eachNarrow(m machine, n reg, body func(vectors int)) {
	m.loop(n, 4*m.width(), func() { body(4) })
	m.loop(n, m.width(), func() { body(1) })
	m.singles(n, func() { body(1) })
}

// widen has the values of 16-bit floats.
func widen(f narrowFloat) func(m machine) {
	return func(m machine) {
		dst, src, n := m.stream("dst"), m.narrowStream("src"), m.arg("n")
		eachNarrow(m, n, func(vectors int) {
			if vectors > 1 {
				m.fetchAhead(src)
			}
			m.store(dst, 0, m.widen(src, f, vectors)...)
		})
		m.end()
	}
}

// narrow rounds to 16-bit floats, and a NaN to the canonical one.
func narrow(f narrowFloat) func(m machine) {
	return func(m machine) {
		dst, src, n := m.narrowStream("dst"), m.stream("src"), m.arg("n")
		r := newRounding(m, f)
		eachNarrow(m, n, func(vectors int) {
			for _, v := range m.load(src, 0, vectors) {
				r.prepare(v)
				m.storeNarrow(dst, f, v)
			}
		})
		m.end()
	}
}

// roundTo rounds to values of 16-bit floats, in place.
func roundTo(f narrowFloat) func(m machine) {
	return func(m machine) {
		x, n := m.stream("x"), m.arg("n")
		r := newRounding(m, f)
		each(m, n, func(vectors int) {
			vs := m.peek(x, 0, vectors)
			for _, v := range vs {
				r.prepare(v)
				m.roundNarrow(v, f)
			}
			m.store(x, 0, vs...)
		})
		m.end()
	}
}

// rounding has the constants of a rounding to a format.
type rounding struct {
	machine
	narrowFloat
	nan, one, most operand
}

func newRounding(m machine, f narrowFloat) *rounding {
	r := &rounding{machine: m, narrowFloat: f, nan: m.constants(0, 0x7fc00000)[0]}
	if f == bfloat {
		c := m.constants(0, 1, 0x7fff)
		r.one, r.most = c[0], c[1]
	}
	return r
}

// prepare makes any NaN canonical. Of a bf16 it makes the upper half the result: half of the lowest bit that stays,
// less one if that bit is 0, carries into it where it shall; the canonical NaN stays one.
func (r *rounding) prepare(v vec) {
	r.canonicalNaN(v, r.nan)
	if r.narrowFloat == half {
		return
	}
	t := r.vecs(1)[0]
	r.shiftRight(t, v, 16)
	r.and(t, r.one)
	r.addIntegers(t, r.most)
	r.addIntegers(v, in(t))
	r.freeVecs(t)
}
