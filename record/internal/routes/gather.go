package routes

import (
	"github.com/mlxc/mlxc/ir"
)

// gatherSorted says from how many products on, and how many for each matrix, sorted indices make
// neighbouring rows share a matrix.
var gatherSorted = struct{ products, each int64 }{16, 4}

// GatherQMM sends x[lhs]·m[rhs]: each pair of indices takes a matrix of x and one of m. Either array of
// indices may be left out, and then counts the matrices of its operand. sorted says that those of m ascend.
func (e *Encoder) GatherQMM(x Array, m Matrix, lhs, rhs Array, sorted bool) Array {
	n, ok := e.outer(m)
	if !ok {
		return Array{}
	}
	counted := !lhs.Present()
	if !lhs.Present() {
		lhs = e.indices(x)
	}
	if !rhs.Present() {
		rhs = e.indices(m.Codes)
	}
	batch := broadcastShapes(lhs.Shape, rhs.Shape)
	lhs, rhs = lhs.broadcast(batch), rhs.broadcast(batch)
	e.begin()
	if e.Version == August2024 {
		return e.seedGatherQMM(x, m, lhs, rhs)
	}
	out := e.temporary(x.Type, append(with(batch), x.Dim(-2), ir.Const(n))...)
	x, m = e.contiguousMatrix(x), e.contiguousMatrices(m)
	p := quantizedProduct{x: x, m: m, out: out, rows: x.Dim(-2), k: e.fixed(x.Dim(-1)), n: n, batch: product(batch)}
	if e.Flat {
		p.x, p.m.Codes, p.m.Scales, p.m.Biases = e.stacked(x), e.stacked(m.Codes), e.stacked(m.Scales), e.stacked(m.Biases)
	}
	e.take(e.gatherWays(p, lhs, rhs, sorted && counted))
	return out
}

// gatherWays lists how a gathered product can be sent, what MLX takes first. inOrder says that the matrices of x are
// taken in their order, and those of m in ascending order.
func (e *Encoder) gatherWays(p quantizedProduct, lhs, rhs Array, inOrder bool) (ways []way) {
	add := func(when bool, kernel string, send func()) {
		if when {
			ways = append(ways, way{kernel, send})
		}
	}
	m := p.m
	matrices, rows, products := e.at(product(m.Codes.Shape[:m.Codes.Rank()-2])), e.at(p.rows), e.at(p.batch)
	many, tail := "gather_qmm_n", ""
	few, tile := "gather_qvm", p.columnTile()
	rhsForm := "nn"
	if m.Transposed {
		many, tail = "gather_qmm_t", aligned(p.n, 32)
		few, tile = "gather_qmv", 8
		rhsForm = "nt"
	}
	sortedKernel := p.name("gather_qmm_rhs_"+rhsForm) + "_bm_16_bn_32_bk_32_wm_1_wn_2"
	sendFew := func() {
		e.gathered(p, lhs, rhs, ir.Const(p.k), ir.Const(p.n))
		e.threadgroups(grid(p.rows, ir.Const(ceil(p.n, tile)), p.batch), 32, 2, 1)
	}
	// MLX sends as many rows as x has, and so leaves results out where x is broadcast: another kernel is taken then, but at
	// the commit, which captures are held against.
	whole := p.batch.IsConst() && p.x.Elements().Equal(p.batch.Scale(p.k))
	inOrder = inOrder && (e.Version == Commit846d1762 || whole)
	add(rows == 1 && inOrder && products >= gatherSorted.products && products/matrices >= gatherSorted.each,
		sortedKernel, func() { e.gatherRows(sortedKernel, p, rhs, matrices) })
	add(rows >= e.Chip.matrixFrom(m, p.k, p.n), p.name(many)+tail, func() {
		e.gathered(p, lhs, rhs, ir.Const(p.k), ir.Const(p.n), p.rows)
		e.threadgroups([3]ir.Extent{ir.Ext(ceil(p.n, 32)), tiles(p.rows, 32), {Num: p.batch, Div: 1}}, 32, 2, 2)
	})
	add(m.Transposed && p.fast(Commit846d1762), p.name("gather_qmv_fast"), sendFew) // of 0.32.4 too
	add(true, p.name(few), sendFew)
	return ways
}

