package ptxmatrix

import (
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// blockProduct is a product of many rows with a matrix in GGML's blocks. Blocks, threads, rows of x, the form of factors and results are those of
// [product]; codes come as they lie in memory, 256 weights of a row at a time, a chunk, which is two stages of x.
//
// A weight is an f32 in the term, and is not rounded. It is multiplied as the sum of two numbers of 16 bits, each of which has a wgmma: the weight
// rounded, and what that leaves out, rounded. Of f16 both together have 22 bits, so that no weight is off by more than 2^−22 of it: weights are multiples of
// 2^−24, which is as small as f16 gets, so that nothing is lost below. Of bf16 they have 16 bits, and a weight is off by 2^−17 of it at most.
//
// A sum in which one of both is not finite, or something that it is multiplied with, is not finite either, though it may be NaN where the term has an
// infinity, or where a weight alone is too large for f16. Such sums are made again, by the thread that has them, one product after another as the term
// says (again).
//
// On GPUs whose tensor cores take products of one warp only blocks are half as wide, and each of eight warps multiplies by itself.
type blockProduct struct {
	*product
	format *blockFormat
}

// alone reports whether warps multiply by themselves.
func (p *blockProduct) alone() bool { return !p.gpu.warpgroups() }

var namedBlockProduct = regexp.MustCompile(`^ggml_mul_mm_(q4_K|q6_K|q8_0|q4_0)_(f16|bf16)$`)

func blockProductOf(k *air.Kernel, gpu GPU) *blockProduct {
	m := namedBlockProduct.FindStringSubmatch(k.Name)
	if m == nil {
		return nil
	}
	p := &product{source: k, gpu: gpu, form: tile, elem: ir.F16, sides: []string{""}}
	if m[2] == "bf16" {
		p.elem = ir.BF16
	}
	return &blockProduct{p, blockFormats[m[1]]}
}

// codeSlots are those of chunks: one that is multiplied, and one on its way.
const codeSlots = 2

// phases is how many phases a block has that adds up so many elements of an inner index: tensor cores add up the products of each, and the sums of phases are added, and those of the blocks
// that share the index. What tensor cores lose of a phase, all of whose magnitudes may be there from its start, stays within the bound of the whole sum. It is 0 if no phase is short enough.
//
// All here is in units of 2^−24 of all magnitudes. Tensor cores add 16 products to what is there. Each of these 17 numbers but the largest loses up to 2^−25 of the largest one, half a unit: that is 8 units.
// The result is cut off too, and loses up to 1.5. If its exponent is above that of all 17, it loses two, but the 17 lose half as much of it, 4. On 8.0 eight products lose 8, and the result two.
//
// Of whole numbers and rests either may be twice as large as their weight. But the rests of a chunk are added when its whole numbers are, and then both have become weights again: what is added is larger
// than all weights while the chunk is that has them, and no longer. A phase loses no more than if it had one chunk more.
func (p *blockProduct) phases(part, inner int) int {
	// lost is what tensor cores lose in a chunk, off what is off but by them: here weights, as the sum of two numbers. A phase loses as if it had so many chunks more.
	lost, off, more := 32*9.5, 5, 0
	if p.alone() {
		lost = 32 * 20
	}
	if p.elem == ir.BF16 {
		off = 128
	}
	if p.whole() {
		// A chunk has 18 steps, two of them of rests, and to bring sums to another unit costs four. Off are rests by 128, as the sum of two numbers of bf16, by 4 as they are rounded in
		// units, and by one as the weight is in the term; sums of x by 128 likewise, and by 5 as they are added up; and the result by one: 267.
		lost, off, more = 18*9.5+4, 267, 1
		if p.alone() {
			lost = 18*20 + 4
		}
	}
	chunks := part / chunk
	for n := 1; n <= chunks; n++ {
		all := float64((chunks+n-1)/n+more)*lost + float64(off+n+inner/part)
		if all*1.005 <= bound(inner) { // parts of bf16 may be 2^−8 larger, and what is lost is lost of sums that are off already
			return n
		}
	}
	return 0
}

// phase is how many elements of the inner index each phase has, but the last one.
func (p *blockProduct) phase(f Fit) int {
	chunks, n := f.Part/chunk, p.phases(f.Part, f.Inner)
	return (chunks + n - 1) / n * chunk
}

// Fit implements [Kernel].
func (p *blockProduct) Fit(groups [3]uint64, given Given) (best Fit) {
	least := uint64(0)
	for _, rows := range []int{128, 64, 32} {
		for splits := 1; splits <= mostSplits; splits *= 2 {
			f, ok := p.fit(given, rows, splits)
			if !ok {
				continue
			}
			grid, _, _ := p.Launch(groups, f)
			if cost := f.cost(grid, given.Multiprocessors, p.cycles(f)); least == 0 || cost < least {
				least, best = cost, f
			}
		}
	}
	return best
}

// fit is how blocks of so many rows are launched, of which so many share the inner index. It reports whether they can.
func (p *blockProduct) fit(given Given, rows, splits int) (f Fit, ok bool) {
	k, known := given.Constant("K")
	if !known || k < chunk || k%chunk != 0 || k > 1<<24 {
		return Fit{}, false
	}
	chunks := int(k) / chunk
	part := (chunks + splits - 1) / splits
	if splits > 1 && (p.alone() || part*chunk < FewestStages*depth || (splits-1)*part >= chunks) {
		return Fit{}, false
	}
	if rows > 64 && (p.alone() || !given.Aligned) { // what lies anywhere comes through registers, of which there are too few
		return Fit{}, false
	}
	phases := p.phases(part*chunk, int(k))
	f = Fit{Rows: rows, Aligned: given.Aligned, Long: phases > 1, Inner: int(k), Depth: depth, Splits: splits, Part: part * chunk}
	if p.alone() {
		f.Columns = columns / 2
	}
	return f, phases > 0 && p.memory(f) <= p.gpu.Memory-reserved
}

// cycles is about how many a block takes for its part of the inner index.
func (p *blockProduct) cycles(f Fit) uint64 {
	// Of a chunk: of tensor cores, or of decoding.
	each := map[int]uint64{128: 10300, 64: 8000, 32: 7100}
	if p.whole() {
		each = map[int]uint64{128: 6600, 64: 4700, 32: 4000}
	}
	if p.alone() { // a guess
		each = map[int]uint64{64: 4600, 32: 2700}
		if p.whole() {
			each = map[int]uint64{64: 2600, 32: 1900}
		}
	}
	cycles := uint64(f.Part/chunk) * each[f.Rows]
	if f.Long && f.Rows > 64 { // a thread has no registers for the sums of phases before: they leave, and come back
		cycles += uint64(p.phases(f.Part, f.Inner)-1) * 50 * uint64(f.Rows)
	}
	return cycles
}

// tiles is how many rows a grid of tiles of 32 by 32 results makes results for, and how many blocks lie side by side.
func (*blockProduct) tiles(groups [3]uint64, f Fit) (rows, wide uint64) {
	n := uint64(f.columns() / 32)
	return 32 * groups[1], (groups[0] + n - 1) / n
}

// Rows implements [Kernel].
func (*blockProduct) Rows() (argument string, dimension int) { return "", -1 }

// Wide implements [Kernel].
func (*blockProduct) Wide(name string) bool { return name == "x" || name == "w" }

// Launch implements [Kernel].
func (p *blockProduct) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threadsOf, shared uint32) {
	rows, wide := p.tiles(groups, f)
	return [3]uint64{(rows + uint64(f.Rows) - 1) / uint64(f.Rows) * uint64(f.Splits), wide, 1}, uint32(f.blockThreads()), uint32(p.memory(f))
}

