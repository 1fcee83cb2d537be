package ptxmatrix

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// emitter writes one entry.
type emitter struct {
	*product
	entry
	fit Fit

	thread, group, warp, lane, quad, member string // of the block; warpgroup; of its warps; of the warp; lane/4, lane%4
	m0, n0                                  string // the tile
	outside                                 string // predicate: there is none
	rank, begin                             string // of the block in the cluster, and where its part of the inner index begins; "" without a cluster
	matrix                                  [2]operand
	further                                 []string // predicates: the tile is one of the second matrix or a later one, of the third
	y, N, K, M                              string
	base                                    string // of shared memory
	acc                                     []string
	others                                  string // predicate: the thread has no sums, which others of the block have; "": all have

	// What the thread brings of a stage: some bytes of codes, of some rows of x, and of scales or biases.
	codesFrom                                      []string // of rows eight apart; of weights of 16 bits, denseApart
	codesTo, xFrom, xTo, xStep, scaleFrom, scaleTo string
	chunk                                          string   // of scales, which is brought next: its place in shared memory
	mine                                           string   // predicate: the thread brings x; "" if all do
	there                                          bool     // x is kept already
	rows                                           []string // predicates: there are these rows of x; if memory is aligned, how many bytes of them are copied
	all, left                                      string   // elements of the inner index that the block has, and that no stage has yet

	// Where the thread finds its two rows' codes, and scales and biases, and its warpgroup x; where in shared memory the next stage comes, and
	// where the one lies that is multiplied.
	codesAt, scalesAt, descriptor, slotBring, slotUse string
	scalesUse                                         string // where the chunk of scales lies that is used
	stages                                            string // how many stages have been multiplied
	brought                                           string // how many stages have been asked for
	frag                                              [ring][4]string
	kept                                              held   // of the stage that is multiplied, where x is kept
	mask, magic, upper                                string // the bits of codes, and of powers of two in whose fractions they are as many
	selector, high, always                            string

	projection
}

// operand is a matrix of weights.
type operand struct{ codes, scales, biases string }

// ring is how many left factors a thread has: products of all but the one that is decoded may be under way.
const ring = 4

// Emit implements [Kernel].
func (p *product) Emit(launch nvptx.Launch, f Fit) []byte {
	if f.Teams > 0 {
		return p.few(f.Most, f.Streamed).Emit(launch, f)
	}
	e := &emitter{product: p, entry: entry{kernel: p.source, launch: launch, typ: p.elem}, fit: f}
	if f.Splits > 1 {
		e.cluster = f.Splits
	}
	early := 0 // stages whose weights are asked for before the wait for the launches before
	if launch.Programmatic && launch.Values && f.Aligned && f.Still {
		early = f.early()
		e.ask(early)
	} else {
		e.parameters()
		e.place()
	}
	e.tile(early)
	if f.Splits > 1 && f.beside() { // until all blocks of the cluster run nobody stores in another's shared memory
		e.Line("barrier.cluster.arrive.relaxed.aligned")
	}
	for range e.fit.Rows / 2 {
		e.acc = append(e.acc, e.New("f"))
	}
	results := e.Label()
	if e.holds() {
		far := e.products(true, early)
		some := e.New("p")
		e.Line("bar.red.or.pred \t%s, 0, %s", some, far)
		e.Line("@!%s bra \t%s", some, results)
		early = 0
	}
	e.products(false, early)
	e.Mark(results)
	e.results()
	return e.text(e.fit.blockThreads())
}

// early is of how many stages weights are asked for before the wait. x comes behind all of them, in the first one's group unless it is kept.
func (f Fit) early() int {
	if f.whole() || f.Kept {
		return f.ahead()
	}
	return min(f.ahead(), earlyStages)
}

// earlyStages bounds that where more stages follow, so that the first one need not wait for many.
const earlyStages = 4

// ask asks for weights before the wait for the launches before, which have written none, and then reads what they may have.
func (e *emitter) ask(stages int) {
	known := func(name string) bool { return weight(name) || size(name) }
	for i := range e.source.Args {
		if weight(e.source.Args[i].Name) {
			e.early = append(e.early, i)
		}
	}
	e.Line("griddepcontrol.launch_dependents")
	e.read(known, false)
	e.place()
	e.weights()
	idle := e.Label()
	e.Line("@%s bra \t%s", e.outside, idle)
	if e.fit.Kept {
		e.times(stages, e.bring)
	} else {
		e.times(stages, e.bringWeights)
	}
	e.Mark(idle)
	e.Line("griddepcontrol.wait") // in all threads, so that what waits for this grid waits for those before it
	e.read(func(name string) bool { return !known(name) && (e.form == rope || !unused(name)) }, e.launch.Moving)
}

