package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl/term"
)

// blocksOf makes n rows of k random weights with ordinary scales.
func blocksOf(f ggmlFormat, r *rand.Rand, n, k int) []byte {
	raw := make([]byte, n*k/f.weights*f.bytes)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	for b := 0; b < len(raw); b += f.bytes {
		for _, at := range halvesOf[f.name] {
			binary.LittleEndian.PutUint16(raw[b+at:], uint16(r.IntN(2)<<15|0x1c00+r.IntN(0x1000)))
		}
		if f.name == "mxfp4" {
			raw[b] = byte(115 + r.IntN(15))
		}
	}
	return raw
}

// halvesOf has where the f16 numbers of a block lie.
var halvesOf = map[string][]int{
	"q4_0": {0}, "q4_1": {0, 2}, "q5_0": {0}, "q5_1": {0, 2}, "q8_0": {0}, "iq4_nl": {0},
	"q2_K": {80, 82}, "q3_K": {108}, "q4_K": {0, 2}, "q5_K": {0, 2}, "q6_K": {208},
}

// The bits of a result depend only on its row and column: not on the number of rows, nor on which of the two kernels
// computes it. Both have the same reduction class. Of 16 bits they are the rounded bits of the product of the widened rows
// in f32.
func TestBitsOfGGMLProducts(t *testing.T) {
	for _, f := range ggmlFormats {
		r := rand.New(rand.NewPCG(3, uint64(f.bytes)))
		const n, e, rows = 13, 3, 5
		k := f.weights * 7
		w := blocksOf(f, r, e*n, k)
		random := make([]float32, rows*k)
		for i := range random {
			random[i] = float32(r.NormFloat64())
		}
		for _, typ := range ggmlVectors() {
			size, x := typ.size(), floatBytes(random)
			if typ.narrow != nil {
				bits := make([]uint16, len(random))
				typ.narrow.to(bits, random)
				x = halfBytes(bits)
			}
			run := func(kernel string, c *Call) []byte {
				p := Lookup(kernel)
				p.Run(c, &Worker{}, 0, p.Units(c))
				if c.Device[3] != nil {
					return c.Device[3]
				}
				return c.Device[2]
			}
			mv := func(expert, first, m int) []byte {
				c := &Call{Groups: [3]int{ceilDiv(n, 8), m, 1}, Group: [3]int{32, 2, 1}}
				c.Device[0] = w[expert*len(w)/e:][:len(w)/e]
				c.Device[1], c.Device[2] = x[first*k*size:(first+m)*k*size], make([]byte, size*m*n)
				c.Constant[3], c.Constant[4] = i32(k), i32(n)
				return run("ggml_mul_mv_"+f.name+"_"+typ.name, c)
			}
			ids := []uint32{2, 0, 1, 1, 0}
			c := &Call{Groups: [3]int{ceilDiv(n, 8), 1, rows}, Group: [3]int{32, 2, 1}}
			c.Device[0], c.Device[1], c.Device[3] = w, x, make([]byte, size*rows*n)
			for _, id := range ids {
				c.Device[2] = binary.LittleEndian.AppendUint32(c.Device[2], id)
			}
			c.Constant[4], c.Constant[5], c.Constant[6], c.Constant[7] = i32(k), i32(n), i32(e), i64(k, 0)
			picked := run("ggml_mul_mv_id_"+f.name+"_"+typ.name, c)
			for row, id := range ids {
				one := mv(int(id), row, 1)
				require.Equal(t, one, picked[row*n*size:][:n*size], "%s %s", f.name, typ.name)
				require.Equal(t, one, mv(int(id), 0, rows)[row*n*size:][:n*size], "%s %s", f.name, typ.name)
			}
			if typ.narrow == nil {
				continue
			}
			c = &Call{Groups: [3]int{ceilDiv(n, 8), rows, 1}, Group: [3]int{32, 2, 1}}
			wide, want := make([]float32, rows*k), make([]uint16, rows*n)
			typ.narrow.from(wide, cast[uint16](x))
			c.Device[0], c.Device[1], c.Device[2] = w[:len(w)/e], floatBytes(wide), make([]byte, 4*rows*n)
			c.Constant[3], c.Constant[4] = i32(k), i32(n)
			typ.narrow.to(want, cast[float32](run("ggml_mul_mv_"+f.name+"_f32", c)))
			require.Equal(t, halfBytes(want), mv(0, 0, rows), "%s %s", f.name, typ.name)
		}
	}
}

