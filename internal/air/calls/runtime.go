package calls

import (
	"fmt"
	"slices"
	"strings"
)

// Runtime returns definitions, weak and hidden, of the functions that LLVM calls on a Host for
// what a machine has no instruction for: __truncsfbf2 (floats to bfloats) on any x86-64 without
// AVX512_BF16; conversions of halves where F16C is missing; fmaf where FMA is; fmaxf and fminf, by LLVM 19, for
// comparisons whose operand is known to be no NaN. A module that is
// linked without a compiler's library wants them, whatever it calls itself. They may be a module
// and an object of their own.
func Runtime() string {
	type function struct {
		name   string
		result typ
		param  typ
		count  int
		write  func(b *body, x []value) value
	}
	double, half, bfloat := typ{elem: "double"}, typ{elem: "half"}, typ{elem: "bfloat"}
	toHalf := func(b *body, x value) value {
		return b.bitcast(b.mathematics("half_of_float", typ{elem: "i16"}, x), half)
	}
	odd := func(b *body, x value) value { return b.mathematics("odd_of_double", float32s, x) }
	var support, declares, texts []string
	for _, f := range []function{
		{"__truncsfbf2", bfloat, float32s, 1, func(b *body, x []value) value { return b.narrow(x[0], bfloat) }},
		{"__truncdfbf2", bfloat, double, 1, func(b *body, x []value) value { return b.narrow(odd(b, x[0]), bfloat) }},
		{"__truncsfhf2", half, float32s, 1, func(b *body, x []value) value { return toHalf(b, x[0]) }},
		{"__truncdfhf2", half, double, 1, func(b *body, x []value) value { return toHalf(b, odd(b, x[0])) }},
		{"__extendhfsf2", float32s, half, 1, func(b *body, x []value) value {
			return b.mathematics("float_of_half", float32s, b.bitcast(x[0], typ{elem: "i16"}))
		}},
		{"fmaxf", float32s, float32s, 2, func(b *body, x []value) value { return b.extreme("sgt", x[0], x[1]) }},
		{"fminf", float32s, float32s, 2, func(b *body, x []value) value { return b.extreme("slt", x[0], x[1]) }},
		{"fmaf", float32s, float32s, 3, func(b *body, x []value) value { return b.mathematics("fma_f", float32s, x...) }},
	} {
		b := &body{target: Host, name: f.name, result: f.result}
		for i := range f.count {
			b.args = append(b.args, value{f.param, fmt.Sprintf("%%a%d", i)})
		}
		b.ret(f.write(b, b.args))
		d := b.definition()
		support, declares = append(support, d.Support...), append(declares, d.Declares...)
		text := strings.Replace(d.Text, "define internal", "define weak hidden", 1)
		texts = append(texts, strings.Replace(text, " alwaysinline", "", 1))
	}
	slices.Sort(declares)
	slices.Sort(support)
	text := strings.Join(slices.Concat(slices.Compact(declares), slices.Compact(support), texts), "\n") + "\n"
	// Names of their own, so that the text can stand in a module beside that of Module.
	return strings.ReplaceAll(text, "@"+prefix, "@mlxc.runtime.")
}

// extreme is the operand that an integer comparison of their order chooses, or the other one of
// a NaN. It has no comparison of floats, of which LLVM could make a call of the very function
// that this is the body of.
func (b *body) extreme(predicate string, x, y value) value {
	i, j := b.bitcast(x, int32s), b.bitcast(y, int32s)
	// As integers with a sign, floats without one are in order, and those with one once their
	// other bits are turned over.
	ordered := func(i value) value {
		sign := b.op("ashr", i, i.t.integerConst(31))
		return b.op("xor", i, b.op("and", sign, i.t.integerConst(0x7fffffff)))
	}
	nan := func(i value) value {
		return b.compare("sgt", b.op("and", i, i.t.integerConst(0x7fffffff)), i.t.integerConst(0x7f800000))
	}
	chosen := b.choose(b.compare(predicate, ordered(i), ordered(j)), i, j)
	chosen = b.choose(nan(i), j, b.choose(nan(j), i, chosen))
	return b.bitcast(chosen, float32s)
}
