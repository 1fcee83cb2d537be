package ptxmatrix

import (
	"strings"

	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// emitter writes one entry.
type emitter struct {
	*product
	entry
	fit Fit

	thread, warp, lane, quad, member string // of the block, of its warpgroup, of its warp; lane/4, lane%4
	pair, side                       string // of warpgroups: which half of a stage, which half of the columns
	m0, n0                           string // the tile
	matrix                           [2]operand
	y, N, K, M                       string
	base                             string // of shared memory
	acc                              []string
	frag                             [ring][4]string
	codesFrom, codesTo, xFrom, xTo   string
	left                             string // elements of the inner index from the stage on that is brought next
	xRows                            []string
	xStep, xRow                      string
	scaleFrom                        string   // of scales or of biases, of one of the rows of four threads, who share them
	raw                              []string // by group: what is loaded of them for the next stage
	scaleLeft                        string
	slotBring, slotUse               string
	codesAt, descriptor              string
	mask, magic                      string // the bits of codes, and of powers of two in whose fractions they are as many
}

// operand is a matrix of weights.
type operand struct{ codes, scales, biases string }

// ring is how many left factors a thread has: products of all but the one that is decoded may be under way.
const ring = 4

// Emit implements [Kernel].
func (p *product) Emit(launch nvptx.Launch, f Fit) []byte {
	e := &emitter{product: p, entry: entry{kernel: p.source, launch: launch, typ: p.elem}, fit: f}
	e.parameters()
	e.place()
	for range e.fit.Rows / 2 {
		e.acc = append(e.acc, e.New("f"))
	}
	results := e.Label()
	if e.holds() {
		far := e.products(true)
		some := e.New("p")
		e.Line("bar.red.or.pred \t%s, 0, %s", some, far)
		e.Line("@!%s bra \t%s", some, results)
	}
	e.products(false)
	e.Line("bar.sync \t0")
	e.Mark(results)
	e.results()
	return e.text(threads)
}

// place finds the block's tile and the thread's part of it. A block that has none leaves.
func (e *emitter) place() {
	e.thread = e.r("mov.u32", "%%tid.x")
	e.lane = e.r("and.b32", "%s, 31", e.thread)
	e.warp = e.r("and.b32", "%s, 3", e.r("shr.u32", "%s, 5", e.thread))
	e.quad, e.member = e.r("shr.u32", "%s, 2", e.lane), e.r("and.b32", "%s, 3", e.lane)
	group := e.r("shr.u32", "%s, 7", e.thread)
	e.side, e.pair = e.r("and.b32", "%s, 1", group), e.r("shr.u32", "%s, 1", group)

	e.K, e.M = e.args["K"], e.args["M"]
	e.m0 = e.r("mul.lo.s32", "%s, %d", e.r("mov.u32", "%%ctaid.x"), e.fit.Rows)
	outside := e.Make("p", "setp.ge.s32", "%s, %s", e.m0, e.M)
	block := e.r("mov.u32", "%%ctaid.y")
	of := func(side string) operand {
		return operand{e.args["w"+side], e.args["scales"+side], e.args["biases"+side]}
	}
	length := func(side string) string {
		if n := e.args["n"+side]; n != "" {
			return n
		}
		return e.args["N"]
	}
	wide := columns
	switch e.form {
	case siluMul:
		wide = columns / 2
		e.matrix = [2]operand{of(e.sides[0]), of(e.sides[1])}
		e.y, e.N = e.args["y"], e.args["N"]
	default:
		m := of(e.sides[0])
		e.y, e.N = e.args["y"+e.sides[0]], length(e.sides[0])
		for _, side := range e.sides[1:] {
			blocks := e.r("shr.u32", "%s, 7", e.r("add.s32", "%s, %d", e.N, columns-1))
			further := e.Make("p", "setp.ge.u32", "%s, %s", block, blocks)
			block = e.either(further, "r", e.r("sub.s32", "%s, %s", block, blocks), block)
			next := of(side)
			m = operand{e.either(further, "rd", next.codes, m.codes), e.either(further, "rd", next.scales, m.scales), e.either(further, "rd", next.biases, m.biases)}
			e.y, e.N = e.either(further, "rd", e.args["y"+side], e.y), e.either(further, "r", length(side), e.N)
		}
		e.matrix = [2]operand{m, m}
	}
	e.n0 = e.r("mul.lo.s32", "%s, %d", block, wide)
	outside = e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "setp.ge.s32", "%s, %s", e.n0, e.N))
	e.Line("@%s bra \t$L_end", outside)

	start := e.r("mov.u32", "mlxc_shared")
	e.base = e.r("and.b32", "%s, %d", e.r("add.s32", "%s, %d", start, alignment-1), -alignment)
}

