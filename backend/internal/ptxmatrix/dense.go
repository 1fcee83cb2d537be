package ptxmatrix

import "strings"

// Weights of 16 bits are multiplied as they lie in memory: a wgmma takes both factors from shared memory, weights as the left one. There is nothing for threads to
// do but to ask for what comes next. A row of either factor has 128 bytes of a stage, which is how long the pattern is in which tensor cores want it to lie, and stages are half as long as
// those of codes, so that four have room beside 128 rows of x, or 256 if there are half as many columns.

// denseWeights finds what the thread brings of each stage of the weights.
func (e *emitter) denseWeights() {
	at, unit := e.xPlace() // rows of both factors are brought in one way
	columns := e.fit.columns()
	pitch := e.r("shl.b32", "%s, 1", e.K)
	offset := e.r("shl.b32", "%s, 4", unit)
	if e.begin != "" {
		offset = e.r("mad.lo.s32", "%s, 2, %s", e.begin, offset)
	}
	e.codesFrom = nil
	for i := 0; i < columns; i += e.xApart() {
		of := e.matrix[0]
		if e.form == siluMul && i >= columns/2 {
			of = e.matrix[1]
		}
		row := e.row(e.r("add.s32", "%s, %d", at, i))
		e.codesFrom = append(e.codesFrom, e.plus(e.Make("rd", "add.s64", "%s, %s", of.codes, e.wide(row, pitch)), offset))
	}
	swizzled := e.r("and.b32", "%s, 7", e.r("xor.b32", "%s, %s", unit, at))
	to := e.r("mad.lo.s32", "%s, %d, %s", at, 2*denseDepth, e.r("shl.b32", "%s, 4", swizzled))
	e.codesTo = e.r("add.s32", "%s, %s", e.r("add.s32", "%s, %d", to, e.fit.rowsBytes()), e.base)
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
		e.copy(where, to, i*e.xApart()*2*denseDepth, from, 0, size)
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
