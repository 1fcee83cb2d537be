package routes

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// without returns the sizes but the one at i.
func without(s []Size, i int) []Size { return append(with(s[:i]), s[i+1:]...) }

// indexType is the type in which a kernel computes places.
func (e *Encoder) indexType(arrays ...Array) string {
	for _, a := range arrays {
		if e.at(a.Elements()) > math.MaxInt32 {
			return "int64_t"
		}
	}
	return "int"
}

// Take sends the rows of table, along its first dimension, that ids say.
func (e *Encoder) Take(table, ids Array) Array {
	e.begin()
	out := e.temporary(table.Type, append(with(ids.Shape), table.Shape[1:]...)...)
	row := product(table.Shape[1:])
	index := e.indexType(ids, table, out)
	if table.rowContiguous() && ids.rowContiguous() {
		each := int64(1)
		if e.fixed(row) > 8 && table.Type.Size() < 4 {
			each = 2
		}
		e.kernel("gather_front%s_%s_%s_%d", plain(out.Type), plain(ids.Type), index, each)
		x, y := ir.Const(ceil(e.fixed(row), each)), ids.Elements()
		e.input(0, table)
		e.input(1, ids)
		e.output(2, out)
		e.i64(3, row)
		e.i32(4, table.Dim(0))
		bx, by, bz := e.block(x, y, ir.Const(1))
		e.threads(grid(x, y, ir.Const(1)), bx, by, bz)
		return out
	}
	x, y := ir.Const(1), ir.Const(1)
	if ids.Rank() > 0 {
		x, y = ids.Dim(0), product(ids.Shape[1:])
	}
	e.kernel("gather%s%s_1_%d_%s", plain(out.Type), plain(ids.Type), ids.Rank(), index)
	e.input(0, table)
	e.output(1, out)
	e.i32(2, table.Shape...)
	e.i64(3, table.Strides...)
	e.i64(4, ir.Const(int64(table.Rank())))
	e.i32(5, append(sizes(1), table.Shape[1:]...)...)
	e.i32(6, ir.Const(0))
	e.i32(7, ids.Shape...)
	e.i64(8, ids.Strides...)
	e.flags(9, ids.rowContiguous())
	e.i32(10, ir.Const(int64(ids.Rank())))
	e.input(20, ids)
	bx, by, bz := e.block(x, y, row)
	e.threads(grid(x, y, row), bx, by, bz)
	return out
}

// flags binds bytes of 0 or 1.
func (e *Encoder) flags(slot int, values ...bool) {
	var numbers []Number
	for _, v := range values {
		numbers = append(numbers, Number{ir.Const(int64(digit(v))), 1})
	}
	e.mixed(slot, numbers...)
}

// axisLayout spells whether values and indices are row-contiguous.
func axisLayout(values, ids Array) string {
	name := func(a Array) string {
		if a.rowContiguous() {
			return "c"
		}
		return "nc"
	}
	return name(values) + name(ids)
}

// axisOperands binds what kernels along an axis take, and sends them. values has the strides that count.
func (e *Encoder) axisOperands(values, ids, out Array, axis int, length Size) {
	e.input(0, values)
	e.input(1, ids)
	e.output(2, out)
	if ids.Rank() > 1 {
		e.i32(3, without(ids.Shape, axis)...)
		e.i64(4, without(values.Strides, axis)...)
		e.i64(5, without(ids.Strides, axis)...)
	} else {
		e.i32(3, ids.Shape...)
		e.i64(4, values.Strides...)
		e.i64(5, ids.Strides...)
	}
	e.i64(6, ir.Const(int64(ids.Rank()-1)))
	e.count(7, axis)
	e.i32(8, length)
	e.i64(9, values.Strides[axis])
	e.i64(10, ids.Strides[axis])
	x, y, z := product(ids.Shape[axis+1:]), ids.Shape[axis], product(ids.Shape[:axis])
	bx, by, bz := e.block(x, y, z)
	e.threads(grid(x, y, z), bx, by, bz)
}

// TakeAlongAxis sends the elements of a that ids name along an axis.
func (e *Encoder) TakeAlongAxis(a, ids Array, axis int) Array {
	e.begin()
	out := e.temporary(a.Type, ids.Shape...)
	e.kernel("gather_axis%s%s_%s%s", plain(out.Type), plain(ids.Type), e.indexType(ids, a), axisLayout(a, ids))
	e.axisOperands(a, ids, out, axis, a.Shape[axis])
	return out
}

// copyInto returns a as memory that may be written: a copy, or a itself where it is spare.
func (e *Encoder) copyInto(a Array, fits bool) Array {
	switch {
	case isOne(a.stored()) && !isOne(a.Elements()):
		out := e.temporary(a.Type, a.Shape...)
		e.copy(copyScalar, a, out, nil, nil, nil)
		return out
	case fits:
		return e.vectorCopy(a, a.Type)
	}
	return e.contiguousCopy(a)
}

