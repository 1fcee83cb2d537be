package cpu

import (
	"encoding/binary"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// ggmlFormat is one of GGML's block formats; msl/ggml.metal says what lies where
// in a block.
type ggmlFormat struct {
	name           string
	weights, bytes int // their numbers in a block
	chunk          int // the number of weights that are decoded at a time: a sum over so few is as accurate as one over a block
	// decode sets dst, a chunk or whole blocks of one, to the weights of a row from weight `at` on, a multiple of the
	// chunk. They are what GGML makes of them: exact but for the sum with a bias, because scale and code together have
	// at most 24 bits.
	decode func(dst []float32, row []byte, at int)
	loops  *blockLoops // nil: products take weights that decode has made
	// scale returns a factor that decode leaves out of a chunk's weights and the caller applies to their product; nil
	// where decode applies all. mxfp4 has one, because its scales reach 2^127: a weight could overflow where the product does not.
	scale func(row []byte, at int) float32
}

// blockLoops says how the loops of package simd multiply a format's blocks where they lie.
type blockLoops struct {
	simd.Blocks
	group int // the weights that share a scale
	// scales sets the scales and, where the format has them, the biases of groups of rows.
	scales func(scales, biases []float32, rows []byte)
	biased bool
	packed bool    // products with a vector want scales; else they find them in the blocks
	many   bool    // there is a loop for many vectors; else they take weights that rows has made
	less   float32 // what that takes from each code
	// rows sets dst to the weights of rows, whose scales are given; nil where many is set.
	rows func(dst []float32, rows []byte, scales []float32)
}

const (
	ggmlChunk = 128 // half a block of 256
	ggmlRows  = 32  // rows whose scales are read at a time
	ggmlWide  = 64  // vectors of 16 bits that are widened at a time
)

var ggmlFormats = []ggmlFormat{
	{"q4_0", 32, 18, ggmlChunk, decodeQ4, &blockLoops{Blocks: simd.Q40, group: 32, scales: scalesQ40, many: true, less: 8}, nil},
	{"q8_0", 32, 34, ggmlChunk, decodeQ8, &blockLoops{Blocks: simd.Q80, group: 32, scales: scalesQ80, many: true, less: 128}, nil},
	{"q6_K", 256, 210, ggmlChunk, decodeQ6, &blockLoops{Blocks: simd.Q6K, group: 16, scales: scalesQ6K, packed: true, rows: simd.RowQ6K}, nil},
	{"q4_1", 32, 20, ggmlChunk, nibbles{bytes: 20, from: 4, codes: &codesUp, biased: true}.decode, &blockLoops{Blocks: simd.Q41, group: 32, scales: scalesQ41, biased: true, many: true}, nil},
	{"q5_0", 32, 22, ggmlChunk, nibbles{bytes: 22, from: 6, bits: 2, codes: &codes5}.decode, nil, nil},
	{"q5_1", 32, 24, ggmlChunk, nibbles{bytes: 24, from: 8, bits: 4, codes: &codesUp, biased: true}.decode, nil, nil},
	{"iq4_nl", 32, 18, ggmlChunk, nibbles{bytes: 18, from: 2, codes: &codesNL}.decode, nil, nil},
	{"mxfp4", 32, 17, 32, nibbles{bytes: 17, from: 1, codes: &codesE2M1}.decode, nil, scaleE8M0},
	{"q2_K", 256, 84, ggmlChunk, decodeQ2K, nil, nil},
	{"q3_K", 256, 110, ggmlChunk, decodeQ3K, nil, nil},
	{"q4_K", 256, 144, ggmlChunk, decodeQ4K, &blockLoops{Blocks: simd.Q4K, group: 32, scales: scalesQ4K, biased: true, packed: true, many: true}, nil},
	{"q5_K", 256, 176, ggmlChunk, decodeQ5K, nil, nil},
}

// ggmlVectors returns the types of what is multiplied with blocks, and of results. Vectors of 16 bits are widened and
// results, in f32, rounded.
func ggmlVectors() []floatType {
	half, bfloat := halfType, bfloatType
	return []floatType{{"f32", nil}, {"f16", &half}, {"bf16", &bfloat}}
}

func init() {
	for _, f := range ggmlFormats {
		for _, t := range ggmlVectors() {
			name := f.name + "_" + t.name
			Register(
				f.mulMV("ggml_mul_mv_"+name, t), f.siluMulMV("ggml_mul_mv_silu_mul_"+name, t), f.mulMVID("ggml_mul_mv_id_"+name, t), f.mulMM("ggml_mul_mm_"+name, t),
				embedding("ggml_get_rows_"+name, 2, t, func(c *Call, dst []float32, id int) {
					f.row(dst, c.Bytes(1)[id*f.size(len(dst)):])
				}),
			)
		}
	}
}

// size returns the number of bytes of a row of k weights.
func (f ggmlFormat) size(k int) int { return k / f.weights * f.bytes }

// The values of codes.
var (
	codes4 [16]float32
	codes5 [32]float32
	codes6 [64]float32
	codes8 [256]float32

	codesUp   [32]float32
	codesNL   = [32]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	codesE2M1 = [32]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12} // doubled
)

