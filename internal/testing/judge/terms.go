package judge

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// element is the size in bytes of an f32, the only element type that terms handle.
const element = 4

// number1 is the value of an element of a weight that holds nothing but the number 1.
var number1 = ofText("one") &^ tainted

// plus and times are the values of a sum and a product of two elements. Both commute bit
// for bit, and one times x is x.
func plus(a, b value) value {
	return list(ofText("plus"), []value{min(a, b), max(a, b)}, true)
}

func times(a, b value) value {
	switch number1 {
	case a:
		return b
	case b:
		return a
	}
	return list(ofText("times"), []value{min(a, b), max(a, b)}, true)
}

// termSteps returns what a dispatch of a norm, a product or a sum is documented to
// compute: rms(x, w) = w · n(x), element by element, where n is opaque in x, eps and
// the shape. It returns nil for all other commands. It was written from the formulas,
// independently of the library's declarations.
func (m *machine) termSteps(c *command) []step {
	d, ok := c.node.(*ir.Dispatch)
	if !ok || m.unit != element || c.declaredBy == nil || len(c.writes) != 1 {
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
	op := map[string]func(a, b value) value{"Addfloat32": plus, "Multiplyfloat32": times}[rest]
	if op == nil {
		return nil
	}
	out := m.targets(c.writes)
	rows, columns := int64(1), int64(len(out))
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
	if rows*columns != int64(len(out)) {
		return nil
	}
	s := step{each: op, writes: out}
	for i := range rows {
		for j := range columns {
			for k := range 2 {
				s.reads = append(s.reads, m.elementAt(c.reads[k], i*strides[k][0]+j*strides[k][1]))
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
	for i := range int64(len(out)) {
		at := address(private, i)
		norm.writes = append(norm.writes, target{at, true, int(i)})
		scale.reads = append(scale.reads, ref{at: at}, m.elementAt(c.reads[1], i%axis*stride))
	}
	return []step{norm, scale}
}

// elementAt returns element i of the view that area a belongs to.
func (m *machine) elementAt(a area, i int64) ref {
	p := a.base
	cell := p.off/element + i
	for _, r := range a.runs {
		if at := cell*element - r.lo; r.bytes != "" && 0 <= at && at < int64(len(r.bytes)) {
			return ref{fixed: ofText(r.bytes[at : at+element])}
		}
	}
	k := &m.g.Memories[p.mem]
	if k.Kind != ir.Weight {
		return ref{at: address(p.mem, cell)}
	}
	if k.Init.Kind == ir.InitFill && k.Init.Pattern == ir.FillU32(0x3f800000).Pattern {
		return ref{fixed: number1}
	}
	return ref{fixed: leaf(ofWeight, m.own[p.mem], cell*m.unit, 0)}
}
