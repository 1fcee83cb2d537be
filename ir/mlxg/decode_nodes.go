package mlxg

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

func (d *nodeReader) node() ir.Node {
	start := d.pos
	n := d.list("the node", 1)
	code := d.int("code of the node", 0, nodeIndirect)
	if d.err != nil {
		return nil
	}
	if n != nodeSize[code] {
		d.fail(start, "a node of code %d has %d elements, want %d", code, n, nodeSize[code])
		return nil
	}
	switch code {
	case nodeDispatch:
		return d.dispatch()
	case nodeCopy:
		return &ir.Copy{ID: d.id("id"), Dst: d.view("destination"), Src: d.view("source"), Label: d.str("label"), From: d.from()}
	case nodeFill:
		return &ir.Fill{ID: d.id("id"), Dst: d.view("destination"), Value: uint8(d.int("value", 0, math.MaxUint8)), Label: d.str("label"), From: d.from()}
	case nodeBarrier:
		return &ir.Barrier{}
	case nodeCommit:
		return &ir.Commit{Order: ir.CommitOrder(d.int("order", int64(ir.OrderNone), int64(ir.OrderEvent))), Label: d.str("label")}
	case nodeGroupBegin:
		return &ir.GroupBegin{Label: d.str("label")}
	case nodeJoin:
		return &ir.Join{ID: d.id("id")}
	case nodeCarry:
		return &ir.Carry{ID: d.id("id"), Dst: d.view("destination"), Src: d.view("source"), Label: d.str("label"), From: d.from()}
	case nodeIndirect:
		x := d.dispatch()
		x.Indirect = d.indirect()
		return x
	default:
		return &ir.GroupEnd{}
	}
}

func (d *decoder) id(what string) ir.ID { return ir.ID(d.int(what, 0, math.MaxUint32)) }

func (d *decoder) from() []ir.ID {
	if d.isNil("provenance") {
		return nil
	}
	n := d.list("provenance", 1)
	if d.err != nil {
		return nil
	}
	out := []ir.ID{}
	for i := 0; i < n && d.err == nil; i++ {
		out = extend(out, n)
		out[i] = d.id("recorded id")
	}
	return out
}

func (d *nodeReader) dispatch() *ir.Dispatch {
	x := d.dispatches.One()
	x.ID = d.id("id")
	x.Kernel = ir.KernelID(d.index("kernel", len(d.g.Kernels)))
	x.Bindings = d.bindings.read(d, d.bindingList)
	start := d.pos
	n := d.list("threadgroup memory", 1)
	if n%2 != 0 {
		d.fail(start, "threadgroup memory has %d elements, want pairs of slot and bytes", n)
	}
	for i := 0; i < n/2 && d.err == nil; i++ {
		x.ThreadgroupMemory = extend(x.ThreadgroupMemory, n/2)
		x.ThreadgroupMemory[i] = ir.ThreadgroupMemory{
			Slot:  uint8(d.int("slot of threadgroup memory", 0, math.MaxUint8)),
			Bytes: uint32(d.int("bytes of threadgroup memory", 0, math.MaxUint32)),
		}
	}
	if d.tuple("grid", 7) {
		x.GridKind = ir.GridKind(d.int("unit of the grid", int64(ir.Threadgroups), int64(ir.Threads)))
		for i := range x.Grid {
			x.Grid[i] = ir.Extent{Num: d.affine("grid"), Div: d.int("divisor of the grid", 1, math.MaxInt64)}
		}
	}
	if d.tuple("threadgroup", 3) {
		for i := range x.Threadgroup {
			x.Threadgroup[i] = uint32(d.int("threadgroup", 0, math.MaxUint32))
		}
	}
	x.Effects = d.effects.read(d, d.effectsOrNil)
	x.Op = d.str("op")
	x.Label = d.str("label")
	x.From = d.froms.read(d, d.from)
	return x
}

func (d *decoder) bindingList() (out []ir.Binding) {
	n := d.list("bindings", 4)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(1, "binding", i)
		out = extend(out, n)
		d.binding(&out[i])
	}
	d.leave(1)
	return out
}

// index reads an index into a list of n elements.
func (d *decoder) index(what string, n int) int64 {
	start := d.pos
	i := d.int(what, 0, math.MaxInt32)
	if d.err == nil && i >= int64(n) {
		d.fail(start, "%s is %d, the graph has %d", what, i, n)
	}
	return i
}

