package ptxmatrix

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// blocks is a format of GGML's blocks (msl/ggml.metal). A chunk has the bytes of 256 weights of each of 16 rows, as they lie in memory, or of eight rows of each
// of two matrices.
//
// Of them, as of affine codes, a lane whose number in its four is m (member) is given the codes of groups that are m's alone, of two or four. For all of
// them it has its elements of the inner index; columns 2m and 2m + 1 of the right factor have the elements of x that belong to m's groups there, and
// zeros in the other lanes' places. So the sums of these columns, which mma.sync gives just that lane, are those of its groups, and no other lane needs
// their scales. A left factor with the codes of one group goes with a right factor whose column 2m has its elements; that of another with one whose column
// 2m + 1 has them. Both are one right factor, of which a lane's part belongs to one column: half of the sums have no meaning and are left alone.
type blocks struct {
	bytes int // of 256 weights of a row
	// Where rows lie in a chunk: how many bytes from one to the next, from the first to the fifth, and in all. The ninth lies behind the fourth
	// if there is a gap before the fifth. Eight rows, and what lanes read of each, lie in different banks.
	pitch, fifth, size int
	even               bool // chunks of a row begin at even places only; else at multiples of 16
	sums               bool // there are biases, which multiply sums of 32 elements of x
	large              bool // a byte takes many instructions, or there are many bytes
	multiply           func(e *vectorEmitter) multiplication
}

var formats = map[string]*blocks{
	"q4_K": {bytes: 144, pitch: 144, fifth: 4 * 144, size: 16 * 144, sums: true, multiply: (*vectorEmitter).q4K},
	"q6_K": {bytes: 210, pitch: 224, fifth: 8*224 + 16, size: 16*224 + 16, even: true, large: true, multiply: (*vectorEmitter).q6K},
	"q8_0": {bytes: 272, pitch: 272, fifth: 4 * 272, size: 16 * 272, large: true, multiply: (*vectorEmitter).q80},
	"q4_0": {bytes: 144, pitch: 144, fifth: 4 * 144, size: 16 * 144, multiply: (*vectorEmitter).q40},
}

// eighth is how many bytes lie from a row to the one eight rows behind.
func (b *blocks) eighth() int {
	if b.fifth == 4*b.pitch {
		return 8 * b.pitch
	}
	return 4 * b.pitch
}

// row is where a row lies in a chunk.
func (b *blocks) row(n int) int { return n%4*b.pitch + n/8*b.eighth() + n/4%2*b.fifth }

// rowAt is the same of a row that a register has.
func (e *vectorEmitter) rowAt(row string) string {
	b := e.blocks
	if b.fifth == 4*b.pitch {
		return e.r("mul.lo.s32", "%s, %d", row, b.pitch)
	}
	at := e.r("mul.lo.s32", "%s, %d", e.r("and.b32", "%s, 3", row), b.pitch)
	at = e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 3", row), b.eighth(), at)
	return e.r("mad.lo.s32", "%s, %d, %s", e.r("and.b32", "%s, 1", e.r("shr.u32", "%s, 2", row)), b.fifth, at)
}

var namedBlocks = regexp.MustCompile(`^ggml_mul_mv_(silu_mul_)?(q4_K|q6_K|q8_0|q4_0)_(f16|bf16)$`)

func blocksOf(k *air.Kernel, gpu GPU) *vector {
	m := namedBlocks.FindStringSubmatch(k.Name)
	if m == nil {
		return nil
	}
	v := &vector{source: k, form: store, sides: []string{""}, elem: ir.F16, blocks: formats[m[2]], gpu: gpu}
	if m[1] != "" {
		v.form, v.sides = siluMul, []string{"_gate", "_up"}
	}
	if m[3] == "bf16" {
		v.elem = ir.BF16
	}
	return v
}

// blocksFit reports whether matrices can be read by pieces of 16 bytes: where the rows of a tile begin within 16 bytes is the same for all tiles, and
// of rows that begin at even places every eighth begins at the same.
func (v *vector) blocksFit(f Fit) bool {
	return f.Outer%v.tall() == 0 || f.Inner/chunk*v.blocks.bytes%16 == 0
}

// rowBytes are those of a row of the matrix.
func (e *vectorEmitter) rowBytes() int { return e.fit.Inner / chunk * e.blocks.bytes }

