package cpu

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// Function constants of the sdpa kernels. Masks and sinks (20, 23–25) are in attention.go.
const (
	sdpaQueryTransposed = 21
	sdpaCausal          = 22
)

func init() {
	for _, d := range []int{64, 96, 128, 256} {
		for _, kind := range []string{"vector", "rows", "rows_window", "rows_capped", "rows_sinks"} {
			if d == 256 && kind == "vector" {
				continue // attention.go has it
			}
			registerSDPA("float", d, kind, nil, nil)
			for _, t := range narrows {
				registerSDPA(t.String()+"_t", d, kind, &t, &cached{t: t})
			}
			if kind != "vector" {
				registerSDPA("float_float16_t", d, kind, nil, &cached{t: halfType})
			}
			for _, t := range floatTypes() {
				if kind != "vector" {
					registerSDPA(t.name+"_q8_0", d, kind, t.narrow, &cached{coded: true})
				}
			}
		}
	}
}

// registerSDPA registers a kernel whose queries and results have type t, and whose keys and values are as cache is, which has no
// memory; nil is f32.
func registerSDPA(word string, d int, kind string, t *narrow, cache *cached) {
	rows := kind != "vector"
	scales := map[string]int{"rows": 11, "rows_window": 12}[kind] // of keys, if the cache has some; those of values follow
	if scales == 0 {
		scales = 13
	}
	of := func(c *Call) sdpa {
		s := sdpaOf(c, d, t, cache, scales)
		s.rows = rows
		s.transposed = s.transposed || rows
		if rows && kind != "rows" {
			s.causal, s.window = true, c.Int(11)
		}
		switch kind {
		case "rows_capped":
			s.cap, s.capped = c.Float(12), true
		case "rows_sinks":
			s.sinks, s.narrow = c, t
		}
		return s
	}
	k := &Kernel{
		Name: fmt.Sprintf("sdpa_%s_%s_%d_%d", kind, word, d, d),
		Units: func(c *Call) int {
			s := of(c)
			return s.units()
		},
		Run: func(c *Call, w *Worker, lo, hi int) {
			s := of(c)
			if cache != nil {
				s.runNarrowed(c, w, t, lo, hi)
				return
			}
			buf := w.Scratch(s.scratch())
			for u := lo; u < hi; u++ {
				s.unit(c, buf, u)
			}
		},
		Cost: func(c *Call) float64 {
			s := of(c)
			if s.block == 0 {
				first, keys := s.keys(s.l - 1)
				return 100 + 0.24*float64((keys-first)*d)
			}
			first, keys := s.keys((s.l - 1) / 2) // for a causal call, the mean over the queries
			keys -= first
			return 1000 + float64(keys*d)*(0.7+0.052*float64(s.block*s.gqa))
		},
	}
	if !rows {
		vectorWith(k, floatType{word, t}, d, d)
	}
	Register(k)
}

// unit makes one unit of out. buf has s.scratch() elements.
func (s *sdpa) unit(c *Call, buf []float32, u int) {
	if s.block == 0 {
		s.vector(c, buf, u)
	} else {
		s.matrix(c, buf, u)
	}
}

// runNarrowed makes units [lo, hi) of a call whose keys and values are widened. Queries and results have type t if it is set: all
// queries are widened then, and rows of out are rounded.
func (s *sdpa) runNarrowed(c *Call, w *Worker, t *narrow, lo, hi int) {
	size, all := s.scratch(), s.hq*s.l*s.d
	if t == nil {
		all = 0
	}
	if s.block == 0 {
		size = s.d + sdpaTile*s.d + min(s.gqa, s.hq)*s.l*(s.d+max(0, s.n)+2)
	}
	buf := w.Scratch(size + 2*all)
	if t != nil {
		s.q, s.out = buf[size:size+all], buf[size+all:]
		t.from(s.q, c.U16(0)[:all])
	}
	for u := lo; u < hi; {
		first := u
		if s.block == 0 { // the rows of one key head
			head := u / s.l / s.gqa
			u = min(hi, (head+1)*s.gqa*s.l)
			s.vectors(c, buf[:size], first, u)
		} else {
			s.matrix(c, buf[:size], u)
			u++
		}
		for r := first; r < u && t != nil; r++ {
			h0, h1, q0, q1 := s.rowsOf(r)
			for q := q0; q < q1; q++ {
				for h := h0; h < h1; h++ {
					at := s.place(h, q)
					t.to(c.U16(3)[at:at+s.d], s.out[at:at+s.d])
				}
			}
		}
	}
}

