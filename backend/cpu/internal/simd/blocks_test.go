package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A blockMatrix is n rows of k weights in blocks, with their scales and biases: those of blocks of 32 are in these too.
type blockMatrix struct {
	Blocks
	n, k           int
	w              []byte
	scales, biases []float32
}

// eachBlocks runs a test with all formats.
func eachBlocks(t *testing.T, test func(t *testing.T, g *guard, f Blocks)) {
	t.Helper()
	each(t, func(t *testing.T, g *guard) {
		for f := range blocks {
			test(t, g, Blocks(f))
			g.release()
		}
	})
}

// newBlocks has random codes, and f16s as scales and biases, whose products with codes are exact.
func newBlocks(f Blocks, r *rand.Rand, n, k int, bytes func(int) []byte, floats func(int) []float32) *blockMatrix {
	b := blocks[f]
	m := &blockMatrix{Blocks: f, n: n, k: k, w: bytes(n * f.size(k)), scales: random(r, floats(n*k/b.group))}
	roundHalfGeneric(m.scales)
	if b.biased {
		m.biases = random(r, floats(n*k/b.group))
		roundHalfGeneric(m.biases)
	}
	for i := range m.w {
		m.w[i] = byte(r.Uint32())
	}
	for i := 0; i < len(m.scales) && b.weights == 32; i++ {
		var h [2]uint16
		toHalfGeneric(h[:1], m.scales[i:i+1])
		m.w[i*b.bytes], m.w[i*b.bytes+1] = byte(h[0]), byte(h[0]>>8)
		if b.biased {
			toHalfGeneric(h[1:], m.biases[i:i+1])
			m.w[i*b.bytes+2], m.w[i*b.bytes+3] = byte(h[1]), byte(h[1]>>8)
		}
	}
	return m
}

// q is the code of weight e of row j, straight from the layout's definition.
func (m *blockMatrix) q(j, e int) int {
	b := blocks[m.Blocks]
	block, i := m.w[j*m.size(m.k)+e/b.weights*b.bytes:], e%b.weights
	switch m.Blocks {
	case Q80:
		return int(int8(block[2+i]))
	case Q4K:
		return int(block[16+i/64*32+i%32] >> (i % 64 / 32 * 4) & 15)
	case Q6K:
		half, quarter, l := i/128, i%128/32, i%32
		low := block[64*half+quarter%2*32+l] >> (quarter / 2 * 4) & 15
		return int(low|block[128+32*half+l]>>(2*quarter)&3<<4) - 32
	case Q40:
		return int(block[2+i%16]>>(i/16*4)&15) - 8
	default:
		return int(block[4+i%16] >> (i / 16 * 4) & 15)
	}
}

func (m *blockMatrix) weight(j, e int) float64 {
	g := (j*m.k + e) / blocks[m.Blocks].group
	w := float64(m.scales[g]) * float64(m.q(j, e))
	if m.biases != nil {
		w += float64(m.biases[g])
	}
	return w
}

func (m *blockMatrix) dot(x []float32, j int) (sum, magnitude float64) {
	for e, v := range x {
		p := m.weight(j, e) * float64(v)
		sum, magnitude = sum+p, magnitude+math.Abs(p)
		if m.biases != nil {
			magnitude += 2 * math.Abs(float64(m.biases[(j*m.k+e)/32])*float64(v))
		}
	}
	return sum, magnitude
}

// matVec is the product with rows from j on.
func (m *blockMatrix) matVec(y, x []float32, j int) {
	xsum := make([]float32, m.k/32)
	groupSumsGeneric(xsum, x, 32)
	row, groups, n := m.size(m.k), m.k/blocks[m.Blocks].group, len(y)
	var biases []float32
	if m.biases != nil {
		biases = m.biases[j*groups : (j+n)*groups]
	}
	MatVecBlocks(m.Blocks, y, x, xsum, m.w[j*row:(j+n)*row], m.scales[j*groups:(j+n)*groups], biases, m.k)
}