func (d *decoder) binding(b *ir.Binding) {
	start := d.pos
	n := d.list("the binding", 1)
	b.Slot = uint8(d.int("slot", 0, math.MaxUint8))
	b.Kind = ir.BindingKind(d.int("kind", int64(ir.BindView), int64(ir.BindScalar)))
	if d.err != nil {
		return
	}
	if want := [...]int{ir.BindView: 5, ir.BindBytes: 3, ir.BindScalar: 4}[b.Kind]; n != want {
		d.fail(start, "a binding of kind %d has %d elements, want %d", b.Kind, n, want)
		return
	}
	switch b.Kind {
	case ir.BindView:
		b.View = d.viewFields()
	case ir.BindBytes:
		// This is a copy, because nodes may be used after the file is closed.
		b.Bytes = slices.Clone(d.bin("inline bytes"))
	case ir.BindScalar:
		b.Type = d.dtype("type")
		b.Expr = d.affine("expression")
	}
}

func (d *decoder) view(what string) (v ir.View) {
	if d.tuple(what, 3) {
		v = d.viewFields()
	}
	return v
}

func (d *decoder) viewFields() ir.View {
	return ir.View{Mem: d.mem(), Off: d.affine("offset"), Len: d.affine("length")}
}

func (d *decoder) mem() ir.MemID { return ir.MemID(d.index("memory", len(d.g.Memories))) }

func (d *decoder) effectsOrNil() *ir.Effects {
	if d.isNil("effects") || !d.tuple("effects", 3) {
		return nil
	}
	e := &ir.Effects{Complete: d.bool("complete")}
	n := d.list("reads", 4)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(1, "read", i)
		e.Reads = extend(e.Reads, n)
		d.region(&e.Reads[i], d.list("the read", 1))
	}
	d.leave(1)
	n = d.list("writes", 5)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(1, "write", i)
		e.Writes = extend(e.Writes, n)
		w, k := &e.Writes[i], d.list("the write", 1)
		flags := d.int("flags", 0, writeMust|writeAtomic)
		w.Must, w.Atomic = flags&writeMust != 0, flags&writeAtomic != 0
		d.region(&w.Region, k-1)
	}
	d.leave(1)
	return e
}

// region reads the n elements of a region: memory, offset, run, and a count and a stride
// for each dimension.
func (d *decoder) region(r *ir.Region, n int) {
	if n < 3 || n%2 == 0 {
		d.fail(d.pos, "a region has %d elements, want memory, offset, run and pairs of count and stride", n)
		return
	}
	r.Mem, r.Off, r.Run = d.mem(), d.affine("offset"), d.affine("run")
	n = (n - 3) / 2
	for i := 0; i < n && d.err == nil; i++ {
		r.Dims = extend(r.Dims, n)
		r.Dims[i] = ir.Dim{Count: d.affine("count"), Stride: d.int("stride", math.MinInt64, math.MaxInt64)}
	}
}

// affine reads a constant, or an array [constant, param, coefficient, …]. Params must
// ascend and no coefficient may be 0, so that every expression has only one encoding.
func (d *decoder) affine(what string) ir.Affine {
	if !d.arrayNext(what) {
		return ir.Const(d.int(what, math.MinInt64, math.MaxInt64))
	}
	start := d.pos
	n := d.list(what, 1)
	if n < 3 || n%2 == 0 {
		d.fail(start, "%s has %d elements, want a constant and pairs of param and coefficient", what, n)
		return ir.Affine{}
	}
	c := d.int(what, math.MinInt64, math.MaxInt64)
	d.terms = d.terms[:0]
	for last := int64(-1); len(d.terms) < n/2 && d.err == nil; {
		at := d.pos
		p := d.index("param", len(d.g.Params))
		if d.err == nil && p <= last {
			d.fail(at, "param %d after param %d in %s, want ascending params", p, last, what)
		}
		at = d.pos
		k := d.int("coefficient", math.MinInt64, math.MaxInt64)
		if d.err == nil && k == 0 {
			d.fail(at, "coefficient of param %d in %s is 0: leave the param out", p, what)
		}
		d.terms = append(d.terms, ir.Term{Param: ir.ParamID(p), Coeff: k})
		last = p
	}
	if d.err != nil {
		return ir.Affine{}
	}
	return ir.Linear(c, d.terms...)
}
