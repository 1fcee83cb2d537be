package judge

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// rowsOf and columnsOf are the shape of the quantized matrices. They have 4-bit codes,
// and one scale and one bias for each row of 32.
const rowsOf, columnsOf = 8, 32

// group adds commands of builtin kernels: one, or some that look fusible.
func (x *generator) group() {
	if x.params && x.chance(5) {
		x.variable()
		return
	}
	n := 1 + x.number(6)
	switch x.IntN(18) {
	case 0:
		v := x.writable(n)
		x.wrote(x.add(&ir.Fill{Dst: v, Value: byte(x.IntN(2))}), v)
	case 1:
		src, dst := x.readable(n), x.writable(n)
		x.wrote(x.add(&ir.Copy{Dst: dst, Src: src}), dst)
	case 2:
		x.unary("v_copyfloat32float32", n)
	case 3:
		x.unary("v_Silufloat32float32", n)
	case 4, 5:
		x.binary("vv_Addfloat32", x.readable(n), x.readable(n), n)
	case 6:
		x.binary("vv_Multiplyfloat32", x.readable(n), x.readable(n), n)
	case 7: // a transpose or a column: strided reads
		rows, columns := 1+x.number(3), 1+x.number(3)
		src, dst := x.readable(rows*columns), x.writable(rows*columns)
		x.wrote(x.dispatch("g2_copyfloat32float32", ir.Const(columns), ir.Const(rows), uint32(columns),
			ir.BufferArg(0, src), ir.BufferArg(1, dst), ir.BytesArg(3, ir.ValueBytes([]int64{1, rows}))), dst)
	case 8, 9: // columns written separately
		rows, columns, apart := 2+x.number(2), 1+x.number(2), 1+x.number(3)
		stride := columns + apart
		src, dst := x.readable(rows*columns), x.writable((rows-1)*stride+columns)
		if x.dispatch("gg2_copyfloat32float32", ir.Const(columns), ir.Const(rows), uint32(columns), ir.BufferArg(0, src), ir.BufferArg(1, dst),
			ir.BytesArg(3, ir.ValueBytes([]int64{columns, 1})), ir.BytesArg(4, ir.ValueBytes([]int64{stride, 1}))) {
			x.apart(dst, rows, stride, columns)
		}
	case 10: // a sum with broadcasting
		x.broadcast("g2_Addfloat32", 1+x.number(2), 1+x.number(4))
	case 11: // a norm with a weight
		x.norm(x.readable(4), x.readable(4), 1, 4)
	case 12: // the same as a frontend would record it: a sum, its norm with a weight of ones, a product
		if x.chance(2) {
			x.binary("vv_Addfloat32", x.readable(4), x.readable(4), 4)
		}
		x.normed(1, 4)
		for len(x.products) > 0 {
			x.product()
		}
	case 13: // silu and a product
		if mid, ok := x.unary("v_Silufloat32float32", n); ok {
			x.binary("vv_Multiplyfloat32", mid, x.readable(n), n)
		}
	case 14:
		x.rope(ir.ScalarArg(2, ir.I32, ir.Const(x.number(5))))
	case 15, 16:
		x.quantized()
	default:
		x.g.Nodes = append(x.g.Nodes, &ir.Commit{Order: ir.OrderFence + ir.CommitOrder(x.IntN(2))})
	}
}

// dispatch adds a dispatch of a builtin kernel over a grid of threads.
func (x *generator) dispatch(kernel string, columns, rows ir.Affine, group uint32, bs ...ir.Binding) bool {
	return x.add(&ir.Dispatch{Kernel: x.library(kernel), Bindings: bs, GridKind: ir.Threads, Threadgroup: [3]uint32{group, 1, 1},
		Grid: [3]ir.Extent{{Num: columns, Div: 1}, {Num: rows, Div: 1}, ir.Ext(1)}})
}

func (x *generator) library(name string, constants ...ir.FunctionConstant) ir.KernelID {
	return x.kernel(name, func() ir.Kernel {
		k := msl.Declarations(name)[0].Kernel(name)
		k.Constants = constants
		return k
	})
}

// apart notes rows that lie stride words apart.
func (x *generator) apart(v ir.View, rows, stride, columns int64) {
	for i := range rows {
		x.views = append(x.views, ir.View{Mem: v.Mem, Off: v.Off.AddConst(i * stride * word), Len: ir.Const(columns * word)})
	}
}