// vectors is vector for rows [u0, u1) of one key head, whose keys and values are not f32. They are widened a tile at
// a time, for all rows. Tiles begin at multiples of their size, so that a row has the same bits whichever others are with it.
func (s *sdpa) vectors(c *Call, buf []float32, u0, u1 int) {
	rows, d, n := u1-u0, s.d, max(0, s.n)
	take := func(n int) []float32 {
		x := buf[:n]
		buf = buf[n:]
		return x
	}
	queries, part, p := take(rows*d), take(d), take(rows*n) // p[r*n+j] is the score of row r and key j, and then its weight
	top, sum, tile := take(rows), take(rows), take(sdpaTile*d)
	begin, end, head := n, 0, 0
	for r := range rows {
		h, _, q, _ := s.rowsOf(u0 + r)
		head = h / s.gqa
		simd.ScaleTo(queries[r*d:(r+1)*d], s.scale, s.query(h, q))
		top[r], sum[r] = s.begin(h)
		from, to := s.keys(q)
		begin, end = min(begin, from), max(end, to)
	}
	// each calls f for the tiles, and for the keys [from, to) that row r has in each.
	each := func(fill func(at, m int), f func(r, at, from, to int)) {
		for at := begin / sdpaTile * sdpaTile; at < end; at += sdpaTile {
			c.Pause()
			fill(at, min(sdpaTile, end-at))
			for r := range rows {
				_, _, q, _ := s.rowsOf(u0 + r)
				from, to := s.keys(q)
				if from, to = max(from, at), min(to, at+sdpaTile); from < to {
					f(r, at, from, to)
				}
			}
		}
	}
	each(func(at, m int) { s.widen(tile, &s.kCached, head*s.kHead+at*s.kSeq, s.kSeq, m) }, func(r, at, from, to int) {
		scores := p[r*n+from : r*n+to]
		simd.MatVecF32(scores, queries[r*d:(r+1)*d], tile[(from-at)*d:(to-at)*d], d)
		s.bend(scores)
		top[r] = max(top[r], simd.Max(scores))
	})
	for r := range rows {
		h, _, q, _ := s.rowsOf(u0 + r)
		if sum[r] != 0 {
			sink, _ := s.begin(h)
			part[0] = sink - top[r]
			simd.ExpTo(part[:1], part[:1])
			sum[r] = part[0]
		}
		clear(s.output(h, q))
	}
	each(func(at, m int) { s.widen(tile, &s.vCached, head*s.vHead+at*s.vSeq, s.vSeq, m) }, func(r, at, from, to int) {
		h, _, q, _ := s.rowsOf(u0 + r)
		weights := p[r*n+from : r*n+to]
		sum[r] += expSum(weights, top[r])
		clear(part)
		for i, w := range weights {
			simd.Axpy(w, tile[(from-at+i)*d:(from-at+i+1)*d], part)
		}
		simd.AddTo(s.output(h, q), s.output(h, q), part)
	})
	for r := range rows {
		h, _, q, _ := s.rowsOf(u0 + r)
		out := s.output(h, q)
		divide(out, sum[r])
		canonical(out)
	}
}

// widen sets rows of tile to m rows of keys or values, the first at i, the next ones seq further on.
func (s *sdpa) widen(tile []float32, x *cached, i, seq, m int) {
	if seq == s.d {
		x.to(tile[:m*s.d], i)
		return
	}
	for t := range m {
		x.to(tile[t*s.d:(t+1)*s.d], i)
		i += seq
	}
}

// cached are keys or values that are not f32: elements of a 16-bit type or, coded, signed codes of 8 bits, with an f16 for each
// group of 32 (msl/q8_0_cache.metal).
type cached struct {
	coded    bool
	t        narrow
	elements []uint16
	codes    []byte
	scales   []uint16
}

