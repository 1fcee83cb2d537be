package routes

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// ReduceOp is a reduction, as kernels' names have it: sum, prod, max, min, and, or.
type ReduceOp string

const (
	sum   ReduceOp = "sum"
	prod  ReduceOp = "prod"
	most  ReduceOp = "max"
	least ReduceOp = "min"
	and   ReduceOp = "and"
	or    ReduceOp = "or"
)

// reduceTypes are the types in which a kernel reads and writes: integers are summed in at least 32 bits,
// and tested as whatever type has their width.
func reduceTypes(op ReduceOp, t ir.DType) (in, out ir.DType) {
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

// allReduce sends the reduction of all elements, which lie without holes: in one threadgroup up to 4096, else
// in rows, and then the rows.
func (e *Encoder) allReduce(op ReduceOp, in, out Array) {
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

// Reduce sends a reduction over axes, in ascending order.
func (e *Encoder) Reduce(op ReduceOp, in Array, axes []int) Array {
	e.begin()
	if boolean := map[ReduceOp]ReduceOp{most: or, least: and}; in.Type == ir.Bool && boolean[op] != "" {
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

// rowReduce sends a reduction whose innermost dimension is the innermost one in memory.
func (e *Encoder) rowReduce(op ReduceOp, in, out Array, axes []int, r reduction, whole bool) {
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
