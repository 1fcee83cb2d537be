package ptxmatrix

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/mlxc/mlxc/ir"
)

// results rounds the sums, and stores what becomes of them, columns side by side.
func (e *emitter) results() {
	first, rows := e.m0, e.fit.Rows // of the results that the block makes
	if e.rank != "" {
		e.send()
		rows /= e.fit.Splits
		first = e.r("mad.lo.s32", "%s, %d, %s", e.rank, rows, first)
	} else {
		e.lay()
	}
	size, pitch := 2, e.fit.pitch() // of what lies in shared memory
	if e.rank != "" || e.full() {
		size, pitch = 4, e.fit.sumPitch()
	}
	if e.form == rope {
		if e.cache != ir.Invalid { // of queries; keys and values have another type
			e.turned(first, rows, size, pitch, e.key)
			e.typ = e.cache
		}
		e.turned(first, rows, size, pitch, e.value)
	}

	wide, threads := e.fit.columns(), e.fit.blockThreads()
	if e.form == siluMul {
		wide /= 2
	}
	side := wide / 8 // threads that share a row
	row := e.r("div.u32", "%s, %d", e.thread, side)
	col := e.r("shl.b32", "%s, 3", e.r("rem.u32", "%s, %d", e.thread, side))
	n := e.r("add.s32", "%s, %s", e.n0, col)
	from := e.r("mad.lo.s32", "%s, %d, %s", row, pitch, col)
	from = e.r("mad.lo.s32", "%s, %d, %s", from, size, e.base)
	m := e.r("add.s32", "%s, %s", first, row)
	end := e.r("min.s32", "%s, %s", e.r("add.s32", "%s, %d", first, rows), e.M)
	index := e.Make("rd", "add.s64", "%s, %s", e.wide(m, e.N), e.Make("rd", "cvt.u64.u32", "%s", n))
	width := e.width()
	bytes := e.Make("rd", "mul.lo.s64", "%s, %d", index, width)
	y := e.Make("rd", "add.s64", "%s, %s", e.y, bytes)
	r := ""
	low := e.Make("rd", "or.b64", "%s, %s", y, e.Make("rd", "cvt.u64.u32", "%s", e.r("mul.lo.s32", "%s, %d", e.N, width)))
	if e.form == add {
		r = e.Make("rd", "add.s64", "%s, %s", e.args["r"], bytes)
		low = e.Make("rd", "or.b64", "%s, %s", low, r)
	}
	step := e.wide(e.N, strconv.Itoa(width*threads/side))
	narrow := e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 15", low))
	narrow = e.Make("p", "or.pred", "%s, %s", narrow, e.Make("p", "setp.gt.s32", "%s, %s", e.r("add.s32", "%s, 8", n), e.N))
	loop, single, next := e.Label(), e.Label(), e.Label()
	e.Mark(loop)
	e.Line("@%s bra \t$L_end", e.Make("p", "setp.ge.s32", "%s, %s", m, end))
	results := e.eight(from)
	var others []string
	if e.form == siluMul {
		others = e.eight(e.r("add.s32", "%s, %d", from, size*wide))
		for i := range results {
			results[i] = e.siluMul(results[i], others[i])
		}
	} else if e.full() && e.form != add {
		for i, v := range results {
			results[i] = e.stored(v)
		}
	}
	e.Line("@%s bra \t%s", narrow, single)
	if e.form == add {
		others = e.loadEight("global", r)
		sums := make([]string, 8)
		for i := range sums {
			sums[i] = e.sumOf(others[i], results[i])
		}
		e.storeEight(y, sums)
	} else {
		e.storeEight(y, results)
	}
	e.Line("bra \t%s", next)
	e.Mark(single)
	for i, v := range results {
		there := e.Make("p", "setp.lt.s32", "%s, %s", e.r("add.s32", "%s, %d", n, i), e.N)
		if e.form == add {
			other := e.Make(e.kind(), fmt.Sprintf("mov.b%d", 8*width), "0")
			e.Line("@%s ld.global.b%d \t%s, [%s+%d]", there, 8*width, other, r, width*i)
			v = e.sumOf(other, v)
		}
		e.Line("@%s st.global.b%d \t[%s+%d], %s", there, 8*width, y, width*i, v)
	}
	e.Mark(next)
	e.Line("add.s64 \t%s, %s, %s", y, y, step)
	if r != "" {
		e.Line("add.s64 \t%s, %s, %s", r, r, step)
	}
	e.Line("add.s32 \t%s, %s, %d", m, m, threads/side)
	e.Line("add.s32 \t%s, %s, %d", from, from, size*pitch*threads/side)
	e.Line("bra \t%s", loop)
	e.Mark("$L_end")
	e.Line("ret")
}

