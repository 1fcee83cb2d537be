package ptxmatrix

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// fullProduct is a product of matrices of f32: x, scales, biases and results, and weights, which the term does not round.
//
// A weight is scale·code + bias. For each group a whole number n is chosen, the code nearest to −bias/scale. Then a weight is scale·(code − n) + rest, where the rest is the weight whose
// code is n, and is the same for the whole group. code − n is exact in bf16. An element of x is the exact sum of three bf16: itself rounded, what that leaves out rounded, and what is left then. So
// tensor cores need three products. The sum over a group is multiplied by the scale in f32, and the rest by the sum of the group's elements of x. Neither part is larger than twice the weight,
// so nothing is lost where scale·code and bias cancel, and a weight of 0 stays 0.
//
// The error has three sources, in units of 2^−24:
//   - Products of scale and code are not rounded, which the term does: a weight is off by one of 30 scales (of 510 with codes of 8 bits), so by at most 62 (1,022) of itself.
//   - Tensor cores lose up to 10.5 of a sum in each wgmma. Of 64 elements that is 84, since small parts come first, of a sum that is twice as large as the weights'.
//   - The sums of groups are added with two roundings each, of what is up to three times the sum of all magnitudes.
//
// All three together stay within the bound of a sum of 320 elements or more (1,536 with 8 bits), up to 65,536. Other products are left to clang's code.
//
// Parts are those of 2^16 times x, so that the third one of a small number is not below the smallest of bf16. Where a sum is not finite, since
// something is that is multiplied, or is too large for its parts, it is made again ([fullEmitter.again]).
//
// Codes are decoded as in [product], by the thread that multiplies them. Rows of x come to shared memory as f32 by asynchronous copies, to a place that is
// the thread's own, and a stage later it stores them in parts, so that these are made once for all columns of a block; scales and biases likewise.
type fullProduct struct{ *product }

var (
	namedFull       = regexp.MustCompile(`^affine_qmm_t_(?:(x2|x3|add|silu_mul)_)?float()_gs_(32|64|128)_b_(4|8)_alN_(?:true|false)(_batch_0)?$`)
	namedFullTurned = regexp.MustCompile(`^affine_qmm_t_x3_(rope)_float(_float16_t)?_gs_(32|64|128)_b_(4|8)$`)
)

func fullProductOf(k *air.Kernel, constants []ir.FunctionConstant) *fullProduct {
	m := namedFull.FindStringSubmatch(k.Name)
	if m != nil && (m[1] == "") != (m[5] != "") {
		return nil
	}
	if m == nil {
		m = namedFullTurned.FindStringSubmatch(k.Name)
	}
	if m == nil {
		return nil
	}
	p := &product{source: k, gpu: Hopper, elem: ir.F32}
	if p.form, p.sides = formOf(m[1]); p.form == rope {
		if m[2] != "" {
			p.cache = ir.F16
		}
		for _, c := range constants {
			p.pairs = p.pairs || c.Index == traditionalConstant && c.Bits != 0
		}
	}
	p.group, _ = strconv.Atoi(m[3])
	p.bits, _ = strconv.Atoi(m[4])
	return &fullProduct{p}
}

// fewest is how many elements the inner index has at least.
func (p *fullProduct) fewest() int64 {
	if p.bits == 8 {
		return 1536
	}
	return 320
}

const (
	// mostFull is how many elements the inner index has at most.
	mostFull = 1 << 16
	// fullUnit is how many elements of the inner index have one scale at least.
	fullUnit = 32
	// fullDepth is how many elements of the inner index a stage has: a row of a part is what a swizzle turns, 128 bytes.
	fullDepth = 64
	// fullSlots are those of stages in parts: for one that is multiplied, one that may be still, and one that is stored.
	fullSlots = 3
	// copySlots are those of what copies bring: x of the stage behind the next one, and codes of the next one, each in the place of what has been used.
	copySlots = 2
	// ownBytes are those of x that a thread brings of each stage.
	ownBytes = 32
)

