package main

// A blockFormat is one of GGML's: a row is blocks, each with its scales among its codes. Those of a K-quant, which are
// packed, come as float32 of their own, a row's side by side.
type blockFormat struct {
	weights, bytes int // of a block
	group          int // the weights that share a scale: 16 or 32
	biased         bool
	heads          int // the f16s that a block begins with, a scale and a bias; 0: they come apart
	less           int // what is taken from a code
	bits           int // 4: two codes lie in a byte; 6, 8: codes are signed
	first          int // where the first codes lie in a block
	// A block of a K-quant has equal parts, each of some groups whose codes lie together, so many bytes of them.
	parts, partBytes int
	apart            bool // the two codes of a byte belong to two groups, of which the other follows
	// With 6 bits the upper two of each lie elsewhere in a block, and so many bytes of them belong to a part.
	highFirst, highBytes int
}

var (
	q40 = blockFormat{weights: 32, bytes: 18, group: 32, heads: 1, less: 8, bits: 4, first: 2, parts: 1}
	q41 = blockFormat{weights: 32, bytes: 20, group: 32, biased: true, heads: 2, bits: 4, first: 4, parts: 1}
	q80 = blockFormat{weights: 32, bytes: 34, group: 32, heads: 1, bits: 8, first: 2, parts: 1}
	q4k = blockFormat{weights: 256, bytes: 144, group: 32, biased: true, bits: 4, first: 16, parts: 4, partBytes: 32, apart: true}
	q6k = blockFormat{weights: 256, bytes: 210, group: 16, bits: 6, parts: 2, partBytes: 64, highFirst: 128, highBytes: 32}

	// q4kPart is a part of q4_K alone.
	q4kPart = blockFormat{weights: 64, bytes: 32, group: 32, biased: true, bits: 4, parts: 1, apart: true}
)

// groups is the number of groups of a part.
func (f blockFormat) groups() int { return f.weights / f.group / f.parts }

// blockRows are the streams of rows of blocks: high is of the upper bits of codes, nil if there are none of their own.
type blockRows struct {
	blockFormat
	machine
	low, high *stream
}

// next returns the rows of blocks from an address on.
func (f blockFormat) next(m machine, first reg, by strides, rows int) blockRows {
	b := blockRows{f, m, m.next(first, by, rows), nil}
	if f.highFirst > 0 {
		b.high = m.beside(b.low, f.highFirst)
	}
	return b
}

// eachPart goes through the parts of a block, and then to the next one.
func (b blockRows) eachPart(body func()) {
	part := func() {
		body()
		if b.parts > 1 {
			b.low.skip(b.partBytes)
		}
		if b.high != nil {
			b.high.skip(b.highBytes)
		}
	}
	b.pass(func() {
		if b.parts == 1 {
			part()
		} else {
			b.scope(func() { b.repeat(b.number(b.parts), 1, part) })
		}
		b.low.skip(b.bytes - b.parts*b.partBytes)
		if b.high != nil {
			b.high.skip(b.bytes - b.parts*b.highBytes)
		}
	})
}

// codesOf returns what decodes the codes of a group of a part of a row, 16 at a time.
func (b blockRows) codesOf(row, group int) func(of16 int) []vec {
	at := func(of16 int) int { return b.first + group*b.group + 16*of16 }
	switch {
	case b.bits == 6:
		return func(int) []vec { return b.sixBits(b.low, b.high, row, group) }
	case b.bits == 8:
		return func(of16 int) []vec { return b.signedCodes(b.low, row, at(of16)) }
	case b.apart:
		return func(of16 int) []vec {
			raw := b.nibbles(b.low, row, b.first+16*of16)
			vs := b.nibble(raw, group == 1)
			b.freeVecs(raw...)
			return vs
		}
	}
	raw := b.nibbles(b.low, row, b.first)
	return func(of16 int) []vec { return b.nibble(raw, of16 == 1) }
}

// wholesOf returns the low halves of a group's bytes, and then whole bytes.
func (b blockRows) wholesOf(row, _ int) func(of16 int) []vec {
	raw := b.nibbles(b.low, row, b.first)
	return func(of16 int) []vec {
		if of16 == 0 {
			return b.nibble(raw, false)
		}
		return b.wholes(raw)
	}
}

