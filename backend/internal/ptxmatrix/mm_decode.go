package ptxmatrix

// blockFormat is a format of GGML's blocks (msl/ggml.metal) as [blockProduct] reads it. Codes become f32: as the last bits of numbers of f16, below the
// smallest normal one, which are 2^−24 times the code, and widened. So an fma with 2^24 times the scale has one rounding, as the term does: products of
// scales and codes of q4_K, and scales, are exact.
//
// A fragment's elements of a row in a step of 16 are 2·member and the next, and those 8 behind: two halves of words, which lie at even places in all
// formats. Together they are a word, the four codes in its bytes, of one step or more.
type blockFormat struct {
	bytes int   // of 256 weights of a row
	pitch int   // bytes from row to row in shared memory: what eight rows read lies in different banks
	even  bool  // chunks of a row begin at even places only; else at multiples of 16
	whole bool  // weights are whole numbers, scaled, and what is the same in a group ([wholeEmitter])
	order []int // of the steps of a half of a chunk; nil: as they lie
	// decode begins a half of a chunk. It returns what makes the weights of one of the thread's rows in a step, whose steps come in order, and for each both rows.
	decode func(e *blockEmitter, half int) func(step, row int) [4]string
	// pairs does the same for f16, of formats without biases; nil: with f32.
	pairs func(e *blockEmitter, half int) func(step, row int) pairs
	group int // of weights that share a scale
	// scale has that of a group of the 256 weights that begin at an address, and its bias, "" if formats have none, and code is the code of one of them.
	scale func(e *blockEmitter, at, group string) (scale, bias string)
	code  func(e *blockEmitter, at, j string) string
}

var blockFormats = map[string]*blockFormat{
	"q4_K": {bytes: 144, pitch: 144, whole: true, decode: (*blockEmitter).q4K, group: 32, scale: (*blockEmitter).scaleQ4K, code: (*blockEmitter).codeQ4K},
	"q6_K": {bytes: 210, pitch: 240, even: true, order: []int{0, 2, 4, 6, 1, 3, 5, 7}, decode: (*blockEmitter).q6K, pairs: (*blockEmitter).pairsQ6K, group: 16, scale: (*blockEmitter).scaleQ6K, code: (*blockEmitter).codeQ6K},
	"q8_0": {bytes: 272, pitch: 272, decode: (*blockEmitter).q80, pairs: (*blockEmitter).pairsQ80, group: 32, scale: (*blockEmitter).scaleQ80, code: (*blockEmitter).codeQ80},
	"q4_0": {bytes: 144, pitch: 144, decode: (*blockEmitter).q40, pairs: (*blockEmitter).pairsQ40, group: 32, scale: (*blockEmitter).scaleQ40, code: (*blockEmitter).codeQ40},
}

// pieces are those of 16 bytes that hold a row's part of a chunk.
func (b *blockFormat) pieces() int {
	if b.even { // whose first byte may be the 15th of a piece
		return (b.bytes + 14 + 15) / 16
	}
	return b.bytes / 16
}

// heads are where the chunk that is used begins, of each row, and bytes the same with what is the thread's of each 8 bytes.
func (e *blockEmitter) heads() (heads, bytes [2]string) {
	for r := range heads {
		heads[r] = e.r("add.s32", "%s, %s", e.codes[r], e.use)
		if e.format.even {
			heads[r] = e.r("add.s32", "%s, %s", heads[r], e.shifts[r])
		}
		bytes[r] = e.r("add.s32", "%s, %s", heads[r], e.pair)
	}
	return heads, bytes
}

// word has the thread's four bytes of the 16 at a place.
func (e *blockEmitter) word(from string, offset int) string {
	low := e.Make("rs", "ld.shared.b16", "[%s+%d]", from, offset)
	return e.r("mov.b32", "{%s, %s}", low, e.Make("rs", "ld.shared.b16", "[%s+%d]", from, offset+8))
}

// shifted is a word shifted to the right, or to the left if bits are less than none.
func (e *blockEmitter) shifted(word string, bits int) string {
	switch {
	case bits > 0:
		return e.r("shr.u32", "%s, %d", word, bits)
	case bits < 0:
		return e.r("shl.b32", "%s, %d", word, -bits)
	}
	return word
}

// scaled are scale·code + bias of four codes, which have 2^24 times the scale. even has the first and the third, odd the second and the fourth.
func (e *blockEmitter) scaled(even, odd, scale, bias string) (out [4]string) {
	for i, v := range []string{even, odd} {
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, v)
		for j, h := range []string{low, high} {
			out[i+2*j] = e.r("fma.rn.f32", "%s, %s, %s", e.r("cvt.f32.f16", "%s", h), scale, bias)
		}
	}
	return out
}

// nibbles are the codes of 4 bits that begin with a bit of each byte.
func (e *blockEmitter) nibbles(word string, bit int) (even, odd string) {
	return e.r("and.b32", "%s, 0x000F000F", e.shifted(word, bit)), e.r("and.b32", "%s, 0x000F000F", e.shifted(word, bit+8))
}

