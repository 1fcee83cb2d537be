package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A matrix is n quantized rows of k weights.
type matrix struct {
	bits, n, k, group int
	w                 []byte
	scales, biases    []float32
}

func newMatrix(g *guard, bits, n, k, group int) *matrix {
	return &matrix{bits: bits, n: n, k: k, group: group, w: g.bytes(n * k / 8 * bits),
		scales: g.floats(n * k / group), biases: g.floats(n * k / group)}
}

func (m *matrix) randomize(r *rand.Rand, fill func(*rand.Rand, []float32) []float32) *matrix {
	for i := range m.w {
		m.w[i] = byte(r.Uint32())
	}
	fill(r, m.scales)
	fill(r, m.biases)
	return m
}

// q is weight e of row j before scaling, straight from the layout's definition.
func (m *matrix) q(j, e int) int {
	if m.bits == 8 {
		return int(m.w[j*m.k+e])
	}
	at := j*m.k/2 + e/8*4
	word := uint32(m.w[at]) | uint32(m.w[at+1])<<8 | uint32(m.w[at+2])<<16 | uint32(m.w[at+3])<<24
	return int(word >> (4 * (e % 8)) & 15)
}

// dot is the exact product (to float64) of x and row j, and the sum of the
// absolute values of its terms.
func (m *matrix) dot(x []float32, j int) (sum, magnitude float64) {
	for e, v := range x {
		g := (j*m.k + e) / m.group
		a, b := float64(m.scales[g])*float64(m.q(j, e))*float64(v), float64(m.biases[g])*float64(v)
		sum, magnitude = sum+a+b, magnitude+math.Abs(a)+math.Abs(b)
	}
	return sum, magnitude
}

func (m *matrix) matVec(g *guard, y, x []float32) {
	xsum := g.floats(m.k / m.group)
	GroupSums(xsum, x, m.group)
	if m.bits == 4 {
		MatVecQ4(y, x, xsum, m.w, m.scales, m.biases, m.k, m.group)
	} else {
		MatVecQ8(y, x, xsum, m.w, m.scales, m.biases, m.k, m.group)
	}
}

func (m *matrix) matMul(y []float32, ldy int, x []float32, rows int, scratch []float32) {
	if m.bits == 4 {
		MatMulQ4(y, ldy, x, m.w, m.scales, m.biases, rows, m.n, m.k, m.group, scratch)
	} else {
		MatMulQ8(y, ldy, x, m.w, m.scales, m.biases, rows, m.n, m.k, m.group, scratch)
	}
}

func (m *matrix) String() string {
	return fmt.Sprintf("%d bits, n = %d, k = %d, group = %d", m.bits, m.n, m.k, m.group)
}

// eachLayout runs a test for all widths and groups.
func eachLayout(t *testing.T, test func(t *testing.T, g *guard, bits, group int)) {
	t.Helper()
	each(t, func(t *testing.T, g *guard) {
		for _, bits := range []int{4, 8} {
			for _, group := range []int{32, 64, 128} {
				test(t, g, bits, group)
				g.release()
			}
		}
	})
}

// Every k up to 2048 and a bit, with n from 0 to 9 in turn.
func TestMatVecShapes(t *testing.T) {
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		for k := 0; k <= 2176; k += group {
			r := rng(uint64(k))
			m := newMatrix(g, bits, k/group%10, k, group).randomize(r, random)
			x, y := random(r, g.floats(k)), g.floats(m.n)
			m.matVec(g, y, x)
			for j, v := range y {
				want, magnitude := m.dot(x, j)
				near(t, want, magnitude, v, "%v, row %d", m, j)
			}
			g.release()
		}
	})
}

// Any shape, numbers of any size, and cancelling ones.
func TestMatVecProperty(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		rapid.Check(t, func(t *rapid.T) {
			defer g.release()
			group := rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "group")
			k := group * rapid.IntRange(0, 40).Draw(t, "groups")
			n := rapid.IntRange(0, 9).Draw(t, "n")
			bits := rapid.SampledFrom([]int{4, 8}).Draw(t, "bits")
			r := rng(rapid.Uint64().Draw(t, "seed"))
			fx := fills[rapid.IntRange(0, len(fills)-1).Draw(t, "x")]
			fw := fills[rapid.IntRange(0, len(fills)-1).Draw(t, "w")]
			m := newMatrix(g, bits, n, k, group).randomize(r, fw.fn)
			x, y := fx.fn(r, g.floats(k)), g.floats(n)
			if rapid.Bool().Draw(t, "cancel") { // biases near minus the mean weight, as in real models
				for i, s := range m.scales {
					m.biases[i] = -s * float32(int(1)<<(bits-1))
				}
			}
			m.matVec(g, y, x)
			for j, v := range y {
				want, magnitude := m.dot(x, j)
				near(t, want, magnitude, v, "%v, row %d", m, j)
			}
		})
	})
}