// pieces are those of 16 bytes that hold a row's part of a chunk. So many lanes bring them side by side, of several rows at a time; if there are more
// than lanes, one of each row remains.
func (b *blocks) pieces() (each, lanes int) {
	each = (b.bytes + 15) / 16
	if b.even { // whose first byte may be the 15th of a piece
		each = (b.bytes + 14 + 15) / 16
	}
	if each < 10 {
		return each, 8
	}
	return each, 16
}

// placeBlocks finds where the thread's pieces of a chunk go to.
func (e *vectorEmitter) placeBlocks() {
	each, lanes := e.blocks.pieces()
	row, part := e.r("div.u32", "%s, %d", e.lane, lanes), e.r("rem.u32", "%s, %d", e.lane, lanes)
	e.to = e.r("mad.lo.s32", "%s, 16, %s", part, e.r("mul.lo.s32", "%s, %d", row, e.blocks.pitch))
	switch {
	case each < lanes:
		e.hasPieces = e.Make("p", "setp.lt.u32", "%s, %d", part, each)
	case each > lanes:
		e.hasEnd = e.Make("p", "setp.lt.u32", "%s, %d", e.lane, tileRows)
		e.toEnd = e.r("add.s32", "%s, %d", e.rowAt(e.r("and.b32", "%s, %d", e.lane, tileRows-1)), 16*lanes)
		e.fromEnd = e.New("rd")
	}
	// Rows that lanes bring one after another may begin at different places of 16 bytes.
	each = 1
	for e.blocks.even && each*32/lanes*e.rowBytes()%16 != 0 {
		each++
	}
	for range each * len(e.sides) {
		e.from = append(e.from, e.New("rd"))
	}
}

// blocksOf finds where the thread's pieces of a tile's first chunk come from.
func (e *vectorEmitter) blocksOf(t *vectorTile) {
	_, lanes := e.blocks.pieces()
	before := e.r("mul.lo.s32", "%s, %d", e.warp, e.blocks.bytes)
	first := make([]string, len(e.sides)) // of each matrix
	for i := range first {
		first[i] = e.plus(e.Make("rd", "add.s64", "%s, %s", t.matrix[i].codes, e.wide(t.n0, strconv.Itoa(e.rowBytes()))), before)
	}
	at := e.r("mad.lo.s32", "%s, %d, %s", e.r("div.u32", "%s, %d", e.lane, lanes), e.rowBytes(), e.r("shl.b32", "%s, 4", e.r("rem.u32", "%s, %d", e.lane, lanes)))
	each := len(e.from) / len(first)
	for i, from := range e.from {
		place := e.plus(first[i/each], e.r("add.s32", "%s, %d", at, i%each*32/lanes*e.rowBytes()))
		e.Line("and.b64 \t%s, %s, -16", from, place) // rows at even places begin within 16 bytes
	}
	if e.fromEnd != "" {
		from := first[0]
		if len(first) > 1 {
			from = e.either(e.Make("p", "setp.lt.u32", "%s, %d", e.lane, e.tall()), "rd", first[0], first[1])
		}
		at := e.r("mul.lo.s32", "%s, %d", e.r("and.b32", "%s, %d", e.lane, e.tall()-1), e.rowBytes())
		e.Line("add.s64 \t%s, %s, %d", e.fromEnd, e.plus(from, at), 16*lanes)
	}
}

// bringBlocks asks for the thread's pieces of a chunk.
func (e *vectorEmitter) bringBlocks() {
	b := e.blocks
	_, lanes := b.pieces()
	skip := e.Label()
	if e.hasPieces != "" { // one branch: an assembler makes one of each copy under a predicate
		e.Line("@!%s bra \t%s", e.hasPieces, skip)
	}
	rows, each := 32/lanes, len(e.from)/len(e.sides)
	to := e.r("add.s32", "%s, %s", e.bringSlot, e.to)
	for row := 0; row < tileRows; row += rows {
		i := row % e.tall() / rows // of the rows of a matrix
		n := i % each
		e.Line("cp.async.cg.shared.global.L2::128B \t[%s+%d], [%s+%d], 16", to, b.row(row), e.from[row/e.tall()*each+n], (i-n)*rows*e.rowBytes())
	}
	e.Mark(skip)
	for _, from := range e.from {
		e.Line("add.s64 \t%s, %s, %d", from, from, e.fit.Warps*b.bytes)
	}
	if e.fromEnd != "" {
		e.Line("@%s cp.async.cg.shared.global.L2::128B \t[%s], [%s], 16", e.hasEnd, e.r("add.s32", "%s, %s", e.bringSlot, e.toEnd), e.fromEnd)
		e.Line("add.s64 \t%s, %s, %d", e.fromEnd, e.fromEnd, e.fit.Warps*b.bytes)
	}
}

