package ptxmatrix

import "math/bits"

// remade makes the thread's sums that are not finite again, by a function that does so of a row of x and a column of the block. That takes long, and happens where
// something that is multiplied is not finite, or too large for the parts that it is multiplied in. The thread keeps its sums in shared memory meanwhile, which nobody else uses
// now, so that a loop can take one after another.
func (e *emitter) remade(again func(row, column string) string) {
	test := e.r("mov.b32", "0")
	for _, v := range e.acc { // 0 times a number that is not finite is NaN
		e.Line("fma.rn.f32 \t%s, %s, 0f00000000, %s", test, v, test)
	}
	sums, next, done := e.Label(), e.Label(), e.Label()
	e.Line("@!%s bra \t%s", e.Make("p", "setp.nan.f32", "%s, %s", test, test), done)
	mine := e.r("mad.lo.s32", "%s, 4, %s", e.thread, e.base)
	for i, v := range e.acc {
		e.Line("st.shared.f32 \t[%s+%d], %s", mine, 4*e.fit.blockThreads()*i, v)
	}
	// Sum i is of row 2·member + i%2 of eight, and of column quad or the one 8 behind, as i/2%2 says.
	rows, columns := e.r("mad.lo.s32", "%s, 2, %s", e.member, e.m0), e.column()
	i, at := e.r("mov.b32", "0"), e.r("mov.b32", "%s", mine)
	e.Mark(sums)
	was := e.r("ld.shared.b32", "[%s]", at)
	row := e.r("add.s32", "%s, %s", rows, e.r("and.b32", "%s, 1", i))
	row = e.r("mad.lo.s32", "%s, 8, %s", e.r("shr.u32", "%s, 2", i), row)
	skip := e.Make("p", "setp.ne.u32", "%s, 0x7F800000", e.r("and.b32", "%s, 0x7F800000", was))
	skip = e.Make("p", "or.pred", "%s, %s", skip, e.Make("p", "setp.ge.s32", "%s, %s", row, e.M))
	e.Line("@%s bra \t%s", skip, next)
	e.Line("st.shared.b32 \t[%s], %s", at, again(row, e.r("mad.lo.s32", "%s, 4, %s", e.r("and.b32", "%s, 2", i), columns)))

	e.Mark(next)
	e.Line("add.s32 \t%s, %s, 1", i, i)
	e.Line("add.s32 \t%s, %s, %d", at, at, 4*e.fit.blockThreads())
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %d", i, len(e.acc)), sums)
	for i, v := range e.acc {
		e.Line("ld.shared.f32 \t%s, [%s+%d]", v, mine, 4*e.fit.blockThreads()*i)
	}
	e.Mark(done)
	e.Line("bar.warp.sync \t-1")
}

// again makes a sum again, one product after another, with weights that are f32.
func (e *blockEmitter) again(row, column string) string {
	x := e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.Make("rd", "mul.wide.u32", "%s, %d", row, 2*e.fit.Inner))
	block := e.Make("rd", "add.s64", "%s, %s", e.args["w"], e.Make("rd", "mul.wide.u32", "%s, %d", e.row(column), e.rowBytes()))
	if e.rank != "" {
		x = e.plus(x, e.r("mul.lo.s32", "%s, %d", e.rank, 2*e.fit.Part))
		block = e.plus(block, e.r("mul.lo.s32", "%s, %d", e.rank, e.fit.Part/chunk*e.format.bytes))
	}
	total, left := e.r("mov.b32", "0"), e.r("shr.u32", "%s, %d", e.all, bits.Len(chunk)-1)
	chunks, groups, weights := e.Label(), e.Label(), e.Label()
	e.Mark(chunks)
	sum, j := e.r("mov.b32", "0"), e.r("mov.b32", "0")
	e.Mark(groups)
	scale, bias := e.format.scale(e, block, e.r("div.u32", "%s, %d", j, e.format.group))
	e.Mark(weights)
	w := e.multiplied(scale, e.float(e.format.code(e, block, j)))
	if bias != "" {
		w = e.r("add.rn.f32", "%s, %s", w, bias)
	}
	e.Line("fma.rn.f32 \t%s, %s, %s, %s", sum, e.widened(e.Make("rs", "ld.global.b16", "[%s]", x)), w, sum)
	e.Line("add.s64 \t%s, %s, 2", x, x)
	e.Line("add.s32 \t%s, %s, 1", j, j)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, %d", j, e.format.group-1)), weights)
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %d", j, chunk), groups)
	e.Line("add.rn.f32 \t%s, %s, %s", total, total, sum)
	e.Line("add.s64 \t%s, %s, %d", block, block, e.format.bytes)
	e.Line("sub.s32 \t%s, %s, 1", left, left)
	more := e.Make("p", "setp.ne.u32", "%s, 0", left)
	more = e.Make("p", "and.pred", "%s, %s", more, e.Make("p", "setp.num.f32", "%s, %s", total, total))
	e.Line("@%s bra \t%s", more, chunks)
	return total
}