// With one element of x equal to 1 the result is that weight, exactly.
func TestMatVecUnpacks(t *testing.T) {
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		m := newMatrix(g, bits, 7, 3*group, group).randomize(rng(1), random)
		for i := range m.scales {
			m.scales[i], m.biases[i] = float32(i%3+1), float32(-i)
		}
		x, y := g.floats(m.k), g.floats(m.n)
		for e := range x {
			x[e] = 1
			m.matVec(g, y, x)
			for j, v := range y {
				i := (j*m.k + e) / m.group
				require.Equal(t, m.scales[i]*float32(m.q(j, e))+m.biases[i], v, "%v, weight %d of row %d", m, e, j)
			}
			x[e] = 0
		}
	})
}

// Integers below 2^24 leave nothing to round.
func TestMatVecIntegers(t *testing.T) {
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		r := rng(9)
		for _, k := range []int{group, 5 * group, 1536} {
			m := newMatrix(g, bits, 9, k, group).randomize(r, random)
			for i := range m.scales {
				m.scales[i], m.biases[i] = float32(r.IntN(3)-1), float32(r.IntN(65)-32)
			}
			x, y := g.floats(k), g.floats(m.n)
			for i := range x {
				x[i] = float32(r.IntN(9) - 4)
			}
			m.matVec(g, y, x)
			for j, v := range y {
				want, _ := m.dot(x, j)
				require.Equal(t, want, float64(v), "%v, row %d", m, j)
			}
			want, _ := m.dot(x, 8)
			last := &matrix{bits, 1, k, group, m.w[8*k/8*bits:], m.scales[8*k/group:], m.biases[8*k/group:]}
			one := g.floats(1)
			last.matVec(g, one, x)
			require.Equal(t, want, float64(one[0]))
		}
	})
}

func TestMatVecNotFinite(t *testing.T) {
	finite := func(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		m := newMatrix(g, bits, 6, 3*group, group).randomize(rng(1), random)
		for i := range m.w {
			m.w[i] |= 0x11 // no weight 0, which would make inf*0
		}
		x, y := random(rng(2), g.floats(m.k)), g.floats(m.n)
		for e := range x {
			for _, bad := range []float32{nan, inf, -inf} {
				old := x[e]
				x[e] = bad
				m.matVec(g, y, x)
				for j, v := range y {
					require.False(t, finite(v), "%v: x[%d] = %v gave %v in row %d", m, e, bad, v, j)
				}
				x[e] = old
			}
		}
		// A bad group spoils its row and no other.
		for i := range m.scales {
			for _, s := range [][]float32{m.scales, m.biases} {
				old := s[i]
				s[i] = nan
				m.matVec(g, y, x)
				for j, v := range y {
					require.Equal(t, j != i/3, finite(v), "%v: NaN in group %d gave %v in row %d", m, i, v, j)
				}
				s[i] = old
			}
		}
	})
}

func TestMatVecF32(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for i, k := range lengths() {
			r := rng(uint64(k))
			n := i % 10
			x, w, y := random(r, g.floats(k)), fills[i%len(fills)].fn(r, g.floats(n*k)), g.floats(n)
			MatVecF32(y, x, w, k)
			for j, v := range y {
				var want, magnitude float64
				for e := range x {
					p := float64(x[e]) * float64(w[j*k+e])
					want, magnitude = want+p, magnitude+math.Abs(p)
				}
				near(t, want, magnitude, v, "n = %d, k = %d, row %d", n, k, j)
			}
			g.release()
		}
	})
}

// Rows that lie apart have the bits of the same rows side by side.
// A row has the same sum, to the bit, wherever it stands among the others.
func TestMatVecRowsAlone(t *testing.T) {
	const n = 7
	same := func(t *testing.T, y []float32, alone func(one []float32, j int)) {
		t.Helper()
		for j, v := range y {
			one := make([]float32, 1)
			alone(one, j)
			require.Equal(t, math.Float32bits(v), math.Float32bits(one[0]), "row %d", j)
		}
	}
	each(t, func(t *testing.T, g *guard) {
		for _, k := range []int{1, 7, 8, 31, 48, 77, 129} {
			r := rng(uint64(k))
			x, w, y := wild(r, g.floats(k)), wild(r, g.floats(n*k)), g.floats(n)
			MatVecF32(y, x, w, k)
			same(t, y, func(one []float32, j int) { MatVecF32(one, x, w[j*k:(j+1)*k], k) })
		}
	})
	eachLayout(t, func(t *testing.T, g *guard, bits, group int) {
		m := newMatrix(g, bits, n, 11*group, group).randomize(rng(3), random)
		x, y := random(rng(4), g.floats(m.k)), g.floats(n)
		m.matVec(g, y, x)
		same(t, y, func(one []float32, j int) {
			row, groups := m.k/8*bits, m.k/group
			alone := &matrix{bits, 1, m.k, group, m.w[j*row : (j+1)*row], m.scales[j*groups : (j+1)*groups], m.biases[j*groups : (j+1)*groups]}
			alone.matVec(g, one, x)
		})
	})
}

