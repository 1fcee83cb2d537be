package judge

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// mode says what an opaque kernel makes of what it writes.
type mode uint8

const (
	plain   mode = iota // it must write
	update              // it may write
	unknown             // nobody knows what it touches
)

// opaqueCommands adds commands of opaque kernels, and a few others.
func (x *generator) opaqueCommands() {
	fusible := x.chance(3)
	n := 3 + x.IntN(8)
	pillar := -1
	if !fusible && x.chance(4) {
		pillar = x.IntN(n)
	}
	for i := range n {
		if i > 0 && x.chance(8) {
			x.g.Nodes = append(x.g.Nodes, &ir.Commit{Order: ir.CommitOrder(x.IntN(3))})
		}
		for range 20 {
			before := len(x.g.Nodes)
			switch {
			case i == pillar:
				x.opaque([]ir.View{x.readable(0)}, x.writable(0), unknown)
			case len(x.products) > 0 && !x.chance(3):
				x.product()
			case fusible && x.chance(3):
				x.normed(1+x.number(2), 2+2*x.number(2))
			default:
				x.opaqueCommand()
			}
			if len(x.g.Nodes) > before {
				break
			}
		}
	}
	for len(x.products) > 0 {
		x.product()
	}
}

func (x *generator) opaqueCommand() {
	switch kind := x.IntN(16); {
	case kind == 0:
		v := x.writable(0)
		x.wrote(x.add(&ir.Fill{Dst: v, Value: byte(x.IntN(2))}), v)
	case kind <= 2:
		dst := x.writable(0)
		src := x.readable(0)
		if dst.Len.IsConst() {
			src = x.readable(dst.Len.Const / word)
		} else {
			src.Len = dst.Len
		}
		x.wrote(x.add(&ir.Copy{Dst: dst, Src: src}), dst)
	case kind <= 5:
		x.opaque([]ir.View{x.readable(0)}, x.writable(0), plain)
	case kind <= 9:
		x.opaque([]ir.View{x.readable(0), x.readable(0)}, x.writable(0), plain)
	case kind <= 11:
		x.opaque([]ir.View{x.readable(0)}, x.readable(0), update)
	case kind <= 13:
		x.columns()
	default: // a declared kernel: c = a + b of f32s
		n := 1 + x.number(3)
		x.elementwise("vv_Addfloat32", x.writable(n), n, x.readable(n), x.readable(n))
	}
}

// opaque adds a dispatch of an opaque kernel that reads some views and writes another.
func (x *generator) opaque(reads []ir.View, dst ir.View, m mode) bool {
	e := &ir.Effects{Complete: m != unknown}
	var args []ir.Arg
	d := &ir.Dispatch{Threadgroup: [3]uint32{4, 1, 1}, Grid: [3]ir.Extent{{Num: x.at(2, 0, 1), Div: 1 + x.number(2)}, ir.Ext(1), ir.Ext(1)}}
	bind := func(name string, kind ir.ArgKind, access ir.ArgAccess, b ir.Binding) {
		b.Slot = uint8(len(args))
		args = append(args, ir.Arg{Slot: b.Slot, Name: name, Kind: kind, Access: access, Type: ir.U32, Count: int32(kind)})
		d.Bindings = append(d.Bindings, b)
	}
	for i, v := range reads {
		bind(fmt.Sprint("a", i), ir.DeviceArg, ir.ReadArg, ir.BufferArg(0, v))
		e.Reads = append(e.Reads, x.region(v))
	}
	access := ir.WriteArg
	if m == update {
		access = ir.ReadWriteArg
	}
	bind("o", ir.DeviceArg, access, ir.BufferArg(0, dst))
	w := ir.Write{Region: x.region(dst), Must: m != update, Atomic: m == update && x.chance(4)}
	e.Writes = []ir.Write{w}
	name := fmt.Sprintf("f%d_%d", len(reads), m)
	if x.chance(6) { // a view that the effects do not list
		name += "_unlisted"
		bind("u", ir.DeviceArg, ir.ReadArg, ir.BufferArg(0, ir.ViewOf([]ir.MemID{in, weight, state, small}[x.IntN(4)], word*x.number(4), word*(1+x.number(4)))))
	}
	arg, listed := x.constant()
	bind("c", ir.ConstantArg, ir.ReadArg, arg)
	if listed {
		e.Reads = append(e.Reads, arg.View.Contiguous())
	}
	d.Kernel = x.kernel(name, func() ir.Kernel {
		return ir.Kernel{Name: name, Function: name, Library: ir.Library{Kind: ir.Metallib, Path: "k.metallib", Digest: ir.Digest{1}},
			Args:      append(args, ir.Arg{Slot: 0, Name: "shared", Kind: ir.ThreadgroupArg, Type: ir.F32}),
			Constants: []ir.FunctionConstant{{Index: 3, Name: "c", Type: ir.U32, Bits: uint64(x.IntN(4))}}}
	})
	switch {
	case m != unknown:
		d.Effects = e
	case x.chance(2):
		d.Effects = &ir.Effects{Reads: e.Reads}
	}
	ok := x.add(d)
	if m == plain && len(w.Dims) == 0 {
		x.wrote(ok, ir.View{Mem: w.Mem, Off: w.Off, Len: w.Run})
	}
	return ok
}