// xBytes are those of x of a stage.
func (*blockProduct) xBytes(f Fit) int { return 2 * depth * f.Rows }

// xSlots is how many stages of x lie in shared memory: one that is multiplied, one that may be still, and one or two on their way. With more, copies of
// chunks, which come with those of x, would be waited for too late.
func (p *blockProduct) xSlots(f Fit) int {
	if p.alone() { // none may be still
		return 3
	}
	return max(3, min(4, (sharedMemory-p.beside(f))/p.xBytes(f)))
}

// ahead is how many stages of x are on their way.
func (p *blockProduct) ahead(f Fit) int {
	if p.alone() {
		return p.xSlots(f) - 1
	}
	return p.xSlots(f) - 2
}

// beside is what a block has in shared memory beside x: chunks, sums of x, and what is lost to alignment.
func (p *blockProduct) beside(f Fit) int {
	return codeSlots*f.columns()*p.format.pitch + p.sumBytes(f) + alignment
}

func (p *blockProduct) memory(f Fit) int {
	return max(p.xSlots(f)*p.xBytes(f)+p.beside(f), max(2*f.pitch()*f.Rows, f.sumsBytes())+alignment)
}

// blockEmitter writes one entry.
type blockEmitter struct {
	*emitter
	of     *blockProduct
	format *blockFormat

	// Of the row whose codes the thread brings, every second piece: where the next chunk begins, and in shared memory the first piece of the thread
	// in the slot. Where a chunk begins in 16 bytes, of formats whose blocks begin at any even place. Predicates: there is such a chunk; and the row has
	// a last piece, which is the thread's.
	from, to, shift string
	some, last      string
	slotOfCodes     string // where the next chunk comes

	// Where the thread finds its two rows' codes, how far these begin in their first 16 bytes, and which chunk is used.
	codes  [2]string
	shifts [2]string
	use    string
	parts  [blockRing][2][4]string // left factors: of weights rounded, and of the rest
	pair   string                  // twice the thread's number in its four: the first of its bytes in 8
	lane0  string                  // where warps multiply by themselves: where in an eight of rows of x, and 16 bytes of them, the lane finds its part of a matrix, from the first place of shared memory on
}