// column is the first of the thread's two columns of sums; the other one lies eight further.
func (e *emitter) column() string {
	column := e.r("mad.lo.s32", "%s, 16, %s", e.warp, e.quad)
	return e.r("mad.lo.s32", "%s, 64, %s", e.group, column)
}

// full reports whether products are f32.
func (e *emitter) full() bool { return e.elem == ir.F32 }

// width is how many bytes a result has, and kind its kind of registers.
func (e *emitter) width() int {
	if e.typ == ir.F32 {
		return 4
	}
	return 2
}

func (e *emitter) kind() string {
	if e.typ == ir.F32 {
		return "r"
	}
	return "rs"
}

// lay has the sums, rounded to 16 bits unless they are f32, lie in shared memory row by row. The thread has those of its columns, of rows 2·member and 2·member + 1 of each eight;
// behind them, if its warp has more than 16 columns, those of columns 16 further.
func (e *emitter) lay() {
	e.Line("bar.sync \t0") // stages are done with
	size, pitch := 2, e.fit.pitch()
	if e.full() {
		size, pitch = 4, e.fit.sumPitch()
	}
	at := e.r("mad.lo.s32", "%s, %d, %s", e.member, 2*pitch, e.column())
	at = e.r("mad.lo.s32", "%s, %d, %s", at, size, e.base)
	skip := ""
	if e.others != "" {
		skip = e.Label()
		e.Line("@%s bra \t%s", e.others, skip)
	}
	for i, v := range e.acc {
		further, i := i/(e.fit.Rows/2), i%(e.fit.Rows/2)
		row, below := i/4*8+i%2, i/2%2*8+16*further
		if !e.full() {
			v = e.stored(v)
		}
		e.Line("st.shared.b%d \t[%s+%d], %s", 8*size, at, size*(row*pitch+below), v)
	}
	if skip != "" {
		e.Mark(skip)
	}
	e.Line("bar.sync \t0")
}

// send stores the sums where the blocks of the cluster find them that make results of them: each has the same number of rows, one block's part behind the other.
func (e *emitter) send() {
	if !e.fit.beside() { // stages are done with, in all blocks
		e.Line("barrier.cluster.arrive.release.aligned")
	}
	e.Line("barrier.cluster.wait.acquire.aligned")
	each, pitch := e.fit.Rows/e.fit.Splits, e.fit.sumPitch()
	row := e.r("shl.b32", "%s, 1", e.member) // the thread's first of each eight
	at := e.r("mad.lo.s32", "%s, %d, %s", e.rank, each*pitch, e.column())
	if each > 1 {
		at = e.r("mad.lo.s32", "%s, %d, %s", e.r("and.b32", "%s, %d", row, each-1), pitch, at)
	}
	at = e.r("mad.lo.s32", "%s, 4, %s", at, e.base)
	block := e.r("shr.u32", "%s, %d", row, bits.Len(uint(each))-1) // whose the row is, of eight
	to := map[int]string{}
	for i, v := range e.acc {
		row, below := i/4*8+i%2, i/2%2*8
		if each > 1 {
			row -= i % 2
		}
		place, there := to[row/each]
		if !there {
			place = e.r("mapa.shared::cluster.u32", "%s, %s", at, e.r("add.s32", "%s, %d", block, row/each))
			to[row/each] = place
		}
		e.Line("st.shared::cluster.f32 \t[%s+%d], %s", place, e.sumsAt(e.fit)+4*((i/4*8+i%2)%each*pitch+below), v)
	}
	e.Line("barrier.cluster.arrive.release.aligned")
	e.Line("barrier.cluster.wait.acquire.aligned")
}