// times does something so many times.
func (e *emitter) times(n int, do func()) {
	if n < 2 {
		for range n {
			do()
		}
		return
	}
	count, again := e.r("mov.b32", "%d", n), e.Label()
	e.Mark(again)
	e.Line(".pragma \"nounroll\"")
	do()
	e.Line("add.s32 \t%s, %s, -1", count, count)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.u32", "%s, 0", count), again)
}

// place finds the columns of the block's tile, its part of the inner index, and the thread's part of both.
func (e *emitter) place() {
	e.thread = e.r("mov.u32", "%%tid.x")
	e.lane = e.r("and.b32", "%s, 31", e.thread)
	e.warp = e.r("and.b32", "%s, 3", e.r("shr.u32", "%s, 5", e.thread))
	e.quad, e.member = e.r("shr.u32", "%s, 2", e.lane), e.r("and.b32", "%s, 3", e.lane)
	e.group = e.r("shr.u32", "%s, 7", e.thread)

	e.K, e.all = e.args["K"], e.args["K"]
	if e.fit.Splits > 1 {
		e.rank = e.r("mov.u32", "%%cluster_ctarank")
		e.begin = e.r("mul.lo.s32", "%s, %d", e.rank, e.fit.Part)
		e.all = e.r("min.s32", "%s, %d", e.r("sub.s32", "%s, %s", e.K, e.begin), e.fit.Part)
	}
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
	wide := e.fit.columns()
	switch e.form {
	case siluMul:
		wide /= 2
		e.matrix = [2]operand{of(e.sides[0]), of(e.sides[1])}
		e.N = e.args["N"]
	case rope:
		e.project(block)
	default:
		m := of(e.sides[0])
		e.N = length(e.sides[0])
		for _, side := range e.sides[1:] {
			blocks := e.r("shr.u32", "%s, %d", e.r("add.s32", "%s, %d", e.N, wide-1), bits.Len(uint(wide))-1)
			further := e.Make("p", "setp.ge.u32", "%s, %s", block, blocks)
			e.further = append(e.further, further)
			block = e.either(further, "r", e.r("sub.s32", "%s, %s", block, blocks), block)
			next := of(side)
			m.codes = e.either(further, "rd", next.codes, m.codes)
			if !e.dense() {
				m.scales, m.biases = e.either(further, "rd", next.scales, m.scales), e.either(further, "rd", next.biases, m.biases)
			}
			e.N = e.either(further, "r", length(side), e.N)
		}
		e.matrix = [2]operand{m, m}
	}
	if e.form != rope {
		e.n0 = e.r("mul.lo.s32", "%s, %d", block, wide)
	}
	e.outside = e.Make("p", "setp.ge.s32", "%s, %s", e.n0, e.N)

	start := e.r("mov.u32", "mlxc_shared")
	e.base = e.r("and.b32", "%s, %d", e.r("add.s32", "%s, %d", start, alignment-1), -alignment)

	// The upper half of a descriptor: 128-byte swizzle, 1024 bytes from eight rows to the next eight.
	e.high = e.r("mov.b32", "%d", 1<<30|1024>>4)
	e.always = e.Make("p", "setp.eq.u32", "%s, %s", e.K, e.K)
	if e.dense() {
		return
	}
	if e.fit.Kept {
		magic := 0x64006400 // 1024
		if e.typ == ir.BF16 {
			magic = 0x43004300 // 128
		}
		e.magic, e.upper = e.r("mov.b32", "%d", magic), e.r("mov.b32", "%d", 0x54005400) // 64, whose fraction has 1 where that of 1024 has 16
		return
	}
	// Of two codes, each in the low byte of half a register: of 4 bits both lie in one byte of four, of 8 bits in two of
	// eight.
	e.selector = e.r("mad.lo.s32", "%s, %d, %d", e.member, 0x0101, 0x4040)
	if e.bits == 8 {
		e.selector = e.r("mad.lo.s32", "%s, %d, %d", e.member, 0x2222, 0x1100)
	}
	mask, magic := 0x00F0000F, 0x54006400 // 1024, 64
	switch {
	case e.bits == 8:
		mask, magic = 0x00FF00FF, 0x64006400 // 1024, 1024
	case e.typ == ir.BF16:
		mask, magic = 0x000F000F, 0x43004300 // 128, 128
	}
	e.mask, e.magic = e.r("mov.b32", "%d", mask), e.r("mov.b32", "%d", magic)
}