// TestSiluMulOfBlocks: silu(gate)·up of two products has the bits that products, silu and a multiplication have one after
// another, of one vector and of more than are widened at a time.
func TestSiluMulOfBlocks(t *testing.T) {
	const n = 21
	for _, f := range ggmlFormats {
		for _, typ := range ggmlVectors() {
			for _, m := range []int{1, ggmlWide + 2} {
				r := rand.New(rand.NewPCG(9, uint64(f.bytes)))
				k := 2 * f.weights
				gate, up := blocksOf(f, r, n, k), blocksOf(f, r, n, k)
				groups, group, elements := [3]int{ceilDiv(n, 8), m, 1}, [3]int{32, 2, 1}, [3]int{m * n, 1, 1}
				run := func(kernel string, args ...any) {
					runKernel(t, "ggml_mul_mv_"+kernel+f.name+"_"+typ.name, groups, group, append(args, int32(k), int32(n))...)
				}
				random := floats(r, m*k)
				for i := range random {
					random[i] /= 4 // so that sigmoids are not all 0 or 1
				}
				if typ.narrow == nil {
					g, u, want, got := make([]float32, m*n), make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)
					run("", gate, random, g)
					run("", up, random, u)
					runKernel(t, "v_Silufloat32float32", elements, elements, g, g, uint32(m*n))
					runKernel(t, "vv_Multiplyfloat32", elements, elements, g, u, want, uint32(m*n))
					run("silu_mul_", gate, up, random, got)
					same(t, want, got, "%s, %d vectors", f.name, m)
					continue
				}
				x, g, u, got := typ.narrow.stored(random), make([]uint16, m*n), make([]uint16, m*n), make([]uint16, m*n)
				run("", gate, x, g)
				run("", up, x, u)
				run("silu_mul_", gate, up, x, got)
				require.Equal(t, stored16(t, "vv_Multiply", *typ.narrow, silu(t, *typ.narrow, g), u), got, "%s_%s, %d vectors", f.name, typ.name, m)
			}
		}
	}
}

// Of more vectors of 16 bits than are widened at a time, each has the product that it has alone.
func TestManyVectorsOf16Bits(t *testing.T) {
	const n, m = 9, 2*ggmlWide + 3
	for _, f := range ggmlFormats {
		r := rand.New(rand.NewPCG(8, uint64(f.bytes)))
		k := f.weights
		w, x := blocksOf(f, r, n, k), make([]uint16, m*k)
		bfloatType.to(x, floats(r, m*k))
		run := func(x []uint16) []byte {
			c := &Call{Groups: [3]int{ceilDiv(n, 8), len(x) / k, 1}, Group: [3]int{32, 2, 1}}
			c.Device[0], c.Device[1], c.Device[2] = w, halfBytes(x), make([]byte, len(x)/k*n*2)
			c.Constant[3], c.Constant[4] = i32(k), i32(n)
			p := Lookup("ggml_mul_mv_" + f.name + "_bf16")
			p.Run(c, &Worker{}, 0, p.Units(c))
			return c.Device[2]
		}
		all := run(x)
		for i := range m {
			require.Equal(t, run(x[i*k:(i+1)*k]), all[2*i*n:][:2*n], "%s, vector %d", f.name, i)
		}
	}
}

func floatBytes(v []float32) (b []byte) {
	for _, x := range v {
		b = append(b, f32(x)...)
	}
	return b
}