// row is the row of a matrix that stands at a place of the 128 of a block; behind the last one it is the last one, whose
// results nobody stores.
func (e *emitter) row(at string) string {
	if e.form == siluMul {
		at = e.r("and.b32", "%s, %d", at, columns/2-1)
	}
	return e.r("min.s32", "%s, %s", e.r("add.s32", "%s, %s", e.n0, at), e.r("sub.s32", "%s, 1", e.N))
}

// loads finds what the thread brings of each stage: 32 bytes of codes at most, some rows' elements, and the scales and
// biases of two rows of weights.
func (e *emitter) loads() {
	e.xRows, e.raw = nil, nil
	at := e.r("shr.u32", "%s, 2", e.thread)
	unit := e.r("and.b32", "%s, 3", e.thread)
	upper := e.Make("p", "setp.ge.u32", "%s, %d", at, columns/2)
	codes := e.either(upper, "rd", e.matrix[1].codes, e.matrix[0].codes)
	bytes := e.r("shr.u32", "%s, %d", e.r("mul.lo.s32", "%s, %d", e.K, e.bits), 3)
	offset := e.r("shl.b32", "%s, 4", unit)
	e.codesFrom = e.plus(e.Make("rd", "add.s64", "%s, %s", codes, e.wide(e.row(at), bytes)), offset)
	e.codesTo = e.r("add.s32", "%s, %s", e.codesPlace(at, unit), e.base)

	e.xRow = e.r("shr.u32", "%s, 4", e.thread)
	unit = e.r("and.b32", "%s, 15", e.thread)
	row := e.r("add.s32", "%s, %s", e.m0, e.xRow)
	pitch := e.r("shl.b32", "%s, 1", e.K)
	e.xFrom = e.plus(e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(row, pitch)), e.r("shl.b32", "%s, 4", unit))
	e.xStep = e.wide(pitch, "32")
	swizzled := e.r("xor.b32", "%s, %s", e.r("and.b32", "%s, 7", unit), e.r("and.b32", "%s, 7", e.xRow))
	to := e.r("add.s32", "%s, %s", e.r("shl.b32", "%s, 7", e.xRow), e.r("shl.b32", "%s, 4", swizzled))
	to = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 3", unit), 2*half*e.fit.Rows, to)
	e.xTo = e.r("add.s32", "%s, %s", to, e.base)
	for j := 0; j < e.fit.Rows; j += 32 {
		e.xRows = append(e.xRows, e.Make("p", "setp.lt.s32", "%s, %s", e.r("add.s32", "%s, %d", row, j), e.M))
	}
	e.left = e.r("mov.b32", "%s", e.K)
	e.slotBring = e.r("mov.b32", "0")

	second := e.Make("p", "setp.ne.u32", "%s, 0", e.side)
	first := e.r("mad.lo.s32", "%s, 16, %s", e.warp, e.quad)
	first = e.r("mad.lo.s32", "%s, %d, %s", e.side, columns/2, first)
	bias := e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, 1", e.member))
	var of [2]string
	for i, m := range e.matrix {
		of[i] = e.either(bias, "rd", m.biases, m.scales)
	}
	own := e.row(e.r("add.s32", "%s, %s", first, e.r("shl.b32", "%s, 2", e.r("and.b32", "%s, 2", e.member))))
	n := e.r("mul.lo.s32", "%s, %d", e.pair, half/e.group) // 0 of groups of 128
	n64 := e.Make("rd", "add.s64", "%s, %s", e.wide(own, e.r("div.u32", "%s, %d", e.K, e.group)), e.Make("rd", "cvt.u64.u32", "%s", n))
	e.scaleFrom = e.Make("rd", "mad.lo.s64", "%s, 2, %s", n64, e.either(second, "rd", of[1], of[0]))
	for range max(1, half/e.group) {
		e.raw = append(e.raw, e.Make("rs", "mov.b16", "0"))
	}
	e.scaleLeft = e.r("sub.s32", "%s, %s", e.K, e.r("mul.lo.s32", "%s, %d", e.pair, half))

	// Where codes of the thread's rows lie: the second is eight rows behind the first, which the permutation leaves alone.
	e.codesAt = e.codesPlace(first, e.r("mul.lo.s32", "%s, %d", e.pair, e.bits/2))
	e.slotUse = e.r("mov.b32", "0")
	x := e.r("mad.lo.s32", "%s, %d, %s", e.pair, 2*half*e.fit.Rows, e.base)
	e.descriptor = e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 4", x), 1<<16)
}

