package ptxmatrix

import (
	"math/bits"
	"strconv"
	"strings"
)

// A product with up to eight rows of x is one with a vector (vector.go) all of whose columns of mma.sync are in use: weights come, and tiles are shared, as there. What differs is
// that weights are rounded as the term of a product of matrices has it, so that nothing is left to do with sums of a group; and that a lane has the elements of x of its row and of its own
// groups. Since the inner index of both factors may have any order that is the same, codes stay where they lie.

const (
	// mostFew is how many rows of x mma.sync takes.
	mostFew = 8
	// fewSlots is how many chunks of a warp have room. Codes and scales of one are in registers while it is multiplied, so that
	// both are on their way then: as many as those of a vector.
	fewSlots = 2
	// fewPieces is how many pieces of x of a thread are on their way at once, if a thread has 80 registers; with 128 twice as many are.
	fewPieces = 8
)

// few is the code of the product for so many rows, a power of two. Where there is no room for all of x in shared memory, it is streamed: its chunks come with those of
// weights, of two tiles at once, so that half as much comes in all.
func (p *product) few(rows int, streamed bool) *vector {
	form := p.form
	if form == tile {
		form = store
	}
	return &vector{source: p.source, form: form, pairs: p.pairs, sides: p.sides, elem: p.elem, group: p.group, gpu: p.gpu, most: rows, streamed: streamed && len(p.sides) == 1}
}

// fitFew is how a launch of few rows is best launched; nothing if other code is better.
func (p *product) fitFew(groups [3]uint64, given Given) Fit {
	if rows := p.fewOf(groups, given); rows > 0 {
		for _, streamed := range []bool{false, true} {
			if f := p.few(rows, streamed).Fit(groups, given); f.Fits() {
				return f
			}
		}
	}
	return Fit{}
}

// fewOf is for how many rows, of few, a launch is best; 0: for more, or there is no such code.
func (p *product) fewOf(groups [3]uint64, given Given) int {
	var f Fit
	ok := p.bits == 4
	if p.form == rope && ok {
		f.Projections, ok = p.projections(given)
	}
	rows := p.rows(groups, given, f)
	if !ok || rows == 0 || rows > mostFew {
		return 0
	}
	return max(2, 1<<bits.Len64(rows-1))
}

// stageRows brings x to shared memory, in the order in which lanes multiply it. Of a chunk lane m of four has elements 64·m to 64·m + 63 of its row, which are eight pieces: the
// pieces that lanes read at once lie side by side, those of one row behind those of another. A warp brings 32 pieces at a time, two side by side of a row, and stores them without conflicts.
func (e *vectorEmitter) stageRows() {
	f, rows := e.fit, e.most
	per := f.Teams * f.Warps / rows // chunks at a time
	warp := e.r("shr.u32", "%s, 5", e.thread)
	within, first := e.r("and.b32", "%s, %d", warp, rows-1), e.r("div.u32", "%s, %d", warp, rows)
	bit := func(v string, n int) string { return e.r("and.b32", "%s, 1", e.r("shr.u32", "%s, %d", v, n)) }
	plus := func(v string, by int, other string) string { return e.r("mad.lo.s32", "%s, %d, %s", v, by, other) }
	row, piece := bit(e.lane, 2), bit(e.lane, 3)
	switch rows {
	case 2:
		piece = plus(within, 4, plus(bit(e.lane, 4), 2, piece))
	case 4:
		row, piece = plus(bit(e.lane, 4), 2, row), plus(within, 2, piece)
	case 8:
		row, piece = plus(bit(within, 0), 4, plus(bit(e.lane, 4), 2, row)), plus(e.r("shr.u32", "%s, 1", within), 2, piece)
	}
	from := plus(first, 2*chunk, plus(e.member, chunk/2, e.r("shl.b32", "%s, 4", piece)))
	x := e.plus(e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(row, strconv.Itoa(2*f.Inner))), from)
	to := plus(first, 2*chunk*rows, plus(piece, 64*rows, plus(row, 64, plus(e.member, 16, e.base))))
	exists := e.Make("p", "setp.lt.s32", "%s, %s", row, e.args["M"])
	rounds := (f.Inner/chunk + per - 1) / per
	together := fewPieces
	if f.threads()*f.Resident <= 512 {
		together *= 2
	}
	if e.form == rope { // angles are made meanwhile
		together /= 2
	}
	for first0 := 0; first0 < rounds; first0 += together {
		var pieces [][]string
		for i := first0; i < min(rounds, first0+together); i++ {
			words := make([]string, 4)
			for j := range words {
				words[j] = e.r("mov.b32", "0")
			}
			pieces = append(pieces, words)
			there := exists
			if p := e.thereRow(first, i, per); p != "" {
				there = e.Make("p", "and.pred", "%s, %s", exists, p)
			}
			e.Line("@%s ld.global.v4.b32 \t{%s}, [%s+%d]", there, strings.Join(words, ", "), x, i*per*2*chunk)
		}
		if first0 == 0 && e.form == rope {
			e.anglesRows()
		}
		for i, words := range pieces {
			guard := ""
			if p := e.thereRow(first, first0+i, per); p != "" {
				guard = "@" + p + " "
			}
			e.Line("%sst.shared.v4.b32 \t[%s+%d], {%s}", guard, to, (first0+i)*per*2*chunk*rows, strings.Join(e.paired(words), ", "))
		}
	}
	e.Line("bar.sync \t0")
}

