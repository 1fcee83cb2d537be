package elementwise

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// helpers returns the functions that the kernel calls and Metal lacks: one that replaces NaNs as a
// store does, and min and max that order zeros (docs/terms.md). They work on bits, which fast-math
// does not change.
func (p *Program) helpers() string {
	text := ""
	for _, t := range []ir.DType{ir.F32, ir.F16} {
		for i := range p.Results {
			if p.OutTypes[i] == t && !p.Copies[i] {
				text += storedText[t]
				break
			}
		}
	}
	for _, op := range []term.Op{term.Min, term.Max} {
		if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Op == op }) {
			text += orderedText[op]
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

`}

var orderedText = map[term.Op]string{
	term.Min: `inline float lesser(float a, float b) {
  const float m = precise::fmin(a, b);
  return a == b ? as_type<float>(as_type<uint>(a) | as_type<uint>(b)) : m;
}

`,
	term.Max: `inline float greater(float a, float b) {
  const float m = precise::fmax(a, b);
  return a == b ? as_type<float>(as_type<uint>(a) & as_type<uint>(b)) : m;
}

`}
