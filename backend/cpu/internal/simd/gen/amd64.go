package main

import (
	"fmt"
	"math"
	"math/bits"
)

// amd64 is AVX2 with FMA and BMI2, or, wide, AVX-512 F, BW, DQ and VL.
type amd64 struct {
	*code
	wide  bool
	mask  vec   // AVX2: of the tail
	masks []vec // AVX2: of the columns of a panel
	block blockConstants
}

var amd64ISA = isa{
	add: "ADDQ %s, %s", sub: "SUBQ %s, %s", compare: "CMPQ %s, $%d",
	less: "JLT  %s", notLess: "JGE  %s", notEqual: "JNE  %s",
}

// Some instructions want names of their own for wide registers.
func (m *amd64) either(narrow, wide string) string {
	if m.wide {
		return wide
	}
	return narrow
}

func xmm(v vec) string { return fmt.Sprintf("X%d", v) }
func ymm(v vec) string { return fmt.Sprintf("Y%d", v) }

func (m *amd64) r(v vec) string { return fmt.Sprintf(m.either("Y%d", "Z%d"), v) }

func (m *amd64) width() int { return m.lanes }

// Addresses.

func (m *amd64) arg(name string) reg {
	r := m.reg()
	m.ins("MOVQ %s, %s", m.frame(name), r)
	return r
}

func (m *amd64) stream(name string) *stream { return m.newStream(1, []reg{m.arg(name)}, nil) }

func (m *amd64) parked(name string) *stream {
	s := m.newStream(1, []reg{""}, nil)
	s.parked = name
	return s
}

func (m *amd64) scale(r reg, by, shift int) {
	if by&(by-1) == 0 {
		by, shift = 1, shift-bits.TrailingZeros(uint(by))
	}
	switch {
	case by > 1:
		m.ins("IMULQ $%d, %s", by, r)
	case shift < 0:
		m.ins("SHLQ $%d, %s", -shift, r)
		return
	}
	if shift > 0 {
		m.ins("SHRQ $%d, %s", shift, r)
	}
}

func (m *amd64) quotient(a, b reg) reg {
	d := m.reg()
	m.ins("BSRQ %s, %s", b, d)
	m.ins("SHRXQ %s, %s, %s", d, a, d)
	return d
}

func (m *amd64) shifted(a reg, bits int) reg {
	d := m.reg()
	m.ins("MOVQ %s, %s", a, d)
	m.ins("SHRQ $%d, %s", bits, d)
	return d
}

func (m *amd64) strides(bytes reg, rows int) strides {
	by := strides{bytes}
	for i, from := range []struct{ base, scale int }{{0, 2}, {0, 4}, {1, 4}} { // 3, 5, 7
		if rows > 3+2*i {
			by = append(by, m.reg())
			m.ins("LEAQ (%s)(%s*%d), %s", by[from.base], by[0], from.scale, by[i+1])
		}
	}
	return by
}

func (m *amd64) rows(first reg, by strides, rows int) *stream {
	at := []reg{first}
	for i := 8; i < rows; i += 8 {
		r := m.reg()
		m.ins("LEAQ (%s)(%s*8), %s", at[len(at)-1], by[0], r)
		at = append(at, r)
	}
	return m.newStream(rows, at, by)
}

func (m *amd64) next(first reg, by strides, rows int) *stream {
	at := m.reg()
	m.ins("MOVQ %s, %s", first, at)
	m.skip(first, by, rows)
	return m.newStream(rows, []reg{at}, by)
}

func (m *amd64) beside(s *stream, bytes int) *stream {
	var at []reg
	for _, from := range s.at {
		at = append(at, m.reg())
		m.ins("LEAQ %d(%s), %s", bytes, from, at[len(at)-1])
	}
	return m.newStream(len(s.moved), at, s.by)
}

func (m *amd64) number(n int) reg {
	r := m.reg()
	m.ins("MOVL $%d, %s", n, r)
	return r
}

func (m *amd64) skip(first reg, by strides, rows int) {
	if rows == 1 {
		m.ins("ADDQ %s, %s", by[0], first)
	} else {
		m.ins("LEAQ (%s)(%s*%d), %[1]s", first, by[0], rows)
	}
}

func (m *amd64) walk(first reg, by strides, rows, per int, body func(*stream, reg)) {
	top, done := m.label("walk"), m.label("walked")
	m.scope(func() {
		at, off := m.reg(), m.reg()
		s := m.newStream(rows, []reg{at}, by)
		m.ins("XORL %s, %s", off, off)
		m.ins("CMPQ %s, %s", off, by[0])
		m.ins("JGE  %s", done)
		m.align()
		m.mark(top)
		m.scope(func() {
			m.ins("LEAQ (%s)(%s*1), %s", first, off, at)
			body(s, off)
		})
		m.ins("ADDQ $%d, %s", 4*per, off)
		m.ins("CMPQ %s, %s", off, by[0])
		m.ins("JLT  %s", top)
		m.mark(done)
	})
	m.skip(first, by, rows)
}

func (m *amd64) panels(s *stream, bytes int) { s.step = bytes }

// place is where a row of a stream is, from off bytes behind its cursor on.
func (m *amd64) place(s *stream, row, off int) string {
	at := fmt.Sprintf("(%s)", s.at[row/8])
	if off += s.moved[row]; off != 0 {
		at = fmt.Sprint(off) + at
	}
	if row %= 8; row > 0 {
		x := []struct{ by, scale int }{{}, {0, 1}, {0, 2}, {1, 1}, {0, 4}, {2, 1}, {1, 2}, {3, 1}}[row]
		at += fmt.Sprintf("(%s*%d)", s.by[x.by], x.scale)
	}
	return at
}