// region draws what a kernel touches of a view: mostly all, else every other word, or all
// but the last word.
func (x *generator) region(v ir.View) ir.Region {
	r := v.Contiguous()
	switch {
	case v.Len.IsConst() && v.Len.Const >= 3*word && x.chance(6):
		r.Run, r.Dims = ir.Const(word), []ir.Dim{{Count: ir.Const((v.Len.Const + word) / (2 * word)), Stride: 2 * word}}
	case v.Len.IsConst() && v.Len.Const > word && x.chance(8):
		r.Run = ir.Const(v.Len.Const - word)
	}
	return r
}

// constant draws an argument: inline, a scalar, in argument memory, where it may cover
// several values and gaps or begin at a param, or in memory that commands write. listed
// says that effects may name it.
func (x *generator) constant() (b ir.Binding, listed bool) {
	switch k := x.IntN(8); {
	case k <= 2:
		return ir.BytesArg(0, ir.ValueBytes(uint32(x.IntN(3)))), false
	case k == 3 && x.params:
		return ir.ScalarArg(0, ir.U32, x.at(x.number(3), 1, x.number(2))), false
	case k == 4:
		m := []ir.MemID{state, small, out}[x.IntN(3)]
		return ir.BufferArg(0, ir.ViewOf(m, word*x.number(8), word)), x.chance(2)
	case k == 5:
		return ir.BufferArg(0, ir.View{Mem: rest, Off: x.at(word*x.number(4), word, 0), Len: ir.Const(2 * word)}), x.chance(2)
	}
	m := rest + ir.MemID(x.IntN(2))
	n := 1 + x.number(4)
	return ir.BufferArg(0, ir.ViewOf(m, word*x.number(x.g.Memories[m].Size/word-n+1), word*n)), x.chance(4)
}

// values draws the contents of argument memory: bytes, scalars that depend on params, and
// gaps.
func (x *generator) values(size int64) (out []ir.Value) {
	for off := int64(0); off+2*word <= size; {
		n := word * (1 + x.number(2))
		switch k := x.IntN(6); {
		case k == 0 && off > 0: // a gap
		case k <= 2 && x.params:
			n = word
			out = append(out, ir.Value{Off: off, Type: ir.U32, Expr: x.at(x.number(3), 1, x.number(2))})
		default:
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(x.IntN(2))
			}
			out = append(out, ir.Value{Off: off, Type: ir.U32, Bytes: b})
		}
		off += n
	}
	return out
}

// columns writes the columns of a matrix one after another, sometimes more than once, and
// sometimes as many rows as a param says. Sometimes the rows behind that are written too.
// Together they leave no byte out, so that the matrix can be read.
func (x *generator) columns() {
	m := x.writable(0)
	m.Off, m.Len = ir.Const(0), ir.Const(min(8*word, x.g.Memories[m.Mem].Size))
	width := 1 + x.number(3)
	rows := ir.Const(2)
	if x.chance(2) {
		rows = x.at(1, 0, 0)
		if x.params {
			rows = x.at(0, 0, 1)
		}
	}
	ok := true
	column := func(at, n ir.Affine, to int64, count ir.Affine) {
		src := x.readable(0)
		r := ir.Region{Mem: m.Mem, Off: at, Run: n, Dims: []ir.Dim{{Count: count, Stride: to}}}
		if count.Equal(ir.Const(1)) {
			r.Dims = nil
		}
		id := x.kernel("column", func() ir.Kernel {
			return ir.Kernel{Name: "column", Function: "column", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal", Digest: ir.Digest{2}},
				Args: []ir.Arg{{Slot: 0, Name: "src", Access: ir.ReadArg, Type: ir.F32}, {Slot: 1, Name: "dst", Access: ir.WriteArg, Type: ir.F32}}}
		})
		ok = ok && x.add(&ir.Dispatch{Kernel: id, Bindings: []ir.Binding{ir.BufferArg(0, src), ir.BufferArg(1, m)}, Threadgroup: [3]uint32{4, 1, 1},
			Grid:    [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)},
			Effects: &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: r, Must: true}}}})
	}
	first := x.IntN(int(width))
	for c := range width {
		n := int64(1)
		c = (c + int64(first)) % width
		if c+1 < width && x.chance(4) {
			n = 2 // over its neighbour
		}
		column(ir.Const(c*word), ir.Const(n*word), width*word, rows)
	}
	if x.chance(3) {
		column(ir.Const(int64(first)*word), ir.Const(word), width*word, rows)
	}
	length := rows.Scale(width * word)
	if x.chance(3) && width < 3 { // a row behind them
		column(length, ir.Const(width*word), word, ir.Const(1))
		length = length.AddConst(width * word)
	}
	x.wrote(ok, ir.View{Mem: m.Mem, Off: m.Off, Len: length})
	if ok && x.chance(2) { // one column is read
		n := 1 + x.number(2)
		r := ir.Region{Mem: m.Mem, Off: ir.Const(0), Run: ir.Const(word), Dims: []ir.Dim{{Count: ir.Const(n), Stride: width * word}}}
		dst := x.writable(n)
		id := x.kernels["column"]
		x.wrote(x.add(&ir.Dispatch{Kernel: id, Bindings: []ir.Binding{ir.BufferArg(0, m), ir.BufferArg(1, dst)}, Threadgroup: [3]uint32{4, 1, 1},
			Grid:    [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)},
			Effects: &ir.Effects{Complete: true, Reads: []ir.Region{r}, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}}}), dst)
	}
}
