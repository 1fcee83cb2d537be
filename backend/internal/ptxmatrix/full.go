package ptxmatrix

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// fullProduct is a product of matrices of f32: x, scales, biases and results, and weights, which the term does not round.
//
// An f32 is the sum of three numbers of bf16, exactly: it, rounded, what that leaves out, rounded, and what both leave out. Of the nine products of the
// parts of a weight and of an element of x six are made. The others are less than 2^−23 of it. The product of both first parts is added to sums of its own. The
// other five, which are less than 2^−7 of the whole, are added to others: tensor cores cut off what lies some bits below the largest number that they add, so that
// small ones lose as much as large ones where they are added to the same sum.
//
// Parts are those of 2^16 times the number, so that the third one of a small number is not below the smallest of bf16. Where a sum is not finite, since
// something is that is multiplied, or is too large for its parts, it is made again ([fullEmitter.again]).
//
// Weights are decoded as in [product], by the thread that multiplies them. Rows of x come to shared memory as f32 by asynchronous copies, to a place that is
// the thread's own, and a stage later it stores them in parts, so that these are made once for all columns of a block.
type fullProduct struct{ *product }

var (
	namedFull       = regexp.MustCompile(`^affine_qmm_t_(?:(x2|x3|add|silu_mul)_)?float_gs_(32|64|128)_b_(4|8)_alN_(?:true|false)(_batch_0)?$`)
	namedFullTurned = regexp.MustCompile(`^affine_qmm_t_x3_(rope)_float_gs_(32|64|128)_b_(4|8)()$`)
)

func fullProductOf(k *air.Kernel, constants []ir.FunctionConstant) *fullProduct {
	m := namedFull.FindStringSubmatch(k.Name)
	if m == nil {
		m = namedFullTurned.FindStringSubmatch(k.Name)
	}
	if m == nil || (m[1] == "") != (m[4] != "") {
		return nil
	}
	p := &product{source: k, elem: ir.F32, sides: []string{""}}
	switch m[1] {
	case "":
		p.form = tile
	case "x2":
		p.sides = []string{"0", "1"}
	case "x3":
		p.sides = []string{"0", "1", "2"}
	case "add":
		p.form = add
	case "silu_mul":
		p.form, p.sides = siluMul, []string{"_gate", "_up"}
	case "rope":
		p.form, p.sides = rope, []string{"_q", "_k", "_v"}
		for _, c := range constants {
			p.pairs = p.pairs || c.Index == traditionalConstant && c.Bits != 0
		}
	}
	p.group, _ = strconv.Atoi(m[2])
	p.bits, _ = strconv.Atoi(m[3])
	return &fullProduct{p}
}

const (
	// fullDepth is how many elements of the inner index a stage has: a row of a part is what a swizzle turns, 128 bytes.
	fullDepth = 64
	// fullSlots are those of stages in parts: for one that is multiplied, one that may be still, and one that is stored.
	fullSlots = 3
	// copySlots are those of what copies bring: x of the stage behind the next one, and codes of the next one, each in the place of what has been used.
	copySlots = 2
	// ownBytes are those of x that a thread brings of each stage.
	ownBytes = 32
)

// Fit implements [Kernel]. With few blocks most of a GPU would be idle, and clang's code, which has four times as many, is faster; but where entries for few rows are asked
// for, the other choice is the one for many.
func (p *fullProduct) Fit(groups [3]uint64, given Given) (best Fit) {
	// Cycles of a stage: of tensor cores, or of decoding. Of clang's code, of a tile of 64 by 64, when all multiprocessors have several.
	const other = 2700
	at, least := uint64(max(1, given.Multiprocessors)), uint64(0)
	for _, x := range []struct {
		rows   int
		cycles uint64
	}{{64, 3400}, {32, 2000}} {
		f, ok := p.fit(groups, given, x.rows)
		if !ok {
			return Fit{}
		}
		grid, _, _ := p.Launch(groups, f)
		blocks := grid[0] * grid[1]
		if x.rows == 64 && given.Rows == 0 && Fewest > 0 {
			least = max(1, 4*blocks*other/at)
		}
		if cost := (blocks + at - 1) / at * x.cycles; least == 0 || cost < least {
			least, best = cost, f
		}
	}
	return best
}