func init() {
	for i := range codes4 {
		codes4[i] = float32(i - 8)
	}
	for i := range codes5 {
		codes5[i], codesUp[i] = float32(i-16), float32(i)
	}
	for i := range codes6 {
		codes6[i] = float32(i - 32)
	}
	for i := range codes8 {
		codes8[i] = float32(int8(i))
	}
}

// nibbles are blocks of 32 codes whose low 4 bits lie in 16 bytes.
type nibbles struct {
	bytes, from int // of a block, and the first of those
	bits        int // the first of 4 bytes with bit 4 of the codes; 0: there are none
	codes       *[32]float32
	biased      bool // an f16 lies behind the scale
}

func (n nibbles) decode(dst []float32, row []byte, at int) {
	for row = row[at/32*n.bytes:]; len(dst) >= 32; row, dst = row[n.bytes:], dst[32:] {
		block, low, high, d, bits := row[:n.bytes], dst[:16], dst[16:32], float32(1), uint32(0)
		if n.from > 1 {
			d = halfAt(block)
		}
		if n.bits > 0 {
			bits = binary.LittleEndian.Uint32(block[n.bits:])
		}
		for j, c := range block[n.from:][:16] {
			low[j] = d * n.codes[uint32(c&15)|bits>>j&1<<4]
			high[j] = d * n.codes[uint32(c>>4)|bits>>(16+j)&1<<4]
		}
		if n.biased {
			bias := halfAt(block[2:])
			for j := range low {
				low[j], high[j] = low[j]+bias, high[j]+bias
			}
		}
	}
}

// scaleE8M0 returns half of the scale of a block, 2^(its first byte − 127).
func scaleE8M0(row []byte, at int) float32 {
	e := uint32(row[at/32*17])
	if e < 2 {
		return math.Float32frombits(0x200000 << e)
	}
	return math.Float32frombits((e - 1) << 23)
}

// decodeQ2K decodes half a block.
func decodeQ2K(dst []float32, row []byte, at int) {
	block, half := row[at/256*84:][:84], at/128%2
	d, least := halfAt(block[80:]), halfAt(block[82:])
	for g := range 8 {
		s := block[8*half+g]
		scale, bias, out := d*float32(s&15), float32(least*float32(s>>4)), dst[16*g:][:16]
		for i, c := range block[16+32*half+16*(g%2):][:16] {
			out[i] = float32(scale*float32(c>>(g/2*2)&3)) - bias
		}
	}
}

// decodeQ3K decodes half a block.
func decodeQ3K(dst []float32, row []byte, at int) {
	block, half := row[at/256*110:][:110], at/128%2
	d := halfAt(block[108:])
	for g := range 8 {
		s := block[96+g]>>(4*half)&15 | block[104+g%4]>>(4*half+g/4*2)&3<<4
		scale, bits, out := d*float32(int(s)-32), block[16*(g%2):][:16], dst[16*g:][:16]
		for i, c := range block[32+32*half+16*(g%2):][:16] {
			out[i] = scale * float32(int(c>>(g/2*2)&3|bits[i]>>(4*half+g/2)&1<<2)-4)
		}
	}
}