// PutAlongAxis sends a with values at the places that ids name along an axis.
func (e *Encoder) PutAlongAxis(a, ids, values Array, axis int) Array {
	e.begin()
	out := e.copyInto(a, a.rowContiguous())
	e.kernel("scatter_axis%s%s_none_%s%s", plain(out.Type), plain(ids.Type), e.indexType(ids, a), axisLayout(values, ids))
	e.axisOperands(values, ids, out, axis, out.Shape[axis])
	return out
}

// ScatterAdd sends a with updates [ids…, slice…] added to its rows along the first dimension.
func (e *Encoder) ScatterAdd(a, ids, updates Array) Array {
	e.begin()
	out := e.copyInto(a, a.rowContiguous())
	size := product(updates.Shape[ids.Rank():])
	work := scatterWork(ids.Rank(), e.at(ids.Elements())/e.at(out.Elements()))
	e.kernel("scatter%s%s_sum_1_updc_%t_nwork%d_%s", plain(out.Type), plain(ids.Type), updates.rowContiguous(), work,
		e.indexType(out, ids, updates))
	e.input(1, updates)
	e.output(2, out)
	e.i32(3, updates.Shape...)
	e.i64(4, updates.Strides...)
	e.i64(5, ir.Const(int64(updates.Rank())))
	e.i64(6, size)
	e.i32(7, out.Shape...)
	e.i64(8, out.Strides...)
	e.i64(9, ir.Const(int64(out.Rank())))
	e.i32(10, ir.Const(0))
	e.i32(11, ids.Shape...)
	e.i64(12, ids.Strides...)
	e.flags(13, ids.rowContiguous())
	e.count(14, ids.Rank())
	e.i64(15, ids.Elements())
	e.input(20, ids)
	y := ir.Const(ceil(e.fixed(ids.Elements()), work))
	bx, by, bz := e.block(size, y, ir.Const(1))
	e.threads(grid(size, y, ir.Const(1)), bx, by, bz)
	return out
}

// scatterWork is how many indices of rank 2 or more a thread takes, by how many there are for an element of
// the output.
func scatterWork(rank int, each int64) int64 {
	switch {
	case rank <= 1 || each < 1:
		return 1
	case each <= 4:
		return 4
	case each < 16:
		return 8
	case each < 32:
		return 16
	}
	return 32
}

// SliceUpdate sends a with b written at start, in steps of one.
func (e *Encoder) SliceUpdate(a, b Array, start []Size) Array {
	e.begin()
	out := e.copyInto(a, a.contiguous() && a.stored().Equal(a.Elements()))
	at := ir.Const(0)
	for i, s := range start {
		at = at.Add(times(s, out.Strides[i]))
	}
	place := copyPlace{to: at.Scale(out.Type.Size())}
	e.copyAt(copyBoth, b, out, b.Shape, b.Strides, out.Strides, place)
	return out
}

// dynamicOffset sends the place that indices along axes make in an array of these strides.
func (e *Encoder) dynamicOffset(indices Array, strides []Size, axes []int) Array {
	out := e.temporary(ir.I64, ir.Const(1))
	if indices.Spare && e.at(indices.stored())*indices.Type.Size() >= 8 {
		out.Buffer, out.Offset = indices.Buffer, indices.Offset
	}
	var numbers []Size
	for _, a := range axes {
		numbers = append(numbers, ir.Const(int64(a)))
	}
	e.kernel("compute_dynamic_offset_%s", plain(indices.Type))
	e.input(0, indices)
	e.output(1, out)
	e.i64(2, strides...)
	e.i32(3, numbers...)
	e.count(4, len(axes))
	one := ir.Const(1)
	e.threads(grid(one, one, one), 1, 1, 1)
	return out
}

// DynamicSliceUpdate is SliceUpdate at a place that memory says.
func (e *Encoder) DynamicSliceUpdate(a, b, start Array, axes []int) Array {
	e.begin()
	out := e.copyInto(a, a.contiguous() && a.stored().Equal(a.Elements()))
	place := copyPlace{dynamicTo: e.dynamicOffset(start, out.Strides, axes)}
	e.copyAt(copyBoth, b, out, b.Shape, b.Strides, out.Strides, place)
	return out
}

// DynamicSlice sends the part of a of a shape, at a place that memory says.
func (e *Encoder) DynamicSlice(a, start Array, axes []int, shape []Size) Array {
	e.begin()
	out := e.temporary(a.Type, shape...)
	place := copyPlace{dynamicFrom: e.dynamicOffset(start, a.Strides, axes)}
	e.copyAt(copyBoth, a, out, shape, a.Strides, out.Strides, place)
	return out
}
