package ptxmatrix

import (
	"math"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// warpProduct is a product of matrices for GPUs whose tensor cores take products of one warp only (mma.sync). What it has in common with [product] are how columns are
// divided among blocks, what becomes of results, and how codes become weights.
//
// A block has eight warps, each of which makes 32 columns of all rows of the block, so that no weight is decoded twice. Of 64 elements of the inner index, a
// thread takes 16 that lie side by side, of four rows of weights and of a row of x for each eight: the inner index may have any order that is the same in both factors. So
// codes of a row are one load, have one scale, and x is loaded 16 bytes at a time as it lies. Where there would be few blocks, two or four teams of warps share the inner
// index: a stage has 64 elements for each, and their sums are added in the end.
//
// Weights of 16 bits are loaded as x is, and are not decoded.
type warpProduct struct{ *product }

func warpProductOf(k *air.Kernel, constants []ir.FunctionConstant, gpu GPU) *warpProduct {
	p := productOf(k, gpu)
	if p == nil {
		p = turnedOf(k, constants, gpu)
	}
	if p == nil {
		return nil
	}
	return &warpProduct{p}
}

const (
	warpCount   = 8
	warpThreads = 32 * warpCount
	warpColumns = 32
	warpDepth   = 64 // elements of the inner index that a warp has of a stage
	// leastInner is the shortest inner index: a shorter one is one stage, in which tensor cores may lose more than the bound of its sum.
	leastInner = 2 * warpDepth
)

// warpPhase is of how many elements tensor cores add up the products. Of eight products, and what they are added to, those of compute capability 8.0 cut off all but the
// largest one 24 bits below it, and then the sum to 24 bits: that is ten times 2^−24 of the sum of all magnitudes, if all of it is there from the start. Phases are added
// with one rounding each. Together that has to stay within the bound of a sum (docs/terms.md). Teams make a part of it each, which has a bound of its own.
func warpPhase(inner int) int {
	stages := inner / warpDepth
	for phases := 1; ; phases++ {
		length := (stages + phases - 1) / phases * warpDepth
		if length == warpDepth || float64(length)*10/8+float64(phases-1) <= bound(inner) {
			return length
		}
	}
}

// bound is that of a sum (docs/terms.md), in units of 2^−24 of the sum of all magnitudes.
func bound(inner int) float64 {
	return math.Min(float64(inner), 64*math.Sqrt(float64(inner))) + 2
}

// Fit implements [Kernel].
func (p *warpProduct) Fit(groups [3]uint64, given Given) (best Fit) {
	if f := p.fitFew(groups, given); f.Fits() {
		return f
	}
	least := uint64(0)
	for _, teams := range []int{1, 2, 4} {
		for _, rows := range []int{64, 32, 16} {
			f, ok := p.fit(groups, given, rows, teams)
			if !ok {
				continue
			}
			if cost := p.cost(groups, given, f); least == 0 || cost < least {
				least, best = cost, f
			}
		}
	}
	return best
}

// fit is how blocks of so many rows and teams are launched. It reports whether they can.
func (p *warpProduct) fit(groups [3]uint64, given Given, rows, teams int) (f Fit, ok bool) {
	k, known := given.Constant("K")
	if !known || !given.Aligned || k < leastInner || k > 1<<24 {
		return Fit{}, false
	}
	f = Fit{Rows: rows, Aligned: true, Inner: int(k), Depth: warpDepth * teams, Columns: warpCount * warpColumns / teams}
	if p.form == rope {
		if f.Projections, ok = p.projections(given); !ok {
			return Fit{}, false
		}
	}
	if f.Inner%f.Depth != 0 || teams > 1 && f.Inner/f.Depth < FewestStages {
		return Fit{}, false
	}
	least := 2 // stages of 16 bits are so large that no more may have room
	if !p.dense() {
		least, f.Chunk = minSlots, 16
		for f.Inner%p.group != 0 || 2*f.Inner/p.group%f.Chunk != 0 { // the scales of a row
			f.Chunk /= 2
			if f.Chunk < 4 || f.Chunk/2*p.group < f.Depth {
				return Fit{}, false
			}
		}
	}
	f.Most = p.most(groups, given, f)
	for f.Slots = maxSlots; p.memory(f) > p.gpu.Memory-reserved; f.Slots-- {
		if f.Slots == least {
			return Fit{}, false
		}
	}
	return f, true
}

// warpTeams is how many teams a block of warps has that multiply by themselves.
func (f Fit) warpTeams() int { return warpCount * warpColumns / f.Columns }

// cost is about how many cycles a launch takes.
func (p *warpProduct) cost(groups [3]uint64, given Given, f Fit) uint64 {
	// Those of a stage. With more teams x is read more often, and sums are added.
	stage := map[int]uint64{64: 1000, 32: 600, 16: 420}[f.Rows] * uint64(30+f.warpTeams()) / 31
	if p.dense() {
		stage = max(stage, uint64(p.slotBytes(f)/38)) // bytes a cycle of the cache that multiprocessors share
	}
	grid, _, _ := p.Launch(groups, f)
	m := uint64(max(1, given.Multiprocessors))
	return (grid[0]*grid[1] + m - 1) / m * (uint64(f.Inner/f.Depth)*stage + 500 + 300*uint64(f.warpTeams()) + 45*uint64(f.Rows))
}

// Launch implements [Kernel].
func (p *warpProduct) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threadsOf, shared uint32) {
	if f.Teams > 0 {
		return p.product.Launch(groups, f)
	}
	grid, _, _ = p.product.Launch(groups, f)
	return grid, warpThreads, uint32(p.memory(f))
}

