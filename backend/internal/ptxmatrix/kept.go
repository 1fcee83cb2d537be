package ptxmatrix

import (
	"math/bits"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Where all of x is kept, it lies in shared memory in an order that suits codes: a thread takes 32 codes of a stage that lie side by side, an eighth or a
// quarter of it, and they have one scale. The inner index of a product is what the two factors have in common; so its elements may
// stand in any order that is the same in both. Of a word of codes two that lie 16 bits apart become a register of the left factor by one logical operation.

// held is what a thread has of a stage: codes of two rows, and the scale and the bias of each.
type held struct {
	words       [2][]string
	scale, bias [2]string
}

// keep puts all of x into shared memory. A thread takes four times eight elements of a row, 32 apart, and changes their order: in eight columns of a step each of four threads
// that share a row of codes has two, which lie side by side. Beside weights of 16 bits the order stays, and it takes twice eight.
func (e *emitter) keep() {
	rows := e.fit.Rows
	per := threads / 4 / rows // stages at a time
	pieces := e.fit.Depth / 32
	part, row := e.member, e.r("and.b32", "%s, %d", e.r("shr.u32", "%s, 2", e.thread), rows-1)
	stage := e.r("shr.u32", "%s, %d", e.thread, 2+bits.Len(uint(rows))-1)

	m := e.r("add.s32", "%s, %s", e.m0, row)
	exists := e.Make("p", "setp.lt.s32", "%s, %s", m, e.M)
	offset := e.r("mad.lo.s32", "%s, %d, %s", stage, 2*e.fit.Depth, e.r("shl.b32", "%s, 4", part))
	if e.begin != "" {
		offset = e.r("mad.lo.s32", "%s, 2, %s", e.begin, offset)
	}
	from := e.plus(e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(m, e.r("shl.b32", "%s, 1", e.K))), offset)

	unit := part
	if !e.dense() {
		unit = e.r("shl.b32", "%s, 2", e.r("and.b32", "%s, 1", part)) // the first of four in which the elements come to lie
	}
	swizzled := e.r("xor.b32", "%s, %s", unit, e.r("and.b32", "%s, 7", row))
	to := e.r("mad.lo.s32", "%s, 128, %s", row, e.r("shl.b32", "%s, 4", swizzled))
	if !e.dense() {
		to = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 1", part), 128*rows, to)
	}
	to = e.r("mad.lo.s32", "%s, %d, %s", stage, e.fit.rowsBytes(), to)
	to = e.r("add.s32", "%s, %s", to, e.base)
	left := e.r("mad.lo.s32", "%s, %d, %s", stage, -e.fit.Depth, e.all)

	rounds := (e.fit.Part/e.fit.Depth + per - 1) / per
	together := min(8/pieces, rounds)
	e.times((rounds+together-1)/together, func() {
		var words [4][4][4]string
		var some [4]string
		for t := range together { // all are on their way at once
			some[t] = e.Make("p", "setp.gt.s32", "%s, %d", left, t*per*e.fit.Depth)
			load := e.Make("p", "and.pred", "%s, %s", some[t], exists)
			for i := range words[t][:pieces] {
				if e.dense() { // the inner index may end within a stage
					load = e.Make("p", "setp.gt.s32", "%s, %d", e.r("mad.lo.s32", "%s, -8, %s", part, left), t*per*e.fit.Depth+32*i)
					load = e.Make("p", "and.pred", "%s, %s", load, exists)
				}
				for j := range words[t][i] {
					words[t][i][j] = e.r("mov.b32", "0")
				}
				e.Line("@%s ld.global.v4.b32 \t{%s}, [%s+%d]", load, list(words[t][i][:]), from, t*per*2*e.fit.Depth+64*i)
			}
		}
		for t := range together {
			outs, apart := e.arranged(words[t][:pieces])
			for q, out := range outs {
				at := to
				if q > 0 {
					at = e.r("xor.b32", "%s, %d", to, apart*q)
				}
				e.Line("@%s st.shared.v4.b32 \t[%s+%d], {%s}", some[t], at, t*per*e.fit.rowsBytes(), list(out[:]))
			}
		}
		e.Line("add.s64 \t%s, %s, %d", from, from, together*per*2*e.fit.Depth)
		e.Line("add.s32 \t%s, %s, %d", to, to, together*per*e.fit.rowsBytes())
		e.Line("sub.s32 \t%s, %s, %d", left, left, together*per*e.fit.Depth)
	})
}

// arranged is what keep stores of the elements that it has read, and by what bits the places of these differ.
func (e *emitter) arranged(words [][4]string) (out [][4]string, apart int) {
	if e.dense() {
		return words, 64
	}
	for q := range 4 {
		first, second, half := q/2, q/2+2, []string{"0x5410", "0x7632"}[q%2]
		if e.bits == 8 {
			first, second = q/2*2, q/2*2+1
		}
		var v [4]string
		for i, w := range words {
			v[i] = e.r("prmt.b32", "%s, %s, %s", w[first], w[second], half)
		}
		out = append(out, v)
	}
	return out, 16
}

