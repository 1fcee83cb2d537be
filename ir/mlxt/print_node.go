package mlxt

import (
	"encoding/hex"

	"github.com/mlxc/mlxc/ir"
)

const spaces = "                                    " // 2·(maxIndent + 2)

func (p *printer) indent(depth int) { p.str(spaces[:2*min(depth, maxIndent)]) }

func (p *printer) node(n ir.Node, depth int) {
	p.indent(depth)
	switch n := n.(type) {
	case *ir.Dispatch:
		p.dispatch(n, depth)
	case *ir.Copy:
		p.transfer(n.ID, " copy ", n.Src, n.Dst, n.Label, n.From)
	case *ir.Carry:
		p.transfer(n.ID, " carry ", n.Src, n.Dst, n.Label, n.From)
	case *ir.Fill:
		p.id(n.ID)
		p.str(" fill ")
		p.view(n.Dst)
		p.str(" ")
		p.hex(uint64(n.Value), 2)
		p.label(n.Label)
		p.from(n.From)
		p.after(n.ID)
	case *ir.Join:
		p.id(n.ID)
		p.str(" join")
		p.after(n.ID)
	case *ir.Barrier:
		p.str("barrier")
	case *ir.Commit:
		p.str("commit")
		if n.Order != ir.OrderNone {
			p.str(" ", n.Order.String())
		}
		if n.Label != "" {
			p.str(" ")
			p.quoted(n.Label)
		}
	case *ir.GroupBegin:
		p.str("group ")
		p.quoted(n.Label)
	case *ir.GroupEnd:
		p.str("end")
	}
	p.newline()
}

// transfer prints a copy or a carry.
func (p *printer) transfer(id ir.ID, word string, src, dst ir.View, label string, from []ir.ID) {
	p.id(id)
	p.str(word)
	p.view(src)
	p.str(" -> ")
	p.view(dst)
	p.label(label)
	p.from(from)
	p.after(id)
}

func (p *printer) id(id ir.ID) {
	p.str("#")
	p.uint(uint64(id))
}

func (p *printer) label(s string) {
	if s != "" {
		p.str(" label ")
		p.quoted(s)
	}
}

func (p *printer) from(ids []ir.ID) {
	for i, id := range ids {
		p.str(separator(i, " from "))
		p.id(id)
	}
}

// after writes the edges into the next command.
func (p *printer) after(to ir.ID) {
	for i := 0; len(p.edges) > 0 && p.edges[0].To == to; i++ {
		p.str(separator(i, " after "))
		if p.edges[0].Previous {
			p.str("previous ")
		}
		p.id(p.edges[0].From)
		p.edges = p.edges[1:]
	}
}

func (p *printer) dispatch(d *ir.Dispatch, depth int) {
	k := &p.g.Kernels[d.Kernel]
	p.id(d.ID)
	p.str(" @", p.kernels[d.Kernel], " (")
	for i := range d.Bindings {
		b := &d.Bindings[i]
		a, _ := k.Arg(b.Slot)
		p.str(separator(i, ""))
		p.name(a.Name)
		p.str(" = ")
		p.binding(b, a)
		if at := d.OffsetAt(b.Slot); at != nil {
			p.str(" at ")
			p.view(*at)
		}
	}
	p.str(")")
	for i, t := range d.ThreadgroupMemory {
		p.str(separator(i, " threadgroup("))
		if a, ok := threadgroupArg(k, t.Slot); ok {
			p.name(a.Name)
		} else {
			p.int(int64(t.Slot))
		}
		p.str(" = ")
		p.int(int64(t.Bytes))
	}
	if len(d.ThreadgroupMemory) > 0 {
		p.str(")")
	}
	p.str(" grid ", d.GridKind.String())
	for i, e := range d.Grid {
		p.str(separator(i, " ["))
		p.extent(e)
	}
	p.str("]")
	for i, t := range d.Threadgroup {
		p.str(separator(i, " of ["))
		p.int(int64(t))
	}
	p.str("]")
	if v := d.Counts(); v != nil {
		p.str(" at ")
		p.view(*v)
	}
	if d.Op != "" {
		p.str(" op ")
		p.name(d.Op)
	}
	p.label(d.Label)
	p.from(d.From)
	p.after(d.ID)
	if d.Effects != nil {
		p.newline()
		p.indent(depth)
		p.str("    ")
		p.effects(d.Effects)
	}
}