// tile finds the rows of the block's tile, and where results are stored. A block that has no tile leaves, once what it has asked for is there, and so do all of a
// cluster.
func (e *emitter) tile(asked int) {
	e.M = e.args["M"]
	number := e.r("mov.u32", "%%ctaid.x")
	if e.rank != "" {
		number = e.r("shr.u32", "%s, %d", number, bits.Len(uint(e.fit.Splits))-1)
	}
	e.m0 = e.r("mul.lo.s32", "%s, %d", number, e.fit.Rows)
	inside := e.Label()
	outside := e.Make("p", "or.pred", "%s, %s", e.outside, e.Make("p", "setp.ge.s32", "%s, %s", e.m0, e.M))
	if asked > 0 {
		e.Line("@!%s bra \t%s", outside, inside)
		e.Line("cp.async.wait_all")
		e.Line("bra \t$L_end")
		e.Mark(inside)
	} else {
		e.Line("@%s bra \t$L_end", outside)
	}
	if e.form == rope {
		e.y = e.either(e.value, "rd", e.args["v"], e.either(e.key, "rd", e.args["k"], e.args["q"]))
		return
	}
	e.y = e.args["y"]
	if e.y == "" {
		e.y = e.args["y"+e.sides[0]]
	}
	for i, further := range e.further {
		e.y = e.either(further, "rd", e.args["y"+e.sides[i+1]], e.y)
	}
}

// row is the row of a matrix that stands at a place of the 256 of a block; behind the last one it is the last one, whose
// results nobody stores.
func (e *emitter) row(at string) string {
	switch e.form {
	case siluMul:
		at = e.r("and.b32", "%s, %d", at, e.fit.columns()/2-1)
	case rope:
		return e.turnedRow(at)
	}
	return e.r("min.s32", "%s, %s", e.r("add.s32", "%s, %s", e.n0, at), e.r("sub.s32", "%s, 1", e.N))
}

// weights finds what the thread brings of each stage of the weights. Each warp brings those of the 16 rows that it multiplies: where x is kept, it waits for no other.
func (e *emitter) weights() {
	e.left = e.r("mov.b32", "%s", e.all)
	e.slotBring = e.r("mov.b32", "0")
	if e.dense() {
		e.denseWeights()
		return
	}
	at, unit := e.r("mad.lo.s32", "%s, 16, %s", e.r("shr.u32", "%s, 5", e.thread), e.quad), e.member
	bytes := e.r("mul.lo.s32", "%s, %d", e.r("shr.u32", "%s, 3", e.K), e.bits) // of a row, which has a multiple of 32 codes
	offset := e.r("shl.b32", "%s, 4", unit)
	if e.begin != "" {
		offset = e.r("add.s32", "%s, %s", offset, e.r("mul.lo.s32", "%s, %d", e.r("shr.u32", "%s, 3", e.begin), e.bits))
	}
	upper := e.Make("p", "setp.ge.u32", "%s, %d", e.thread, threads/2) // the thread's rows are in the upper half of the block's
	codes := e.matrix[0].codes
	if e.form == siluMul {
		codes = e.either(upper, "rd", e.matrix[1].codes, codes)
	}
	e.codesFrom = nil
	for i := range 2 {
		row := e.row(e.r("add.s32", "%s, %d", at, 8*i))
		e.codesFrom = append(e.codesFrom, e.plus(e.Make("rd", "add.s64", "%s, %s", codes, e.wide(row, bytes)), offset))
	}
	e.codesTo = e.r("add.s32", "%s, %s", e.codesPlace(at, unit), e.base)

	of, side := e.r("shr.u32", "%s, 1", e.thread), e.r("and.b32", "%s, 1", e.thread)
	second := e.Make("p", "setp.ne.u32", "%s, 0", side)
	var arrays [2]string
	for i, m := range e.matrix {
		arrays[i] = e.either(second, "rd", m.biases, m.scales)
	}
	groups := e.r("div.u32", "%s, %d", e.K, e.product.group)
	e.scaleFrom = e.Make("rd", "mad.lo.s64", "%s, 2, %s", e.wide(e.row(of), groups), e.either(upper, "rd", arrays[1], arrays[0]))
	if e.begin != "" {
		e.scaleFrom = e.plus(e.scaleFrom, e.r("mul.lo.s32", "%s, %d", e.rank, 2*e.fit.Part/e.product.group))
	}
	e.scaleTo = e.r("mad.lo.s32", "%s, %d, %s", e.thread, e.fit.chunk(), e.scalesPlace())
	e.chunk, e.brought = e.r("mov.b32", "0"), e.r("mov.b32", "0")
}

// scalesPlace is where scales lie in shared memory.
func (e *emitter) scalesPlace() string {
	return e.r("add.s32", "%s, %d", e.base, e.behindStages(e.fit))
}

