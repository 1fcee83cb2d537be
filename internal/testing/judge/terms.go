package judge

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// element is the size in bytes of an f32, the only element type that terms handle.
const element = 4

// number1 returns the cell of a weight that holds nothing but the number 1. The cell is the i-th of its element.
func number1(i int) value { return result(ofText("one"), i, none, true) }

// plus and times return the cells of a sum and a product of two elements, given their cells. Both commute bit for bit,
// and one times x is x.
func plus(a, b []value) []value { return commutative("plus", a, b) }

func times(a, b []value) []value {
	switch {
	case isOne(a):
		return b
	case isOne(b):
		return a
	}
	return commutative("times", a, b)
}

func isOne(a []value) bool {
	for i, v := range a {
		if v != number1(i) {
			return false
		}
	}
	return true
}

func commutative(op string, a, b []value) []value {
	x, y := list(none, a, true), list(none, b, true)
	all := list(ofText(op), []value{min(x, y), max(x, y)}, true)
	out := make([]value, len(a))
	for i := range out {
		out[i] = result(all, i, none, true)
	}
	return out
}

// termSteps returns what a dispatch of a norm, a product or a sum is documented to
// compute: rms(x, w) = w · n(x), element by element, where n is opaque in x, eps and
// the shape. It returns nil for all other commands. It was written from the formulas,
// independently of the library's declarations.
func (m *machine) termSteps(c *command) []step {
	d, ok := c.node.(*ir.Dispatch)
	if !ok || c.declaredBy == nil || len(c.writes) != 1 {
		return nil
	}
	f := m.g.Kernels[d.Kernel].Function
	kind, rest, _ := strings.Cut(f, "_")
	switch {
	case (f == "rmsfloat32" || f == "rms_loopedfloat32") && len(c.reads) == 2:
		return m.normSteps(f, d, c)
	case kind != "vv" && kind != "g2" || len(c.reads) != 2:
		return nil
	}
	op := map[string]func(a, b []value) []value{"Addfloat32": plus, "Multiplyfloat32": times}[rest]
	if op == nil {
		return nil
	}
	out := m.targets(c.writes)
	rows, columns := int64(1), int64(len(out))*m.unit/element
	strides := [2][2]int64{{0, 1}, {0, 1}}
	if kind == "g2" {
		columns, rows = c.grid[0], c.grid[1]
		for i := range strides {
			b := c.given[uint8(3+i)]
			if len(b) != 16 {
				return nil
			}
			strides[i] = [2]int64{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
		}
	}
	if rows*columns*element != int64(len(out))*m.unit {
		return nil
	}
	s := step{each: op, writes: out}
	for i := range rows {
		for j := range columns {
			for k := range 2 {
				s.reads = append(s.reads, m.elementAt(c.reads[k], i*strides[k][0]+j*strides[k][1])...)
			}
		}
	}
	return []step{s}
}

// private is the memory of a norm's result before it is multiplied by the weight.
const private = ir.MemID(-2)

func (m *machine) normSteps(f string, d *ir.Dispatch, c *command) []step {
	var arg [6][]byte
	for i := 3; i < 6; i++ {
		if arg[i] = c.given[uint8(i)]; len(arg[i]) != 4 {
			return nil
		}
	}
	axis, stride := int64(binary.LittleEndian.Uint32(arg[4])), int64(binary.LittleEndian.Uint32(arg[5]))
	out := m.targets(c.writes)
	norm := step{code: ofText(fmt.Sprintf("%s eps %x axis %d threads %v of %v", f, arg[3], axis, c.grid, d.Threadgroup)), reads: m.refs(c.reads[:1], true)}
	scale := step{each: times, writes: out}
	cells := element / m.unit
	if int64(len(out))%cells != 0 {
		return nil
	}
	for i := range int64(len(out)) {
		at := address(private, i)
		norm.writes = append(norm.writes, target{at, true, int(i)})
		scale.reads = append(scale.reads, ref{at: at})
		if (i+1)%cells == 0 {
			scale.reads = append(scale.reads, m.elementAt(c.reads[1], i/cells%axis*stride)...)
		}
	}
	return []step{norm, scale}
}

// elementAt returns the cells of element i of the view that area a belongs to.
func (m *machine) elementAt(a area, i int64) (out []ref) {
	p := a.base
	k := &m.g.Memories[p.mem]
	ones := k.Kind == ir.Weight && k.Init.Kind == ir.InitFill && k.Init.Pattern == ir.FillU32(0x3f800000).Pattern
	start := p.off + i*element
	for at := start; at < start+element; at += m.unit {
		r := ref{at: address(p.mem, at/m.unit)}
		switch {
		case ones:
			r.fixed = number1(int(at-start) / int(m.unit))
		case k.Kind == ir.Weight:
			r.fixed = leaf(ofWeight, m.own[p.mem], at, 0)
		}
		for _, x := range a.runs {
			if n := at - x.lo; x.bytes != "" && 0 <= n && n < int64(len(x.bytes)) {
				r.fixed = ofText(x.bytes[n : n+m.unit])
			}
		}
		out = append(out, r)
	}
	return out
}
