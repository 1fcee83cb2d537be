package ptxmatrix

import (
	"github.com/mlxc/mlxc/ir"
)

// wholeEmitter writes a product with blocks of q4_K in f16, whose weights need one wgmma and not two.
//
// A weight of a block is d·s·q − dmin·m, with s, q and m of 6, 4 and 6 bits. With a whole number n near dmin·m/d, of the group, it is
// d·(s·q − n) + (d·n − dmin·m). The first part is d times a whole number below 2048, an exact number of f16: the left factor, made by one fma. The
// second, the rest, is the same for all 32 weights of the group, and no more than half of d, or, where dmin·m/d is larger than n may get, of the same sign as the
// first part. So neither part is more than twice as large as the weight, and rests are no larger than it.
//
// Rests multiply sums of 32 elements of x, which threads make of x in shared memory. Rests and sums are each the sum of two
// numbers of bf16, side by side in a step of 16 of the inner index: rests of eight groups, and what these leave out. Two wgmmas for a chunk have all four
// products. They come a chunk later, when all threads have made sums, or where a phase ends. Numbers of f16 would have more bits, but not the exponents: where dmin is far smaller than d
// a rest may be 2^−40 of it, and is the whole weight where a code is 0.
//
// Sums of products are in units of the d of the chunk: between two chunks they are multiplied by the quotient of theirs. A d of 0 is no unit: then the one before
// is kept, whole numbers are 0, and rests are what is left.
type wholeEmitter struct {
	*blockEmitter
	a [ring][4]string // left factors

	unit, inverse [2]string    // of a row: d of the chunk, and 1/d
	rests         [2][2]string // of a row: of groups member and member + 4 of the chunk, or of the one before
	packed        [4]string    // the rests as a left factor, in units
	selector, odd string       // for the member's byte of four; 1/16 if it is odd, else 1

	sumFrom, sumTo string // where what the thread adds up of x begins, and where sums go to
	stores         string // predicate: the thread stores sums; "": all do
	sums, side     string // the descriptor of sums, and how far those of the chunk before are on

	partial []string // sums of 16 bytes of x of the stage
	first   string   // the sum of the half of the chunk before
}

// whole reports whether products are made so.
func (p *blockProduct) whole() bool { return p.format.whole && p.elem == ir.F16 }

// sumBytes are those of sums of two chunks: of a row 128, as swizzled matrices have, a half for each.
func (p *blockProduct) sumBytes(f Fit) int {
	if p.whole() {
		return 128 * f.Rows
	}
	return 0
}

// mostWhole is how large whole numbers get that are subtracted: more than any s·q.
const mostWhole = "0f447A0000" // 1000