const (
	power24 = "0f4B800000" // 2^24
	power23 = 0x4B000000   // 2^23
)

// half16 is a number of f16 at a place in shared memory, times 2^24.
func (e *blockEmitter) scaleAt(from string, offset int) string {
	return e.r("mul.rn.f32", "%s, %s", e.r("cvt.f32.f16", "%s", e.Make("rs", "ld.shared.b16", "[%s+%d]", from, offset)), power24)
}

// multiplied is a product of two f32.
func (e *blockEmitter) multiplied(a, b string) string { return e.r("mul.rn.f32", "%s, %s", a, b) }

// byteOf is a byte of a word as a number.
func (e *blockEmitter) byteOf(word string, i int) string {
	return e.r("sub.rn.f32", "%s, 0f4B000000", e.r("prmt.b32", "%s, %d, %d", word, power23, 0x7440+i))
}

// q4K: of each 64 elements the first 32 have the low halves of 32 bytes, the others the high ones. A step has half of these bytes.
func (e *blockEmitter) q4K(half int) func(step, row int) [4]string {
	heads, bytes := e.heads()
	var d, least, scales, minima [2]string // of a row; four groups' in a word
	for r := range heads {
		h := e.four(heads[r], 0)
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, h[0])
		d[r] = e.multiplied(e.r("cvt.f32.f16", "%s", low), power24)
		least[r] = e.r("neg.f32", "%s", e.r("cvt.f32.f16", "%s", high))
		if half == 0 {
			scales[r], minima[r] = e.r("and.b32", "%s, 0x3F3F3F3F", h[1]), e.r("and.b32", "%s, 0x3F3F3F3F", h[2])
			continue
		}
		for i, to := range []*string{&scales[r], &minima[r]} {
			low := e.r("and.b32", "%s, 0x0F0F0F0F", e.shifted(h[3], 4*i))
			*to = e.r("lop3.b32", "%s, 0x30303030, %s, 0xEA", e.shifted(h[1+i], 2), low) // (a & b) | c
		}
	}
	var words [2][2]string
	var scale, bias [2]string
	return func(step, r int) [4]string {
		if step%4 == 0 {
			for i := range 2 {
				words[r][i] = e.word(bytes[r], 16+64*half+step/4*32+16*i)
			}
		}
		if step%2 == 0 {
			scale[r], bias[r] = e.multiplied(d[r], e.byteOf(scales[r], step/2)), e.multiplied(least[r], e.byteOf(minima[r], step/2))
		}
		even, odd := e.nibbles(words[r][step%2], step/2%2*4)
		return e.scaled(even, odd, scale[r], bias[r])
	}
}

// q6K: of each 128 elements, the four quarters have their two high bits in 32 bytes, and two of them their low bits. Steps that share bytes follow one
// another.
func (e *blockEmitter) q6K(half int) func(step, row int) [4]string {
	heads, bytes := e.heads()
	var d [2]string
	for r := range heads {
		d[r] = e.scaleAt(heads[r], 208)
	}
	var low [2][2]string
	var high [2]string
	return func(step, r int) [4]string {
		quarter, side := step/2, step%2
		if quarter == 0 {
			for i := range 2 {
				low[r][i] = e.word(bytes[r], 64*half+32*i+16*side)
			}
			high[r] = e.word(bytes[r], 128+32*half+16*side)
		}
		s := e.New("r")
		e.Line("ld.shared.s8 \t%s, [%s+%d]", s, heads[r], 192+8*half+step)
		scale := e.multiplied(d[r], e.r("cvt.rn.f32.s32", "%s", s))
		bias := e.multiplied(scale, "0fB6000000") // −32 · 2^−24
		var codes [2]string
		codes[0], codes[1] = e.nibbles(low[r][quarter%2], quarter/2*4)
		for i := range codes { // bits 0 and 1, 2 and 3, … of the byte come to where bits 4 and 5 are
			codes[i] = e.r("lop3.b32", "%s, 0x00300030, %s, 0xEA", e.shifted(high[r], 2*quarter-4+8*i), codes[i])
		}
		return e.scaled(codes[0], codes[1], scale, bias)
	}
}

// q80: a block has two steps.
func (e *blockEmitter) q80(half int) func(step, row int) [4]string {
	heads, bytes := e.heads()
	var scale, bias [2]string
	return func(step, r int) [4]string {
		block := 34 * (4*half + step/2)
		if step%2 == 0 {
			scale[r] = e.scaleAt(heads[r], block)
			bias[r] = e.multiplied(scale[r], "0fB7000000") // −128 · 2^−24
		}
		// With its sign bit the other way round a byte is the code and 128.
		w := e.r("xor.b32", "%s, 0x80808080", e.word(bytes[r], block+2+step%2*16))
		return e.scaled(e.r("and.b32", "%s, 0x00FF00FF", w), e.r("and.b32", "%s, 0x00FF00FF", e.shifted(w, 8)), scale[r], bias[r])
	}
}