// byteAt is byte offset + at of a block; signed has its sign.
func (e *blockEmitter) byteAt(kind, block, at string, offset int) string {
	v := e.New("r")
	e.Line("ld.global.%s \t%s, [%s+%d]", kind, v, e.plus(block, at), offset)
	return v
}

// halfOf is a number of f16 in a block.
func (e *blockEmitter) halfOf(block string, offset int) string {
	return e.r("cvt.f32.f16", "%s", e.Make("rs", "ld.global.b16", "[%s+%d]", block, offset))
}

// bits are some of a number, from one on.
func (e *blockEmitter) bits(v string, from, count int) string {
	return e.r("and.b32", "%s, %d", e.shifted(v, from), 1<<count-1)
}

func (e *blockEmitter) float(v string) string { return e.r("cvt.rn.f32.s32", "%s", v) }

// nibble is the low or the high half of a byte, as a bit says.
func (e *blockEmitter) nibble(v, upper string) string {
	return e.r("and.b32", "%s, 15", e.r("shr.u32", "%s, %s", v, e.r("shl.b32", "%s, 2", upper)))
}

func (e *blockEmitter) scaleQ4K(block, g string) (scale, bias string) {
	upper := e.Make("p", "setp.ge.u32", "%s, 4", g)
	first, second, third := e.byteAt("u8", block, g, 4), e.byteAt("u8", block, g, 8), e.byteAt("u8", block, g, 0)
	s := e.r("mad.lo.s32", "%s, 16, %s", e.bits(third, 6, 2), e.bits(second, 0, 4))
	s = e.either(upper, "r", s, e.bits(first, 0, 6))
	least := e.r("mad.lo.s32", "%s, 16, %s", e.bits(first, 6, 2), e.bits(second, 4, 4))
	least = e.either(upper, "r", least, e.bits(second, 0, 6))
	return e.multiplied(e.halfOf(block, 0), e.float(s)), e.multiplied(e.r("neg.f32", "%s", e.halfOf(block, 2)), e.float(least))
}

func (e *blockEmitter) codeQ4K(block, j string) string {
	at := e.r("mad.lo.s32", "%s, 32, %s", e.bits(j, 6, 2), e.bits(j, 0, 5))
	return e.nibble(e.byteAt("u8", block, at, 16), e.bits(j, 5, 1))
}

func (e *blockEmitter) scaleQ6K(block, g string) (scale, bias string) {
	return e.multiplied(e.halfOf(block, 208), e.float(e.byteAt("s8", block, g, 192))), ""
}

func (e *blockEmitter) codeQ6K(block, j string) string {
	half, quarter := e.bits(j, 7, 1), e.bits(j, 5, 2)
	at := e.r("mad.lo.s32", "%s, 64, %s", half, e.bits(j, 0, 6))
	low := e.nibble(e.byteAt("u8", block, at, 0), e.bits(j, 6, 1))
	at = e.r("mad.lo.s32", "%s, 32, %s", half, e.bits(j, 0, 5))
	high := e.r("shr.u32", "%s, %s", e.byteAt("u8", block, at, 128), e.r("shl.b32", "%s, 1", quarter))
	return e.r("add.s32", "%s, -32", e.r("mad.lo.s32", "%s, 16, %s", e.bits(high, 0, 2), low))
}

func (e *blockEmitter) scaleQ80(block, g string) (scale, bias string) {
	return e.halfOf(e.plus(block, e.r("mul.lo.s32", "%s, 34", g)), 0), ""
}

func (e *blockEmitter) codeQ80(block, j string) string {
	return e.byteAt("s8", block, e.r("mad.lo.s32", "%s, 34, %s", e.bits(j, 5, 3), e.bits(j, 0, 5)), 2)
}

func (e *blockEmitter) scaleQ40(block, g string) (scale, bias string) {
	return e.halfOf(e.plus(block, e.r("mul.lo.s32", "%s, 18", g)), 0), ""
}

func (e *blockEmitter) codeQ40(block, j string) string {
	at := e.r("mad.lo.s32", "%s, 18, %s", e.bits(j, 5, 3), e.bits(j, 0, 4))
	return e.r("add.s32", "%s, -8", e.nibble(e.byteAt("u8", block, at, 2), e.bits(j, 4, 1)))
}