// loads finds what the thread brings of each stage of x, unless that is kept, and where it finds what it multiplies.
func (e *emitter) loads() {
	e.descriptor = e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 4", e.base), 1<<16)
	e.slotUse = e.r("mov.b32", "0")
	if e.dense() {
		e.denseLoads()
		return
	}
	unit := e.r("mov.b32", "0")
	if e.fit.Kept {
		unit = e.r("mul.lo.s32", "%s, %d", e.member, e.bits/4)
	} else {
		e.loadsRows()
	}
	// The thread's second row is eight behind its first, and lies as that one.
	first := e.r("mad.lo.s32", "%s, 16, %s", e.warp, e.quad)
	first = e.r("mad.lo.s32", "%s, 64, %s", e.group, first)
	e.codesAt = e.r("add.s32", "%s, %s", e.codesPlace(first, unit), e.base)
	e.scalesAt = e.r("mad.lo.s32", "%s, %d, %s", first, 2*e.fit.chunk(), e.scalesPlace())
	if e.fit.Kept {
		e.scalesAt = e.r("mad.lo.s32", "%s, 2, %s", e.r("shr.u32", "%s, %d", e.member, bits.Len(uint(e.product.group/32))-1), e.scalesAt)
	}
	e.scalesUse, e.stages = e.r("mov.b32", "0"), e.r("mov.b32", "0")
}

// xPlace is what the thread brings of each stage of x: its first row, and which 16 bytes of it. Its other rows lie xApart from one another.
func (e *emitter) xPlace() (row, unit string) {
	units := e.fit.Depth / 8
	return e.r("shr.u32", "%s, %d", e.thread, bits.Len(uint(units))-1), e.r("and.b32", "%s, %d", e.thread, units-1)
}

func (e *emitter) xApart() int { return e.fit.blockThreads() / (e.fit.Depth / 8) }

// loadsRows finds what the thread brings of each stage of x.
func (e *emitter) loadsRows() {
	xRow, unit := e.xPlace()
	pitch := e.r("shl.b32", "%s, 1", e.K)
	offset := e.r("shl.b32", "%s, 4", unit)
	m := e.r("add.s32", "%s, %s", e.m0, xRow)
	if e.begin != "" {
		offset = e.r("mad.lo.s32", "%s, 2, %s", e.begin, offset)
	}
	e.xFrom = e.plus(e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(m, pitch)), offset)
	e.xStep = e.wide(pitch, strconv.Itoa(e.xApart()))
	swizzled := e.r("and.b32", "%s, 7", e.r("xor.b32", "%s, %s", unit, xRow))
	to := e.r("add.s32", "%s, %s", e.r("shl.b32", "%s, 7", xRow), e.r("shl.b32", "%s, 4", swizzled))
	if e.fit.Depth > denseDepth {
		to = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 3", unit), 128*e.fit.Rows, to)
	}
	e.xTo = e.r("add.s32", "%s, %s", to, e.base)
	e.rows, e.mine = nil, ""
	for j := 0; j < e.fit.Rows; j += e.xApart() {
		ok := e.Make("p", "setp.lt.s32", "%s, %s", e.r("add.s32", "%s, %d", m, j), e.M)
		if e.fit.Aligned && !e.dense() {
			ok = e.either(ok, "r", "16", "0")
		}
		e.rows = append(e.rows, ok)
	}
	if e.fit.Rows < e.xApart() {
		e.mine = e.Make("p", "setp.lt.u32", "%s, %d", xRow, e.fit.Rows)
	}
}

// codesPlace is where 16 bytes of codes lie in a stage. Eight rows at one place of their inner index lie in different banks.
func (e *emitter) codesPlace(row, unit string) string {
	by := e.r("and.b32", "%s, 3", e.r("shr.u32", "%s, 1", row))
	if e.bits == 8 {
		by = e.r("and.b32", "%s, 7", row)
	}
	at := e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", unit, by))
	at = e.r("mad.lo.s32", "%s, %d, %s", row, depth*e.bits/8, at)
	if e.fit.Kept {
		return e.r("add.s32", "%s, %d", at, e.fit.keptBytes())
	}
	return e.r("add.s32", "%s, %d", at, e.fit.rowsBytes())
}

// bring asks for a stage. Behind the last one it brings zeros, or nothing by predicates, since an assembler has one wgmma wait for another where a branch lies
// between. The inner index of memory that is aligned ends where a stage does.
func (e *emitter) bring() {
	if !e.fit.Kept {
		e.bringRows(e.slotBring, e.left)
		e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, 2*e.fit.Depth)
	}
	e.bringWeights()
	e.Line("cp.async.commit_group")
}

