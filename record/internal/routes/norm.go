package routes

import "github.com/mlxc/mlxc/ir"

// rowKernel says how a kernel of a row at a time is launched: a threadgroup a row of the least multiple of 32
// threads that read each so many elements; rows above the limit take a kernel whose 1024 threads loop.
type rowKernel struct {
	each, limit int64
}

var rowKernels = map[string]rowKernel{
	"rms": {4, 4096}, "vjp_rms": {4, 4096}, "layer_norm": {8, 6656}, "vjp_layer_norm": {8, 8192},
	"softmax": {4, 4096}, "logsumexp": {4, 4096},
}

func (k rowKernel) looped(axis int64) bool { return axis > k.limit }

// threads returns the threads of a threadgroup.
func (k rowKernel) threads(axis int64) int64 {
	if k.looped(axis) {
		return 1024
	}
	return roundUp(ceil(axis, k.each), 32)
}

// RowThreads returns the threads of a threadgroup of a row kernel (rms, vjp_rms, layer_norm, vjp_layer_norm,
// softmax, logsumexp) for rows of so many elements, and whether it is the looped one.
func RowThreads(name string, axis int64) (threads int64, looped bool) {
	k := rowKernels[name]
	return k.threads(axis), k.looped(axis)
}

// normKernel spells the kernel of a norm.
func (e *Encoder) normKernel(name string, axis int64, t ir.DType) {
	loop := ""
	if rowKernels[name].looped(axis) {
		loop = "_looped"
	}
	e.kernel("%s%s%s", name, loop, plain(t))
}

// rowThreads sends a threadgroup a row.
func (e *Encoder) rowThreads(name string, rows Size, axis int64) {
	n := rowKernels[name].threads(axis)
	e.threads(grid(rows.Scale(n), ir.Const(1), ir.Const(1)), n, 1, 1)
}

// orNumber stands for a weight or a bias that is left out: memory of one element that no stride walks.
func (e *Encoder) orNumber(a Array, t ir.DType, v float32) Array {
	if a.Present() {
		return a
	}
	return e.number(t, v)
}

// step is the stride of a weight.
func step(w Array) Size {
	if w.Rank() == 1 {
		return w.Stride(0)
	}
	return ir.Const(0)
}

// rows returns x as a kernel of a row at a time reads it, with its result: in x's memory if x is spare or
// had to be copied, else laid out as x. Where even is set, rows must also lie at one distance.
func (e *Encoder) rows(x Array, even bool) (in, out Array) {
	fits := x.contiguous() && isOne(x.Stride(-1))
	if fits && even && x.Rank() > 1 {
		s := x.Stride(-2)
		fits = isZero(s) || s.Equal(x.Dim(-1)) || isOne(x.Dim(-2))
	}
	if !fits {
		x = e.contiguousCopy(x)
		x.Spare = true
	}
	if x.Spare {
		out = x
		out.Spare = false
		return x, out
	}
	return x, e.like(x, x.Type)
}

// RMSNorm sends x/√(mean x² + eps)·w over the last dimension. w may be left out.
func (e *Encoder) RMSNorm(x, w Array, eps float32) Array {
	e.begin()
	w = e.orNumber(w, x.Type, 1)
	x, out := e.rows(x, true)
	axis := e.fixed(x.Dim(-1))
	e.normKernel("rms", axis, x.Type)
	e.input(0, x)
	e.input(1, w)
	e.output(2, out)
	e.f32(3, eps)
	e.i32(4, ir.Const(axis))
	e.i32(5, step(w))
	e.rowThreads("rms", divide(x.stored(), axis), axis)
	return out
}

// LayerNorm sends (x − mean)/√(variance + eps)·w + b over the last dimension. w and b may be left out.
func (e *Encoder) LayerNorm(x, w, b Array, eps float32) Array {
	e.begin()
	w, b = e.orNumber(w, x.Type, 1), e.orNumber(b, x.Type, 0)
	x, out := e.rows(x, true)
	axis := e.fixed(x.Dim(-1))
	e.normKernel("layer_norm", axis, x.Type)
	e.input(0, x)
	e.input(1, w)
	e.input(2, b)
	e.output(3, out)
	e.f32(4, eps)
	e.i32(5, ir.Const(axis))
	e.i32(6, step(w))
	e.i32(7, step(b))
	e.rowThreads("layer_norm", divide(x.stored(), axis), axis)
	return out
}

// spareCopy returns a, or a copy, which is spare, if a is not row-contiguous.
func (e *Encoder) spareCopy(a Array) Array {
	if !a.rowContiguous() {
		a = e.contiguousCopy(a)
		a.Spare = true
	}
	return a
}

// gradientOf returns where the gradient of x goes: into x, into g, or into memory of its own.
func (e *Encoder) gradientOf(x, g Array) (gx Array, inG bool) {
	switch {
	case x.Spare:
		return x, false
	case g.Spare:
		return g, true
	}
	return e.temporary(x.Type, x.Shape...), false
}