// A stage consists of rows of x, 64 elements for each team, and of codes likewise; scales lie behind all stages, those of all columns of a chunk before their biases.
func (p *warpProduct) codesAt(f Fit) int { return f.rowsBytes() }
func (p *warpProduct) codesPitch() int   { return warpDepth * p.bits / 8 }
func (p *warpProduct) slotBytes(f Fit) int {
	return p.codesAt(f) + warpCount*warpColumns*p.codesPitch()
}
func (p *warpProduct) scalesAt(f Fit) int   { return f.Slots * p.slotBytes(f) }
func (p *warpProduct) chunkBytes(f Fit) int { return 2 * f.Columns * f.Chunk }
func (p *warpProduct) periodOf(f Fit) int   { return f.Chunk / 2 * p.group / f.Depth }
func (p *warpProduct) chunkSlots(f Fit) int { return (f.Slots-1+p.periodOf(f)-1)/p.periodOf(f) + 1 }

// teamBytes are those of the sums of all teams but the first.
func (p *warpProduct) teamBytes(f Fit) int {
	return (f.warpTeams() - 1) * warpCount / f.warpTeams() * 32 * 4 * f.Rows
}

// scalesBytes are those of all scales and biases.
func (p *warpProduct) scalesBytes(f Fit) int {
	if p.dense() {
		return 0
	}
	return p.chunkSlots(f) * p.chunkBytes(f)
}

func (p *warpProduct) memory(f Fit) int {
	return max(p.scalesAt(f)+p.scalesBytes(f), p.teamBytes(f), 2*f.pitch()*f.Rows) + alignment
}

// warpEmitter writes one entry.
type warpEmitter struct {
	*emitter
	of *warpProduct

	// What the thread brings of a stage, by pieces of 16 bytes: where x and codes come from, and where they go to; the same of scales and biases. How many stages are left to
	// be asked for, and how many have been. Where the next one comes, and the next chunk of scales.
	x, codes           []piece
	arrays             [2]string
	scales             string
	rowsTo, codesTo    string
	hasRows, hasScales string // predicates; "": all threads have
	left, asked        string
	slot, chunkTo      string

	// Where the thread finds x, codes and scales in what it uses next, and how many stages it has read of.
	useX, useCodes, useScales string
	useSlot, useChunk, used   string

	eights      [][4]string // of a row of x of each eight, eight elements
	words       [4][]string // codes of rows eight apart
	raw         [4][2]string
	scale, bias [4]string // twice each
}

// piece is what a thread brings 16 bytes of: an address, and what is added to it. here is 16, or 0 behind the last row.
type piece struct {
	from   string
	offset int
	here   string
}