// thereRow is a predicate that says whether there is the ith chunk of those that a warp brings; empty if there always is.
func (e *vectorEmitter) thereRow(first string, i, per int) string {
	left := e.fit.Inner/chunk - i*per
	if left >= per {
		return ""
	}
	return e.Make("p", "setp.lt.u32", "%s, %d", first, left)
}

// rowsCodes multiplies affine codes, each of which becomes a weight by two roundings, or by one where that is the same (apart).
func (e *vectorEmitter) rowsCodes() (m multiplication) {
	e.lanes()
	row := e.r("mad.lo.s32", "%s, 64, %s", e.r("and.b32", "%s, %d", e.quad, e.most-1), e.r("mad.lo.s32", "%s, 16, %s", e.member, e.base))
	useX := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 2*chunk*e.most, row)
	if e.streamed { // of the slot
		places := e.r("or.b32", "%s, %s", e.member, e.r("shl.b32", "%s, 2", e.r("and.b32", "%s, 1", e.quad)))
		useX = e.r("mad.lo.s32", "%s, %d, %s", e.r("and.b32", "%s, %d", e.quad, e.most-1), 2*chunk, e.r("mad.lo.s32", "%s, 128, %s", e.member, e.r("shl.b32", "%s, 4", places)))
	}
	xAt, one := "", ""
	m.begin = func() {
		one, xAt = e.one(), e.r("mov.b32", "%s", useX)
	}
	type tile struct {
		words  [2][2][]string // of a group, of a row
		affine [2][2]string   // of a row: scales, biases
	}
	tiles := make([]tile, 1)
	if e.streamed {
		tiles = make([]tile, 2)
	}
	fetch := func() {
		at, kind := e.r("add.s32", "%s, %s", e.useSlot, e.scalesAt), "u16"
		if e.group == 32 {
			kind = "b32"
		}
		for h := range tiles {
			t := &tiles[h]
			for g := range t.words {
				at := e.r("add.s32", "%s, %s", e.useSlot, e.codesAt[g])
				t.words[g] = [2][]string{e.four(at, h*rowsChunk), e.four(at, h*rowsChunk+8*chunk/2)}
			}
			for i := range t.affine {
				for k := range t.affine[i] {
					t.affine[i][k] = e.r("ld.shared."+kind, "[%s+%d]", at, h*rowsChunk+codesChunk+256*k+128*i)
				}
			}
		}
	}
	if !e.streamed {
		m.fetch = fetch
	}
	m.chunk = func() {
		if e.streamed {
			fetch()
		}
		far := e.r("mov.b32", "0")
		for _, t := range tiles {
			for _, a := range t.affine {
				e.apart(4, a[0], a[1], far)
			}
		}
		some := e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, %d", far, uint32(0x80008000)))
		e.Line("vote.sync.any.pred \t%s, %s, -1", some, some)
		twice, done := e.Label(), e.Label()
		weights := func(weigh func(word, scale, bias string) [4]string) {
			for g := range 2 {
				half := []string{"0x1010", "0x3232"}[g*min(1, 32/e.group)]
				both := make([][2][2]string, len(tiles)) // of a row, twice in a register
				for h, t := range tiles {
					for i, a := range t.affine {
						both[h][i] = [2]string{e.r("prmt.b32", "%s, 0, %s", a[0], half), e.r("prmt.b32", "%s, 0, %s", a[1], half)}
					}
				}
				for w := range 4 {
					x := e.rowsOf(xAt, 4*g+w)
					for h, t := range tiles {
						upper, lower := weigh(t.words[g][0][w], both[h][0][0], both[h][0][1]), weigh(t.words[g][1][w], both[h][1][0], both[h][1][1])
						sums := e.acc[(w+h)%2*4:][:4] // no product waits for the one before
						if e.streamed {
							sums = e.acc[4*h:][:4]
						}
						for step := range 2 {
							e.mma(sums, upper, lower, step, x, sums)
						}
					}
				}
			}
		}
		e.Line("@%s bra \t%s", some, twice)
		name := e.elem.String()
		weights(func(word, scale, bias string) (out [4]string) {
			for i, code := range e.exact(word, one) {
				out[i] = e.r("fma.rn."+name+"x2", "%s, %s, %s", code, scale, bias)
			}
			return out
		})
		e.Line("bra \t%s", done)
		e.Mark(twice)
		weights(func(word, scale, bias string) (out [4]string) {
			for i := range out {
				out[i] = e.New("r")
				e.twiceOf(4, out[i], word, 4*i, 4*i+16, scale, bias)
			}
			return out
		})
		e.Mark(done)
		if !e.streamed {
			e.Line("add.s32 \t%s, %s, %d", xAt, xAt, e.fit.Warps*2*chunk*e.most)
		}
	}
	return m
}

