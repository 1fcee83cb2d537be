package main

import (
	"fmt"
	"math"
	"strings"
)

// arm64 is Advanced SIMD. What Go's assembler has no names for are macros of neon_arm64.h, with numbers of registers.
type arm64 struct {
	*code
	decode func(vec, ...int) []vec // of nibbles in blocks
	less   vec                     // what is taken from them, if takes is set
	takes  bool
	six    []operand // as amd64 has them
}

var arm64ISA = isa{
	add: "ADD  %s, %s, %[2]s", sub: "SUBS %s, %s, %[2]s", compare: "CMP  $%[2]d, %[1]s",
	less: "BLT  %s", notLess: "BGE  %s", notEqual: "BNE  %s",
}

func (m *arm64) width() int { return m.lanes }

// list is registers as the operand of a load or store.
func list(vs []vec) string {
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = fmt.Sprintf("V%d.S4", v)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// Addresses.

func (m *arm64) arg(name string) reg {
	r := m.reg()
	m.ins("MOVD %s, %s", m.frame(name), r)
	return r
}

func (m *arm64) stream(name string) *stream { return m.newStream(1, []reg{m.arg(name)}, nil) }
func (m *arm64) parked(name string) *stream { return m.stream(name) }

func (m *arm64) scale(r reg, by, shift int) {
	for ; by%2 == 0; by /= 2 {
		shift--
	}
	if by > 1 {
		t := m.reg()
		m.ins("MOVD $%d, %s", by, t)
		m.ins("MUL  %s, %s, %[2]s", t, r)
		m.free(t)
	}
	switch {
	case shift > 0:
		m.ins("LSR  $%d, %s, %[2]s", shift, r)
	case shift < 0:
		m.ins("LSL  $%d, %s, %[2]s", -shift, r)
	}
}

func (m *arm64) quotient(a, b reg) reg {
	d := m.reg()
	m.ins("UDIV %s, %s, %s", b, a, d)
	return d
}

func (m *arm64) shifted(a reg, bits int) reg {
	d := m.reg()
	m.ins("LSR  $%d, %s, %s", bits, a, d)
	return d
}

func (m *arm64) strides(bytes reg, _ int) strides { return strides{bytes} }

func (m *arm64) rows(first reg, by strides, rows int) *stream {
	at := []reg{first}
	for i := range rows - 1 {
		at = append(at, m.reg())
		m.ins("ADD  %s, %s, %s", by[0], at[i], at[i+1])
	}
	return m.newStream(rows, at, by)
}

func (m *arm64) next(first reg, by strides, rows int) *stream {
	at := m.reg()
	m.ins("MOVD %s, %s", first, at)
	s := m.rows(at, by, rows)
	m.ins("ADD  %s, %s, %s", by[0], s.at[rows-1], first)
	return s
}

func (m *arm64) beside(s *stream, bytes int) *stream {
	var at []reg
	for _, from := range s.at {
		at = append(at, m.reg())
		m.ins("ADD  $%d, %s, %s", bytes, from, at[len(at)-1])
	}
	return m.newStream(len(s.moved), at, s.by)
}

func (m *arm64) number(n int) reg {
	r := m.reg()
	m.ins("MOVD $%d, %s", n, r)
	return r
}

func (m *arm64) walk(first reg, by strides, rows, per int, body func(*stream, reg)) {
	top, done := m.label("walk"), m.label("walked")
	m.scope(func() {
		s, left := m.next(first, by, rows), m.reg()
		m.ins("MOVD %s, %s", by[0], left)
		m.ins("CBZ  %s, %s", left, done)
		m.mark(top)
		m.scope(func() { body(s, "") })
		m.ins("SUBS $%d, %s, %[2]s", 4*per, left)
		m.ins("BNE  %s", top)
		m.mark(done)
	})
}

func (m *arm64) panels(s *stream, bytes int) {
	s.stepBy = m.reg()
	m.ins("MOVD $%d, %s", bytes, s.stepBy)
}

func (m *arm64) ifAny(n reg, body func()) {
	none := m.label("none")
	m.ins("CBZ  %s, %s", n, none)
	m.scope(body)
	m.mark(none)
}

// tail takes one element after another: a load of one float32 sets the other lanes to 0, so that what is added in them
// is 0.
func (m *arm64) tail(n reg, body func()) {
	m.ifAny(n, func() {
		m.part = true
		m.repeat(n, 1, body)
		m.part = false
	})
}

func (m *arm64) singles(n reg, body func()) { m.tail(n, body) }

func (m *arm64) returns(v vec) {
	m.ins("FMOVS F%d, %s", v, m.frame("ret"))
	m.end()
}

func (m *arm64) end() { m.ins("RET") }

func (m *arm64) atLeast(name string, n int, body func()) {
	less := m.label("less")
	m.scope(func() {
		r := m.arg(name)
		m.ins("CMP  $%d, %s", n, r)
	})
	m.ins("BLT  %s", less)
	m.scope(body)
	m.mark(less)
}

func (m *arm64) when(name string, body func()) {
	not := m.label("not")
	m.scope(func() {
		r := m.reg()
		m.ins("MOVBU %s, %s", m.frame(name), r)
		m.ins("CBZ  %s, %s", r, not)
	})
	m.scope(body)
	m.mark(not)
}

func (m *arm64) setResult(name string, n int) {
	m.scope(func() {
		r := m.reg()
		m.ins("MOVD $%d, %s", n, r)
		m.ins("MOVD %s, %s", r, m.frame(name))
	})
}

func (m *arm64) ahead(reg) reg      { return "" }
func (m *arm64) fetch(reg, int)     {}
func (m *arm64) fetchRows(reg, reg) {}
func (m *arm64) fetchAhead(*stream) {}

// Memory.

// fours calls f for as many registers as one load takes.
func fours(vs []vec, f func([]vec)) {
	for ; len(vs) > 4; vs = vs[4:] {
		f(vs[:4])
	}
	f(vs)
}

func (m *arm64) load(s *stream, row, n int) []vec {
	vs := m.vecs(n)
	fours(vs, func(vs []vec) {
		switch {
		case m.part:
			m.ins("FMOVS.P 4(%s), F%d", s.at[row], vs[0])
		case s.stepBy != "":
			m.ins("VLD1.P (%s)(%s), %s", s.at[row], s.stepBy, list(vs))
		default:
			m.ins("VLD1.P %d(%s), %s", 16*len(vs), s.at[row], list(vs))
		}
	})
	return vs
}

func (m *arm64) peek(s *stream, row, n int) []vec {
	vs := m.vecs(n)
	if m.part {
		m.ins("FMOVS (%s), F%d", s.at[row], vs[0])
	} else {
		m.ins("VLD1 (%s), %s", s.at[row], list(vs))
	}
	return vs
}

func (m *arm64) operands(s *stream, row, n int) (out []operand) {
	for _, v := range m.load(s, row, n) {
		out = append(out, in(v))
	}
	return out
}

func (m *arm64) loadOr(s *stream, _ vec) vec {
	if !m.part {
		return m.load(s, 0, 1)[0]
	}
	v := m.vecs(1)
	m.ins("VLD1R.P 4(%s), %s", s.at[0], list(v)) // the one element, in all lanes
	return v[0]
}

func (m *arm64) store(s *stream, row int, vs ...vec) {
	switch {
	case m.part:
		m.ins("FMOVS.P F%d, 4(%s)", vs[0], s.at[row])
	case s.stepBy != "":
		for i := range vs {
			m.ins("VST1.P %s, (%s)(%s)", list(vs[i:i+1]), s.at[row], s.stepBy)
		}
	default:
		fours(vs, func(vs []vec) { m.ins("VST1.P %s, %d(%s)", list(vs), 16*len(vs), s.at[row]) })
	}
}

func (m *arm64) storeLanes(s *stream, v vec, n int) {
	if n == 1 {
		m.ins("FMOVS.P F%d, 4(%s)", v, s.at[0])
	} else {
		m.ins("VST1.P %s, 16(%s)", list([]vec{v}), s.at[0])
	}
}

func (m *arm64) scalars(s *stream) (out []operand) {
	vs := m.vecs(len(s.at))
	for row, v := range vs {
		m.ins("FMOVS.P 4(%s), F%d", s.at[row], v)
		out = append(out, operand{v: v, scalar: true})
	}
	return out
}

// Multiplications take a lane.
func (m *arm64) broadcast(o operand) operand { return o }

// columns loads four columns of each row, whose lanes are the elements of a column.
func (m *arm64) columns(s *stream, n reg, body func([]operand)) {
	m.loop(n, 4, func() {
		var x [4][]operand
		for row := range s.at {
			v := m.load(s, row, 1)[0]
			for lane := range x {
				x[lane] = append(x[lane], operand{v: v, lane: lane, scalar: true})
			}
		}
		for _, x := range x {
			m.scope(func() { body(x) })
		}
	})
	m.tail(n, func() {
		x := m.scalars(s)
		m.part = false // a column is whole
		body(x)
		m.part = true
	})
}

func (m *arm64) splat(name string) vec {
	v := m.lastVecs(1)[0]
	m.ins("FMOVS %s, F%d", m.frame(name), v)
	m.ins("VDUP V%d.S[0], V%[1]d.S4", v)
	return v
}

func (m *arm64) constants(_ int, bits ...uint32) (out []operand) {
	r := m.reg()
	m.ins("MOVD $%s, %s", m.pool.place(bits...), r)
	for range bits {
		v := m.lastVecs(1)
		m.ins("VLD1R.P 4(%s), %s", r, list(v))
		out = append(out, in(v[0]))
	}
	m.free(r)
	return out
}

func (m *arm64) copy(o operand) vec {
	v := m.vec()
	m.move(o.v, v)
	return v
}

func (m *arm64) move(from, to vec) { m.ins("VORR V%d.B16, V%[1]d.B16, V%d.B16", from, to) }

func (m *arm64) zeros(n int) []vec {
	vs := m.vecs(n)
	for _, v := range vs {
		m.ins("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16", v)
	}
	return vs
}

// Arithmetic.

func (m *arm64) binary(op string, d, a, b vec) { m.ins("%s(%d, %d, %d)", op, b, a, d) }
func (m *arm64) unary(op string, d, a vec)     { m.ins("%s(%d, %d)", op, a, d) }

func (m *arm64) add(d, a vec, b operand)      { m.binary("VFADD", d, a, b.v) }
func (m *arm64) sub(d vec, a operand, b vec)  { m.binary("VFSUB", d, a.v, b) }
func (m *arm64) mul(d, a vec, b operand)      { m.binary("VFMUL", d, a, b.v) }
func (m *arm64) div(d vec, a operand, b vec)  { m.binary("VFDIV", d, a.v, b) }
func (m *arm64) max(d vec, a, b operand)      { m.binary("VFMAX", d, a.v, b.v) }
func (m *arm64) min(d vec, a, b operand)      { m.binary("VFMIN", d, a.v, b.v) }
func (m *arm64) round(d, a vec)               { m.unary("VFRINTN", d, a) }
func (m *arm64) abs(v vec, _ operand)         { m.unary("VFABS", v, v) }
func (m *arm64) neg(v vec, _ operand)         { m.unary("VFNEG", v, v) }
func (m *arm64) noNaN() []vec                 { return nil }
func (m *arm64) unordered([]vec, ...vec)      {}
func (m *arm64) maximum(v vec, _ []vec)       { m.unary("VFMAXV", v, v) }
func (m *arm64) integers(op string, d, a vec) { m.ins("%s V%d.S4, V%d.S4, V%[3]d.S4", op, a, d) }

func (m *arm64) fma(d, a vec, b operand) {
	if b.scalar {
		m.ins("VFMLAE(%d, %d, %d, %d)", b.lane, b.v, a, d)
	} else {
		m.ins("VFMLA V%d.S4, V%d.S4, V%d.S4", b.v, a, d)
	}
}

func (m *arm64) fnma(d, a vec, b operand) { m.ins("VFMLS V%d.S4, V%d.S4, V%d.S4", b.v, a, d) }

func (m *arm64) mulAdd(t, a, b vec) vec {
	d := m.copy(in(b))
	m.fma(d, a, in(t))
	m.freeVecs(t)
	return d
}

func (m *arm64) horner(x vec, coefficients []operand) vec {
	sums := m.vecs(2) // by turns
	p := coefficients[0].v
	for i, c := range coefficients[1:] {
		d := sums[i%2]
		m.move(c.v, d)
		m.fma(d, x, in(p))
		p = d
	}
	for _, v := range sums {
		if v != p {
			m.freeVecs(v)
		}
	}
	return p
}

func (m *arm64) selectSigned(d, x, a, b vec) {
	m.unary("VFCMLTZ", x, x)
	m.ins("VBSL V%d.B16, V%d.B16, V%d.B16", b, a, x)
	m.move(x, d)
}

// The multiplication is in two halves, of which only the second can round.
func (m *arm64) timesPowerOfTwo(d, n vec, one operand) {
	half := m.vec()
	m.unary("VFCVTNS", n, n)
	m.unary("VSSHR1", half, n)
	m.integers("VSUB", n, half)
	for _, v := range []vec{half, n} {
		m.ins("VSHL $23, V%d.S4, V%[1]d.S4", v)
		m.integers("VADD", v, one.v)
	}
	m.mul(d, d, in(half))
	m.mul(d, d, in(n))
	m.freeVecs(half)
}

func (m *arm64) sum(v vec) { m.sums([]vec{v}) }

func (m *arm64) sums(vs []vec) {
	a, b, c := vs[0], vs[0], vs[0]
	if len(vs) == 4 {
		b, c = vs[1], vs[2]
		m.binary("VFADDP", c, c, vs[3])
	}
	m.binary("VFADDP", a, a, b)
	m.binary("VFADDP", a, a, c)
}

// Floats of 16 bits.

func (m *arm64) narrowStream(name string) *stream { return m.stream(name) }

func (m *arm64) widen(s *stream, f narrowFloat, n int) []vec {
	vs := m.vecs(n)
	for _, v := range vs {
		if m.part {
			m.ins("VLD1R.P 2(%s), [V%d.H4]", s.at[0], v)
		} else {
			m.ins("VLD1.P 8(%s), [V%d.H4]", s.at[0], v)
		}
	}
	for _, v := range vs {
		if f == half {
			m.unary("VFCVTL", v, v)
			continue
		}
		m.ins("VUXTL V%d.H4, V%[1]d.S4", v)
		m.ins("VSHL $16, V%d.S4, V%[1]d.S4", v)
	}
	return vs
}

func (m *arm64) storeNarrow(s *stream, f narrowFloat, v vec) {
	m.narrow(v, f)
	if m.part {
		m.ins("VST1.P V%d.H[0], 2(%s)", v, s.at[0])
	} else {
		m.ins("VST1.P [V%d.H4], 8(%s)", v, s.at[0])
	}
}

// narrow leaves the four results in the lower half.
func (m *arm64) narrow(v vec, f narrowFloat) {
	if f == half {
		m.unary("VFCVTN", v, v)
	} else {
		m.ins("VUZP2 V%d.H8, V%[1]d.H8, V%[1]d.H8", v)
	}
}

func (m *arm64) roundNarrow(v vec, f narrowFloat) {
	if f == half {
		m.unary("VFCVTN", v, v)
		m.unary("VFCVTL", v, v)
		return
	}
	m.ins("VUSHR $16, V%d.S4, V%[1]d.S4", v)
	m.ins("VSHL $16, V%d.S4, V%[1]d.S4", v)
}

func (m *arm64) canonicalNaN(v vec, nan operand) {
	t := m.vec()
	m.binary("VFCMEQ", t, v, v)
	m.ins("VBIF V%d.B16, V%d.B16, V%d.B16", t, nan.v, v)
	m.freeVecs(t)
}

func (m *arm64) shiftRight(d, a vec, bits int) { m.ins("VUSHR $%d, V%d.S4, V%d.S4", bits, a, d) }
func (m *arm64) and(d vec, a operand)          { m.ins("VAND V%d.B16, V%d.B16, V%[2]d.B16", a.v, d) }
func (m *arm64) addIntegers(d vec, a operand)  { m.integers("VADD", d, a.v) }

// Weights.

func (m *arm64) transpose(s *stream) []vec {
	var w [4]vec
	for row := range w {
		w[row] = m.load(s, row, 1)[0]
	}
	return m.transposed(w)
}

func (m *arm64) transposeAt(s *stream, off int) []vec {
	var w [4]vec
	for row := range w {
		w[row] = m.bytesAt(s, row, off)
	}
	return m.transposed(w)
}

func (m *arm64) transposed(w [4]vec) []vec {
	t, d := m.vecs(4), m.vecs(4)
	for _, x := range []struct {
		op      string
		b, a, d vec
	}{
		{"VZIP1", w[2], w[0], t[0]}, {"VZIP1", w[3], w[1], t[1]}, {"VZIP2", w[2], w[0], t[2]}, {"VZIP2", w[3], w[1], t[3]},
		{"VZIP1", t[1], t[0], d[0]}, {"VZIP2", t[1], t[0], d[1]}, {"VZIP1", t[3], t[2], d[2]}, {"VZIP2", t[3], t[2], d[3]},
	} {
		m.ins("%s V%d.S4, V%d.S4, V%d.S4", x.op, x.b, x.a, x.d)
	}
	m.freeVecs(w[:]...)
	m.freeVecs(t...)
	return d
}

// codes: a mask leaves one code of each lane where it lies, and the conversion divides by the power of two that its
// place is worth.
func (m *arm64) codes(bits int) func(vec, ...int) []vec {
	masks := m.lastVecs(32 / bits)
	r := m.reg()
	m.ins("MOVD $%d, %s", 1<<bits-1, r)
	m.ins("VDUP %s, V%d.S4", r, masks[0])
	m.free(r)
	for i, v := range masks[1:] {
		m.ins("VSHL $%d, V%d.S4, V%d.S4", (i+1)*bits, masks[0], v)
	}
	return func(w vec, is ...int) []vec {
		vs := m.vecs(len(is))
		for j, i := range is {
			m.ins("VAND V%d.B16, V%d.B16, V%d.B16", masks[i], w, vs[j])
		}
		for j, i := range is {
			if i == 0 {
				m.unary("VUCVTF", vs[j], vs[j])
			} else {
				m.ins("VUCVTFX(%d, %d, %[2]d)", i*bits, vs[j])
			}
		}
		return vs
	}
}

// A unit is loaded as it lies, and x in the order in which the lanes have the weights: with 4 bits register i has
// x[i], x[8+i], x[16+i] and x[24+i], and with 8 bits x[i], x[4+i], x[8+i] and x[12+i] of the first half, and then of
// the second one.
func (m *arm64) quantized(bits int) quantized {
	codes := m.codes(bits)
	each := 32 / bits // codes of a lane
	return quantized{bits: bits, fields: 8,
		x: func(s *stream) []vec {
			x := m.vecs(8)
			vs := x
			if bits == 4 {
				vs = m.vecs(8)
			}
			for i := 0; i < 8; i += 4 {
				m.ins("VLD4.P 64(%s), %s", s.at[0], list(vs[i:i+4]))
			}
			if bits == 8 {
				return x
			}
			for i := range 4 {
				m.ins("VUZP1 V%d.S4, V%d.S4, V%d.S4", vs[4+i], vs[i], x[i])
			}
			for i := range 4 {
				m.ins("VUZP2 V%d.S4, V%d.S4, V%d.S4", vs[4+i], vs[i], x[4+i])
			}
			m.freeVecs(vs...)
			return x
		},
		unit: func(s *stream, row int) func(from, to int) []vec {
			w := m.load(s, row, bits/4)
			return func(from, to int) []vec {
				var is []int
				for i := from; i < to; i++ {
					is = append(is, i%each)
				}
				return codes(w[from/each], is...)
			}
		}}
}

// Blocks. Their rows stand still in a pass, as on amd64.

func (m *arm64) blockConstants(bits, less int) {
	switch bits {
	case 6:
		m.six = m.constants(0, sixBits...)
		return
	case 8:
		return
	}
	m.decode = m.codes(bits)
	if m.takes = less > 0; m.takes {
		m.less = m.constants(0, math.Float32bits(float32(less)))[0].v
	}
}

func (m *arm64) bytesAt(s *stream, row, off int) vec {
	v := m.vec()
	m.ins("FMOVQ %d(%s), F%d", off+s.moved[row], s.at[row], v)
	return v
}

func (m *arm64) nibbles(s *stream, row, off int) []vec { return []vec{m.bytesAt(s, row, off)} }

// nibble: register i has byte i of each 32-bit lane.
func (m *arm64) nibble(raw []vec, high bool) []vec {
	is := []int{0, 2, 4, 6}
	if high {
		is = []int{1, 3, 5, 7}
	}
	vs := m.decode(raw[0], is...)
	if m.takes {
		for _, v := range vs {
			m.sub(v, in(v), m.less)
		}
	}
	return vs
}

func (m *arm64) forWholes([]vec) bool { return false }
func (m *arm64) wholes([]vec) []vec   { panic("no x is made for whole bytes") }

func (m *arm64) signedCodes(s *stream, row, off int) []vec {
	return m.signedBytes(m.bytesAt(s, row, off))
}

// signedBytes are 16 bytes as float32. It uses up raw.
func (m *arm64) signedBytes(raw vec) []vec {
	vs := m.vecs(4)
	m.unary("VSXTLB", vs[0], raw)
	m.unary("VSXTLB2", vs[2], raw)
	m.freeVecs(raw)
	for i := 0; i < 4; i += 2 {
		m.unary("VSXTLH2", vs[i+1], vs[i])
		m.unary("VSXTLH", vs[i], vs[i])
	}
	for _, v := range vs {
		m.unary("VSCVTF", v, v)
	}
	return vs
}

func (m *arm64) sixBits(low, high *stream, row, group int) []vec {
	quarter := group / 2
	a, b := m.bytesAt(low, row, quarter%2*32+group%2*16), m.bytesAt(high, row, group%2*16)
	if quarter > 1 {
		m.ins("VUSHR $4, V%d.B16, V%[1]d.B16", a)
	} else {
		m.and(a, m.six[0])
	}
	switch quarter {
	case 0, 1:
		m.ins("VSHL $%d, V%d.B16, V%[2]d.B16", 4-2*quarter, b)
	case 3:
		m.ins("VUSHR $2, V%d.B16, V%[1]d.B16", b)
	}
	m.and(b, m.six[1])
	m.ins("VORR V%d.B16, V%d.B16, V%[2]d.B16", b, a)
	m.ins("VSUB V%d.B16, V%d.B16, V%[2]d.B16", m.six[2].v, a)
	m.freeVecs(b)
	return m.signedBytes(a)
}

func (m *arm64) times(d vec, scale operand) {
	m.ins("VFMULE(%d, %d, %d, %[3]d)", scale.lane, scale.v, d)
}

func (m *arm64) heads(s *stream, off, n int) (out []operand, _ []vec) {
	vs := m.vecs(2)
	for row, at := range s.at {
		if off > 0 {
			r := m.reg()
			m.ins("ADD  $%d, %s, %s", off, at, r)
			at = r
			m.free(r)
		}
		m.ins("VLD1 (%s), V%d.%s[%d]", at, vs[0], []string{1: "H", 2: "S"}[n], row)
	}
	if n*len(s.at) > 4 {
		m.unary("VFCVTL2", vs[1], vs[0])
	}
	m.unary("VFCVTL", vs[0], vs[0])
	for i := range n * len(s.at) {
		out = append(out, operand{v: vs[i/4], lane: i % 4, scalar: true})
	}
	return out, vs[:(len(out)+3)/4]
}

func (m *arm64) headVectors() int { return 2 }

func (m *arm64) freeHeads([]vec) {}

func (m *arm64) addTimes(to, heads []vec, x operand) {
	for i, h := range heads {
		m.fma(to[i], h, x)
	}
}

func (m *arm64) addOdd(v vec, heads []vec) {
	m.ins("VUZP2 V%d.S4, V%d.S4, V%[2]d.S4", heads[1], heads[0])
	m.add(v, v, in(heads[0]))
}

// packedScales: amd64's says what lies where.
func (m *arm64) packedScales(s *stream, masks []operand) []vec {
	low, rest := m.bytesAt(s, 0, 4), m.vec()
	high, upper := m.vec(), m.vec()
	m.ins("VDUP V%d.S[2], V%d.S4", low, rest)
	m.ins("VUSHR $4, V%d.B16, V%d.B16", rest, upper)
	m.and(rest, masks[2])
	m.ins("VZIP1 V%d.S4, V%d.S4, V%[2]d.S4", upper, rest)
	m.shiftRight(high, low, 2)
	m.and(low, masks[0])
	m.and(high, masks[1])
	m.ins("VORR V%d.B16, V%d.B16, V%[2]d.B16", rest, high)
	m.ins("VZIP1 V%d.S4, V%d.S4, V%[2]d.S4", high, low)
	m.freeVecs(rest, high, upper)
	return m.signedBytes(low)
}

func (m *arm64) align() {}

func (m *arm64) next16(s *stream, nibbles bool) []vec {
	if !nibbles {
		return m.load(s, 0, 4)
	}
	vs := m.vecs(4)
	m.ins("VLD4.P 64(%s), %s", s.at[0], list(vs))
	return vs
}

func (m *arm64) xor(d vec, a operand) { m.ins("VEOR V%d.B16, V%d.B16, V%[2]d.B16", a.v, d) }

func (m *arm64) stridedHalves(src reg, by strides) vec {
	v := m.vec()
	n := 4
	if m.part {
		n = 1
	}
	for i := range n {
		m.ins("VLD1.P (%s)(%s), V%d.H[%d]", src, by[0], v, i)
	}
	m.unary("VFCVTL", v, v)
	return v
}

// Panels. All columns of one are written.

func (m *arm64) panelMasks(string, int) {}

func (m *arm64) addRow(s *stream, row int, vs []vec) {
	m.scope(func() {
		for i, y := range m.peek(s, row, len(vs)) {
			m.add(vs[i], vs[i], in(y))
		}
	})
}

func (m *arm64) putRow(s *stream, row int, vs []vec) {
	m.ins("VST1 %s, (%s)", list(vs), s.at[row])
}