// of returns those that an argument has, and their scales another one.
func (x cached) of(c *Call, slot, scales int) cached {
	if x.coded {
		x.codes, x.scales = c.Bytes(slot), c.U16(scales)
	} else {
		x.elements = c.U16(slot)
	}
	return x
}

// to sets dst to elements from the one at i on. Of codes it is given whole groups.
func (x *cached) to(dst []float32, i int) {
	if !x.coded {
		x.t.from(dst, x.elements[i:i+len(dst)])
		return
	}
	var room [8]float32 // of the widest head
	for len(dst) > 0 {
		n := min(len(dst), 32*len(room))
		scales := room[:n/32]
		simd.HalfTo(scales, x.scales[i/32:i/32+len(scales)])
		simd.GroupsQ8(dst[:n], x.codes[i:i+n], scales)
		dst, i = dst[n:], i+n
	}
}

const (
	sdpaTile = 240 // keys per tile
	// sdpaPause is the number of keys between two checks for cancellation in the vector form.
	sdpaPause = 1 << 14
	sdpaRows  = 192 // max number of (query, head) rows per unit of the matrix form
	// sdpaFrom is the number of rows that share a key head from which on it pays to pack
	// keys and values for the matrix form.
	sdpaFrom = 12
)

// sdpa is one call of scaled dot product attention of hq query heads, gqa of
// which share a key head, over n keys and l queries:
//
//	s[h,q,j]   = Σ_e (scale*queries[h,q,e]) * keys[h/gqa,j,e],  j < n; if causal, j <= n-l+q
//	out[h,q,e] = Σ_j exp(s[h,q,j] - m) * values[h/gqa,j,e] / Σ_j exp(s[h,q,j] - m)
//
// where m is the greatest of s[h,q,·]. A query without a key gets zeros. Keys
// and values that a query does not use do not matter to it, whatever they are.
// With a window, j > n-l+q-window, too; s may be kept within ±cap, by
// cap*tanh(s/cap); and with sinks, that of h is one more score, without a value.
//
// Arguments: 0 queries f32[hq, l, d], or [l, hq, d] if the function constant
// query_transposed is set; 1 keys and 2 values f32[ceil(hq/gqa), n, d] under
// the strides 6 and 7, 8 and 9 (u64: head, position); 3 out f32[hq, l, d]; 4 gqa
// i32, 5 n i32, 10 scale f32. The threadgroups are (hq, l, 1). The kernels
// sdpa_rows_… take queries and give out as [l, hq, d]; a window is 11 i32, cap 12 f32,
// and sinks are 12 f32[hq]. Keys and values of float_float16_t are f16; those of q8_0 are codes, with scales in two slots behind all these.
//
// There are two forms. A few queries take the vector form: a unit is one row
// (h, q). Many take the matrix form: a unit is a block of queries with all the
// heads that share a key head, and keys come in tiles, with the running maximum
// and sum of online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867).
type sdpa struct {
	q, k, v, out   []float32
	kCached        cached // keys in place of k, and values in place of v,
	vCached        cached // if they are not f32
	narrowed       bool   // they are not
	d, hq, l, n    int
	gqa            int
	kHead, kSeq    int
	vHead, vSeq    int
	scale          float32
	transposed     bool
	rows           bool // the kernel is an sdpa_rows: out is [l, hq, d], as queries are
	causal         bool
	window         int // 0: none
	cap            float32
	capped         bool
	sinks          *Call   // the call that has sinks, if there are some
	narrow         *narrow // their type, unless it is f32
	block          int     // queries per unit of the matrix form, or 0 in the vector form
	blocks, kHeads int
}