// Shapes; and a row has the same sum wherever it stands.
func TestMatVecOfBlocks(t *testing.T) {
	eachBlocks(t, func(t *testing.T, g *guard, f Blocks) {
		for i := range 40*32/blocks[f].weights + 4 {
			r := rng(uint64(i))
			k, n := i*blocks[f].weights, i%10
			m := newBlocks(f, r, n, k, g.bytes, g.floats)
			x, y, one := random(r, g.floats(k)), g.floats(n), g.floats(1)
			m.matVec(y, x, 0)
			for j, v := range y {
				want, magnitude := m.dot(x, j)
				near(t, want, magnitude, v, "%v, k = %d, row %d", f, k, j)
				m.matVec(one, x, j)
				require.Equal(t, v, one[0], "%v, k = %d, row %d alone", f, k, j)
			}
			g.release()
		}
	})
}

// With one element of x equal to 1 the result is that weight, exactly; what is not finite shows.
func TestMatVecOfBlocksUnpacks(t *testing.T) {
	eachBlocks(t, func(t *testing.T, g *guard, f Blocks) {
		r := rng(3)
		m := newBlocks(f, r, 5, 3*blocks[f].weights, g.bytes, g.floats)
		x, y := g.floats(m.k), g.floats(m.n)
		for e := range x {
			x[e] = 1
			m.matVec(y, x, 0)
			for j, v := range y {
				require.Equal(t, float32(m.weight(j, e)), v, "%v, weight %d of row %d", f, e, j)
			}
			x[e] = nan
			m.matVec(y, x, 0)
			for j, v := range y {
				require.True(t, math.IsNaN(float64(v)), "%v, NaN %d, row %d", f, e, j)
			}
			x[e] = 0
		}
	})
}

// The product of many rows of x is, to the bit, that with the same weights as float32.
func TestMatMulOfBlocks(t *testing.T) {
	eachBlocks(t, func(t *testing.T, g *guard, f Blocks) {
		if f == Q6K {
			return
		}
		for i, n := range []int{1, 15, 16, 25, 48, 49} {
			r := rng(uint64(n))
			k, rows := []int{256, blockCols + 128, 2 * blockCols}[i%3], FewRows+i
			if i == 2 {
				rows = 65 // from 64 on blocks of columns are longer
			}
			m := newBlocks(f, r, n, k, g.bytes, g.floats)
			biases := m.biases
			if biases == nil {
				biases = g.floats(len(m.scales))
				ScaleTo(biases, -map[Blocks]float32{Q40: 8, Q80: 128}[f], m.scales)
			}
			w := g.floats(n * k)
			for e := range w {
				w[e] = float32(m.weight(e/k, e%k))
			}
			x, y, want := random(r, g.floats(rows*k)), newOutput(g, rows, n, n), newOutput(g, rows, n, n)
			MatMulBlocks(f, y, n, x, m.w, m.scales, biases, rows, n, k, dirty(g))
			MatMulF32(want, n, x, w, rows, n, k, dirty(g))
			require.Equal(t, want, y, "%v, n = %d, m = %d", f, n, rows)
			g.release()
		}
	})
}

// The weights of a row, exactly.
func TestRowQ6K(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for n := range 4 {
			m := newBlocks(Q6K, rng(uint64(n)), 1, 256*n, g.bytes, g.floats)
			dst := g.floats(256 * n)
			RowQ6K(dst, m.w, m.scales)
			for e, v := range dst {
				require.Equal(t, m.weight(0, e), float64(v), "weight %d of %d", e, len(dst))
			}
			g.release()
		}
	})
}

// Of all codes, exactly.
func TestGroupsQ8(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for n := range 12 {
			r := rng(uint64(n))
			dst, w, scales := g.floats(32*n), g.bytes(32*n), random(r, g.floats(n))
			RoundHalf(scales)
			for i := range w {
				w[i] = byte(r.Uint32())
			}
			GroupsQ8(dst, w, scales)
			for e, v := range dst {
				require.Equal(t, scales[e/32]*float32(int8(w[e])), v, "element %d of %d", e, len(dst))
			}
			g.release()
		}
	})
}

