package calls

import "math"

// floatFunctions are those of floats, halves and bfloats, by the name behind air. and fast_.
var floatFunctions map[string]family

func init() {
	floatFunctions = map[string]family{
		// Sums, products and roots, which the machine rounds.
		"sqrt":   {"TT", floats, rounded(func(b *body, x []value) value { return b.overloaded("sqrt", x[0]) })},
		"divide": {"TTT", floats, rounded(func(b *body, x []value) value { return b.op("fdiv", x[0], x[1]) })},
		"fdim":   {"TTT", floats, rounded(fdim)},
		"fma":    {"TTTT", floats, fma},
		"mix":    {"TTTT", floats, rounded(mix)},

		// Exact.
		"fabs":     {"TT", floats, fabs},
		"abs":      {"TT", floats, fabs},
		"copysign": {"TTT", floats, copysign},
		"floor":    {"TT", floats, exact(func(b *body, x []value) value { return b.overloaded("floor", x[0]) })},
		"ceil":     {"TT", floats, exact(func(b *body, x []value) value { return b.overloaded("ceil", x[0]) })},
		"trunc":    {"TT", floats, exact(func(b *body, x []value) value { return b.overloaded("trunc", x[0]) })},
		"rint":     {"TT", floats, exact(func(b *body, x []value) value { return b.overloaded("rint", x[0]) })},
		"round":    {"TT", floats, exact(round)},
		"fract":    {"TT", floats, fract},
		"modf":     {"TTp", floats, modf},
		"sign":     {"TT", floats, exact(sign)},
		"step":     {"TTT", floats, exact(step)},

		// Order.
		"fmin":     {"TTT", floats, exact(func(b *body, x []value) value { return b.least(x[0], x[1]) })},
		"fmax":     {"TTT", floats, exact(func(b *body, x []value) value { return b.greatest(x[0], x[1]) })},
		"fmin3":    {"TTTT", floats, exact(func(b *body, x []value) value { return b.least(x[0], b.least(x[1], x[2])) })},
		"fmax3":    {"TTTT", floats, exact(func(b *body, x []value) value { return b.greatest(x[0], b.greatest(x[1], x[2])) })},
		"fmedian3": {"TTTT", floats, exact(median)},
		"clamp":    {"TTTT", floats, exact(func(b *body, x []value) value { return b.least(b.greatest(x[0], x[1]), x[2]) })},
		"saturate": {"TT", floats, exact(func(b *body, x []value) value { return b.saturate(x[0]) })},
		"select":   {"TTTB", floats, func(b *body, n *name, x []value) value { return b.choose(x[2], x[1], x[0]) }},

		"smoothstep": {"TTTT", floats, rounded(smoothstep)},

		// Bits.
		"ldexp":     {"TTI", floats, ldexp},
		"ilogb":     {"IT", floats, func(b *body, n *name, x []value) value { return b.mathematics("ilogb", n.letter('I'), b.widen(x[0])) }},
		"frexp":     {"TTp", floats, frexp},
		"nextafter": {"TTT", floats, nextafter},

		// Tests.
		"isnan":       {"BT", floats, test(func(b *body, x []value) value { return b.compare("uno", x[0], x[0]) })},
		"isinf":       {"BT", floats, test(func(b *body, x []value) value { return b.magnitude(x[0], "eq", 0x7f800000) })},
		"isfinite":    {"BT", floats, test(func(b *body, x []value) value { return b.magnitude(x[0], "ult", 0x7f800000) })},
		"isordered":   {"BTT", floats, test(func(b *body, x []value) value { return b.compare("ord", x[0], x[1]) })},
		"isunordered": {"BTT", floats, test(func(b *body, x []value) value { return b.compare("uno", x[0], x[1]) })},
		"isnormal":    {"BT", floats, isnormal},
		"signbit":     {"BT", floats, signbit},

		// Geometry.
		"dot":              {"ETT", floats, reduced(func(b *body, x []value) value { return b.dot(x[0], x[1]) })},
		"length_squared":   {"ET", floats, reduced(func(b *body, x []value) value { return b.dot(x[0], x[0]) })},
		"length":           {"ET", floats, reduced(func(b *body, x []value) value { return b.length(x[0]) })},
		"distance_squared": {"ETT", floats, reduced(func(b *body, x []value) value { d := b.op("fsub", x[0], x[1]); return b.dot(d, d) })},
		"distance":         {"ETT", floats, reduced(func(b *body, x []value) value { return b.length(b.op("fsub", x[0], x[1])) })},
		"normalize":        {"TT", floats, rounded(normalize)},
		"cross":            {"TTT", floats, rounded(cross)},
		"reflect":          {"TTT", floats, rounded(reflect)},
		"refract":          {"TTTE", floats, rounded(refract)},
		"faceforward":      {"TTTT", floats, faceforward},
	}
	for alias, of := range map[string]string{"min": "fmin", "max": "fmax", "min3": "fmin3", "max3": "fmax3", "median3": "fmedian3"} {
		floatFunctions[alias] = floatFunctions[of]
	}
	for _, op := range []string{
		"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "cospi", "exp", "exp10", "exp2",
		"log", "log10", "log2", "rsqrt", "sin", "sinh", "sinpi", "tan", "tanh", "tanpi",
	} {
		floatFunctions[op] = family{"TT", floats, precise(op)}
	}
	for _, op := range []string{"atan2", "fmod", "pow", "powr"} {
		floatFunctions[op] = family{"TTT", floats, precise(op)}
	}
	floatFunctions["sincos"] = family{"TTp", floats, sincos}
}