// Emit implements [Kernel].
func (p *warpProduct) Emit(launch nvptx.Launch, f Fit) []byte {
	if f.Teams > 0 {
		return p.product.Emit(launch, f)
	}
	e := &warpEmitter{of: p, emitter: &emitter{product: p.product, entry: entry{kernel: p.source, launch: launch, typ: p.elem, target: elder(launch), resident: 1}, fit: f}}
	e.parameters()
	e.place()
	e.tile(0)
	for range f.Rows {
		e.acc = append(e.acc, e.New("f"))
	}
	e.find()
	results := e.Label()
	if e.holds() {
		far := e.products(true)
		some := e.New("p")
		e.Line("bar.red.or.pred \t%s, 0, %s", some, far)
		e.Line("@!%s bra \t%s", some, results)
	}
	e.products(false)
	e.Mark(results)
	e.join()
	e.results()
	return e.text(warpThreads)
}

// find finds what the thread brings of stages, and where it finds what it multiplies.
func (e *warpEmitter) find() {
	f, pitch := e.fit, e.of.codesPitch()
	wide := e.fit.Columns
	warp := e.r("shr.u32", "%s, 5", e.thread)
	team, among := e.r("div.u32", "%s, %d", warp, warpCount/f.warpTeams()), e.r("and.b32", "%s, %d", warp, warpCount/f.warpTeams()-1)
	// As two warps of 16 columns each would have it.
	e.group, e.warp = e.r("shr.u32", "%s, 1", among), e.r("shl.b32", "%s, 1", e.r("and.b32", "%s, 1", among))
	if f.warpTeams() > 1 {
		e.others = e.Make("p", "setp.ne.u32", "%s, 0", team)
	}

	// Threads side by side bring 64 elements of a row, then those of other rows, then those of other teams.
	e.codesTo = e.r("mad.lo.s32", "%s, 16, %s", e.thread, e.r("add.s32", "%s, %d", e.base, e.of.codesAt(f)))
	units := pitch / 16
	at, unit := e.r("div.u32", "%s, %d", e.thread, units), e.r("and.b32", "%s, %d", e.thread, units-1)
	if e.dense() {
		e.codesTo = e.placeOf(at, unit, e.r("add.s32", "%s, %d", e.base, e.of.codesAt(f)))
	}
	first := e.r("mad.lo.s32", "%s, %d, %s", e.r("div.u32", "%s, %d", at, wide), pitch, e.r("shl.b32", "%s, 4", unit))
	for i := 0; i < warpCount*warpColumns; i += warpThreads / units {
		if i < wide {
			row := e.r("add.s32", "%s, %d", e.r("rem.u32", "%s, %d", at, wide), i)
			codes := e.matrix[0].codes
			if e.form == siluMul {
				codes = e.either(e.Make("p", "setp.ge.u32", "%s, %d", row, wide/2), "rd", e.matrix[1].codes, codes)
			}
			from := e.Make("rd", "mad.wide.u32", "%s, %d, %s", e.row(row), f.Inner*e.bits/8, codes)
			e.codes = append(e.codes, piece{e.plus(from, first), 0, "16"})
			continue
		}
		same := e.codes[(i%wide)*units/warpThreads]
		e.codes = append(e.codes, piece{same.from, i / wide * pitch, "16"})
	}

	at, unit = e.r("shr.u32", "%s, 3", e.thread), e.r("and.b32", "%s, 7", e.thread)
	e.rowsTo = e.placeOf(at, unit, e.base)
	first = e.r("mad.lo.s32", "%s, 128, %s", e.r("div.u32", "%s, %d", at, f.Rows), e.r("shl.b32", "%s, 4", unit))
	for i := 0; i < f.warpTeams()*f.Rows; i += warpThreads / 8 {
		if i < f.Rows {
			m := e.r("add.s32", "%s, %s", e.m0, e.r("add.s32", "%s, %d", e.r("rem.u32", "%s, %d", at, f.Rows), i))
			here := e.either(e.Make("p", "setp.lt.s32", "%s, %s", m, e.M), "r", "16", "0")
			e.x = append(e.x, piece{e.plus(e.Make("rd", "mad.wide.u32", "%s, %d, %s", m, 2*f.Inner, e.args["x"]), first), 0, here})
			continue
		}
		same := e.x[(i%f.Rows)*8/warpThreads]
		e.x = append(e.x, piece{same.from, i / f.Rows * 128, same.here})
	}
	if n := f.warpTeams() * f.Rows; n < warpThreads/8 {
		e.hasRows = e.Make("p", "setp.lt.u32", "%s, %d", at, n)
	}

	column := e.r("mad.lo.s32", "%s, %d, %s", among, warpColumns, e.quad)
	two := e.r("shl.b32", "%s, 1", e.member) // the first of the thread's two places of 16 bytes in a row
	e.useX = e.r("mad.lo.s32", "%s, %d, %s", team, f.rowsBytes()/f.warpTeams(), e.placeOf(e.quad, two, e.base))
	codes := e.r("add.s32", "%s, %d", e.base, e.of.codesAt(f))
	place := e.r("mad.lo.s32", "%s, %d, %s", team, wide, column)
	if e.dense() {
		e.useCodes = e.placeOf(place, two, codes)
	} else {
		e.useCodes = e.r("mad.lo.s32", "%s, %d, %s", place, pitch, e.r("mad.lo.s32", "%s, %d, %s", e.member, pitch/4, codes))
		e.findScales(team, column)
	}
	for range f.Rows / 8 {
		e.eights = append(e.eights, [4]string{e.New("r"), e.New("r"), e.New("r"), e.New("r")})
	}
	for i := range e.words {
		for range e.bits / 2 {
			e.words[i] = append(e.words[i], e.New("r"))
		}
		e.raw[i] = [2]string{e.New("r"), e.New("r")}
	}
	for _, r := range []*string{&e.left, &e.asked, &e.slot, &e.chunkTo, &e.useSlot, &e.useChunk, &e.used} {
		*r = e.New("r")
	}
}

