package ptxmatrix

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// vector is a product of a matrix and vectors that this package has code for.
type vector struct {
	source *air.Kernel
	form   form
	norm   bool     // the vector is normalized before
	pairs  bool     // the form is rope: a rotation turns neighbours, and not halves of a head
	sides  []string // the ends of the names of matrices, scales and biases
	elem   ir.DType // of x, scales, biases and results
	group  int      // of weights that share a scale
}

var namedVector = regexp.MustCompile(`^affine_(?:qmv|qmv_fast)_(add|silu_mul|rms_silu_mul|rms_x3_rope)_(float16_t|bfloat16_t)_gs_(32|64|128)_b_4$`)

func vectorOf(k *air.Kernel, constants []ir.FunctionConstant) *vector {
	m := namedVector.FindStringSubmatch(k.Name)
	if m == nil {
		return nil
	}
	v := &vector{source: k, form: add, sides: []string{""}, elem: ir.F16}
	switch m[1] {
	case "silu_mul", "rms_silu_mul":
		v.form, v.norm, v.sides = siluMul, m[1] == "rms_silu_mul", []string{"_gate", "_up"}
	case "rms_x3_rope":
		v.form, v.norm, v.sides = rope, true, []string{"_q", "_k", "_v"}
		for _, c := range constants {
			v.pairs = v.pairs || c.Index == traditionalConstant && c.Bits != 0
		}
	}
	if m[2] == "bfloat16_t" {
		v.elem = ir.BF16
	}
	v.group, _ = strconv.Atoi(m[3])
	return v
}

// traditionalConstant is the number of the function constant of rope that says that a rotation turns neighbours.
const traditionalConstant = 2

const (
	// A chunk is what a warp multiplies at a time: chunk codes of each of tileRows rows, which one mma.sync takes, and their scales and biases.
	chunk      = 256
	tileRows   = 16
	codesChunk = tileRows * chunk / 2
	chunkBytes = codesChunk + 2*tileRows*16
	// chunksAhead is how many chunks of a warp lie in shared memory, or are on their way.
	chunksAhead = 3
	// longest is the inner index up to which there is room for x in shared memory.
	longest = 32768
	// longestNorm is the same for a vector that is normalized, of which each thread of four warps keeps 32 elements.
	longestNorm = 4096
)

// Fewest is the size of a matrix from which on products with vectors are faster here than by clang's code (H200). Tests of a device
// set it to 0, so that small matrices are multiplied by both.
var Fewest int64 = 2048 * 2048

// Fit implements [Kernel].
func (v *vector) Fit(groups [3]uint64, given Given) Fit {
	known := true
	constant := func(name string) int64 {
		n, there := given.Constant(name)
		known = known && there && n > 0
		return n
	}
	k, rows, blocks := constant("in_vec_size"), int64(0), int64(0)
	switch v.form {
	case rope:
		pairs := constant("dims") / 2
		q, key, value := constant("q_heads")*pairs, constant("k_heads")*pairs, constant("n_v")
		rows, blocks = 2*(q+key)+value, (q+7)/8+(key+7)/8+(value+15)/16
	case siluMul:
		rows = 2 * constant("out_vec_size")
		blocks = (rows/2 + 7) / 8
	default:
		rows = constant("out_vec_size")
		blocks = (rows + tileRows - 1) / tileRows
	}
	if !known || !given.Aligned || k%chunk != 0 || k > longest || v.norm && k > longestNorm || rows > 1<<30 || k*rows < Fewest {
		return Fit{}
	}
	f := Fit{Aligned: true, Inner: int(k), Outer: int(constantOr(given, "out_vec_size")), Blocks: int(blocks), Warps: 8}
	// Blocks of four warps need less shared memory, so that more of them run at once, if there are enough.
	if k <= 8192 && uint64(blocks)*groups[0] > 4*uint64(max(1, given.Multiprocessors)) {
		f.Warps = 4
	}
	return f
}