// fit is how blocks of so many rows are launched. It reports whether they can.
func (p *fullProduct) fit(groups [3]uint64, given Given, rows int) (f Fit, ok bool) {
	k, known := given.Constant("K")
	if !known || k < int64(p.group) || k%int64(p.group) != 0 || k > 1<<24 {
		return Fit{}, false
	}
	f = Fit{Rows: rows, Aligned: given.Aligned, Long: k > phase, Inner: int(k), Part: phase}
	if p.form == rope {
		if f.Projections, ok = p.projections(given); !ok {
			return Fit{}, false
		}
	}
	f.Most = p.most(groups, given, f)
	return f, true
}

// Launch implements [Kernel].
func (p *fullProduct) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threadsOf, shared uint32) {
	grid, threadsOf, _ = p.product.Launch(groups, f)
	return grid, threadsOf, uint32(p.memory(f))
}

// partBytes are those of one part of a stage of x, and partsBytes those of all three.
func (*fullProduct) partBytes(f Fit) int    { return 2 * fullDepth * f.Rows }
func (p *fullProduct) partsBytes(f Fit) int { return 3 * p.partBytes(f) }

// A slot of what copies bring has x, codes, scales and biases. These are those of two groups of a row, of which groups of 64 and more need one.
func (*fullProduct) codesAt() int     { return threads * ownBytes }
func (p *fullProduct) affineAt() int  { return p.codesAt() + columns*fullDepth*p.bits/8 }
func (p *fullProduct) slotBytes() int { return p.affineAt() + columns*2*8 }

// copiesAt is where these slots lie, and savedAt sums of the phases before.
func (p *fullProduct) copiesAt(f Fit) int { return fullSlots * p.partsBytes(f) }
func (p *fullProduct) savedAt(f Fit) int  { return p.copiesAt(f) + copySlots*p.slotBytes() }

func (p *fullProduct) memory(f Fit) int {
	n := p.savedAt(f)
	if f.Long {
		n += 4 * threads * f.Rows / 2
	}
	return max(n, 4*sumPitch*f.Rows) + alignment
}

// fullEmitter writes one entry.
type fullEmitter struct {
	*emitter
	of *fullProduct

	small []string // sums of all products but those of both first parts, which are acc

	// The thread's own place of x in the first slot, and where it stores that in parts; where scales or biases of its row come, and where it finds codes, scales and
	// biases of the two rows that it multiplies.
	own, partTo, affineTo, affineFrom string
	thereX                            string // predicate: its row of x is one
	slot                              string // of what copies bring: of the stage that is multiplied, 0 or the bytes of one
	put                               string // where the next stage is stored in parts
	parts                             [blockRing][3][4]string
}

// Emit implements [Kernel].
func (p *fullProduct) Emit(launch nvptx.Launch, f Fit) []byte {
	e := &fullEmitter{of: p, emitter: &emitter{product: p.product, entry: entry{kernel: p.source, launch: launch, typ: ir.F32}, fit: f}}
	e.parameters()
	e.place()
	e.tile(0)
	for range f.Rows / 2 {
		e.acc, e.small = append(e.acc, e.New("f")), append(e.small, e.New("f"))
	}
	e.places()
	e.multiply()
	e.Line("bar.sync \t0") // shared memory is free for sums that are made again
	e.remade(e.again)
	e.results()
	return e.text(threads)
}

