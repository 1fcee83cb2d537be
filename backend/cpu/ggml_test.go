package cpu

import (
	"encoding/binary"
	"fmt"
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
		binary.LittleEndian.PutUint16(raw[b+f.scaleAt():], uint16(r.IntN(2)<<15|0x1c00+r.IntN(0x1000)))
	}
	return raw
}

func (f ggmlFormat) scaleAt() int {
	if f.name == "q6_K" {
		return 208
	}
	return 0
}

// The bits of a result depend only on its row and column: not on the number of rows, nor on which of the two kernels
// computes it. Both have the same reduction class.
func TestBitsOfGGMLProducts(t *testing.T) {
	for _, f := range ggmlFormats {
		r := rand.New(rand.NewPCG(3, uint64(f.bytes)))
		const n, e, rows = 13, 3, 5
		k := f.weights * 7
		w := blocksOf(f, r, e*n, k)
		x := make([]float32, rows*k)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		run := func(kernel string, c *Call) []float32 {
			p := Lookup(kernel)
			p.Run(c, &Worker{}, 0, p.Units(c))
			out := 2
			if c.Device[3] != nil {
				out = 3
			}
			return c.F32(out)
		}
		mv := func(expert, first, m int) []float32 {
			c := &Call{Groups: [3]int{ceilDiv(n, 8), m, 1}, Group: [3]int{32, 2, 1}}
			c.Device[0] = w[expert*len(w)/e:][:len(w)/e]
			c.Device[1], c.Device[2] = floatBytes(x[first*k:(first+m)*k]), make([]byte, 4*m*n)
			c.Constant[3], c.Constant[4] = i32(k), i32(n)
			return run("ggml_mul_mv_"+f.name+"_f32", c)
		}
		ids := []uint32{2, 0, 1, 1, 0}
		c := &Call{Groups: [3]int{ceilDiv(n, 8), 1, rows}, Group: [3]int{32, 2, 1}}
		c.Device[0], c.Device[1], c.Device[3] = w, floatBytes(x), make([]byte, 4*rows*n)
		for _, id := range ids {
			c.Device[2] = binary.LittleEndian.AppendUint32(c.Device[2], id)
		}
		c.Constant[4], c.Constant[5], c.Constant[6], c.Constant[7] = i32(k), i32(n), i32(e), i64(k, 0)
		picked := run("ggml_mul_mv_id_"+f.name+"_f32", c)
		for row, id := range ids {
			one := mv(int(id), row, 1)
			require.Equal(t, one, picked[row*n:][:n], f.name)
			require.Equal(t, one, mv(int(id), 0, rows)[row*n:][:n], f.name)
		}
	}
}

func floatBytes(v []float32) (b []byte) {
	for _, x := range v {
		b = append(b, f32(x)...)
	}
	return b
}

// A decoded weight is exact, because scale times code times d has at most 24 significant bits, from the smallest
// d to the largest.
func TestDecodedWeightsAreExact(t *testing.T) {
	for _, f := range ggmlFormats {
		r := rand.New(rand.NewPCG(4, uint64(f.bytes)))
		for range 200 {
			row := blocksOf(f, r, 1, 256)
			for b := 0; b < len(row); b += f.bytes {
				binary.LittleEndian.PutUint16(row[b+f.scaleAt():], uint16(r.IntN(0x7c00)|r.IntN(2)<<15))
			}
			var got [256]float32
			f.decode(got[:ggmlChunk], row, 0)
			f.decode(got[ggmlChunk:], row, ggmlChunk)
			for i, g := range got {
				b := row[i/f.weights*f.bytes:]
				want := term.F16Value(binary.LittleEndian.Uint16(b[f.scaleAt():]))
				switch j := i % f.weights; f.name {
				case "q4_0":
					want *= float64(b[2+j%16]>>(j/16*4)&15) - 8
				case "q8_0":
					want *= float64(int8(b[2+j]))
				default:
					low, high := b[j/128*64+j%64]>>(j/64%2*4)&15, b[128+j/128*32+j%32]>>(j/32%4*2)&3
					want *= float64(int8(b[192+j/16])) * (float64(low|high<<4) - 32)
				}
				require.Equal(t, want, float64(g), "%s weight %d", f.name, i)
			}
		}
	}
}

func BenchmarkGGML(b *testing.B) {
	for _, f := range ggmlFormats {
		for _, m := range []int{1, 8} {
			const n, k = 576, 1536
			b.Run(fmt.Sprintf("%s/%dx%dx%d", f.name, m, n, k), func(b *testing.B) {
				c := &Call{Groups: [3]int{n / 8, m, 1}, Group: [3]int{32, 2, 1}}
				c.Device[0] = blocksOf(f, rand.New(rand.NewPCG(1, 1)), n, k)
				c.Device[1], c.Device[2] = make([]byte, 4*m*k), make([]byte, 4*m*n)
				c.Constant[3], c.Constant[4] = i32(k), i32(n)
				kernel, w := Lookup("ggml_mul_mv_"+f.name+"_f32"), &Worker{}
				for b.Loop() {
					kernel.Run(c, w, 0, kernel.Units(c))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*k), "ns/weight")
			})
		}
	}
}