// constantOr is the value of a constant argument, or 0.
func constantOr(given Given, name string) int64 {
	n, _ := given.Constant(name)
	return n
}

// Wide implements [Kernel].
func (*vector) Wide(name string) bool {
	return name == "x" || name == "norm" || strings.HasPrefix(name, "w") || strings.HasPrefix(name, "scales") || strings.HasPrefix(name, "biases")
}

// Launch implements [Kernel]: a block makes results of 16 rows of weights and one vector.
func (v *vector) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threads, shared uint32) {
	return [3]uint64{groups[0], uint64(f.Blocks), 1}, uint32(32 * f.Warps), uint32(v.ring(f) + f.Warps*chunksAhead*chunkBytes + 127)
}

// sums is where the sums of each 32 elements of x lie in shared memory, behind x.
func (*vector) sums(f Fit) int { return 2 * f.Inner }

// ring is where chunks lie, behind the sums and a number of each warp.
func (v *vector) ring(f Fit) int { return (v.sums(f) + f.Inner/8 + 4*f.Warps + 127) &^ 127 }

// Note implements [Kernel].
func (*vector) Note(f Fit) []byte { return note(f) }

// vectorEmitter writes one entry.
type vectorEmitter struct {
	*vector
	entry
	fit Fit

	thread, lane, warp, base string
	quad, member             string     // lane/4 and lane%4: the row of a fragment, and the columns
	vector0                  string     // the number of the vector that the block multiplies
	n0, count                string     // the block's first result, and how many its matrix has; where two rows make one, or a pair, these are counted
	matrix                   [2]operand // of the first eight rows of the tile, and of the others
	// Of rope: how many pairs a head has; predicates, for queries and keys, and for keys and values; where results go, how far apart heads lie
	// there, and the last row of the matrix.
	pairsOf, turned, key, to, stride, last string
	mine                                   string // how many chunks the warp has

	codesFrom [4]string // where the thread's part of the next chunk comes from: rows four apart
	codesTo   [4]string // and where it goes to in the chunk
	scaleFrom string
	slotBring string // where the next chunk goes to
	brought   string // how many chunks have been asked for
	end       string // of the warp's ring

	slotUse string
	acc     [2]string // sums of rows quad and quad + 8
}

// Emit implements [Kernel].
func (v *vector) Emit(launch nvptx.Launch, f Fit) []byte {
	e := &vectorEmitter{vector: v, entry: entry{kernel: v.source, launch: launch, typ: v.elem}, fit: f}
	// Weights are asked for before the wait for the launches before. What moves, or lies in memory, is read behind it.
	early := launch.Programmatic && launch.Values && !launch.Moving
	if early {
		for i := range v.source.Args {
			if name := v.source.Args[i].Name; strings.HasPrefix(name, "w") || strings.HasPrefix(name, "scales") || strings.HasPrefix(name, "biases") {
				e.early = append(e.early, i)
			}
		}
	} else {
		e.wait()
	}
	e.arguments()
	e.place()
	for range chunksAhead - 1 {
		e.bring()
	}
	if early {
		e.wait()
	}
	e.stage()
	e.multiply()
	e.finish()
	return e.text(32 * f.Warps)
}