// rounded makes a function of floats one of all types: the result is rounded.
func rounded(f func(*body, []value) value) func(*body, *name, []value) value {
	return func(b *body, n *name, x []value) value { return b.narrow(f(b, b.widened(x)), n.t) }
}

// reduced is the same of functions that make one number of a vector.
func reduced(f func(*body, []value) value) func(*body, *name, []value) value {
	return func(b *body, n *name, x []value) value { return b.narrow(f(b, b.widened(x)), n.t.scalar()) }
}

// exact is rounded for functions whose result is exact, or one of the arguments.
func exact(f func(*body, []value) value) func(*body, *name, []value) value {
	return func(b *body, n *name, x []value) value { return b.shorten(f(b, b.widened(x)), n.t) }
}

// test makes a predicate of floats one of all types.
func test(f func(*body, []value) value) func(*body, *name, []value) value {
	return func(b *body, n *name, x []value) value { return f(b, b.widened(x)) }
}

// precise is a function of math.c, or what the GPU has instead of it.
func precise(op string) func(*body, *name, []value) value {
	return func(b *body, n *name, x []value) value {
		w := b.widened(x)
		if n.fast && b.target == PTX {
			if v, ok := b.approximate(op, w); ok {
				return b.narrow(v, n.t)
			}
		}
		return b.narrow(b.mathematics(n.t.end(op), w[0].t, w...), n.t)
	}
}

func (b *body) widened(x []value) []value {
	w := make([]value, len(x))
	for i := range x {
		w[i] = b.widen(x[i])
	}
	return w
}

// approximate writes what a GPU's special function unit computes.
func (b *body) approximate(op string, x []value) (value, bool) {
	times := func(v value, c float64) value { return b.op("fmul", v, v.t.number(float64(float32(c)))) }
	a := x[0]
	switch op {
	case "exp2":
		return b.assembly("ex2.approx.f32", a), true
	case "exp":
		return b.assembly("ex2.approx.f32", times(a, math.Log2E)), true
	case "exp10":
		return b.assembly("ex2.approx.f32", times(a, math.Log2(10))), true
	case "log2":
		return b.assembly("lg2.approx.f32", a), true
	case "log":
		return times(b.assembly("lg2.approx.f32", a), math.Ln2), true
	case "log10":
		return times(b.assembly("lg2.approx.f32", a), math.Ln2/math.Ln10), true
	case "powr":
		return b.assembly("ex2.approx.f32", b.op("fmul", x[1], b.assembly("lg2.approx.f32", a))), true
	case "rsqrt":
		return b.assembly("rsqrt.approx.f32", a), true
	case "sin", "cos":
		return b.assembly(op+".approx.f32", b.turn(a)), true
	case "tan":
		r := b.turn(a)
		return b.op("fdiv", b.assembly("sin.approx.f32", r), b.assembly("cos.approx.f32", r)), true
	}
	return value{}, false
}

// turn subtracts whole turns: the unit's error grows with the argument.
func (b *body) turn(x value) value {
	const turn = 2 * math.Pi
	upper := float64(float32(turn))
	n := b.overloaded("rint", b.op("fmul", x, x.t.number(float64(float32(1/turn)))))
	r := b.overloaded("fma", n, x.t.number(-upper), x)
	return b.overloaded("fma", n, x.t.number(float64(float32(upper-turn))), r)
}

