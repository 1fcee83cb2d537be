package routes

import (
	"cmp"
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// reduceOp is a reduction, as kernels' names have it.
type reduceOp string

const (
	sum   reduceOp = "sum"
	prod  reduceOp = "prod"
	most  reduceOp = "max"
	least reduceOp = "min"
	and   reduceOp = "and"
	or    reduceOp = "or"
)

// reduceTypes are the types in which a kernel reads and writes: integers are summed in at least 32 bits,
// and tested as whatever type has their width.
func reduceTypes(op reduceOp, t ir.DType) (in, out ir.DType) {
	switch op {
	case sum, prod:
		switch {
		case t == ir.Bool:
			return ir.I8, ir.I32
		case t == ir.U8 || t == ir.U16:
			return t, ir.U32
		case t == ir.I8 || t == ir.I16:
			return t, ir.I32
		}
	case and, or:
		if !t.Float() {
			t = map[int64]ir.DType{1: ir.Bool, 2: ir.I16, 4: ir.I32, 8: ir.I64}[t.Size()]
		}
		return t, ir.Bool
	}
	return t, t
}

// reduction is the dimensions that a reduction runs over, joined where they lie as one.
type reduction struct {
	shape, strides []Size
}

func (r reduction) last() int { return len(r.shape) - 1 }

// kept returns the shape and strides of in without the reduced axes.
func kept(in Array, axes []int) (shape, strides []Size) {
	reduced := map[int]bool{}
	for _, a := range axes {
		reduced[a] = true
	}
	for i := range in.Shape {
		if !reduced[i] {
			shape, strides = append(shape, in.Shape[i]), append(strides, in.Strides[i])
		}
	}
	return shape, strides
}

// reduceRank is the rank that a kernel is made for.
func reduceRank(n int) int {
	switch {
	case n <= 1:
		return 1
	case n == 2:
		return 2
	}
	return 5
}

// large is the part of a name for inputs whose places need 64 bits.
func (e *Encoder) large(in Array) string {
	if e.at(in.Elements()) > math.MaxInt32 {
		return "_large"
	}
	return ""
}

// shapeOrZero binds a shape, its strides and its rank. An empty shape is bound as one 0, of rank 0.
func (e *Encoder) shapeOrZero(slot int, shape, strides []Size) {
	if rank := len(shape); rank == 0 {
		e.i32(slot, ir.Const(0))
		e.i64(slot+1, ir.Const(0))
	} else {
		e.i32(slot, shape...)
		e.i64(slot+1, strides...)
	}
	e.count(slot+2, len(shape))
}

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
	form                                          func(*Encoder, reduceOp, Array, Array, columns)
}{
	{0, 32, math.MaxInt64, math.MaxInt64, (*Encoder).columnSmall},
	{1024, math.MaxInt64, 32, math.MaxInt64, (*Encoder).columnLong},
	{257, math.MaxInt64, math.MaxInt64, 32 * 1024, (*Encoder).columnTwoPass},
	{0, math.MaxInt64, math.MaxInt64, math.MaxInt64, (*Encoder).columnLooped},
}