// place finds the block's results and the thread's part of the copies. A block without results leaves.
func (e *vectorEmitter) place() {
	f := e.fit
	e.thread = e.r("mov.u32", "%%tid.x")
	e.lane, e.warp = e.r("and.b32", "%s, 31", e.thread), e.r("shr.u32", "%s, 5", e.thread)
	e.quad, e.member = e.r("shr.u32", "%s, 2", e.lane), e.r("and.b32", "%s, 3", e.lane)
	e.base = e.r("and.b32", "%s, -128", e.r("add.s32", "%s, 127", e.r("mov.u32", "mlxc_shared")))
	e.vector0 = e.r("mov.u32", "%%ctaid.x")
	e.block()
	e.mine = e.r("div.u32", "%s, %d", e.r("sub.s32", "%d, %s", f.Inner/chunk+f.Warps-1, e.warp), f.Warps)

	piece := e.r("and.b32", "%s, 7", e.lane)
	for i := range e.codesFrom {
		at := e.r("add.s32", "%s, %d", e.r("shr.u32", "%s, 3", e.lane), 4*i) // in the tile
		from := e.r("shl.b32", "%s, 4", piece)
		from = e.r("mad.lo.s32", "%s, %d, %s", e.warp, chunk/2, from)
		e.codesFrom[i] = e.plus(e.Make("rd", "add.s64", "%s, %s", e.matrix[i/2].codes, e.wide(e.row(at, i/2), strconv.Itoa(f.Inner/2))), from)
		// 16 bytes of eight rows lie in different banks.
		swizzled := e.r("xor.b32", "%s, %s", piece, e.r("and.b32", "%s, 7", at))
		e.codesTo[i] = e.r("mad.lo.s32", "%s, %d, %s", at, chunk/2, e.r("shl.b32", "%s, 4", swizzled))
	}
	at := e.r("and.b32", "%s, 15", e.lane)
	lower, scales := e.Make("p", "setp.lt.u32", "%s, 8", at), e.Make("p", "setp.lt.u32", "%s, 16", e.lane)
	half := func(i int) string { return e.either(scales, "rd", e.matrix[i].scales, e.matrix[i].biases) }
	from := e.either(lower, "rd", half(0), half(1))
	row := e.either(lower, "r", e.row(at, 0), e.row(at, 1))
	from = e.Make("rd", "add.s64", "%s, %s", from, e.wide(row, strconv.Itoa(2*f.Inner/e.group)))
	e.scaleFrom = e.plus(from, e.r("mul.lo.s32", "%s, %d", e.warp, e.scaleBytes()))

	ring := e.r("mad.lo.s32", "%s, %d, %s", e.warp, chunksAhead*chunkBytes, e.r("add.s32", "%s, %d", e.base, e.ring(f)))
	e.end = e.r("add.s32", "%s, %d", ring, chunksAhead*chunkBytes)
	e.slotBring, e.slotUse = e.r("mov.b32", "%s", ring), e.r("mov.b32", "%s", ring)
	e.brought = e.r("mov.b32", "0")
}

// block finds which rows of which matrix the block multiplies. A block that has none leaves.
func (e *vectorEmitter) block() {
	of := func(side string) operand {
		return operand{e.args["w"+side], e.args["scales"+side], e.args["biases"+side]}
	}
	block := e.r("mov.u32", "%%ctaid.y")
	e.matrix = [2]operand{of(e.sides[0]), of(e.sides[len(e.sides)-1])}
	switch e.form {
	case rope:
		e.pairsOf = e.r("shr.u32", "%s, 1", e.args["dims"])
		m, heads := of("_q"), e.args["q_heads"]
		e.to, e.stride = e.args["q"], e.args["q_stride"]
		for _, next := range []struct{ side, heads, to, stride string }{{"_k", "k_heads", "k", "k_stride"}, {"_v", "", "v", "k_stride"}} {
			blocks := e.r("shr.u32", "%s, 3", e.r("mad.lo.s32", "%s, %s, 7", heads, e.pairsOf))
			further := e.Make("p", "setp.ge.u32", "%s, %s", block, blocks)
			if next.side == "_v" { // only blocks behind those of the queries can be behind those of the keys
				further = e.Make("p", "and.pred", "%s, %s", further, e.key)
				e.turned = e.Make("p", "not.pred", "%s", further)
			} else {
				e.key = further
				heads = e.either(further, "r", e.args[next.heads], heads)
			}
			block = e.either(further, "r", e.r("sub.s32", "%s, %s", block, blocks), block)
			o := of(next.side)
			m = operand{e.either(further, "rd", o.codes, m.codes), e.either(further, "rd", o.scales, m.scales), e.either(further, "rd", o.biases, m.biases)}
			e.to, e.stride = e.either(further, "rd", e.args[next.to], e.to), e.either(further, "rd", e.args[next.stride], e.stride)
		}
		e.matrix = [2]operand{m, m}
		e.n0 = e.r("shl.b32", "%s, 3", block) // pairs
		e.count = e.either(e.turned, "r", e.r("mul.lo.s32", "%s, %s", heads, e.pairsOf), e.r("shr.u32", "%s, 1", e.r("add.s32", "%s, 1", e.args["n_v"])))
		e.last = e.either(e.turned, "r", e.r("mad.lo.s32", "%s, %s, -1", heads, e.args["dims"]), e.r("sub.s32", "%s, 1", e.args["n_v"]))
	case siluMul:
		e.n0, e.count = e.r("shl.b32", "%s, 3", block), e.r("mov.b32", "%d", e.fit.Outer)
	default:
		e.n0, e.count = e.r("shl.b32", "%s, 4", block), e.r("mov.b32", "%d", e.fit.Outer)
		e.matrix[1] = e.matrix[0]
	}
	e.Line("@%s bra \t$L_end", e.Make("p", "setp.ge.s32", "%s, %s", e.n0, e.count))
}