// The eight lanes from 8-n of these on are a mask for the first n.
var tailMask = append(numbers(^uint32(0), 0, 8), numbers(0, 0, 8)...)

func (m *amd64) ifAny(n reg, body func()) {
	none := m.label("none")
	m.ins("TESTQ %s, %s", n, n)
	m.ins("JEQ  %s", none)
	m.scope(body)
	m.mark(none)
}

func (m *amd64) tail(n reg, body func()) {
	m.ifAny(n, func() {
		r := m.reg()
		if m.wide {
			m.ins("MOVL $0xffff, %s", r)
			m.ins("BZHIL %s, %s, %s", n, r, r)
			m.ins("KMOVW %s, K1", r)
		} else {
			m.mask = m.vec()
			m.ins("LEAQ %s, %s", m.pool.place(tailMask...), r)
			m.ins("SHLQ $2, %s", n)
			m.ins("SUBQ %s, %s", n, r)
			m.ins("VMOVDQU 32(%s), %s", r, m.r(m.mask))
		}
		m.free(r)
		m.part = true
		m.pass(body)
		m.part = false
	})
}

func (m *amd64) singles(n reg, body func()) {
	m.ifAny(n, func() {
		m.single = true
		m.repeat(n, 1, body)
		m.single = false
	})
}

func (m *amd64) returns(v vec) {
	m.ins("VMOVSS %s, %s", xmm(v), m.frame("ret"))
	m.end()
}

func (m *amd64) end() {
	m.ins("VZEROUPPER")
	m.ins("RET")
}

func (m *amd64) atLeast(name string, n int, body func()) {
	less := m.label("less")
	m.ins("CMPQ %s, $%d", m.frame(name), n)
	m.ins("JLT  %s", less)
	m.scope(body)
	m.mark(less)
}

func (m *amd64) when(name string, body func()) {
	not := m.label("not")
	m.ins("CMPB %s, $0", m.frame(name))
	m.ins("JEQ  %s", not)
	m.scope(body)
	m.mark(not)
}

func (m *amd64) setResult(name string, n int) { m.ins("MOVQ $%d, %s", n, m.frame(name)) }

// The four rows at hand are four streams within a page or two, which the hardware does not follow far enough. But rows
// lie one after another, so that the next ones are one stream again, of 4 times the bytes of a row: it is fetched
// ahead, by distances that were measured (a model's 115 MB: 13 ms a pass without, 7 ms with). A prefetch past the end
// of the memory is no fault.
const (
	aheadWeights = 4096 // bytes
	aheadScales  = 1024
	// Scales of 16 bits are widened for some rows at a time: those of the next rows are fetched, which lie as far
	// behind as 32 rows of 1536 weights have scales.
	aheadNarrow = 3072
)

func (m *amd64) ahead(first reg) reg {
	r := m.reg()
	m.ins("MOVQ %s, %s", first, r)
	return r
}

func (m *amd64) fetch(p reg, bytes int) {
	for i := 0; i < bytes; i += 64 {
		m.ins("PREFETCHT0 %d(%s)", aheadWeights+i, p)
	}
	m.ins("ADDQ $%d, %s", bytes, p)
}

func (m *amd64) fetchRows(first, off reg) { m.ins("PREFETCHT0 %d(%s)(%s*4)", aheadScales, first, off) }

func (m *amd64) fetchAhead(s *stream) { m.ins("PREFETCHT0 %s", m.place(s, 0, aheadNarrow)) }

// align precedes loops that run long: where they stand in a cache line is 2% of their time. Short ones would lose more
// by the instructions that fill the gap.
func (m *amd64) align() { m.ins("PCALIGN $32") }

// Memory.

func (m *amd64) move(at string, d vec) {
	switch {
	case m.single:
		m.ins("VMOVSS %s, %s", at, xmm(d))
	case !m.part:
		m.ins("VMOVUPS %s, %s", at, m.r(d))
	case m.wide:
		m.ins("VMOVUPS.Z %s, K1, %s", at, m.r(d))
	default:
		m.ins("VMASKMOVPS %s, %s, %s", at, m.r(m.mask), m.r(d))
	}
}

func (m *amd64) peek(s *stream, row, n int) []vec {
	vs := m.vecs(n)
	for i, v := range vs {
		m.move(m.place(s, row, i*s.step), v)
	}
	return vs
}

func (m *amd64) load(s *stream, row, n int) []vec {
	vs := m.peek(s, row, n)
	if m.single {
		s.moved[row] += 4
	} else {
		s.moved[row] += n * s.step
	}
	return vs
}

func (m *amd64) operands(s *stream, row, n int) (out []operand) {
	if m.part && !m.wide {
		return []operand{in(m.load(s, row, n)[0])}
	}
	for range n {
		out = append(out, operand{at: m.place(s, row, 0)})
		s.moved[row] += s.step
	}
	return out
}

func (m *amd64) loadOr(s *stream, fill vec) vec {
	v := m.load(s, 0, 1)[0]
	if m.part {
		if m.wide {
			m.fail("loadOr has no masks")
		}
		m.ins("VBLENDVPS %s, %s, %s, %s", m.r(m.mask), m.r(v), m.r(fill), m.r(v))
	}
	return v
}