// places finds what the thread brings, and where it finds what it multiplies.
//
// The inner index may have any order that is the same in both factors. Of a stage thread m of four has the codes 16·m to 16·m + 15, four of them in each step of 16. In
// parts 16 bytes of a row of x, of which a step has two, have two elements for each of the four.
func (e *fullEmitter) places() {
	p, f := e.of, e.fit
	row, unit := e.r("shr.u32", "%s, 3", e.thread), e.r("and.b32", "%s, 7", e.thread)
	m := e.r("add.s32", "%s, %s", e.m0, row)
	e.thereX = e.Make("p", "setp.lt.s32", "%s, %s", m, e.M)
	if f.Rows < threads/8 {
		e.mine = e.Make("p", "setp.lt.u32", "%s, %d", row, f.Rows)
		e.thereX = e.Make("p", "and.pred", "%s, %s", e.thereX, e.mine)
	}
	e.xFrom = e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.Make("rd", "mul.wide.u32", "%s, %d", m, 4*f.Inner))
	e.xFrom = e.plus(e.xFrom, e.r("shl.b32", "%s, 3", unit))
	e.own = e.r("mad.lo.s32", "%s, 16, %s", e.thread, e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)))
	swizzled := e.r("and.b32", "%s, 7", e.r("xor.b32", "%s, %s", unit, row))
	e.partTo = e.r("mad.lo.s32", "%s, 128, %s", row, e.r("mad.lo.s32", "%s, 16, %s", swizzled, e.base))

	// Each row of weights is brought by two threads: every second 16 bytes of its codes, and its scales or its biases.
	of, side := e.r("shr.u32", "%s, 1", e.thread), e.r("and.b32", "%s, 1", e.thread)
	second := e.Make("p", "setp.ne.u32", "%s, 0", side)
	w := e.matrix[0]
	if e.form == siluMul {
		upper := e.Make("p", "setp.ge.u32", "%s, %d", of, columns/2)
		w = e.operandOf(upper)
	}
	stored := e.row(of)
	e.codesFrom[0] = e.Make("rd", "add.s64", "%s, %s", w.codes, e.Make("rd", "mul.wide.u32", "%s, %d", stored, f.Inner*e.bits/8))
	e.codesFrom[0] = e.plus(e.codesFrom[0], e.r("shl.b32", "%s, 4", side))
	e.scaleFrom = e.Make("rd", "add.s64", "%s, %s", e.either(second, "rd", w.biases, w.scales), e.Make("rd", "mul.wide.u32", "%s, %d", stored, 4*f.Inner/e.product.group))
	e.affineTo = e.r("mad.lo.s32", "%s, 8, %s", e.thread, e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)+p.affineAt()))

	first := e.column()
	place := e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)+p.codesAt())
	if e.bits == 4 {
		place = e.r("mad.lo.s32", "%s, 8, %s", e.member, place)
	} else { // 16 bytes lie as threads bring them
		place = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 1", e.member), threads*16, place)
		place = e.r("mad.lo.s32", "%s, 16, %s", e.r("and.b32", "%s, 1", e.member), place)
	}
	e.codesAt = e.r("mad.lo.s32", "%s, 32, %s", first, place)
	e.affineFrom = e.r("mad.lo.s32", "%s, 16, %s", first, e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)+p.affineAt()))
	if e.product.group == 32 { // of threads 2 and 3 it is the second one of the stage
		e.affineFrom = e.r("mad.lo.s32", "%s, 4, %s", e.r("shr.u32", "%s, 1", e.member), e.affineFrom)
	}

	e.descriptor = e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 4", e.base), 1<<16)
	e.slot, e.slotUse, e.put = e.r("mov.b32", "0"), e.r("mov.b32", "0"), e.r("mov.b32", "0")
	for i := range e.parts {
		for j := range e.parts[i] {
			for k := range e.parts[i][j] {
				e.parts[i][j][k] = e.r("mov.b32", "0")
			}
		}
	}
}

// operandOf is the second matrix where a predicate holds, else the first.
func (e *emitter) operandOf(second string) operand {
	a, b := e.matrix[0], e.matrix[1]
	return operand{e.either(second, "rd", b.codes, a.codes), e.either(second, "rd", b.scales, a.scales), e.either(second, "rd", b.biases, a.biases)}
}

// thereOf says, by predicates, whether a stage of which so many elements are left has its first 32, and its other 32.
func (e *fullEmitter) thereOf(left string) (halves [2]string) {
	halves[0] = e.Make("p", "setp.gt.s32", "%s, 0", left)
	if halves[1] = halves[0]; e.fit.Inner%fullDepth != 0 {
		halves[1] = e.Make("p", "setp.gt.s32", "%s, 32", left)
	}
	return halves
}

// bringBytes asks for bytes that come to shared memory, or for zeros where a predicate does not hold.
func (e *fullEmitter) bringBytes(to string, place int, from string, offset, bytes int, there string) {
	each, how := bytes, "ca"
	switch {
	case !e.fit.Aligned:
		each = 4
	case bytes == 16:
		how = "cg"
	}
	size := e.either(there, "r", strconv.Itoa(each), "0")
	for i := 0; i < bytes; i += each {
		e.Line("cp.async.%s.shared.global \t[%s+%d], [%s+%d], %d, %s", how, to, place+i, from, offset+i, each, size)
	}
}