// eight loads eight numbers from shared memory, or adds up what the blocks of the cluster have of them, in the order of the blocks.
func (e *emitter) eight(from string) []string {
	if e.rank != "" {
		sums := make([]string, 8)
		for part := range e.fit.Splits {
			for i := 0; i < len(sums); i += 4 {
				var v [4]string
				for j := range v {
					v[j] = e.New("f")
				}
				e.Line("ld.shared.v4.f32 \t{%s}, [%s+%d]", list(v[:]), from, e.sumsAt(e.fit)+4*(part*e.fit.Rows/e.fit.Splits*e.fit.sumPitch()+i))
				for j, n := range v {
					if part > 0 {
						n = e.Make("f", "add.rn.f32", "%s, %s", sums[i+j], n)
					}
					sums[i+j] = n
				}
			}
		}
		for i, v := range sums {
			sums[i] = e.stored(v)
		}
		return sums
	}
	return e.loadEight("shared", from)
}

// loadEight loads eight numbers that lie side by side.
func (e *emitter) loadEight(space, from string) []string {
	count := 4
	if e.full() {
		count = 8
	}
	words := make([]string, count)
	for i := range words {
		words[i] = e.New("r")
	}
	for i := 0; i < len(words); i += 4 {
		e.Line("ld.%s.v4.b32 \t{%s}, [%s+%d]", space, list(words[i:i+4]), from, 4*i)
	}
	if e.full() {
		return words
	}
	return e.halves(words)
}

// halves are the numbers of 16 bits in words.
func (e *emitter) halves(words []string) (out []string) {
	for _, w := range words {
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, w)
		out = append(out, low, high)
	}
	return out
}

func (e *emitter) storeEight(to string, v []string) {
	words := v
	if e.typ != ir.F32 {
		words = nil
		for i := 0; i < 8; i += 2 {
			words = append(words, e.r("mov.b32", "{%s, %s}", v[i], v[i+1]))
		}
	}
	for i := 0; i < len(words); i += 4 {
		e.Line("st.global.v4.b32 \t[%s+%d], {%s}", to, 4*i, list(words[i:i+4]))
	}
}

func (e *emitter) sumOf(a, b string) string {
	return e.stored(e.r("add.rn.f32", "%s, %s", e.widened(a), e.widened(b)))
}

// siluMul is what msl/activation.h makes of a gate and an up product: each step of a sigmoid is rounded in bf16, and a sigmoid
// in f16; of f32 a silu is one division.
func (e *entry) siluMul(gate, up string) string {
	const one = "0f3F800000"
	x := e.widened(gate)
	if e.typ == ir.F32 {
		part := e.r("add.rn.f32", "%s, %s", one, e.Call("exp", e.r("neg.f32", "%s", x)))
		return e.stored(e.r("mul.rn.f32", "%s, %s", e.r("div.rn.f32", "%s, %s", x, part), up))
	}
	step := func(v string) string {
		if e.typ == ir.BF16 {
			return e.widened(e.rounded(v))
		}
		return v
	}
	part := step(e.Call("exp", e.r("abs.f32", "%s", x)))
	part = step(e.r("add.rn.f32", "%s, %s", part, one))
	part = step(e.r("div.rn.f32", "%s, %s", one, part))
	rest := e.r("sub.rn.f32", "%s, %s", one, part)
	sigmoid := e.r("selp.f32", "%s, %s, %s", part, rest, e.Make("p", "setp.lt.f32", "%s, 0f00000000", x))
	sigmoid = e.widened(e.rounded(sigmoid))
	silu := e.widened(e.rounded(e.r("mul.rn.f32", "%s, %s", x, sigmoid)))
	return e.stored(e.r("mul.rn.f32", "%s, %s", silu, e.widened(up)))
}