// columnReduce sends a reduction over axes none of which is the innermost one in memory.
func (e *Encoder) columnReduce(op reduceOp, in, out Array, axes []int, r reduction) {
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

func (e *Encoder) columnSmall(op reduceOp, in, out Array, c columns) {
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
func (e *Encoder) columnLong(op reduceOp, in, out Array, c columns) {
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
func (e *Encoder) columnParts(op reduceOp, parts, out Array, n int64) {
	c := columns{
		size: ir.Const(n), stride: out.Elements(), others: ir.Const(1),
		reduced: reduction{sizes(n), []Size{out.Elements()}},
	}
	e.kernel("col_reduce_looped%s_1_32_32_reduce_%s%s", e.large(parts), op, plain(parts.Type))
	c.encode(e, parts, out)
	e.threads(grid(ir.Const(256*ceil(e.fixed(out.Elements()), 32)), ir.Const(1), ir.Const(1)), 256, 1, 1)
}

func (e *Encoder) columnLooped(op reduceOp, in, out Array, c columns) {
	t, _ := reduceTypes(op, in.Type)
	gx, gy := c.outer(e, out)
	e.kernel("col_reduce_looped%s_%d_32_32_reduce_%s%s", e.large(in), reduceRank(len(c.reduced.shape)), op, plain(t))
	c.encode(e, in, out)
	e.threads(grid(ir.Const(256*ceil(e.fixed(c.stride), 32)), gx, gy), 256, 1, 1)
}

func (e *Encoder) columnTwoPass(op reduceOp, in, out Array, c columns) {
	t, to := reduceTypes(op, in.Type)
	const blocks = 32
	parts := e.temporary(to, append(sizes(blocks), out.Shape...)...)
	gx, gy := c.outer(e, out)
	e.kernel("col_reduce_2pass%s_%d_32_32_reduce_%s%s", e.large(in), reduceRank(len(c.reduced.shape)), op, plain(t))
	c.encode(e, in, parts)
	e.i64(11, ir.Const(e.fixed(out.Elements())/e.fixed(c.stride)))
	e.threads(grid(ir.Const(256*ceil(e.fixed(c.stride), 32)), gx.Scale(blocks), gy), 256, 1, 1)
	e.columnParts(op, parts, out, blocks)
}

// allReduce sends the reduction of all elements, which lie without holes: in one threadgroup up to 4096, else
// in rows, and then the rows.
func (e *Encoder) allReduce(op reduceOp, in, out Array) {
	const each = 4
	n := e.fixed(in.Elements())
	t, to := reduceTypes(op, in.Type)
	e.kernel("all_reduce_%s%s", op, plain(t))
	if n <= each*1024 {
		threads := roundUp(ceil(n, each), 32)
		e.allReducePart(in, out, n, n, threads, 1)
		return
	}
	rows, second := int64(32*each), int64(32)
	if n*in.Type.Size() > 1<<26 {
		rows, second = 1024*each, 1024
	}
	parts := e.temporary(to, ir.Const(rows))
	row := ceil(n, rows)
	e.allReducePart(in, parts, n, row, roundUp(min(ceil(row, each), 1024), 32), rows)
	e.kernel("all_reduce_%s%s", op, plain(to))
	e.allReducePart(parts, out, rows, rows, second, 1)
}

func (e *Encoder) allReducePart(in, out Array, n, row, threads, rows int64) {
	e.input(0, in)
	e.output(1, out)
	e.i64(2, ir.Const(n))
	e.i64(3, ir.Const(row))
	e.threads(grid(ir.Const(threads), ir.Const(rows), ir.Const(1)), threads, 1, 1)
}

// reductionPlan is how a reduction walks the input.
type reductionPlan int

const (
	reduceAll     reductionPlan = iota // everything, which lies without holes
	reduceRows                         // the innermost dimension, of a row-contiguous input
	reduceAnyRows                      // the innermost dimension in memory
	reduceColumns                      // others
	reduceCopy                         // none of these: of a copy
)

// Reduce sends a reduction over axes, in ascending order.
func (e *Encoder) Reduce(op reduceOp, in Array, axes []int) Array {
	e.begin()
	if boolean := map[reduceOp]reduceOp{most: or, least: and}; in.Type == ir.Bool && boolean[op] != "" {
		op = boolean[op]
	}
	_, t := reduceTypes(op, in.Type)
	shape, _ := kept(in, axes)
	if product(shape).Equal(in.Elements()) {
		out := e.AsType(in, t)
		if out.Buffer == in.Buffer {
			out = e.copyInto(in, in.contiguous())
		}
		out.Shape, out.Strides = kept(out, axes)
		return out
	}
	out := e.temporary(t, shape...)
	out.Buffer.Bytes = ir.Const(max(4, e.fixed(out.Buffer.Bytes)))
	plan, r := e.plan(in, axes)
	if plan == reduceCopy {
		in = e.contiguousCopy(in)
		plan, r = e.plan(in, axes)
	}
	switch plan {
	case reduceAll:
		e.allReduce(op, in, out)
	case reduceRows, reduceAnyRows:
		e.rowReduce(op, in, out, axes, r, plan == reduceRows)
	default:
		e.columnReduce(op, in, out, axes, r)
	}
	return out
}

// plan returns how a reduction walks in, and the reduced dimensions, joined where they lie as one.
func (e *Encoder) plan(in Array, axes []int) (reductionPlan, reduction) {
	if in.contiguous() && in.stored().Equal(in.Elements()) && len(axes) == in.Rank() {
		return reduceAll, reduction{}
	}
	if in.rowContiguous() {
		r := neighbours(in, axes)
		if isOne(r.strides[r.last()]) {
			return reduceRows, r
		}
		return reduceColumns, r
	}
	r := e.byStride(in, axes)
	switch inner := r.strides[r.last()]; {
	case isOne(inner):
		return reduceAnyRows, r
	case e.at(inner) > 1 && e.columnsFit(in, axes, e.at(inner)):
		return reduceColumns, r
	}
	return reduceCopy, r
}

// neighbours joins axes that follow one another, and leaves out those of one element.
func neighbours(in Array, axes []int) reduction {
	var all, r reduction
	for i, a := range axes {
		if last := all.last(); i > 0 && axes[i-1] == a-1 && !isOne(in.Shape[a]) {
			all.shape[last], all.strides[last] = times(all.shape[last], in.Shape[a]), in.Strides[a]
		} else {
			all.shape, all.strides = append(all.shape, in.Shape[a]), append(all.strides, in.Strides[a])
		}
	}
	for i, d := range all.shape {
		if !isOne(d) {
			r.shape, r.strides = append(r.shape, d), append(r.strides, all.strides[i])
		}
	}
	return r
}

// byStride sorts axes by their strides, those that repeat elements first, then from the greatest on, and joins
// those that lie as one.
func (e *Encoder) byStride(in Array, axes []int) reduction {
	var r reduction
	axes = slices.DeleteFunc(slices.Clone(axes), func(a int) bool { return isOne(in.Shape[a]) })
	slices.SortFunc(axes, func(a, b int) int {
		x, y := e.at(in.Strides[a]), e.at(in.Strides[b])
		if (x == 0) != (y == 0) {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
	for _, a := range axes {
		r.shape, r.strides = append(r.shape, in.Shape[a]), append(r.strides, in.Strides[a])
	}
	for i := r.last(); i >= 1; i-- {
		if r.strides[i-1].Equal(times(r.shape[i], r.strides[i])) {
			r.shape[i-1], r.strides[i-1] = times(r.shape[i-1], r.shape[i]), r.strides[i]
			r.shape, r.strides = slices.Delete(r.shape, i, i+1), slices.Delete(r.strides, i, i+1)
		}
	}
	return r
}

// columnsFit reports whether the dimensions behind the innermost reduced one are row-contiguous, so that columns
// of that stride can be reduced. Where one of them repeats elements there must be more than the stride.
func (e *Encoder) columnsFit(in Array, axes []int, stride int64) bool {
	size, repeated := int64(1), false
	for i := in.Rank() - 1; i >= 0; i-- {
		if axes[len(axes)-1] == i || isZero(in.Strides[i]) && isOne(in.Shape[i]) {
			continue
		}
		if isZero(in.Strides[i]) {
			repeated = true
			break
		}
		if e.at(in.Strides[i]) != size && !isOne(in.Shape[i]) {
			break
		}
		size *= e.at(in.Shape[i])
	}
	return size > stride || size == stride && !repeated
}

// rowReduce sends a reduction whose innermost dimension is the innermost one in memory.
func (e *Encoder) rowReduce(op reduceOp, in, out Array, axes []int, r reduction, whole bool) {
	t, _ := reduceTypes(op, in.Type)
	row := e.fixed(r.shape[r.last()])
	outer := reduction{r.shape[:r.last()], r.strides[:r.last()]}
	others := e.fixed(product(outer.shape))
	x, y := e.flat(out.Shape, out.Strides, 1)
	encode := func() {
		e.input(0, in)
		e.output(1, out)
		e.i64(2, ir.Const(row))
		e.i64(3, ir.Const(others))
		shape, strides := kept(in, axes)
		shape, strides = e.collapseOne(shape, strides)
		e.shapeOrZero(4, shape, strides)
		e.shapeOrZero(7, outer.shape, outer.strides)
	}
	name := func(form string) {
		e.kernel("row_reduce_%s%s_%d_reduce_%s%s", form, e.large(in), reduceRank(len(outer.shape)), op, plain(t))
	}
	threads := rowReduceThreads(row)
	switch rows := e.at(in.Elements()) / row; {
	case row <= 64 && (others < 32 && row <= 8 || others <= 8):
		name("small")
		encode()
		e.threads(grid(x, y, ir.Const(1)), min(e.at(x), 1024), 1, 1)
	case row <= 64:
		name("small")
		encode()
		e.threads(grid(ir.Const(32), x, y), 32, 1, 1)
	case whole && len(outer.shape) == 0 && rows >= 32:
		e.kernel("row_reduce_simple_%s%s", op, plain(t))
		if in.Type.Size() == 8 {
			threads = min(threads, 512)
		}
		e.input(0, in)
		e.output(1, out)
		e.i64(2, ir.Const(row))
		e.i64(3, out.Elements())
		e.threads([3]ir.Extent{ir.Ext(threads), tiles(x, 4), {Num: y, Div: 1}}, threads, 1, 1)
	default:
		name("looped")
		encode()
		e.threads(grid(ir.Const(threads), x, y), threads, 1, 1)
	}
}

// rowReduceThreads is how many threads reduce a row.
func rowReduceThreads(row int64) int64 {
	switch {
	case row <= 512:
		return 32
	case row <= 1024:
		return 128
	}
	return min(1024, roundUp(ceil(row, 4), 32))
}

// ArgReduce sends argmin or argmax over an axis, as u32.
func (e *Encoder) ArgReduce(op string, in Array, axis int) Array {
	e.begin()
	shape, strides := kept(in, []int{axis})
	out := e.temporary(ir.U32, shape...)
	n := e.fixed(in.Shape[axis])
	threads := roundUp(min(ceil(n, 4), 1024), 32)
	e.kernel("%s_%s", op, plain(in.Type))
	e.input(0, in)
	e.output(1, out)
	if len(shape) == 0 {
		e.i32(2, ir.Const(0))
		e.i64(3, ir.Const(0))
		e.i64(4, ir.Const(0))
	} else {
		e.i32(2, shape...)
		e.i64(3, strides...)
		e.i64(4, out.Strides...)
	}
	e.i64(5, ir.Const(int64(len(shape))))
	e.i64(6, in.Strides[axis])
	e.i64(7, ir.Const(n))
	x, y := e.flat(out.Shape, out.Strides, 1)
	e.threads(grid(ir.Const(threads), x, y), threads, 1, 1)
	return out
}