// Fit implements [Kernel]. Clang's code has four blocks for one, or 16 of plain products, so that with few of them it has a larger part of the GPU; but where entries for few rows are
// asked for, the other choice is the one for many.
func (p *fullProduct) Fit(groups [3]uint64, given Given) (best Fit) {
	if k, known := given.Constant("K"); !known || k < p.fewest() || k > mostFull {
		return Fit{}
	}
	// Cycles of a stage. Of clang's code, of 64 by 64 results, when each multiprocessor has several blocks: one by itself takes no less.
	const other = 2700
	at, least := uint64(max(1, given.Multiprocessors)), uint64(0)
	for _, x := range []struct {
		rows   int
		cycles uint64
	}{{64, 2100}, {32, 1500}} {
		f, ok := p.fit(groups, given, x.rows)
		if !ok {
			return Fit{}
		}
		grid, _, _ := p.Launch(groups, f)
		blocks := grid[0] * grid[1]
		if x.rows == 64 && given.Rows == 0 && Fewest > 0 {
			alone := uint64(other)
			switch {
			case p.form == tile:
				alone = other / 4
			case p.form == rope:
				alone = other * f.Projections.tall() / 64
			}
			least = max(alone, 4*blocks*other/at)
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
	if !known || k < int64(p.group) || k%int64(p.group) != 0 {
		return Fit{}, false
	}
	f = Fit{Rows: rows, Aligned: given.Aligned, Inner: int(k)}
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

// partBytes are those of one part of a stage of x. A slot of parts has all three, and sums of two groups of each row behind them.
func (*fullProduct) partBytes(f Fit) int    { return 2 * fullDepth * f.Rows }
func (p *fullProduct) partsBytes(f Fit) int { return 3*p.partBytes(f) + alignment }

// sumsOf is how many numbers have the sums of a group, and for how many bytes each thread of four has sums side by side: those of two of each eight rows. What the four
// read lies in different banks.
func (*fullProduct) sumsOf(f Fit) int { return f.Rows + 16 }

// A slot of what copies bring has x, codes, and scales and biases. These are those of two groups of a row, of which groups of 64 and more need one.
func (*fullProduct) codesAt() int     { return threads * ownBytes }
func (p *fullProduct) affineAt() int  { return p.codesAt() + columns*fullDepth*p.bits/8 }
func (p *fullProduct) slotBytes() int { return p.affineAt() + columns*2*8 }

// copiesAt is where these slots lie, and groupsAt what is made of scales and biases, for two stages: 16 bytes for a group of a row.
func (p *fullProduct) copiesAt(f Fit) int { return fullSlots * p.partsBytes(f) }
func (p *fullProduct) groupsAt(f Fit) int { return p.copiesAt(f) + copySlots*p.slotBytes() }

const groupsBytes = columns * 2 * 16 // of a stage

func (p *fullProduct) memory(f Fit) int {
	return max(p.groupsAt(f)+2*groupsBytes, 4*f.sumPitch()*f.Rows, 4*threads*f.Rows/2) + alignment
}

// fullEmitter writes one entry.
type fullEmitter struct {
	*emitter
	of *fullProduct

	sums []string // of a group, in units of its scale

	// The thread's own place of x in the first slot, and where it stores that in parts, and sums of x; where scales or biases of its row come, and where it finds codes and
	// groups of the two rows that it multiplies, and sums of x.
	own, partTo, sumTo, affineTo, groupsFrom, sumsFrom string
	edge                                               string // of the elements of a stage: before which the thread has none of x
	thereX, second                                     string // predicates: its row of x is one; it brings biases, and not scales
	never                                              string // predicate
	slot                                               string // of what copies bring: of the stage that is multiplied, 0 or the bytes of one
	groups                                             string // and of groups
	put                                                string // where the next stage is stored in parts
	codes                                              [2][2][4]string
	last                                               group // the one whose products are under way
}

// group is what a group has of the thread's two rows, and where the sums of x lie that its rest multiplies.
type group struct {
	scale, rest [2]string
	sums        string
}

// Emit implements [Kernel].
func (p *fullProduct) Emit(launch nvptx.Launch, f Fit) []byte {
	e := &fullEmitter{of: p, emitter: &emitter{product: p.product, entry: entry{kernel: p.source, launch: launch, typ: ir.F32}, fit: f}}
	e.parameters()
	e.place()
	e.tile(0)
	for range f.Rows / 2 {
		e.acc, e.sums = append(e.acc, e.New("f")), append(e.sums, e.New("f"))
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
// The inner index may have any order that is the same in both factors. Of a unit of 32 elements, two steps of 16, thread m of four has codes 8·m to 8·m + 7. In
// parts 16 bytes of a row of x, of which a step has two, have two elements for each of the four.
func (e *fullEmitter) places() {
	p, f := e.of, e.fit
	row, piece := e.r("shr.u32", "%s, 3", e.thread), e.r("and.b32", "%s, 7", e.thread)
	unit := e.r("shr.u32", "%s, 2", piece)
	m := e.r("add.s32", "%s, %s", e.m0, row)
	e.thereX = e.Make("p", "setp.lt.s32", "%s, %s", m, e.M)
	if f.Rows < threads/8 {
		e.mine = e.Make("p", "setp.lt.u32", "%s, %d", row, f.Rows)
		e.thereX = e.Make("p", "and.pred", "%s, %s", e.thereX, e.mine)
	}
	e.edge = e.r("shl.b32", "%s, 5", unit)
	e.xFrom = e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.Make("rd", "mul.wide.u32", "%s, %d", m, 4*f.Inner))
	e.xFrom = e.plus(e.xFrom, e.r("mad.lo.s32", "%s, 4, %s", e.edge, e.r("shl.b32", "%s, 3", e.r("and.b32", "%s, 3", piece))))
	e.own = e.r("mad.lo.s32", "%s, 16, %s", e.thread, e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)))
	swizzled := e.r("and.b32", "%s, 7", e.r("xor.b32", "%s, %s", piece, row))
	e.partTo = e.r("mad.lo.s32", "%s, 128, %s", row, e.r("mad.lo.s32", "%s, 16, %s", swizzled, e.base))
	sums := e.r("add.s32", "%s, %d", e.base, 3*p.partBytes(f))
	e.sumTo = e.r("mad.lo.s32", "%s, %d, %s", unit, 4*p.sumsOf(f), sums)
	e.sumTo = e.r("mad.lo.s32", "%s, 8, %s", e.r("shr.u32", "%s, 3", row), e.sumTo)
	e.sumTo = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 1", e.r("and.b32", "%s, 7", row)), p.sumsOf(f), e.sumTo)
	e.sumTo = e.r("mad.lo.s32", "%s, 4, %s", e.r("and.b32", "%s, 1", row), e.sumTo)
	e.sumsFrom = e.r("mad.lo.s32", "%s, %d, %s", e.member, p.sumsOf(f), sums)

	// Each row of weights is brought by two threads: every second 16 bytes of its codes, and its scales or its biases.
	of, side := e.r("shr.u32", "%s, 1", e.thread), e.r("and.b32", "%s, 1", e.thread)
	e.second = e.Make("p", "setp.ne.u32", "%s, 0", side)
	w := e.matrix[0]
	if e.form == siluMul {
		upper := e.Make("p", "setp.ge.u32", "%s, %d", of, columns/2)
		w = e.operandOf(upper)
	}
	stored := e.row(of)
	e.codesFrom = []string{e.Make("rd", "add.s64", "%s, %s", w.codes, e.Make("rd", "mul.wide.u32", "%s, %d", stored, f.Inner*e.bits/8))}
	e.codesFrom[0] = e.plus(e.codesFrom[0], e.r("shl.b32", "%s, 4", side))
	e.scaleFrom = e.Make("rd", "add.s64", "%s, %s", e.either(e.second, "rd", w.biases, w.scales), e.Make("rd", "mul.wide.u32", "%s, %d", stored, 4*f.Inner/e.product.group))
	e.affineTo = e.r("mad.lo.s32", "%s, 8, %s", e.thread, e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)+p.affineAt()))
	e.scaleTo = e.r("mad.lo.s32", "%s, 16, %s", e.thread, e.r("add.s32", "%s, %d", e.base, p.groupsAt(f)))

	first := e.column()
	e.codesAt = e.r("mad.lo.s32", "%s, %d, %s", e.member, e.bits, e.r("add.s32", "%s, %d", e.base, p.copiesAt(f)+p.codesAt()))
	e.codesAt = e.r("mad.lo.s32", "%s, 32, %s", first, e.codesAt)
	e.groupsFrom = e.r("mad.lo.s32", "%s, 32, %s", first, e.r("add.s32", "%s, %d", e.base, p.groupsAt(f)))

	e.descriptor = e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 4", e.base), 1<<16)
	e.never = e.Make("p", "setp.ne.u32", "%s, %s", e.K, e.K)
	e.slot, e.groups, e.slotUse, e.put = e.r("mov.b32", "0"), e.r("mov.b32", "0"), e.r("mov.b32", "0"), e.r("mov.b32", "0")
	for i := range e.codes {
		for j := range e.codes[i] {
			for k := range e.codes[i][j] {
				e.codes[i][j][k] = e.r("mov.b32", "0")
			}
		}
	}
}