// fetch waits for the stage that is multiplied next, and reads what the thread has of it. Then all of the warp have read the stage before, whose place may be filled again.
// Behind the last stage it reads what nobody uses.
func (e *emitter) fetch() {
	e.Line("cp.async.wait_group \t%d", e.fit.ahead()-1)
	e.Line("bar.warp.sync \t0xffffffff")
	if e.kept.words[0] == nil {
		for i := range 2 {
			for range e.bits {
				e.kept.words[i] = append(e.kept.words[i], e.New("r"))
			}
			e.kept.scale[i], e.kept.bias[i] = e.New("r"), e.New("r")
		}
	}
	codes := e.r("add.s32", "%s, %s", e.codesAt, e.slotUse)
	for from := 0; from < e.bits; from += 4 {
		at := codes
		if from > 0 {
			at = e.r("xor.b32", "%s, 16", codes)
		}
		for i, words := range e.kept.words {
			e.Line("ld.shared.v4.b32 \t{%s}, [%s+%d]", strings.Join(words[from:from+4], ", "), at, i*8*depth*e.bits/8)
		}
	}
	within := e.r("and.b32", "%s, %d", e.stages, e.fit.period(e.product.group)-1) // the stage of those that the chunk is for
	scales := e.r("mad.lo.s32", "%s, %d, %s", within, 2*depth/e.product.group, e.r("add.s32", "%s, %s", e.scalesAt, e.scalesUse))
	for i := range 2 {
		e.Line("ld.shared.u16 \t%s, [%s+%d]", e.kept.scale[i], scales, 2*i*8*e.fit.chunk())
		e.Line("ld.shared.u16 \t%s, [%s+%d]", e.kept.bias[i], scales, (2*i*8+1)*e.fit.chunk())
	}
}

// keptStage multiplies a stage, asks for another one, and fetches the next one when the last codes are decoded.
func (e *emitter) keptStage(far string, once bool) {
	if far != "" {
		pair := func(v [2]string) string { return e.r("prmt.b32", "%s, %s, 0x5410", v[0], v[1]) }
		e.apart(e.bits, pair(e.kept.scale), pair(e.kept.bias), far)
	}
	var scale, bias [2]string
	for i := range 2 {
		for k, v := range e.halves([]string{e.kept.scale[i], e.kept.bias[i]}) {
			switch k { // an operand of fma takes one half twice as it is
			case 0:
				scale[i] = e.r("mov.b32", "{%s, %s}", v, v)
			case 2:
				bias[i] = e.r("mov.b32", "{%s, %s}", v, v)
			}
		}
	}
	lowest := ""
	if e.fit.byWarps() {
		lowest = e.r("add.s32", "%s, %s", e.place16(), e.r("mad.lo.s32", "%s, %d, %s", e.stages, e.fit.rowsBytes(), e.base))
	} else {
		lowest = e.r("mad.lo.s32", "%s, %d, %s", e.stages, e.fit.rowsBytes()>>4, e.descriptor)
	}
	const steps = depth / 16
	var shifted [2]string
	for step := range steps {
		a := e.frag[step%ring]
		if !e.fit.byWarps() {
			e.Line("wgmma.wait_group.sync.aligned \t%d", ring-1)
		}
		for i, words := range e.kept.words {
			word := words[step*e.bits/8]
			for j := range 2 {
				to, shift := a[2*j+i], e.bits*j // of the first of two codes
				if e.bits == 4 {
					shift += 8 * (step % 2)
				}
				if !once {
					e.twiceOf(e.bits, to, word, shift, shift+16, scale[i], bias[i])
					continue
				}
				if shift == 8 && e.bits == 4 {
					shifted[i] = e.r("shr.u32", "%s, 8", word)
				}
				code, magic := e.code(word, shifted[i], shift)
				e.onceOf(to, code, magic, scale[i], bias[i])
			}
		}
		if step == steps-1 {
			e.count()
			e.fetch()
		}
		e.multiply(lowest, step)
	}
}

// place16 is where in eight rows a lane finds what it multiplies of the first eight of 16 columns: of one row two and two. Where eight of them lie depends on the row.
func (e *emitter) place16() string {
	row := e.r("mad.lo.s32", "%s, 128, %s", e.quad, e.r("shl.b32", "%s, 4", e.quad))
	return e.r("mad.lo.s32", "%s, 4, %s", e.member, row)
}

// byWarps reports whether each warp multiplies by itself: of few rows wgmma takes as long as of 64, since it reads the left factor from registers.
func (f Fit) byWarps() bool { return f.Kept && f.Rows <= 16 }

// multiplyByWarps is multiply by mma.sync, whose factors and sums a warp has where it has those of wgmma.
func (e *emitter) multiplyByWarps(lowest string, step int) {
	a, name := e.frag[step%ring], e.typ.String()
	for tile := range e.fit.Rows / 8 {
		var b [2]string
		for i := range b {
			at := e.r("xor.b32", "%s, %d", lowest, (2*step+i)%8*16)
			b[i] = e.r("ld.shared.b32", "[%s+%d]", at, step/4*128*e.fit.Rows+1024*tile)
		}
		sums := list(e.acc[4*tile:][:4])
		e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s}, {%s}, {%s}", name, name, sums, list(a[:]), list(b[:]), sums)
	}
}

// code puts two codes, which lie at a place of a word and 16 bits on, into the fractions of a power of two. Of 4 bits there is also the word without its lowest eight.
func (e *emitter) code(word, shifted string, shift int) (code, magic string) {
	if e.bits == 8 {
		return e.r("prmt.b32", "%s, %s, %s", word, e.magic, []string{"0x5250", "0x5351"}[shift/8]), e.magic
	}
	if shift >= 8 {
		word = shifted
	}
	mask, magic := 0x000F000F, e.magic
	switch {
	case shift%8 == 0:
	case e.typ == ir.BF16: // the fraction has 7 bits: codes have to lie in its lowest ones
		word = e.r("shr.u32", "%s, 4", word)
	default:
		mask, magic = 0x00F000F0, e.upper
	}
	// 0xEA: (a & b) | c
	return e.r("lop3.b32", "%s, %d, %s, 0xEA", word, mask, magic), magic
}