// row is the row of its matrix that a row of the tile is, of its first or second half. Behind the last one it is the last one, whose
// results nobody stores.
func (e *vectorEmitter) row(at string, half int) string {
	if e.form == add {
		return e.r("min.s32", "%s, %d", e.r("add.s32", "%s, %s", e.n0, at), e.fit.Outer-1)
	}
	n := e.r("add.s32", "%s, %s", e.n0, e.r("and.b32", "%s, 7", at))
	if e.form == siluMul {
		return e.r("min.s32", "%s, %d", n, e.fit.Outer-1)
	}
	head, place, apart := e.pair(n)
	first := e.either(e.turned, "r", e.r("mad.lo.s32", "%s, %s, %s", head, e.args["dims"], place), e.r("shl.b32", "%s, 1", n))
	if half == 1 {
		first = e.r("add.s32", "%s, %s", first, e.either(e.turned, "r", apart, e.r("mov.b32", "1")))
	}
	return e.r("min.s32", "%s, %s", first, e.last)
}

// pair is the head of a pair that a rotation turns, where its first element lies in it, and how far from there its second.
func (e *vectorEmitter) pair(n string) (head, place, apart string) {
	head, place = e.r("div.u32", "%s, %s", n, e.pairsOf), e.r("rem.u32", "%s, %s", n, e.pairsOf)
	if e.pairs {
		return head, e.r("shl.b32", "%s, 1", place), e.r("mov.b32", "1")
	}
	return head, place, e.pairsOf
}

// scaleBytes are those of the scales that a row has in a chunk.
func (v *vector) scaleBytes() int { return 2 * chunk / v.group }

// bring asks for the warp's next chunk, if there is one.
func (e *vectorEmitter) bring() {
	none := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %s", e.brought, e.mine), none)
	for i, from := range e.codesFrom {
		e.Line("cp.async.cg.shared.global.L2::128B \t[%s], [%s], 16", e.r("add.s32", "%s, %s", e.slotBring, e.codesTo[i]), from)
		e.Line("add.s64 \t%s, %s, %d", from, from, e.fit.Warps*chunk/2)
	}
	kind := "ca"
	if e.scaleBytes() == 16 {
		kind = "cg"
	}
	to := e.r("mad.lo.s32", "%s, 16, %s", e.lane, e.slotBring)
	e.Line("cp.async.%s.shared.global \t[%s+%d], [%s], %d", kind, to, codesChunk, e.scaleFrom, e.scaleBytes())
	e.Line("add.s64 \t%s, %s, %d", e.scaleFrom, e.scaleFrom, e.fit.Warps*e.scaleBytes())
	e.next(e.slotBring)
	e.Mark(none)
	e.Line("add.s32 \t%s, %s, 1", e.brought, e.brought)
	e.Line("cp.async.commit_group")
}