// operandOf is the second matrix where a predicate holds, else the first.
func (e *emitter) operandOf(second string) operand {
	a, b := e.matrix[0], e.matrix[1]
	return operand{e.either(second, "rd", b.codes, a.codes), e.either(second, "rd", b.scales, a.scales), e.either(second, "rd", b.biases, a.biases)}
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

// more is a predicate: a stage of which so many elements are left has some from one on.
func (e *fullEmitter) more(left, from string) string {
	return e.Make("p", "setp.gt.s32", "%s, %s", left, from)
}

// bringX asks for the thread's elements of x of a stage, and scales or biases. Two stages share a group of 128, of which the second one lies in the second slot.
func (e *fullEmitter) bringX(slot, left string) {
	to := e.r("add.s32", "%s, %s", e.own, slot)
	there := e.Make("p", "and.pred", "%s, %s", e.more(left, e.edge), e.thereX)
	for i := range 4 {
		e.bringBytes(to, i/2*threads*16+i%2*8, e.xFrom, 32*i, 8, there)
	}
	e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, 4*fullDepth)
	to = e.r("add.s32", "%s, %s", e.affineTo, slot)
	for i := range e.of.groupsOf() {
		e.bringBytes(to, 4*i, e.scaleFrom, 4*i, 4, e.more(left, strconv.Itoa(fullUnit*i)))
	}
	where, by := "", 4*e.of.groupsOf()
	if e.product.group > fullDepth {
		where = "@" + e.Make("p", "setp.ne.u32", "%s, 0", slot) + " "
	}
	e.Line("%sadd.s64 \t%s, %s, %d", where, e.scaleFrom, e.scaleFrom, by)
}

