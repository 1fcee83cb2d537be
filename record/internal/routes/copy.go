package routes

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// copyKind is how a copy reads and writes.
type copyKind int

const (
	copyScalar  copyKind = iota // one element, over all of the output
	copyVector                  // memory as it lies
	copyGeneral                 // any layout into a row-contiguous one
	copyBoth                    // any layout into any
)

// contiguousCopy copies a into a new row-contiguous array.
func (e *Encoder) contiguousCopy(a Array) Array {
	out := e.temporary(a.Type, a.Shape...)
	e.copy(copyGeneral, a, out, a.Shape, a.Strides, out.Strides)
	return out
}

// vectorCopy copies the memory of a as it lies, as elements of type t, or in the same
// memory where that is spare.
func (e *Encoder) vectorCopy(a Array, t ir.DType) Array {
	out := e.like(a, t)
	if e.takes(a, t, a.Elements()) {
		out.Buffer, out.Offset = a.Buffer, a.Offset
		if a.Type == t {
			return out
		}
	}
	e.copy(copyVector, a, out, nil, nil, nil)
	return out
}

// rowContiguous returns a, or a copy if a is not row-contiguous.
func (e *Encoder) rowContiguous(a Array) Array {
	if a.rowContiguous() {
		return a
	}
	return e.contiguousCopy(a)
}

// eachThread is how many elements a thread of an elementwise kernel takes: as many as make 8 bytes, from
// 2¹⁶ elements on.
func (e *Encoder) eachThread(t ir.DType, elements Size) int64 {
	if e.at(elements) < 1<<16 {
		return 1
	}
	return max(1, 8/t.Size())
}

// copy sends one copy of elements of the shape that lie in from by the strides fromStrides, and in to by
// toStrides.
func (e *Encoder) copy(kind copyKind, from, to Array, shape, fromStrides, toStrides []Size) {
	e.copyAt(kind, from, to, shape, fromStrides, toStrides, copyPlace{})
}

// copyPlace is where in from and to a copy begins: bytes that the host knows, or arrays that hold a
// number of elements.
type copyPlace struct {
	from, to               Size
	dynamicFrom, dynamicTo Array
}

func (e *Encoder) copyAt(kind copyKind, from, to Array, shape, fromStrides, toStrides []Size, at copyPlace) {
	types := plain(from.Type) + plain(to.Type)
	if kind == copyScalar || kind == copyVector {
		n := to.stored()
		form := map[copyKind]string{copyScalar: "s", copyVector: "v"}[kind]
		large := e.at(n) > math.MaxUint32
		name, each := e.several(form, "_copy"+types, large, e.eachThread(to.Type, n))
		e.next.Kernel = name
		e.inputAt(0, from, at.from)
		e.outputAt(1, to, at.to)
		e.linear(2, n, each, large, to)
		return
	}
	shape, strides := e.collapse(shape, fromStrides, toStrides)
	form, each := "g", int64(1)
	if kind == copyBoth {
		form = "gg"
	}
	large := e.at(from.stored()) > math.MaxInt32 || e.at(to.stored()) > math.MaxInt32
	dynamic := at.dynamicFrom.Present() || at.dynamicTo.Present()
	tail := "_copy" + types
	if dynamic {
		tail = "_dynamic" + tail
	}
	if large {
		tail = "large" + tail
	}
	kernel := func(rank int) string { return fmt.Sprintf("%s%d%s", form, rank, tail) }
	shape, strides = e.widened(kernel, shape, strides)
	e.next.Kernel = kernel(len(shape))
	if len(shape) > 3 {
		each = 2
		if large {
			each = 4
		}
		e.kernel("%sn%d%s", form, each, tail)
	}
	e.inputAt(0, from, at.from)
	e.outputAt(1, to, at.to)
	if len(shape) > 3 {
		e.i32(2, shape...)
	}
	e.i64(3, strides[0]...)
	if kind == copyBoth {
		e.i64(4, strides[1]...)
	}
	if len(shape) > 3 {
		e.count(5, len(shape))
	}
	if dynamic {
		e.place(6, at.dynamicFrom)
		e.place(7, at.dynamicTo)
	}
	e.general(shape, each)
}

// place binds an array that holds a place, or the place 0.
func (e *Encoder) place(slot int, a Array) {
	if a.Present() {
		e.input(slot, a)
	} else {
		e.i64(slot, ir.Const(0))
	}
}

// linear binds the number of elements and sends a grid over them, each thread taking as many as each says.
func (e *Encoder) linear(slot int, n Size, each int64, large bool, layout Array) {
	if large {
		e.i64(slot, n)
		x, y := e.flat(layout.Shape, layout.Strides, each)
		e.threads(grid(x, y, ir.Const(1)), min(1024, ceil(e.at(n), each)), 1, 1)
		return
	}
	e.i32(slot, n)
	e.threads([3]ir.Extent{tiles(n, each), ir.Ext(1), ir.Ext(1)}, min(1024, ceil(e.at(n), each)), 1, 1)
}

// general sends a grid over a collapsed shape: the last dimension, the one before, and the rest. From
// four dimensions on a thread takes as many elements of the last one as each says.
func (e *Encoder) general(shape []Size, each int64) {
	x, y := ir.Const(1), ir.Const(1)
	rest := shape
	if n := len(rest); n > 0 {
		x, rest = rest[n-1], rest[:n-1]
	}
	if n := len(rest); n > 0 {
		y, rest = rest[n-1], rest[:n-1]
	}
	z := product(rest)
	if len(shape) > 3 {
		x = ir.Const(ceil(e.fixed(x), each))
	}
	bx, by, bz := e.block(x, y, z)
	e.threads(grid(x, y, z), bx, by, bz)
}