// matVecBlocks is the product with rows of blocks. A row has the same sum, to the bit, wherever it stands among the n.
func matVecBlocks(f blockFormat) func(m machine) {
	return func(m machine) {
		y, w, n, bytes := m.parked("y"), m.arg("w"), m.arg("n"), m.arg("k")
		m.scale(bytes, f.bytes, log2(f.weights))
		m.blockConstants(f.bits, f.less)
		p := &product{machine: m, w: w, bytes: m.strides(bytes, 4)}
		if f.heads == 0 {
			p.scales = m.arg("scales")
			if f.biased {
				p.biases = m.arg("biases")
			}
			groups := m.arg("k")
			m.scale(groups, 4, log2(f.group))
			p.groups = m.strides(groups, 4)
		}
		for _, rows := range []int{4, 1} {
			m.loop(n, rows, func() {
				sums := m.zeros(rows)
				var biases []vec
				switch {
				case f.heads == 0:
					m.scope(func() { p.blocksApart(f, sums) })
					if f.biased {
						m.scope(func() { p.addBiases(sums) })
					}
				default:
					if f.biased {
						biases = m.zeros(m.headVectors())
					}
					m.scope(func() { p.blocks(f, sums, biases) })
				}
				m.sums(sums)
				if biases != nil {
					m.addOdd(sums[0], biases)
				}
				m.storeLanes(y, sums[0], rows)
			})
		}
		m.end()
	}
}

func log2(n int) (bits int) {
	for ; n > 1; n /= 2 {
		bits++
	}
	return bits
}

// blocks adds the products with the next rows, a sum for each, of blocks of one group that begin with their scales. The
// products of heads with xsum go to biases: those of scales too, which are no use.
func (p *product) blocks(f blockFormat, sums, biases []vec) {
	x, ahead, w := p.rowsOfBlocks(f, len(sums))
	left := p.arg("k")
	var xsum *stream
	if f.biased {
		xsum = p.machine.stream("xsum")
	}
	p.align()
	p.loop(left, f.weights, func() {
		p.fetchNext(ahead, f, sums)
		v := append(p.next16(x, f.bits == 4), p.next16(x, f.bits == 4)...)
		scales, heads := p.heads(w.low, 0, f.heads)
		if f.biased {
			p.scope(func() { p.addTimes(biases, heads, p.scalars(xsum)[0]) })
		}
		p.freeHeads(heads)
		codes := w.codesOf
		if f.bits == 4 && f.less == 0 && p.forWholes(v) {
			codes = w.wholesOf
		}
		for row, sum := range sums {
			p.scope(func() { p.fma(sum, p.groupSum(v, codes(row, 0)), scales[f.heads*row]) })
		}
		w.low.skip(f.bytes)
	})
}

// rowsOfBlocks are x, where to fetch ahead, and the next rows.
func (p *product) rowsOfBlocks(f blockFormat, rows int) (x *stream, ahead reg, w blockRows) {
	x = p.machine.stream("x")
	if rows > 1 {
		ahead = p.ahead(p.w)
	}
	return x, ahead, f.next(p.machine, p.w, p.bytes, rows)
}

func (p *product) fetchNext(ahead reg, f blockFormat, sums []vec) {
	if len(sums) > 1 {
		p.fetch(ahead, len(sums)*f.bytes)
	}
}

// blocksApart is blocks where scales come apart; biases are not added.
func (p *product) blocksApart(f blockFormat, sums []vec) {
	x, ahead, w := p.rowsOfBlocks(f, len(sums))
	p.walk(p.scales, p.groups, len(sums), f.parts*f.groups(), func(s *stream, _ reg) {
		p.fetchNext(ahead, f, sums)
		w.eachPart(func() {
			for g := range f.groups() {
				p.scope(func() {
					scales := p.scalars(s)
					var v []vec
					for range f.group / 16 {
						v = append(v, p.next16(x, f.bits == 4)...)
					}
					for row, sum := range sums {
						p.scope(func() { p.fma(sum, p.groupSum(v, w.codesOf(row, g)), scales[row]) })
					}
				})
			}
		})
	})
}

// groupSum is the sum of the products of a group: of four vectors on two sums, of every other one, that are added.
func (p *product) groupSum(x []vec, codes func(of16 int) []vec) vec {
	var sums []vec
	most := max(1, min(2, len(x)/2))
	for i := 0; i < len(x); {
		for _, v := range codes(i * p.width() / 16) {
			if len(sums) < most {
				p.mul(v, x[i], in(v))
				sums = append(sums, v)
			} else {
				p.fma(sums[i%most], x[i], in(v))
				p.freeVecs(v)
			}
			i++
		}
	}
	tree(p.add, sums)
	return sums[0]
}

// halvesAt has the values of f16s that lie so many bytes apart.
func halvesAt(m machine) {
	dst, src, n := m.stream("dst"), m.arg("src"), m.arg("n")
	by := m.strides(m.arg("stride"), m.width())
	m.loop(n, m.width(), func() { m.store(dst, 0, m.stridedHalves(src, by)) })
	m.singles(n, func() { m.store(dst, 0, m.stridedHalves(src, by)) })
	m.end()
}