func threadgroupArg(k *ir.Kernel, slot uint8) (ir.Arg, bool) {
	for _, a := range k.Args {
		if a.Kind == ir.ThreadgroupArg && a.Slot == slot {
			return a, true
		}
	}
	return ir.Arg{}, false
}

func (p *printer) effects(e *ir.Effects) {
	p.str("effects ")
	if e.Complete {
		p.str("complete")
	} else {
		p.str("partial")
	}
	for i, r := range e.Reads {
		p.str(separator(i, " reads "))
		p.region(r)
	}
	for i, w := range e.Writes {
		p.str(separator(i, " writes "))
		if w.Must {
			p.str("must ")
		} else {
			p.str("may ")
		}
		if w.Atomic {
			p.str("atomic ")
		}
		p.region(w.Region)
	}
}

func (p *printer) binding(b *ir.Binding, a ir.Arg) {
	switch b.Kind {
	case ir.BindView:
		p.view(b.View)
	case ir.BindScalar:
		if b.Expr.IsConst() {
			p.str("expr ") // without this word it would read as inline bytes
		}
		p.affine(b.Expr)
	case ir.BindBytes:
		p.inline(b.Bytes, a)
	}
}

// inline writes bytes as values of the argument's type if they are a whole number of values, and in
// hexadecimal otherwise.
func (p *printer) inline(data []byte, a ir.Arg) {
	size := int(a.Type.Size())
	switch {
	case size == 0 || len(data)%size != 0:
		p.str(`hex"`)
		p.buf = hex.AppendEncode(p.buf, data)
		p.str(`"`)
	case a.Count == 1:
		p.buf = appendValue(p.buf, a.Type, littleEndian(data))
	default:
		for i := 0; i < len(data); i += size {
			p.str(separator(i, "["))
			p.buf = appendValue(p.buf, a.Type, littleEndian(data[i:i+size]))
		}
		p.str("]")
	}
}

func littleEndian(b []byte) (v uint64) {
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}

func (p *printer) view(v ir.View) {
	p.mem(v.Mem)
	p.span(v.Off, v.Len)
	p.str("]")
}

func (p *printer) region(r ir.Region) {
	p.mem(r.Mem)
	p.span(r.Off, r.Run)
	for _, d := range r.Dims {
		p.str("; ")
		p.affine(d.Count)
		p.str(" x ")
		p.int(d.Stride)
	}
	p.str("]")
}

func (p *printer) span(off, n ir.Affine) {
	p.str("[")
	p.affine(off)
	p.str(":")
	p.affine(off.Add(n))
}

func (p *printer) extent(e ir.Extent) {
	if e.Div == 1 {
		p.affine(e.Num)
		return
	}
	p.str("ceildiv(")
	p.affine(e.Num)
	p.str(", ")
	p.int(e.Div)
	p.str(")")
}

// affine writes what [ir.Affine.Format] writes, without its allocations.
func (p *printer) affine(a ir.Affine) {
	ts := a.Terms()
	if len(ts) == 0 {
		p.int(a.Const)
		return
	}
	for i, t := range ts {
		p.sign(t.Coeff, i == 0)
		if t.Coeff != 1 && t.Coeff != -1 {
			p.uint(magnitude(t.Coeff))
			p.str("*")
		}
		p.str("$", p.params[t.Param])
	}
	if a.Const != 0 {
		p.sign(a.Const, false)
		p.uint(magnitude(a.Const))
	}
}

func (p *printer) sign(v int64, first bool) {
	switch {
	case first && v < 0:
		p.str("-")
	case first:
	case v < 0:
		p.str(" - ")
	default:
		p.str(" + ")
	}
}

// magnitude returns |v|, which is right for the smallest integer too.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
