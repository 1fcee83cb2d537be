package routes

import (
	"github.com/mlxc/mlxc/ir"
)

// GatherMM sends a[lhs]·b[rhs], as [Encoder.GatherQMM] of matrices that are not quantized.
func (e *Encoder) GatherMM(a, b, lhs, rhs Array, sorted bool) Array {
	counted := !lhs.Present()
	if !lhs.Present() {
		lhs = e.indices(a)
	}
	if !rhs.Present() {
		rhs = e.indices(b)
	}
	batch := broadcastShapes(lhs.Shape, rhs.Shape)
	lhs, rhs = lhs.broadcast(batch), rhs.broadcast(batch)
	e.begin()
	out := e.temporary(a.Type, append(with(batch), a.Dim(-2), b.Dim(-1))...)
	m, n, k := e.fixed(a.Dim(-2)), e.fixed(b.Dim(-1)), e.fixed(a.Dim(-1))
	switch {
	case m == 1 && sorted && counted && e.Version == Commit846d1762:
		e.gatherMatrices(a, b, rhs, out)
	case m == 1:
		e.gatherVector(b, a, rhs, lhs, out, n, k, false)
	case n == 1:
		e.gatherVector(a, b, lhs, rhs, out, m, k, true)
	case !e.gatherWide(a, b, lhs, rhs, out, m, n, k):
		e.gatherPairs(a, b, lhs, rhs, out, m, n, k)
	}
	return out
}

// gatherWide is gemvWide for each pair of indices, where b lies transposed and a does not.
func (e *Encoder) gatherWide(a, b, lhs, rhs, out Array, m, n, k int64) bool {
	rank := a.Rank()
	if isOne(b.Stride(-1)) || !isOne(b.Stride(-2)) || !isOne(a.Stride(-1)) && isOne(a.Stride(-2)) {
		return false
	}
	rows, copied := a, !isOne(a.Stride(-1))
	if copied { // the copy is sent only if the tile is taken
		rows.Strides, rows.Offset = rowStrides(a.Shape), ir.Const(0)
	}
	left, right := side{rows, false, rows.Stride(-2)}, side{b, true, b.Stride(-1)}
	w, ok := e.wide(left, right, m, n, k, out.Type, rows.Strides[:rank-2], b.Strides[:b.Rank()-2])
	if !ok {
		return false
	}
	if copied {
		rows = e.contiguousCopy(a)
	}
	e.kernel("gemv_wide_gather_%s_nv%d_kl%d", plain(out.Type), w.vectors, w.lanes)
	e.constant(1, false)
	e.input(0, b)
	e.input(1, rows)
	e.output(3, out)
	for i, v := range []Size{ir.Const(k), ir.Const(n), ir.Const(m), right.step, left.step} {
		e.i32(4+i, v)
	}
	e.count(11, out.Rank()-2)
	e.i32(12, out.Shape...)
	strides := append(with(lhs.Strides), rhs.Strides...)
	if len(strides) == 0 {
		strides = sizes(0, 0)
	}
	e.i64(13, strides...)
	for i, x := range []Array{rows, b} {
		e.count(14+3*i, x.Rank()-2)
		e.i32(15+3*i, x.Shape...)
		e.i64(16+3*i, x.Strides...)
	}
	e.input(20, lhs)
	e.input(21, rhs)
	e.threadgroups(grid(ir.Const(w.passes), ir.Const(ceil(n, 4)), divide(out.Elements(), m*n)), 32, w.lanes/8, 1)
	return true
}

// gatherPairs sends a product of matrices for each pair of indices.
func (e *Encoder) gatherPairs(a, b, lhs, rhs, out Array, m, n, k int64) {
	left, right := e.side(a, false), e.side(b, false)
	rank, batch := out.Rank()-2, e.fixed(divide(out.Elements(), m*n))
	t := e.Chip.matrixTile(out.Type, left, right, m, n, k, batch)
	e.next.Kernel = steelName("gather_mm", left.letter(), right.letter(), a.Type, out.Type, t)
	e.constant(10, rank > 1)
	e.alignment(t, m, n, k)
	for i, x := range []Array{left.Array, right.Array, lhs, rhs} {
		e.input(i, x)
	}
	e.output(4, out)
	strides := [3]Size{ir.Const(0), ir.Const(0), ir.Const(m * n)}
	if rank > 0 {
		strides[0], strides[1] = lhs.Strides[0], rhs.Strides[0]
	}
	e.mixed(5, gemmParams(t, m, n, k, left.step, right.step, strides, rank)...)
	e.i32(6, lhs.Shape...)
	e.i64(7, lhs.Strides...)
	e.i64(8, rhs.Strides...)
	for i, x := range []side{left, right} {
		e.count(9+3*i, x.Rank()-2)
		e.i32(10+3*i, x.Shape...)
		e.i64(11+3*i, x.Strides...)
	}
	e.threadgroups(grid(ir.Const(ceil(n, t.bn)), ir.Const(ceil(m, t.bm)), ir.Const(batch)), 32, t.wn, t.wm)
}