// A decoded weight is what its format says, from the smallest scale to the largest: exact, because scale times code
// times d has at most 24 significant bits, or, of formats with biases, rounded once.
func TestDecodedWeights(t *testing.T) {
	nibble := func(b []byte, j int) int { return int(b[j%16] >> (j / 16 * 4) & 15) }
	bit := func(b []byte, j int) int { return int(b[j/8] >> (j % 8) & 1) }
	two := func(b []byte, j int) int { return int(b[j/128*32+j%32] >> (j % 128 / 32 * 2) & 3) }
	four := func(b []byte, j int) int { return int(b[j/64*32+j%32] >> (j % 64 / 32 * 4) & 15) }
	// six is number i of 16 of 6 bits: of eight scales, then of eight minima.
	six := func(b []byte, i int) int {
		if i%8 < 4 {
			return int(b[i/8*4+i%8] & 63)
		}
		return int(b[4+i%8]>>(i/8*4)&15) | int(b[i/8*4+i%8-4]>>6)<<4
	}
	half := func(b []byte) float64 { return term.F16Value(binary.LittleEndian.Uint16(b)) }
	weights := map[string]func(b []byte, j int) float64{
		"q4_0":   func(b []byte, j int) float64 { return half(b) * float64(nibble(b[2:], j)-8) },
		"q4_1":   func(b []byte, j int) float64 { return half(b)*float64(nibble(b[4:], j)) + half(b[2:]) },
		"q5_0":   func(b []byte, j int) float64 { return half(b) * float64(nibble(b[6:], j)+bit(b[2:], j)<<4-16) },
		"q5_1":   func(b []byte, j int) float64 { return half(b)*float64(nibble(b[8:], j)+bit(b[4:], j)<<4) + half(b[2:]) },
		"q8_0":   func(b []byte, j int) float64 { return half(b) * float64(int8(b[2+j])) },
		"iq4_nl": func(b []byte, j int) float64 { return half(b) * float64(codesNL[nibble(b[2:], j)]) },
		"mxfp4": func(b []byte, j int) float64 {
			return math.Ldexp([]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[nibble(b[1:], j)%8]*float64(1-nibble(b[1:], j)/8*2), int(b[0])-127)
		},
		"q2_K": func(b []byte, j int) float64 {
			return half(b[80:])*float64(int(b[j/16]&15)*two(b[16:], j)) - half(b[82:])*float64(b[j/16]>>4)
		},
		"q3_K": func(b []byte, j int) float64 {
			g := j / 16
			s := int(b[96+g%8]>>(g/8*4)&15) | int(b[104+g%4]>>(g/4*2)&3)<<4
			return half(b[108:]) * float64((s-32)*(two(b[32:], j)|int(b[j%32]>>(j/32)&1)<<2-4))
		},
		"q4_K": func(b []byte, j int) float64 {
			return half(b)*float64(six(b[4:], j/32)*four(b[16:], j)) - half(b[2:])*float64(six(b[4:], 8+j/32))
		},
		"q5_K": func(b []byte, j int) float64 {
			code := four(b[48:], j) | int(b[16+j%32]>>(j/32)&1)<<4
			return half(b)*float64(six(b[4:], j/32)*code) - half(b[2:])*float64(six(b[4:], 8+j/32))
		},
		"q6_K": func(b []byte, j int) float64 {
			low, high := b[j/128*64+j%64]>>(j%128/64*4)&15, two(b[128:], j)
			return half(b[208:]) * float64(int(int8(b[192+j/16]))*(int(low)|high<<4-32))
		},
	}
	for _, f := range ggmlFormats {
		r := rand.New(rand.NewPCG(4, uint64(f.bytes)))
		for range 200 {
			row := blocksOf(f, r, 1, 256)
			for b := 0; b < len(row); b += f.bytes {
				for _, at := range halvesOf[f.name] {
					binary.LittleEndian.PutUint16(row[b+at:], uint16(r.IntN(0x7c00)|r.IntN(2)<<15))
				}
				if f.name == "mxfp4" {
					row[b] = byte(r.IntN(256))
				}
			}
			var got [256]float32
			f.row(got[:], row)
			for i, g := range got {
				want := float32(weights[f.name](row[i/f.weights*f.bytes:], i%f.weights))
				require.Equal(t, want, g, "%s weight %d", f.name, i)
			}
		}
	}
}

