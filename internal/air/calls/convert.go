package calls

import "fmt"

// writeConvert writes air.convert.KIND.TO.KIND.FROM.
func (n *name) writeConvert(b *body) error {
	for _, c := range []struct {
		kind byte
		t    typ
	}{{n.sign, n.t}, {n.source, n.from}} {
		if fits := c.kind == 'f' && c.t.float() || (c.kind == 's' || c.kind == 'u') && c.t.integer(); !fits {
			return fmt.Errorf("%q is no kind of %s", c.kind, c.t)
		}
	}
	if n.t.lanes != n.from.lanes {
		return fmt.Errorf("%s has other elements than %s", n.t, n.from)
	}
	if len(b.args) != 1 || b.args[0].t != n.from || b.result != n.t {
		return fmt.Errorf("by its name it is %s (%s)", n.t, n.from)
	}
	b.ret(b.convert(n, b.args[0]))
	return nil
}

func (b *body) convert(n *name, x value) value {
	switch {
	case n.sign == 'f' && n.source == 'f':
		if n.t == n.from {
			return x
		}
		return b.narrow(b.widen(x), n.t)
	case n.sign == 'f':
		return b.floatOf(n, x)
	case n.t.elem == "i1" && n.source == 'f':
		w := b.widen(x)
		return b.compare("une", w, w.t.number(0)) // a NaN is true
	case n.t.elem == "i1":
		return b.compare("ne", x, x.t.integerConst(0))
	case n.source == 'f':
		w := b.widen(x)
		// What lies beyond the type becomes its nearest value, a NaN 0.
		return b.intrinsic(fmt.Sprintf("fpto%ci.sat.%s.%s", n.sign, n.t.suffix(), w.t.suffix()), n.t, w)
	}
	switch d := n.t.bits() - n.from.bits(); {
	case d < 0:
		return b.cast("trunc", x, n.t)
	case d == 0:
		return x
	case n.source == 's' && n.from.elem != "i1":
		return b.cast("sext", x, n.t)
	}
	return b.cast("zext", x, n.t)
}

// floatOf rounds an integer once. Way stations are exact or, for a half, beyond its range
// where they are not: a float holds all integers up to 2^24.
func (b *body) floatOf(n *name, x value) value {
	op := "uitofp"
	if n.source == 's' && n.from.elem != "i1" {
		op = "sitofp"
	}
	if n.t.elem != "bfloat" || n.from.bits() <= 16 {
		return b.narrow(b.cast(op, x, n.t.of("float")), n.t)
	}
	kind := "i"
	if n.source == 'u' {
		kind = "u"
	}
	i := b.mathematics(fmt.Sprintf("bf16_of_%s%d", kind, n.from.bits()), n.t.of("i16"), x)
	return b.bitcast(i, n.t)
}