func decodeQ4(dst []float32, row []byte, at int) {
	for row = row[at/32*18:]; len(dst) >= 32; row, dst = row[18:], dst[32:] {
		d, codes, low, high := halfAt(row), row[2:18], dst[:16], dst[16:32]
		for i, c := range codes {
			low[i], high[i] = d*codes4[c&15], d*codes4[c>>4]
		}
	}
}

func decodeQ8(dst []float32, row []byte, at int) {
	for row = row[at/32*34:]; len(dst) >= 32; row, dst = row[34:], dst[32:] {
		d, codes, out := halfAt(row), row[2:34], dst[:32]
		for i, c := range codes {
			out[i] = d * codes8[c]
		}
	}
}

// decodeQ4K decodes half a block.
func decodeQ4K(dst []float32, row []byte, at int) {
	block := row[at/256*144:][:144]
	scales, biases := scalesK(block)
	for p := range 2 {
		low, high := dst[64*p:][:32], dst[64*p+32:][:32]
		g := at/128%2*4 + 2*p
		s, t, m, n := scales[g], scales[g+1], biases[g], biases[g+1]
		for i, c := range block[16+at/128%2*64+32*p:][:32] {
			low[i], high[i] = float32(s*codesUp[c&15])+m, float32(t*codesUp[c>>4])+n
		}
	}
}

// decodeQ5K decodes half a block.
func decodeQ5K(dst []float32, row []byte, at int) {
	block, half := row[at/256*176:][:176], at/128%2
	scales, biases := scalesK(block)
	bits := block[16:48]
	for g := range 4 {
		scale, bias, out := scales[4*half+g], biases[4*half+g], dst[32*g:][:32]
		for i, c := range block[48+64*half+g/2*32:][:32] {
			out[i] = float32(scale*codesUp[c>>(g%2*4)&15|bits[i]>>(4*half+g)&1<<4]) + bias
		}
	}
}

func scalesQ40(scales, _ []float32, rows []byte) { simd.HalvesAt(scales, rows, 18) }

func scalesQ41(scales, biases []float32, rows []byte) {
	simd.HalvesAt(scales, rows, 20)
	simd.HalvesAt(biases, rows[min(2, len(rows)):], 20)
}

func scalesQ80(scales, _ []float32, rows []byte) { simd.HalvesAt(scales, rows, 34) }

func scalesQ4K(scales, biases []float32, rows []byte) { simd.ScalesK(scales, biases, rows, 144) }

func scalesQ6K(scales, _ []float32, rows []byte) { simd.ScalesQ6K(scales, rows) }

// scalesK returns what scales the codes of the eight groups of a block of q4_K or q5_K, and what is added.
func scalesK(block []byte) (scales, biases [8]float32) {
	simd.ScalesK(scales[:], biases[:], block, len(block))
	return scales, biases
}

func decodeQ6(dst []float32, row []byte, at int) {
	block, half := row[at/256*210:][:210], at/128%2
	d := halfAt(block[208:])
	low, high, scales := block[64*half:][:64], block[128+32*half:][:32], block[192+8*half:][:8]
	for i := range 2 { // the two halves of each quarter of a block
		var s [4]float32
		for q := range s {
			s[q] = d * codes8[scales[2*q+i]]
		}
		a, b, h := low[16*i:][:16], low[32+16*i:][:16], high[16*i:][:16]
		p, q, r, t := dst[16*i:][:16], dst[32+16*i:][:16], dst[64+16*i:][:16], dst[96+16*i:][:16]
		for j, u := range h {
			x, y := a[j], b[j]
			p[j] = s[0] * codes6[x&15|u<<4&48]
			q[j] = s[1] * codes6[y&15|u<<2&48]
			r[j] = s[2] * codes6[x>>4|u&48]
			t[j] = s[3] * codes6[y>>4|u>>2&48]
		}
	}
}

