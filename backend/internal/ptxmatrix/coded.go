package ptxmatrix

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Attention of few queries to a cache of 8 bits (decode.go): a slot has rows of codes, and behind each row its scales, one for each 32 codes. Codes are
// numbers of f16 and of bf16, exactly, and so factors of tensor cores; scales are not among these factors, for products with them have more bits.
//
// The products of a query with a group of 32 codes of a key are added up, and the sum is multiplied by the scale. Which elements of the inner
// index a factor's places stand for is up to us: a lane has four neighbouring codes of a key.
//
// A weight is multiplied by the scale of the value, for each group, and the product is the sum of two numbers of f16: first it is multiplied by a power of two by
// which the scale of the group's 16 values that has the max magnitude, of those that the query sees, comes near 2^14, which the sums of the chunk are divided by. The first and the second eight rows of a
// left factor stand for the even and the odd ones of 16 elements, whose bytes lie side by side.

// groups is how many scales a row has.
func (a *attention) groups() int { return a.width / 32 }

// scalesOf finds the scales of keys or values: of the row of a key, from its first one on, and how many bytes the next row's are from there. head and pitch count codes.
func (e *entry) scalesOf(name, head, pitch, key string) (at, step string) {
	// A 32nd as many, of two bytes each.
	at = e.Make("rd", "add.s64", "%s, %s", e.args[strings.TrimSuffix(name, "s")+"_scales"], e.Make("rd", "shr.u64", "%s, 4", head))
	step = e.Make("rd", "shr.u64", "%s, 4", pitch)
	return e.Make("rd", "mad.lo.s64", "%s, %s, %s", step, key, at), step
}

// oddScales is a predicate: the scales of a row do not lie where they can be copied together, by what addresses and distances are sums of.
func (e *entry) oddScales(groups int, places ...string) string {
	low := places[0]
	for _, p := range places[1:] {
		low = e.Make("rd", "or.b64", "%s, %s", low, p)
	}
	return e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, %d", low, 2*groups-1))
}

// copyScales asks for those of a row, zeros if it is not there: the one lane does that brings the row's first codes.
func (e *entry) copyScales(groups int, unit, to string, offset int, from, there string) {
	cached := "ca"
	if groups == 8 {
		cached = "cg"
	}
	first := e.Make("p", "setp.eq.u32", "%s, 0", unit)
	size := e.either(there, "r", fmt.Sprint(2*groups), "0")
	e.Line("@%s cp.async.%s.shared.global \t[%s+%d], [%s], %d, %s", first, cached, to, offset, from, 2*groups, size)
}

// bringScales asks for those of row r of a copy: by the row's first lane.
func (e *decode) bringScales(c *rows, r int) {
	if r == 0 {
		c.scales = e.scaleFrom[c.of]
	} else {
		c.scales = e.Make("rd", "add.s64", "%s, %s", c.scales, e.scaleStep[c.of])
	}
	e.copyScales(e.groups(), e.unit, c.to, c.offset+r*e.pitch()+e.rowBytes(), c.scales, e.Make("p", "setp.gt.s32", "%s, %d", c.seen, r))
}

// singleCodes brings 16 codes that lie anywhere, and the scales of the row, zeros if it is not there.
func (e *entry) singleCodes(groups int, unit, to string, offset int, from, scales, there string) {
	for word := range 4 {
		all := e.r("mov.b32", "0")
		for i := range 4 {
			code := e.r("mov.b32", "0")
			e.Line("@%s ld.global.u8 \t%s, [%s+%d]", there, code, from, 4*word+i)
			all = e.r("or.b32", "%s, %s", all, e.r("shl.b32", "%s, %d", code, 8*i))
		}
		e.Line("st.shared.b32 \t[%s+%d], %s", to, offset+4*word, all)
	}
	row := e.r("sub.s32", "%s, %s", to, e.r("shl.b32", "%s, 4", unit)) // all lanes of a row bring the same
	for g := range groups {
		scale := e.Make("rs", "mov.b16", "0")
		e.Line("@%s ld.global.b16 \t%s, [%s+%d]", there, scale, scales, 2*g)
		e.Line("st.shared.b16 \t[%s+%d], %s", row, offset+32*groups+2*g, scale)
	}
}

// factors reads the queries: right factors of scores, of which a lane has two elements of its head, and the eighth ones behind these; beside codes four neighbouring ones.
func (e *decode) factors() {
	query, head, there := e.of(e.quad)
	each, next := 4, 16 // bytes from a lane's to the next one's, and to its own other two elements
	if e.coded {
		each, next = 8, 4
	}
	at := e.plus(e.at("queries", query, head), e.r("mul.lo.s32", "%s, %d", e.member, each))
	apart, done := e.Label(), e.Label()
	for range e.width / 16 {
		e.q = append(e.q, [2]string{e.r("mov.b32", "0"), e.r("mov.b32", "0")})
	}
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, %d", e.args["queries"], each-1)), apart)
	for s, q := range e.q {
		if e.coded {
			e.Line("@%s ld.global.v2.b32 \t{%s}, [%s+%d]", there, list(q[:]), at, 32*s)
			continue
		}
		for i, two := range q {
			e.Line("@%s ld.global.b32 \t%s, [%s+%d]", there, two, at, 32*s+next*i)
		}
	}
	e.Line("bra \t%s", done)
	e.Mark(apart)
	for s, q := range e.q {
		for i, two := range q {
			var halves [2]string
			for j := range halves {
				halves[j] = e.Make("rs", "mov.b16", "0")
				e.Line("@%s ld.global.b16 \t%s, [%s+%d]", there, halves[j], at, 32*s+next*i+2*j)
			}
			e.Line("mov.b32 \t%s, {%s}", two, list(halves[:]))
		}
	}
	e.Mark(done)
}