func (m *amd64) store(s *stream, row int, vs ...vec) {
	for _, v := range vs {
		at := m.place(s, row, 0)
		switch {
		case m.single:
			m.ins("VMOVSS %s, %s", xmm(v), at)
			s.moved[row] += 4
			continue
		case !m.part:
			m.ins("VMOVUPS %s, %s", m.r(v), at)
		case m.wide:
			m.ins("VMOVUPS %s, K1, %s", m.r(v), at)
		default:
			m.ins("VMASKMOVPS %s, %s, %s", m.r(v), m.r(m.mask), at)
		}
		s.moved[row] += s.step
	}
}

func (m *amd64) storeLanes(s *stream, v vec, n int) {
	move := map[int]string{1: "VMOVSS", 4: "VMOVUPS"}[n]
	if s.parked == "" {
		m.ins("%s %s, %s", move, xmm(v), m.place(s, 0, 0))
		s.moved[0] += 4 * n
		return
	}
	r := m.arg(s.parked)
	m.ins("%s %s, (%s)", move, xmm(v), r)
	m.ins("ADDQ $%d, %s", 4*n, r)
	m.ins("MOVQ %s, %s", r, m.frame(s.parked))
	m.free(r)
}

func (m *amd64) scalars(s *stream) (out []operand) {
	for row := range s.moved {
		out = append(out, operand{at: m.place(s, row, 0), scalar: true})
		s.moved[row] += 4
	}
	return out
}

func (m *amd64) broadcast(o operand) operand { return in(m.copy(o)) }

func (m *amd64) columns(s *stream, n reg, body func([]operand)) {
	m.align()
	m.repeat(n, 1, func() { body(m.scalars(s)) })
}

func (m *amd64) splat(name string) vec {
	v := m.lastVecs(1)[0]
	m.ins("VBROADCASTSS %s, %s", m.frame(name), m.r(v))
	return v
}

func (m *amd64) constants(leave int, bits ...uint32) (out []operand) {
	for _, b := range bits {
		at := m.pool.place(b)
		free := 0
		for _, used := range m.used {
			if !used {
				free++
			}
		}
		if free <= leave {
			out = append(out, operand{at: at, scalar: true})
			continue
		}
		v := m.lastVecs(1)[0]
		m.ins("VBROADCASTSS %s, %s", at, m.r(v))
		out = append(out, in(v))
	}
	return out
}

// table loads as many numbers as there are lanes.
func (m *amd64) table(words []uint32) vec {
	v := m.lastVecs(1)[0]
	m.ins("VMOVUPS %s, %s", m.pool.place(words...), m.r(v))
	return v
}

func (m *amd64) copy(o operand) vec {
	v := m.vec()
	switch {
	case o.at == "":
		m.ins("VMOVAPS %s, %s", m.r(o.v), m.r(v))
	case o.scalar:
		m.ins("VBROADCASTSS %s, %s", o.at, m.r(v))
	default:
		m.move(o.at, v)
	}
	return v
}

func (m *amd64) zeros(n int) []vec {
	vs := m.vecs(n)
	for _, v := range vs {
		m.zero(v)
	}
	return vs
}

func (m *amd64) zero(v vec) { m.ins("VXORPS %s, %[1]s, %[1]s", xmm(v)) }

// Arithmetic.

// with runs ins with the text of an operand, in a register if it has to be.
func (m *amd64) with(o operand, ins func(text string)) {
	switch {
	case o.at == "":
		ins(m.r(o.v))
	case !o.scalar && !m.part:
		ins(o.at)
	default:
		v := m.copy(o)
		ins(m.r(v))
		m.freeVecs(v)
	}
}

// binary is d = op(a, b), where a is in a register.
func (m *amd64) binary(op string, d, a vec, b operand) {
	m.with(b, func(b string) { m.ins("%s %s, %s, %s", op, b, m.r(a), m.r(d)) })
}

func (m *amd64) add(d, a vec, b operand) { m.binary("VADDPS", d, a, b) }
func (m *amd64) mul(d, a vec, b operand) { m.binary("VMULPS", d, a, b) }

// swapped is binary for a first operand that may be in memory.
func (m *amd64) swapped(op string, d vec, a, b operand) {
	m.with(a, func(a string) {
		m.with(b, func(b string) { m.ins("%s %s, %s, %s", op, b, a, m.r(d)) })
	})
}

func (m *amd64) sub(d vec, a operand, b vec) { m.swapped("VSUBPS", d, a, in(b)) }
func (m *amd64) div(d vec, a operand, b vec) { m.swapped("VDIVPS", d, a, in(b)) }
func (m *amd64) max(d vec, a, b operand)     { m.swapped("VMAXPS", d, a, b) }
func (m *amd64) min(d vec, a, b operand)     { m.swapped("VMINPS", d, a, b) }

func (m *amd64) fma(d, a vec, b operand) {
	switch {
	case b.at != "" && m.wide && b.scalar:
		m.ins("VFMADD231PS.BCST %s, %s, %s", b.at, m.r(a), m.r(d))
	case b.at != "" && m.wide && m.part:
		m.ins("VFMADD231PS %s, %s, K1, %s", b.at, m.r(a), m.r(d))
	default:
		m.binary("VFMADD231PS", d, a, b)
	}
}

func (m *amd64) fnma(d, a vec, b operand) { m.binary("VFNMADD231PS", d, a, b) }