// rowsOf is one of the lane's eight pieces of x of a chunk.
func (e *vectorEmitter) rowsOf(xAt string, piece int) []string {
	if !e.streamed {
		return e.four(xAt, 64*e.most*piece)
	}
	at := e.r("add.s32", "%s, %s", e.useSlot, xAt)
	if piece > 0 {
		at = e.r("xor.b32", "%s, %d", at, 16*piece)
	}
	return e.paired(e.four(at, 2*rowsChunk))
}

// streamRows asks for x of the chunks whose weights are on their way, the first of which lies in a slot, and finds what the lane brings of the others. A row's part of a chunk are
// 32 pieces, which lie as in memory, but that the lanes which read at once find theirs in different banks.
func (e *vectorEmitter) streamRows(slot string) {
	e.xStart = e.plus(e.args["x"], e.r("mad.lo.s32", "%s, %d, %s", e.warp, 2*chunk, e.r("shl.b32", "%s, 4", e.lane)))
	for i := range e.xTo {
		e.xTo[i] = e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", e.lane, e.r("or.b32", "%s, %d", e.r("shr.u32", "%s, 3", e.lane), 4*i)))
	}
	for i := range e.most {
		e.xBytes = append(e.xBytes, e.either(e.Make("p", "setp.lt.s32", "%d, %s", i, e.args["M"]), "r", e.r("mov.b32", "16"), e.r("mov.b32", "0")))
	}
	e.xFrom, e.xLeft = e.Make("rd", "mov.b64", "%s", e.xStart), e.r("mov.b32", "%s", e.mine)
	for range e.ahead() {
		e.bringRows(slot)
		e.next(slot)
		e.Line("cp.async.commit_group")
	}
}

// bringRows asks for the lane's part of the rows of x of the next chunk. A tile behind the last one needs none: they come, and nobody uses them.
func (e *vectorEmitter) bringRows(slot string) {
	for i, bytes := range e.xBytes {
		e.Line("cp.async.cg.shared.global \t[%s+%d], [%s+%d], 16, %s", e.r("add.s32", "%s, %s", slot, e.xTo[i%2]), 2*rowsChunk+2*chunk*i, e.xFrom, 2*e.fit.Inner*i, bytes)
	}
	e.Line("add.s64 \t%s, %s, %d", e.xFrom, e.xFrom, e.fit.Warps*2*chunk)
	e.Line("add.s32 \t%s, %s, -1", e.xLeft, e.xLeft)
	last := e.Make("p", "setp.eq.u32", "%s, 0", e.xLeft)
	e.Line("@%s mov.b64 \t%s, %s", last, e.xFrom, e.xStart)
	e.Line("@%s mov.b32 \t%s, %s", last, e.xLeft, e.mine)
}