// gatherMatrices sends one product for all rows, each with the matrix of its index.
func (e *Encoder) gatherMatrices(a, b, rhs, out Array) {
	rhs = e.rowContiguous(rhs)
	right := e.batchSide(b)
	if each := times(a.Dim(-2), a.Dim(-1)); !times(rhs.Elements(), each).Equal(a.Elements()) {
		a = a.broadcast(append(with(rhs.Shape), a.Dim(-2), a.Dim(-1)))
	}
	a = e.rowContiguous(a)
	k, n := e.fixed(a.Dim(-1)), e.fixed(b.Dim(-1))
	m := e.fixed(divide(a.Elements(), k))
	t := matrixTile{16, 64, 16, 1, 2}
	e.next.Kernel = steelName("gather_mm_rhs", "n", right.letter(), a.Type, out.Type, t)
	e.alignment(t, m, n, k)
	e.input(0, a)
	e.input(1, right.Array)
	e.input(2, rhs)
	e.output(3, out)
	matrix := right.Elements()
	if right.Rank() > 2 {
		matrix = right.Stride(-3)
	}
	e.mixed(4, gemmParams(t, m, n, k, ir.Const(k), right.step, [3]Size{ir.Const(0), matrix, ir.Const(0)}, 0)...)
	e.threadgroups(grid(ir.Const(ceil(n, t.bn)), ir.Const(ceil(m, t.bm)), ir.Const(1)), 32, t.wn, t.wm)
}

// batchSide is side for matrices whose batch must lie as one dimension.
func (e *Encoder) batchSide(a Array) side {
	if a.rowContiguous() {
		return side{a, false, a.Stride(-2)}
	}
	joined := true
	for i := 0; i < a.Rank()-3; i++ {
		joined = joined && times(a.Strides[i+1], a.Shape[i]).Equal(a.Strides[i])
	}
	row, column := a.Stride(-2), a.Stride(-1)
	one := isOne(a.Dim(-1))
	switch {
	case joined && isOne(column) && (!one || row.Equal(a.Dim(-1))):
		return side{a, false, row}
	case joined && isOne(row) && (!one || column.Equal(a.Dim(-2))):
		return side{a, true, column}
	}
	a = e.contiguousCopy(a)
	return side{a, false, a.Stride(-2)}
}

// gatherVector sends products of one vector and one matrix for each pair of indices.
func (e *Encoder) gatherVector(matrix, vector, matrixIndices, vectorIndices, out Array, n, k int64, matrixFirst bool) {
	mat, vec := e.side(matrix, n == 1), e.side(vector, true)
	transposed := mat.transposed != !matrixFirst
	t := vectorTileOf(transposed, k, n, true)
	name := "gemv_gather"
	if transposed {
		name = "gemv_t_gather"
	}
	e.kernel("%s_%s_bm%d_bn%d_sm%d_sn%d_tm%d_tn%d", name, plain(out.Type), t.BM, t.BN, t.SM, t.SN, t.TM, t.TN)
	e.input(0, mat.Array)
	e.input(1, vec.Array)
	e.output(3, out)
	e.i32(4, ir.Const(k))
	e.i32(5, ir.Const(n))
	e.i32(6, mat.step)
	e.count(9, out.Rank()-2)
	e.i32(10, out.Shape...)
	e.i64(11, append(with(vectorIndices.Strides), matrixIndices.Strides...)...)
	for i, a := range []Array{vec.Array, mat.Array} {
		e.count(12+3*i, a.Rank()-2)
		e.i32(13+3*i, a.Shape...)
		e.i64(14+3*i, a.Strides...)
	}
	e.input(18, vectorIndices)
	e.input(19, matrixIndices)
	e.threadgroups(grid(ir.Const(ceil(n, t.Results)), ir.Const(1), divide(out.Elements(), n)), 32, t.BN, t.BM)
}