// codesPlace is where 16 bytes of codes lie in a stage, behind x. Eight rows at one place of their inner index lie in
// different banks.
func (e *emitter) codesPlace(row, unit string) string {
	by := row
	pitch := depth * e.bits / 8
	if e.bits == 4 {
		by = e.r("and.b32", "%s, 3", e.r("shr.u32", "%s, 1", row))
	} else {
		by = e.r("and.b32", "%s, 7", row)
	}
	at := e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", unit, by))
	at = e.r("mad.lo.s32", "%s, %d, %s", row, pitch, at)
	return e.r("add.s32", "%s, %d", at, 2*depth*e.fit.Rows)
}

// bring asks for a stage. Behind the last one it brings zeros, since an assembler has one wgmma wait for another where a branch lies between.
func (e *emitter) bring() {
	unit := e.r("and.b32", "%s, 3", e.thread)
	to := e.r("add.s32", "%s, %s", e.codesTo, e.slotBring)
	for i := range e.bits / 4 {
		size := e.within(e.r("mad.lo.s32", "%s, %d, %d", unit, 128/e.bits, i*half), "")
		if i == 0 {
			e.copy(to, e.codesFrom, 0, size)
		} else { // four units on
			e.copy(e.r("xor.b32", "%s, 64", to), e.codesFrom, 64, size)
		}
	}
	to = e.r("add.s32", "%s, %s", e.xTo, e.slotBring)
	from := e.xFrom
	at := e.r("shl.b32", "%s, 3", e.r("and.b32", "%s, 15", e.thread))
	for i, ok := range e.xRows {
		if i > 0 {
			from = e.Make("rd", "add.s64", "%s, %s", from, e.xStep)
		}
		e.copy(e.r("add.s32", "%s, %d", to, i*32*2*half), from, 0, e.within(at, ok))
	}
	e.Line("add.s64 \t%s, %s, %d", e.codesFrom, e.codesFrom, depth*e.bits/8)
	e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, 2*depth)
	e.Line("sub.s32 \t%s, %s, %d", e.left, e.left, depth)
	e.next(e.slotBring)
	e.Line("cp.async.commit_group")
}

// next counts a stage's place on.
func (e *emitter) next(slot string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, e.stageBytes(e.fit))
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.ge.u32", "%s, %d", slot, stages*e.stageBytes(e.fit)), slot)
}

// within is 16 if an element of a stage is one of the inner index, and another predicate holds, else 0.
func (e *emitter) within(at, also string) string {
	p := e.Make("p", "setp.lt.s32", "%s, %s", at, e.left)
	if also != "" {
		p = e.Make("p", "and.pred", "%s, %s", p, also)
	}
	return e.either(p, "r", "16", "0")
}

