package calls

import "fmt"

// field is a group of bits of a packed number.
type field struct{ offset, width int }

// packing is a way to keep numbers from 0 to 1, or from -1 to 1, in the bits of an integer.
type packing struct {
	word   string // the integer
	signed bool
	srgb   bool // the first three are not linear
	fields []field
}

var packings = map[string]packing{
	"unorm1x8":      {"i8", false, false, []field{{0, 8}}},
	"snorm1x8":      {"i8", true, false, []field{{0, 8}}},
	"unorm1x16":     {"i16", false, false, []field{{0, 16}}},
	"snorm1x16":     {"i16", true, false, []field{{0, 16}}},
	"unorm2x8":      {"i16", false, false, []field{{0, 8}, {8, 8}}},
	"snorm2x8":      {"i16", true, false, []field{{0, 8}, {8, 8}}},
	"unorm4x8":      {"i32", false, false, []field{{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
	"snorm4x8":      {"i32", true, false, []field{{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
	"unorm4x8.srgb": {"i32", false, true, []field{{0, 8}, {8, 8}, {16, 8}, {24, 8}}},
	"unorm2x16":     {"i32", false, false, []field{{0, 16}, {16, 16}}},
	"snorm2x16":     {"i32", true, false, []field{{0, 16}, {16, 16}}},
	"unorm4x16":     {"i64", false, false, []field{{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
	"snorm4x16":     {"i64", true, false, []field{{0, 16}, {16, 16}, {32, 16}, {48, 16}}},
	"unorm.rgb10a2": {"i32", false, false, []field{{0, 10}, {10, 10}, {20, 10}, {30, 2}}},
	"unorm.rgb565":  {"i16", false, false, []field{{11, 5}, {5, 6}, {0, 5}}},
}

// writePacked writes air.pack.FORMAT.TYPE and air.unpack.FORMAT.TYPE.
func (n *name) writePacked(b *body) error {
	p, ok := packings[n.format]
	lanes := len(p.fields)
	if lanes == 1 {
		lanes = 0
	}
	if !ok || !n.t.float() || n.t.elem == "bfloat" || n.t.lanes != lanes {
		return errMissing
	}
	word := typ{elem: p.word}
	from, to := word, n.t
	if n.op == "pack" {
		from, to = to, from
	}
	if len(b.args) != 1 || b.args[0].t != from || b.result != to {
		return fmt.Errorf("by its name it is %s (%s)", to, from)
	}
	if n.op == "pack" {
		b.ret(b.pack(p, word, b.args[0]))
	} else {
		b.ret(b.unpack(p, n.t, b.args[0]))
	}
	return nil
}

// top is the field's value that stands for 1.
func (p packing) top(f field) float64 {
	if p.signed {
		return float64(int64(1)<<(f.width-1) - 1)
	}
	return float64(int64(1)<<f.width - 1)
}

// pack rounds to the nearest, ties to even, what is clamped to the range; a NaN is 0.
func (b *body) pack(p packing, word typ, x value) value {
	r := word.integerConst(0)
	for i, f := range p.fields {
		v := b.widen(b.extract(x, i))
		v = b.choose(b.compare("uno", v, v), v.t.number(0), v)
		least := 0.0
		if p.signed {
			least = -1
		}
		v = b.least(b.greatest(v, v.t.number(least)), v.t.number(1))
		if p.srgb && i < 3 {
			v = b.mathematics("srgb_of_linear_f", v.t, v)
		}
		v = b.overloaded("rint", b.op("fmul", v, v.t.number(p.top(f))))
		k := b.cast("fptosi", v, int32s)
		k = b.op("and", k, k.t.integerConst(int64(1)<<f.width-1))
		switch w := word.bits(); {
		case w < 32:
			k = b.cast("trunc", k, word)
		case w > 32:
			k = b.cast("zext", k, word)
		}
		if f.offset > 0 {
			k = b.op("shl", k, word.integerConst(int64(f.offset)))
		}
		r = b.op("or", r, k)
	}
	return r
}

// unpack divides by the value that stands for 1. Of signed fields the least value is -1 too.
func (b *body) unpack(p packing, to typ, x value) value {
	r := value{to, "poison"}
	for i, f := range p.fields {
		k := b.op("shl", x, x.t.integerConst(int64(x.t.bits()-f.offset-f.width)))
		shift, convert := "lshr", "uitofp"
		if p.signed {
			shift, convert = "ashr", "sitofp"
		}
		k = b.op(shift, k, x.t.integerConst(int64(x.t.bits()-f.width)))
		v := b.cast(convert, k, float32s)
		v = b.op("fdiv", v, v.t.number(p.top(f)))
		if p.signed {
			v = b.greatest(v, v.t.number(-1))
		}
		if p.srgb && i < 3 {
			v = b.mathematics(to.end("linear_of_srgb"), v.t, v)
		}
		v = b.narrow(v, to.scalar())
		if to.lanes == 0 {
			return v
		}
		r = b.make(to, "insertelement %s %s, %s %s, i32 %d", to, r.text, v.t, v.text, i)
	}
	return r
}