func sdpaOf(c *Call, d int, t *narrow, cache *cached, scales int) sdpa {
	s := sdpa{
		d: d, hq: c.Groups[0], l: c.Groups[1], n: c.Int(5),
		gqa:   c.Int(4),
		kHead: c.Long(6, 0), kSeq: c.Long(7, 0),
		vHead: c.Long(8, 0), vSeq: c.Long(9, 0),
		scale:      c.Float(10),
		transposed: c.Flag(sdpaQueryTransposed),
		causal:     c.Flag(sdpaCausal),
	}
	if t == nil {
		s.q, s.out = c.F32(0), c.F32(3)
	}
	if cache == nil {
		s.k, s.v = c.F32(1), c.F32(2)
	} else {
		s.kCached, s.vCached, s.narrowed = cache.of(c, 1, scales), cache.of(c, 2, scales+1), true
	}
	s.kHeads = ceilDiv(s.hq, s.gqa)
	if s.l > 1 && s.l*s.gqa >= sdpaFrom {
		s.block = min(max(1, sdpaRows/s.gqa), s.l)
		s.blocks = ceilDiv(s.l, s.block)
	}
	return s
}

func (s *sdpa) units() int {
	if s.block == 0 {
		return s.hq * s.l
	}
	return s.kHeads * s.blocks
}

// keys returns the keys that query q uses: those from first on, before end.
func (s *sdpa) keys(q int) (first, end int) {
	if !s.causal {
		return 0, max(0, s.n)
	}
	end = max(0, min(s.n, s.n-s.l+q+1))
	if s.window > 0 {
		first = max(0, end-s.window)
	}
	return first, end
}

// bend keeps scores within ±cap.
func (s *sdpa) bend(scores []float32) {
	if s.capped {
		softcapTo(scores, scores, s.cap)
	}
}

// begin returns the max score and the sum of weights that head h begins with, before any key: those of its sink, if it has one.
func (s *sdpa) begin(h int) (top, sum float32) {
	if s.sinks == nil {
		return noScore, 0
	}
	var v [1]float32
	floatType{narrow: s.narrow}.load(s.sinks, v[:], 12, h)
	if !(v[0] < noScore) {
		return v[0], 1
	}
	return noScore, 0 // -Inf has no weight
}

func (s *sdpa) query(h, q int) []float32 {
	i := (h*s.l + q) * s.d
	if s.transposed {
		i = (q*s.hq + h) * s.d
	}
	return s.q[i : i+s.d]
}

// place is where the row of a head and a query begins in out.
func (s *sdpa) place(h, q int) int {
	if s.rows {
		return (q*s.hq + h) * s.d
	}
	return (h*s.l + q) * s.d
}

func (s *sdpa) output(h, q int) []float32 {
	i := s.place(h, q)
	return s.out[i : i+s.d]
}

// rowsOf are the rows of out that a unit makes: of heads [h0, h1), which share a key head, and queries [q0, q1).
func (s *sdpa) rowsOf(u int) (h0, h1, q0, q1 int) {
	if s.block == 0 {
		h, q := u/s.l, u%s.l
		return h, h + 1, q, q + 1
	}
	b := u % s.blocks
	// Causal blocks cost more the later they are: light and heavy ones take
	// turns, so that contiguous ranges of units cost about the same.
	if b%2 == 0 {
		b /= 2
	} else {
		b = s.blocks - 1 - b/2
	}
	h0 = u / s.blocks * s.gqa
	return h0, min(h0+s.gqa, s.hq), b * s.block, min((b+1)*s.block, s.l)
}

// scratch is the number of floats that a unit needs.
func (s *sdpa) scratch() int {
	if s.block == 0 {
		return 2*s.d + max(0, s.n)
	}
	return simd.MatMulScratch + s.block*s.gqa*(3*s.d+sdpaTile+3) + 2*sdpaTile*s.d
}

// value returns value j of a key head, in room if it has to be widened.
func (s *sdpa) value(head, j int, room []float32) []float32 {
	i := head*s.vHead + j*s.vSeq
	if s.narrowed {
		s.widen(room, &s.vCached, i, s.d, 1)
		return room[:s.d]
	}
	return s.v[i : i+s.d]
}

// noScore is where a maximum of scores starts. Being finite, it leaves
// exp(score - maximum) zero and not NaN where every score is -Inf.
const noScore = -math.MaxFloat32