// layRows stores the lane's sums: of rows quad and quad + 8 of the tile, and of rows 2·member and 2·member + 1 of x. Those of a row of the tile lie side by side.
func (e *vectorEmitter) layRows(parts string) {
	tiles := 2
	if !e.streamed {
		tiles = 1
		for i := range 4 {
			e.Line("add.rn.f32 \t%s, %s, %s", e.acc[i], e.acc[i], e.acc[4+i])
		}
	}
	to := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*tileRows*tiles*e.most, e.r("mad.lo.s32", "%s, %d, %s", e.quad, 4*e.most, e.r("mad.lo.s32", "%s, 8, %s", e.member, parts)))
	guard := ""
	if e.most < mostFew {
		guard = "@" + e.Make("p", "setp.lt.u32", "%s, %d", e.member, e.most/2) + " "
	}
	for i := range 2 * tiles {
		e.Line("%sst.shared.v2.b32 \t[%s+%d], {%s, %s}", guard, to, i*8*4*e.most, e.acc[2*i], e.acc[2*i+1])
	}
}

// rowOfLane is the row of a tile of which a lane adds up sums.
func (e *vectorEmitter) rowOfLane() string {
	if e.streamed {
		return e.lane
	}
	return e.r("and.b32", "%s, 15", e.lane)
}

// rowsOfLane are the rows of x of which it does so: half of all, from the first one on, or all, if each lane has a row of the tile.
func (e *vectorEmitter) rowsOfLane() (first string, count int) {
	if e.streamed {
		return e.r("mov.b32", "0"), e.most
	}
	count = e.most / 2
	return e.r("mul.lo.s32", "%s, %d", e.r("shr.u32", "%s, 4", e.lane), count), count
}

// existing is a predicate for each of some rows of x: there is one.
func (e *vectorEmitter) existing(first string, count int) (out []string) {
	for i := range count {
		out = append(out, e.Make("p", "setp.lt.s32", "%s, %s", e.r("add.s32", "%s, %d", first, i), e.args["M"]))
	}
	return out
}

// results are where the results of a column lie in an array, of some rows of x.
func (e *vectorEmitter) results(array string, t *vectorTile, n, first string, rows int) (out []string) {
	length := t.count
	if t.last != "" { // of values, which are counted in pairs
		length = e.r("add.s32", "%s, 1", t.last)
	}
	at := e.Make("rd", "add.s64", "%s, %s", e.wide(first, length), e.Make("rd", "cvt.u64.u32", "%s", n))
	at = e.Make("rd", "add.s64", "%s, %s", array, e.Make("rd", "shl.b64", "%s, 1", at))
	step := e.wide(length, "2")
	for i := range rows {
		if i > 0 {
			at = e.Make("rd", "add.s64", "%s, %s", at, step)
		}
		out = append(out, at)
	}
	return out
}

// arm finds the matrix of a tile, and its place there.
func (e *vectorEmitter) arm(t *vectorTile, number string, of func(side string) operand) {
	length, before := e.r("mov.b32", "%d", e.fit.Arms[0]), e.r("mov.b32", "0")
	m, tiles := of(e.sides[0]), 0
	for i, side := range e.sides[1:] {
		tiles += (e.fit.Arms[i] + tileRows - 1) / tileRows
		further, next := e.Make("p", "setp.ge.s32", "%s, %d", number, tiles), of(side)
		m.codes = e.either(further, "rd", next.codes, m.codes)
		if !e.dense {
			m.scales, m.biases = e.either(further, "rd", next.scales, m.scales), e.either(further, "rd", next.biases, m.biases)
		}
		length, before = e.either(further, "r", e.r("mov.b32", "%d", e.fit.Arms[i+1]), length), e.either(further, "r", e.r("mov.b32", "%d", tiles), before)
		t.further = append(t.further, further)
	}
	t.matrix, t.count = [2]operand{m, m}, length
	t.begin = e.r("shl.b32", "%s, 4", e.r("sub.s32", "%s, %s", number, before))
	t.n0 = e.r("min.s32", "%s, %s", t.begin, e.r("sub.s32", "%s, %d", length, tileRows))
}

// residuals asks for what is added to the lane's results of a tile, if the warp makes them.
func (e *vectorEmitter) residuals(number, own string) (out []string) {
	t := e.of(number)
	first, count := e.rowsOfLane()
	from := e.results(e.args["r"], &t, e.r("add.s32", "%s, %s", t.n0, e.rowOfLane()), first, count)
	for i, exists := range e.existing(first, count) {
		v := e.Make("rs", "mov.b16", "0")
		e.Line("@%s ld.global.b16 \t%s, [%s]", e.Make("p", "and.pred", "%s, %s", exists, own), v, from[i])
		out = append(out, v)
	}
	return out
}