// putBlocks stores a piece as lanes multiply it: of four elements, which lie in the bytes of a word of codes or in the
// halves of these, the first with the third, and the second with the fourth.
func (e *vectorEmitter) putBlocks(number string, words []string) {
	var order []string
	for i := 0; i < len(words); i += 2 {
		for _, halves := range []string{"0x5410", "0x7632"} {
			order = append(order, e.r("prmt.b32", "%s, %s, %s", words[i], words[i+1], halves))
		}
	}
	if e.blocks.even {
		e.putQuarter(number, order)
		return
	}
	e.Line("st.shared.v4.b32 \t[%s], {%s}", e.r("mad.lo.s32", "%s, 16, %s", number, e.base), strings.Join(order, ", "))
}

// multiplied brings the lane's elements of x of a chunk to registers, 32 of its column if that is one of its own groups, else zeros; chunkOf multiplies
// with them.
func (e *vectorEmitter) multiplied(chunkOf func()) multiplication {
	first, step := e.column()
	xAt, sumsAt, sums := e.New("r"), "", ""
	if e.blocks.sums {
		sums = e.r("mad.lo.s32", "%s, %d, %s", e.warp, chunk/8, e.r("mad.lo.s32", "%s, 8, %s", e.member, e.r("add.s32", "%s, %d", e.base, e.sums(e.fit))))
		sumsAt = e.New("r")
		e.sumsAt = sumsAt
	}
	return multiplication{
		begin: func() {
			e.Line("mov.b32 \t%s, %s", xAt, first)
			if sums != "" {
				e.Line("mov.b32 \t%s, %s", sumsAt, sums)
			}
		},
		chunk: func() {
			e.x = nil
			for i := range 4 {
				e.x = append(e.x, e.four(xAt, 16*i)...)
			}
			chunkOf()
			e.Line("add.s32 \t%s, %s, %s", xAt, xAt, step)
			if sums != "" {
				e.Line("add.s32 \t%s, %s, %d", sumsAt, sumsAt, e.fit.Warps*chunk/8)
			}
		},
	}
}

// chain is a row of mma.sync that add to one another's sums.
type chain struct {
	sum [4]string
}

func (e *vectorEmitter) chains(n int) []chain {
	zero := e.r("mov.b32", "0")
	out := make([]chain, n)
	for i := range out {
		out[i].sum = [4]string{zero, zero, zero, zero}
	}
	return out
}

// add multiplies codes of both rows with elements 4·n to 4·n + 3 of the lane's x. even and odd are, of the rows, the codes that lie in the even
// and in the odd bytes of words.
func (e *vectorEmitter) add(c *chain, n int, even, odd [2]string) {
	var out [4]string
	for i := range out {
		out[i] = e.New("r")
	}
	e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s, %s, %s, %s}, {%s, %s}, {%s}", e.elem, e.elem, strings.Join(out[:], ", "),
		even[0], even[1], odd[0], odd[1], e.x[2*n], e.x[2*n+1], strings.Join(c.sum[:], ", "))
	c.sum = out
}

// code makes two numbers of bits of a word that lie 16 apart: they are put into the fraction of a power of two, of which less is subtracted.
func (e *vectorEmitter) code(word string, mask, magic, less uint32) string {
	return e.less(e.fraction(word, mask, e.r("mov.b32", "%d", magic)), less)
}

// fraction puts bits into a word that has zeros there.
func (e *vectorEmitter) fraction(word string, mask uint32, into string) string {
	return e.r("lop3.b32", "%s, %d, %s, 0xEA", word, mask, into) // 0xEA: (a & b) | c
}

// less subtracts a number from two.
func (e *vectorEmitter) less(pair string, number uint32) string {
	return e.minus(pair, e.r("mov.b32", "%d", number))
}

// right shifts a word.
func (e *vectorEmitter) right(word string, bits int) string {
	if bits == 0 {
		return word
	}
	return e.r("shr.u32", "%s, %d", word, bits)
}