// prepare finds the lane's part in sums, and begins with no rests.
func (e *wholeEmitter) prepare() {
	f := e.fit
	for i := range e.a {
		for j := range e.a[i] {
			e.a[i][j] = e.r("mov.b32", "0")
		}
	}
	for r := range e.unit {
		e.unit[r], e.inverse[r] = e.r("mov.b32", "0f3F800000"), e.r("mov.b32", "0f3F800000")
		for i := range e.rests[r] {
			e.rests[r][i] = e.r("mov.b32", "0")
		}
	}
	for i := range e.packed {
		e.packed[i] = e.r("mov.b32", "0")
	}
	e.selector = e.r("add.s32", "%s, %d", e.member, 0x7440)
	e.odd = e.either(e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, 1", e.member)), "r", e.r("mov.b32", "0f3D800000"), e.r("mov.b32", "0f3F800000"))

	place := e.r("add.s32", "%s, %d", e.base, e.of.xSlots(f)*e.of.xBytes(f)+codeSlots*e.fit.columns()*e.format.pitch)
	e.sums, e.side = e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 4", place), 1<<16), e.r("mov.b32", "4")
	if e.of.alone() {
		e.sums = e.r("add.s32", "%s, %s", place, e.lane0)
	}
	zero := e.r("mov.b32", "0")
	for i := 0; i < e.of.sumBytes(f); i += 16 * e.fit.blockThreads() {
		mine := e.Make("p", "setp.lt.u32", "%s, %d", e.thread, (e.of.sumBytes(f)-i)/16)
		e.Line("@%s st.shared.v4.b32 \t[%s+%d], {%s, %[4]s, %[4]s, %[4]s}", mine, e.r("mad.lo.s32", "%s, 16, %s", e.thread, place), i, zero)
	}

	// Of a row of x a thread adds up a group of each stage, half of one or a quarter. Threads that read at a time begin with other 16 bytes of theirs, which
	// lie in other banks.
	each := e.sumUnits()
	row, part := e.r("div.u32", "%s, %d", e.thread, 16/each), e.r("rem.u32", "%s, %d", e.thread, 16/each)
	group := e.r("div.u32", "%s, %d", part, 4/each)
	unit := e.r("and.b32", "%s, 7", e.r("mul.lo.s32", "%s, %d", part, each))
	half := e.r("shr.u32", "%s, 1", group)
	if each > 1 {
		unit = e.r("xor.b32", "%s, %s", unit, half)
	}
	if each > 2 {
		unit = e.r("xor.b32", "%s, %s", unit, e.r("and.b32", "%s, 2", e.r("shl.b32", "%s, 1", row)))
	}
	swizzle := e.r("and.b32", "%s, 7", row)
	at := e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", unit, swizzle))
	at = e.r("mad.lo.s32", "%s, 128, %s", row, at)
	at = e.r("mad.lo.s32", "%s, %d, %s", half, 128*f.Rows, at)
	e.sumFrom = e.r("add.s32", "%s, %s", at, e.base)
	at = e.r("mad.lo.s32", "%s, 4, %s", group, e.r("shl.b32", "%s, 4", swizzle))
	at = e.r("mad.lo.s32", "%s, 128, %s", row, at)
	e.sumTo = e.r("add.s32", "%s, %s", at, place)
	if each < 4 {
		e.stores = e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", part, 4/each-1))
	}
}

// sumUnits is how many times 16 bytes of a row a thread adds up in a stage.
func (e *wholeEmitter) sumUnits() int { return 16 * e.fit.Rows / e.fit.blockThreads() }

// multiply adds up the products of all stages.
func (e *wholeEmitter) multiply() {
	e.prepare()
	e.phased(func(left, end string) {
		for r := range e.rests { // a phase begins without those of the phase before
			for _, v := range e.rests[r] {
				e.Line("mov.b32 \t%s, 0", v)
			}
		}
		stages := e.Label()
		e.Mark(stages)
		for half := range chunk / depth {
			e.stageThere()
			e.half(half, e.bringing(half))
			e.turnX(e.slotUse)
		}
		e.turnCodes(e.use)
		e.Line("xor.b32 \t%s, %s, 64", e.sumTo, e.sumTo)
		e.Line("xor.b32 \t%s, %s, 4", e.side, e.side)
		e.Line("sub.s32 \t%s, %s, %d", left, left, chunk)
		e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, %s", left, end), stages)
		e.seen()
		e.Line("bar.sync \t0")
		e.pack()
		e.begin()
		e.multiplyRests()
		e.end()
	}, func(i int, before string) {
		v, unit := e.acc[i], e.unit[i/2%2]
		if before != "" {
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", v, v, unit, before)
		} else {
			e.Line("mul.rn.f32 \t%s, %s, %s", v, v, unit)
		}
	})
}

// pack makes a left factor of rests, in units.
func (e *wholeEmitter) pack() {
	for r := range e.rests {
		first, second := e.multiplied(e.rests[r][0], e.inverse[r]), e.multiplied(e.rests[r][1], e.inverse[r])
		e.split(ir.BF16, e.packed[r], e.packed[2+r], first, second)
	}
}

// multiplyRests adds what the chunk before left out.
func (e *wholeEmitter) multiplyRests() {
	at := ""
	if e.of.alone() {
		at = e.r("xor.b32", "%s, %s", e.sums, e.r("shl.b32", "%s, 4", e.side))
	} else {
		at = e.r("add.s32", "%s, %s", e.sums, e.side)
	}
	for i := range 2 {
		e.add(ir.BF16, [][4]string{e.packed}, at, i)
	}
}

// reciprocal is about 1/v, of a number that is neither 0 nor infinite: what is multiplied by both is off by few roundings. It takes no branch.
func (e *entry) reciprocal(v string) string {
	positive := e.r("and.b32", "%s, 0x7FFFFFFF", v)
	y := e.r("sub.s32", "%d, %s", 0x7EF311C7, positive) // within an eighth
	for range 3 {
		rest := e.r("fma.rn.f32", "%s, %s, 0f3F800000", e.r("neg.f32", "%s", positive), y)
		y = e.r("fma.rn.f32", "%s, %s, %s", rest, y, y)
	}
	return e.r("lop3.b32", "%s, 0x80000000, %s, 0xEA", v, y)
}

// half multiplies a stage.
func (e *wholeEmitter) half(half int, bring func()) {
	if half == 0 { // in units of the chunk before, as sums still are
		e.pack()
		e.begin()
		e.multiplyRests()
		e.end()
	}
	heads, bytes := e.heads()
	var ratio, own [2]string
	var heading [2]func()
	for r := range heads {
		h := e.four(heads[r], 0)
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, h[0])
		d, least := e.r("cvt.f32.f16", "%s", low), e.r("cvt.f32.f16", "%s", high)
		size := e.r("and.b32", "%s, 0x7FFFFFFF", d)
		ok := e.Make("p", "setp.gt.f32", "%s, 0f00000000", size)
		ok = e.Make("p", "and.pred", "%s, %s", ok, e.Make("p", "setp.lt.f32", "%s, 0f7F800000", size))
		if half == 0 {
			unit := e.either(ok, "r", d, e.unit[r])
			e.Line("mov.b32 \t%s, %s", e.inverse[r], e.reciprocal(unit))
			ratio[r] = e.multiplied(e.unit[r], e.inverse[r])
			e.Line("mov.b32 \t%s, %s", e.unit[r], unit)
		}
		heading[r] = func() {
			scales, minima := h[1], h[2]
			if half == 0 {
				scales, minima = e.r("and.b32", "%s, 0x3F3F3F3F", scales), e.r("and.b32", "%s, 0x3F3F3F3F", minima)
			} else {
				scales = e.r("lop3.b32", "%s, 0x30303030, %s, 0xEA", e.shifted(scales, 2), e.r("and.b32", "%s, 0x0F0F0F0F", h[3]))
				minima = e.r("lop3.b32", "%s, 0x30303030, %s, 0xEA", e.shifted(minima, 2), e.r("and.b32", "%s, 0x0F0F0F0F", e.shifted(h[3], 4)))
			}
			number := func(word string) string {
				return e.r("sub.rn.f32", "%s, 0f4B000000", e.r("prmt.b32", "%s, %d, %s", word, power23, e.selector))
			}
			scale := e.multiplied(number(scales), e.odd)
			least = e.multiplied(least, number(minima))
			n := e.multiplied(least, e.inverse[r])
			n = e.r("max.f32", "%s, 0fC47A0000", e.r("min.f32", "%s, %s", n, mostWhole))
			const whole = "0f4B400000" // 1.5 · 2^23: what is added to it is rounded to whole numbers
			n = e.r("sub.rn.f32", "%s, %s", e.r("add.rn.f32", "%s, %s", n, whole), whole)
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.rests[r][half], d, n, e.r("neg.f32", "%s", least))
			both := e.r("cvt.rn.f16x2.f32", "%s, %s", e.r("neg.f32", "%s", n), scale)
			own[r] = e.either(ok, "r", both, "0")
		}
	}
	for _, h := range heading {
		h()
	}

	x := e.stageOfX()
	var words [2][2]string        // of a row, of columns: two codes, each in the low byte of a half
	var scales, less [2][2]string // of a row, of two groups
	for i := range depth / 16 {
		step := []int{0, 2, 1, 3}[i%4] + i/4*4 // steps that share bytes follow one another
		group := step / 2 % 2
		a := &e.a[i%ring]
		if half > 0 || i == 0 || i >= ring { // else all before the chunk have been waited for
			e.added(ring - 1)
		}
		for r := range words {
			if i%4 == 0 {
				for g := range 2 {
					v := e.r("shfl.sync.idx.b32", "%s, %d, 0x1C1F, -1", own[r], step/2+g)
					scales[r][g], less[r][g] = e.r("prmt.b32", "%s, 0, 0x1010", v), e.r("prmt.b32", "%s, 0, 0x3232", v)
				}
			}
			for j := range 2 {
				if group == 0 {
					words[r][j] = e.two(bytes[r], 16+64*half+i/4*32+step%2*16+8*j)
				}
				// 1024 and the code, or 16 times the code; the scale of the latter is a sixteenth.
				v := e.r("lop3.b32", "%s, %d, %d, 0xEA", words[r][j], 0x000F000F<<(4*group), 0x64006400)
				v = e.r("sub.rn.f16x2", "%s, %s", v, e.r("mov.b32", "%d", 0x64006400))
				e.Line("fma.rn.f16x2 \t%s, %s, %s, %s", a[2*j+r], v, scales[r][group], less[r][group])
			}
		}
		first := half == 0 && i == 0
		if first {
			e.added(0)
			for i, v := range e.acc {
				e.Line("mul.rn.f32 \t%s, %s, %s", v, v, ratio[i/2%2])
			}
		}
		e.begin()
		e.add(e.typ, [][4]string{*a}, x, step)
		if half == 0 || i+1 < depth/16 { // else rests follow, which are of the same group
			e.end()
		}
		switch i {
		case 0:
			bring()
		case 1, 2, 3, 4:
			if i <= e.sumUnits() {
				e.addX(half, i-1)
			}
		}
	}
}

