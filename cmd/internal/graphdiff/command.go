package graphdiff

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// commands compares each command with its counterpart in the other graph.
func (c *comparison) commands() {
	for i := range c.a.commands {
		j := c.pair(i)
		if j < 0 {
			continue
		}
		p := pair{c, j, i, false}
		p.compare()
	}
}

// pair is a command of the graph before and the same command in the graph after.
type pair struct {
	*comparison
	j, i  int
	moved bool // it binds other bytes
}

func (p *pair) note(k Kind, format string, args ...any) {
	p.add(k, p.b.ids[p.j:p.j+1], p.a.ids[p.i:p.i+1], "%s: %s", p.a.describe(p.i), fmt.Sprintf(format, args...))
}

func (p *pair) compare() {
	x, y := p.b.commands[p.j], p.a.commands[p.i]
	if p.b.ids[p.j] != p.a.ids[p.i] {
		p.note(Provenance, "was %s", p.b.ids[p.j])
	}
	if !slices.Equal(p.b.from[p.j], p.a.from[p.i]) {
		p.note(Provenance, "stands for %v, stood for %v", p.a.from[p.i], p.b.from[p.j])
	}
	switch x := x.(type) {
	case *ir.Dispatch:
		if y, ok := y.(*ir.Dispatch); ok {
			p.dispatch(x, y)
			return
		}
	case *ir.Copy:
		if y, ok := y.(*ir.Copy); ok {
			p.transfer(x.Dst, y.Dst, x.Src, y.Src)
			p.text("label", x.Label, y.Label)
			return
		}
	case *ir.Carry:
		if y, ok := y.(*ir.Carry); ok {
			p.transfer(x.Dst, y.Dst, x.Src, y.Src)
			p.text("label", x.Label, y.Label)
			return
		}
	case *ir.Fill:
		if y, ok := y.(*ir.Fill); ok {
			p.view("destination", x.Dst, y.Dst)
			if x.Value != y.Value {
				p.note(Constants, "value 0x%02x before, 0x%02x after", x.Value, y.Value)
			}
			p.text("label", x.Label, y.Label)
			return
		}
	case *ir.Join:
		if _, ok := y.(*ir.Join); ok {
			return
		}
	}
	p.note(Command, "%s before, %s after", p.b.kernel(p.j), p.a.kernel(p.i))
}

// transfer compares the views of two copies, or of two carries.
func (p *pair) transfer(dst, dstAfter, src, srcAfter ir.View) {
	p.view("destination", dst, dstAfter)
	p.view("source", src, srcAfter)
}

func (p *pair) text(what, x, y string) {
	if x != y {
		p.note(Labels, "%s %q before, %q after", what, x, y)
	}
}

func (p *pair) dispatch(x, y *ir.Dispatch) {
	k, l := &p.b.g.Kernels[x.Kernel], &p.a.g.Kernels[y.Kernel]
	if what := otherKernel(k, l); what != "" {
		p.note(Command, "%s", what)
	}
	if s, t := grid(p.b.g, x), grid(p.a.g, y); s != t {
		p.note(Command, "grid %s before, %s after", s, t)
	}
	if !slices.Equal(x.ThreadgroupMemory, y.ThreadgroupMemory) {
		p.note(Command, "threadgroup memory %v before, %v after", x.ThreadgroupMemory, y.ThreadgroupMemory)
	}
	p.bindings(x, y)
	if x.Indirect != nil || y.Indirect != nil {
		p.offsets(x, y)
	}
	p.effects(x.Effects, y.Effects)
	p.text("op", x.Op, y.Op)
	p.text("label", x.Label, y.Label)
}

func grid(g *ir.Graph, d *ir.Dispatch) string {
	var parts []string
	for _, e := range d.Grid {
		s := g.FormatAffine(e.Num)
		if e.Div != 1 {
			s = fmt.Sprintf("ceil(%s, %d)", s, e.Div)
		}
		parts = append(parts, s)
	}
	at := ""
	if v := d.Counts(); v != nil {
		at = " at " + g.FormatView(*v)
	}
	return fmt.Sprintf("%s [%s] of %v%s", d.GridKind, strings.Join(parts, ", "), d.Threadgroup, at)
}

// offsets compares where two dispatches read the offsets of their views from.
func (p *pair) offsets(x, y *ir.Dispatch) {
	for slot := range uint8(31) {
		v, w := x.OffsetAt(slot), y.OffsetAt(slot)
		switch {
		case v == nil && w == nil:
		case w == nil:
			p.note(Command, "the offset of %s is not taken from memory any more", p.argument(slot))
		case v == nil:
			p.note(Command, "the offset of %s is taken from %s", p.argument(slot), p.a.g.FormatView(*w))
		default:
			p.view("place of the offset of "+p.argument(slot), *v, *w)
		}
	}
}