// placeOf is where 16 bytes of a row of 128 lie, from a place on. Eight rows have them in different banks.
func (e *warpEmitter) placeOf(row, unit, from string) string {
	unit = e.r("xor.b32", "%s, %s", unit, e.r("and.b32", "%s, 7", row))
	return e.r("mad.lo.s32", "%s, 128, %s", row, e.r("mad.lo.s32", "%s, 16, %s", unit, from))
}

// findScales finds what the thread brings of scales and biases, and where it finds those that it uses.
func (e *warpEmitter) findScales(team, column string) {
	f, wide := e.fit, e.fit.Columns
	upper := e.Make("p", "setp.ge.u32", "%s, %d", e.thread, wide/2)
	stored := e.row(e.thread)
	for i, of := range [][2]string{{e.matrix[0].scales, e.matrix[1].scales}, {e.matrix[0].biases, e.matrix[1].biases}} {
		e.arrays[i] = e.Make("rd", "mad.wide.u32", "%s, %d, %s", stored, 2*f.Inner/e.product.group, e.either(upper, "rd", of[1], of[0]))
	}
	scales := e.r("add.s32", "%s, %d", e.base, e.of.scalesAt(f))
	e.scales = e.r("mad.lo.s32", "%s, %d, %s", e.thread, f.Chunk, scales)
	if wide < warpThreads {
		e.hasScales = e.Make("p", "setp.lt.u32", "%s, %d", e.thread, wide)
	}

	group := e.r("div.u32", "%s, %d", e.r("mad.lo.s32", "%s, 4, %s", team, e.member), e.product.group/16) // the thread's of a stage
	e.useScales = e.r("mad.lo.s32", "%s, 2, %s", group, e.r("mad.lo.s32", "%s, %d, %s", column, f.Chunk, scales))
}

// around counts a place in shared memory on, of some that lie side by side, where a predicate holds.
func (e *warpEmitter) around(place, where string, size, count int) {
	if where != "" {
		where = "@" + where + " "
	}
	e.Line("%sadd.s32 \t%s, %s, %d", where, place, place, size)
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.ge.u32", "%s, %d", place, size*count), place)
}