// copy brings 16 bytes to shared memory, or zeros if size is 0.
func (e *emitter) copy(to, from string, offset int, size string) {
	if e.fit.Aligned {
		e.Line("cp.async.cg.shared.global \t[%s], [%s+%d], 16, %s", to, from, offset, size)
		return
	}
	some := e.Make("p", "setp.ne.u32", "%s, 0", size)
	var words [4]string
	for i := range words {
		var halves [2]string
		for j := range halves {
			halves[j] = e.Make("rs", "mov.b16", "0")
			e.Line("@%s ld.global.b16 \t%s, [%s+%d]", some, halves[j], from, offset+4*i+2*j)
		}
		words[i] = e.r("mov.b32", "{%s, %s}", halves[0], halves[1])
	}
	e.Line("st.shared.v4.b32 \t[%s], {%s}", to, strings.Join(words[:], ", "))
}

// scales asks for the next stage's scales and biases: of four threads each for those of one of their rows.
func (e *emitter) scales() {
	for j := range e.raw {
		there := e.Make("p", "setp.gt.s32", "%s, %d", e.scaleLeft, j*e.group)
		e.Line("mov.b16 \t%s, 0", e.raw[j])
		e.Line("@%s ld.global.b16 \t%s, [%s+%d]", there, e.raw[j], e.scaleFrom, 2*j)
	}
	// Of each 32 bytes the first that is loaded has the cache ask for the next 32, several stages ahead.
	step := 2 * depth / e.group
	low := e.r("and.b32", "%s, 31", e.r("cvt.u32.u64", "%s", e.scaleFrom))
	ahead := e.Make("p", "setp.lt.u32", "%s, %d", low, step)
	ahead = e.Make("p", "and.pred", "%s, %s", ahead, e.Make("p", "setp.gt.s32", "%s, %d", e.scaleLeft, 16*e.group))
	e.Line("@%s prefetch.global.L2 \t[%s+32]", ahead, e.scaleFrom)
	e.Line("add.s64 \t%s, %s, %d", e.scaleFrom, e.scaleFrom, step)
	e.Line("sub.s32 \t%s, %s, %d", e.scaleLeft, e.scaleLeft, depth)
}

// affine is what the codes of a row become weights by, twice in a register: by group.
type affine struct{ scale, bias []string }

// share gives the four threads of two rows what each has loaded for the next stage, and asks for what is behind that.
func (e *emitter) share(rows [2]affine, far string) {
	word := e.r("mov.b32", "{%s, %s}", e.raw[0], e.raw[len(e.raw)-1])
	e.scales()
	var all [4]string
	for i := range all {
		all[i] = e.r("shfl.sync.idx.b32", "%s, %d, 0x1C1F, -1", word, i)
	}
	for i := range rows {
		for j := range e.raw {
			e.Line("prmt.b32 \t%s, %s, 0, %d", rows[i].scale[j], all[2*i], 0x1010+j*0x2222)
			e.Line("prmt.b32 \t%s, %s, 0, %d", rows[i].bias[j], all[2*i+1], 0x1010+j*0x2222)
		}
	}
	if far != "" {
		e.apart(all, far)
	}
}

// holds reports whether weights are decoded by fma in their own type, which has to hold a code.
func (e *emitter) holds() bool { return e.typ == ir.F16 || e.bits == 4 }