// bringWeights asks for the codes of a stage, and for scales.
func (e *emitter) bringWeights() {
	if e.dense() {
		e.bringDense()
		return
	}
	to := e.r("add.s32", "%s, %s", e.codesTo, e.slotBring)
	some := e.Make("p", "setp.gt.s32", "%s, 0", e.left)
	unit := e.r("and.b32", "%s, 3", e.thread)
	for i := range e.bits / 4 {
		at, where, size := to, some, ""
		if i > 0 { // four units on
			at = e.r("xor.b32", "%s, 64", to)
		}
		if !e.fit.Aligned {
			where, size = "", e.within(e.r("mad.lo.s32", "%s, %d, %d", unit, 128/e.bits, i*depth/2), e.left, "")
		}
		for j, from := range e.codesFrom {
			e.copy(where, at, j*8*depth*e.bits/8, from, 64*i, size)
		}
	}
	e.bringScales(some)
	for _, from := range e.codesFrom {
		e.Line("add.s64 \t%s, %s, %d", from, from, depth*e.bits/8)
	}
	e.Line("sub.s32 \t%s, %s, %d", e.left, e.left, depth)
	e.Line("add.s32 \t%s, %s, 1", e.brought, e.brought)
	e.next(e.slotBring)
}

// bringRows asks for the rows of x of a stage, which comes to a place when so many elements of the inner index are left.
func (e *emitter) bringRows(slot, left string) {
	to := e.r("add.s32", "%s, %s", e.xTo, slot)
	from := e.xFrom
	_, unit := e.xPlace()
	at := e.r("shl.b32", "%s, 3", unit)
	where := e.mine
	if e.fit.Aligned {
		where = e.Make("p", "setp.gt.s32", "%s, 0", left)
		if e.mine != "" {
			where = e.Make("p", "and.pred", "%s, %s", where, e.mine)
		}
	}
	for i, ok := range e.rows {
		if i > 0 {
			from = e.Make("rd", "add.s64", "%s, %s", from, e.xStep)
		}
		size := ok
		if !e.fit.Aligned || e.dense() {
			size = e.within(at, left, ok)
		}
		e.copy(where, to, i*e.xApart()*128, from, 0, size)
	}
}

// fill asks for the first stages. Of some the weights are asked for already.
func (e *emitter) fill(asked int) {
	if asked > 0 && !e.fit.Kept {
		slot, left := e.r("mov.b32", "0"), e.r("mov.b32", "%s", e.all)
		e.times(asked, func() {
			e.bringRows(slot, left)
			e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, 2*e.fit.Depth)
			e.Line("cp.async.commit_group")
			e.Line("sub.s32 \t%s, %s, %d", left, left, e.fit.Depth)
			e.next(slot)
		})
	}
	e.times(e.fit.ahead()-asked, e.bring)
}

// bringScales asks for the scales, or biases, of a row, with the first stage of those that a chunk is for. A predicate says that there is the stage.
func (e *emitter) bringScales(some string) {
	to := e.r("add.s32", "%s, %s", e.scaleTo, e.chunk)
	if e.fit.Aligned {
		begins := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", e.brought, e.fit.period(e.product.group)-1))
		some = e.Make("p", "and.pred", "%s, %s", some, begins)
		how := "ca"
		if e.fit.Chunk == 16 {
			how = "cg"
		}
		e.Line("@%s cp.async.%s.shared.global \t[%s], [%s], %d", some, how, to, e.scaleFrom, e.fit.Chunk)
		e.Line("@%s add.s64 \t%s, %s, %d", begins, e.scaleFrom, e.scaleFrom, e.fit.Chunk)
		e.turn(e.chunk, begins)
		return
	}
	var halves []string
	for i := range depth / e.product.group {
		halves = append(halves, e.Make("rs", "mov.b16", "0"))
		e.Line("@%s ld.global.b16 \t%s, [%s+%d]", e.Make("p", "setp.gt.s32", "%s, %d", e.left, i*e.product.group), halves[i], e.scaleFrom, 2*i)
	}
	for len(halves) < 4 {
		halves = append(halves, halves[len(halves)%(depth/e.product.group)])
	}
	e.Line("st.shared.v2.b32 \t[%s], {%s, %s}", to, e.r("mov.b32", "{%s, %s}", halves[0], halves[1]), e.r("mov.b32", "{%s, %s}", halves[2], halves[3]))
	e.Line("add.s64 \t%s, %s, %d", e.scaleFrom, e.scaleFrom, 2*depth/e.product.group)
	e.turn(e.chunk, e.always)
}

// turn counts the place of a chunk on where a predicate holds.
func (e *emitter) turn(place, where string) {
	size := threads * e.fit.chunk()
	e.Line("@%s add.s32 \t%s, %s, %d", where, place, place, size)
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.ge.u32", "%s, %d", place, e.chunks(e.fit)*size), place)
}