// indices returns the numbers of the matrices of a.
func (e *Encoder) indices(a Array) Array {
	batch := a.Shape[:a.Rank()-2]
	i := e.Arange(ir.U32, product(batch), ir.Const(0), ir.Const(1))
	i.Shape, i.Strides = with(batch), rowStrides(batch)
	return i
}

// gathered binds the operands of a gathered product, numbers of 4 bytes, the shapes, and how the indices lie.
func (e *Encoder) gathered(p quantizedProduct, lhs, rhs Array, numbers ...Size) {
	for i, a := range []Array{p.m.Codes, p.m.Scales, p.m.Biases, p.x, lhs, rhs} {
		e.input(i, a)
	}
	e.output(6, p.out)
	for i, n := range numbers {
		e.i32(7+i, n)
	}
	slot := e.shapes(7+len(numbers), p)
	shape, strides := e.collapse(lhs.Shape, lhs.Strides, rhs.Strides)
	e.count(slot, len(shape))
	e.i32(slot+1, shape...)
	e.i64(slot+2, strides[0]...)
	e.i64(slot+3, strides[1]...)
}

// gatherRows sends one product for all rows, each with the matrix of its index. The kernel of 0.32.4 finds it by where
// the rows of each matrix begin, which another kernel says first.
func (e *Encoder) gatherRows(kernel string, p quantizedProduct, rhs Array, matrices int64) {
	rhs = e.rowContiguous(rhs)
	x := p.x
	if each := times(x.Dim(-2), x.Dim(-1)); !times(rhs.Elements(), each).Equal(x.Elements()) {
		x = x.broadcast(append(with(rhs.Shape), x.Dim(-2), x.Dim(-1)))
	}
	x = e.rowContiguous(x)
	for _, a := range []*Array{&p.m.Codes, &p.m.Scales, &p.m.Biases} {
		*a = e.rowContiguous(*a)
	}
	rows := divide(p.x.Elements(), p.k)
	tileRows := tiles(rows, 16)
	if e.Version == Release0_32_4 {
		m := e.fixed(rows)
		offsets := e.temporary(ir.I32, ir.Const(matrices))
		e.kernel("gather_mm_offsets")
		e.input(0, rhs)
		e.output(1, offsets)
		e.i32(2, rows)
		e.threads(grid(ir.Const(matrices), ir.Const(1), ir.Const(1)), min(1024, matrices), 1, 1)
		rhs, tileRows = offsets, ir.Ext(min(m, ceil(m, 16)+matrices-1))
	}
	e.next.Kernel = kernel // others have been sent meanwhile
	if e.Version != Release0_32_4 {
		e.constant(200, e.fixed(rows)%16 == 0)
	}
	e.constant(201, p.n%32 == 0)
	e.constant(202, p.k%32 == 0)
	for i, a := range []Array{x, p.m.Codes, p.m.Scales, p.m.Biases, rhs} {
		e.input(i, a)
	}
	e.output(5, p.out)
	e.i32(6, rows)
	e.i32(7, ir.Const(p.n))
	e.i32(8, ir.Const(p.k))
	if e.Version == Release0_32_4 {
		e.i32(9, ir.Const(matrices))
	}
	e.threadgroups([3]ir.Extent{ir.Ext(ceil(p.n, 32)), tileRows, ir.Ext(1)}, 32, 2, 1)
}

// Arange sends start, start + step and so on, n of them. Start and step of a floating-point type are its bits.
func (e *Encoder) Arange(t ir.DType, n, start, step Size) Array {
	e.begin()
	out := e.temporary(t, n)
	e.kernel("arange%s", plain(t))
	e.numbers(0, int(t.Size()), []Size{start})
	e.numbers(1, int(t.Size()), []Size{step})
	e.output(2, out)
	e.threads(grid(n, ir.Const(1), ir.Const(1)), min(1024, e.at(n)), 1, 1)
	return out
}
