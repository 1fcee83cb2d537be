package calls

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// value is an operand: a numbered result, a parameter or a constant.
type value struct {
	t    typ
	text string
}

// body is a function's body while it is written.
type body struct {
	target   Target
	name     string
	result   typ
	args     []value
	lines    []string
	values   int
	declares []string
	support  []string
}

// line adds an instruction without result.
func (b *body) line(format string, args ...any) {
	b.lines = append(b.lines, "  "+fmt.Sprintf(format, args...))
}

// make adds an instruction with a result.
func (b *body) make(t typ, format string, args ...any) value {
	b.values++
	v := value{t, fmt.Sprintf("%%v%d", b.values)}
	b.line("%s = %s", v.text, fmt.Sprintf(format, args...))
	return v
}

// op is an instruction of two operands of one type.
func (b *body) op(op string, x, y value) value {
	return b.make(x.t, "%s %s %s, %s", op, x.t, x.text, y.text)
}

func (b *body) cast(op string, x value, to typ) value {
	return b.make(to, "%s %s %s to %s", op, x.t, x.text, to)
}

// bitcast is nothing where the types are the same.
func (b *body) bitcast(x value, to typ) value {
	if x.t == to {
		return x
	}
	return b.cast("bitcast", x, to)
}

// compare is fcmp of floats and icmp of integers.
func (b *body) compare(predicate string, x, y value) value {
	op := "icmp"
	if x.t.float() {
		op = "fcmp"
	}
	return b.make(x.t.of("i1"), "%s %s %s %s, %s", op, predicate, x.t, x.text, y.text)
}

func (b *body) choose(c, x, y value) value {
	return b.make(x.t, "select %s %s, %s %s, %s %s", c.t, c.text, x.t, x.text, y.t, y.text)
}

func (b *body) extract(x value, i int) value {
	if x.t.lanes == 0 {
		return x
	}
	return b.make(x.t.scalar(), "extractelement %s %s, i32 %d", x.t, x.text, i)
}

// each applies f to every lane of the vectors, or once to scalars. All lanes are computed
// before the vector is made: LLVM 21 for PTX fails on some vectors that live across branches.
func (b *body) each(result typ, f func(lane []value) value, xs ...value) value {
	if result.lanes == 0 {
		return f(xs)
	}
	lanes := make([][]value, result.lanes)
	for i := range lanes {
		for _, x := range xs {
			lanes[i] = append(lanes[i], b.extract(x, i))
		}
	}
	elements := make([]value, result.lanes)
	for i, lane := range lanes {
		elements[i] = f(lane)
	}
	r := value{result, "poison"}
	for i, v := range elements {
		r = b.make(result, "insertelement %s %s, %s %s, i32 %d", result, r.text, v.t, v.text, i)
	}
	return r
}

// intrinsic calls an intrinsic of LLVM: the name without llvm. and the type of the first
// operand behind it.
func (b *body) intrinsic(name string, result typ, xs ...value) value {
	full := "llvm." + name
	var types, operands []string
	for _, x := range xs {
		types = append(types, x.t.String())
		operands = append(operands, x.t.String()+" "+x.text)
	}
	b.declare(fmt.Sprintf("declare %s @%s(%s)", result, full, strings.Join(types, ", ")))
	return b.make(result, "call %s @%s(%s)", result, full, strings.Join(operands, ", "))
}

// overloaded is an intrinsic whose name ends in the type of its result.
func (b *body) overloaded(name string, xs ...value) value {
	return b.intrinsic(name+"."+xs[0].t.suffix(), xs[0].t, xs...)
}

func (b *body) declare(line string) {
	if !slices.Contains(b.declares, line) {
		b.declares = append(b.declares, line)
	}
}

// end is the function of math.c from which the type is rounded.
func (t typ) end(name string) string {
	if t.elem == "float" {
		return name + "_f"
	}
	return name + "_h"
}