// halfAt decodes the f16 that the bytes begin with.
func halfAt(b []byte) float32 {
	h := uint32(binary.LittleEndian.Uint16(b))
	v := math.Float32frombits(h&0x7fff<<13) * 0x1p112 // exponents of f32 begin 112 lower
	if h&0x7c00 == 0x7c00 {
		v = math.Float32frombits(0x7f800000 | h&0x3ff<<13)
	}
	return math.Float32frombits(math.Float32bits(v) | h>>15<<31)
}

// dots sets sums[i] to the dot product of a row of blocks with vector i of x. chunk is scratch. The bits of
// a sum do not depend on the number of vectors.
func (f *ggmlFormat) dots(sums []float32, row []byte, x []float32, k int, chunk []float32) {
	clear(sums)
	for at := 0; at < k; at += f.chunk {
		w, scale := chunk[:min(f.chunk, k-at)], float32(1)
		f.decode(w, row, at)
		if f.scale != nil {
			scale = f.scale(row, at)
		}
		for i := range sums {
			sums[i] += float32(scale * simd.Dot(x[i*k+at:][:len(w)], w))
		}
	}
}

// step is the number of rows that products takes at a time with m vectors.
func (l *blockLoops) step(n, m int) int {
	if l.packed || m > 1 { // so few that their scales, and with several vectors they too, stay in the cache
		return min(n, ggmlRows)
	}
	return n
}

// room is the scratch that products needs.
func (f *ggmlFormat) room(n, k, m int) int {
	switch l := f.loops; {
	case l == nil:
		return ggmlChunk + m
	case l.packed:
		return k / l.group * (2*l.step(n, m) + 1)
	default:
		return k / l.group
	}
}

// products sets y[i*ldy+j] to the product of row j of n rows of blocks with vector i of x.
func (f *ggmlFormat) products(y []float32, ldy int, rows []byte, x []float32, n, k int, scratch []float32) {
	size, m := f.size(k), len(x)/k
	if f.loops == nil {
		scratch = scratch[:ggmlChunk+m]
		for j := range n {
			f.dots(scratch[ggmlChunk:], rows[j*size:][:size], x, k, scratch[:ggmlChunk])
			for i, s := range scratch[ggmlChunk:] {
				y[i*ldy+j] = stored(s)
			}
		}
		return
	}
	l, groups, step := f.loops, k/f.loops.group, f.loops.step(n, m)
	sums, scratch := scratch[:groups], scratch[groups:]
	for j := 0; j < n; j += step {
		step := min(step, n-j)
		w := rows[j*size : (j+step)*size]
		var scales, biases []float32
		if l.packed {
			scales, biases = l.read(scratch, w, step*groups)
		}
		for i := range m {
			v, out := x[i*k:(i+1)*k], y[i*ldy+j:][:step]
			if l.biased && (j == 0 || m > 1) {
				simd.GroupSums(sums, v, 32)
			}
			simd.MatVecBlocks(l.Blocks, out, v, sums, w, scales, biases, k)
			canonical(out)
		}
	}
}

// read makes the scales and biases of so many groups in scratch, which has room for twice as many numbers. There are no
// biases where the format has none.
func (l *blockLoops) read(scratch []float32, rows []byte, groups int) (scales, biases []float32) {
	scales = scratch[:groups]
	if l.biased {
		biases = scratch[groups : 2*groups]
	}
	l.scales(scales, biases, rows)
	return scales, biases
}

// cost is what m vectors of k elements take with qmvRows rows.
func (f *ggmlFormat) cost(k, m int) float64 {
	if f.loops != nil {
		return 20 + qmvRows*float64(k)*(0.02+0.05*float64(m))
	}
	return 20 + qmvRows*float64(k)*(0.9+0.1*float64(m))
}

// row sets dst to the weights of a row.
func (f *ggmlFormat) row(dst []float32, row []byte) {
	for at := 0; at < len(dst); at += f.chunk {
		w := dst[at:min(at+f.chunk, len(dst))]
		f.decode(w, row, at)
		if f.scale != nil {
			simd.ScaleTo(w, f.scale(row, at), w)
		}
	}
}