// groupsOf is how many groups a stage has.
func (p *fullProduct) groupsOf() int { return max(1, fullDepth/p.group) }

// bringCodes asks for the codes of a stage.
func (e *fullEmitter) bringCodes(slot, left string) {
	to := e.r("add.s32", "%s, %s", e.own, slot)
	for i := range e.bits / 4 {
		from := strconv.Itoa(fullUnit * i)
		if e.bits == 4 { // each thread has 32 codes
			from = e.r("shl.b32", "%s, 5", e.r("and.b32", "%s, 1", e.thread))
		}
		e.bringBytes(to, e.of.codesAt()+i*threads*16, e.codesFrom[0], 32*i, 16, e.more(left, from))
	}
	e.Line("add.s64 \t%s, %s, %d", e.codesFrom[0], e.codesFrom[0], fullDepth*e.bits/8)
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

// putX stores the thread's elements of x of a stage in parts, and sums of groups.
func (e *fullEmitter) putX(slot string) {
	from, to := e.r("add.s32", "%s, %s", e.own, slot), e.r("add.s32", "%s, %s", e.partTo, e.put)
	var words [3][]string
	var sums []string
	for i := range 2 {
		v := e.four(from, i*threads*16)
		for j := 0; j < len(v); j += 2 {
			a, b := e.r("mul.rn.f32", "%s, %s", v[j], power16), e.r("mul.rn.f32", "%s, %s", v[j+1], power16)
			sums = append(sums, e.r("add.rn.f32", "%s, %s", a, b))
			for n := range words {
				part := e.r("cvt.rn.bf16x2.f32", "%s, %s", b, a)
				words[n] = append(words[n], part)
				if n+1 < len(words) {
					a = e.r("sub.rn.f32", "%s, %s", a, e.r("shl.b32", "%s, 16", part))
					b = e.r("sub.rn.f32", "%s, %s", b, e.r("and.b32", "%s, 0xFFFF0000", part))
				}
			}
		}
	}
	sum := e.r("add.rn.f32", "%s, %s", e.r("add.rn.f32", "%s, %s", sums[0], sums[1]), e.r("add.rn.f32", "%s, %s", sums[2], sums[3]))
	for by := 1; by < 8/e.of.groupsOf(); by *= 2 {
		sum = e.r("add.rn.f32", "%s, %s", sum, e.r("shfl.sync.bfly.b32", "%s, %d, 31, -1", sum, by))
	}
	guard := ""
	if e.mine != "" {
		guard = "@" + e.mine + " "
	}
	for n, w := range words {
		e.Line("%sst.shared.v4.b32 \t[%s+%d], {%s}", guard, to, n*e.of.partBytes(e.fit), strings.Join(w, ", "))
	}
	first := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", e.thread, 8/e.of.groupsOf()-1))
	if e.mine != "" {
		first = e.Make("p", "and.pred", "%s, %s", first, e.mine)
	}
	e.Line("@%s st.shared.b32 \t[%s], %s", first, e.r("add.s32", "%s, %s", e.sumTo, e.put), sum)
	e.turnParts(e.put)
}

const power16 = "0f47800000" // 2^16

// putGroups makes of the scale and the bias of a group of the next stage, one for each thread of the two of a row, or the same one, what is needed of it: the scale, the rest, and
// what is subtracted of codes.
func (e *fullEmitter) putGroups(slot string) {
	from := e.r("add.s32", "%s, %s", e.affineTo, slot)
	own := e.r("ld.shared.b32", "[%s]", from)
	sent := own
	if e.of.groupsOf() == 2 { // the first thread's is the first group
		another := e.r("ld.shared.b32", "[%s+4]", from)
		own, sent = e.either(e.second, "r", another, own), e.either(e.second, "r", own, another)
	}
	got := e.r("shfl.sync.bfly.b32", "%s, 1, 31, -1", sent)
	scale, bias := e.either(e.second, "r", got, own), e.either(e.second, "r", own, got)

	// The quotient of both, times a power of two that has the reciprocal of the scale in the range of numbers.
	const up, down = "0f5F800000", "0f1F800000" // 2^64, 2^−64
	large := e.Make("p", "setp.ge.f32", "%s, 0f3F800000", e.r("and.b32", "%s, 0x7FFFFFFF", scale))
	by := e.r("selp.b32", "%s, %s, %s", e.r("mov.b32", down), e.r("mov.b32", up), large)
	n := e.r("mul.rn.f32", "%s, %s", e.r("neg.f32", "%s", e.r("mul.rn.f32", "%s, %s", bias, by)), e.reciprocal(e.r("mul.rn.f32", "%s, %s", scale, by)))
	n = e.r("min.f32", "%s, %s", e.r("max.f32", "%s, 0f00000000", n), ptxwrite.Number(float32(int(1)<<e.bits-1)))
	const whole = "0f4B400000" // 1.5 · 2^23: what is added to it is rounded to whole numbers, its last bits
	placed := e.r("add.rn.f32", "%s, %s", n, whole)
	n = e.r("sub.rn.f32", "%s, %s", placed, whole)
	rest := e.r("add.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", scale, n), bias)
	less := ""
	if e.bits == 4 { // 128 + n
		less = e.r("prmt.b32", "%s, 0, 0x1010", e.r("lop3.b32", "%s, 15, 0x4300, 0xEA", placed)) // (a & b) | c
	} else { // n − 128
		n = e.r("sub.rn.f32", "%s, 0f43000000", n)
		less = e.r("cvt.rn.bf16x2.f32", "%s, %s", n, n)
	}
	e.Line("st.shared.v4.b32 \t[%s], {%s, %s, %s, %s}", e.r("add.s32", "%s, %s", e.scaleTo, e.r("xor.b32", "%s, %d", e.groups, groupsBytes)), scale, rest, less, less)
}

