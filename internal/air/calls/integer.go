package calls

import "fmt"

// integerFunctions are those of integers, by the name behind air.; where signs differ, s or u
// follows the operation.
var integerFunctions map[string]family

func init() {
	integerFunctions = map[string]family{
		"abs":      {"TT", integers, absInteger},
		"abs_diff": {"TTT", integers, absDifference},
		"min":      {"TTT", integers, func(b *body, n *name, x []value) value { return b.minInteger(n, x[0], x[1]) }},
		"max":      {"TTT", integers, func(b *body, n *name, x []value) value { return b.maxInteger(n, x[0], x[1]) }},
		"min3": {"TTTT", integers, func(b *body, n *name, x []value) value {
			return b.minInteger(n, x[0], b.minInteger(n, x[1], x[2]))
		}},
		"max3": {"TTTT", integers, func(b *body, n *name, x []value) value {
			return b.maxInteger(n, x[0], b.maxInteger(n, x[1], x[2]))
		}},
		"median3": {"TTTT", integers, func(b *body, n *name, x []value) value {
			lo, hi := b.minInteger(n, x[0], x[1]), b.maxInteger(n, x[0], x[1])
			return b.maxInteger(n, lo, b.minInteger(n, hi, x[2]))
		}},
		"clamp": {"TTTT", integers, func(b *body, n *name, x []value) value {
			return b.minInteger(n, b.maxInteger(n, x[0], x[1]), x[2])
		}},
		"add_sat": {"TTT", integers, func(b *body, n *name, x []value) value { return b.overloaded(string(n.sign)+"add.sat", x...) }},
		"sub_sat": {"TTT", integers, func(b *body, n *name, x []value) value { return b.overloaded(string(n.sign)+"sub.sat", x...) }},
		"hadd":    {"TTT", integers, func(b *body, n *name, x []value) value { return b.half(n, x, "and", "add") }},
		"rhadd":   {"TTT", integers, func(b *body, n *name, x []value) value { return b.half(n, x, "or", "sub") }},
		"mul_hi":  {"TTT", integers, mulHigh},
		"mad_hi":  {"TTTT", integers, func(b *body, n *name, x []value) value { return b.op("add", mulHigh(b, n, x[:2]), x[2]) }},
		"mad_sat": {"TTTT", integers, madSaturated},
		"mul24":   {"TTT", integers, mul24},
		"mad24":   {"TTTT", integers, func(b *body, n *name, x []value) value { return b.op("add", mul24(b, n, x[:2]), x[2]) }},

		"extract_bits": {"TTii", integers, extractBits},
		"insert_bits":  {"TTTii", integers, insertBits},

		"popcount":     {"TT", patterns, func(b *body, n *name, x []value) value { return b.overloaded("ctpop", x[0]) }},
		"reverse_bits": {"TT", patterns, func(b *body, n *name, x []value) value { return b.overloaded("bitreverse", x[0]) }},
		"clz":          {"TTb", patterns, func(b *body, n *name, x []value) value { return b.zeros("ctlz", x[0]) }},
		"ctz":          {"TTb", patterns, func(b *body, n *name, x []value) value { return b.zeros("cttz", x[0]) }},
		"rotate":       {"TTT", patterns, func(b *body, n *name, x []value) value { return b.overloaded("fshl", x[0], x[0], x[1]) }},
		"all":          {"ET", patterns, func(b *body, n *name, x []value) value { return b.reduce("and", x[0]) }},
		"any":          {"ET", patterns, func(b *body, n *name, x []value) value { return b.reduce("or", x[0]) }},
		"select":       {"TTTB", patterns, func(b *body, n *name, x []value) value { return b.choose(x[2], x[1], x[0]) }},
	}
}

func (b *body) minInteger(n *name, x, y value) value {
	return b.overloaded(string(n.sign)+"min", x, y)
}

func (b *body) maxInteger(n *name, x, y value) value {
	return b.overloaded(string(n.sign)+"max", x, y)
}

// absInteger of the least integer is that integer.
func absInteger(b *body, n *name, x []value) value {
	if n.sign == 'u' {
		return x[0]
	}
	return b.intrinsic("abs."+n.t.suffix(), n.t, x[0], value{int1s, "false"})
}

// absDifference is |x-y| as an unsigned integer.
func absDifference(b *body, n *name, x []value) value {
	return b.op("sub", b.maxInteger(n, x[0], x[1]), b.minInteger(n, x[0], x[1]))
}