// next counts a stage's place on.
func (e *emitter) next(slot string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, e.stageBytes(e.fit))
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.ge.u32", "%s, %d", slot, e.fit.Slots*e.stageBytes(e.fit)), slot)
}

// within is 16 if an element of a stage is one of those that are left, and another predicate holds, else 0.
func (e *emitter) within(at, left, also string) string {
	p := e.Make("p", "setp.lt.s32", "%s, %s", at, left)
	if also != "" {
		p = e.Make("p", "and.pred", "%s, %s", p, also)
	}
	return e.either(p, "r", "16", "0")
}

// copy brings 16 bytes to shared memory, or zeros if size is 0, in threads where a predicate holds, or in all. Without a size it is 16.
func (e *emitter) copy(where, to string, place int, from string, offset int, size string) {
	if e.fit.Aligned {
		if where != "" {
			where = "@" + where + " "
		}
		if size != "" {
			size = ", " + size
		}
		e.Line("%scp.async.cg.shared.global \t[%s+%d], [%s+%d], 16%s", where, to, place, from, offset, size)
		return
	}
	if where != "" {
		skip := e.Label()
		e.Line("@!%s bra \t%s", where, skip)
		defer e.Mark(skip)
	}
	if offset > 0 {
		from = e.Make("rd", "add.s64", "%s, %d", from, offset)
	}
	e.single(to, place, from, e.Make("p", "setp.ne.u32", "%s, 0", size))
}

// affine is what the codes of a row become weights by: by group, twice in a register; and scales and biases as they lie in memory.
type affine struct {
	scale, bias []string
	words       [2][]string
}

// affines reads those of the thread's rows.
func (e *emitter) affines(far string) (rows [2]affine) {
	at := e.r("add.s32", "%s, %s", e.scalesAt, e.scalesUse)
	within := e.r("and.b32", "%s, %d", e.stages, e.fit.period(e.product.group)-1) // the stage of those that the chunk is for
	n := depth / e.product.group
	at = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, %d", within, 1-min(1, n-1)), max(4, 2*n), at)
	for i := range rows {
		for k := range 2 {
			words := []string{e.New("r")}
			place := (i*8*2 + k) * e.fit.chunk()
			if n == 4 {
				words = append(words, e.New("r"))
				e.Line("ld.shared.v2.b32 \t{%s, %s}, [%s+%d]", words[0], words[1], at, place)
			} else {
				e.Line("ld.shared.b32 \t%s, [%s+%d]", words[0], at, place)
			}
			var out []string
			if n == 1 {
				out = append(out, e.r("prmt.b32", "%s, 0, %s", words[0], e.r("mad.lo.s32", "%s, %d, %d", e.r("and.b32", "%s, 1", within), 0x2222, 0x1010)))
			} else { // an operand of fma takes one half twice as it is
				for _, half := range e.halves(words)[:n] {
					out = append(out, e.r("mov.b32", "{%s, %s}", half, half))
				}
			}
			rows[i].words[k] = words
			if k == 0 {
				rows[i].scale = out
			} else {
				rows[i].bias = out
			}
		}
	}
	if far == "" {
		return rows
	}
	// Of four threads each looks at one row and two groups.
	lower := e.Make("p", "setp.lt.u32", "%s, 2", e.member)
	even := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, 1", e.member))
	own := func(k int) string {
		var v [2]string
		for i, r := range rows {
			w := r.words[k]
			if v[i] = w[0]; len(w) > 1 {
				v[i] = e.either(even, "r", w[0], w[1])
			}
		}
		return e.either(lower, "r", v[0], v[1])
	}
	e.apart(e.bits, own(0), own(1), far)
	return rows
}

// holds reports whether weights are decoded by fma in their own type, which has to hold a code.
func (e *emitter) holds() bool { return !e.dense() && (e.typ == ir.F16 || e.bits == 4) }