// byteOf is a byte of a word as a number.
func (e *vectorEmitter) byteOf(word string, i int) string {
	const power = 0x4B000000 // 2^23
	v := e.r("prmt.b32", "%s, %d, %d", word, power, 0x7440+i)
	return e.r("sub.rn.f32", "%s, 0f4B000000", v)
}

// times multiplies two f32, and fma adds the product of two to the sums of a row.
func (e *vectorEmitter) times(a, b string) string { return e.r("mul.rn.f32", "%s, %s", a, b) }
func (e *vectorEmitter) plusProduct(row int, a, b string) {
	e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.acc[row], a, b, e.acc[row])
}

const sixteenth = "0f3D800000"

// q4K: a lane has the codes of elements 64·m to 64·m + 63, of two groups, of which the second lie in the upper halves of bytes. In f16 these are
// taken sixteenfold, as they lie, and their scales a sixteenth.
func (e *vectorEmitter) q4K() multiplication {
	heads := e.rowAt(e.quad)
	rows := e.r("mad.lo.s32", "%s, 32, %s", e.member, heads)
	// Scales and minima of 6 bits: which bytes have the lane's, and where their bits lie.
	upper := e.Make("p", "setp.ge.u32", "%s, 2", e.member)
	second := e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, 1", e.member))
	number := func(n uint32) string { return e.r("mov.b32", "%d", n) }
	selector := e.either(second, "r", number(0x7632), number(0x5410))
	shift := e.either(upper, "r", number(2), number(0))
	high, low := e.either(upper, "r", number(0x30303030), number(0x3F3F3F3F)), e.either(upper, "r", number(0x0F0F0F0F), number(0))
	return e.multiplied(func() {
		at, head := e.r("add.s32", "%s, %s", e.useSlot, rows), e.r("add.s32", "%s, %s", e.useSlot, heads)
		var words [2][]string
		var scale, bias [2][2]string // of a row, of a group
		for r := range 2 {
			for i := range 2 {
				words[r] = append(words[r], e.four(at, r*e.blocks.eighth()+16+16*i)...)
			}
			h := e.four(head, r*e.blocks.eighth())
			v := e.r("prmt.b32", "%s, %s, %s", h[1], h[2], selector)
			w := e.r("prmt.b32", "%s, %s, %s", h[3], e.right(h[3], 4), selector)
			v = e.r("lop3.b32", "%s, %s, %s, 0xEA", e.r("shr.u32", "%s, %s", v, shift), high, e.r("and.b32", "%s, %s", w, low))
			d, least := e.halvesOf(h[0])
			least = e.r("neg.f32", "%s", least)
			scale[r] = [2]string{e.times(d, e.byteOf(v, 0)), ""}
			if e.elem == ir.F16 {
				d = e.times(d, sixteenth)
			}
			scale[r][1] = e.times(d, e.byteOf(v, 1))
			bias[r] = [2]string{e.times(least, e.byteOf(v, 2)), e.times(least, e.byteOf(v, 3))}
		}
		sums := [2]string{e.New("r"), e.New("r")}
		e.Line("ld.shared.v2.b32 \t{%s, %s}, [%s]", sums[0], sums[1], e.sumsAt)
		c := e.chains(4) // two of each group, so that no sum is added to often
		for n := range 8 {
			var codes [2][2][2]string // of a group, of even and odd bytes, of a row
			for r := range 2 {
				for odd := range 2 {
					w := e.right(words[r][n], 8*odd)
					if e.elem == ir.F16 {
						codes[0][odd][r] = e.code(w, 0x000F000F, 0x64006400, 0x64006400)
						codes[1][odd][r] = e.code(w, 0x00F000F0, 0x64006400, 0x64006400)
					} else {
						codes[0][odd][r] = e.code(w, 0x000F000F, 0x43004300, 0x43004300)
						codes[1][odd][r] = e.code(e.right(words[r][n], 8*odd+4), 0x000F000F, 0x43004300, 0x43004300)
					}
				}
			}
			for g := range 2 {
				e.add(&c[2*g+n/4], n, codes[g][0], codes[g][1])
			}
		}
		for r := range 2 {
			for g := range 2 {
				e.plusProduct(r, scale[r][g], e.r("add.rn.f32", "%s, %s", c[2*g].sum[2*r+g], c[2*g+1].sum[2*r+g]))
				e.plusProduct(r, bias[r][g], sums[g])
			}
		}
	})
}