func (m *amd64) mulAdd(t, a, b vec) vec {
	m.ins("VFMADD213PS %s, %s, %s", m.r(b), m.r(a), m.r(t))
	return t
}

func (m *amd64) horner(x vec, coefficients []operand) vec {
	p := m.copy(coefficients[0])
	for _, c := range coefficients[1:] {
		m.binary("VFMADD213PS", p, x, c)
	}
	return p
}

func (m *amd64) round(d, a vec) {
	m.ins("%s $8, %s, %s", m.either("VROUNDPS", "VRNDSCALEPS"), m.r(a), m.r(d))
}

func (m *amd64) abs(v vec, sign operand) { m.swapped("VANDNPS", v, sign, in(v)) }
func (m *amd64) neg(v vec, sign operand) { m.binary("VXORPS", v, v, sign) }

func (m *amd64) selectSigned(d, x, a, b vec) {
	if m.wide {
		m.ins("VPMOVD2M %s, K2", m.r(x))
		m.ins("VBLENDMPS %s, %s, K2, %s", m.r(a), m.r(b), m.r(d))
		return
	}
	m.ins("VBLENDVPS %s, %s, %s, %s", m.r(x), m.r(a), m.r(b), m.r(d))
}

// AVX-512 multiplies with one rounding, subnormal or infinite results included. Elsewhere the multiplication is in two
// halves, of which only the second can round.
func (m *amd64) timesPowerOfTwo(d, n vec, one operand) {
	if m.wide {
		m.ins("VSCALEFPS %s, %s, %s", m.r(n), m.r(d), m.r(d))
		return
	}
	half := m.vec()
	m.ins("VCVTPS2DQ %s, %s", m.r(n), m.r(n))
	m.ins("VPSRAD $1, %s, %s", m.r(n), m.r(half))
	m.ins("VPSUBD %s, %s, %s", m.r(half), m.r(n), m.r(n))
	for _, v := range []vec{half, n} {
		m.ins("VPSLLD $23, %s, %s", m.r(v), m.r(v))
		m.binary("VPADDD", v, v, one)
	}
	m.mul(d, d, in(half))
	m.mul(d, d, in(n))
	m.freeVecs(half)
}

// VMAXPS has its second operand when there is a NaN; so NaNs are gathered apart.
func (m *amd64) noNaN() []vec { return m.zeros(1) }

func (m *amd64) unordered(nan []vec, vs ...vec) {
	for i := 0; i < len(vs); i += 2 {
		t := m.vec()
		m.ins("VCMPPS $3, %s, %s, %s", m.r(vs[min(i+1, len(vs)-1)]), m.r(vs[i]), m.r(t))
		m.binary("VORPS", nan[0], nan[0], in(t))
		m.freeVecs(t)
	}
}

// halves leaves op of the halves of a register in its first 128 bits.
func (m *amd64) halves(op string, v vec) {
	t := m.vec()
	if m.wide {
		m.ins("VEXTRACTF64X4 $1, %s, %s", m.r(v), ymm(t))
		m.ins("%s %s, %s, %s", op, ymm(t), ymm(v), ymm(v))
	}
	m.ins("VEXTRACTF128 $1, %s, %s", ymm(v), xmm(t))
	m.ins("%s %s, %s, %s", op, xmm(t), xmm(v), xmm(v))
	m.freeVecs(t)
}

func (m *amd64) sum(v vec) {
	m.halves("VADDPS", v)
	m.ins("VHADDPS %s, %[1]s, %[1]s", xmm(v))
	m.ins("VHADDPS %s, %[1]s, %[1]s", xmm(v))
}

func (m *amd64) maximum(v vec, nan []vec) {
	m.halves("VMAXPS", v)
	t, r := m.vec(), m.reg()
	for _, order := range []string{"$0x0e", "$0x01"} {
		m.ins("VPERMILPS %s, %s, %s", order, xmm(v), xmm(t))
		m.ins("VMAXPS %s, %s, %s", xmm(t), xmm(v), xmm(v))
	}
	m.ins("VMOVMSKPS %s, %s", m.r(nan[0]), r)
	m.ins("NEGL %s", r)
	m.ins("SBBL %s, %s", r, r)
	m.ins("VMOVD %s, %s", r, xmm(t))
	m.ins("VORPS %s, %s, %s", xmm(t), xmm(v), xmm(v))
	m.freeVecs(t)
	m.free(r)
}

func (m *amd64) sums(vs []vec) {
	if m.wide {
		high := m.vecs(len(vs))
		for i, v := range vs {
			m.ins("VEXTRACTF64X4 $1, %s, %s", m.r(v), ymm(high[i]))
		}
		for i, v := range vs {
			m.ins("VADDPS %s, %s, %s", ymm(high[i]), ymm(v), ymm(v))
		}
		m.freeVecs(high...)
	}
	a, b, c, d := vs[0], vs[0], vs[0], vs[0]
	if len(vs) == 4 {
		b, c, d = vs[1], vs[2], vs[3]
		m.ins("VHADDPS %s, %s, %s", ymm(d), ymm(c), ymm(c))
	}
	m.ins("VHADDPS %s, %s, %s", ymm(b), ymm(a), ymm(a))
	m.ins("VHADDPS %s, %s, %s", ymm(c), ymm(a), ymm(a))
	t := m.vec()
	m.ins("VEXTRACTF128 $1, %s, %s", ymm(a), xmm(t))
	m.ins("VADDPS %s, %s, %s", xmm(t), xmm(a), xmm(a))
	m.freeVecs(t)
}