// vector computes row u of out.
func (s *sdpa) vector(c *Call, buf []float32, u int) {
	h, _, q, _ := s.rowsOf(u)
	first, end := s.keys(q)
	head, n := h/s.gqa, end-first
	query, part, p := buf[:s.d], buf[s.d:2*s.d], buf[2*s.d:2*s.d+n]

	simd.ScaleTo(query, s.scale, s.query(h, q))
	m, sum := s.begin(h)
	sink := m
	for j := 0; j < n; j += sdpaPause {
		c.Pause()
		scores := p[j:min(j+sdpaPause, n)]
		s.scores(scores, query, head, first+j)
		s.bend(scores)
		m = max(m, simd.Max(scores))
	}
	if sum != 0 {
		part[0] = sink - m
		simd.ExpTo(part[:1], part[:1])
		sum = part[0]
	}
	out := s.output(h, q)
	clear(out)
	for j := 0; j < n; j += sdpaTile { // the sum of the sums of tiles has a smaller error than one long sum
		if j%(64*sdpaTile) == 0 {
			c.Pause()
		}
		tile := p[j:min(j+sdpaTile, n)]
		sum += expSum(tile, m)
		clear(part)
		for i, pj := range tile {
			simd.Axpy(pj, s.value(head, first+j+i, nil), part)
		}
		simd.AddTo(out, out, part)
	}
	divide(out, sum)
	canonical(out)
}

// scores sets p to the products of query with len(p) keys of a key head, from
// key j on.
func (s *sdpa) scores(p, query []float32, head, j int) {
	i := head*s.kHead + j*s.kSeq
	if s.kSeq == s.d {
		simd.MatVecF32(p, query, s.k[i:i+len(p)*s.d], s.d)
		return
	}
	if s.kSeq > s.d && len(p) > 0 {
		simd.MatVecStridedF32(p, query, s.k[i:i+(len(p)-1)*s.kSeq+s.d], s.d, s.kSeq)
		return
	}
	for t := range p { // rows of keys that overlap
		p[t] = simd.Dot(query, s.k[i:i+s.d])
		i += s.kSeq
	}
}

// expSum sets each p to exp(p - m) and returns their sum. len(p) <= sdpaTile.
func expSum(p []float32, m float32) float32 {
	for q := p; len(q) > 0; {
		if len(q) < 8 {
			q[0] -= m
			q = q[1:]
			continue
		}
		v := (*[8]float32)(q)
		v[0] -= m
		v[1] -= m
		v[2] -= m
		v[3] -= m
		v[4] -= m
		v[5] -= m
		v[6] -= m
		v[7] -= m
		q = q[8:]
	}
	simd.ExpTo(p, p)
	return simd.Dot(p, ones[:len(p)])
}