// multiply adds up the products of all stages.
func (e *fullEmitter) multiply() {
	f, p := e.fit, e.of
	rest := e.r("mov.b32", "%d", f.Inner)
	next := e.other(e.slot)
	stages := e.Label()
	e.bringX(e.slot, rest)
	e.Line("cp.async.commit_group")
	e.bringCodes(e.slot, rest)
	e.bringX(next, e.r("sub.s32", "%s, %d", rest, fullDepth))
	e.Line("cp.async.commit_group")
	for i := range e.acc {
		e.Line("mov.f32 \t%s, 0f00000000", e.acc[i])
		e.Line("mov.f32 \t%s, 0f00000000", e.sums[i])
	}
	// Before the first group stands one that is nothing times nothing.
	zero := func() string { return e.r("mov.b32", "0") }
	e.last = group{[2]string{zero(), zero()}, [2]string{zero(), zero()}, e.r("add.s32", "%s, %d", e.sumsFrom, (fullSlots-1)*p.partsBytes(f))}
	none := e.Make("p", "setp.lt.u32", "%s, %d", e.thread, p.sumsOf(f))
	e.Line("@%s st.shared.b32 \t[%s+%d], 0", none, e.r("mad.lo.s32", "%s, 4, %s", e.thread, e.base), (fullSlots-1)*p.partsBytes(f)+3*p.partBytes(f))
	e.Line("cp.async.wait_group \t1")
	e.putX(e.slot)
	e.groups = e.r("mov.b32", "%d", groupsBytes)
	e.putGroups(e.slot)
	e.Line("mov.b32 \t%s, 0", e.groups)
	e.Mark(stages)
	e.Line("cp.async.wait_group \t0")
	e.Line("fence.proxy.async.shared::cta")
	e.Line("bar.sync \t0")
	e.multiplyStage(rest)
	e.Line("sub.s32 \t%s, %s, %d", rest, rest, fullDepth)
	e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, 0", rest), stages)
	e.Line("wgmma.wait_group.sync.aligned \t0")
	e.addUp(e.last)
	e.Line("cp.async.wait_all")
	for _, v := range e.acc {
		e.Line("mul.rn.f32 \t%s, %s, 0f37800000", v, v) // 2^−16
	}
}