// scalesQ6K makes the scales of n blocks of q6_K.
func scalesQ6K(m machine) {
	dst, w, n := m.stream("dst"), m.stream("w"), m.arg("n")
	m.loop(n, 1, func() {
		d, _ := m.heads(w, 208, 1)
		for _, v := range m.signedCodes(w, 0, 192) {
			m.times(v, d[0])
			m.store(dst, 0, v)
		}
		w.skip(q6k.bytes)
	})
	m.end()
}

// scalesK makes the scales and biases of n blocks of q4_K or q5_K, so many bytes apart.
func scalesK(m machine) {
	scales, biases, n := m.stream("scales"), m.stream("biases"), m.arg("n")
	first, by := m.arg("w"), m.strides(m.arg("stride"), 1)
	c, sign := m.constants(0, packedScaleMasks...), m.constants(0, 1<<31)[0]
	m.loop(n, 1, func() {
		w := m.next(first, by, 1)
		d, _ := m.heads(w, 0, 2)
		vs := m.packedScales(w, c)
		for i, v := range vs {
			m.times(v, d[2*i/len(vs)])
			if i < len(vs)/2 {
				m.store(scales, 0, v)
				continue
			}
			m.neg(v, sign)
			m.store(biases, 0, v)
		}
	})
	m.end()
}

// packedScaleMasks are four bytes each of what takes scales of 6 bits apart.
var packedScaleMasks = []uint32{0x3f3f3f3f, 0x30303030, 0x0f0f0f0f}

// rowBlocks decodes n blocks without biases, whose codes lie in order.
func rowBlocks(f blockFormat) func(m machine) {
	return func(m machine) {
		dst, scales := m.stream("dst"), m.arg("scales")
		by := m.arg("n")
		m.scale(by, 4*f.parts*f.groups(), 0)
		m.blockConstants(f.bits, f.less)
		first, bytes := m.arg("w"), m.arg("n")
		m.scale(bytes, f.bytes, 0)
		w := f.next(m, first, m.strides(bytes, 1), 1)
		m.walk(scales, m.strides(by, 1), 1, f.parts*f.groups(), func(s *stream, _ reg) {
			w.eachPart(func() {
				for g := range f.groups() {
					m.scope(func() {
						scale := m.scalars(s)[0]
						for _, v := range w.codesOf(0, g)(0) {
							m.times(v, scale)
							m.store(dst, 0, v)
						}
					})
				}
			})
		})
		m.end()
	}
}

// groupsQ8 decodes n groups of 32 signed codes, whose scales lie elsewhere.
func groupsQ8(m machine) {
	dst, w, scales, n := m.stream("dst"), m.stream("w"), m.stream("scales"), m.arg("n")
	m.loop(n, 1, func() {
		scale := m.scalars(scales)[0]
		for of16 := range 2 {
			for _, v := range m.signedCodes(w, 0, 16*of16) {
				m.times(v, scale)
				m.store(dst, 0, v)
			}
		}
		w.skip(32)
	})
	m.end()
}

// packBlocks decodes columns of rows of blocks of one or two groups as packQ does, with 8 bits less 128.
func packBlocks(f blockFormat) func(m machine) {
	return func(m machine) {
		dst, scales, biases := m.stream("dst"), m.stream("scales"), m.stream("biases")
		cols := m.arg("cols")
		for _, s := range []*stream{dst, scales, biases} {
			m.panels(s, panelBytes(m))
		}
		w := m.rows(m.arg("w"), m.strides(m.arg("stride"), min(8, m.width())), m.width())
		codes := m.codes(f.bits)
		var signs operand
		if f.bits == 8 {
			signs = m.constants(0, 0x80808080)[0]
		}
		// A group's scales, and columns of code i of each of these words.
		put := func(groups int, columns func(group int, put func(word vec, i int))) {
			for g := range groups {
				m.scope(func() {
					scale, bias := m.load(scales, 0, 1)[0], m.load(biases, 0, 1)[0]
					columns(g, func(word vec, i int) {
						m.scope(func() { m.store(dst, 0, m.mulAdd(codes(word, i)[0], scale, bias)) })
					})
				})
			}
		}
		m.loop(cols, f.weights, func() {
			switch {
			case f.apart:
				words := append(m.transposeAt(w, f.first), m.transposeAt(w, f.first+16)...)
				put(2, func(group int, put func(vec, int)) {
					for c := range 32 {
						put(words[c/4], c%4*2+group)
					}
				})
			case f.bits == 4:
				words := m.transposeAt(w, f.first)
				put(1, func(_ int, put func(vec, int)) {
					for c := range 32 {
						put(words[c%16/4], c%4*2+c/16)
					}
				})
			default:
				put(1, func(_ int, put func(vec, int)) {
					for of16 := range 2 {
						m.scope(func() {
							for _, word := range m.transposeAt(w, f.first+16*of16) {
								m.xor(word, signs)
								for i := range 4 {
									put(word, i)
								}
							}
						})
					}
				})
			}
			w.skip(f.bytes)
		})
		m.end()
	}
}
