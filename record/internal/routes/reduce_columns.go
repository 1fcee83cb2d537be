package routes

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// columns is a reduction over rows of a matrix, and what of the input lies outside of that.
type columns struct {
	shape, strides []Size // kept dimensions outside of the columns
	reduced        reduction
	size, stride   Size // of the innermost reduced dimension
	others         Size // elements of the reduced dimensions but that one
}

// columnLimits says by how much is reduced into an element, and how long the contiguous rows are,
// which kernel reduces columns. The first row that holds is taken.
var columnLimits = []struct {
	reducedFrom, reducedBelow, rowBelow, outBelow int64
	form                                          func(*Encoder, ReduceOp, Array, Array, columns)
}{
	{0, 32, math.MaxInt64, math.MaxInt64, (*Encoder).columnSmall},
	{1024, math.MaxInt64, 32, math.MaxInt64, (*Encoder).columnLong},
	{257, math.MaxInt64, math.MaxInt64, 32 * 1024, (*Encoder).columnTwoPass},
	{0, math.MaxInt64, math.MaxInt64, math.MaxInt64, (*Encoder).columnLooped},
}

// columnReduce sends a reduction over axes none of which is the innermost one in memory.
func (e *Encoder) columnReduce(op ReduceOp, in, out Array, axes []int, r reduction) {
	c := columns{
		size: r.shape[r.last()], stride: r.strides[r.last()], reduced: r,
		others: product(r.shape[:r.last()]),
	}
	c.shape, c.strides = kept(in, axes)
	for inner := ir.Const(1); len(c.shape) > 0 && e.at(inner) < e.at(c.stride); {
		last := len(c.shape) - 1
		inner = times(inner, c.shape[last])
		c.shape, c.strides = c.shape[:last], c.strides[:last]
	}
	c.shape, c.strides = e.collapseOne(c.shape, c.strides)
	reduced := e.at(times(c.size, c.others))
	for _, l := range columnLimits {
		if reduced >= l.reducedFrom && reduced < l.reducedBelow && e.at(c.stride) < l.rowBelow &&
			e.at(out.Elements()) < l.outBelow {
			l.form(e, op, in, out, c)
			return
		}
	}
}

// encode binds what all kernels over columns take.
func (c columns) encode(e *Encoder, in, out Array) {
	e.input(0, in)
	e.output(1, out)
	e.i64(2, c.size)
	e.i64(3, c.stride)
	e.shapeOrZero(4, c.shape, c.strides)
	e.shapeOrZero(7, c.reduced.shape, c.reduced.strides)
	e.i64(10, c.others)
}

// outer is the grid over the part of out outside of the columns.
func (c columns) outer(e *Encoder, out Array) (Size, Size) {
	n := out.Rank()
	for n > 0 && e.at(out.Strides[n-1]) < e.at(c.stride) {
		n--
	}
	return e.flat(out.Shape[:n], out.Strides[:n], 1)
}

func (e *Encoder) columnSmall(op ReduceOp, in, out Array, c columns) {
	t, _ := reduceTypes(op, in.Type)
	e.kernel("col_reduce_small%s_%d_reduce_%s%s", e.large(in), reduceRank(len(c.reduced.shape)), op, plain(t))
	blocks := tiles(c.stride, 4)
	x := min(blocks.Eval(e.Most), 32)
	y := min(8, 1024/x, e.at(times(c.size, c.others)))
	gx, gy := c.outer(e, out)
	c.encode(e, in, out)
	blocks = tiles(c.stride, 4*x)
	e.threadgroups([3]ir.Extent{blocks, {Num: gx, Div: 1}, {Num: gy, Div: 1}}, x, y, 1)
}

// columnLong reduces long columns of few elements in blocks, and then the blocks.
func (e *Encoder) columnLong(op ReduceOp, in, out Array, c columns) {
	t, to := reduceTypes(op, in.Type)
	reduced := e.at(times(c.size, c.others))
	blocks := int64(32)
	if reduced >= 32768 {
		blocks = 128
	}
	parts := e.temporary(to, append(sizes(blocks), out.Shape...)...)
	gx, gy := c.outer(e, out)
	e.kernel("col_reduce_longcolumn%s_%d_reduce_%s%s", e.large(in), reduceRank(len(c.reduced.shape)), op, plain(t))
	c.encode(e, in, parts)
	e.i64(11, out.Elements())
	e.threadgroups(grid(gx, gy, ir.Const(blocks)), e.at(c.stride), min(32, ceil(reduced, blocks)), 1)
	e.columnParts(op, parts, out, blocks)
}

// columnParts reduces the first dimension of parts.
func (e *Encoder) columnParts(op ReduceOp, parts, out Array, n int64) {
	c := columns{
		size: ir.Const(n), stride: out.Elements(), others: ir.Const(1),
		reduced: reduction{sizes(n), []Size{out.Elements()}},
	}
	e.kernel("col_reduce_looped%s_1_32_32_reduce_%s%s", e.large(parts), op, plain(parts.Type))
	c.encode(e, parts, out)
	e.columnOffset(11)
	e.threads(grid(ir.Const(256*ceil(e.fixed(out.Elements()), 32)), ir.Const(1), ir.Const(1)), 256, 1, 1)
}

// columnOffset binds the first column, which 0.32.4 has an argument for, and returns the slot behind it.
func (e *Encoder) columnOffset(slot int) int {
	if e.Version != Release0_32_4 {
		return slot
	}
	e.i64(slot, ir.Const(0))
	return slot + 1
}

func (e *Encoder) columnLooped(op ReduceOp, in, out Array, c columns) {
	t, _ := reduceTypes(op, in.Type)
	gx, gy := c.outer(e, out)
	e.kernel("col_reduce_looped%s_%d_32_32_reduce_%s%s", e.large(in), reduceRank(len(c.reduced.shape)), op, plain(t))
	c.encode(e, in, out)
	e.columnOffset(11)
	e.threads(grid(ir.Const(256*ceil(e.fixed(c.stride), 32)), gx, gy), 256, 1, 1)
}

func (e *Encoder) columnTwoPass(op ReduceOp, in, out Array, c columns) {
	t, to := reduceTypes(op, in.Type)
	const blocks = 32
	parts := e.temporary(to, append(sizes(blocks), out.Shape...)...)
	gx, gy := c.outer(e, out)
	e.kernel("col_reduce_2pass%s_%d_32_32_reduce_%s%s", e.large(in), reduceRank(len(c.reduced.shape)), op, plain(t))
	c.encode(e, in, parts)
	e.i64(e.columnOffset(11), ir.Const(e.fixed(out.Elements())/e.fixed(c.stride)))
	e.threads(grid(ir.Const(256*ceil(e.fixed(c.stride), 32)), gx.Scale(blocks), gy), 256, 1, 1)
	e.columnParts(op, parts, out, blocks)
}