// finishRows adds up what the warps have of a tile, and stores what becomes of the sums.
func (e *vectorEmitter) finishRows(number, parts string, residuals []string) {
	first, count := e.rowsOfLane()
	from := e.r("mad.lo.s32", "%s, %d, %s", e.rowOfLane(), 4*e.most, e.r("mad.lo.s32", "%s, 4, %s", first, parts))
	var sums []string
	for i := range e.fit.Warps {
		var part []string
		for range count {
			part = append(part, e.New("r"))
		}
		at, wide := e.fit.partBytes()/e.fit.Warps*i, min(4, count)
		for j := 0; j < count; j += wide {
			list := strings.Join(part[j:j+wide], ", ")
			if wide == 1 {
				e.Line("ld.shared.b32 \t%s, [%s+%d]", list, from, at)
			} else {
				e.Line("ld.shared.v%d.b32 \t{%s}, [%s+%d]", wide, list, from, at+4*j)
			}
		}
		for j, v := range part {
			if i == 0 {
				sums = append(sums, v)
			} else {
				sums[j] = e.r("add.rn.f32", "%s, %s", sums[j], v)
			}
		}
	}
	t := e.of(number)
	if e.tall() < tileRows {
		e.finishPairs(&t, number, first, sums)
		return
	}
	n := e.r("add.s32", "%s, %s", t.n0, e.rowOfLane())
	end := e.Label()
	e.Line("@%s bra \t%s", e.made(&t, number, n), end)
	to := e.results(e.resultsOf(&t), &t, n, first, count)
	for i, exists := range e.existing(first, count) {
		result := e.stored(sums[i])
		if e.form == add {
			result = e.stored(e.r("add.rn.f32", "%s, %s", e.widened(residuals[i]), e.widened(result)))
		}
		e.Line("@%s st.global.b16 \t[%s], %s", exists, to[i], result)
	}
	e.Mark(end)
}

// resultsOf is the array of a tile's results.
func (e *vectorEmitter) resultsOf(t *vectorTile) string {
	y := e.args["y"]
	if e.arms() {
		y = e.args["y"+e.sides[0]]
	}
	for i, further := range t.further {
		y = e.either(further, "rd", e.args["y"+e.sides[i+1]], y)
	}
	return y
}

// made is a predicate: a result of a tile is behind the last one, or the tile before has it.
func (e *vectorEmitter) made(t *vectorTile, number, n string) string {
	outside := e.Make("p", "setp.ge.s32", "%s, %s", n, t.count)
	if e.overlaps() {
		begin := t.begin
		if begin == "" {
			begin = e.r("mul.lo.s32", "%s, %d", number, e.tall())
		}
		outside = e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "setp.lt.s32", "%s, %s", n, begin))
	}
	return outside
}

// finishPairs stores what becomes of pairs of sums, of a row and the one eight behind it, whose lanes share the rows of x that both have sums of: of one row the first lane alone makes
// what there is to make.
func (e *vectorEmitter) finishPairs(t *vectorTile, number, first string, sums []string) {
	lower, half, count := e.lowerLane(), len(sums)/2, max(1, len(sums)/2)
	var one, two []string
	for i := range count {
		own := e.either(lower, "r", sums[i], sums[i+half])
		other := e.New("r")
		e.Line("shfl.sync.bfly.b32 \t%s, %s, 8, 31, -1", other, e.either(lower, "r", sums[i+half], sums[i]))
		one, two = append(one, e.either(lower, "r", own, other)), append(two, e.either(lower, "r", other, own))
	}
	first = e.pairsFirst(first, half)
	n := e.r("add.s32", "%s, %s", t.n0, e.r("and.b32", "%s, 7", e.lane))
	outside := e.made(t, number, n)
	if half == 0 {
		outside = e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "not.pred", "%s", lower))
	}
	end := e.Label()
	e.Line("@%s bra \t%s", outside, end)
	if e.form == rope {
		e.turnRows(t, n, first, one, two)
	} else {
		to := e.results(e.args["y"], t, n, first, count)
		for i, exists := range e.existing(first, count) {
			e.Line("@%s st.global.b16 \t[%s], %s", exists, to[i], e.siluMul(e.stored(one[i]), e.stored(two[i])))
		}
	}
	e.Mark(end)
}