// bringX asks for the thread's elements of x of a stage: two of each 16.
func (e *fullEmitter) bringX(slot, left string) {
	to := e.r("add.s32", "%s, %s", e.own, slot)
	for i, ok := range e.thereOf(left) {
		there := e.Make("p", "and.pred", "%s, %s", ok, e.thereX)
		for j := range 2 {
			e.bringBytes(to, i*threads*16+8*j, e.xFrom, 128*i+64*j, 8, there)
		}
	}
	e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, 4*fullDepth)
}

// bringWeights asks for codes, and scales or biases, of a stage.
func (e *fullEmitter) bringWeights(slot, left string) {
	halves := e.thereOf(left)
	to := e.r("add.s32", "%s, %s", e.own, slot)
	for i := range e.bits / 4 {
		there := halves[i]
		if e.bits == 4 && halves[0] != halves[1] { // each thread has 32 codes
			there = e.Make("p", "setp.gt.s32", "%s, %s", left, e.r("shl.b32", "%s, 5", e.r("and.b32", "%s, 1", e.thread)))
		}
		e.bringBytes(to, e.of.codesAt()+i*threads*16, e.codesFrom[0], 32*i, 16, there)
	}
	e.Line("add.s64 \t%s, %s, %d", e.codesFrom[0], e.codesFrom[0], fullDepth*e.bits/8)
	to = e.r("add.s32", "%s, %s", e.affineTo, slot)
	for i := range max(1, fullDepth/e.product.group) {
		e.bringBytes(to, 4*i, e.scaleFrom, 4*i, 4, halves[i])
	}
	if e.product.group <= fullDepth {
		e.Line("add.s64 \t%s, %s, %d", e.scaleFrom, e.scaleFrom, 4*fullDepth/e.product.group)
		return
	}
	// Two stages share a group, of which the second one lies in the second slot.
	e.Line("@%s add.s64 \t%s, %s, 4", e.Make("p", "setp.ne.u32", "%s, 0", slot), e.scaleFrom, e.scaleFrom)
}

// other is the slot that another one is not.
func (e *fullEmitter) other(slot string) string {
	return e.r("xor.b32", "%s, %d", slot, e.of.slotBytes())
}

// turnParts counts the place of a stage in parts on.
func (e *fullEmitter) turnParts(place string) {
	size := e.of.partsBytes(e.fit)
	e.Line("add.s32 \t%s, %s, %d", place, place, size)
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.ge.u32", "%s, %d", place, fullSlots*size), place)
}

// putX stores the thread's elements of a stage of x in parts.
func (e *fullEmitter) putX(slot string) {
	from, to := e.r("add.s32", "%s, %s", e.own, slot), e.r("add.s32", "%s, %s", e.partTo, e.put)
	var words [3][]string
	for i := range 2 {
		v := e.four(from, i*threads*16)
		for j := 0; j < len(v); j += 2 {
			var part [3]string
			for n := range part {
				part[n] = e.New("r")
				words[n] = append(words[n], part[n])
			}
			e.inParts(part, v[j], v[j+1])
		}
	}
	guard := ""
	if e.mine != "" {
		guard = "@" + e.mine + " "
	}
	for n, w := range words {
		e.Line("%sst.shared.v4.b32 \t[%s+%d], {%s}", guard, to, n*e.of.partBytes(e.fit), strings.Join(w, ", "))
	}
	e.turnParts(e.put)
}

const power16 = "0f47800000" // 2^16

// inParts makes the parts of two f32, side by side.
func (e *fullEmitter) inParts(to [3]string, first, second string) {
	a, b := e.r("mul.rn.f32", "%s, %s", first, power16), e.r("mul.rn.f32", "%s, %s", second, power16)
	for i, part := range to {
		e.Line("cvt.rn.bf16x2.f32 \t%s, %s, %s", part, b, a)
		if i+1 < len(to) {
			a = e.r("sub.rn.f32", "%s, %s", a, e.r("shl.b32", "%s, 16", part))
			b = e.r("sub.rn.f32", "%s, %s", b, e.r("and.b32", "%s, 0xFFFF0000", part))
		}
	}
}