func (x *generator) unary(name string, n int64) (ir.View, bool) {
	src, dst := x.readable(n), x.writable(n)
	if x.chance(4) {
		dst = src // in place, if the memory may be written
	}
	return dst, x.elementwise(name, dst, n, src)
}

func (x *generator) binary(name string, a, b ir.View, n int64) {
	dst := x.writable(n)
	switch x.IntN(6) {
	case 0:
		dst = a
	case 1:
		dst = b
	}
	x.elementwise(name, dst, n, a, b)
}

func (x *generator) elementwise(name string, dst ir.View, n int64, src ...ir.View) bool {
	var bs []ir.Binding
	for i, v := range append(src, dst) {
		bs = append(bs, ir.BufferArg(uint8(i), v))
	}
	return x.wrote(x.dispatch(name, ir.Const(n), ir.Const(1), uint32(n), bs...), dst)
}

func (x *generator) broadcast(name string, rows, columns int64) {
	a, b, dst := x.readable(rows*columns), x.readable(columns), x.writable(rows*columns)
	x.scaled(name, a, b, dst, rows, columns)
}

// scaled adds a sum or product of rows of a and one row b, in either order.
func (x *generator) scaled(name string, a, b, dst ir.View, rows, columns int64) {
	args := [2]ir.View{a, b}
	strides := [2][]byte{ir.ValueBytes([]int64{columns, 1}), ir.ValueBytes([]int64{0, 1})}
	if x.chance(3) {
		args[0], args[1], strides[0], strides[1] = args[1], args[0], strides[1], strides[0]
	}
	x.wrote(x.dispatch(name, ir.Const(columns), ir.Const(rows), uint32(columns), ir.BufferArg(0, args[0]), ir.BufferArg(1, args[1]), ir.BufferArg(2, dst),
		ir.BytesArg(3, strides[0]), ir.BytesArg(4, strides[1])), dst)
}

// norm adds the norm of rows of axis words. A weight of one word scales all of them.
func (x *generator) norm(v, w ir.View, rows, axis int64) (ir.View, bool) {
	dst := x.writable(rows * axis)
	eps := ir.BytesArg(3, ir.ValueBytes(float32(1e-5)))
	if x.builtin && x.params && x.chance(3) {
		eps = ir.ScalarArg(3, ir.F32, ir.Linear(0, ir.Term{Param: 2, Coeff: 1}))
	}
	stride := uint32(1)
	if w.Len.Equal(ir.Const(word)) {
		stride = 0
	}
	return dst, x.dispatch("rmsfloat32", ir.Const(32*rows), ir.Const(1), 32, ir.BufferArg(0, v), ir.BufferArg(1, w), ir.BufferArg(2, dst), eps,
		ir.BytesArg(4, ir.ValueBytes(uint32(axis))), ir.BytesArg(5, ir.ValueBytes(stride)))
}

// normed adds a norm with a weight of ones (sometimes of twos). Its product with a scale
// comes later.
func (x *generator) normed(rows, axis int64) {
	w := one
	if x.chance(8) {
		w = two
	}
	mid, ok := x.norm(x.readable(rows*axis), ir.ViewOf(w, 0, word), rows, axis)
	if !ok {
		return
	}
	if x.chance(4) {
		x.views = append(x.views, mid)
	}
	x.products = append(x.products, func() {
		scale, dst := x.readable(axis), x.writable(rows*axis)
		if x.chance(2) {
			scale = ir.ViewOf(weight, word*x.number(4), axis*word)
		}
		if x.chance(6) {
			dst = mid
		}
		if rows == 1 && x.chance(2) {
			a, b := mid, scale
			if x.chance(3) {
				a, b = b, a
			}
			x.elementwise("vv_Multiplyfloat32", dst, axis, a, b)
			return
		}
		x.scaled("g2_Multiplyfloat32", mid, scale, dst, rows, axis)
	})
}

// product adds the oldest product that is still to be added, if it is well-formed.
func (x *generator) product() {
	f := x.products[0]
	before := len(x.g.Nodes)
	for range 20 {
		if f(); len(x.g.Nodes) > before {
			break
		}
	}
	x.products = x.products[1:]
}