func TestMatVecStridedF32(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for i, k := range lengths() {
			r := rng(uint64(k))
			n, ld := 1+i%10, k+i%7
			x, w, y := random(r, g.floats(k)), random(r, g.floats((n-1)*ld+k)), g.floats(n)
			packed := make([]float32, n*k)
			for j := range n {
				copy(packed[j*k:(j+1)*k], w[j*ld:])
			}
			want := make([]float32, n)
			MatVecF32(want, x, packed, k)
			MatVecStridedF32(y, x, w, k, ld)
			require.Equal(t, want, y, "n = %d, k = %d, ld = %d", n, k, ld)
			g.release()
		}
		x, w, y := g.floats(1), g.floats(99999*2+1), g.floats(100000)
		x[0] = 1
		for i := range w {
			w[i] = float32(i)
		}
		MatVecStridedF32(y, x, w, 1, 2) // more rows than one call of the assembly takes
		for j, v := range y {
			require.Equal(t, float32(2*j), v)
		}
		MatVecStridedF32(nil, x, nil, 1, 2)
	})
	require.PanicsWithValue(t, "simd: MatVecStridedF32: len(w) = 9, want (len(y)-1)*ld+k = (3-1)*4+2",
		func() { MatVecStridedF32(make([]float32, 3), make([]float32, 2), make([]float32, 9), 2, 4) })
	require.PanicsWithValue(t, "simd: MatVecStridedF32: len(x) = 2, ld = 1, want k = 2 and at least k",
		func() { MatVecStridedF32(make([]float32, 3), make([]float32, 2), make([]float32, 9), 2, 1) })
}

// More rows than one call of the assembly takes.
func TestMatVecBlocks(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		const k, n = 2048, 1031
		for _, bits := range []int{4, 8} {
			r := rng(5)
			m := newMatrix(g, bits, n, k, 32).randomize(r, random)
			x, y := random(r, g.floats(k)), g.floats(n)
			m.matVec(g, y, x)
			for j, v := range y {
				want, magnitude := m.dot(x, j)
				near(t, want, magnitude, v, "%v, row %d", m, j)
			}
		}
		x, w, y := g.floats(k), g.floats(n*k), g.floats(n)
		for j := range y {
			x[j] = 1
			w[j*k+j] = float32(j)
		}
		MatVecF32(y, x, w, k)
		for j, v := range y {
			require.Equal(t, float32(j), v)
		}
	})
}

func TestQuantLengths(t *testing.T) {
	f := func(n int) []float32 { return make([]float32, n) }
	b := func(n int) []byte { return make([]byte, n) }
	for want, call := range map[string]func(){
		"simd: MatVecQ4: group = 48, want 32, 64 or 128":                                  func() { MatVecQ4(f(2), f(96), f(2), b(96), f(4), f(4), 96, 48) },
		"simd: MatVecQ4: k = 96 is no multiple of group = 64":                             func() { MatVecQ4(f(2), f(96), f(2), b(96), f(4), f(4), 96, 64) },
		"simd: MatVecQ4: k = -32 is no multiple of group = 32":                            func() { MatVecQ4(f(0), f(0), f(0), b(0), f(0), f(0), -32, 32) },
		"simd: MatVecQ4: len(w) = 31, want 32 for 2 rows of 32 weights of 4 bits":         func() { MatVecQ4(f(2), f(32), f(1), b(31), f(2), f(2), 32, 32) },
		"simd: MatVecQ8: len(w) = 32, want 64 for 2 rows of 32 weights of 8 bits":         func() { MatVecQ8(f(2), f(32), f(1), b(32), f(2), f(2), 32, 32) },
		"simd: MatVecQ4: len(scales) = 2, len(biases) = 1, want 2 for 2 rows of 1 groups": func() { MatVecQ4(f(2), f(32), f(1), b(32), f(2), f(1), 32, 32) },
		"simd: MatVecQ4: len(x) = 31, want k = 32":                                        func() { MatVecQ4(f(2), f(31), f(1), b(32), f(2), f(2), 32, 32) },
		"simd: MatVecQ4: len(xsum) = 2, want k/group = 32/32":                             func() { MatVecQ4(f(2), f(32), f(2), b(32), f(2), f(2), 32, 32) },
	} {
		assert.PanicsWithValue(t, want, call)
	}
}