func fma(b *body, n *name, x []value) value {
	if n.t.elem == "float" {
		return b.overloaded("fma", x...)
	}
	return b.narrow(b.mathematics("fma_h", n.t.of("float"), b.widened(x)...), n.t)
}

func fdim(b *body, x []value) value {
	more := b.compare("ule", x[0], x[1])
	d := b.op("fsub", x[0], x[1])
	zero := b.choose(b.compare("uno", x[0], x[1]), d, d.t.number(0))
	return b.choose(more, zero, d)
}

// mix is x + (y-x)*a.
func mix(b *body, x []value) value {
	return b.op("fadd", x[0], b.op("fmul", b.op("fsub", x[1], x[0]), x[2]))
}

// pattern is the type of a value's bits.
func (t typ) pattern() typ {
	if t.bits() == 16 {
		return t.of("i16")
	}
	return t.of("i32")
}

// magnitudeMask has all bits but the sign, signMask that one, as signed constants.
func (t typ) magnitudeMask() value { return t.integerConst(int64(1)<<(t.bits()-1) - 1) }
func (t typ) signMask() value      { return t.integerConst(-(int64(1) << (t.bits() - 1))) }

func fabs(b *body, n *name, x []value) value {
	i := b.bitcast(x[0], n.t.pattern())
	return b.bitcast(b.op("and", i, i.t.magnitudeMask()), n.t)
}

func copysign(b *body, n *name, x []value) value { return b.signed(x[0], x[1]) }

// signed is x with the sign of s.
func (b *body) signed(x, s value) value {
	i, j := b.bitcast(x, x.t.pattern()), b.bitcast(s, x.t.pattern())
	return b.bitcast(b.op("or", b.op("and", i, i.t.magnitudeMask()), b.op("and", j, j.t.signMask())), x.t)
}

// round is to the nearest integer, ties away from zero. The difference is exact.
func round(b *body, x []value) value {
	t := b.overloaded("trunc", x[0])
	d := b.absolute(b.op("fsub", x[0], t))
	one := b.signed(t.t.number(1), x[0])
	away := b.choose(b.compare("oge", d, d.t.number(0.5)), b.op("fadd", t, one), t)
	return b.signed(away, x[0])
}

func (b *body) absolute(x value) value {
	i := b.bitcast(x, x.t.of("i32"))
	return b.bitcast(b.op("and", i, i.t.magnitudeMask()), x.t)
}

// fract is x - floor(x), but never 1: from there on the largest value below.
func fract(b *body, n *name, x []value) value {
	w := b.widen(x[0])
	d := b.op("fsub", w, b.overloaded("floor", w))
	below := map[string]float64{"float": 0x1.fffffep-1, "half": 0x1.ffcp-1, "bfloat": 0x1.fep-1}[n.t.elem]
	most := w.t.number(below)
	d = b.choose(b.compare("ogt", d, most), most, d)
	infinite := b.magnitude(w, "eq", 0x7f800000)
	d = b.choose(infinite, b.signed(w.t.number(0), w), d)
	return b.narrow(d, n.t)
}

// magnitude compares the bits of |x| with those of a float.
func (b *body) magnitude(x value, predicate string, bits int64) value {
	i := b.bitcast(x, x.t.of("i32"))
	return b.compare(predicate, b.op("and", i, i.t.magnitudeMask()), i.t.integerConst(bits))
}

// modf stores the integer part and returns the rest, both with the sign of x.
func modf(b *body, n *name, x []value) value {
	w := b.widen(x[0])
	t := b.overloaded("trunc", w)
	b.store(b.shorten(t, n.t), x[1])
	infinite := b.magnitude(w, "eq", 0x7f800000)
	rest := b.choose(infinite, w.t.number(0), b.op("fsub", w, t))
	rest = b.signed(rest, w)
	return b.shorten(b.choose(b.compare("uno", w, w), w, rest), n.t)
}

func (b *body) store(x, pointer value) {
	b.line("store %s %s, %s %s, align %d", x.t, x.text, pointer.t.written(b.target), pointer.text, alignment(x.t))
}

// alignment is that of one element: what a pointer of the caller has at least.
func alignment(t typ) int { return max(1, t.bits()/8) }

// sign is 1, -1, or a zero with the sign of x; 0 for a NaN.
func sign(b *body, x []value) value {
	one := b.signed(x[0].t.number(1), x[0])
	zero := b.choose(b.compare("uno", x[0], x[0]), x[0].t.number(0), b.signed(x[0].t.number(0), x[0]))
	return b.choose(b.compare("one", x[0], x[0].t.number(0)), one, zero)
}