// codePairs are two pairs of codes as numbers of a type, of bytes of a word: which ones, as prmt selects them beside an upper byte.
func (e *entry) codePairs(t ir.DType, word string, selections ...int) (out []string) {
	word = e.r("xor.b32", "%s, %d", word, uint32(0x80808080)) // codes and 128
	for _, s := range selections {
		if t == ir.F16 { // beside the upper byte of 1024
			v := e.r("prmt.b32", "%s, %s, %d", word, e.r("mov.b32", "%d", 0x64646464), s)
			out = append(out, e.r("sub.rn.f16x2", "%s, %s", v, e.r("mov.b32", "%d", 0x64806480)))
			continue
		}
		// Beside that of 128, of which a bf16 has seven bits more: of the eighth it is told by what is subtracted, 128 or 256.
		v := e.r("prmt.b32", "%s, %s, %d", word, e.r("mov.b32", "%d", 0x43434343), s)
		// A subtraction takes 9.0, an fma with 1 does not.
		less := e.r("xor.b32", "%s, %d", e.r("and.b32", "%s, %d", v, 0x00800080), uint32(0xC380C380))
		out = append(out, e.r("fma.rn.bf16x2", "%s, %s, %s", e.r("and.b32", "%s, %d", v, uint32(0xff7fff7f)), e.r("mov.b32", "%d", 0x3F803F80), less))
	}
	return out
}

// scales returns what reads the scales of a group of the lane's two keys of the chunk that is used, or values.
func (e *decode) scales() func(group int) [2]string {
	row := e.r("mad.lo.s32", "%s, %d, %s", e.quad, e.pitch(), e.slotUse)
	return func(group int) (out [2]string) {
		for i := range out {
			h := e.Make("rs", "ld.shared.b16", "[%s+%d]", row, 8*i*e.pitch()+e.rowBytes()+2*group)
			out[i] = e.r("cvt.f32.f16", "%s", h)
		}
		return out
	}
}

// codedScores are those of a chunk, before the scale of all.
func (e *decode) codedScores(from string) (s [4]string) {
	read := e.scales()
	for g := range e.groups() {
		m, scales := e.matrices("", from, 32*g), read(g)
		sum := e.zeros()
		for i := range 2 {
			low, high := e.codePairs(e.typ, m[2*i], 0x4140, 0x4342), e.codePairs(e.typ, m[2*i+1], 0x4140, 0x4342)
			e.multiply(sum, [4]string{low[0], high[0], low[1], high[1]}, e.q[2*g+i])
		}
		for i := range s {
			if g == 0 {
				s[i] = e.r("mul.rn.f32", "%s, %s", sum[i], scales[i/2])
			} else {
				s[i] = e.r("fma.rn.f32", "%s, %s, %s", sum[i], scales[i/2], s[i])
			}
		}
	}
	return s
}

// codedValues adds the products of values and weights.
func (e *decode) codedValues(from string) {
	read := e.scales()
	for g := range e.groups() {
		scales := read(g)
		if e.unlike() { // those that the query of the lane's heads sees
			for k := range scales {
				scales[k] = e.either(e.seenNow[k][0], "r", scales[k], "0")
			}
		}
		// ggml's scales are not negative, but those of a cache may be anything.
		most := e.r("max.f32", "%s, %s", e.r("abs.f32", "%s", scales[0]), e.r("abs.f32", "%s", scales[1]))
		for d := 4; d < 32; d *= 2 {
			most = e.r("max.f32", "%s, %s", most, e.across(most, d))
		}
		// Powers of two, by their exponents: what is less than 2^-100 is 0.
		exponent := e.r("and.b32", "%s, %d", e.r("max.f32", "%s, 0f0D800000", most), 0x7f800000)
		up := e.r("sub.s32", "%d, %s", (2*127+14-512)<<23, exponent)
		down := e.r("sub.s32", "%s, %d", exponent, 14<<23)
		var parts [2][4]string // of 16 bits
		for i, w := range e.plain {
			w = e.r("mul.rn.f32", "%s, %s", w, e.r("mul.rn.f32", "%s, %s", scales[i/2], up))
			parts[0][i] = e.Make("rs", "cvt.rn.f16.f32", "%s", w)
			rest := e.r("sub.rn.f32", "%s, %s", w, e.r("cvt.f32.f16", "%s", parts[0][i]))
			// Of an infinite product the rest is a NaN, in whose place any number will do.
			rest = e.r("max.f32", "%s, 0fC77FE000", e.r("mul.rn.f32", "%s, 0f45800000", rest))
			parts[1][i] = e.Make("rs", "cvt.rn.f16.f32", "%s", rest)
		}
		var weights [2][2]string
		for p, h := range parts {
			for i := range weights[p] {
				weights[p][i] = e.r("movmatrix.sync.aligned.m8n8.trans.b16", "%s", e.r("mov.b32", "{%s, %s}", h[2*i], h[2*i+1]))
			}
		}
		m := e.matrices(".trans", from, 32*g)
		for i := range 2 {
			first, second := e.codePairs(ir.F16, m[i], 0x4240, 0x4341), e.codePairs(ir.F16, m[i+2], 0x4240, 0x4341)
			factor := [4]string{first[0], first[1], second[0], second[1]}
			var sums [2][4]string
			for p, w := range weights {
				sums[p] = e.zeros()
				e.multiplyOf(ir.F16, sums[p], factor, w)
			}
			for j, o := range e.o[0][2*g+i] {
				whole := e.r("fma.rn.f32", "%s, 0f39800000, %s", sums[1][j], sums[0][j])
				e.Line("fma.rn.f32 \t%s, %s, %s, %s", o, whole, down, o)
			}
		}
	}
}
