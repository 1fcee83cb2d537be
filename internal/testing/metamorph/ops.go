package metamorph

import "github.com/mlxc/mlxc/ir"

// command adds the command that the current op chooses.
func (k *kitchen) command() {
	if k.params && k.op[0]%5 == 4 {
		k.variable()
		return
	}
	n := int64(1 + k.next(6))
	switch k.op[0] % 18 {
	case 0:
		v := k.writable(n)
		k.wrote(k.add(&ir.Fill{Dst: v, Value: byte(k.next(2))}), v)
	case 1:
		src, dst := k.readable(n), k.writable(n)
		k.wrote(k.add(&ir.Copy{Dst: dst, Src: src}), dst)
	case 2:
		k.unary("v_copyfloat32float32", n)
	case 3:
		k.unary("v_Silufloat32float32", n)
	case 4, 5:
		k.binary("vv_Addfloat32", k.readable(n), k.readable(n), n)
	case 6:
		k.binary("vv_Multiplyfloat32", k.readable(n), k.readable(n), n)
	case 7: // a transpose or a column: strided reads
		rows, columns := int64(1+k.next(3)), int64(1+k.next(3))
		src, dst := k.readable(rows*columns), k.writable(rows*columns)
		k.wrote(k.dispatch(k.kernel("g2_copyfloat32float32"), ir.Const(columns), ir.Const(rows), uint32(columns),
			ir.BufferArg(0, src), ir.BufferArg(1, dst), ir.BytesArg(3, ir.ValueBytes([]int64{1, rows}))), dst)
	case 8, 9: // columns written separately
		rows, columns, apart := int64(2+k.next(2)), int64(1+k.next(2)), int64(1+k.next(3))
		stride := columns + apart
		src, dst := k.readable(rows*columns), k.writable((rows-1)*stride+columns)
		if k.dispatch(k.kernel("gg2_copyfloat32float32"), ir.Const(columns), ir.Const(rows), uint32(columns), ir.BufferArg(0, src), ir.BufferArg(1, dst),
			ir.BytesArg(3, ir.ValueBytes([]int64{columns, 1})), ir.BytesArg(4, ir.ValueBytes([]int64{stride, 1}))) {
			for i := range rows {
				k.views = append(k.views, ir.View{Mem: dst.Mem, Off: dst.Off.AddConst(i * stride * word), Len: ir.Const(columns * word)})
			}
		}
	case 10: // a sum with broadcasting
		rows, columns := int64(1+k.next(2)), int64(1+k.next(4))
		a, b, dst := k.readable(rows*columns), k.readable(columns), k.writable(rows*columns)
		k.wrote(k.dispatch(k.kernel("g2_Addfloat32"), ir.Const(columns), ir.Const(rows), uint32(columns), ir.BufferArg(0, a), ir.BufferArg(1, b), ir.BufferArg(2, dst),
			ir.BytesArg(3, ir.ValueBytes([]int64{columns, 1})), ir.BytesArg(4, ir.ValueBytes([]int64{0, 1}))), dst)
	case 11: // a norm with a weight
		k.norm(k.readable(4), k.readable(4), 4, 1)
	case 12: // the same as a frontend would record it: a sum, its norm with a weight of ones, a product
		x := k.readable(4)
		if k.next(2) == 0 {
			if sum, ok := k.binary("vv_Addfloat32", x, k.readable(4), 4); ok {
				x = sum
			}
		}
		if mid, ok := k.norm(x, ir.ViewOf(one, 0, word), 4, 0); ok {
			k.binary("vv_Multiplyfloat32", mid, k.readable(4), 4)
		}
	case 13: // silu and a product
		if mid, ok := k.unary("v_Silufloat32float32", n); ok {
			k.binary("vv_Multiplyfloat32", mid, k.readable(n), n)
		}
	case 14:
		k.rope(ir.ScalarArg(2, ir.I32, ir.Const(int64(k.next(5)))))
	case 15, 16:
		k.products()
	default:
		k.g.Nodes = append(k.g.Nodes, &ir.Commit{Order: ir.OrderFence + ir.CommitOrder(k.next(2))})
	}
}

func (k *kitchen) unary(name string, n int64) (ir.View, bool) {
	src := k.readable(n)
	dst := k.writable(n)
	if k.next(4) == 0 {
		dst = src // in place, if the memory may be written
	}
	return k.elementwise(name, dst, n, src)
}

func (k *kitchen) binary(name string, a, b ir.View, n int64) (ir.View, bool) {
	dst := k.writable(n)
	switch k.next(6) {
	case 0:
		dst = a
	case 1:
		dst = b
	}
	return k.elementwise(name, dst, n, a, b)
}

// norm adds the norm of one row of axis words.
func (k *kitchen) norm(x, w ir.View, axis int64, stride uint32) (ir.View, bool) {
	dst := k.writable(axis)
	eps := ir.BytesArg(3, ir.ValueBytes(float32(1e-5)))
	if k.params && k.next(3) == 0 {
		eps = ir.ScalarArg(3, ir.F32, ir.Linear(0, ir.Term{Param: k.eps, Coeff: 1}))
	}
	ok := k.dispatch(k.kernel("rmsfloat32"), ir.Const(32), ir.Const(1), 32, ir.BufferArg(0, x), ir.BufferArg(1, w), ir.BufferArg(2, dst), eps,
		ir.BytesArg(4, ir.ValueBytes(uint32(axis))), ir.BytesArg(5, ir.ValueBytes(stride)))
	return dst, k.wrote(ok, dst)
}