// blockRing is how many pairs of left factors a thread has.
const blockRing = 2

// Emit implements [Kernel].
func (p *blockProduct) Emit(launch nvptx.Launch, f Fit) []byte {
	e := &blockEmitter{of: p, format: p.format, emitter: &emitter{product: p.product, entry: entry{kernel: p.source, launch: launch, typ: p.elem}, fit: f}}
	e.resident = 1
	if p.alone() {
		e.target = elder(launch)
	}
	if f.Splits > 1 {
		e.cluster = f.Splits
	}
	e.parameters()
	e.place()
	e.tile(0)
	for range f.Rows / 2 {
		e.acc = append(e.acc, e.New("f"))
	}
	e.loadsOfBlocks()
	if p.whole() {
		(&wholeEmitter{blockEmitter: e}).multiply()
	} else {
		e.multiply()
	}
	e.Line("bar.sync \t0") // shared memory is free for sums that are made again
	e.remade(e.again)
	e.results()
	return e.text(f.blockThreads())
}

func (e *blockEmitter) rowBytes() int { return e.fit.Inner / chunk * e.format.bytes }

// loadsOfBlocks finds what the thread brings, and where it finds what it multiplies.
func (e *blockEmitter) loadsOfBlocks() {
	b := e.format
	row, side := e.r("shr.u32", "%s, 1", e.thread), e.r("and.b32", "%s, 1", e.thread)
	stored := e.row(row)
	e.from = e.Make("rd", "add.s64", "%s, %s", e.args["w"], e.Make("rd", "mul.wide.u32", "%s, %d", stored, e.rowBytes()))
	skipped := "" // bytes of a row that are those of other blocks
	if e.rank != "" {
		skipped = e.r("mul.lo.s32", "%s, %d", e.rank, e.fit.Part/chunk*b.bytes)
		e.from = e.plus(e.from, skipped)
	}
	e.from = e.plus(e.from, e.r("shl.b32", "%s, 4", side))
	place := e.r("add.s32", "%s, %d", e.base, e.of.xSlots(e.fit)*e.of.xBytes(e.fit))
	e.to = e.r("mad.lo.s32", "%s, %d, %s", row, b.pitch, e.r("mad.lo.s32", "%s, 16, %s", side, place))
	e.some, e.last = e.New("p"), e.New("p")
	e.slotOfCodes = e.r("mov.b32", "0")
	shiftOf := func(row string) string {
		begin := e.r("mul.lo.s32", "%s, %d", row, e.rowBytes()%16)
		if skipped != "" {
			begin = e.r("add.s32", "%s, %s", begin, skipped)
		}
		return e.r("and.b32", "%s, 15", begin)
	}
	if b.even {
		e.shift = shiftOf(stored)
	}
	first := e.r("mad.lo.s32", "%s, 16, %s", e.warp, e.quad)
	first = e.r("mad.lo.s32", "%s, 64, %s", e.group, first)
	for i := range e.codes {
		at := first
		if i > 0 {
			at = e.r("add.s32", "%s, 8", first)
		}
		e.codes[i] = e.r("mad.lo.s32", "%s, %d, %s", at, b.pitch, place)
		if b.even {
			e.shifts[i] = shiftOf(e.row(at))
		}
	}
	e.use = e.r("mov.b32", "0")

	xRow, unit := e.xPlace()
	m := e.r("add.s32", "%s, %s", e.m0, xRow)
	pitch := e.r("mov.b32", "%d", 2*e.fit.Inner)
	offset := e.r("shl.b32", "%s, 4", unit)
	if e.rank != "" {
		offset = e.r("mad.lo.s32", "%s, %d, %s", e.rank, 2*e.fit.Part, offset)
	}
	e.xFrom = e.plus(e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(m, pitch)), offset)
	swizzled := e.r("and.b32", "%s, 7", e.r("xor.b32", "%s, %s", unit, xRow))
	to := e.r("add.s32", "%s, %s", e.r("shl.b32", "%s, 7", xRow), e.r("shl.b32", "%s, 4", swizzled))
	to = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 3", unit), 128*e.fit.Rows, to)
	e.xTo = e.r("add.s32", "%s, %s", to, e.base)
	e.rows = nil
	for j := 0; j < e.fit.Rows; j += e.xApart() {
		e.rows = append(e.rows, e.Make("p", "setp.lt.s32", "%s, %s", e.r("add.s32", "%s, %d", m, j), e.M))
	}
	e.left = e.r("mov.b32", "%s", e.all)
	e.slotBring, e.slotUse = e.r("mov.b32", "0"), e.r("mov.b32", "0")
	e.lane0 = e.lanes()
	e.descriptor = e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 4", e.base), 1<<16)
	for i := range e.parts {
		for j := range e.parts[i] {
			for k := range e.parts[i][j] {
				e.parts[i][j][k] = e.r("mov.b32", "0")
			}
		}
	}
	e.pair = e.r("shl.b32", "%s, 1", e.member)
}