// Floats of 16 bits. Loops over them have no wide form.

func (m *amd64) narrowStream(name string) *stream {
	s := m.stream(name)
	s.step = 2 * m.lanes
	return s
}

func (m *amd64) widen(s *stream, f narrowFloat, n int) []vec {
	vs := m.vecs(n)
	for _, v := range vs {
		at := m.place(s, 0, 0)
		if m.single {
			r := m.reg()
			m.ins("MOVWLZX %s, %s", at, r)
			m.ins("VMOVD %s, %s", r, xmm(v))
			m.free(r)
			at = xmm(v)
			s.moved[0] += 2
		} else {
			s.moved[0] += s.step
		}
		switch {
		case f == half:
			m.ins("VCVTPH2PS %s, %s", at, m.r(v))
		default:
			m.ins("VPMOVZXWD %s, %s", at, m.r(v))
			m.ins("VPSLLD $16, %s, %[1]s", m.r(v))
		}
	}
	return vs
}

func (m *amd64) storeNarrow(s *stream, f narrowFloat, v vec) {
	at := m.place(s, 0, 0)
	switch {
	case m.single && f == half:
		m.ins("VCVTPS2PH $0, %s, %[1]s", xmm(v))
		m.ins("VPEXTRW $0, %s, %s", xmm(v), at)
	case m.single:
		m.ins("VPEXTRW $1, %s, %s", xmm(v), at)
	case f == half:
		m.ins("VCVTPS2PH $0, %s, %s", m.r(v), at)
	default:
		t := m.vec()
		m.ins("VPSRLD $16, %s, %[1]s", m.r(v))
		m.ins("VEXTRACTI128 $1, %s, %s", m.r(v), xmm(t))
		m.ins("VPACKUSDW %s, %s, %s", xmm(t), xmm(v), xmm(v))
		m.ins("VMOVDQU %s, %s", xmm(v), at)
		m.freeVecs(t)
	}
	if m.single {
		s.moved[0] += 2
	} else {
		s.moved[0] += s.step
	}
}

func (m *amd64) roundNarrow(v vec, f narrowFloat) {
	if f == half {
		m.ins("VCVTPS2PH $0, %s, %s", m.r(v), xmm(v))
		m.ins("VCVTPH2PS %s, %s", xmm(v), m.r(v))
		return
	}
	m.ins("VPSRLD $16, %s, %[1]s", m.r(v))
	m.ins("VPSLLD $16, %s, %[1]s", m.r(v))
}

func (m *amd64) canonicalNaN(v vec, nan operand) {
	t := m.vec()
	m.ins("VCMPPS $3, %s, %[1]s, %s", m.r(v), m.r(t))
	m.ins("VBLENDVPS %s, %s, %s, %[3]s", m.r(t), m.r(nan.v), m.r(v))
	m.freeVecs(t)
}

func (m *amd64) shiftRight(d, a vec, bits int) { m.ins("VPSRLD $%d, %s, %s", bits, m.r(a), m.r(d)) }
func (m *amd64) and(d vec, a operand)          { m.binary("VPAND", d, d, a) }
func (m *amd64) addIntegers(d vec, a operand)  { m.binary("VPADDD", d, d, a) }

// Weights.

func (m *amd64) transpose(s *stream) []vec {
	t := m.transposeAt(s, 0)
	for row := range s.moved {
		s.moved[row] += 16
	}
	return t
}

func (m *amd64) transposeAt(s *stream, off int) []vec {
	w, t := m.vecs(4), m.vecs(4)
	for row := range m.lanes {
		at, v := m.place(s, row, off), w[row%4]
		if row < 4 {
			m.ins("VMOVDQU %s, %s", at, xmm(v))
		} else {
			m.ins("%s $%d, %s, %s, %s", m.either("VINSERTI128", "VINSERTI32X4"), row/4, at, m.r(v), m.r(v))
		}
	}
	for _, x := range []struct {
		op      string
		b, a, d vec
	}{
		{"VPUNPCKLDQ", w[1], w[0], t[0]}, {"VPUNPCKHDQ", w[1], w[0], t[2]},
		{"VPUNPCKLDQ", w[3], w[2], w[1]}, {"VPUNPCKHDQ", w[3], w[2], w[3]},
		{"VPUNPCKHQDQ", w[1], t[0], t[1]}, {"VPUNPCKLQDQ", w[1], t[0], t[0]},
		{"VPUNPCKHQDQ", w[3], t[2], t[3]}, {"VPUNPCKLQDQ", w[3], t[2], t[2]},
	} {
		m.ins("%s %s, %s, %s", x.op, m.r(x.b), m.r(x.a), m.r(x.d))
	}
	m.freeVecs(w...)
	return t
}

// nibbles are 0.0 to 15.0: VPERMPS looks one up by the low four bits of a lane and regards no higher one, which saves
// the mask and the conversion.
var nibbles = []uint32{
	0, 0x3f800000, 0x40000000, 0x40400000, 0x40800000, 0x40a00000, 0x40c00000, 0x40e00000,
	0x41000000, 0x41100000, 0x41200000, 0x41300000, 0x41400000, 0x41500000, 0x41600000, 0x41700000,
}