// q40: a block has two steps, of the low halves of its bytes and of the high ones.
func (e *blockEmitter) q40(half int) func(step, row int) [4]string {
	heads, bytes := e.heads()
	var scale, bias, words [2]string
	return func(step, r int) [4]string {
		block := 18 * (4*half + step/2)
		if step%2 == 0 {
			scale[r] = e.scaleAt(heads[r], block)
			bias[r] = e.multiplied(scale[r], "0fB5000000") // −8 · 2^−24
			words[r] = e.word(bytes[r], block+2)
		}
		even, odd := e.nibbles(words[r], step%2*4)
		return e.scaled(even, odd, scale[r], bias[r])
	}
}

// pairs are the codes of two columns each, and twice the number of f16 that multiplies them, and what it leaves out of their scale; "": nothing.
type pairs struct {
	codes       [2]string
	scale, rest string
}

// two has two bytes that lie one behind the other in the low bytes of its halves.
func (e *blockEmitter) two(from string, offset int) string {
	v := e.New("r")
	e.Line("ld.shared.u16 \t%s, [%s+%d]", v, from, offset)
	return e.r("prmt.b32", "%s, 0, 0x4140", v)
}

// twice is a number of f16 at a place in shared memory, twice.
func (e *blockEmitter) twice(from string, offset int) string {
	h := e.Make("rs", "ld.shared.b16", "[%s+%d]", from, offset)
	return e.r("mov.b32", "{%s, %s}", h, h)
}

// numbers are codes of 10 bits at most, less a number: codes become the last bits of 1024 and more.
func (e *blockEmitter) numbers(code string, less int) string {
	return e.r("sub.rn.f16x2", "%s, %s", code, e.r("mov.b32", "%d", (0x6400+less)*0x10001))
}

// lowest are the codes of 4 bits in the low bytes of halves, as the last bits of 1024.
func (e *blockEmitter) lowest(v string) string {
	return e.r("lop3.b32", "%s, %d, %d, 0xEA", v, 0x000F000F, 0x64006400) // (a & b) | c
}

// pairsQ6K: the scale of 16 weights is the product of two numbers, of 11 and 8 bits: f16 holds it in two parts.
func (e *blockEmitter) pairsQ6K(half int) func(step, row int) pairs {
	heads, bytes := e.heads()
	var d [2]string
	for r := range heads {
		d[r] = e.r("cvt.f32.f16", "%s", e.Make("rs", "ld.shared.b16", "[%s+208]", heads[r]))
	}
	var low [2][2][2]string // of a row, of quarters, of columns
	var high [2][2]string
	return func(step, r int) (p pairs) {
		quarter, side := step/2, step%2
		if quarter == 0 {
			for j := range 2 {
				for i := range 2 {
					low[r][i][j] = e.two(bytes[r], 64*half+32*i+16*side+8*j)
				}
				high[r][j] = e.two(bytes[r], 128+32*half+16*side+8*j)
			}
		}
		s := e.New("r")
		e.Line("ld.shared.s8 \t%s, [%s+%d]", s, heads[r], 192+8*half+step)
		scale := e.multiplied(d[r], e.r("cvt.rn.f32.s32", "%s", s))
		p.scale = e.r("cvt.rn.f16x2.f32", "%s, %s", scale, scale)
		h, other := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", h, other, p.scale)
		rest := e.r("sub.rn.f32", "%s, %s", scale, e.r("cvt.f32.f16", "%s", h))
		p.rest = e.r("cvt.rn.f16x2.f32", "%s, %s", rest, rest)
		for j := range p.codes {
			v := e.lowest(e.shifted(low[r][quarter%2][j], quarter/2*4))
			v = e.r("lop3.b32", "%s, 0x00300030, %s, 0xEA", e.shifted(high[r][j], 2*quarter-4), v)
			p.codes[j] = e.numbers(v, 32)
		}
		return p
	}
}

func (e *blockEmitter) pairsQ80(half int) func(step, row int) pairs {
	heads, bytes := e.heads()
	var scale [2]string
	return func(step, r int) (p pairs) {
		block := 34 * (4*half + step/2)
		if step%2 == 0 {
			scale[r] = e.twice(heads[r], block)
		}
		p.scale = scale[r]
		for j := range p.codes { // with its sign bit the other way round a byte is the code and 128
			p.codes[j] = e.numbers(e.r("xor.b32", "%s, %d", e.two(bytes[r], block+2+step%2*16+8*j), 0x64806480), 128)
		}
		return p
	}
}

func (e *blockEmitter) pairsQ40(half int) func(step, row int) pairs {
	heads, bytes := e.heads()
	var scale [2]string
	var words [2][2]string
	return func(step, r int) (p pairs) {
		block := 18 * (4*half + step/2)
		if step%2 == 0 {
			scale[r] = e.twice(heads[r], block)
		}
		p.scale = scale[r]
		for j := range p.codes {
			if step%2 == 0 {
				words[r][j] = e.two(bytes[r], block+2+8*j)
			}
			p.codes[j] = e.numbers(e.lowest(e.shifted(words[r][j], step%2*4)), 8)
		}
		return p
	}
}