// bringX asks for a stage of x. Behind the last one it brings zeros.
func (e *blockEmitter) bringX() {
	to := e.r("add.s32", "%s, %s", e.xTo, e.slotBring)
	there := e.Make("p", "setp.gt.s32", "%s, 0", e.left)
	for i, ok := range e.rows {
		from := e.xFrom
		if i > 0 {
			from = e.Make("rd", "add.s64", "%s, %d", from, int64(i)*int64(2*e.xApart())*int64(e.fit.Inner))
		}
		some := e.Make("p", "and.pred", "%s, %s", there, ok)
		if e.fit.Aligned {
			e.Line("cp.async.cg.shared.global \t[%s+%d], [%s], 16, %s", to, i*e.xApart()*128, from, e.either(some, "r", "16", "0"))
		} else {
			e.single(to, i*e.xApart()*128, from, some)
		}
	}
	e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, 2*depth)
	e.Line("sub.s32 \t%s, %s, %d", e.left, e.left, depth)
	e.turnX(e.slotBring)
	e.Line("cp.async.commit_group")
}

// turnX counts the place of a stage of x on.
func (e *blockEmitter) turnX(slot string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, e.of.xBytes(e.fit))
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.ge.u32", "%s, %d", slot, e.of.xSlots(e.fit)*e.of.xBytes(e.fit)), slot)
}

// turnCodes counts the place of a chunk on: there are two.
func (e *blockEmitter) turnCodes(slot string) {
	e.Line("xor.b32 \t%s, %s, %d", slot, slot, e.fit.columns()*e.format.pitch)
}