// multiply adds up the products of all stages.
func (e *fullEmitter) multiply() {
	f := e.fit
	rest, end := e.r("mov.b32", "%d", f.Inner), e.r("mov.b32", "0")
	saved := e.r("add.s32", "%s, %d", e.r("mad.lo.s32", "%s, 4, %s", e.thread, e.base), e.of.savedAt(f))
	phases, stages := e.Label(), e.Label()
	e.bringX(e.slot, rest)
	e.Line("cp.async.commit_group")
	e.bringWeights(e.slot, rest)
	e.bringX(e.other(e.slot), e.r("sub.s32", "%s, %d", rest, fullDepth))
	e.Line("cp.async.commit_group")
	for _, v := range e.small {
		e.Line("mov.f32 \t%s, 0f00000000", v)
	}
	e.Line("cp.async.wait_group \t1")
	e.putX(e.slot)
	if f.Long {
		for i := range e.acc {
			e.Line("st.shared.b32 \t[%s+%d], 0", saved, 4*threads*i)
		}
		e.Mark(phases)
		e.Line("max.s32 \t%s, %s, 0", end, e.r("sub.s32", "%s, %d", rest, f.Part))
	}
	for _, v := range e.acc {
		e.Line("mov.f32 \t%s, 0f00000000", v)
	}
	e.Mark(stages)
	e.Line("cp.async.wait_group \t0")
	e.Line("fence.proxy.async.shared::cta")
	e.Line("bar.sync \t0")
	e.multiplyStage(rest)
	e.Line("sub.s32 \t%s, %s, %d", rest, rest, fullDepth)
	e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, %s", rest, end), stages)
	e.Line("wgmma.wait_group.sync.aligned \t0")
	if f.Long {
		for i, v := range e.acc {
			e.Line("add.rn.f32 \t%s, %s, %s", v, v, e.Make("f", "ld.shared.f32", "[%s+%d]", saved, 4*threads*i))
			e.Line("st.shared.f32 \t[%s+%d], %s", saved, 4*threads*i, v)
		}
		e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, 0", rest), phases)
	}
	e.Line("cp.async.wait_all")
	for i, v := range e.acc {
		e.Line("add.rn.f32 \t%s, %s, %s", v, v, e.small[i])
		e.Line("mul.rn.f32 \t%s, %s, 0f2F800000", v, v) // 2^−32
	}
}

// multiplyStage multiplies a stage, asks for what comes behind, and stores the next one in parts.
func (e *fullEmitter) multiplyStage(rest string) {
	lowest := e.r("add.s32", "%s, %s", e.descriptor, e.r("shr.u32", "%s, 4", e.slotUse))
	next := e.other(e.slot)
	weights := e.decoded()
	for i := range fullDepth / 16 {
		a := &e.parts[i%blockRing]
		e.Line("wgmma.wait_group.sync.aligned \t%d", blockRing-1)
		for r := range 2 {
			w := weights(i, r)
			for j := range 2 {
				e.inParts([3]string{a[0][2*j+r], a[1][2*j+r], a[2][2*j+r]}, w[2*j], w[2*j+1])
			}
		}
		e.Line("wgmma.fence.sync.aligned")
		for _, pair := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}} { // which part of weights, and which of x
			sums := e.small
			if pair == [2]int{} {
				sums = e.acc
			}
			d := e.Make("rd", "mov.b64", "{%s, %s}", e.r("add.s32", "%s, %d", lowest, 2*i+pair[1]*e.of.partBytes(e.fit)>>4), e.high)
			e.Line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16 \t{%s}, {%s}, %s, %s, 1, 1, 0",
				e.fit.Rows, strings.Join(sums, ", "), strings.Join(a[pair[0]][:], ", "), d, e.always)
		}
		e.Line("wgmma.commit_group.sync.aligned")
		switch i { // while tensor cores have something to do
		case 0:
			e.bringWeights(next, e.r("sub.s32", "%s, %d", rest, fullDepth))
			e.bringX(e.slot, e.r("sub.s32", "%s, %d", rest, 2*fullDepth))
			e.Line("cp.async.commit_group")
		case 1:
			e.putX(next)
		}
	}
	e.turnParts(e.slotUse)
	e.Line("mov.b32 \t%s, %s", e.slot, next)
}

