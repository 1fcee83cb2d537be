package term

import "strings"

// writeMetal writes an operation on the texts of its operands in Metal, whose signs are those of terms.
func (o *operation) writeMetal(args []string) string {
	switch {
	case o.takes == choice:
		return args[0] + " ? " + args[1] + " : " + args[2]
	case o.notation == infix:
		return args[0] + " " + o.name + " " + args[1]
	case o.notation == prefix:
		return o.name + args[0]
	}
	return o.metal + "(" + strings.Join(args, ", ") + ")"
}

// Minima and maxima that order zeros (docs/terms.md). They look at bits, which fast-math leaves alone.
const (
	lesserText = `inline float lesser(float a, float b) {
  const float m = precise::fmin(a, b);
  return a == b ? as_type<float>(as_type<uint>(a) | as_type<uint>(b)) : m;
}

`
	greaterText = `inline float greater(float a, float b) {
  const float m = precise::fmax(a, b);
  return a == b ? as_type<float>(as_type<uint>(a) & as_type<uint>(b)) : m;
}

`
)