// apart sets the upper bit of a half of a register if scale·code + bias may not fit an f32 exactly, for some codes of a row in a stage. Where it
// fits, rounding it to f32 and then to 16 bits, as the term does, is the same as rounding it once, as fma does. It fits if
// the exponents of scale and bias are not far apart: from the lowest bit of both to the highest of the sum there are then at most 24
// bits. With a bias of 0 it always fits. Two of them lie side by side in a word.
// Its halves are compared together: that of a scale is less than 2^15, which is added to that of a bias. An exponent of 0 stands for that of 1: taken as it is, rows are
// rounded twice that need not be, and none the other way round.
func (e *entry) apart(bits int, scale, bias, some string) {
	fraction, most := 10, 31
	if e.typ == ir.BF16 {
		fraction, most = 7, 255
	}
	// The sum is below 2^(1 + max(exponent of the scale + bits, exponent of the bias) + 1).
	below, above := 24-fraction-bits-2, 24-fraction-2
	const half, rest, lowest = 0x10001, 0x7FFF7FFF, 0x80008000
	exponents := most << fraction * half
	s := e.r("and.b32", "%s, %d", scale, exponents)
	// 0xEA: (a & b) | c
	distance := e.r("sub.s32", "%s, %s", e.r("lop3.b32", "%s, %d, %d, 0xEA", bias, exponents, lowest), s)
	distance = e.r("shr.u32", "%s, 1", distance) // whose lowest bits are 0, so that the upper bits of halves are free: they tell what is the larger number
	least := e.r("add.s32", "%s, %d", distance, lowest-(lowest-below<<fraction*half)/2)
	most = lowest + (lowest+above<<fraction*half)/2
	greatest := e.r("sub.s32", "%s, %s", e.r("mov.b32", "%d", most), distance)
	there := e.r("add.s32", "%s, %d", e.r("and.b32", "%s, %d", bias, rest), rest)
	far := e.r("lop3.b32", "%s, %s, %s, 0x2A", least, greatest, there) // ^(a & b) & c
	e.Line("or.b32 \t%s, %s, %s", some, some, far)
}

// phase is of how many elements of the inner index tensor cores add up the products: what they cut off stays within the bound of
// the sum then. More of them are added phase by phase.
const phase = 8192

// products adds up the products of all stages, with weights that are rounded once, or twice as the term has it. It returns a
// predicate: if it holds for any thread, rounding once is not enough, and the sums cannot be used.
// Of some stages weights are asked for already.
func (e *emitter) products(once bool, asked int) (far string) {
	if asked == 0 {
		e.weights()
	}
	e.loads()
	for i := range e.frag {
		for j := range e.frag[i] {
			e.frag[i][j] = e.r("mov.b32", "0")
		}
	}
	if once {
		far = e.r("mov.b32", "0")
	}
	saved := e.r("add.s32", "%s, %d", e.r("mad.lo.s32", "%s, 4, %s", e.thread, e.base), e.savedAt(e.fit))
	rest, end := e.r("mov.b32", "%s", e.all), e.r("mov.b32", "0")
	phases, stage := e.Label(), e.Label()
	if e.fit.Long {
		for i := range e.acc {
			e.Line("st.shared.b32 \t[%s+%d], 0", saved, 4*threads*i)
		}
	}
	e.fill(asked)
	if e.fit.Kept {
		if !e.there {
			e.keep()
			if !e.fit.byWarps() {
				e.Line("fence.proxy.async.shared::cta")
			}
			e.Line("bar.sync \t0")
			e.there = true
		}
		if !e.dense() {
			e.fetch()
		}
	}
	if e.fit.Long {
		e.Mark(phases)
		e.Line("max.s32 \t%s, %s, 0", end, e.r("sub.s32", "%s, %d", rest, phase))
	}
	for _, v := range e.acc {
		e.Line("mov.f32 \t%s, 0f00000000", v)
	}
	e.Mark(stage)
	switch {
	case e.fit.Kept && e.dense():
		e.denseByWarps()
	case e.fit.Kept:
		e.keptStage(far, once)
	default:
		e.Line("cp.async.wait_group \t%d", e.fit.ahead()-1)
		e.Line("fence.proxy.async.shared::cta")
		e.Line("bar.sync \t0")
		if e.dense() {
			e.denseStage()
		} else {
			e.stage(far, once)
			e.count()
		}
	}
	e.Line("sub.s32 \t%s, %s, %d", rest, rest, e.fit.Depth)
	e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, %s", rest, end), stage)
	if !e.fit.byWarps() {
		e.Line("wgmma.wait_group.sync.aligned \t0")
	}
	if e.fit.Long {
		for i, v := range e.acc {
			e.Line("add.rn.f32 \t%s, %s, %s", v, v, e.Make("f", "ld.shared.f32", "[%s+%d]", saved, 4*threads*i))
			e.Line("st.shared.f32 \t[%s+%d], %s", saved, 4*threads*i, v)
		}
		e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, 0", rest), phases)
	}
	e.Line("cp.async.wait_all")
	if once {
		far = e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, %d", far, 0x80008000))
	}
	return far
}