func (m *amd64) codes(bits int) func(vec, ...int) []vec {
	lookup := m.wide && bits == 4
	var c vec
	if lookup {
		c = m.table(nibbles)
	} else {
		c = m.constants(0, 1<<bits-1)[0].v
	}
	return func(w vec, is ...int) []vec {
		vs := m.vecs(len(is))
		for j, i := range is {
			v, from := m.r(vs[j]), m.r(w)
			if i > 0 {
				m.ins("VPSRLD $%d, %s, %s", i*bits, from, v)
				from = v
			}
			switch {
			case lookup:
				m.ins("VPERMPS %s, %s, %s", m.r(c), from, v)
				continue
			case (i+1)*bits < 32:
				m.ins("%s %s, %s, %s", m.either("VPAND", "VPANDD"), m.r(c), from, v)
			}
			m.ins("VCVTDQ2PS %s, %s", v, v)
		}
		return vs
	}
}

func (m *amd64) quantized(bits int) quantized {
	switch {
	case bits == 8:
		return m.bytes()
	case m.wide:
		return m.nibbleTable()
	}
	return m.nibbleWords()
}

// numbers are n numbers from first on, each greater than the one before by step.
func numbers(first, step uint32, n int) (out []uint32) {
	for i := range n {
		out = append(out, first+uint32(i)*step)
	}
	return out
}

// nibbleWords broadcasts each of the four uint32 of a unit, and shifts each lane by another number of bits.
func (m *amd64) nibbleWords() quantized {
	shifts, mask := m.table(numbers(0, 4, 8)), m.constants(0, 15)[0]
	return quantized{bits: 4, fields: 4,
		x: m.quarters,
		unit: func(s *stream, row int) func(from, to int) []vec {
			return func(from, to int) []vec {
				vs := m.vecs(to - from)
				for i, v := range vs {
					m.ins("VPBROADCASTD %s, %s", m.place(s, row, 4*quarter[from+i]), m.r(v))
					m.ins("VPSRLVD %s, %s, %s", m.r(shifts), m.r(v), m.r(v))
					m.ins("VPAND %s, %s, %s", m.r(mask.v), m.r(v), m.r(v))
					m.ins("VCVTDQ2PS %s, %s", m.r(v), m.r(v))
				}
				s.moved[row] += 16
				return vs
			}
		}}
}

// quarter is the order of the four fields of eight lanes: of the two sums of a unit the first takes every other one.
var quarter = [4]int{0, 2, 1, 3}

func (m *amd64) quarters(s *stream) (x []vec) {
	vs := m.load(s, 0, 4)
	return []vec{vs[quarter[0]], vs[quarter[1]], vs[quarter[2]], vs[quarter[3]]}
}

// nibbleTable: of the 16 bytes of a unit, seen as the uint32 numbers w0…w3, lane l of a register takes w(l%4) (one
// broadcast load) and shifts it by 4*(l/4), or by 16 more for the other half: lane l then holds in its low 4 bits
// weight 8*(l%4) + l/4, or that + 4. x is brought into the same order once for all rows.
func (m *amd64) nibbleTable() quantized {
	var shifts, order [2][]uint32
	for half := range 2 {
		for l := range 16 {
			shifts[half] = append(shifts[half], uint32(4*(l/4)+16*half))
			order[half] = append(order[half], uint32(8*(l%4)+l/4+4*half))
		}
	}
	shift := [2]vec{m.table(shifts[0]), m.table(shifts[1])}
	index := [2]vec{m.table(order[0]), m.table(order[1])}
	values := m.table(nibbles)
	return quantized{bits: 4, fields: 2,
		x: func(s *stream) []vec {
			vs := m.vecs(2)
			for i, v := range vs {
				m.ins("VMOVUPS %s, %s", m.place(s, 0, 0), m.r(v))
				m.ins("VPERMT2PS %s, %s, %s", m.place(s, 0, 64), m.r(index[i]), m.r(v))
			}
			s.moved[0] += 128
			return vs
		},
		unit: func(s *stream, row int) func(from, to int) []vec {
			return func(from, to int) []vec {
				vs, w := m.vecs(to-from), m.vec()
				m.ins("VBROADCASTI32X4 %s, %s", m.place(s, row, 0), m.r(w))
				for i, v := range vs {
					m.ins("VPSRLVD %s, %s, %s", m.r(shift[from+i]), m.r(w), m.r(v))
				}
				for _, v := range vs {
					m.ins("VPERMPS %s, %s, %s", m.r(values), m.r(v), m.r(v))
				}
				m.freeVecs(w)
				s.moved[row] += 16
				return vs
			}
		}}
}

func (m *amd64) bytes() quantized {
	fields := 32 / m.lanes
	order, x := quarter[:], m.quarters
	if m.wide {
		order, x = []int{0, 1}, func(s *stream) []vec { return m.load(s, 0, 2) }
	}
	return quantized{bits: 8, fields: fields, x: x,
		unit: func(s *stream, row int) func(from, to int) []vec {
			return func(from, to int) []vec {
				vs := m.vecs(to - from)
				for i, v := range vs {
					m.ins("VPMOVZXBD %s, %s", m.place(s, row, m.lanes*order[from+i]), m.r(v))
				}
				for _, v := range vs {
					m.ins("VCVTDQ2PS %s, %s", m.r(v), m.r(v))
				}
				s.moved[row] += 32
				return vs
			}
		}}
}

// Blocks.

// blockConstants are what decodes codes: AVX-512 looks nibbles up, less what is taken from them.
type blockConstants struct {
	table      vec
	mask, less operand
	sixteenth  operand
	six        []operand // the low four bits of a byte, the two above them, 32
}

