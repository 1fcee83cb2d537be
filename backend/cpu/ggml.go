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
	affine *affineRow // nil: products take weights that decode has made
	// scale returns a factor that decode leaves out of a chunk's weights and the caller applies to their product; nil
	// where decode applies all. mxfp4 has one, because its scales reach 2^127: a weight could overflow where the product does not.
	scale func(row []byte, at int) float32
}

// affineRow says how the blocks of a row become codes, scales and biases in groups of 32, which the loops of affine codes
// multiply.
type affineRow struct {
	bits int // of a code; of a byte with two, the low one is that of weight i of its group, the other that of weight 16 + i
	// signed: set stores positive codes in codes, the absolute values of negative ones in less, and no biases; the product
	// is the difference of two. An offset in place of signs would make the sums larger, and so less accurate.
	signed bool
	set    func(codes, less []byte, scales, biases []float32, row []byte)
}

const (
	ggmlChunk = 128 // half a block of 256
	ggmlRows  = 32  // rows that one vector is made ready for
)

var ggmlFormats = []ggmlFormat{
	{"q4_0", 32, 18, ggmlChunk, decodeQ4, &affineRow{4, true, affineQ40}, nil},
	{"q8_0", 32, 34, ggmlChunk, decodeQ8, &affineRow{8, true, affineQ80}, nil},
	{"q6_K", 256, 210, ggmlChunk, decodeQ6, nil, nil},
	{"q4_1", 32, 20, ggmlChunk, nibbles{bytes: 20, from: 4, codes: &codesUp, biased: true}.decode, &affineRow{4, false, affineQ41}, nil},
	{"q5_0", 32, 22, ggmlChunk, nibbles{bytes: 22, from: 6, bits: 2, codes: &codes5}.decode, nil, nil},
	{"q5_1", 32, 24, ggmlChunk, nibbles{bytes: 24, from: 8, bits: 4, codes: &codesUp, biased: true}.decode, nil, nil},
	{"iq4_nl", 32, 18, ggmlChunk, nibbles{bytes: 18, from: 2, codes: &codesNL}.decode, nil, nil},
	{"mxfp4", 32, 17, 32, nibbles{bytes: 17, from: 1, codes: &codesE2M1}.decode, nil, scaleE8M0},
	{"q2_K", 256, 84, ggmlChunk, decodeQ2K, nil, nil},
	{"q3_K", 256, 110, ggmlChunk, decodeQ3K, nil, nil},
	{"q4_K", 256, 144, ggmlChunk, decodeQ4K, &affineRow{4, false, affineQ4K}, nil},
	{"q5_K", 256, 176, ggmlChunk, decodeQ5K, nil, nil},
}

