package elementwise

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Function is the host name of the kernel in its source.
const Function = "elementwise"

var metal = map[ir.DType]string{ir.F32: "float", ir.F16: "half", ir.BF16: "bfloat"}

// Source returns the Metal source of the kernel. A thread loads all its operands
// before it stores a result, so that a result may lie where an operand lay.
func (p *Program) Source() string {
	var b strings.Builder
	b.WriteString("// " + p.Decl.Name + "\n\n#include <metal_stdlib>\nusing namespace metal;\n#pragma clang fp contract(off)\n\n" + p.helpers() + "[[kernel]] void " + Function + "(\n")
	for _, o := range p.Operands {
		fmt.Fprintf(&b, "    const device %s* %s [[buffer(%d)]],\n", metal[o.Type], decl.ElementwiseOperand(int(o.Slot), o.Type), o.Slot)
	}
	for i, s := range p.Out {
		fmt.Fprintf(&b, "    device %s* out%d [[buffer(%d)]],\n", metal[p.OutTypes[i]], i, s)
	}
	for i, s := range p.Constants {
		fmt.Fprintf(&b, "    constant float& s%d [[buffer(%d)]],\n", i, s)
	}
	index := map[Index]string{Full: "at", One: "0"}
	if p.Flat {
		b.WriteString("    uint at [[thread_position_in_grid]]) {\n")
	} else {
		b.WriteString("    uint2 position [[thread_position_in_grid]],\n    uint2 grid [[threads_per_grid]]) {\n")
		b.WriteString("  const size_t at = size_t(position.y) * grid.x + position.x;\n")
		index[Row], index[Column] = "position.x", "position.y"
	}
	widened := p.Widened()
	for i, s := range p.Steps {
		kind := "float"
		if s.Op.Condition() {
			kind = "bool"
		}
		if t := p.Narrow(s); t != ir.Invalid {
			// A copy stores the 16 bits as they were loaded.
			fmt.Fprintf(&b, "  const %s h%d = %s;\n", metal[t], i, p.expression(s, index))
			if widened[i] {
				fmt.Fprintf(&b, "  const float v%d = float(h%d);\n", i, i)
			}
			continue
		}
		fmt.Fprintf(&b, "  const %s v%d = %s;\n", kind, i, p.expression(s, index))
	}
	for i, r := range p.Results {
		name := "v"
		if p.OutTypes[i] != ir.F32 { // the value has the type: it was loaded as such, or rounded to it
			name = "h"
		}
		if name += strconv.Itoa(r); !p.Copies[i] {
			name = "stored(" + name + ")"
		}
		fmt.Fprintf(&b, "  out%d[at] = %s;\n", i, name)
	}
	b.WriteString("}\n")
	return b.String()
}

// Narrow returns the 16-bit type of a step's value, as it is loaded or rounded; else [ir.Invalid].
func (p *Program) Narrow(s Step) ir.DType {
	switch {
	case s.Op == term.Round:
		return s.Type
	case s.Op == term.Load && p.Operands[s.Operand].Type != ir.F32:
		return p.Operands[s.Operand].Type
	}
	return ir.Invalid
}

// Widened returns, for each step, whether another step or an f32 result uses its value as a
// float. A 16-bit operand for which that is false is only copied.
func (p *Program) Widened() []bool {
	out := make([]bool, len(p.Steps))
	for k, r := range p.Results {
		out[r] = out[r] || p.OutTypes[k] == ir.F32
	}
	for _, s := range p.Steps {
		for _, a := range s.Args {
			out[a] = true
		}
	}
	return out
}

func (p *Program) expression(s Step, index map[Index]string) string {
	switch {
	case s.Op == term.Load:
		o := p.Operands[s.Operand]
		return fmt.Sprintf("%s[%s]", decl.ElementwiseOperand(int(o.Slot), o.Type), index[o.Index])
	case s.Op == term.Round:
		return fmt.Sprintf("%s(v%d)", metal[s.Type], s.Args[0])
	case s.Op == term.Symbol:
		return fmt.Sprintf("s%d", s.Operand)
	case s.Op == term.Real && math.IsInf(float64(s.Val), 1):
		return "INFINITY"
	case s.Op == term.Real:
		text := strconv.FormatFloat(float64(s.Val), 'g', -1, 32)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text + "f"
	}
	var args []string
	for _, a := range s.Args {
		args = append(args, "v"+strconv.Itoa(a))
	}
	return s.Op.Metal(args...)
}