// halvesOf are the numbers of f16 in a word, as f32.
func (e *vectorEmitter) halvesOf(word string) (low, high string) {
	l, h := e.New("rs"), e.New("rs")
	e.Line("mov.b32 \t{%s, %s}, %s", l, h, word)
	return e.r("cvt.f32.f16", "%s", l), e.r("cvt.f32.f16", "%s", h)
}

// q6K: a lane has the codes of 16 elements of each quarter of half m/2 of the block, those beginning with 16·(m%2): four groups. Blocks begin at even
// places, so that a word of the block may lie in two of shared memory. Lanes of a row begin with different words, so that they read
// different banks where all rows begin at the same place of 16 bytes.
func (e *vectorEmitter) q6K() multiplication {
	b := e.blocks
	half, side := e.r("shr.u32", "%s, 1", e.member), e.r("and.b32", "%s, 1", e.member)
	// Where rows begin in 16 bytes, and where in the slot.
	var begin, slot [2]string
	for r := range 2 {
		at := e.r("add.s32", "%s, %d", e.quad, 8*r)
		from := e.r("mul.lo.s32", "%s, %d", at, e.rowBytes()%16)
		from = e.r("mad.lo.s32", "%s, %d, %s", e.warp, b.bytes, from)
		begin[r] = e.r("and.b32", "%s, 15", from)
		slot[r] = e.rowAt(at)
	}
	codes := e.r("mad.lo.s32", "%s, 64, %s", half, e.r("shl.b32", "%s, 4", side))             // the first of its bytes with low bits
	tops := e.r("mad.lo.s32", "%s, -32, %s", half, e.r("mov.b32", "128"))                     // from there to those with high ones
	scales := e.r("mad.lo.s32", "%s, -56, %s", half, e.r("mad.lo.s32", "%s, -16, 192", side)) // and to the scales of its half
	var rotated, isLast [4]string
	for t := range rotated {
		n := e.r("and.b32", "%s, 3", e.r("add.s32", "%s, %d", e.member, t))
		rotated[t], isLast[t] = e.r("shl.b32", "%s, 2", n), e.Make("p", "setp.eq.u32", "%s, 3", n)
	}
	// A selector for bytes side, side + 2 of four bytes, with their sign.
	sign := e.r("mad.lo.s32", "%s, %d, %d", side, 0x1111, 0x8880)
	return e.multiplied(func() {
		var words [2][3][]string // of a row: low bits of quarters 0 and 2, of 1 and 3, high bits
		var scale [2][4]string
		for r := range 2 {
			start := e.r("add.s32", "%s, %s", e.r("add.s32", "%s, %s", e.useSlot, slot[r]), begin[r])
			odd := e.r("and.b32", "%s, 2", start)
			aligned := e.r("xor.b32", "%s, %s", start, odd)
			shift := e.r("mad.lo.s32", "%s, %d, %d", odd, 0x1111, 0x3210)
			first := e.r("add.s32", "%s, %s", aligned, codes)
			top := e.r("add.s32", "%s, %s", first, tops)
			var at, topAt [4]string
			for t := range at {
				at[t], topAt[t] = e.r("add.s32", "%s, %s", first, rotated[t]), e.r("add.s32", "%s, %s", top, rotated[t])
			}
			for i := range 3 {
				place, base, offset := at, first, 32*i
				if i == 2 {
					place, base, offset = topAt, top, 0
				}
				var four [4]string
				for t := range four {
					four[t] = e.r("ld.shared.b32", "[%s+%d]", place[t], offset)
				}
				fifth := e.r("ld.shared.b32", "[%s+%d]", base, offset+16)
				for t := range four {
					words[r][i] = append(words[r][i], e.r("prmt.b32", "%s, %s, %s", four[t], e.either(isLast[t], "r", fifth, four[(t+1)%4]), shift))
				}
			}
			s := e.r("add.s32", "%s, %s", first, scales)
			var three [3]string
			for i := range three {
				three[i] = e.r("ld.shared.b32", "[%s+%d]", s, 4*i)
			}
			d := e.r("cvt.f32.f16", "%s", e.Make("rs", "ld.shared.b16", "[%s+208]", start))
			for q := range 4 {
				if q == 2 && e.elem == ir.F16 {
					d = e.times(d, sixteenth)
				}
				w := e.r("prmt.b32", "%s, %s, %s", three[q/2], three[q/2+1], shift)
				v := e.r("prmt.b32", "%s, 0, %s", w, e.r("add.s32", "%s, %d", sign, q%2*0x2222))
				scale[r][q] = e.times(d, e.r("cvt.rn.f32.s32", "%s", v))
			}
		}
		c := e.chains(4)
		for n := range 4 {
			var codes [4][2][2]string
			for r := range 2 {
				for odd := range 2 {
					for q := range 4 {
						codes[q][odd][r] = e.sixBits(words[r][q%2][n], words[r][2][n], odd, q)
					}
				}
			}
			for q := range 4 {
				e.add(&c[q], n+q/2*4, codes[q][0], codes[q][1])
			}
		}
		for r := range 2 {
			for q := range 4 {
				e.plusProduct(r, scale[r][q], c[q].sum[2*r+q%2])
			}
		}
	})
}