// apart asks whether scale·code + bias may be no number of f32 for some codes of a row in a stage. Where it always is one, rounding
// it to f32 and that to 16 bits, as the term does, is rounding once, as fma does: the lowest bits of scale and bias and the
// highest of the sum lie within 24 bits if their exponents are not far apart. A bias of 0 is never. Of four threads each looks at
// one row and group.
func (e *emitter) apart(all [4]string, some string) {
	upper := e.Make("p", "setp.gt.u32", "%s, 1", e.member)
	scale, bias := e.either(upper, "r", all[2], all[0]), e.either(upper, "r", all[3], all[1])
	shift := e.r("shl.b32", "%s, 4", e.r("and.b32", "%s, 1", e.member))
	fraction, most := 10, 31
	if e.typ == ir.BF16 {
		fraction, most = 7, 255
	}
	exponent := func(v string) string {
		x := e.r("and.b32", "%s, %d", e.r("shr.u32", "%s, %d", v, fraction), most)
		return e.r("max.u32", "%s, 1", x)
	}
	scale, bias = e.r("shr.u32", "%s, %s", scale, shift), e.r("shr.u32", "%s, %s", bias, shift)
	// The sum is below 2^(1 + max(exponent of the scale + bits, exponent of the bias) + 1).
	below, above := 24-fraction-e.bits-2, 24-fraction-2
	distance := e.r("add.s32", "%s, %d", e.r("sub.s32", "%s, %s", exponent(bias), exponent(scale)), below)
	far := e.Make("p", "setp.gt.u32", "%s, %d", distance, below+above)
	far = e.Make("p", "and.pred", "%s, %s", far, e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, 0x7FFF", bias)))
	e.Line("or.pred \t%s, %s, %s", some, some, far)
}

// products adds up the products of all stages. Weights are rounded once, or twice as the term has it. It returns a predicate, of which any thread's
// says that once is not enough: the sums are no good then.
func (e *emitter) products(once bool) (far string) {
	e.loads()
	for _, v := range e.acc {
		e.Line("mov.f32 \t%s, 0f00000000", v)
	}
	for i := range e.frag {
		for j := range e.frag[i] {
			e.frag[i][j] = e.r("mov.b32", "0")
		}
	}
	for range stages - 2 {
		e.bring()
	}
	e.scales()
	var rows [2]affine
	for i := range rows {
		for range e.raw {
			rows[i].scale, rows[i].bias = append(rows[i].scale, e.New("r")), append(rows[i].bias, e.New("r"))
		}
	}
	if once {
		far = e.Make("p", "setp.ne.u32", "%s, %s", e.K, e.K)
	}
	e.share(rows, far)
	rest := e.r("mov.b32", "%s", e.K)
	high := e.r("mov.b32", "%d", 1<<30|1024>>4)
	// Of two codes, each in the low byte of half a register: of 4 bits both lie in one byte of four, of 8 bits in two of
	// eight.
	selector := e.r("mad.lo.s32", "%s, %d, %d", e.member, 0x0101, 0x4040)
	if e.bits == 8 {
		selector = e.r("mad.lo.s32", "%s, %d, %d", e.member, 0x2222, 0x1100)
	}
	mask, magic := 0x00F0000F, 0x54006400 // 1024, 64
	switch {
	case e.bits == 8:
		mask, magic = 0x00FF00FF, 0x64006400 // 1024, 1024
	case e.typ == ir.BF16:
		mask, magic = 0x000F000F, 0x43004300 // 128, 128
	}
	e.mask, e.magic = e.r("mov.b32", "%d", mask), e.r("mov.b32", "%d", magic)
	always := e.Make("p", "setp.eq.u32", "%s, %s", e.K, e.K)
	stage := e.Label()
	e.Mark(stage)
	e.Line("cp.async.wait_group \t%d", stages-3)
	e.Line("fence.proxy.async.shared::cta")
	e.Line("bar.sync \t0")
	e.stage(rows, selector, high, always, once)
	e.share(rows, far)
	e.next(e.slotUse)
	e.Line("sub.s32 \t%s, %s, %d", rest, rest, depth)
	e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, 0", rest), stage)
	e.Line("wgmma.wait_group.sync.aligned \t0")
	e.Line("cp.async.wait_all")
	return far
}

// stage multiplies a stage, with weights that are rounded once or twice, and asks for another one.
func (e *emitter) stage(rows [2]affine, selector, high, always string, once bool) {
	codes := e.r("add.s32", "%s, %s", e.r("add.s32", "%s, %s", e.codesAt, e.base), e.slotUse)
	lowest := e.r("add.s32", "%s, %s", e.descriptor, e.r("shr.u32", "%s, 4", e.slotUse))
	per := 128 / e.bits // codes in 16 bytes
	for from := 0; from < half; from += per {
		var words [2][4]string
		for i := range words {
			for j := range words[i] {
				words[i][j] = e.New("r")
			}
			at := codes
			if from > 0 {
				at = e.r("xor.b32", "%s, %d", codes, from/per*16)
			}
			e.Line("ld.shared.v4.b32 \t{%s}, [%s+%d]", strings.Join(words[i][:], ", "), at, i*8*depth*e.bits/8)
		}
		for k := 0; k < per; k += 16 {
			step := (from + k) / 16
			a := e.frag[step%ring]
			e.Line("wgmma.wait_group.sync.aligned \t%d", ring-1)
			for i := range words {
				scale, bias := rows[i].scale[(from+k)/e.group], rows[i].bias[(from+k)/e.group]
				for j := range 2 {
					w := words[i][k*e.bits/32+j*e.bits/4:]
					if once {
						e.once(a[2*j+i], w, selector, scale, bias)
					} else {
						e.twice(a[2*j+i], w, selector, scale, bias)
					}
				}
			}
			d := e.Make("rd", "mov.b64", "{%s, %s}", e.r("add.s32", "%s, %d", lowest, step*2), high)
			e.Line("wgmma.fence.sync.aligned")
			name := e.typ.String()
			e.Line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s \t{%s}, {%s}, %s, %s, 1, 1, 0",
				e.fit.Rows, name, name, strings.Join(e.acc, ", "), strings.Join(a[:], ", "), d, always)
			e.Line("wgmma.commit_group.sync.aligned")
			if step == 0 {
				e.bring() // while tensor cores have something to do
			}
		}
	}
}