func (m *amd64) blockConstants(bits, less int) {
	switch {
	case bits == 8:
	case bits == 6:
		m.block.six = m.constants(0, sixBits...)
	case m.wide:
		var values []uint32
		for i := range 16 {
			values = append(values, math.Float32bits(float32(i-less)))
		}
		m.block.table = m.table(values)
	default:
		m.block.mask = m.constants(0, 15)[0]
		if less > 0 {
			m.block.less = m.constants(0, uint32(-less))[0]
		}
	}
	if bits == 4 && less == 0 {
		m.block.sixteenth = m.constants(0, math.Float32bits(1./16))[0]
	}
}

func (m *amd64) bytesAt(op string, s *stream, row, off int) []vec {
	vs := m.vecs(16 / m.lanes)
	for i, v := range vs {
		m.ins("%s %s, %s", op, m.place(s, row, off+i*m.lanes), m.r(v))
	}
	return vs
}

func (m *amd64) nibbles(s *stream, row, off int) []vec { return m.bytesAt("VPMOVZXBD", s, row, off) }

func (m *amd64) nibble(raw []vec, high bool) []vec {
	vs := m.vecs(len(raw))
	for i, v := range vs {
		from := raw[i]
		if high {
			m.shiftRight(v, from, 4)
			from = v
		}
		if m.wide {
			m.ins("VPERMPS %s, %s, %s", m.r(m.block.table), m.r(from), m.r(v))
			continue
		}
		if !high {
			m.binary("VPAND", v, from, m.block.mask)
		}
		if m.block.less != (operand{}) {
			m.addIntegers(v, m.block.less)
		}
		m.ins("VCVTDQ2PS %s, %[1]s", m.r(v))
	}
	return vs
}

// forWholes: l·a + h·b, where a byte is c = l + 16h, is l·(a − b/16) + c·(b/16).
func (m *amd64) forWholes(x []vec) bool {
	low, high := x[:len(x)/2], x[len(x)/2:]
	for i, b := range high {
		m.mul(b, b, m.block.sixteenth)
		m.sub(low[i], in(low[i]), b)
	}
	return true
}

func (m *amd64) wholes(raw []vec) []vec {
	for _, v := range raw {
		m.ins("VCVTDQ2PS %s, %[1]s", m.r(v))
	}
	return raw
}

func (m *amd64) signedCodes(s *stream, row, off int) []vec {
	vs := m.bytesAt("VPMOVSXBD", s, row, off)
	for _, v := range vs {
		m.ins("VCVTDQ2PS %s, %[1]s", m.r(v))
	}
	return vs
}

// sixBits are four bytes each of what takes codes of six bits apart.
var sixBits = []uint32{0x0f0f0f0f, 0x30303030, 0x20202020}

func (m *amd64) sixBits(low, high *stream, row, group int) []vec {
	quarter, at := group/2, group%2*16
	vs := m.vecs(16 / m.lanes)
	a, b := vs[0], m.vec()
	bytes := func(op string, d, a vec, o operand) { m.ins("%s %s, %s, %s", op, xmm(o.v), xmm(a), xmm(d)) }
	and := m.either("VPAND", "VPANDD")
	m.ins("VMOVDQU %s, %s", m.place(low, row, at+quarter%2*32), xmm(a))
	if quarter > 1 {
		m.ins("VPSRLW $4, %s, %[1]s", xmm(a))
	}
	bytes(and, a, a, m.block.six[0])
	m.ins("VMOVDQU %s, %s", m.place(high, row, at), xmm(b))
	switch quarter {
	case 0, 1:
		m.ins("VPSLLW $%d, %s, %[2]s", 4-2*quarter, xmm(b))
	case 3:
		m.ins("VPSRLW $2, %s, %[1]s", xmm(b))
	}
	bytes(and, b, b, m.block.six[1])
	bytes("VPOR", a, a, in(b))
	bytes("VPSUBB", a, a, m.block.six[2])
	m.freeVecs(b)
	m.signedBytes(vs)
	return vs
}

// signedBytes makes of the 16 bytes in the first register float32s in all.
func (m *amd64) signedBytes(vs []vec) {
	if len(vs) > 1 {
		m.ins("VPSRLDQ $8, %s, %s", xmm(vs[0]), xmm(vs[1]))
	}
	for _, v := range vs {
		m.ins("VPMOVSXBD %s, %s", xmm(v), m.r(v))
		m.ins("VCVTDQ2PS %s, %[1]s", m.r(v))
	}
}

// packedScales: of the 12 bytes, as numbers w0, w1, w2, scale i < 4 is the low six bits of byte i of w0, and of w1 that
// for biases; scale 4 + i has four bits of byte i of w2, the low or the high ones, below the other two of w0 or w1.
func (m *amd64) packedScales(s *stream, masks []operand) []vec {
	vs := m.vecs(2)
	low, high, rest := vs[0], vs[1], m.vec()
	bytes := func(op string, d, a, b vec) { m.ins("%s %s, %s, %s", op, xmm(b), xmm(a), xmm(d)) }
	m.ins("VMOVDQU %s, %s", m.place(s, 0, 4), xmm(low))
	m.ins("VPSHUFD $0xaa, %s, %s", xmm(low), xmm(rest))
	m.ins("VPSRLVD %s, %s, %[2]s", m.pool.place(0, 4, 0, 4), xmm(rest))
	m.ins("VPSRLD $2, %s, %s", xmm(low), xmm(high))
	bytes("VPAND", low, low, masks[0].v)
	bytes("VPAND", high, high, masks[1].v)
	bytes("VPAND", rest, rest, masks[2].v)
	bytes("VPOR", high, high, rest)
	bytes("VPUNPCKLDQ", low, low, high)
	m.freeVecs(rest)
	m.signedBytes(vs)
	return vs
}