// count counts the stage on that is multiplied.
func (e *emitter) count() {
	e.next(e.slotUse)
	e.Line("add.s32 \t%s, %s, 1", e.stages, e.stages)
	e.turn(e.scalesUse, e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", e.stages, e.fit.period(e.product.group)-1)))
}

// stage multiplies a stage, and asks for another one.
func (e *emitter) stage(far string, once bool) {
	rows := e.affines(far)
	codes := e.r("add.s32", "%s, %s", e.codesAt, e.slotUse)
	lowest := e.r("add.s32", "%s, %s", e.descriptor, e.r("shr.u32", "%s, 4", e.slotUse))
	per := 128 / e.bits // codes in 16 bytes
	for from := 0; from < depth; from += per {
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
				g := (from + k) / e.product.group
				for j := range 2 {
					w := words[i][k*e.bits/32+j*e.bits/4:]
					if once {
						e.once(a[2*j+i], w, rows[i].scale[g], rows[i].bias[g])
					} else {
						e.twice(a[2*j+i], w, rows[i].scale[g], rows[i].bias[g])
					}
				}
			}
			e.multiply(lowest, step)
		}
	}
}

// multiply multiplies a step of a stage, whose left factor is decoded. Where x of the stage lies a descriptor says.
func (e *emitter) multiply(lowest string, step int) {
	defer e.meanwhile(step)
	if e.fit.byWarps() {
		e.multiplyByWarps(lowest, step)
		return
	}
	d := e.Make("rd", "mov.b64", "{%s, %s}", e.r("add.s32", "%s, %d", lowest, step%4*2+step/4*8*e.fit.Rows), e.high)
	e.Line("wgmma.fence.sync.aligned")
	name := e.typ.String()
	e.Line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s \t{%s}, {%s}, %s, %s, 1, 1, 0",
		e.fit.Rows, name, name, strings.Join(e.acc, ", "), strings.Join(e.frag[step%ring][:], ", "), d, e.always)
	e.Line("wgmma.commit_group.sync.aligned")
}

// meanwhile asks for another stage behind the first step of one, while tensor cores have something to do.
func (e *emitter) meanwhile(step int) {
	switch {
	case step > 0:
	case e.fit.whole(): // there is nothing to bring; groups are counted
		e.Line("cp.async.commit_group")
	default:
		e.bring()
	}
}

// twice makes two weights in f32, and rounds them to 16 bits. A code is put into the fraction of 2^23. A product of a scale and
// a code is exact, so that fma rounds as often as the term.
func (e *emitter) twice(to string, words []string, scale, bias string) {
	second := 16
	if e.bits == 4 {
		second = 20
	}
	e.twiceOf(e.bits, to, e.both(words), 0, second, scale, bias)
}

// twiceOf does so with two codes that lie at two places of a word.
func (e *entry) twiceOf(bits int, to, word string, first, second int, scale, bias string) {
	scale, bias = e.low(scale), e.low(bias)
	var v [2]string
	for k, shift := range []int{first, second} {
		code := e.r("and.b32", "%s, %d", e.r("shr.u32", "%s, %d", word, shift), 1<<bits-1)
		code = e.r("sub.rn.f32", "%s, 0f4B000000", e.r("or.b32", "%s, 0x4B000000", code))
		v[k] = e.r("fma.rn.f32", "%s, %s, %s", code, scale, bias)
	}
	e.Line("cvt.rn.%sx2.f32 \t%s, %s, %s", e.typ, to, v[1], v[0])
}

// low is the low half of a register as f32.
func (e *entry) low(v string) string {
	low, high := e.New("rs"), e.New("rs")
	e.Line("mov.b32 \t{%s, %s}, %s", low, high, v)
	return e.widened(low)
}

// both has the bytes of two codes in the low bytes of its halves. Of 4 bits it is one byte twice, of which the first code is the
// low half and the second the high half.
func (e *emitter) both(words []string) string {
	if e.bits == 4 {
		return e.r("prmt.b32", "%s, 0, %s", words[0], e.selector)
	}
	return e.r("prmt.b32", "%s, %s, %s", words[0], words[1], e.selector)
}

// once makes two weights by fma of 16 bits. A code is put into the fraction of a power of two, which is subtracted.
func (e *emitter) once(to string, words []string, scale, bias string) {
	both := e.both(words)
	if e.typ == ir.BF16 { // the fraction has 7 bits: the second code has to lie where the first does
		both = e.r("prmt.b32", "%s, %s, 0x7610", both, e.r("shr.u32", "%s, 4", both))
	}
	// 0xEA: (a & b) | c
	e.onceOf(to, e.r("lop3.b32", "%s, %s, %s, 0xEA", both, e.mask, e.magic), e.magic, scale, bias)
}

// onceOf does so with codes that are in the fraction.
func (e *emitter) onceOf(to, code, magic, scale, bias string) {
	name := e.typ.String()
	code = e.r("sub.rn."+name+"x2", "%s, %s", code, magic)
	e.Line("fma.rn.%sx2 \t%s, %s, %s, %s", name, to, code, scale, bias)
}
