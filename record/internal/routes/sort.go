package routes

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// Scan sends a running sum along an axis.
func (e *Encoder) Scan(in Array, axis int, reverse, inclusive bool) Array {
	e.begin()
	out := e.like(in, in.Type)
	if !in.contiguous() || isZero(in.Strides[axis]) {
		in = e.contiguousCopy(in)
		out = in
	} else if in.Spare {
		out = in
		out.Spare = false
	}
	form, direction, which := "strided", "", "exclusive"
	contiguous := isOne(in.Strides[axis])
	if contiguous {
		form = "contig"
	}
	if reverse {
		direction = "reverse_"
	}
	if inclusive {
		which = "inclusive"
	}
	e.kernel("%s_scan_%s%s_sum_%s_%s", form, direction, which, plain(in.Type), plain(out.Type))
	e.input(0, in)
	e.output(1, out)
	n := e.fixed(in.Shape[axis])
	e.i64(2, ir.Const(n))
	each := int64(4)
	if in.Type.Size() > 4 {
		each = 2
	}
	if contiguous {
		threads := int64(1024)
		switch {
		case n <= each*1024:
			threads = roundUp(n, each*32) / each
		case n <= each*2048:
			threads = roundUp(n/2, each*32) / each
		}
		threads = min(threads, 1024)
		x, y := e.flat(in.Shape, in.Strides, n)
		e.threads(grid(ir.Const(threads), x, y), threads, 1, 1)
		return out
	}
	const tile = 32
	stride := e.fixed(in.Strides[axis])
	blocks := ceil(stride, tile)
	e.i64(3, ir.Const(stride))
	e.i64(4, ir.Const(blocks))
	threads := tile / each * 32
	x, y := e.flat(in.Shape, in.Strides, n*stride)
	if e.at(x)*blocks <= math.MaxUint32 {
		x = x.Scale(blocks)
	} else {
		y = y.Scale(blocks)
	}
	e.threads(grid(ir.Const(threads), x, y), threads, 1, 1)
	return out
}

// sortThreads are the threads of a block that sorts, each of four elements.
var sortThreads = []int64{32, 64, 128, 256, 512}

// Sort sends a sorted along an axis, or the indices that sort it.
func (e *Encoder) Sort(in Array, axis int, indices bool) Array {
	e.begin()
	const each = 4
	t := in.Type
	if indices {
		t = ir.U32
	}
	out := e.temporary(t, in.Shape...)
	n := e.fixed(in.Shape[axis])
	need := ceil(n, each)
	threads := int64(512)
	for i := len(sortThreads) - 2; i >= 0 && need <= sortThreads[i]; i-- {
		threads = sortThreads[i]
	}
	if in.Type.Size() > 4 {
		threads = min(threads, 256)
	}
	rows := divide(in.Elements(), n)
	if blocks := ceil(n, threads*each); blocks > 1 {
		e.sortBlocks(in, out, axis, threads, blocks, e.fixed(rows), indices)
	} else {
		e.sortBlock(in, out, axis, threads, rows, indices)
	}
	return out
}

// extreme reports whether a stride is the least or the greatest of an array.
func (e *Encoder) extreme(a Array, axis int) bool {
	least, greatest := true, true
	for _, s := range a.Strides {
		least = least && e.at(a.Strides[axis]) <= e.at(s)
		greatest = greatest && e.at(a.Strides[axis]) >= e.at(s)
	}
	return least || greatest
}