// lowerLane is a predicate: the lane's row of a tile is one of the first eight.
func (e *vectorEmitter) lowerLane() string {
	return e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, 8", e.lane))
}

// pairsFirst is the first row of x that a lane makes results of, of those that it has sums of and of which the first lane of two makes half.
func (e *vectorEmitter) pairsFirst(first string, half int) string {
	if half == 0 {
		return first
	}
	return e.r("add.s32", "%s, %s", first, e.either(e.lowerLane(), "r", e.r("mov.b32", "0"), e.r("mov.b32", "%d", half)))
}

// anglesRows finds the cosines and sines of the angles by which the lane turns its pair in the tile that the warp makes the results of, if there is one.
func (e *vectorEmitter) anglesRows() {
	first, count := e.rowsOfLane()
	first = e.pairsFirst(first, count/2)
	count = max(1, count/2)
	for range count {
		e.cosines, e.sines = append(e.cosines, e.r("mov.b32", "0")), append(e.sines, e.r("mov.b32", "0"))
	}
	number := e.firstTile(e.r("mad.lo.s32", "%s, %d, %s", e.warp, e.fit.Teams, e.team))
	q, k, _ := e.fit.Projections.tiles()
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.s32", "%s, %d", number, q+k), skip)
	power := e.power(number, e.r("and.b32", "%s, 7", e.lane))
	offset := e.r("ld.global.b32", "[%s]", e.args["offset"])
	for i := range count {
		position := e.r("cvt.rn.f32.s32", "%s", e.r("add.s32", "%s, %s", e.r("add.s32", "%s, %d", first, i), offset))
		theta := e.r("mul.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", e.args["scale"], position), power)
		e.Line("mov.b32 \t%s, %s", e.cosines[i], e.Call("cos", theta))
		e.Line("mov.b32 \t%s, %s", e.sines[i], e.Call("sin", theta))
	}
	e.Mark(skip)
}

// turnRows stores two elements of queries or keys, turned by the position of their rows, or two of values.
func (e *vectorEmitter) turnRows(t *vectorTile, n, first string, one, two []string) {
	to := e.either(t.value, "rd", e.args["v"], e.either(t.key, "rd", e.args["k"], e.args["q"]))
	plain, end := e.Label(), e.Label()
	rows := e.existing(first, len(one))
	e.Line("@%s bra \t%s", t.value, plain)
	head, place, apart := e.pair(n)
	strides := e.either(t.key, "rd", e.args["k_strides"], e.args["q_strides"])
	times := func(v string, stride int) string {
		return e.Make("rd", "mul.lo.s64", "%s, %s", e.Make("rd", "cvt.u64.u32", "%s", v), e.Make("rd", "ld.global.b64", "[%s+%d]", strides, 8*stride))
	}
	for i := range one {
		at := e.Make("rd", "add.s64", "%s, %s", times(head, 0), times(e.r("add.s32", "%s, %d", first, i), 1))
		at = e.Make("rd", "add.s64", "%s, %s", at, e.Make("rd", "cvt.u64.u32", "%s", place))
		at = e.Make("rd", "add.s64", "%s, %s", to, e.Make("rd", "shl.b64", "%s, 1", at))
		a, b := e.widened(e.stored(one[i])), e.widened(e.stored(two[i]))
		c, s := e.turnedPair(a, b, e.cosines[i], e.sines[i])
		e.Line("@%s st.global.b16 \t[%s], %s", rows[i], at, c)
		e.Line("@%s st.global.b16 \t[%s+%d], %s", rows[i], at, 2*apart, s)
	}
	e.Line("bra \t%s", end)
	e.Mark(plain)
	value := e.r("shl.b32", "%s, 1", n)
	both := e.Make("p", "setp.lt.s32", "%s, %s", value, t.last)
	for i, at := range e.results(to, t, value, first, len(one)) {
		e.Line("@%s st.global.b16 \t[%s], %s", rows[i], at, e.stored(one[i]))
		e.Line("@%s st.global.b16 \t[%s+2], %s", e.Make("p", "and.pred", "%s, %s", rows[i], both), at, e.stored(two[i]))
	}
	e.Mark(end)
}