// sixBits makes codes of a quarter of the bytes with their low bits and those with the high ones. In f16 those of quarters 2 and 3 are taken sixteenfold.
func (e *vectorEmitter) sixBits(low, high string, odd, quarter int) string {
	// Bits 0 and 1, 2 and 3, … of the byte come to where bits 4 and 5 are.
	shift := 8*odd + 2*quarter - 4
	if e.elem == ir.F16 && quarter >= 2 {
		shift -= 4
	}
	top := high
	if shift < 0 {
		top = e.r("shl.b32", "%s, %d", high, -shift)
	} else {
		top = e.right(high, shift)
	}
	if e.elem == ir.F16 && quarter >= 2 {
		v := e.fraction(e.right(low, 8*odd), 0x00F000F0, e.r("mov.b32", "%d", 0x64006400))
		return e.less(e.fraction(top, 0x03000300, v), 0x66006600) // 1024 + 16·32
	}
	magic, less := uint32(0x64006400), uint32(0x64206420)
	if e.elem == ir.BF16 {
		magic, less = 0x43004300, 0x43204320
	}
	v := e.fraction(e.right(low, 8*odd+quarter/2*4), 0x000F000F, e.r("mov.b32", "%d", magic))
	return e.less(e.fraction(top, 0x00300030, v), less)
}

// putQuarter stores a piece of a quarter of half a block of q6_K, of which each of two lanes has 16 elements, four at a time in the order in which it
// reads words.
func (e *vectorEmitter) putQuarter(number string, order []string) {
	part, piece := e.r("shr.u32", "%s, 2", number), e.r("and.b32", "%s, 3", number)
	half := e.r("and.b32", "%s, 1", e.r("shr.u32", "%s, 2", part))
	quarter, side := e.r("and.b32", "%s, 3", part), e.r("shr.u32", "%s, 1", piece)
	// The lane of the right factor is 2·m + quarter%2, and quarters 2 and 3 lie behind quarters 0 and 1.
	to := e.r("mad.lo.s32", "%s, %d, %s", e.r("shr.u32", "%s, 3", part), 2*chunk, e.base)
	to = e.r("mad.lo.s32", "%s, 256, %s", half, to)
	to = e.r("mad.lo.s32", "%s, 64, %s", e.r("and.b32", "%s, 1", quarter), to)
	to = e.r("mad.lo.s32", "%s, 32, %s", e.r("shr.u32", "%s, 1", quarter), to)
	to = e.r("mad.lo.s32", "%s, 128, %s", side, to)
	m := e.r("mad.lo.s32", "%s, 2, %s", half, side)
	first := e.r("mad.lo.s32", "%s, 2, 0", e.r("and.b32", "%s, 1", piece)) // of its two words
	for t := range 2 {
		// Word n of the lane is its (n − m)th.
		place := e.r("and.b32", "%s, 3", e.r("sub.s32", "%s, %s", e.r("add.s32", "%s, %d", first, t), m))
		e.Line("st.shared.v2.b32 \t[%s], {%s, %s}", e.r("mad.lo.s32", "%s, 8, %s", place, to), order[2*t], order[2*t+1])
	}
}