// addUp adds the sums of a group, and its rest times sums of x.
func (e *fullEmitter) addUp(g group) {
	for i := 0; i < len(e.acc); i += 8 {
		x := e.four(g.sums, 2*i)
		for j, v := range e.acc[i : i+8] {
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", v, e.sums[i+j], g.scale[j/2%2], v)
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", v, x[j/4*2+j%2], g.rest[j/2%2], v)
		}
	}
}

// multiplyStage multiplies a stage, asks for what comes behind, and stores the next one in parts. Sums of a group are added up when the next one's codes are decoded.
func (e *fullEmitter) multiplyStage(rest string) {
	next := e.other(e.slot)
	lowest := e.r("add.s32", "%s, %s", e.descriptor, e.r("shr.u32", "%s, 4", e.slotUse))
	codes, groups, sums := e.r("add.s32", "%s, %s", e.codesAt, e.slot), e.r("add.s32", "%s, %s", e.groupsFrom, e.groups), e.r("add.s32", "%s, %s", e.sumsFrom, e.slotUse)
	last := e.last
	var less [2]string
	units := fullDepth / fullUnit
	for unit := range units {
		begins := unit == 0 || e.of.groupsOf() > 1
		var g group
		if begins {
			for r := range less {
				w := e.four(groups, 16*unit+8*32*r)
				g.scale[r], g.rest[r], less[r] = w[0], w[1], w[2]
			}
			if g.sums = sums; unit > 0 {
				g.sums = e.r("add.s32", "%s, %d", sums, 4*e.of.sumsOf(e.fit)*unit)
			}
		}
		if unit == 0 && e.of.groupsOf() == 1 { // two units are under way
			e.Line("wgmma.wait_group.sync.aligned \t1")
		}
		a := &e.codes[unit]
		for r := range less {
			e.decode(a, r, e.r("add.s32", "%s, %d", codes, 8*32*r), unit, less[r])
		}
		if begins {
			e.Line("wgmma.wait_group.sync.aligned \t0")
			e.addUp(last)
			last = g
		}
		e.Line("wgmma.fence.sync.aligned")
		also := e.always
		if begins {
			also = e.never
		}
		for part := 2; part >= 0; part-- { // the smallest first, so that less of them is lost
			for step := range a {
				d := e.Make("rd", "mov.b64", "{%s, %s}", e.r("add.s32", "%s, %d", lowest, 2*(len(a)*unit+step)+part*e.of.partBytes(e.fit)>>4), e.high)
				e.Line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.bf16.bf16 \t{%s}, {%s}, %s, %s, 1, 1, 0",
					e.fit.Rows, strings.Join(e.sums, ", "), strings.Join(a[step][:], ", "), d, also)
				also = e.always
			}
		}
		e.Line("wgmma.commit_group.sync.aligned")
		if unit == 0 { // while tensor cores have something to do
			e.bringCodes(next, e.r("sub.s32", "%s, %d", rest, fullDepth))
			e.putX(next)
			e.bringX(e.slot, e.r("sub.s32", "%s, %d", rest, 2*fullDepth))
			e.Line("cp.async.commit_group")
			continue
		}
		e.putGroups(next)
	}
	for i := range less {
		e.Line("mov.b32 \t%s, %s", e.last.scale[i], last.scale[i])
		e.Line("mov.b32 \t%s, %s", e.last.rest[i], last.rest[i])
	}
	e.Line("mov.b32 \t%s, %s", e.last.sums, last.sums)
	e.turnParts(e.slotUse)
	e.Line("mov.b32 \t%s, %s", e.slot, next)
	e.Line("xor.b32 \t%s, %s, %d", e.groups, e.groups, groupsBytes)
}