func (p *pair) bindings(x, y *ir.Dispatch) {
	for i, j := 0, 0; i < len(x.Bindings) || j < len(y.Bindings); {
		switch {
		case j == len(y.Bindings) || i < len(x.Bindings) && x.Bindings[i].Slot < y.Bindings[j].Slot:
			p.note(Command, "%s is not bound any more", p.argument(x.Bindings[i].Slot))
			i++
		case i == len(x.Bindings) || y.Bindings[j].Slot < x.Bindings[i].Slot:
			p.note(Command, "%s is bound too: %s", p.argument(y.Bindings[j].Slot), value(p.a.g, &y.Bindings[j]))
			j++
		default:
			p.binding(&x.Bindings[i], &y.Bindings[j])
			i, j = i+1, j+1
		}
	}
}

func (p *pair) argument(slot uint8) string {
	d := p.a.commands[p.i].(*ir.Dispatch)
	if a, ok := p.a.g.Kernels[d.Kernel].Arg(slot); ok {
		return a.Name
	}
	return fmt.Sprintf("argument %d", slot)
}

func (p *pair) binding(x, y *ir.Binding) {
	// A view of argument memory is compared by the value that lies there.
	s, t := p.b.g.Resolve(*x), p.a.g.Resolve(*y)
	what := p.argument(x.Slot)
	if s.Kind == ir.BindView && t.Kind == ir.BindView {
		p.view(what, x.View, y.View)
		return
	}
	v, w := value(p.b.g, &s), value(p.a.g, &t)
	switch {
	case v != w || !sameScalar(&s, &t):
		p.note(Constants, "%s = %s before, %s after", what, v, w)
	case x.Kind != y.Kind && y.Kind == ir.BindView:
		p.note(Constants, "%s = %s is now kept at %s", what, v, p.a.g.FormatView(y.View))
	case x.Kind != y.Kind && x.Kind == ir.BindView:
		p.note(Constants, "%s = %s is now inline, was at %s", what, v, p.b.g.FormatView(x.View))
	case x.Kind == ir.BindView:
		p.view(what, x.View, y.View)
	}
}

// sameScalar compares what the text of a value does not show.
func sameScalar(s, t *ir.Binding) bool {
	return s.Kind == t.Kind && (s.Kind != ir.BindScalar || s.Type == t.Type) && bytes.Equal(s.Bytes, t.Bytes)
}

func value(g *ir.Graph, b *ir.Binding) string {
	switch b.Kind {
	case ir.BindBytes:
		return fmt.Sprintf("0x%x", b.Bytes)
	case ir.BindScalar:
		return b.Type.String() + " " + g.FormatAffine(b.Expr)
	}
	return g.FormatView(b.View)
}

// view compares two views by the names of their memories. A view that only names the
// same bytes by another alias is reported as such.
func (p *pair) view(what string, v, w ir.View) {
	s, t := p.b.g.FormatView(v), p.a.g.FormatView(w)
	if s == t && p.bytes(p.b.g, v) == p.bytes(p.a.g, w) {
		return
	}
	p.moved = true
	how := ""
	if p.bytes(p.b.g, v) == p.bytes(p.a.g, w) {
		how = ", the same bytes"
	}
	p.note(Views, "%s %s before, %s after%s", what, s, t, how)
}

// bytes names the bytes of a view by their root memory.
func (p *pair) bytes(g *ir.Graph, v ir.View) string {
	root, off := g.Root(v.Mem)
	v.Mem, v.Off = root, v.Off.AddConst(off)
	return g.FormatView(v)
}

func (p *pair) effects(x, y *ir.Effects) {
	switch {
	case !x.Known() && !y.Known() && x == nil && y == nil:
		return
	case !x.Known() && y.Known():
		p.note(Effects, "unknown before, stated after")
		return
	case x.Known() && !y.Known():
		p.note(Effects, "stated before, unknown after")
		return
	case x == nil || y == nil:
		p.note(Effects, "listed in part on one side, not at all on the other")
		return
	}
	if s, t := p.touched(p.b.g, x), p.touched(p.a.g, y); s != t {
		p.note(Effects, "%s before, %s after", s, t)
	}
}

// touched formats effects. If the command binds other bytes, its effects have moved
// along, and only their shapes are compared.
func (p *pair) touched(g *ir.Graph, e *ir.Effects) string {
	region := func(r ir.Region) string {
		if p.moved {
			s := g.FormatAffine(r.Run) + " bytes"
			for _, d := range r.Dims {
				s += fmt.Sprintf("; %s x %d", g.FormatAffine(d.Count), d.Stride)
			}
			return s
		}
		return g.FormatRegion(r)
	}
	var parts []string
	for _, r := range e.Reads {
		parts = append(parts, "reads "+region(r))
	}
	for _, w := range e.Writes {
		how := "may write "
		if w.Must {
			how = "writes "
		}
		if w.Atomic {
			how = "atomically " + how
		}
		parts = append(parts, how+region(w.Region))
	}
	if !e.Complete {
		parts = append(parts, "and more")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