// bring asks for the next stage, if there is one. Addresses are counted on by it.
func (e *warpEmitter) bring() {
	f := e.fit
	some := e.Make("p", "setp.gt.s32", "%s, 0", e.left)
	also := func(p, other string) string {
		if other == "" {
			return p
		}
		return e.Make("p", "and.pred", "%s, %s", p, other)
	}
	for _, part := range []struct {
		where, to string
		pieces    []piece
		each      int // bytes of a row
	}{{also(some, e.hasRows), e.rowsTo, e.x, 2 * f.Depth}, {some, e.codesTo, e.codes, e.of.codesPitch() * f.warpTeams()}} {
		to := e.r("add.s32", "%s, %s", part.to, e.slot)
		behind := e.Make("rd", "mul.wide.u32", "%s, %d", e.asked, part.each)
		from := map[string]string{}
		for i, piece := range part.pieces {
			if from[piece.from] == "" {
				from[piece.from] = e.Make("rd", "add.s64", "%s, %s", piece.from, behind)
			}
			e.Line("@%s cp.async.cg.shared.global.L2::128B \t[%s+%d], [%s+%d], 16, %s", part.where, to, i*warpThreads*16, from[piece.from], piece.offset, piece.here)
		}
	}
	if !e.dense() {
		e.bringScales(also(some, e.hasScales))
	}
	e.Line("cp.async.commit_group")
	e.around(e.slot, "", e.of.slotBytes(f), f.Slots)
	e.Line("add.s32 \t%s, %s, 1", e.asked, e.asked)
	e.Line("sub.s32 \t%s, %s, 1", e.left, e.left)
}

// bringScales asks for the scales and biases of a row where a predicate holds, with the first stage of those that a chunk is for.
func (e *warpEmitter) bringScales(some string) {
	f := e.fit
	begins := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", e.asked, e.of.periodOf(f)-1))
	how := "ca"
	if f.Chunk == 16 {
		how = "cg"
	}
	where := e.Make("p", "and.pred", "%s, %s", some, begins)
	to := e.r("add.s32", "%s, %s", e.scales, e.chunkTo)
	behind := e.Make("rd", "mul.wide.u32", "%s, %d", e.r("div.u32", "%s, %d", e.asked, e.of.periodOf(f)), f.Chunk)
	for i, from := range e.arrays {
		e.Line("@%s cp.async.%s.shared.global \t[%s+%d], [%s], %d", where, how, to, i*e.fit.Columns*f.Chunk, e.Make("rd", "add.s64", "%s, %s", from, behind), f.Chunk)
	}
	e.around(e.chunkTo, begins, e.of.chunkBytes(f), e.of.chunkSlots(f))
}

// read reads the thread's codes and scales of the stage that is used next. Behind the last stage it reads what nobody uses.
func (e *warpEmitter) read() {
	f := e.fit
	codes := e.r("add.s32", "%s, %s", e.useCodes, e.useSlot)
	if e.dense() {
		for half, at := range []string{codes, e.r("xor.b32", "%s, 16", codes)} {
			for i, words := range e.words {
				e.Line("ld.shared.v4.b32 \t{%s}, [%s+%d]", list(words[4*half:][:4]), at, 8*i*e.of.codesPitch())
			}
		}
		return
	}
	for i, words := range e.words {
		e.Line("ld.shared.v%d.b32 \t{%s}, [%s+%d]", len(words), list(words), codes, 8*i*e.of.codesPitch())
	}
	at := e.r("add.s32", "%s, %s", e.useScales, e.useChunk)
	within := e.r("and.b32", "%s, %d", e.used, e.of.periodOf(f)-1) // the stage of those that the chunk is for
	if each := f.Depth / e.product.group; each > 0 {
		at = e.r("mad.lo.s32", "%s, %d, %s", within, 2*each, at)
	} else { // two stages have one scale
		at = e.r("add.s32", "%s, %s", at, e.r("and.b32", "%s, -2", within))
	}
	for i, r := range e.raw {
		for k, to := range r {
			e.Line("ld.shared.u16 \t%s, [%s+%d]", to, at, (8*i+k*e.fit.Columns)*f.Chunk)
		}
	}
}

// readX reads the thread's eight elements of x for one of the two halves of a stage, of one row.
func (e *warpEmitter) readX(from string, j int) {
	e.Line("ld.shared.v4.b32 \t{%s}, [%s+%d]", list(e.eights[j][:]), from, 1024*j)
}

