package routes

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// Rope is a rotation of the first Dims elements of each row by its position.
type Rope struct {
	Dims        int64
	Traditional bool
	Base, Scale float32 // Base is not used where frequencies are given
	Backward    bool
	// Together: the result of x [1, H, T, D] has the heads of a position together, as [T, H, D]. MLX's kernel can, but its
	// host code never asks for it.
	Together bool
	// InPlace: the result of such an x is x itself, of whose heads the first Dims elements are turned.
	InPlace bool
	// Stored: one position lies in memory, too. MLX's kernel of one position reads it there; ours takes it as a number, so
	// that the one of several positions is taken.
	Stored bool
}

// ropeHeads is how many heads a thread of rope takes.
const ropeHeads = 4

// Rope sends the rotation of x [B, …, T, D]; offset is one position or one for each of B, and freqs
// [Dims/2] may be left out.
func (e *Encoder) Rope(x, offset, freqs Array, r Rope) Array {
	e.begin()
	rank := x.Rank()
	batch, length, width := x.Dim(0), x.Dim(-2), x.Dim(-1)
	matrix := times(length, width)
	heads := product(x.Shape[1 : rank-2])
	leading := rank // without the leading dimensions of one element, but for the last three
	for leading > 3 && isOne(x.Dim(-leading)) {
		leading--
	}
	turned := rank == 4 && x.Stride(0).Equal(times(times(length, heads), width)) &&
		x.Stride(1).Equal(width) && x.Stride(2).Equal(times(heads, width))

	in, turns := x, false
	var out Array
	strides := []Size{matrix, x.Stride(-2), x.Stride(-1)}
	switch {
	case r.InPlace:
		out = x
		strides = x.Strides[1:]
	case r.Together:
		out = e.temporary(x.Type, x.Shape...)
		strides = x.Strides[1:]
	case r.Dims < e.fixed(width) && x.rowContiguous():
		out = e.vectorCopy(x, x.Type)
		in = out
	case r.Dims < e.fixed(width):
		out = e.contiguousCopy(x)
		in = out
		strides = []Size{matrix, out.Stride(-2), out.Stride(-1)}
	case x.rowContiguous() && x.Spare:
		out = x
		out.Spare = false
	case x.rowContiguous():
		out = e.temporary(x.Type, x.Shape...)
	case leading == 3:
		out = e.temporary(x.Type, x.Shape...)
		strides[0] = x.Stride(-3)
	case turned:
		turns = true
		out = e.temporary(x.Type, x.Shape...)
		strides = x.Strides[1:]
	default:
		out = e.contiguousCopy(x)
		in = out
		strides = []Size{matrix, out.Stride(-2), out.Stride(-1)}
	}
	outStrides := []Size{matrix, out.Stride(-2), out.Stride(-1)}
	if r.Together || r.InPlace {
		outStrides = []Size{width, times(heads, width), ir.Const(1)}
	}

	name := "rope_"
	single := x.rowContiguous() && isOne(length) && isOne(offset.Elements()) && !r.Stored
	if single {
		name += "single_"
	}
	if freqs.Present() {
		name += "freqs_"
	}
	if e.at(x.stored()) > math.MaxInt32 || e.at(x.Elements()) > math.MaxInt32 {
		name += "large_"
	}
	e.kernel("%s%s", name, plain(x.Type))
	e.constant(1, !r.Backward)
	e.constant(2, r.Traditional)
	e.constant(3, turns)
	e.input(0, in)
	e.output(1, out)
	e.input(2, offset)
	e.f32(3, r.Scale)
	gx, gy, gz := ir.Const(r.Dims/2), length, times(batch, ir.Const(ceil(e.fixed(heads), ropeHeads)))
	if single {
		e.i64(4, outStrides[0])
		gy, gz = times(batch, heads), ir.Const(1)
	} else {
		e.i64(4, strides...)
		e.i64(5, outStrides...)
		e.i64(6, step(offset))
		e.i32(7, heads)
	}
	if freqs.Present() {
		e.input(10, freqs)
		e.i64(11, freqs.Stride(0))
	} else {
		e.f32(10, float32(math.Log2(float64(r.Base))))
	}
	bx, by, bz := e.block(gx, gy, gz)
	e.threads(grid(gx, gy, gz), bx, by, bz)
	return out
}