// half is (x+y)/2 towards minus infinity, with "and" and "add", or plus infinity, with "or"
// and "sub", where x+y may need a bit more than there is.
func (b *body) half(n *name, x []value, common, combine string) value {
	differ := b.op("xor", x[0], x[1])
	return b.op(combine, b.op(common, x[0], x[1]), b.op(shiftRight(n), differ, n.t.integerConst(1)))
}

func shiftRight(n *name) string {
	if n.sign == 's' {
		return "ashr"
	}
	return "lshr"
}

// extend is to twice the bits.
func (b *body) extend(n *name, x value) value {
	op := "zext"
	if n.sign == 's' {
		op = "sext"
	}
	return b.cast(op, x, x.t.of(fmt.Sprintf("i%d", 2*x.t.bits())))
}

func mulHigh(b *body, n *name, x []value) value {
	p := b.op("mul", b.extend(n, x[0]), b.extend(n, x[1]))
	return b.cast("trunc", b.op("lshr", p, p.t.integerConst(int64(n.t.bits()))), n.t)
}

// madSaturated clamps x*y+z, which twice the bits hold.
func madSaturated(b *body, n *name, x []value) value {
	p := b.op("mul", b.extend(n, x[0]), b.extend(n, x[1]))
	s := b.op("add", p, b.extend(n, x[2]))
	width := n.t.bits()
	if n.sign == 'u' {
		most := s.t.all(fmt.Sprint(^uint64(0) >> (64 - width)))
		return b.cast("trunc", b.overloaded("umin", s, most), n.t)
	}
	s = b.overloaded("smin", s, s.t.integerConst(int64(^uint64(0)>>(65-width))))
	s = b.overloaded("smax", s, s.t.integerConst(-1<<(width-1)))
	return b.cast("trunc", s, n.t)
}

// mul24 multiplies the low 24 bits.
func mul24(b *body, n *name, x []value) value {
	if n.t.bits() <= 24 {
		return b.op("mul", x[0], x[1])
	}
	var low [2]value
	for i := range low {
		unused := n.t.integerConst(int64(n.t.bits() - 24))
		low[i] = b.op(shiftRight(n), b.op("shl", x[i], unused), unused)
	}
	return b.op("mul", low[0], low[1])
}

// zeros are all bits for 0, whatever the caller promises.
func (b *body) zeros(name string, x value) value {
	return b.intrinsic(name+"."+x.t.suffix(), x.t, x, value{int1s, "false"})
}

// reduce combines all lanes.
func (b *body) reduce(op string, x value) value {
	r := b.extract(x, 0)
	for i := 1; i < x.t.lanes; i++ {
		r = b.op(op, r, b.extract(x, i))
	}
	return r
}

// count makes a number of bits, an i32, one of the type, at most its bits.
func (b *body) count(n *name, x value) value {
	width := n.t.bits()
	x = b.overloaded("umin", x, x.t.integerConst(int64(width)))
	switch {
	case width < 32:
		x = b.cast("trunc", x, n.t.scalar())
	case width > 32:
		x = b.cast("zext", x, n.t.scalar())
	}
	return b.spread(x, n.t)
}

// shift shifts, by all bits too.
func (b *body) shift(op string, x, by value) value {
	width := int64(x.t.bits())
	all := b.compare("uge", by, by.t.integerConst(width))
	by = b.choose(all, by.t.integerConst(width-1), by)
	r := b.op(op, x, by)
	if op == "ashr" {
		return r
	}
	return b.choose(all, x.t.integerConst(0), r)
}

// extractBits are the bits from offset on, extended by sign or zeros. Bits beyond the
// integer are 0.
func extractBits(b *body, n *name, x []value) value {
	offset, width := b.count(n, x[1]), b.count(n, x[2])
	low := b.shift("lshr", x[0], offset)
	unused := b.op("sub", n.t.integerConst(int64(n.t.bits())), width)
	up := b.shift("shl", low, unused)
	v := b.shift(shiftRight(n), up, unused)
	none := b.compare("eq", width, n.t.integerConst(0))
	return b.choose(none, n.t.integerConst(0), v)
}

func insertBits(b *body, n *name, x []value) value {
	offset, width := b.count(n, x[2]), b.count(n, x[3])
	unused := b.op("sub", n.t.integerConst(int64(n.t.bits())), width)
	mask := b.shift("shl", b.shift("lshr", n.t.integerConst(-1), unused), offset)
	in := b.op("and", b.shift("shl", x[1], offset), mask)
	keep := b.op("and", x[0], b.op("xor", mask, n.t.integerConst(-1)))
	return b.op("or", keep, in)
}
