package ptxmatrix

import "strings"

// Weights of 16 bits are multiplied as they lie in memory: a wgmma takes both factors from shared memory, weights as the left one. There is nothing for threads to
// do but to ask for what comes next. A row of either factor has 128 bytes of a stage, which is how long the pattern is in which tensor cores want it to lie, and stages are half as long as
// those of codes, so that four have room beside 128 rows of x, or 256 if there are half as many columns.

// Of few rows a warp multiplies by itself, as it does with codes: x is kept, and a warp brings the 16 rows of weights that it multiplies and waits for no other.

// denseApart is how far apart the rows of weights are of which a thread brings 16 bytes each.
func (e *emitter) denseApart() int {
	if e.fit.Kept {
		return 4
	}
	return e.xApart()
}

// denseWeights finds what the thread brings of each stage of the weights.
func (e *emitter) denseWeights() {
	at, unit := e.xPlace()
	all, half := e.fit.columns(), ""
	if e.fit.Kept {
		at = e.r("mad.lo.s32", "%s, 16, %s", e.r("shr.u32", "%s, 5", e.thread), e.r("shr.u32", "%s, 3", e.lane))
		all, half = 16, e.Make("p", "setp.ge.u32", "%s, %d", e.thread, threads/2)
	}
	pitch := e.r("shl.b32", "%s, 1", e.K)
	offset := e.r("shl.b32", "%s, 4", unit)
	if e.begin != "" {
		offset = e.r("mad.lo.s32", "%s, 2, %s", e.begin, offset)
	}
	e.codesFrom = nil
	for i := 0; i < all; i += e.denseApart() {
		of := e.matrix[0].codes
		switch {
		case e.form != siluMul:
		case e.fit.Kept:
			of = e.either(half, "rd", e.matrix[1].codes, of)
		case i >= all/2:
			of = e.matrix[1].codes
		}
		row := e.row(e.r("add.s32", "%s, %d", at, i))
		e.codesFrom = append(e.codesFrom, e.plus(e.Make("rd", "add.s64", "%s, %s", of, e.wide(row, pitch)), offset))
	}
	swizzled := e.r("and.b32", "%s, 7", e.r("xor.b32", "%s, %s", unit, at))
	to := e.r("mad.lo.s32", "%s, %d, %s", at, 2*denseDepth, e.r("shl.b32", "%s, 4", swizzled))
	e.codesTo = e.r("add.s32", "%s, %s", to, e.densePlace())
}

// densePlace is where the weights of the first stage lie in shared memory.
func (e *emitter) densePlace() string {
	if e.fit.Kept {
		return e.r("add.s32", "%s, %d", e.base, e.fit.keptBytes())
	}
	return e.r("add.s32", "%s, %d", e.base, e.fit.rowsBytes())
}

// denseLoads finds where the thread, or its warpgroup, finds what it multiplies, and what the thread brings of each stage of x, unless that is kept.
func (e *emitter) denseLoads() {
	if e.fit.Kept {
		// Of 16 rows of the warp a lane reads two, eight apart, and of 16 columns of them two and two.
		e.codesAt = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 5", e.thread), 16*2*denseDepth, e.r("add.s32", "%s, %s", e.place16(), e.densePlace()))
		e.stages = e.r("mov.b32", "0")
		return
	}
	e.loadsRows()
	e.codesAt = e.r("mad.lo.s32", "%s, %d, %s", e.group, 64*2*denseDepth>>4, e.r("add.s32", "%s, %d", e.descriptor, e.fit.rowsBytes()>>4))
}

// bringDense asks for the weights of a stage. Where the inner index ends within it they are zeros.
func (e *emitter) bringDense() {
	to := e.r("add.s32", "%s, %s", e.codesTo, e.slotBring)
	_, unit := e.xPlace()
	size := e.within(e.r("shl.b32", "%s, 3", unit), e.left, "")
	where := ""
	if e.fit.Aligned {
		where = e.Make("p", "setp.gt.s32", "%s, 0", e.left)
	}
	for i, from := range e.codesFrom {
		at := to
		if e.fit.Kept && i%2 > 0 { // four rows on
			at = e.r("xor.b32", "%s, 64", to)
		}
		e.copy(where, at, i*e.denseApart()*2*denseDepth, from, 0, size)
		e.Line("add.s64 \t%s, %s, %d", from, from, 2*denseDepth)
	}
	e.Line("sub.s32 \t%s, %s, %d", e.left, e.left, denseDepth)
	e.next(e.slotBring)
}

// denseStage multiplies a stage, and asks for another one. Behind it the products of the stage before are done: when all threads have met again its place may be filled.
func (e *emitter) denseStage() {
	slot := e.r("shr.u32", "%s, 4", e.slotUse)
	weights, rows := e.r("add.s32", "%s, %s", e.codesAt, slot), e.r("add.s32", "%s, %s", e.descriptor, slot)
	e.Line("wgmma.fence.sync.aligned")
	name, sums := e.typ.String(), strings.Join(e.acc, ", ")
	for step := range denseDepth / 16 {
		at := func(factor string) string {
			return e.Make("rd", "mov.b64", "{%s, %s}", e.r("add.s32", "%s, %d", factor, 2*step), e.high)
		}
		e.Line("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s \t{%s}, %s, %s, %s, 1, 1, 0, 0", e.fit.Rows, name, name, sums, at(weights), at(rows), e.always)
		e.meanwhile(step)
	}
	e.Line("wgmma.commit_group.sync.aligned")
	e.Line("wgmma.wait_group.sync.aligned \t1")
	e.next(e.slotUse)
}

// denseByWarps multiplies a stage of weights that the warp has brought with x that is kept. What it asks for takes the place of the stage before, which all of the warp have read.
func (e *emitter) denseByWarps() {
	e.Line("cp.async.wait_group \t%d", e.fit.ahead()-1)
	e.Line("bar.warp.sync \t0xffffffff")
	e.meanwhile(0)
	weights := e.r("add.s32", "%s, %s", e.codesAt, e.slotUse)
	rows := e.r("mad.lo.s32", "%s, %d, %s", e.stages, e.fit.rowsBytes(), e.r("add.s32", "%s, %s", e.place16(), e.base))
	for step := range denseDepth / 16 {
		a := e.frag[step%ring]
		for half := range 2 {
			at := e.r("xor.b32", "%s, %d", weights, (2*step+half)*16)
			for i := range 2 {
				e.Line("ld.shared.b32 \t%s, [%s+%d]", a[2*half+i], at, i*8*2*denseDepth)
			}
		}
		e.multiplyByWarps(rows, step)
	}
	e.next(e.slotUse)
	e.Line("add.s32 \t%s, %s, 1", e.stages, e.stages)
}
