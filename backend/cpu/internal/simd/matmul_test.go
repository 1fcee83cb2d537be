package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// dirty is scratch full of NaNs: whatever of it is read before it is written
// shows.
func dirty(g *guard) []float32 {
	s := g.floats(MatMulScratch)
	for i := range s {
		s[i] = nan
	}
	return s
}

// canary fills what lies between the rows of y.
const canary = 12345

func newOutput(g *guard, m, n, ldy int) []float32 {
	y := g.floats(max(0, (m-1)*ldy+n))
	for i := range y {
		y[i] = canary
	}
	return y
}

func checkGaps(t require.TestingT, y []float32, n, ldy int) {
	for i, v := range y {
		if ldy > 0 && i%ldy >= n {
			require.Equal(t, float32(canary), v, "y[%d] lies between rows of %d of %d", i, n, ldy)
		}
	}
}

func TestMatMulProperty(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		rapid.Check(t, func(t *rapid.T) {
			defer g.release()
			group := rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "group")
			k := group * rapid.IntRange(0, 8).Draw(t, "groups")
			n := rapid.IntRange(0, 100).Draw(t, "n")
			rows := rapid.IntRange(0, 17).Draw(t, "m")
			ldy := n + rapid.IntRange(0, 3).Draw(t, "gap")
			bits := rapid.SampledFrom([]int{4, 8}).Draw(t, "bits")
			r := rng(rapid.Uint64().Draw(t, "seed"))
			fill := fills[rapid.IntRange(0, len(fills)-1).Draw(t, "numbers")]
			m := newMatrix(g, bits, n, k, group).randomize(r, random)
			x, y := fill.fn(r, g.floats(rows*k)), newOutput(g, rows, n, ldy)
			m.matMul(y, ldy, x, rows, dirty(g))
			for i := range rows {
				for j := range n {
					want, magnitude := m.dot(x[i*k:(i+1)*k], j)
					near(t, want, magnitude, y[i*ldy+j], "%v, m = %d, row %d of x, %d of w", m, rows, i, j)
				}
			}
			if rows > 0 {
				checkGaps(t, y, n, ldy)
			}
		})
	})
}

// Around the borders of a panel and of a block of columns.
func TestMatMulShapes(t *testing.T) {
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		for _, k := range []int{576 / group * group, blockCols - group, blockCols, blockCols + group, 2*blockCols + group} {
			for i, n := range []int{1, 7, 8, 15, 16, 17, 23, 24, 25, 47, 48, 49, 97} {
				rows := 1 + i%9
				r := rng(uint64(n))
				m := newMatrix(g, bits, n, k, group).randomize(r, random)
				x, y := random(r, g.floats(rows*k)), newOutput(g, rows, n, n)
				m.matMul(y, n, x, rows, dirty(g))
				for j := range n {
					i := j % rows // all rows of w, and each row of x now and then
					want, magnitude := m.dot(x[i*k:(i+1)*k], j)
					near(t, want, magnitude, y[i*n+j], "%v, m = %d, row %d of x, %d of w", m, rows, i, j)
				}
				g.release()
			}
		}
	})
}

// With the unit matrix for x the product is wᵀ: every weight, exactly.
func TestMatMulUnpacks(t *testing.T) {
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		m := newMatrix(g, bits, 53, 2*group, group).randomize(rng(1), random)
		for i := range m.scales {
			m.scales[i], m.biases[i] = float32(i%3+1), float32(-i)
		}
		x, y := g.floats(m.k*m.k), g.floats(m.k*m.n)
		for e := range m.k {
			x[e*m.k+e] = 1
		}
		m.matMul(y, m.n, x, m.k, dirty(g))
		for e := range m.k {
			for j := range m.n {
				i := (j*m.k + e) / m.group
				require.Equal(t, m.scales[i]*float32(m.q(j, e))+m.biases[i], y[e*m.n+j], "%v, weight %d of row %d", m, e, j)
			}
		}
	})
}

func TestMatMulF32(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		rapid.Check(t, func(t *rapid.T) {
			defer g.release()
			k := rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(blockCols-2, blockCols+5)).Draw(t, "k")
			n, m := rapid.IntRange(0, 60).Draw(t, "n"), rapid.IntRange(0, 17).Draw(t, "m")
			ldy := n + rapid.IntRange(0, 3).Draw(t, "gap")
			r := rng(rapid.Uint64().Draw(t, "seed"))
			fill := fills[rapid.IntRange(0, len(fills)-1).Draw(t, "numbers")]
			x, w, y := fill.fn(r, g.floats(m*k)), random(r, g.floats(n*k)), newOutput(g, m, n, ldy)
			MatMulF32(y, ldy, x, w, m, n, k, dirty(g))
			for i := range m {
				for j := range n {
					var want, magnitude float64
					for e := range k {
						p := float64(x[i*k+e]) * float64(w[j*k+e])
						want, magnitude = want+p, magnitude+math.Abs(p)
					}
					near(t, want, magnitude, y[i*ldy+j], "m = %d, n = %d, k = %d, row %d of x, %d of w", m, n, k, i, j)
				}
			}
			if m > 0 {
				checkGaps(t, y, n, ldy)
			}
		})
	})
}