func (m *amd64) times(d vec, scale operand) { m.mul(d, d, scale) }

// heads leaves them in the frame, because operations can take scalars from memory.
func (m *amd64) heads(s *stream, off, n int) (out []operand, _ []vec) {
	v := m.vec()
	if n == 1 {
		m.zero(v)
		m.ins("VPINSRW $0, %s, %s, %[2]s", m.place(s, 0, off), xmm(v))
	} else {
		m.ins("VMOVD %s, %s", m.place(s, 0, off), xmm(v))
	}
	// Of the others 16 bytes are read, which begin in the row before and end in the block.
	for row := range s.moved[1:] {
		row++
		m.ins("%s $%d, %s, %s, %[4]s", []string{1: "VPBLENDW", 2: "VPBLENDD"}[n], 1<<row, m.place(s, row, off-2*n*row), xmm(v))
	}
	m.locals = 32
	to := xmm(v)
	if n*len(s.moved) > 4 {
		to = ymm(v)
	}
	m.ins("VCVTPH2PS %s, %s", xmm(v), to)
	m.ins("VMOVUPS %s, heads-32(SP)", to)
	for i := range n * len(s.moved) {
		out = append(out, operand{at: fmt.Sprintf("heads-%d(SP)", 32-4*i), scalar: true})
	}
	return out, []vec{v}
}

func (m *amd64) headVectors() int { return 1 }

func (m *amd64) freeHeads(vs []vec) { m.freeVecs(vs...) }

func (m *amd64) addTimes(to, heads []vec, x operand) {
	if m.wide {
		m.ins("VFMADD231PS.BCST %s, %s, %s", x.at, ymm(heads[0]), ymm(to[0]))
	} else {
		m.fma(to[0], heads[0], x)
	}
}

func (m *amd64) addOdd(v vec, heads []vec) {
	t, h := m.vec(), heads[0]
	m.ins("VEXTRACTF128 $1, %s, %s", ymm(h), xmm(t))
	m.ins("VSHUFPS $0xdd, %s, %s, %[2]s", xmm(t), xmm(h))
	m.ins("VADDPS %s, %s, %[2]s", xmm(h), xmm(v))
	m.freeVecs(t)
}

func (m *amd64) next16(s *stream, _ bool) []vec { return m.load(s, 0, 16/m.lanes) }

func (m *amd64) xor(d vec, a operand) { m.binary(m.either("VPXOR", "VPXORD"), d, d, a) }

func (m *amd64) stridedHalves(src reg, by strides) vec {
	v := m.vec()
	if m.single {
		r := m.reg()
		m.ins("MOVWLZX (%s), %s", src, r)
		m.ins("VMOVD %s, %s", r, xmm(v))
		m.free(r)
		m.skip(src, by, 1)
	} else {
		m.zero(v)
		m.scope(func() {
			s := m.next(src, by, 8)
			for row := range s.moved {
				m.ins("VPINSRW $%d, %s, %s, %[3]s", row, m.place(s, row, 0), xmm(v))
			}
		})
	}
	m.ins("VCVTPH2PS %s, %s", xmm(v), m.r(v))
	return v
}

// Panels.

func (m *amd64) panelMasks(name string, vectors int) {
	if m.wide {
		n, r := m.arg(name), m.reg()
		m.ins("MOVQ $%#x, %s", uint64(1)<<(16*vectors)-1, r)
		m.ins("BZHIQ %s, %s, %s", n, r, r)
		for i := range vectors {
			m.ins("KMOVW %s, K%d", r, i+1)
			if i < vectors-1 {
				m.ins("SHRQ $16, %s", r)
			}
		}
		m.free(r)
		m.free(n)
		return
	}
	n := m.vec()
	m.masks = m.vecs(vectors)
	m.ins("VPBROADCASTD %s, %s", m.frame(name), m.r(n))
	for i, v := range m.masks {
		m.ins("VPCMPGTD %s, %s, %s", m.pool.place(numbers(uint32(8*i), 1, 8)...), m.r(n), m.r(v))
	}
	m.freeVecs(n)
}

func (m *amd64) addRow(s *stream, row int, vs []vec) {
	for i, v := range vs {
		at := m.place(s, row, i*s.step)
		if m.wide {
			m.ins("VADDPS %s, %s, K%d, %s", at, m.r(v), i+1, m.r(v))
			continue
		}
		t := m.vec()
		m.ins("VMASKMOVPS %s, %s, %s", at, m.r(m.masks[i]), m.r(t))
		m.add(v, v, in(t))
		m.freeVecs(t)
	}
}

func (m *amd64) putRow(s *stream, row int, vs []vec) {
	for i, v := range vs {
		at := m.place(s, row, i*s.step)
		if m.wide {
			m.ins("VMOVUPS %s, K%d, %s", m.r(v), i+1, at)
		} else {
			m.ins("VMASKMOVPS %s, %s, %s", m.r(v), m.r(m.masks[i]), at)
		}
	}
}