// The product of several vectors has, to the bit, the sums of rows that are decoded one by one.
func TestMatrixProductsOfBlocksAreThoseOfRows(t *testing.T) {
	forEachImpl(t, func(t *testing.T) {
		for _, f := range ggmlFormats {
			const n, k = gemmCols + 2, 512
			r := rand.New(rand.NewPCG(5, uint64(f.bytes)))
			w, rows := blocksOf(f, r, n, k), make([]float32, n*k)
			for j := range n {
				f.row(rows[j*k:(j+1)*k], w[j*f.size(k):])
			}
			for _, m := range []int{1, 3, 5} {
				x, got, want := floats(r, m*k), make([]float32, m*n), make([]float32, m*n)
				groups := [3]int{ceilDiv(n, 32), ceilDiv(m, 32), 1}
				runKernel(t, "ggml_mul_mm_"+f.name+"_f32", groups, [3]int{1, 1, 1}, x, w, got, int32(k), int32(n), int32(m))
				runKernel(t, "gemm_nt_float32", groups, [3]int{1, 1, 1}, x, rows, want, int32(k), int32(n), int32(m))
				require.Equal(t, want, got, "%s, %d vectors", f.name, m)
				for _, typ := range ggmlVectors()[1:] {
					short, rounded, wide, y := make([]uint16, m*k), make([]uint16, m*n), make([]float32, m*k), make([]uint16, m*n)
					typ.narrow.to(short, x)
					typ.narrow.from(wide, short)
					runKernel(t, "ggml_mul_mm_"+f.name+"_"+typ.name, groups, [3]int{1, 1, 1}, short, w, y, int32(k), int32(n), int32(m))
					runKernel(t, "gemm_nt_float32", groups, [3]int{1, 1, 1}, wide, rows, want, int32(k), int32(n), int32(m))
					typ.narrow.to(rounded, want)
					require.Equal(t, rounded, y, "%s %s, %d vectors", f.name, typ.name, m)
				}
			}
		}
	})
}

func TestHalfAt(t *testing.T) {
	for h := range 1 << 16 {
		got, want := halfAt([]byte{byte(h), byte(h >> 8)}), term.F16Value(uint16(h))
		if want != want {
			require.True(t, got != got, "%#x", h)
			continue
		}
		require.Equal(t, math.Float32bits(float32(want)), math.Float32bits(got), "%#x", h)
	}
}

func BenchmarkGGML(b *testing.B) {
	for _, f := range ggmlFormats {
		for _, m := range []int{1, 8} {
			const n, k = 576, 1536
			for _, typ := range ggmlVectors() {
				b.Run(fmt.Sprintf("%s_%s/%dx%dx%d", f.name, typ.name, m, n, k), func(b *testing.B) {
					c := &Call{Groups: [3]int{n / 8, m, 1}, Group: [3]int{32, 2, 1}}
					c.Device[0] = blocksOf(f, rand.New(rand.NewPCG(1, 1)), n, k)
					c.Device[1], c.Device[2] = make([]byte, typ.size()*m*k), make([]byte, typ.size()*m*n)
					c.Constant[3], c.Constant[4] = i32(k), i32(n)
					kernel, w := Lookup("ggml_mul_mv_"+f.name+"_"+typ.name), &Worker{}
					for b.Loop() {
						kernel.Run(c, w, 0, kernel.Units(c))
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*k), "ns/weight")
				})
			}
		}
	}
}