// mulMM is the product of many vectors, in the order of gemm.
//
// Arguments: 0 x [M, K] of the type, 1 w, rows of blocks, 2 y [M, N] of the type; the others and the units are gemm's.
func (f ggmlFormat) mulMM(name string, typ floatType) *Kernel {
	return &Kernel{
		Name: name, Units: gemmUnits,
		Run: func(c *Call, s *Worker, lo, hi int) {
			k, size, height := c.Int(3), f.size(c.Int(3)), 0
			if typ.narrow != nil {
				height = min(gemmRows, c.Int(5))
			}
			scratch := s.Scratch(simd.MatMulScratch + gemmCols*(k+ceilDiv(k, 16)) + height*(k+gemmCols))
			scratch, rest := scratch[:simd.MatMulScratch], scratch[simd.MatMulScratch:]
			wide, rest := rest[:height*(k+gemmCols)], rest[height*(k+gemmCols):]
			last := -1 // the first of the rows of x that are widened
			for u := lo; u < hi; u++ {
				if typ.narrow != nil {
					t := narrowTileOf(c, u, wide)
					if t.i != last {
						typ.load(c, t.x, 0, t.i*k)
						last = t.i
					}
					f.multiply(t, c.Bytes(1)[t.j*size:(t.j+t.n)*size], k, scratch, rest)
					for r := range t.m {
						typ.store(c, 2, (t.i+r)*c.Int(4)+t.j, t.y[r*t.ldy:][:t.n])
					}
					continue
				}
				t := tileOf(c, u)
				f.multiply(t, c.Bytes(1)[t.j*size:(t.j+t.n)*size], k, scratch, rest)
				t.canonical()
			}
		},
		Cost: func(c *Call) float64 {
			if f.loops != nil {
				return gemmCost(c)
			}
			return gemmCost(c) + gemmCols*float64(c.Int(3))
		},
	}
}

// multiply makes a tile, of the products with rows of blocks. rest has room for the rows' weights and scales.
func (f *ggmlFormat) multiply(t tile, rows []byte, k int, scratch, rest []float32) {
	l := f.loops
	if l == nil || !l.many || t.m < simd.FewRows {
		weights, rest := rest[:t.n*k], rest[t.n*k:]
		if l != nil && l.rows != nil {
			scales, _ := l.read(rest, rows, t.n*(k/l.group))
			l.rows(weights, rows, scales)
		} else {
			for j := range t.n {
				f.row(weights[j*k:][:k], rows[j*f.size(k):])
			}
		}
		simd.MatMulF32(t.y, t.ldy, t.x, weights, t.m, t.n, k, scratch)
		return
	}
	groups := t.n * (k / l.group)
	scales, biases := l.read(rest, rows, groups)
	if !l.biased {
		biases = rest[groups:][:groups]
		simd.ScaleTo(biases, -l.less, scales)
	}
	simd.MatMulBlocks(l.Blocks, t.y, t.ldy, t.x, rows, scales, biases, t.m, t.n, k, scratch)
}

// mulMV is the product of vectors with a matrix in blocks:
//
//	y[m,n] = Σ_k x[m,k] * w[n,k]
//
// Arguments: 0 w, rows of blocks, 1 x [M, K] and 2 y [M, N] of the type, 3 K, 4 N i32. The
// threadgroups are (ceil(N/8), M). A unit is 8 columns of all results.
func (f ggmlFormat) mulMV(name string, typ floatType) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return ceilDiv(c.Int(4), qmvRows) },
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, m := c.Int(3), c.Int(4), c.Groups[1]
			j, end := lo*qmvRows, min(hi*qmvRows, n)
			rows, width := c.Bytes(0)[j*f.size(k):], end-j
			if typ.narrow == nil {
				f.products(c.F32(2)[j:], n, rows, c.F32(1)[:m*k], width, k, worker.Scratch(f.room(width, k, m)))
				return
			}
			step := min(m, ggmlWide)
			scratch := worker.Scratch(step*(k+width) + f.room(width, k, step))
			wide, scratch := scratch[:step*k], scratch[step*k:]
			out, scratch := scratch[:step*width], scratch[step*width:]
			for v := 0; v < m; v += step {
				x := wide[:min(step, m-v)*k]
				typ.load(c, x, 1, v*k)
				f.products(out, width, rows, x, width, k, scratch)
				for i := range len(x) / k {
					typ.store(c, 2, (v+i)*n+j, out[i*width:][:width])
				}
			}
		},
		Cost: func(c *Call) float64 { return f.cost(c.Int(3), c.Groups[1]) },
	}
}

