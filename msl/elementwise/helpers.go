package elementwise

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// helpers are the functions that the kernel calls and Metal lacks: those of operations, and
// what a store leaves of a NaN (docs/terms.md), which looks at bits because fast-math leaves
// these alone.
func (p *Program) helpers() string {
	text := ""
	for _, t := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		for i := range p.Results {
			if p.OutTypes[i] == t && !p.Copies[i] {
				text += storedText[t]
				break
			}
		}
	}
	used := map[term.Op]bool{}
	for _, s := range p.Steps {
		used[s.Op] = true
	}
	for _, op := range term.Operations() {
		if used[op] {
			text += op.MetalText()
		}
	}
	return text
}

var storedText = map[ir.DType]string{
	ir.F32: `inline float stored(float v) {
  return (as_type<uint>(v) & 0x7fffffffu) > 0x7f800000u ? as_type<float>(0x7fc00000u) : v;
}

`,
	ir.F16: `inline half stored(half v) {
  return (as_type<ushort>(v) & 0x7fff) > 0x7c00 ? as_type<half>(ushort(0x7e00)) : v;
}

`,
	ir.BF16: `inline bfloat stored(bfloat v) {
  return (as_type<ushort>(v) & 0x7fff) > 0x7f80 ? as_type<bfloat>(ushort(0x7fc0)) : v;
}

`}