// products multiplies a vector by one to three quantized matrices, as the projections
// of a layer do, and goes on with the results as a layer does.
func (k *kitchen) products() {
	id := k.kernel("affine_qmv_float_gs_32_b_4_batch_0_pr_0_hgs_0_r_4")
	x := k.readable(columnsOf)
	var ys []ir.View
	for i := range 1 + k.next(3) {
		y := k.writable(rowsOf)
		m := codes + ir.MemID(3*i)
		bs := []ir.Binding{
			ir.BufferArg(0, ir.ViewOf(m, 0, rowsOf*columnsOf/2)), ir.BufferArg(1, ir.ViewOf(m+1, 0, rowsOf*word)), ir.BufferArg(2, ir.ViewOf(m+2, 0, rowsOf*word)),
			ir.BufferArg(3, x), ir.BufferArg(4, y), ir.BytesArg(5, ir.ValueBytes(int32(columnsOf))), ir.BytesArg(6, ir.ValueBytes(int32(rowsOf))),
		}
		d := &ir.Dispatch{Kernel: id, Bindings: bs, Threadgroup: [3]uint32{32, 2, 1}, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(rowsOf / 8), ir.Ext(1)}}
		if !k.wrote(k.add(d), y) {
			return
		}
		ys = append(ys, y)
	}
	switch n := int64(rowsOf); {
	case k.next(3) == 0 && len(ys) > 1: // the gate and the up projection
		if mid, ok := k.elementwise("v_Silufloat32float32", k.writable(n), n, ys[0]); ok {
			k.elementwise("vv_Multiplyfloat32", k.writable(n), n, mid, ys[1])
		}
	case k.next(2) == 0 && len(ys) > 1: // queries and keys
		at := ir.ScalarArg(2, ir.I32, ir.Const(3))
		for _, y := range ys[:2] {
			k.turn(y, k.writable(n), 4, at)
		}
	case k.next(2) == 0: // the sum with a residual
		k.elementwise("vv_Addfloat32", k.writable(n), n, k.readable(n), ys[0])
	}
}

func (k *kitchen) elementwise(name string, dst ir.View, n int64, src ...ir.View) (ir.View, bool) {
	var bs []ir.Binding
	for i, v := range append(src, dst) {
		bs = append(bs, ir.BufferArg(uint8(i), v))
	}
	return dst, k.wrote(k.dispatch(k.kernel(name), ir.Const(n), ir.Const(1), uint32(n), bs...), dst)
}

// rope rotates two heads of four words. They lie apart, which gives a strided write.
func (k *kitchen) rope(offset ir.Binding) {
	stride := int64(4 + k.next(3))
	k.turn(k.readable(stride+4), k.writable(stride+4), stride, offset)
}

// turn rotates two heads that lie stride words apart.
func (k *kitchen) turn(src, dst ir.View, stride int64, offset ir.Binding) {
	id := k.kernel("rope_single_float32", ir.FunctionConstant{Index: 1, Name: "forward", Type: ir.Bool, Bits: 1}, ir.FunctionConstant{Index: 2, Name: "traditional", Type: ir.Bool, Bits: 1})
	if k.dispatch(id, ir.Const(2), ir.Const(2), 2, ir.BufferArg(0, src), ir.BufferArg(1, dst), offset,
		ir.BytesArg(3, ir.ValueBytes(float32(1))), ir.BytesArg(4, ir.ValueBytes(stride)), ir.BytesArg(10, ir.ValueBytes(float32(13)))) {
		for i := range int64(2) {
			k.views = append(k.views, ir.View{Mem: dst.Mem, Off: dst.Off.AddConst(i * stride * word), Len: ir.Const(4 * word)})
		}
	}
}

// variable adds a command that depends on params.
func (k *kitchen) variable() {
	rows := k.next(2) == 0
	length := ir.Const(1)
	if rows {
		length = ir.Linear(0, ir.Term{Param: k.n, Coeff: 1})
	}
	states := []ir.MemID{cache, state, upper, scratch, small, out}
	at := func() ir.View { return k.row(states[k.next(len(states))], int64(k.next(12)), rows) }
	flat := func(v ir.View) ir.View { // n words from a constant offset on
		if rows {
			v.Len = ir.Linear(0, ir.Term{Param: k.n, Coeff: word})
		}
		return v
	}
	few := int64(1)
	if rows {
		few = 3
	}
	switch k.next(6) {
	case 0, 1: // a write into the cache
		src, dst := flat(k.readable(few)), at()
		k.dispatch(k.kernel("v_copyfloat32float32"), length, ir.Const(1), 4, ir.BufferArg(0, src), ir.BufferArg(1, dst))
	case 2: // a read from the cache
		src, dst := at(), flat(k.writable(few))
		ok := k.dispatch(k.kernel("v_Silufloat32float32"), length, ir.Const(1), 4, ir.BufferArg(0, src), ir.BufferArg(1, dst))
		k.wrote(ok, ir.View{Mem: dst.Mem, Off: dst.Off, Len: ir.Const(word)})
	case 3:
		a, b, dst := at(), flat(k.readable(few)), at()
		k.dispatch(k.kernel("vv_Addfloat32"), length, ir.Const(1), 4, ir.BufferArg(0, a), ir.BufferArg(1, b), ir.BufferArg(2, dst))
	case 4:
		src, dst := at(), at()
		k.add(&ir.Copy{Dst: dst, Src: src})
	default:
		k.rope(ir.ScalarArg(2, ir.I32, ir.Linear(0, ir.Term{Param: k.pos, Coeff: 1})))
	}
}