func TestHalvesAt(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for n := range 40 {
			stride := 2 + 2*(n%9)
			src, dst, want := g.bytes(max(0, (n-1)*stride+2)), g.floats(n), make([]float32, n)
			r := rng(uint64(n))
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			HalvesAt(dst, src, stride)
			halvesAtGeneric(want, src, stride)
			require.Equal(t, bits(want), bits(dst), "n = %d, stride = %d", n, stride)
			g.release()
		}
	})
}

func TestBlocksLengths(t *testing.T) {
	require.PanicsWithValue(t, "simd: HalvesAt: len(src) = 5, want at least (len(dst)-1)*stride+2 = 1*4+2", func() {
		HalvesAt(make([]float32, 2), make([]byte, 5), 4)
	})
	require.PanicsWithValue(t, "simd: MatVecBlocks: len(w) = 19, want 20 for 1 rows of Q41", func() {
		MatVecBlocks(Q41, make([]float32, 1), make([]float32, 32), make([]float32, 1), make([]byte, 19), nil, nil, 32)
	})
	require.PanicsWithValue(t, "simd: MatVecBlocks: len(scales) = 8, len(biases) = 0, want 8 for 1 rows of Q4K", func() {
		MatVecBlocks(Q4K, make([]float32, 1), make([]float32, 256), make([]float32, 8), make([]byte, 144), make([]float32, 8), nil, 256)
	})
	require.PanicsWithValue(t, "simd: MatVecBlocks: k = 40 is no multiple of 32, the weights of a block of Q40", func() {
		MatVecBlocks(Q40, nil, make([]float32, 40), nil, nil, nil, nil, 40)
	})
	require.Panics(t, func() { MatMulBlocks(Q80, nil, 0, nil, nil, nil, nil, 3, 0, 0, make([]float32, MatMulScratch)) })
	require.Panics(t, func() { ScalesK(make([]float32, 8), make([]float32, 8), make([]byte, 143), 144) })
	require.Panics(t, func() { ScalesQ6K(make([]float32, 16), make([]byte, 209)) })
	require.Panics(t, func() { GroupsQ8(make([]float32, 64), make([]byte, 32), make([]float32, 2)) })
	require.Panics(t, func() { RowQ6K(make([]float32, 256), make([]byte, 209), make([]float32, 16)) })
}

// TestScales: those of K-quants, to the bit.
func TestScales(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for n := range 6 {
			testScales(t, n, g.bytes, g.floats, ScalesQ6K, ScalesK)
			g.release()
		}
	})
}

func testScales(t *testing.T, n int, bytes func(int) []byte, floats func(int) []float32, q6 func([]float32, []byte), k func(scales, biases []float32, w []byte, stride int)) {
	t.Helper()
	r := rng(uint64(n))
	for _, stride := range []int{144, 176, 210} {
		w := bytes(n * stride)
		for i := range w {
			w[i] = byte(r.Uint32())
		}
		for b := range n {
			for _, at := range []int{0, 2, stride - 2} {
				w[b*stride+at+1] &= 0xbf // finite
			}
		}
		if stride == 210 {
			got, want := floats(16*n), make([]float32, 16*n)
			scalesQ6KGeneric(want, w, n)
			q6(got, w)
			require.Equal(t, bits(want), bits(got), "q6_K, %d blocks", n)
			continue
		}
		scales, biases, wantScales, wantBiases := floats(8*n), floats(8*n), make([]float32, 8*n), make([]float32, 8*n)
		scalesKGeneric(wantScales, wantBiases, w, n, stride)
		k(scales, biases, w, stride)
		require.Equal(t, bits(wantScales), bits(scales), "%d blocks of %d bytes", n, stride)
		require.Equal(t, bits(wantBiases), bits(biases), "%d blocks of %d bytes", n, stride)
	}
}