// sortBlock sends one threadgroup a row.
func (e *Encoder) sortBlock(in, out Array, axis int, threads int64, rows Size, indices bool) {
	contiguous := in.contiguous() && e.extreme(in, axis) && e.extreme(out, axis)
	form := "nc"
	if contiguous {
		form = "c"
	}
	if indices {
		form += "arg"
	}
	e.kernel("%s_block_sort_%s_%s_bn%d_tn4", form, plain(in.Type), plain(out.Type), threads)
	e.input(0, in)
	e.output(1, out)
	e.i32(2, in.Shape[axis])
	e.i32(3, in.Strides[axis])
	e.i32(4, out.Strides[axis])
	shape := without(in.Shape, axis)
	inStrides, outStrides := without(in.Strides, axis), without(out.Strides, axis)
	switch {
	case contiguous:
		leastIn, leastOut := int64(math.MaxInt32), int64(math.MaxInt32)
		for i, d := range shape {
			if !isOne(d) {
				leastIn, leastOut = min(leastIn, e.fixed(inStrides[i])), min(leastOut, e.fixed(outStrides[i]))
			}
		}
		e.i32(5, ir.Const(leastIn))
		e.i32(6, ir.Const(leastOut))
	case len(shape) == 0:
		e.count(5, 0)
		e.i32(6, ir.Const(0))
		e.i64(7, ir.Const(0))
		e.i64(8, ir.Const(0))
	default:
		e.count(5, len(shape))
		e.i32(6, shape...)
		e.i64(7, inStrides...)
		e.i64(8, outStrides...)
	}
	e.threadgroups(grid(ir.Const(1), rows, ir.Const(1)), threads, 1, 1)
}

// sortBlocks sorts blocks, and merges them by twos, to and fro between two pairs of arrays.
func (e *Encoder) sortBlocks(in, out Array, axis int, threads, blocks, rows int64, indices bool) {
	n := e.fixed(in.Shape[axis])
	var values, places [2]Array
	for i := range values {
		values[i] = e.temporary(in.Type, sizes(rows, n)...)
		places[i] = e.temporary(ir.U32, sizes(rows, n)...)
	}
	cuts := e.temporary(ir.U32, sizes(rows, blocks+1)...)
	tail := fmt.Sprintf("mbsort_%s_uint32_bn%d_tn4", plain(in.Type), threads)
	shape, strides := without(in.Shape, axis), without(in.Strides, axis)
	rank := len(shape)
	if rank == 0 {
		shape, strides = sizes(0), sizes(1)
	}
	e.kernel("sort_%s", tail)
	e.input(0, in)
	e.output(1, values[0])
	e.output(2, places[0])
	e.i32(3, ir.Const(n))
	e.i32(4, in.Strides[axis])
	e.count(5, rank)
	e.i32(6, shape...)
	e.i64(7, strides...)
	e.threadgroups(grid(ir.Const(blocks), ir.Const(rows), ir.Const(1)), threads, 1, 1)
	from := 0
	for merged := int64(2); merged/2 < blocks; merged *= 2 {
		to := 1 - from
		e.kernel("partition_%s", tail)
		e.output(0, cuts)
		e.input(1, values[from])
		e.input(2, places[from])
		for i, m := range []int64{n, merged, blocks} {
			e.i32(3+i, ir.Const(m))
		}
		e.threadgroups(grid(ir.Const(1), ir.Const(rows), ir.Const(1)), min(blocks+1, 1024), 1, 1)
		e.kernel("merge_%s", tail)
		e.input(0, cuts)
		e.input(1, values[from])
		e.input(2, places[from])
		e.output(3, values[to])
		e.output(4, places[to])
		for i, m := range []int64{n, merged, blocks} {
			e.i32(5+i, ir.Const(m))
		}
		e.threadgroups(grid(ir.Const(blocks), ir.Const(rows), ir.Const(1)), threads, 1, 1)
		from = to
	}
	result := values[from]
	if indices {
		result = places[from]
	}
	if axis == in.Rank()-1 {
		e.copy(copyVector, result, out, nil, nil, nil)
		return
	}
	sorted := with(out.Strides)
	for i := axis + 1; i < len(sorted); i++ {
		sorted[i] = sorted[i].Scale(n)
	}
	sorted[axis] = ir.Const(1)
	e.copy(copyGeneral, result, out, out.Shape, sorted, out.Strides)
}