// next moves a slot of the ring on.
func (e *vectorEmitter) next(slot string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, chunkBytes)
	around := e.Make("p", "setp.ge.u32", "%s, %s", slot, e.end)
	e.Line("@%s sub.s32 \t%s, %s, %d", around, slot, slot, chunksAhead*chunkBytes)
}

// stage brings x to shared memory, in the order in which lanes multiply it, and the sum of each 32 elements. A word of codes has
// the elements 0 to 7 of a lane, of which mma.sync takes the first with the fifth, the second with the sixth, and so on.
func (e *vectorEmitter) stage() {
	f := e.fit
	x := e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(e.vector0, strconv.Itoa(2*f.Inner)))
	part := e.r("mov.b32", "%s", e.thread)
	there := e.Make("p", "setp.lt.u32", "%s, %d", part, f.Inner/32)
	if e.norm {
		e.normalized(x, part, there)
		e.Line("bar.sync \t0")
		return
	}
	loop, done := e.Label(), e.Label()
	e.Mark(loop)
	e.Line("@!%s bra \t%s", there, done)
	e.put(part, e.words(e.Make("rd", "add.s64", "%s, %s", x, e.wide(part, "64")), ""))
	e.Line("add.s32 \t%s, %s, %d", part, part, 32*f.Warps)
	e.Line("setp.lt.u32 \t%s, %s, %d", there, part, f.Inner/32)
	e.Line("bra \t%s", loop)
	e.Mark(done)
	e.Line("bar.sync \t0")
}

// words loads 32 elements; zeros where there is nothing.
func (e *vectorEmitter) words(from, there string) (out []string) {
	for i := range 4 {
		var four []string
		for range 4 {
			w := e.New("r")
			if there != "" {
				e.Line("mov.b32 \t%s, 0", w)
			}
			four = append(four, w)
		}
		guard := ""
		if there != "" {
			guard = "@" + there + " "
		}
		e.Line("%sld.global.v4.b32 \t{%s}, [%s+%d]", guard, strings.Join(four, ", "), from, 16*i)
		out = append(out, four...)
	}
	return out
}

// put stores a part of 32 elements, and their sum.
func (e *vectorEmitter) put(part string, words []string) {
	to := e.r("mad.lo.s32", "%s, 64, %s", part, e.base)
	sum := ""
	for i := 0; i < len(words); i += 4 {
		four := words[i : i+4]
		var order []string
		for j := range 2 {
			for _, halves := range []string{"0x5410", "0x7632"} {
				order = append(order, e.r("prmt.b32", "%s, %s, %s", four[j], four[j+2], halves))
			}
		}
		e.Line("st.shared.v4.b32 \t[%s+%d], {%s}", to, 4*i, strings.Join(order, ", "))
	}
	for _, h := range e.all(words) {
		if sum == "" {
			sum = h
		} else {
			sum = e.r("add.rn.f32", "%s, %s", sum, h)
		}
	}
	e.Line("st.shared.b32 \t[%s+%d], %s", e.r("mad.lo.s32", "%s, 4, %s", part, e.base), e.sums(e.fit), sum)
}

// all are the numbers of 16 bits in words, as f32.
func (e *entry) all(words []string) (out []string) {
	for _, w := range words {
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, w)
		out = append(out, e.widened(low), e.widened(high))
	}
	return out
}