// next counts the stage on that is used.
func (e *warpEmitter) next() {
	e.around(e.useSlot, "", e.of.slotBytes(e.fit), e.fit.Slots)
	e.Line("add.s32 \t%s, %s, 1", e.used, e.used)
	if e.dense() {
		return
	}
	ends := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", e.used, e.of.periodOf(e.fit)-1))
	e.around(e.useChunk, ends, e.of.chunkBytes(e.fit), e.of.chunkSlots(e.fit))
}

// products adds up the products of all stages, with weights that are rounded once, or twice as the term has it. It returns a predicate: if it holds for any thread, rounding
// once is not enough, and the sums cannot be used.
func (e *warpEmitter) products(once bool) (far string) {
	f := e.fit
	stages := f.Inner / f.Depth
	for _, r := range []string{e.asked, e.slot, e.chunkTo, e.useSlot, e.useChunk, e.used} {
		e.Line("mov.b32 \t%s, 0", r)
	}
	e.Line("mov.b32 \t%s, %d", e.left, stages)
	if once {
		far = e.r("mov.b32", "0")
	}
	var saved []string
	for range e.acc {
		saved = append(saved, e.Make("f", "mov.f32", "0f00000000"))
	}
	e.times(f.Slots, e.bring)
	e.Line("cp.async.wait_group \t%d", f.Slots-1)
	e.Line("bar.sync \t0")
	e.read()
	for j := range e.eights {
		e.readX(e.useX, j)
	}
	rest, end := e.r("mov.b32", "%d", stages*warpDepth), e.r("mov.b32", "0")
	phases, stage := e.Label(), e.Label()
	e.Mark(phases)
	e.Line("max.s32 \t%s, %s, 0", end, e.r("sub.s32", "%s, %d", rest, warpPhase(stages*warpDepth)))
	for _, v := range e.acc {
		e.Line("mov.f32 \t%s, 0f00000000", v)
	}
	e.Mark(stage)
	e.stage(far, once)
	e.Line("sub.s32 \t%s, %s, %d", rest, rest, warpDepth)
	e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, %s", rest, end), stage)
	for i, v := range e.acc {
		e.Line("add.rn.f32 \t%s, %s, %s", saved[i], saved[i], v)
	}
	e.Line("@%s bra \t%s", e.Make("p", "setp.gt.s32", "%s, 0", rest), phases)
	e.Line("cp.async.wait_all")
	for i, v := range e.acc {
		e.Line("mov.f32 \t%s, %s", v, saved[i])
	}
	if once {
		far = e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, %d", far, 0x80008000))
	}
	return far
}

// join adds the sums of all teams, in their order. The first one has them then.
func (e *warpEmitter) join() {
	if e.others == "" {
		return
	}
	f := e.fit
	size := e.of.teamBytes(f) / (f.warpTeams() - 1)
	own := e.r("rem.u32", "%s, %d", e.thread, warpThreads/f.warpTeams())
	number := e.r("sub.s32", "%s, 1", e.r("div.u32", "%s, %d", e.thread, warpThreads/f.warpTeams()))
	to := e.r("mad.lo.s32", "%s, 16, %s", own, e.base)
	e.Line("bar.sync \t0") // stages are done with
	first, done := e.Label(), e.Label()
	e.Line("@!%s bra \t%s", e.others, first)
	at := e.r("mad.lo.s32", "%s, %d, %s", number, size, to)
	each := 16 * warpThreads / f.warpTeams()
	for i := 0; i < len(e.acc); i += 4 {
		e.Line("st.shared.v4.f32 \t[%s+%d], {%s}", at, i/4*each, list(e.acc[i:][:4]))
	}
	e.Mark(first)
	e.Line("bar.sync \t0")
	e.Line("@%s bra \t%s", e.others, done)
	for team := range f.warpTeams() - 1 {
		for i := 0; i < len(e.acc); i += 4 {
			var v [4]string
			for j := range v {
				v[j] = e.New("f")
			}
			e.Line("ld.shared.v4.f32 \t{%s}, [%s+%d]", list(v[:]), to, team*size+i/4*each)
			for j, v := range v {
				e.Line("add.rn.f32 \t%s, %s, %s", e.acc[i+j], e.acc[i+j], v)
			}
		}
	}
	e.Mark(done)
}

