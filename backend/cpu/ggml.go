package cpu

import (
	"encoding/binary"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// ggmlFormat is one of GGML's block formats; msl/ggml.metal says what lies where
// in a block.
type ggmlFormat struct {
	name           string
	weights, bytes int // their numbers in a block
	// decode sets dst to the weights of a row from weight `at` on, a multiple of ggmlChunk. The weights are
	// exact, because scale and code together have at most 24 bits.
	decode func(dst []float32, row []byte, at int)
}

// ggmlChunk is the number of weights that are decoded at a time, half a block of q6_K. A sum over so few
// is as accurate as a sum over one block.
const ggmlChunk = 128

var ggmlFormats = []ggmlFormat{
	{"q4_0", 32, 18, decodeQ4},
	{"q8_0", 32, 34, decodeQ8},
	{"q6_K", 256, 210, decodeQ6},
}

func init() {
	for _, f := range ggmlFormats {
		Register(f.mulMV("ggml_mul_mv_"+f.name+"_f32"), f.mulMVID("ggml_mul_mv_id_"+f.name+"_f32"))
	}
}

// codes4, codes6 and codes8 are the values of the codes.
var (
	codes4 [16]float32
	codes6 [64]float32
	codes8 [256]float32
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
	for at := 0; at < k; at += ggmlChunk {
		w := chunk[:min(ggmlChunk, k-at)]
		f.decode(w, row, at)
		for i := range sums {
			sums[i] += simd.Dot(x[i*k+at:][:len(w)], w)
		}
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
			size := k / f.weights * f.bytes
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
			size := k / f.weights * f.bytes
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