// normalized stages x by its root mean square: norm · round(x · inv), rounded. Each thread has at most 32 elements.
func (e *vectorEmitter) normalized(x, part, there string) {
	f := e.fit
	offset := e.wide(part, "64")
	numbers := e.all(e.words(e.Make("rd", "add.s64", "%s, %s", x, offset), there))
	weights := e.all(e.words(e.Make("rd", "add.s64", "%s, %s", e.args["norm"], offset), there))
	squares := e.r("mov.b32", "0")
	for _, v := range numbers {
		squares = e.r("fma.rn.f32", "%s, %s, %s", v, v, squares)
	}
	for step := 16; step > 0; step /= 2 {
		other := e.New("r")
		e.Line("shfl.sync.bfly.b32 \t%s, %s, %d, 31, -1", other, squares, step)
		squares = e.r("add.rn.f32", "%s, %s", squares, other)
	}
	place := e.sums(f) + f.Inner/8
	first := e.Make("p", "setp.eq.u32", "%s, 0", e.lane)
	e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, e.r("mad.lo.s32", "%s, 4, %s", e.warp, e.base), place, squares)
	e.Line("bar.sync \t0")
	total := ""
	for i := range f.Warps {
		s := e.r("ld.shared.b32", "[%s+%d]", e.base, place+4*i)
		if total == "" {
			total = s
		} else {
			total = e.r("add.rn.f32", "%s, %s", total, s)
		}
	}
	mean := e.r("div.rn.f32", "%s, %s", total, e.r("cvt.rn.f32.u32", "%s", e.r("mov.b32", "%d", f.Inner)))
	root := e.r("sqrt.rn.f32", "%s", e.r("add.rn.f32", "%s, %s", mean, e.args["eps"]))
	inverse := e.r("rcp.rn.f32", "%s", root)
	var words []string
	for i := 0; i < len(numbers); i += 2 {
		var two [2]string
		for j := range two {
			v := e.widened(e.rounded(e.r("mul.rn.f32", "%s, %s", numbers[i+j], inverse)))
			two[j] = e.rounded(e.r("mul.rn.f32", "%s, %s", weights[i+j], v))
		}
		words = append(words, e.r("mov.b32", "{%s, %s}", two[0], two[1]))
	}
	none := e.Label()
	e.Line("@!%s bra \t%s", there, none)
	e.put(part, words)
	e.Mark(none)
}

// multiply adds up the warp's chunks. Codes become numbers as the last bits of 1024 + q, of 128 + q in bf16, less that: exact, so that what
// tensor cores lose is measured by the products alone, and infinities multiply as the term has it.
func (e *vectorEmitter) multiply() {
	f := e.fit
	magic, typ := 0x64006400, "f16"
	if e.elem == ir.BF16 {
		magic, typ = 0x43004300, "bf16"
	}
	for i := range e.acc {
		e.acc[i] = e.r("mov.b32", "0")
	}
	zero := e.r("mov.b32", "0")
	mask, one := e.r("mov.b32", "%d", 0x000F000F), e.r("mov.b32", "%d", magic)
	xAt := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 2*chunk, e.r("mad.lo.s32", "%s, 16, %s", e.member, e.base))
	sumsAt := e.r("mad.lo.s32", "%s, %d, %s", e.warp, chunk/8, e.r("add.s32", "%s, %d", e.base, e.sums(f)))
	// Where the thread's words of 16 bytes j of its rows lie: the bits of j are free in this number.
	rows := e.r("mad.lo.s32", "%s, %d, %s", e.quad, chunk/2+16, e.r("shl.b32", "%s, 2", e.member))
	left := e.r("mov.b32", "%s", e.mine)
	loop, done := e.Label(), e.Label()
	e.Mark(loop)
	e.Line("@%s bra \t%s", e.Make("p", "setp.eq.u32", "%s, 0", left), done)
	e.Line("cp.async.wait_group \t%d", chunksAhead-2)
	e.Line("bar.warp.sync \t-1")
	e.bring()
	at := e.r("add.s32", "%s, %s", e.slotUse, rows)
	scales := e.r("mad.lo.s32", "%s, 16, %s", e.quad, e.slotUse)
	var scale, bias [2][]string // of rows quad and quad + 8
	for i := range 2 {
		scale[i] = e.some(scales, codesChunk+128*i, e.scaleBytes())
		bias[i] = e.some(scales, codesChunk+256+128*i, e.scaleBytes())
	}
	sums := slices.Concat(e.four(sumsAt, 0), e.four(sumsAt, 16))
	for j := range chunk / 32 {
		x := e.four(xAt, 64*j)
		place := at
		if j > 0 {
			place = e.r("xor.b32", "%s, %d", at, 16*j)
		}
		codes := [2]string{e.r("ld.shared.b32", "[%s]", place), e.r("ld.shared.b32", "[%s+%d]", place, 8*chunk/2)}
		code := func(row, shift int) string {
			w := codes[row]
			if shift > 0 {
				w = e.r("shr.u32", "%s, %d", w, shift)
			}
			return e.r("sub.rn."+typ+"x2", "%s, %s", e.r("lop3.b32", "%s, %s, %s, 0xEA", w, mask, one), one)
		}
		sum := [4]string{zero, zero, zero, zero}
		for half := range 2 {
			var out [4]string
			for i := range out {
				out[i] = e.New("r")
			}
			e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s, %s, %s, %s}, {%s, %s}, {%s}", typ, typ, strings.Join(out[:], ", "),
				code(0, 8*half), code(1, 8*half), code(0, 8*half+4), code(1, 8*half+4), x[2*half], x[2*half+1], strings.Join(sum[:], ", "))
			sum = out
		}
		g := j * 32 / e.group
		for i := range 2 {
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.acc[i], scale[i][g], sum[2*i], e.acc[i])
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.acc[i], bias[i][g], sums[j], e.acc[i])
		}
	}
	e.next(e.slotUse)
	e.Line("add.s32 \t%s, %s, %d", xAt, xAt, f.Warps*2*chunk)
	e.Line("add.s32 \t%s, %s, %d", sumsAt, sumsAt, f.Warps*chunk/8)
	e.Line("sub.s32 \t%s, %s, 1", left, left)
	e.Line("bra \t%s", loop)
	e.Mark(done)
}