// ones is a vector of ones: a dot product with it sums.
var ones = func() (x [sdpaTile]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// divide divides x by sum. If the sum is zero nothing was added to x, which stays zero.
func divide(x []float32, sum float32) {
	if sum == 0 {
		return
	}
	for i := range x {
		x[i] /= sum
	}
}

// matrix makes the rows of out of one block of queries and one key head.
func (s *sdpa) matrix(c *Call, buf []float32, u int) {
	// Row r is head h0 + r%heads of query q0 + r/heads, so that the rows which
	// use a key are the last ones.
	h0, h1, q0, q1 := s.rowsOf(u)
	head, heads := h0/s.gqa, h1-h0
	rows, d := (q1-q0)*heads, s.d

	take := func(n int) []float32 {
		x := buf[:n]
		buf = buf[n:]
		return x
	}
	scratch := take(simd.MatMulScratch)
	query, part, acc := take(rows*d), take(rows*d), take(rows*d)
	p := take(rows * sdpaTile)
	maxima, scale, sums := take(rows), take(rows), take(rows)
	kTile, vTile := take(sdpaTile*d), take(sdpaTile*d)

	for r := range rows {
		simd.ScaleTo(query[r*d:(r+1)*d], s.scale, s.query(h0+r%heads, q0+r/heads))
		maxima[r], sums[r] = s.begin(h0 + r%heads)
	}
	clear(acc)

	begin, _ := s.keys(q0)
	_, end := s.keys(q1 - 1)
	for j := begin; j < end; j += sdpaTile {
		c.Pause()
		m := min(sdpaTile, end-j)
		first := 0 // the first row of the block that uses key j or one before it
		for {
			if _, end := s.keys(q0 + first/heads); end > j {
				break
			}
			first += heads
		}
		// row returns the scores of row r, and which of the keys it uses, if any.
		row := func(r int) (scores []float32, from, used int) {
			from, used = s.keys(q0 + r/heads)
			used = min(m, used-j)
			return p[(r-first)*m : (r-first+1)*m], min(max(0, from-j), used), used
		}
		n := rows - first

		simd.MatMulF32(p, m, query[first*d:], s.keyTile(kTile, head, j, m), n, m, d, scratch)
		s.bend(p[:n*m])
		all := true // each row uses all keys
		for r := first; r < rows; r++ {
			scores, from, used := row(r)
			all = all && from == 0 && used == m
			greatest := maxima[r]
			if from < used {
				greatest = max(greatest, simd.Max(scores[from:used]))
			}
			scale[r] = maxima[r] - greatest
			maxima[r] = greatest
		}
		simd.ExpTo(scale[first:], scale[first:])
		for r := first; r < rows; r++ {
			weights, from, used := row(r)
			sums[r] = float32(sums[r]*scale[r]) + expSum(weights[from:used], maxima[r])
			clear(weights[:from])
			clear(weights[used:])
			simd.ScaleTo(acc[r*d:(r+1)*d], scale[r], acc[r*d:(r+1)*d])
		}

		part := part[:n*d]
		finite := s.valueTile(vTile[:m*d], head, j, m)
		if all || finite {
			simd.MatMulF32(part, d, p[:n*m], vTile[:m*d], n, d, m, scratch)
		} else { // a value that a row does not use is NaN or infinite, and 0 times that is not 0
			clear(part)
			for r := first; r < rows; r++ {
				weights, from, used := row(r)
				for i := from; i < used; i++ {
					simd.Axpy(weights[i], s.value(head, j+i, kTile), part[(r-first)*d:(r-first+1)*d])
				}
			}
		}
		simd.AddTo(acc[first*d:], acc[first*d:], part)
	}
	for r := range rows {
		x := acc[r*d : (r+1)*d]
		divide(x, sums[r])
		canonical(x)
		copy(s.output(h0+r%heads, q0+r/heads), x)
	}
}

// keyTile returns the keys [j, j+m) of a head as rows that follow each other,
// gathered in tile if they do not.
func (s *sdpa) keyTile(tile []float32, head, j, m int) []float32 {
	i := head*s.kHead + j*s.kSeq
	if s.narrowed {
		s.widen(tile, &s.kCached, i, s.kSeq, m)
		return tile[:m*s.d]
	}
	if s.kSeq == s.d {
		return s.k[i : i+m*s.d]
	}
	for t := range m {
		copy(tile[t*s.d:(t+1)*s.d], s.k[i:i+s.d])
		i += s.kSeq
	}
	return tile[:m*s.d]
}

// valueTile transposes the values [j, j+m) of a head, tile[e*m+t] = element e
// of value j+t, and reports whether all are finite.
func (s *sdpa) valueTile(tile []float32, head, j, m int) bool {
	var zero float32         // 0 as long as all are finite, then NaN
	var room [4][256]float32 // of widened values
	t := 0
	for ; t+4 <= m; t += 4 {
		a, b := s.value(head, j+t, room[0][:]), s.value(head, j+t+1, room[1][:])
		c, d := s.value(head, j+t+2, room[2][:]), s.value(head, j+t+3, room[3][:])
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		for e, v := range a {
			zero += (v*0 + b[e]*0) + (c[e]*0 + d[e]*0)
			o := (*[4]float32)(tile[e*m+t:])
			o[0], o[1], o[2], o[3] = v, b[e], c[e], d[e]
		}
	}
	for ; t < m; t++ {
		for e, v := range s.value(head, j+t, room[0][:]) {
			zero += v * 0
			tile[e*m+t] = v
		}
	}
	return zero == 0
}