func init() {
	for _, f := range ggmlFormats {
		Register(
			f.mulMV("ggml_mul_mv_"+f.name+"_f32"), f.mulMVID("ggml_mul_mv_id_"+f.name+"_f32"), f.mulMM("ggml_mul_mm_"+f.name+"_f32"),
			embedding("ggml_get_rows_"+f.name+"_f32", 2, func(c *Call, dst []float32, id int) {
				f.row(dst, c.Bytes(1)[id*f.size(len(dst)):])
			}),
		)
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
	scales, biases := scalesK(block, at/128%2)
	for p := range 2 {
		low, high := dst[64*p:][:32], dst[64*p+32:][:32]
		s, t, m, n := scales[2*p], scales[2*p+1], biases[2*p], biases[2*p+1]
		for i, c := range block[16+at/128%2*64+32*p:][:32] {
			low[i], high[i] = float32(s*codesUp[c&15])+m, float32(t*codesUp[c>>4])+n
		}
	}
}

// decodeQ5K decodes half a block.
func decodeQ5K(dst []float32, row []byte, at int) {
	block, half := row[at/256*176:][:176], at/128%2
	scales, biases := scalesK(block, half)
	bits := block[16:48]
	for g := range 4 {
		scale, bias, out := scales[g], biases[g], dst[32*g:][:32]
		for i, c := range block[48+64*half+g/2*32:][:32] {
			out[i] = float32(scale*codesUp[c>>(g%2*4)&15|bits[i]>>(4*half+g)&1<<4]) + bias
		}
	}
}

// affineQ41 copies the codes, which already lie in the order that the loops want, and takes scales and biases apart.
func affineQ41(codes, _ []byte, scales, biases []float32, row []byte) {
	biases = biases[:len(scales)]
	for g := range scales {
		block := (*[20]byte)(row[20*g:])
		scales[g], biases[g] = halfAt(block[:]), halfAt(block[2:])
		*(*[16]byte)(codes[16*g:]) = [16]byte(block[4:])
	}
}

// affineQ40 splits the codes c into max(c − 8, 0) and max(8 − c, 0), whose difference is c − 8.
func affineQ40(codes, less []byte, scales, _ []float32, row []byte) {
	const ones = 0x1111111111111111
	for g := range scales {
		block, up, down := (*[18]byte)(row[18*g:]), (*[16]byte)(codes[16*g:]), (*[16]byte)(less[16*g:])
		scales[g] = halfAt(block[:])
		for i := 0; i < 16; i += 8 {
			w := binary.LittleEndian.Uint64(block[2+i:])
			large := w >> 3 & ones * 15
			binary.LittleEndian.PutUint64(up[i:], w&(7*ones)&large)
			binary.LittleEndian.PutUint64(down[i:], (8*ones-w&^large)&^large)
		}
	}
}

// affineQ80 splits the signed codes c into max(c, 0) and max(−c, 0).
func affineQ80(codes, less []byte, scales, _ []float32, row []byte) {
	const ones = 0x0101010101010101
	for g := range scales {
		block, up, down := (*[34]byte)(row[34*g:]), (*[32]byte)(codes[32*g:]), (*[32]byte)(less[32*g:])
		scales[g] = halfAt(block[:])
		for i := 0; i < 32; i += 8 {
			w := binary.LittleEndian.Uint64(block[2+i:])
			sign := w >> 7 & ones
			negative := sign * 255
			binary.LittleEndian.PutUint64(up[i:], w&^negative)
			binary.LittleEndian.PutUint64(down[i:], (w^negative)&negative+sign)
		}
	}
}

// affineQ4K separates the codes of two groups that share the bytes of q4_K, and packs those 16 places apart into one byte.
func affineQ4K(codes, _ []byte, scales, biases []float32, row []byte) {
	const low = 0x0f0f0f0f0f0f0f0f
	for g := 0; g < len(scales); g += 4 {
		block := row[g/8*144:][:144]
		s, b := scalesK(block, g/4%2)
		copy(scales[g:], s[:])
		copy(biases[g:], b[:])
		for p := range 2 {
			from, to := (*[32]byte)(block[16+g/4%2*64+32*p:]), (*[32]byte)(codes[16*(g+2*p):])
			for i := 0; i < 16; i += 8 {
				x, y := binary.LittleEndian.Uint64(from[i:]), binary.LittleEndian.Uint64(from[16+i:])
				binary.LittleEndian.PutUint64(to[i:], x&low|y&low<<4)
				binary.LittleEndian.PutUint64(to[16+i:], x>>4&low|y&^low)
			}
		}
	}
}

// scalesK returns what scales the codes of the four groups of half a block of q4_K or q5_K, and what is added.
func scalesK(block []byte, half int) (scales, biases [4]float32) {
	d, least, b := halfAt(block), -halfAt(block[2:]), block[4:16]
	for i := range 4 {
		s, m := b[i]&63, b[4+i]&63
		if half == 1 {
			s, m = b[8+i]&15|b[i]>>6<<4, b[8+i]>>4|b[4+i]>>6<<4
		}
		scales[i], biases[i] = d*float32(s), least*float32(m)
	}
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

// products sets y[i*ldy+j] to the product of row j of n rows of blocks with vector i of x.
func (f *ggmlFormat) products(y []float32, ldy int, rows []byte, x []float32, n, k int, worker *Worker) {
	size := f.size(k)
	if f.affine == nil {
		m := len(x) / k
		scratch := worker.Scratch(ggmlChunk + m)
		for j := range n {
			f.dots(scratch[ggmlChunk:], rows[j*size:][:size], x, k, scratch[:ggmlChunk])
			for i, s := range scratch[ggmlChunk:] {
				y[i*ldy+j] = stored(s)
			}
		}
		return
	}
	a, groups, bytes := f.affine, k/32, k/8*f.affine.bits // of the codes of a row
	scratch := worker.Scratch(k + groups + n*(bytes/2+2*groups+1))
	turned, scratch := scratch[:k], scratch[k:]
	sums, scratch := scratch[:groups], scratch[groups:]
	scales, scratch := scratch[:n*groups], scratch[n*groups:]
	biases, scratch := scratch[:n*groups], scratch[n*groups:]
	taken, codes := scratch[:n], asBytes(scratch[n:])
	codes, less := codes[:n*bytes], codes[n*bytes:]
	clear(biases)
	for j := range n {
		a.set(codes[j*bytes:][:bytes], less[j*bytes:][:bytes], scales[j*groups:][:groups], biases[j*groups:][:groups], rows[j*size:][:size])
	}
	product := simd.MatVecQ4
	if a.bits == 8 {
		product = simd.MatVecQ8
	}
	for ; len(x) > 0; x, y = x[k:], y[min(ldy, len(y)):] {
		v := x[:k]
		if a.bits == 4 {
			for g := 0; g < k; g += 32 {
				from, to := x[g:][:32], turned[g:][:32]
				for i := range 16 {
					to[2*i], to[2*i+1] = from[i], from[16+i]
				}
			}
			v = turned
		}
		simd.GroupSums(sums, v, 32)
		product(y[:n], v, sums, codes, scales, biases, k, 32)
		if a.signed {
			product(taken, v, sums, less, scales, biases, k, 32)
			for j, t := range taken {
				y[j] -= t
			}
		}
		canonical(y[:n])
	}
}

// cost is what m vectors of k elements take with qmvRows rows.
func (f *ggmlFormat) cost(k, m int) float64 {
	weight := 0.9
	if f.affine != nil {
		weight = 0.2
	}
	return 20 + qmvRows*float64(k)*(weight+0.1*float64(m))
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
// Arguments: 0 x f32[M, K], 1 w, rows of blocks; the others and the units are gemm's.
func (f ggmlFormat) mulMM(name string) *Kernel {
	return &Kernel{
		Name: name, Units: gemmUnits,
		Run: func(c *Call, s *Worker, lo, hi int) {
			k, w := c.Int(3), c.Bytes(1)
			scratch := s.Scratch(simd.MatMulScratch + gemmCols*k)
			rows := scratch[simd.MatMulScratch:]
			for u := lo; u < hi; u++ {
				t := tileOf(c, u)
				for j := range t.n {
					f.row(rows[j*k:][:k], w[(t.j+j)*f.size(k):])
				}
				simd.MatMulF32(t.y, t.ldy, t.x, rows[:t.n*k], t.m, t.n, k, scratch[:simd.MatMulScratch])
				t.canonical()
			}
		},
		Cost: func(c *Call) float64 { return gemmCost(c) + gemmCols*float64(c.Int(3)) },
	}
}

// mulMV is the product of vectors with a matrix in blocks:
//
//	y[m,n] = Σ_k x[m,k] * w[n,k]
//
// Arguments: 0 w, rows of blocks, 1 x f32[M, K], 2 y f32[M, N], 3 K, 4 N i32. The
// threadgroups are (ceil(N/8), M). A unit is 8 columns of all results.
func (f ggmlFormat) mulMV(name string) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return ceilDiv(c.Int(4), qmvRows) },
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, m := c.Int(3), c.Int(4), c.Groups[1]
			for j, end := lo*qmvRows, min(hi*qmvRows, n); j < end; j += ggmlRows {
				f.products(c.F32(2)[j:], n, c.Bytes(0)[j*f.size(k):], c.F32(1)[:m*k], min(ggmlRows, end-j), k, worker)
			}
		},
		Cost: func(c *Call) float64 { return f.cost(c.Int(3), c.Groups[1]) },
	}
}

