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
	// scale is what the weights of a chunk are still to be multiplied by, or nil: what mxfp4's codes are, of which the
	// products alone may fit an f32.
	scale func(row []byte, at int) float32
}

// ggmlChunk is half a block of 256.
const ggmlChunk = 128

// Those with loops of their own come first; the others' are written for their length.
var ggmlFormats = []ggmlFormat{
	{"q4_0", 32, 18, ggmlChunk, decodeQ4, nil},
	{"q8_0", 32, 34, ggmlChunk, decodeQ8, nil},
	{"q6_K", 256, 210, ggmlChunk, decodeQ6, nil},
	{"q4_K", 256, 144, ggmlChunk, decodeQ4K, nil},
	{"q5_K", 256, 176, ggmlChunk, decodeQ5K, nil},
	{"q4_1", 32, 20, ggmlChunk, nibbles(20, 4, func(block []byte, _, code int) float32 {
		return float32(halfAt(block)*float32(code)) + halfAt(block[2:])
	}), nil},
	{"q5_0", 32, 22, ggmlChunk, nibbles(22, 6, func(block []byte, j, code int) float32 {
		return halfAt(block) * float32(code+fifth(block[2:], j)-16)
	}), nil},
	{"q5_1", 32, 24, ggmlChunk, nibbles(24, 8, func(block []byte, j, code int) float32 {
		return float32(halfAt(block)*float32(code+fifth(block[4:], j))) + halfAt(block[2:])
	}), nil},
	{"iq4_nl", 32, 18, ggmlChunk, nibbles(18, 2, func(block []byte, _, code int) float32 {
		return halfAt(block) * codesNL[code]
	}), nil},
	{"mxfp4", 32, 17, 32, nibbles(17, 1, func(_ []byte, _, code int) float32 { return codesE2M1[code] }), scaleE8M0},
	{"q2_K", 256, 84, ggmlChunk, quarters(func(block []byte, j int) float32 {
		s, code := block[j/16], block[16+j/128*32+j%32]>>(j/32%4*2)&3
		return float32(halfAt(block[80:])*float32(int(s&15)*int(code))) - float32(halfAt(block[82:])*float32(s>>4))
	}, 84), nil},
	{"q3_K", 256, 110, ggmlChunk, quarters(func(block []byte, j int) float32 {
		g := j / 16
		s := block[96+g%8]>>(g/8*4)&15 | block[104+g%4]>>(g/4*2)&3<<4
		code := block[32+j/128*32+j%32]>>(j/32%4*2)&3 | block[j%32]>>(j/32)&1<<2
		return float32(halfAt(block[108:])*float32(int(s)-32)) * float32(int(code)-4)
	}, 110), nil},
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

// codes4, codes6 and codes8 are the values of the codes.
var (
	codes4 [16]float32
	codes6 [64]float32
	codes8 [256]float32

	codesNL   = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	codesE2M1 = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12} // doubled
)

func init() {
	for i := range codes4 {
		codes4[i] = float32(i - 8)
	}
	for i := range codes6 {
		codes6[i] = float32(i - 32)
	}
	for i := range codes8 {
		codes8[i] = float32(int8(i))
	}
}

// nibbles decodes blocks of 32 codes of 4 bits that begin with byte `from`: weight makes weight j of a block of its
// code.
func nibbles(bytes, from int, weight func(block []byte, j, code int) float32) func(dst []float32, row []byte, at int) {
	return func(dst []float32, row []byte, at int) {
		for row = row[at/32*bytes:]; len(dst) >= 32; row, dst = row[bytes:], dst[32:] {
			block := row[:bytes]
			for j, c := range block[from:][:16] {
				dst[j], dst[16+j] = weight(block, j, int(c&15)), weight(block, 16+j, int(c>>4))
			}
		}
	}
}

// fifth returns bit j of 32 as bit 4.
func fifth(bits []byte, j int) int { return int(bits[j/8]>>(j%8)&1) << 4 }

// scaleE8M0 returns half of the scale of a block, 2^(its first byte − 127).
func scaleE8M0(row []byte, at int) float32 {
	e := uint32(row[at/32*17])
	if e < 2 {
		return math.Float32frombits(0x200000 << e)
	}
	return math.Float32frombits((e - 1) << 23)
}

// quarters decodes blocks of 256 weights one by one.
func quarters(weight func(block []byte, j int) float32, bytes int) func(dst []float32, row []byte, at int) {
	return func(dst []float32, row []byte, at int) {
		for i := range dst {
			dst[i] = weight(row[(at+i)/256*bytes:][:bytes], (at+i)%256)
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
			low[i], high[i] = float32(s*float32(c&15))+m, float32(t*float32(c>>4))+n
		}
	}
}

// decodeQ5K decodes half a block.
func decodeQ5K(dst []float32, row []byte, at int) {
	block, half := row[at/256*176:][:176], at/128%2
	scales, biases := scalesK(block, half)
	for i := range dst {
		g := i / 32
		code := block[48+64*half+g/2*32+i%32]>>(g%2*4)&15 | block[16+i%32]>>(4*half+g)&1<<4
		dst[i] = float32(scales[g]*float32(code)) + biases[g]
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
	v, h := [1]float32{}, [1]uint16{binary.LittleEndian.Uint16(b)}
	halfTo(v[:], h[:])
	return v[0]
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
			scratch := worker.Scratch(ggmlChunk + m)
			chunk, sums := scratch[:ggmlChunk], scratch[ggmlChunk:]
			w, x, y := c.Bytes(0), c.F32(1), c.F32(2)
			size := f.size(k)
			for j := lo * qmvRows; j < min(hi*qmvRows, n); j++ {
				f.dots(sums, w[j*size:][:size], x, k, chunk)
				for i, s := range sums {
					y[i*n+j] = stored(s)
				}
			}
		},
		Cost: func(c *Call) float64 { return 20 + qmvRows*float64(c.Int(3))*(1+0.1*float64(c.Groups[1])) },
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
			chunk := worker.Scratch(ggmlChunk)
			size := f.size(k)
			for u := lo; u < hi; u++ {
				of, j := u/blocks, u%blocks*qmvRows
				out := c.F32(3)[of*n+j : of*n+min(j+qmvRows, n)]
				id := int(c.U32(2)[of])
				if id >= c.Int(6) {
					fill(out, nan32)
					continue
				}
				x := c.F32(1)[of/slots*c.Long(7, 0)+of%slots*c.Long(7, 1):][:k]
				for i := range out {
					f.dots(out[i:i+1], c.Bytes(0)[(id*n+j+i)*size:][:size], x, k, chunk)
				}
				canonical(out)
			}
		},
		Cost: func(c *Call) float64 { return 20 + qmvRows*float64(c.Int(4))*1.1 },
	}
}