// twice makes two weights in f32, and rounds them to 16 bits. A code is put into the fraction of 2^23. A product of a scale and
// a code is exact, so that fma rounds as often as the term.
func (e *emitter) twice(to string, words []string, selector, scale, bias string) {
	both := e.both(words, selector)
	scale, bias = e.low(scale), e.low(bias)
	var v [2]string
	for k := range v {
		shift := 16 * k
		if e.bits == 4 {
			shift = 20 * k
		}
		code := e.r("and.b32", "%s, %d", e.r("shr.u32", "%s, %d", both, shift), 1<<e.bits-1)
		code = e.r("sub.rn.f32", "%s, 0f4B000000", e.r("or.b32", "%s, 0x4B000000", code))
		v[k] = e.r("fma.rn.f32", "%s, %s, %s", code, scale, bias)
	}
	e.Line("cvt.rn.%sx2.f32 \t%s, %s, %s", e.typ, to, v[1], v[0])
}

// low is the low half of a register as f32.
func (e *emitter) low(v string) string {
	low, high := e.New("rs"), e.New("rs")
	e.Line("mov.b32 \t{%s, %s}, %s", low, high, v)
	return e.widened(low)
}

// both has the bytes of two codes in the low bytes of its halves. Of 4 bits it is one byte twice, of which the first code is the
// low half and the second the high half.
func (e *emitter) both(words []string, selector string) string {
	if e.bits == 4 {
		return e.r("prmt.b32", "%s, 0, %s", words[0], selector)
	}
	return e.r("prmt.b32", "%s, %s, %s", words[0], words[1], selector)
}

// once makes two weights by fma of 16 bits. A code is put into the fraction of a power of two, which is subtracted.
func (e *emitter) once(to string, words []string, selector, scale, bias string) {
	both := e.both(words, selector)
	if e.typ == ir.BF16 { // the fraction has 7 bits: the second code has to lie where the first does
		both = e.r("prmt.b32", "%s, %s, 0x7610", both, e.r("shr.u32", "%s, 4", both))
	}
	// 0xEA: (a & b) | c
	code := e.r("lop3.b32", "%s, %s, %s, 0xEA", both, e.mask, e.magic)
	name := e.typ.String()
	code = e.r("sub.rn."+name+"x2", "%s, %s", code, e.magic)
	e.Line("fma.rn.%sx2 \t%s, %s, %s, %s", name, to, code, scale, bias)
}