// mathematics calls a function of math.c, lane by lane. Its types are scalars.
func (b *body) mathematics(name string, result typ, xs ...value) value {
	m := library()[name]
	if !slices.Contains(b.support, m.text) {
		b.support = append(b.support, m.text)
		for _, d := range m.declares {
			b.declare(d)
		}
	}
	return b.each(result, func(lane []value) value {
		var operands []string
		for _, x := range lane {
			operands = append(operands, x.t.String()+" "+x.text)
		}
		return b.make(result.scalar(), "call %s @%s(%s)", result.scalar(), prefix+name, strings.Join(operands, ", "))
	}, xs...)
}

// assembly is one instruction of PTX on floats, lane by lane.
func (b *body) assembly(instruction string, x value) value {
	return b.each(x.t, func(lane []value) value {
		return b.make(float32s, `call float asm "%s $0, $1;", "=f,f"(float %s)`, instruction, lane[0].text)
	}, x)
}

func (b *body) ret(x value) { b.line("ret %s %s", x.t, x.text) }

// integer is a constant in all lanes.
func (t typ) integerConst(n int64) value {
	s := fmt.Sprint(n)
	if t.elem == "i1" {
		s = map[bool]string{true: "true", false: "false"}[n != 0]
	}
	return t.all(s)
}

// number is a constant in all lanes of a type of floats; f is a float32.
func (t typ) number(f float64) value {
	return t.all(fmt.Sprintf("0x%016X", math.Float64bits(f)))
}

func (t typ) all(scalar string) value {
	if t.lanes == 0 {
		return value{t, scalar}
	}
	one := t.elem + " " + scalar
	return value{t, "<" + strings.Repeat(one+", ", t.lanes-1) + one + ">"}
}

// widen makes floats of halves and bfloats. It is exact.
func (b *body) widen(x value) value {
	switch x.t.elem {
	case "half":
		return b.cast("fpext", x, x.t.of("float"))
	case "bfloat":
		wide := b.cast("zext", b.bitcast(x, x.t.of("i16")), x.t.of("i32"))
		return b.bitcast(b.op("shl", wide, wide.t.integerConst(16)), x.t.of("float"))
	}
	return x
}

// narrow rounds floats to halves or bfloats.
func (b *body) narrow(x value, to typ) value {
	switch {
	case to.elem == "half", to.elem == "bfloat" && b.target == PTX:
		return b.cast("fptrunc", x, to)
	case to.elem == "bfloat":
		// To nearest, ties to even; a NaN keeps its upper bits and becomes a quiet one.
		i := b.bitcast(x, x.t.of("i32"))
		odd := b.op("and", b.op("lshr", i, i.t.integerConst(16)), i.t.integerConst(1))
		rounded := b.op("add", i, b.op("add", odd, i.t.integerConst(0x7fff)))
		quiet := b.op("or", i, i.t.integerConst(0x400000))
		i = b.choose(b.compare("uno", x, x), quiet, rounded)
		return b.upper(i, to)
	}
	return x
}

// shorten is narrow for values that are exact in the narrower type.
func (b *body) shorten(x value, to typ) value {
	if to.elem == "bfloat" {
		return b.upper(b.bitcast(x, x.t.of("i32")), to)
	}
	return b.narrow(x, to)
}

// upper makes a bfloat of the upper half of 32 bits.
func (b *body) upper(i value, to typ) value {
	return b.bitcast(b.cast("trunc", b.op("lshr", i, i.t.integerConst(16)), to.of("i16")), to)
}

func (b *body) definition() Definition {
	var params []string
	for _, a := range b.args {
		params = append(params, a.t.written(b.target)+" "+a.text)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "define internal %s @%s(%s) alwaysinline nounwind {\n", b.result.written(b.target), b.name, strings.Join(params, ", "))
	for _, l := range b.lines {
		text.WriteString(l)
		text.WriteByte('\n')
	}
	text.WriteString("}")
	slices.Sort(b.declares)
	slices.Sort(b.support)
	return Definition{Text: text.String(), Support: b.support, Declares: b.declares}
}