// addX adds up 16 bytes of the thread's part of a stage of x, the nth. In whatever order it does so, and with how many others, what is added is the
// same: units 0 and 1, and units 2 and 3, and then both.
func (e *wholeEmitter) addX(half, n int) {
	at := e.r("add.s32", "%s, %s", e.sumFrom, e.slotUse)
	if n > 0 {
		at = e.r("xor.b32", "%s, %d", at, 16*n)
	}
	v := e.entry.all(e.four(at, 0))
	for len(v) > 1 {
		for i := range len(v) / 2 {
			v[i] = e.r("add.rn.f32", "%s, %s", v[2*i], v[2*i+1])
		}
		v = v[:len(v)/2]
	}
	e.partial = append(e.partial, v[0])
	each := e.sumUnits()
	if n+1 < each {
		return
	}
	sums := e.partial
	e.partial = nil
	for len(sums) > 1 {
		for i := range len(sums) / 2 {
			sums[i] = e.r("add.rn.f32", "%s, %s", sums[2*i], sums[2*i+1])
		}
		sums = sums[:len(sums)/2]
	}
	for by := 1; by < 4/each; by *= 2 {
		sums[0] = e.r("add.rn.f32", "%s, %s", sums[0], e.r("shfl.sync.bfly.b32", "%s, %d, 31, -1", sums[0], by))
	}
	if half == 0 {
		e.first = sums[0]
		return
	}
	high, low := e.New("r"), e.New("r")
	e.split(ir.BF16, high, low, e.first, sums[0])
	guard := ""
	if e.stores != "" {
		guard = "@" + e.stores + " "
	}
	for i, v := range []string{high, high, low, low} {
		at := e.sumTo
		if i > 0 {
			at = e.r("xor.b32", "%s, %d", at, 16*i)
		}
		e.Line("%sst.shared.b32 \t[%s], %s", guard, at, v)
	}
}