// four loads four words.
func (e *entry) four(from string, offset int) (out []string) {
	for range 4 {
		out = append(out, e.New("r"))
	}
	e.Line("ld.shared.v4.b32 \t{%s}, [%s+%d]", strings.Join(out, ", "), from, offset)
	return out
}

// some loads so many bytes of numbers of 16 bits, as f32.
func (e *vectorEmitter) some(from string, offset, bytes int) []string {
	switch bytes {
	case 16:
		return e.all(e.four(from, offset))
	case 8:
		a, b := e.New("r"), e.New("r")
		e.Line("ld.shared.v2.b32 \t{%s, %s}, [%s+%d]", a, b, from, offset)
		return e.all([]string{a, b})
	}
	return e.all([]string{e.r("ld.shared.b32", "[%s+%d]", from, offset)})
}

// finish adds up what the warps have, and stores what becomes of the sums.
func (e *vectorEmitter) finish() {
	f := e.fit
	parts := e.r("add.s32", "%s, %d", e.base, e.ring(f)) // of each warp, and behind them the sums
	totals := 4 * tileRows * f.Warps
	e.Line("bar.sync \t0") // chunks are done with
	first := e.Make("p", "setp.eq.u32", "%s, 0", e.member)
	to := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*tileRows, e.r("mad.lo.s32", "%s, 4, %s", e.quad, parts))
	e.Line("@%s st.shared.b32 \t[%s], %s", first, to, e.acc[0])
	e.Line("@%s st.shared.b32 \t[%s+32], %s", first, to, e.acc[1])
	e.Line("bar.sync \t0")
	own := e.r("mad.lo.s32", "%s, 4, %s", e.thread, parts)
	added := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", e.thread, tileRows), added)
	sum := e.r("ld.shared.b32", "[%s]", own)
	for i := 1; i < f.Warps; i++ {
		sum = e.r("add.rn.f32", "%s, %s", sum, e.r("ld.shared.b32", "[%s+%d]", own, 4*tileRows*i))
	}
	e.Line("st.shared.b32 \t[%s+%d], %s", own, totals, sum)
	e.Mark(added)
	if e.form != add { // whose threads read two sums
		e.Line("bar.sync \t0")
	}

	n := e.r("add.s32", "%s, %s", e.n0, e.thread)
	side := tileRows
	if e.form != add {
		side = 8
	}
	outside := e.Make("p", "setp.ge.u32", "%s, %d", e.thread, side)
	outside = e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "setp.ge.s32", "%s, %s", n, e.count))
	e.Line("@%s bra \t$L_end", outside)
	total := func(row int) string { return e.stored(e.r("ld.shared.b32", "[%s+%d]", own, totals+4*row)) }
	if e.form == rope {
		e.turn(n, total(0), total(8))
	} else {
		place := e.Make("rd", "add.s64", "%s, %s", e.wide(e.vector0, strconv.Itoa(f.Outer)), e.Make("rd", "cvt.u64.u32", "%s", n))
		place = e.Make("rd", "shl.b64", "%s, 1", place)
		result := total(0)
		if e.form == siluMul {
			result = e.siluMul(result, total(8))
		} else {
			other := e.Make("rs", "ld.global.b16", "[%s]", e.Make("rd", "add.s64", "%s, %s", e.args["r"], place))
			result = e.stored(e.r("add.rn.f32", "%s, %s", e.widened(other), e.widened(result)))
		}
		e.Line("st.global.b16 \t[%s], %s", e.Make("rd", "add.s64", "%s, %s", e.args["y"], place), result)
	}
	e.Mark("$L_end")
	e.Line("ret")
}