// bringCodes asks for a chunk, if there is one that has elements from `from` on of those that are left.
func (e *blockEmitter) bringCodes(left int) {
	b := e.format
	to, from := e.r("add.s32", "%s, %s", e.to, e.slotOfCodes), e.from
	e.Line("setp.gt.s32 \t%s, %s, %d", e.some, e.left, left)
	pieces := b.pieces()
	if pieces%2 == 1 { // of the thread that has the first one
		e.Line("setp.eq.u32 \t%s, %s, 0", e.last, e.r("and.b32", "%s, 1", e.thread))
		e.Line("and.pred \t%s, %s, %s", e.last, e.last, e.some)
	}
	switch {
	case b.even && e.fit.Aligned:
		from = e.Make("rd", "and.b64", "%s, -16", from)
	case b.even:
		from = e.Make("rd", "sub.s64", "%s, %s", from, e.Make("rd", "cvt.u64.u32", "%s", e.shift))
	}
	for i := 0; i < pieces; i += 2 {
		there := e.some
		if i+1 == pieces {
			there = e.last
		}
		switch {
		case !e.fit.Aligned:
			e.singly(to, 16*i, from, there)
		case b.even && i+2 >= pieces: // nothing behind the chunk, where memory may end
			first := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, 1", e.thread))
			size := e.either(first, "r", "16", e.r("add.s32", "%s, %d", e.shift, b.bytes%16))
			e.Line("@%s cp.async.cg.shared.global \t[%s+%d], [%s+%d], 16, %s", there, to, 16*i, from, 16*i, size)
		default:
			e.Line("@%s cp.async.cg.shared.global \t[%s+%d], [%s+%d], 16", there, to, 16*i, from, 16*i)
		}
	}
	e.Line("add.s64 \t%s, %s, %d", e.from, e.from, b.bytes)
	if b.even {
		e.Line("add.s32 \t%s, %s, %d", e.shift, e.shift, b.bytes%16)
		e.Line("and.b32 \t%s, %s, 15", e.shift, e.shift)
	}
	e.turnCodes(e.slotOfCodes)
}

// singly brings 16 bytes that may lie anywhere, but nothing behind the chunk, where memory may end.
func (e *blockEmitter) singly(to string, offset int, from, there string) {
	var words [4]string
	for i := range words {
		var halves [2]string
		for j := range halves {
			at := offset + 4*i + 2*j
			ok := there
			if b := e.format; b.even && at+16+2 > b.bytes { // of either thread
				behind := e.r("mad.lo.s32", "%s, 16, %d", e.r("and.b32", "%s, 1", e.thread), at-b.bytes)
				ok = e.Make("p", "setp.lt.s32", "%s, %s", behind, e.shift)
				ok = e.Make("p", "and.pred", "%s, %s", ok, there)
			}
			halves[j] = e.Make("rs", "mov.b16", "0")
			e.Line("@%s ld.global.b16 \t%s, [%s+%d]", ok, halves[j], from, at)
		}
		words[i] = e.r("mov.b32", "{%s, %s}", halves[0], halves[1])
	}
	e.Line("@%s st.shared.v4.b32 \t[%s+%d], {%s}", there, to, offset, strings.Join(words[:], ", "))
}

// multiply adds up the products of all stages.
func (e *blockEmitter) multiply() {
	e.phased(func(rest, end string) {
		stages := e.Label()
		e.Mark(stages)
		for half := range chunk / depth {
			e.stageThere()
			e.half(half, e.bringing(half))
			e.turnX(e.slotUse)
		}
		e.turnCodes(e.use)
		if e.format.even {
			for _, b := range e.shifts {
				e.Line("add.s32 \t%s, %s, %d", b, b, e.format.bytes%16)
				e.Line("and.b32 \t%s, %s, 15", b, b)
			}
		}
		e.Line("sub.s32 \t%s, %s, %d", rest, rest, chunk)
		e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, %s", rest, end), stages)
	}, func(i int, before string) {
		if before != "" {
			e.Line("add.rn.f32 \t%s, %s, %s", e.acc[i], before, e.acc[i])
		}
	})
}