// decoded begins a stage. It returns what makes the thread's four weights of one of its rows in a step, as the term does: a product, rounded, and a sum. A code becomes the last
// bits of 2^23, which times the scale is subtracted again, so that fma rounds the product once.
func (e *fullEmitter) decoded() func(step, row int) [4]string {
	codes, affine := e.r("add.s32", "%s, %s", e.codesAt, e.slot), e.r("add.s32", "%s, %s", e.affineFrom, e.slot)
	var scale, less, bias [2]string
	var words [2][2]string
	for r := range 2 {
		scale[r], bias[r] = e.r("ld.shared.b32", "[%s+%d]", affine, 8*16*r), e.r("ld.shared.b32", "[%s+%d]", affine, 8*16*r+8)
		less[r] = e.r("mul.rn.f32", "%s, 0fCB000000", scale[r]) // −2^23
	}
	var even, odd [2]string // codes of 4 bits, each in a byte
	return func(step, r int) (out [4]string) {
		if step*e.bits%16 == 0 {
			words[r] = [2]string{e.New("r"), e.New("r")}
			e.Line("ld.shared.v2.b32 \t{%s}, [%s+%d]", list(words[r][:]), codes, 8*32*r+step*e.bits/2)
		}
		if e.bits == 4 && step%2 == 0 {
			w := words[r][step/2]
			even[r], odd[r] = e.r("and.b32", "%s, 0x0F0F0F0F", w), e.r("and.b32", "%s, 0x0F0F0F0F", e.r("shr.u32", "%s, 4", w))
		}
		for i := range out {
			word, at := "", i
			switch {
			case e.bits == 8:
				word = words[r][step%2]
			case i%2 == 0:
				word, at = even[r], step%2*2+i/2
			default:
				word, at = odd[r], step%2*2+i/2
			}
			v := e.r("prmt.b32", "%s, %d, %d", word, power23, 0x7440+at)
			v = e.r("fma.rn.f32", "%s, %s, %s", v, scale[r], less[r])
			out[i] = e.r("add.rn.f32", "%s, %s", v, bias[r])
		}
		return out
	}
}

// again makes a sum again, of a row of x and a column of the block, one product after another.
func (e *fullEmitter) again(row, column string) string {
	w := e.matrix[0]
	if e.form == siluMul {
		w = e.operandOf(e.Make("p", "setp.ge.u32", "%s, %d", column, columns/2))
	}
	stored := e.row(column)
	x := e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.Make("rd", "mul.wide.u32", "%s, %d", row, 4*e.fit.Inner))
	codes := e.Make("rd", "add.s64", "%s, %s", w.codes, e.Make("rd", "mul.wide.u32", "%s, %d", stored, e.fit.Inner*e.bits/8))
	offset := e.Make("rd", "mul.wide.u32", "%s, %d", stored, 4*e.fit.Inner/e.product.group)
	scales, biases := e.Make("rd", "add.s64", "%s, %s", w.scales, offset), e.Make("rd", "add.s64", "%s, %s", w.biases, offset)
	total, left := e.r("mov.b32", "0"), e.r("mov.b32", "%d", e.fit.Inner/e.product.group)
	groups, bytes := e.Label(), e.Label()
	e.Mark(groups)
	scale, bias := e.r("ld.global.b32", "[%s]", scales), e.r("ld.global.b32", "[%s]", biases)
	sum, of := e.r("mov.b32", "0"), e.r("mov.b32", "%d", e.product.group*e.bits/8)
	e.Mark(bytes)
	v := e.New("r")
	e.Line("ld.global.u8 \t%s, [%s]", v, codes)
	for i := range 8 / e.bits {
		code := e.r("and.b32", "%s, %d", e.r("shr.u32", "%s, %d", v, e.bits*i), 1<<e.bits-1)
		weight := e.r("mul.rn.f32", "%s, %s", scale, e.r("cvt.rn.f32.s32", "%s", code))
		weight = e.r("add.rn.f32", "%s, %s", weight, bias)
		e.Line("fma.rn.f32 \t%s, %s, %s, %s", sum, e.r("ld.global.b32", "[%s+%d]", x, 4*i), weight, sum)
	}
	e.Line("add.s64 \t%s, %s, %d", x, x, 32/e.bits)
	e.Line("add.s64 \t%s, %s, 1", codes, codes)
	e.Line("sub.s32 \t%s, %s, 1", of, of)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.u32", "%s, 0", of), bytes)
	e.Line("add.rn.f32 \t%s, %s, %s", total, total, sum)
	e.Line("add.s64 \t%s, %s, 4", scales, scales)
	e.Line("add.s64 \t%s, %s, 4", biases, biases)
	e.Line("sub.s32 \t%s, %s, 1", left, left)
	more := e.Make("p", "setp.ne.u32", "%s, 0", left)
	more = e.Make("p", "and.pred", "%s, %s", more, e.Make("p", "setp.num.f32", "%s, %s", total, total))
	e.Line("@%s bra \t%s", more, groups)
	return total
}