// turn stores two elements of a query or key, turned by their position, or two of a value.
func (e *vectorEmitter) turn(n, one, two string) {
	plain, end := e.Label(), e.Label()
	e.Line("@!%s bra \t%s", e.turned, plain)
	head, place, apart := e.pair(n)
	index := e.r("rem.u32", "%s, %s", n, e.pairsOf)
	float := func(v string) string { return e.r("cvt.rn.f32.s32", "%s", v) }
	part := e.r("neg.f32", "%s", e.r("div.rn.f32", "%s, %s", float(index), float(e.pairsOf)))
	power := e.Call("exp2", e.r("mul.rn.f32", "%s, %s", part, e.args["base"]))
	theta := e.r("mul.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", e.args["scale"], float(e.args["offset"])), power)
	cosine, sine := e.Call("cos", theta), e.Call("sin", theta)
	a, b := e.widened(one), e.widened(two)
	first := e.r("sub.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", a, cosine), e.r("mul.rn.f32", "%s, %s", b, sine))
	second := e.r("add.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", a, sine), e.r("mul.rn.f32", "%s, %s", b, cosine))
	at := e.Make("rd", "mul.lo.s64", "%s, %s", e.Make("rd", "cvt.u64.u32", "%s", head), e.stride)
	at = e.Make("rd", "add.s64", "%s, %s", at, e.Make("rd", "cvt.u64.u32", "%s", place))
	at = e.Make("rd", "add.s64", "%s, %s", e.to, e.Make("rd", "shl.b64", "%s, 1", at))
	e.Line("st.global.b16 \t[%s], %s", at, e.stored(first))
	e.Line("st.global.b16 \t[%s], %s", e.Make("rd", "add.s64", "%s, %s", at, e.wide(apart, "2")), e.stored(second))
	e.Line("bra \t%s", end)
	e.Mark(plain)
	value := e.r("shl.b32", "%s, 1", n)
	at = e.Make("rd", "add.s64", "%s, %s", e.to, e.wide(value, "2"))
	e.Line("st.global.b16 \t[%s], %s", at, one)
	e.Line("@%s st.global.b16 \t[%s+2], %s", e.Make("p", "setp.lt.s32", "%s, %s", value, e.last), at, two)
	e.Mark(end)
}