// phased adds up the sums of phases. stages adds up the products of one: until rest is end. sum makes a sum of what it added up, and of that of the phases before, "" if there are none.
// What was before is needed between phases only: where a thread has no registers for it, an assembler puts it into memory there.
func (e *blockEmitter) phased(stages func(rest, end string), sum func(i int, before string)) {
	rest, end := e.r("mov.b32", "%s", e.all), e.r("mov.b32", "0")
	phases, first, done, added := e.Label(), e.Label(), e.Label(), e.Label()
	e.bringCodes(0)
	for range e.of.ahead(e.fit) {
		e.bringX()
	}
	e.Mark(phases)
	begun := ""
	if e.fit.Long {
		begun = e.Make("p", "setp.eq.s32", "%s, %s", rest, e.all)
		e.Line("max.s32 \t%s, %s, 0", end, e.r("sub.s32", "%s, %d", rest, e.of.phase(e.fit)))
	}
	for _, v := range e.acc {
		e.Line("mov.f32 \t%s, 0f00000000", v)
	}
	stages(rest, end)
	e.added(0)
	if e.fit.Long {
		var before []string
		for range e.acc {
			before = append(before, e.New("f"))
		}
		e.Line("@%s bra \t%s", begun, first)
		for i, v := range before {
			sum(i, v)
		}
		e.Line("bra \t%s", added)
		e.Mark(first)
		for i := range e.acc {
			sum(i, "")
		}
		e.Mark(added)
		e.Line("@%s bra \t%s", e.Make("p", "setp.le.s32", "%s, 0", rest), done)
		for i, v := range e.acc {
			e.Line("mov.f32 \t%s, %s", before[i], v)
		}
		e.Line("bra \t%s", phases)
		e.Mark(done)
	} else {
		for i := range e.acc {
			sum(i, "")
		}
	}
	e.Line("cp.async.wait_all")
}

// stageThere waits for the stage that is multiplied next.
func (e *blockEmitter) stageThere() {
	e.Line("cp.async.wait_group \t%d", e.of.ahead(e.fit)-1)
	e.seen()
	e.Line("bar.sync \t0")
}

// bringing asks for what comes next.
func (e *blockEmitter) bringing(half int) func() {
	return func() {
		if half == 0 { // the chunk behind the one that is multiplied: e.left is what stages ahead leave
			e.bringCodes(chunk - depth*e.of.ahead(e.fit))
		}
		e.bringX()
	}
}

// seen lets tensor cores see what is in shared memory, if they read it by themselves.
func (e *blockEmitter) seen() {
	if !e.of.alone() {
		e.Line("fence.proxy.async.shared::cta")
	}
}

// added waits for products, but for those of some steps.
func (e *blockEmitter) added(left int) {
	if !e.of.alone() {
		e.Line("wgmma.wait_group.sync.aligned \t%d", left)
	}
}

// begin stands before products of a step.
func (e *blockEmitter) begin() {
	if !e.of.alone() {
		e.Line("wgmma.fence.sync.aligned")
	}
}

// end stands behind them.
func (e *blockEmitter) end() {
	if !e.of.alone() {
		e.Line("wgmma.commit_group.sync.aligned")
	}
}

// lanes is lane0. By one ldmatrix a warp gets two steps' halves of 16 rows: eight lanes have the addresses of eight rows each.
func (e *blockEmitter) lanes() string {
	row, half := e.r("and.b32", "%s, 7", e.lane), e.r("and.b32", "%s, 1", e.r("shr.u32", "%s, 3", e.lane))
	at := e.r("mad.lo.s32", "%s, 8, %s", e.r("shr.u32", "%s, 4", e.lane), row)
	at = e.r("shl.b32", "%s, 7", at)
	return e.r("mad.lo.s32", "%s, 16, %s", e.r("xor.b32", "%s, %s", half, row), at)
}

// stageOfX is where the stage lies that is multiplied: what [blockEmitter.add] takes.
func (e *blockEmitter) stageOfX() string {
	if e.of.alone() {
		return e.r("add.s32", "%s, %s", e.lane0, e.r("add.s32", "%s, %s", e.slotUse, e.base))
	}
	return e.r("add.s32", "%s, %s", e.descriptor, e.r("shr.u32", "%s, 4", e.slotUse))
}