// A NaN in a row of x spoils that row of y, one in a row of w that column, and
// nothing else.
func TestMatMulNotFinite(t *testing.T) {
	sample.Seldom(t)
	each(t, func(t *testing.T, g *guard) {
		const m, n, k = 13, 51, 40
		x, w, y := random(rng(1), g.floats(m*k)), random(rng(2), g.floats(n*k)), g.floats(m*n)
		scratch := dirty(g)
		for i := range m {
			for j := range n {
				oldX, oldW := x[i*k+j%k], w[j*k+i]
				x[i*k+j%k], w[j*k+i] = nan, inf
				MatMulF32(y, n, x, w, m, n, k, scratch)
				for at, v := range y {
					bad := math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)
					require.Equal(t, at/n == i || at%n == j, bad, "row %d, column %d: %v at %d, %d", i, j, v, at/n, at%n)
				}
				x[i*k+j%k], w[j*k+i] = oldX, oldW
			}
		}
	})
}

func TestMatMulLengths(t *testing.T) {
	f := func(n int) []float32 { return make([]float32, n) }
	s := f(MatMulScratch)
	for want, call := range map[string]func(){
		"simd: MatMulF32: m = -1, n = 1, k = 1, ldy = 1: want 0 to 2147483647":    func() { MatMulF32(f(1), 1, f(1), f(1), -1, 1, 1, s) },
		"simd: MatMulF32: len(x) = 5, want m*k = 2*3":                             func() { MatMulF32(f(4), 2, f(5), f(6), 2, 2, 3, s) },
		"simd: MatMulF32: len(w) = 5, want n*k = 2*3":                             func() { MatMulF32(f(4), 2, f(6), f(5), 2, 2, 3, s) },
		"simd: MatMulF32: ldy = 1 is less than n = 2":                             func() { MatMulF32(f(4), 1, f(6), f(6), 2, 2, 3, s) },
		"simd: MatMulF32: len(y) = 4, want at least (m-1)*ldy+n = 5":              func() { MatMulF32(f(4), 3, f(6), f(6), 2, 2, 3, s) },
		"simd: MatMulF32: len(scratch) = 7, want at least 19584":                  func() { MatMulF32(f(4), 2, f(6), f(6), 2, 2, 3, f(7)) },
		"simd: MatMulQ4: len(w) = 15, want 16 for 1 rows of 32 weights of 4 bits": func() { MatMulQ4(f(2), 1, f(64), make([]byte, 15), f(1), f(1), 2, 1, 32, 32, s) },
		"simd: MatMulQ8: len(w) = 31, want 32 for 1 rows of 32 weights of 8 bits": func() { MatMulQ8(f(2), 1, f(64), make([]byte, 31), f(1), f(1), 2, 1, 32, 32, s) },
	} {
		assert.PanicsWithValue(t, want, call)
	}
}

// The product with weights that are rounded to 16 bits is, to the bit, that with such weights as float32.
func TestMatMulNarrow(t *testing.T) {
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		for i, n := range []int{1, 15, 16, 25, 48, 49} {
			r := rng(uint64(n))
			k, rows, narrow, round := []int{128, blockCols + 128}[i%2], FewRows+i, Half, RoundHalf
			if i%3 == 0 {
				narrow, round = BFloat, RoundBFloat
			}
			m := newMatrix(g, bits, n, k, group).randomize(r, random)
			round(m.scales)
			round(m.biases)
			w := g.floats(n * k)
			for e := range w {
				q, at := float32(m.q(e/k, e%k)), e/group
				w[e] = float32(m.scales[at]*q) + m.biases[at]
			}
			round(w)
			x, y, want := random(r, g.floats(rows*k)), newOutput(g, rows, n, n), newOutput(g, rows, n, n)
			MatMulNarrow(narrow, bits, y, n, x, m.w, m.scales, m.biases, rows, n, k, group, dirty(g))
			MatMulF32(want, n, x, w, rows, n, k, dirty(g))
			require.Equal(t, want, y, "%v, m = %d", m, rows)
			g.release()
		}
	})
}