// stage multiplies a stage. Before the last of its four steps all that a thread needs of it lies in registers: its place is asked for again then, and of the next stage all is
// read while tensor cores have something to do.
func (e *warpEmitter) stage(far string, once bool) {
	for i, r := range e.raw {
		if e.dense() {
			break
		}
		var both [2]string
		for k, v := range r { // an operand of fma takes one half twice as it is
			half := e.halves([]string{v})[0]
			both[k] = e.r("mov.b32", "{%s, %s}", half, half)
		}
		e.scale[i], e.bias[i] = both[0], both[1]
	}
	if far != "" {
		pair := func(i, k int) string { return e.r("prmt.b32", "%s, %s, 0x5410", e.raw[i][k], e.raw[i+1][k]) }
		for i := 0; i < len(e.raw); i += 2 {
			e.apart(e.bits, pair(i, 0), pair(i, 1), far)
		}
	}
	const steps = warpDepth / 16
	for step := range steps {
		var a [2][4]string // of 16 columns each
		for tile := range a {
			for i := range 2 {
				for j := range 2 {
					a[tile][2*j+i] = e.weights(2*tile+i, step, j, once)
				}
			}
		}
		x := ""
		switch step {
		case steps/2 - 1: // what is used next is the other half
			x = e.r("add.s32", "%s, %s", e.r("xor.b32", "%s, 16", e.useX), e.useSlot)
		case steps - 1:
			e.Line("cp.async.wait_group \t%d", e.fit.Slots-2)
			e.Line("bar.sync \t0")
			e.bring()
			e.next()
			e.read()
			x = e.r("add.s32", "%s, %s", e.useX, e.useSlot)
		}
		for j := range e.eights {
			for tile := range a {
				sums := list(e.acc[tile*e.fit.Rows/2+4*j:][:4])
				name := e.typ.String()
				e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s}, {%s}, {%s}", name, name, sums, list(a[tile][:]), strings.Join(e.eights[j][step%2*2:][:2], ", "), sums)
			}
			if x != "" {
				e.readX(x, j)
			}
		}
	}
}

// weights makes, or takes, two weights of a row, the jth two of a step.
func (e *warpEmitter) weights(row, step, j int, once bool) string {
	scale, bias := e.scale[row], e.bias[row]
	pair := 2*step + j // of the thread's 16 codes
	if e.dense() {     // its place is read into before the last ones are multiplied
		return e.r("mov.b32", "%s", e.words[row][pair])
	}
	to := e.New("r")
	if e.bits == 8 {
		word, at := e.words[row][pair/2], pair%2*2
		if !once {
			e.twiceOf(e.bits, to, word, 8*at, 8*at+8, scale, bias)
			return to
		}
		magic := e.r("mov.b32", "%d", 0x64006400) // 1024
		e.onceOf(to, e.r("prmt.b32", "%s, %s, %d", word, magic, 0x5150+at*0x0101), magic, scale, bias)
		return to
	}
	word, at := e.words[row][pair/4], pair%4 // a byte has both codes
	if !once {
		e.twiceOf(e.bits, to, word, 8*at, 8*at+4, scale, bias)
		return to
	}
	// 0xEA: (a & b) | c
	if e.typ == ir.BF16 { // the fraction has 7 bits: the second code has to lie where the first does
		both := e.r("prmt.b32", "%s, %s, %d", word, e.r("shr.u32", "%s, 4", word), 0x4400+at*0x1111)
		magic := e.r("mov.b32", "%d", 0x43004300) // 128
		code := e.r("lop3.b32", "%s, 0x000F000F, %s, 0xEA", both, magic)
		// 128 less: before compute capability 9.0 numbers of bfloat16 are subtracted by fma.
		code = e.r("fma.rn.bf16x2", "%s, %s, %s", magic, e.r("mov.b32", "%d", uint32(0xBF80BF80)), code)
		e.Line("fma.rn.bf16x2 \t%s, %s, %s, %s", to, code, scale, bias)
		return to
	}
	both := e.r("prmt.b32", "%s, 0, %d", word, 0x4040+at*0x0101)
	magic := e.r("mov.b32", "%d", 0x54006400) // 1024, and 64, whose fraction has 1 where that of 1024 has 16
	e.onceOf(to, e.r("lop3.b32", "%s, 0x00F0000F, %s, 0xEA", both, magic), magic, scale, bias)
	return to
}