// quantized multiplies a vector by one to three quantized matrices, as the projections
// of a layer do, and goes on with the results as a layer does.
func (x *generator) quantized() {
	id := x.library("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4")
	v := x.readable(columnsOf)
	var ys []ir.View
	for i := range 1 + x.IntN(3) {
		y := x.writable(rowsOf)
		m := rest + ir.MemID(3*i)
		bs := []ir.Binding{
			ir.BufferArg(0, ir.ViewOf(m, 0, rowsOf*columnsOf/2)), ir.BufferArg(1, ir.ViewOf(m+1, 0, rowsOf*word)), ir.BufferArg(2, ir.ViewOf(m+2, 0, rowsOf*word)),
			ir.BufferArg(3, v), ir.BufferArg(4, y), ir.BytesArg(5, ir.ValueBytes(int32(columnsOf))), ir.BytesArg(6, ir.ValueBytes(int32(rowsOf))),
		}
		d := &ir.Dispatch{Kernel: id, Bindings: bs, Threadgroup: [3]uint32{32, 2, 1}, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(rowsOf / 8), ir.Ext(1)}}
		if !x.wrote(x.add(d), y) {
			return
		}
		ys = append(ys, y)
	}
	switch n := int64(rowsOf); {
	case x.chance(3) && len(ys) > 1: // the gate and the up projection
		if mid := x.writable(n); x.elementwise("v_Silufloat32float32", mid, n, ys[0]) {
			x.elementwise("vv_Multiplyfloat32", x.writable(n), n, mid, ys[1])
		}
	case x.chance(2) && len(ys) > 1: // queries and keys
		for _, y := range ys[:2] {
			x.turn(y, x.writable(n), 4, ir.ScalarArg(2, ir.I32, ir.Const(3)))
		}
	case x.chance(2): // the sum with a residual
		x.elementwise("vv_Addfloat32", x.writable(n), n, x.readable(n), ys[0])
	}
}

// rope rotates two heads of four words. They lie apart, which gives a strided write.
func (x *generator) rope(offset ir.Binding) {
	stride := 4 + x.number(3)
	x.turn(x.readable(stride+4), x.writable(stride+4), stride, offset)
}

// turn rotates two heads that lie stride words apart.
func (x *generator) turn(src, dst ir.View, stride int64, offset ir.Binding) {
	yes := func(i uint16, name string) ir.FunctionConstant {
		return ir.FunctionConstant{Index: i, Name: name, Type: ir.Bool, Bits: 1}
	}
	x.library("rope_single_float32", yes(1, "forward"), yes(2, "traditional"))
	if x.dispatch("rope_single_float32", ir.Const(2), ir.Const(2), 2, ir.BufferArg(0, src), ir.BufferArg(1, dst), offset,
		ir.BytesArg(3, ir.ValueBytes(float32(1))), ir.BytesArg(4, ir.ValueBytes(stride)), ir.BytesArg(10, ir.ValueBytes(float32(13)))) {
		x.apart(dst, 2, stride, 4)
	}
}

// variable adds a command that depends on params.
func (x *generator) variable() {
	form := x.IntN(2) // one row at pos, or n
	length, few := ir.Const(1), int64(1)
	if form == 1 {
		length, few = x.at(0, 0, 1), 2
	}
	states := []ir.MemID{cache, state, upper, scratch, small, out}
	at := func() ir.View { return x.row(states[x.IntN(len(states))], x.number(12), form) }
	flat := func(v ir.View) ir.View { // the same number of words from a constant offset on
		v.Len = length.Scale(word)
		return v
	}
	bind := func(kernel string, vs ...ir.View) bool {
		var bs []ir.Binding
		for i, v := range vs {
			bs = append(bs, ir.BufferArg(uint8(i), v))
		}
		return x.dispatch(kernel, length, ir.Const(1), 4, bs...)
	}
	switch x.IntN(6) {
	case 0, 1: // a write into the cache
		bind("v_copyfloat32float32", flat(x.readable(few)), at())
	case 2: // a read from the cache
		dst := flat(x.writable(few))
		x.wrote(bind("v_Silufloat32float32", at(), dst), ir.View{Mem: dst.Mem, Off: dst.Off, Len: ir.Const(word)})
	case 3:
		bind("vv_Addfloat32", at(), flat(x.readable(few)), at())
	case 4:
		x.add(&ir.Copy{Dst: at(), Src: at()})
	default:
		x.rope(ir.ScalarArg(2, ir.I32, x.at(0, 1, 0)))
	}
}