// add multiplies left factors of a type with a step of a stage.
func (e *blockEmitter) add(typ ir.DType, parts [][4]string, x string, step int) {
	name, rows := typ.String(), e.fit.Rows
	if !e.of.alone() {
		d := e.Make("rd", "mov.b64", "{%s, %s}", e.r("add.s32", "%s, %d", x, step%4*2+step/4*8*rows), e.high)
		for _, a := range parts {
			e.Line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s \t{%s}, {%s}, %s, %s, 1, 1, 0", rows, name, name, list(e.acc), list(a[:]), d, e.always)
		}
		return
	}
	at := e.r("xor.b32", "%s, %d", x, step%4*32)
	for first := 0; first < rows; first += 16 {
		b := []string{e.New("r"), e.New("r"), e.New("r"), e.New("r")}
		e.Line("ldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{%s}, [%s+%d]", list(b), at, step/4*128*rows+128*first)
		for i := range 2 {
			sums := list(e.acc[first/2+4*i:][:4])
			for _, a := range parts {
				e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s}, {%s}, {%s}", name, name, sums, list(a[:]), list(b[2*i:][:2]), sums)
			}
		}
	}
}

// half multiplies a stage, one half of a chunk, in the order in which the format has its steps, and asks for what comes next while tensor cores have something to do.
func (e *blockEmitter) half(half int, bring func()) {
	x := e.stageOfX()
	factors := e.factors(half)
	for i := range depth / 16 {
		step := i
		if e.format.order != nil {
			step = e.format.order[i]
		}
		a := &e.parts[i%blockRing]
		e.added(blockRing - 1)
		for r := range e.codes {
			factors(a, step, r)
		}
		e.begin()
		e.add(e.typ, a[:], x, step)
		e.end()
		if i == 0 {
			bring()
		}
	}
}

// factors returns what makes the left factors of one of the thread's rows in a step of a half of a chunk.
func (e *blockEmitter) factors(half int) func(a *[2][4]string, step, r int) {
	if e.format.pairs == nil || e.typ != ir.F16 {
		weights := e.format.decode(e, half)
		return func(a *[2][4]string, step, r int) {
			w := weights(step, r)
			for j := range 2 { // columns 2·member and the next, and those 8 behind
				e.split(e.typ, a[0][2*j+r], a[1][2*j+r], w[2*j], w[2*j+1])
			}
		}
	}
	pairs := e.format.pairs(e, half)
	return func(a *[2][4]string, step, r int) {
		p := pairs(step, r)
		for j, code := range p.codes {
			to, rest := a[0][2*j+r], a[1][2*j+r]
			// What rounding leaves out is a number of f16 too, or, of scales that have a rest, that and a product with it.
			e.Line("mul.rn.f16x2 \t%s, %s, %s", to, code, p.scale)
			e.Line("fma.rn.f16x2 \t%s, %s, %s, %s", rest, code, p.scale, e.r("neg.f16x2", "%s", to))
			if p.rest != "" {
				e.Line("fma.rn.f16x2 \t%s, %s, %s, %s", rest, code, p.rest, rest)
			}
		}
	}
}

// split makes of two weights, f32, both rounded to a type of 16 bits, and both of what is left, rounded.
func (e *blockEmitter) split(typ ir.DType, to, rest, first, second string) {
	e.Line("cvt.rn.%sx2.f32 \t%s, %s, %s", typ, to, second, first)
	var v [2]string
	if typ == ir.BF16 {
		v = [2]string{e.r("shl.b32", "%s, 16", to), e.r("and.b32", "%s, 0xFFFF0000", to)}
	} else {
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, to)
		v = [2]string{e.r("cvt.f32.f16", "%s", low), e.r("cvt.f32.f16", "%s", high)}
	}
	e.Line("cvt.rn.%sx2.f32 \t%s, %s, %s", typ, rest, e.r("sub.rn.f32", "%s, %s", second, v[1]), e.r("sub.rn.f32", "%s, %s", first, v[0]))
}
