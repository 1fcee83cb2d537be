package ptxmatrix

import (
	"math/bits"
	"regexp"
	"strconv"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// namedTurned are the products of many rows with the matrices of queries, keys and values of which queries and keys are turned.
var namedTurned = regexp.MustCompile(`^affine_qmm_t_x3_rope_(float16_t|bfloat16_t)_gs_(32|64|128)_b_(4|8)$`)

func turnedOf(k *air.Kernel, constants []ir.FunctionConstant, gpu GPU) *product {
	m := namedTurned.FindStringSubmatch(k.Name)
	if m == nil {
		return nil
	}
	p := &product{source: k, gpu: gpu, form: rope, sides: []string{"_q", "_k", "_v"}, elem: ir.F16}
	if m[1] == "bfloat16_t" {
		p.elem = ir.BF16
	}
	p.group, _ = strconv.Atoi(m[2])
	p.bits, _ = strconv.Atoi(m[3])
	for _, c := range constants {
		p.pairs = p.pairs || c.Index == traditionalConstant && c.Bits != 0
	}
	return p
}

// eightPairs is how many pairs of a row a thread turns: of one head, so that they lie side by side.
const eightPairs = 8

// projections are the heads of a launch. There is code for those whose pairs come in eights.
func (p *product) projections(given Given) (h Projections, ok bool) {
	ok = true
	constant := func(name string) int {
		n, there := given.Constant(name)
		ok = ok && there && n > 0 && n < 1<<20
		return int(n)
	}
	h = Projections{constant("dims"), constant("q_heads"), constant("k_heads"), constant("n_v")}
	return h, ok && h.Dims%(2*eightPairs) == 0
}

// tall is how many rows of results a threadgroup of the declaration makes.
func (h Projections) tall() uint64 {
	if h.Queries*h.Dims >= 4096 {
		return 64
	}
	return 32
}

// projection says, by predicates, what a block makes: of keys or values, and of values. Of queries and keys it has half as many pairs as columns, the first elements of all
// and then the second ones.
type projection struct{ key, value string }

// project finds the matrix of a block and its place there, a pair or a column.
func (e *emitter) project(block string) {
	h := e.fit.Projections
	pairs, half := h.Dims/2, e.fit.columns()/2
	blocks := func(heads int) int { return (heads*pairs + half - 1) / half }
	q, k := blocks(h.Queries), blocks(h.Keys)
	e.key, e.value = e.Make("p", "setp.ge.u32", "%s, %d", block, q), e.Make("p", "setp.ge.u32", "%s, %d", block, q+k)
	of := func(kind, q, k, v string) string { return e.either(e.value, kind, v, e.either(e.key, kind, k, q)) }
	argument := func(name string) string {
		return of("rd", e.args[name+"_q"], e.args[name+"_k"], e.args[name+"_v"])
	}
	number := func(q, k, v int) string {
		n := func(i int) string { return e.r("mov.b32", "%d", i) }
		return of("r", n(q), n(k), n(v))
	}
	m := operand{argument("w"), argument("scales"), argument("biases")}
	e.matrix = [2]operand{m, m}
	e.N = number(h.Queries*h.Dims, h.Keys*h.Dims, h.Values)
	block = e.r("sub.s32", "%s, %s", block, number(0, q, q+k))
	e.n0 = e.r("mul.lo.s32", "%s, %s", block, number(half, half, 2*half))
}

// turnedRow is the row of a matrix that stands at a place of the columns of a block.
func (e *emitter) turnedRow(at string) string {
	pairs := e.fit.Projections.Dims / 2
	wide := e.fit.columns() / 2
	half := e.r("shr.u32", "%s, %d", at, bits.Len(uint(wide))-1)
	pair := e.r("add.s32", "%s, %s", e.n0, e.r("and.b32", "%s, %d", at, wide-1))
	row := ""
	if e.pairs {
		row = e.r("mad.lo.s32", "%s, 2, %s", pair, half)
	} else {
		head := e.r("add.s32", "%s, %s", e.r("div.u32", "%s, %d", pair, pairs), half)
		row = e.r("mad.lo.s32", "%s, %d, %s", head, pairs, pair)
	}
	row = e.either(e.value, "r", e.r("add.s32", "%s, %s", e.n0, at), row)
	return e.r("min.s32", "%s, %s", row, e.r("sub.s32", "%s, 1", e.N))
}

// powers are 2^(−base·i/pairs) of eight pairs from one on, by which the angle grows with the position.
func (e *emitter) powers(first string, pairs int) (out []string) {
	all := e.r("cvt.rn.f32.s32", "%s", e.r("mov.b32", "%d", pairs))
	for k := range eightPairs {
		index := e.r("cvt.rn.f32.s32", "%s", e.r("add.s32", "%s, %d", first, k))
		part := e.r("neg.f32", "%s", e.r("div.rn.f32", "%s, %s", index, all))
		out = append(out, e.Call("exp2", e.r("mul.rn.f32", "%s, %s", part, e.args["base"])))
	}
	return out
}

// turned turns and stores the queries or keys of a block, which then leaves. A block of others, as a predicate says, goes on behind it. In shared memory lie `rows` rows from row
// `first` on, in numbers of `size` bytes, `pitch` numbers from one row to the next.
//
// A thread has eight pairs of a row. Heads that begin alike in the block have the same angles: the thread turns theirs too, since cosines and sines cost
// most.
func (e *emitter) turned(first string, rows, size, pitch int, others string) {
	h := e.fit.Projections
	pairs, half := h.Dims/2, e.fit.columns()/2
	heads, side := 1, half/eightPairs
	if half%pairs == 0 {
		heads, side = half/pairs, pairs/eightPairs
	}
	per := max(1, e.fit.blockThreads()/side) // rows at a time
	plain := e.Label()
	e.Line("@%s bra \t%s", others, plain)
	column := e.r("shl.b32", "%s, 3", e.r("rem.u32", "%s, %d", e.thread, side))
	row := e.r("div.u32", "%s, %d", e.thread, side)
	pair := e.r("add.s32", "%s, %s", e.n0, column)
	head, index := e.r("div.u32", "%s, %d", pair, pairs), e.r("rem.u32", "%s, %d", pair, pairs)
	m := e.r("add.s32", "%s, %s", first, row)
	end := e.r("min.s32", "%s, %s", e.r("add.s32", "%s, %d", first, rows), e.M)
	from := e.r("mad.lo.s32", "%s, %d, %s", e.r("mad.lo.s32", "%s, %d, %s", row, pitch, column), size, e.base)

	width := e.width()
	strides := e.either(e.key, "rd", e.args["k_strides"], e.args["q_strides"])
	stride := func(i int) string {
		return e.Make("rd", "mul.lo.s64", "%s, %d", e.Make("rd", "ld.global.b64", "[%s+%d]", strides, 8*i), width)
	}
	ofHead, ofRow := stride(0), stride(1)
	low := e.Make("rd", "or.b64", "%s, %s", e.y, e.Make("rd", "or.b64", "%s, %s", ofHead, ofRow))
	narrow := e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 15", low))
	place := index
	if e.pairs {
		place = e.r("shl.b32", "%s, 1", index)
	}
	times := func(n, stride string) string {
		return e.Make("rd", "mul.lo.s64", "%s, %s", e.Make("rd", "cvt.u64.u32", "%s", n), stride)
	}
	to := e.Make("rd", "add.s64", "%s, %s", e.y, e.wide(place, strconv.Itoa(width)))
	to = e.Make("rd", "add.s64", "%s, %s", to, times(head, ofHead))
	to = e.Make("rd", "add.s64", "%s, %s", to, times(m, ofRow))
	step := times(e.r("mov.b32", "%d", per), ofRow)
	count := e.r("shr.u32", "%s, 1", e.N) // pairs of the matrix
	offset := e.r("ld.global.b32", "[%s]", e.args["offset"])
	powers := e.powers(index, pairs)

	loop := e.Label()
	e.Mark(loop)
	e.Line("@%s bra \t$L_end", e.Make("p", "setp.ge.s32", "%s, %s", m, end))
	position := e.r("cvt.rn.f32.s32", "%s", e.r("add.s32", "%s, %s", m, offset))
	position = e.r("mul.rn.f32", "%s, %s", e.args["scale"], position)
	var cosines, sines []string
	for _, p := range powers {
		theta := e.r("mul.rn.f32", "%s, %s", position, p)
		cosines, sines = append(cosines, e.Call("cos", theta)), append(sines, e.Call("sin", theta))
	}
	next, at := e.Label(), to
	for j := range heads {
		if j > 0 {
			at = e.Make("rd", "add.s64", "%s, %s", at, ofHead)
		}
		e.Line("@%s bra \t%s", e.Make("p", "setp.ge.s32", "%s, %s", e.r("add.s32", "%s, %d", pair, j*pairs), count), next)
		one := e.eight(e.r("add.s32", "%s, %d", from, size*j*pairs))
		two := e.eight(e.r("add.s32", "%s, %d", from, size*(j*pairs+half)))
		for k := range one {
			a, b := one[k], two[k]
			if !e.full() {
				a, b = e.widened(a), e.widened(b)
			}
			one[k] = e.stored(e.r("sub.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", a, cosines[k]), e.r("mul.rn.f32", "%s, %s", b, sines[k])))
			two[k] = e.stored(e.r("add.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", a, sines[k]), e.r("mul.rn.f32", "%s, %s", b, cosines[k])))
		}
		apart := width * pairs // bytes from one eight to the other
		if e.pairs {
			apart = width * eightPairs
			var both []string
			for k := range one {
				both = append(both, one[k], two[k])
			}
			one, two = both[:eightPairs], both[eightPairs:]
		}
		single, done := e.Label(), e.Label()
		e.Line("@%s bra \t%s", narrow, single)
		e.storeEight(at, one)
		e.storeEight(e.Make("rd", "add.s64", "%s, %d", at, apart), two)
		e.Line("bra \t%s", done)
		e.Mark(single)
		for k := range one {
			e.Line("st.global.b%d \t[%s+%d], %s", 8*width, at, width*k, one[k])
			e.Line("st.global.b%d \t[%s+%d], %s", 8*width, at, apart+width*k, two[k])
		}
		e.Mark(done)
	}
	e.Mark(next)
	e.Line("add.s64 \t%s, %s, %s", to, to, step)
	e.Line("add.s32 \t%s, %s, %d", m, m, per)
	e.Line("add.s32 \t%s, %s, %d", from, from, size*pitch*per)
	e.Line("bra \t%s", loop)
	e.Mark(plain)
}