// rmsGroups is into how many groups of rows the gradient of an RMS norm's weight is summed at most.
const rmsGroups = 512

// RMSNormVJP sends the gradients of x and of w, the latter only if w is there, for a gradient g of the result.
func (e *Encoder) RMSNormVJP(x, w, g Array, eps float32) (gx, gw Array) {
	e.begin()
	weighted := w.Present()
	w = e.orNumber(w, x.Type, 1)
	x, g = e.spareCopy(x), e.spareCopy(g)
	gx, _ = e.gradientOf(x, g)
	axis := e.fixed(x.Dim(-1))
	rows := divide(x.Elements(), axis)
	groups, each := rows, int64(1)
	looped := rowKernels["vjp_rms"].looped(axis)
	if !looped {
		each = ceil(e.at(rows), rmsGroups)
		if each > 1 {
			groups = ir.Const(ceil(e.fixed(rows), each))
		}
	}
	parts := w
	if weighted {
		parts = e.temporary(w.Type, groups, ir.Const(axis))
	}
	e.normKernel("vjp_rms", axis, x.Type)
	e.constant(20, weighted)
	e.gradient(x, w, g, gx, parts, axis, eps)
	if !looped {
		e.i32(8, rows)
		e.i32(9, ir.Const(each))
	}
	e.rowThreads("vjp_rms", groups, axis)
	if weighted {
		gw = e.temporary(w.Type, w.Shape...)
		e.sumRows(parts, gw)
	}
	return gx, gw
}

// gradient binds what gradients of norms take.
func (e *Encoder) gradient(x, w, g, gx, parts Array, axis int64, eps float32) {
	e.input(0, x)
	e.input(1, w)
	e.input(2, g)
	e.output(3, gx)
	e.output(4, parts)
	e.f32(5, eps)
	e.i32(6, ir.Const(axis))
	e.i32(7, step(w))
}

// sumRows sums the rows of a row-contiguous array of any rank.
func (e *Encoder) sumRows(in, out Array) {
	axis := in.Dim(-1)
	r := reduction{[]Size{divide(in.Elements(), e.fixed(axis))}, []Size{axis}}
	e.columnReduce(sum, in, out, []int{0}, r)
}

// LayerNormVJP sends the gradients of x, and of w and b where they are there.
func (e *Encoder) LayerNormVJP(x, w, b, g Array, eps float32) (gx, gw, gb Array) {
	e.begin()
	weighted := w.Present()
	w = e.orNumber(w, x.Type, 1)
	x, g = e.spareCopy(x), e.spareCopy(g)
	gx, inG := e.gradientOf(x, g)
	axis := e.fixed(x.Dim(-1))
	rows := divide(x.Elements(), axis)
	parts := w
	switch {
	case weighted && g.Spare && !inG:
		parts = g
	case weighted:
		parts = e.temporary(w.Type, rows, ir.Const(axis))
	}
	if b.Present() {
		gb = e.temporary(b.Type, b.Shape...)
		e.sumRows(g, gb)
	}
	e.normKernel("vjp_layer_norm", axis, x.Type)
	e.constant(20, weighted)
	e.gradient(x, w, g, gx, parts, axis, eps)
	e.rowThreads("vjp_layer_norm", rows, axis)
	if weighted {
		gw = e.temporary(w.Type, w.Shape...)
		e.sumRows(parts, gw)
	}
	return gx, gw, gb
}

// Softmax sends the softmax over the last dimension. precise computes in f32 whatever the type.
func (e *Encoder) Softmax(x Array, precise bool) Array {
	e.begin()
	x, out := e.rows(x, false)
	form := "softmax_"
	if precise && x.Type != ir.F32 {
		form = "softmax_precise_"
	}
	e.rowReduction("softmax", form, x, out)
	return out
}

// LogSumExp sends log Σ exp over the last dimension.
func (e *Encoder) LogSumExp(x Array) Array {
	e.begin()
	if !x.contiguous() || !isOne(x.Stride(-1)) {
		x = e.contiguousCopy(x)
	}
	last := x.Rank() - 1
	out := e.temporary(x.Type, with(x.Shape[:last])...)
	e.rowReduction("logsumexp", "logsumexp_", x, out)
	return out
}

func (e *Encoder) rowReduction(name, form string, x, out Array) {
	axis := e.fixed(x.Dim(-1))
	loop := "block_"
	if rowKernels[name].looped(axis) {
		loop = "looped_"
	}
	e.kernel("%s%s%s", loop, form, plain(x.Type))
	e.input(0, x)
	e.output(1, out)
	e.i32(2, ir.Const(axis))
	e.rowThreads(name, divide(x.stored(), axis), axis)
}