// decode makes the left factors of a unit of one of the thread's rows, codes less a whole number.
func (e *fullEmitter) decode(a *[2][4]string, r int, codes string, unit int, less string) {
	var w [2]string // codes of 4 bits, and these shifted by 4; or 4 codes of 8 bits each
	if e.bits == 4 {
		w[0] = e.r("ld.shared.b32", "[%s+%d]", codes, 16*unit)
		w[1] = e.r("shr.u32", "%s, 4", w[0])
	} else {
		w = [2]string{e.New("r"), e.New("r")}
		e.Line("ld.shared.v2.b32 \t{%s}, [%s+%d]", list(w[:]), codes, threads*16*unit)
	}
	for step := range a {
		for half := range 2 {
			to, code := a[step][2*half+r], ""
			if e.bits == 4 { // both codes of a byte, as the last bits of 128
				code = e.r("prmt.b32", "%s, %s, %d", w[0], w[1], 0x4400+(2*step+half)*0x1111)
				code = e.r("lop3.b32", "%s, 0x000F000F, 0x43004300, 0xEA", code) // (a & b) | c
			} else { // 128 and the lower bits, less 128 or, without the upper bit, 256
				v := e.r("prmt.b32", "%s, 0, %d", w[step], 0x4140+half*0x0202)
				lower := e.r("lop3.b32", "%s, 0x007F007F, 0x43004300, 0xEA", v)
				code = e.r("sub.rn.bf16x2", "%s, %s", lower, e.r("lop3.b32", "%s, 0x00800080, 0x43804380, 0x6A", v)) // (a & b) ^ c
			}
			e.Line("sub.rn.bf16x2 \t%s, %s, %s", to, code, less)
		}
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