// siluMulMV is what a gated feed-forward layer makes of the products with two matrices in blocks:
//
//	y = silu(gate)·up
//
// where gate and up are, to the bit, what mulMV makes, each step rounded to the type.
//
// Arguments: 0 and 1 the matrices, rows of blocks, 2 x [M, K] and 3 y [M, N] of the type, 4 K, 5 N i32. The
// threadgroups are (ceil(N/8), M). A unit is 8 columns of all results.
func (f ggmlFormat) siluMulMV(name string, typ floatType) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return ceilDiv(c.Int(5), qmvRows) },
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, m := c.Int(4), c.Int(5), c.Groups[1]
			j, end := lo*qmvRows, min(hi*qmvRows, n)
			width, step, at := end-j, min(m, ggmlWide), j*f.size(k)
			scratch := worker.Scratch(step*(k+2*width) + f.room(width, k, step))
			wide, scratch := scratch[:step*k], scratch[step*k:]
			first, second, scratch := scratch[:step*width], scratch[step*width:2*step*width], scratch[2*step*width:]
			for v := 0; v < m; v += step {
				rows := min(step, m-v)
				x, gate, up := wide[:rows*k], first[:rows*width], second[:rows*width]
				typ.load(c, x, 2, v*k)
				f.products(gate, width, c.Bytes(0)[at:], x, width, k, scratch)
				f.products(up, width, c.Bytes(1)[at:], x, width, k, scratch)
				if t := typ.narrow; t != nil {
					t.round(gate)
					t.round(up)
					t.silu(gate)
					t.round(gate)
				} else {
					simd.SiluTo(gate, gate)
				}
				simd.MulTo(gate, gate, up)
				for i := range rows {
					typ.store(c, 3, (v+i)*n+j, gate[i*width:][:width])
				}
			}
		},
		Cost: func(c *Call) float64 { return 2 * f.cost(c.Int(4), c.Groups[1]) },
	}
}

// mulMVID is the product of vectors with matrices in blocks that ids pick from a
// stack:
//
//	y[r,s,n] = Σ_k x[r,s,k] * w[ids[r,s],n,k]
//
// An id outside the stack makes NaN and reads nothing.
//
// Arguments: 0 w, E matrices, 1 x [rows, slots, K] of the type under the strides 7 (i64[2]:
// row, slot; 0 shares a row), 2 ids u32[rows, slots], 3 y [rows, slots, N] of the type, 4 K,
// 5 N, 6 E i32. The threadgroups are (ceil(N/8), slots, rows). A unit is 8 columns
// of a result.
func (f ggmlFormat) mulMVID(name string, typ floatType) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return ceilDiv(c.Int(5), qmvRows) * c.Groups[1] * c.Groups[2] },
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, slots := c.Int(4), c.Int(5), c.Groups[1]
			scratch := worker.Scratch(k + n + f.room(n, k, 1))
			x, results, scratch := scratch[:k], scratch[k:][:n], scratch[k+n:]
			blocks(lo, hi, n, func(of, j, end int) {
				out := results[:end-j]
				if id := int(c.U32(2)[of]); id >= c.Int(6) {
					fill(out, nan32)
				} else {
					typ.load(c, x, 1, of/slots*c.Long(7, 0)+of%slots*c.Long(7, 1))
					f.products(out, len(out), c.Bytes(0)[(id*n+j)*f.size(k):], x, len(out), k, scratch)
				}
				typ.store(c, 3, of*n+j, out)
			})
		},
		Cost: func(c *Call) float64 { return f.cost(c.Int(4), 1) },
	}
}