// mulMVID is the product of vectors with matrices in blocks that ids pick from a
// stack:
//
//	y[r,s,n] = Σ_k x[r,s,k] * w[ids[r,s],n,k]
//
// An id outside the stack makes NaN and reads nothing.
//
// Arguments: 0 w, E matrices, 1 x f32[rows, slots, K] under the strides 7 (i64[2]:
// row, slot; 0 shares a row), 2 ids u32[rows, slots], 3 y f32[rows, slots, N], 4 K,
// 5 N, 6 E i32. The threadgroups are (ceil(N/8), slots, rows). A unit is 8 columns
// of a result.
func (f ggmlFormat) mulMVID(name string) *Kernel {
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return ceilDiv(c.Int(5), qmvRows) * c.Groups[1] * c.Groups[2] },
		Run: func(c *Call, worker *Worker, lo, hi int) {
			k, n, slots := c.Int(4), c.Int(5), c.Groups[1]
			blocks := ceilDiv(n, qmvRows)
			for u := lo; u < hi; u++ {
				of, j := u/blocks, u%blocks*qmvRows
				out := c.F32(3)[of*n+j : of*n+min(j+qmvRows, n)]
				id := int(c.U32(2)[of])
				if id >= c.Int(6) {
					fill(out, nan32)
					continue
				}
				x := c.F32(1)[of/slots*c.Long(7, 0)+of%slots*c.Long(7, 1):][:k]
				f.products(out, n, c.Bytes(0)[(id*n+j)*f.size(k):], x, len(out), k, worker)
			}
		},
		Cost: func(c *Call) float64 { return f.cost(c.Int(4), 1) },
	}
}
