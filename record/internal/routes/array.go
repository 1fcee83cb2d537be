package routes

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Size is a length, a stride or an offset.
type Size = ir.Affine

// Buffer is one allocation. Two arrays with the same buffer are seen as conflicting, wherever they lie in it.
type Buffer struct {
	Name  string // of an operand; a temporary or result has none
	Bytes Size   // of an operand 0 stands for no more than its array needs
}

// Array is a view of a buffer. Strides count elements, the offset counts bytes.
type Array struct {
	Buffer  *Buffer
	Type    ir.DType
	Shape   []Size
	Strides []Size
	Offset  Size
	// Spare says that nothing else needs the contents, so that a result may take the memory.
	Spare bool
}

// Present reports whether a is an array at all; operands that may be left out are not, then.
func (a Array) Present() bool { return a.Buffer != nil }

// Rank returns the number of dimensions.
func (a Array) Rank() int { return len(a.Shape) }

// Dim returns a dimension, counted from the end if i is negative.
func (a Array) Dim(i int) Size { return a.Shape[from(i, a.Rank())] }

// Stride returns a stride, counted from the end if i is negative.
func (a Array) Stride(i int) Size { return a.Strides[from(i, a.Rank())] }

func from(i, rank int) int {
	if i < 0 {
		return rank + i
	}
	return i
}

// Elements returns the number of elements of the shape.
func (a Array) Elements() Size { return product(a.Shape) }

// stored returns how many different elements the view has: dimensions with stride 0 repeat them.
func (a Array) stored() Size {
	n := ir.Const(1)
	for i, d := range a.Shape {
		if !isZero(a.Strides[i]) {
			n = times(n, d)
		}
	}
	return n
}

// rowContiguous reports whether the elements lie one after another in the order of their indices.
// Strides of dimensions of one element say nothing.
func (a Array) rowContiguous() bool {
	next := ir.Const(1)
	for i := a.Rank() - 1; i >= 0; i-- {
		if !isOne(a.Shape[i]) && !a.Strides[i].Equal(next) {
			return false
		}
		next = times(next, a.Shape[i])
	}
	return true
}

// RowContiguous is [Array.rowContiguous] for those who are handed a result.
func (a Array) RowContiguous() bool { return a.rowContiguous() }

// columnContiguous is rowContiguous with the order of the dimensions reversed.
func (a Array) columnContiguous() bool {
	next := ir.Const(1)
	for i, d := range a.Shape {
		if !isOne(d) && !a.Strides[i].Equal(next) {
			return false
		}
		next = times(next, d)
	}
	return true
}

// contiguous reports whether the elements fill a range without holes, in any order and however often.
func (a Array) contiguous() bool {
	var axes []int
	for i, d := range a.Shape {
		if !isOne(d) && !isZero(a.Strides[i]) {
			axes = append(axes, i)
		}
	}
	next := ir.Const(1)
	for len(axes) > 0 {
		at := slices.IndexFunc(axes, func(i int) bool { return a.Strides[i].Equal(next) })
		if at < 0 {
			return false
		}
		next = times(next, a.Shape[axes[at]])
		axes = slices.Delete(axes, at, at+1)
	}
	return true
}

// rowStrides returns the strides of a row-contiguous array.
func rowStrides(shape []Size) []Size {
	strides := make([]Size, len(shape))
	next := ir.Const(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = next
		next = times(next, shape[i])
	}
	return strides
}

func isZero(s Size) bool { return s.Equal(ir.Const(0)) }
func isOne(s Size) bool  { return s.Equal(ir.Const(1)) }

// times returns a·b, of which at most one depends on params. Shapes of which two dimensions do have no
// affine number of elements; the product is then the impossible size, which [Encoder] reports.
func times(a, b Size) Size {
	switch {
	case a.IsConst():
		return b.Scale(a.Const)
	case b.IsConst():
		return a.Scale(b.Const)
	}
	return impossible
}

// impossible stands for a size that is not affine. No size of memory is negative.
var impossible = ir.Const(-1 << 40)

func product(sizes []Size) Size {
	n := ir.Const(1)
	for _, s := range sizes {
		n = times(n, s)
	}
	return n
}

// broadcastShapes returns the shape of an elementwise operation on arrays of these shapes.
func broadcastShapes(a, b []Size) []Size {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := with(a)
	for i, d := range b {
		if at := i + len(a) - len(b); isOne(out[at]) {
			out[at] = d
		}
	}
	return out
}

// divide returns s/d, where that is whole for all values of the params.
func divide(s Size, d int64) Size {
	terms := append([]ir.Term(nil), s.Terms()...)
	for i := range terms {
		if terms[i].Coeff%d != 0 {
			return impossible
		}
		terms[i].Coeff /= d
	}
	return ir.Linear(s.Const/d, terms...)
}

// broadcast returns a with its elements repeated to a shape. A dimension of one element gets stride 0.
func (a Array) broadcast(shape []Size) Array {
	if slices.EqualFunc(a.Shape, shape, Size.Equal) {
		return a
	}
	strides := make([]Size, len(shape))
	for i, d := range a.Shape {
		if !isOne(d) {
			strides[i+len(shape)-a.Rank()] = a.Strides[i]
		}
	}
	a.Shape, a.Strides = shape, strides
	return a
}

// sizes returns numbers as sizes.
func sizes(numbers ...int64) []Size {
	s := make([]Size, len(numbers))
	for i, n := range numbers {
		s[i] = ir.Const(n)
	}
	return s
}

// with returns the sizes with more appended, in memory of its own.
func with(s []Size, more ...Size) []Size { return append(slices.Clone(s), more...) }