// step is 0 for x below the edge, else 1.
func step(b *body, x []value) value {
	return b.choose(b.compare("olt", x[1], x[0]), x[0].t.number(0), x[0].t.number(1))
}

// least is the smaller one; of a NaN and a number the number, of two zeros -0.
func (b *body) least(x, y value) value { return b.first(x, y, "olt", "or") }

// greatest is the larger one; of a NaN and a number the number, of two zeros +0.
func (b *body) greatest(x, y value) value { return b.first(x, y, "ogt", "and") }

func (b *body) first(x, y value, predicate, ofZeros string) value {
	if b.target == ARM64 {
		// Of comparisons LLVM makes fminnm and fmaxnm, which return a signalling NaN.
		x, y = b.quiet(x), b.quiet(y)
	}
	m := b.choose(b.compare(predicate, x, y), x, y)
	m = b.choose(b.compare("uno", y, y), x, m)
	i, j := b.bitcast(x, x.t.of("i32")), b.bitcast(y, x.t.of("i32"))
	either := b.op("or", i, j)
	zeros := b.compare("eq", b.op("and", either, i.t.magnitudeMask()), i.t.integerConst(0))
	if ofZeros == "and" {
		either = b.op("and", i, j)
	}
	return b.choose(zeros, b.bitcast(either, x.t), m)
}

// quiet is x, or a quiet NaN for a signalling one.
func (b *body) quiet(x value) value {
	i := b.bitcast(x, x.t.of("i32"))
	q := b.bitcast(b.op("or", i, i.t.integerConst(0x400000)), x.t)
	return b.choose(b.magnitude(x, "ugt", 0x7f800000), q, x)
}

// median of three; of numbers and NaNs one of the numbers.
func median(b *body, x []value) value {
	lo, hi := b.least(x[0], x[1]), b.greatest(x[0], x[1])
	return b.greatest(lo, b.least(hi, x[2]))
}

func (b *body) saturate(x value) value {
	return b.least(b.greatest(x, x.t.number(0)), x.t.number(1))
}

// smoothstep is t*t*(3-2*t), t = saturate((x-a)/(b-a)).
func smoothstep(b *body, x []value) value {
	t := b.saturate(b.op("fdiv", b.op("fsub", x[2], x[0]), b.op("fsub", x[1], x[0])))
	f := b.op("fsub", t.t.number(3), b.op("fmul", t.t.number(2), t))
	return b.op("fmul", b.op("fmul", t, t), f)
}

// frexp stores the exponent.
func frexp(b *body, n *name, x []value) value {
	w := b.widen(x[0])
	b.store(b.mathematics("frexp_exponent", n.letter('I'), w), x[1])
	return b.narrow(b.mathematics("frexp_fraction", w.t, w), n.t)
}

func ldexp(b *body, n *name, x []value) value {
	w := b.widen(x[0])
	return b.narrow(b.mathematics(n.t.end("ldexp"), w.t, w, x[1]), n.t)
}

// sincos stores the cosine.
func sincos(b *body, n *name, x []value) value {
	c := precise("cos")(b, n, x[:1])
	b.store(c, x[1])
	return precise("sin")(b, n, x[:1])
}

func nextafter(b *body, n *name, x []value) value {
	i, j := b.bitcast(x[0], n.t.pattern()), b.bitcast(x[1], n.t.pattern())
	return b.bitcast(b.mathematics("nextafter_"+n.t.scalar().suffix(), i.t, i, j), n.t)
}

func isnormal(b *body, n *name, x []value) value {
	i := b.bitcast(x[0], n.t.pattern())
	least, inf := int64(0x800000), int64(0x7f800000)
	switch n.t.elem {
	case "half":
		least, inf = 0x400, 0x7c00
	case "bfloat":
		least, inf = 0x80, 0x7f80
	}
	// Lane by lane: LLVM 22 for PTX fails on this for vectors of three halves.
	return b.each(n.t.of("i1"), func(lane []value) value {
		t := lane[0].t
		m := b.op("sub", b.op("and", lane[0], t.magnitudeMask()), t.integerConst(least))
		return b.compare("ult", m, t.integerConst(inf-least))
	}, i)
}

func signbit(b *body, n *name, x []value) value {
	i := b.bitcast(x[0], n.t.pattern())
	return b.compare("slt", i, i.t.integerConst(0))
}