// q80: a lane has blocks 2·m and 2·m + 1, 68 bytes.
func (e *vectorEmitter) q80() multiplication {
	rows := e.r("mad.lo.s32", "%s, 68, %s", e.member, e.rowAt(e.quad))
	return e.multiplied(func() {
		at := e.r("add.s32", "%s, %s", e.useSlot, rows)
		words, scale := e.twoBlocks(at, 8)
		c := e.chains(4)
		for n := range 8 {
			for g := range 2 {
				var codes [2][2]string
				for r := range 2 {
					for odd := range 2 {
						codes[odd][r] = e.signed(e.right(words[r][g][n], 8*odd))
					}
				}
				e.add(&c[2*g+n/4], n, codes[0], codes[1])
			}
		}
		for r := range 2 {
			for g := range 2 {
				e.plusProduct(r, scale[r][g], e.r("add.rn.f32", "%s, %s", c[2*g].sum[2*r+g], c[2*g+1].sum[2*r+g]))
			}
		}
	})
}

// signed makes numbers of the even bytes of a word, with their sign.
func (e *vectorEmitter) signed(word string) string {
	if e.elem == ir.F16 { // 1024 + 128 + the number: its sign bit is the other way round
		v := e.r("lop3.b32", "%s, %d, %d, 0x6A", word, 0x00FF00FF, 0x64806480) // 0x6A: (a & b) ^ c
		return e.less(v, 0x64806480)
	}
	// 128 + the lower bits, less 128 or, which is the last bit of the exponent more, 256.
	magic := e.r("mov.b32", "%d", 0x43004300)
	return e.minus(e.fraction(word, 0x007F007F, magic), e.fraction(word, 0x00800080, magic))
}

// twoBlocks loads two blocks side by side of each of the lane's rows: n words of codes, and a scale, of a row and of a block. They begin at a multiple of 4
// bytes and no more, and a scale stands before the codes of each, so that the first block's lie between words.
func (e *vectorEmitter) twoBlocks(from string, n int) (words [2][2][]string, scale [2][2]string) {
	for r := range 2 {
		var w []string
		for i := range 2*n + 1 {
			w = append(w, e.r("ld.shared.b32", "[%s+%d]", from, r*e.blocks.eighth()+4*i))
		}
		scale[r][0], _ = e.halvesOf(w[0])
		_, scale[r][1] = e.halvesOf(w[n])
		for i := range n {
			words[r][0] = append(words[r][0], e.r("prmt.b32", "%s, %s, 0x5432", w[i], w[i+1]))
		}
		words[r][1] = w[n+1:]
	}
	return words, scale
}

// q40: a lane has blocks 2·m and 2·m + 1, 36 bytes. In f16 the codes of upper halves of bytes are taken sixteenfold, and have sums of
// their own.
func (e *vectorEmitter) q40() multiplication {
	rows := e.r("mad.lo.s32", "%s, 36, %s", e.member, e.rowAt(e.quad))
	return e.multiplied(func() {
		at := e.r("add.s32", "%s, %s", e.useSlot, rows)
		words, scale := e.twoBlocks(at, 4)
		c := e.chains(4)
		for n := range 4 {
			for g := range 2 {
				var codes [2][2][2]string // of lower and upper halves, of even and odd bytes, of a row
				for r := range 2 {
					for odd := range 2 {
						w := e.right(words[r][g][n], 8*odd)
						if e.elem == ir.F16 {
							codes[0][odd][r] = e.code(w, 0x000F000F, 0x64006400, 0x64086408)
							codes[1][odd][r] = e.code(w, 0x00F000F0, 0x64006400, 0x64806480)
						} else {
							codes[0][odd][r] = e.code(w, 0x000F000F, 0x43004300, 0x43084308)
							codes[1][odd][r] = e.code(e.right(words[r][g][n], 8*odd+4), 0x000F000F, 0x43004300, 0x43084308)
						}
					}
				}
				for upper := range 2 {
					e.add(&c[2*g+upper], n+4*upper, codes[upper][0], codes[upper][1])
				}
			}
		}
		for r := range 2 {
			for g := range 2 {
				low, high := c[2*g].sum[2*r+g], c[2*g+1].sum[2*r+g]
				if e.elem == ir.F16 {
					high = e.times(high, sixteenth)
				}
				e.plusProduct(r, scale[r][g], e.r("add.rn.f32", "%s, %s", low, high))
			}
		}
	})
}
