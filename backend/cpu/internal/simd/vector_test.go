package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

// lengths are all the tails of the widest loop, and some longer ones.
func lengths() (n []int) {
	for i := range 140 {
		n = append(n, i)
	}
	return append(n, 255, 256, 257, 511, 576, 1000, 1024, 1536, 2047, 4099)
}

func TestDot(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for _, n := range lengths() {
			for _, fill := range fills {
				r := rng(uint64(n))
				a, b := fill.fn(r, g.floats(n)), random(r, g.floats(n))
				var want, magnitude, squares float64
				for i := range a {
					p := float64(a[i]) * float64(b[i])
					want, magnitude = want+p, magnitude+math.Abs(p)
					squares += float64(b[i]) * float64(b[i])
				}
				near(t, want, magnitude, Dot(a, b), "Dot, n = %d, %s", n, fill.name)
				near(t, squares, squares, SumSquares(b), "SumSquares, n = %d", n)
			}
			g.release()
		}
	})
}

// A single NaN or infinity anywhere shows in a sum.
func TestDotNotFinite(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		const n = 203
		a, b := random(rng(1), g.floats(n)), random(rng(2), g.floats(n))
		for i := range a {
			old := a[i]
			a[i] = nan
			require.True(t, math.IsNaN(float64(Dot(a, b))), "NaN at %d", i)
			require.True(t, math.IsNaN(float64(SumSquares(a))), "NaN at %d", i)
			require.True(t, math.IsNaN(float64(Max(a))), "NaN at %d", i)
			a[i] = -inf
			require.True(t, math.IsInf(float64(SumSquares(a)), 1), "-Inf at %d", i)
			require.False(t, math.IsInf(float64(Max(a)), 0), "-Inf at %d", i)
			a[i] = old
		}
	})
}

func TestAxpy(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for _, n := range lengths() {
			for _, fill := range fills {
				r := rng(uint64(n))
				x, y := fill.fn(r, g.floats(n)), fill.fn(r, g.floats(n))
				alpha := 2*r.Float32() - 1
				before := append([]float32(nil), y...)
				Axpy(alpha, x, y)
				for i := range y {
					p := float64(alpha) * float64(x[i])
					// One or two roundings of 2^-24 each.
					bound := 1.2e-7*(math.Abs(p)+math.Abs(p+float64(before[i]))) + 1e-44
					require.InDelta(t, p+float64(before[i]), float64(y[i]), bound, "n = %d, i = %d", n, i)
				}
			}
			g.release()
		}
	})
}

func TestMax(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		assert.Equal(t, -inf, Max(nil))
		for _, n := range lengths()[1:] {
			x := random(rng(uint64(n)), g.floats(n))
			for _, shift := range []float32{0, -2} { // with and without positive numbers
				for i := range x {
					x[i] += shift
				}
				want := x[0]
				for _, v := range x {
					want = max(want, v)
				}
				require.Equal(t, want, Max(x), "n = %d", n)
			}
			for i := range x { // the greatest in each place
				old := x[i]
				x[i] = 7
				require.Equal(t, float32(7), Max(x), "n = %d, i = %d", n, i)
				x[i] = old
			}
			for i := range x {
				x[i] = -inf
			}
			require.Equal(t, -inf, Max(x), "n = %d", n)
			g.release()
		}
	})
}

// The elementwise functions round once, and so all agree to the bit.
func TestElementwise(t *testing.T) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, nan, inf, -inf, math.MaxFloat32, math.SmallestNonzeroFloat32}
	same := func(t *testing.T, want, got float32, n, i int) {
		if math.Float32bits(want) != math.Float32bits(got) && (want == want || got == got) {
			require.Failf(t, "differs", "got %v, want %v, n = %d, i = %d", got, want, n, i)
		}
	}
	each(t, func(t *testing.T, g *guard) {
		for _, n := range lengths() {
			r := rng(uint64(n))
			a, b, dst := wild(r, g.floats(n)), wild(r, g.floats(n)), g.floats(n)
			for i := range a {
				if r.IntN(4) == 0 {
					a[i], b[i] = special[r.IntN(len(special))], special[r.IntN(len(special))]
				}
			}
			AddTo(dst, a, b)
			for i := range dst {
				same(t, a[i]+b[i], dst[i], n, i)
			}
			MulTo(dst, a, b)
			for i := range dst {
				same(t, a[i]*b[i], dst[i], n, i)
			}
			ScaleTo(dst, -1.25, a)
			for i := range dst {
				same(t, -1.25*a[i], dst[i], n, i)
			}
			copy(dst, a) // in place
			MulTo(dst, dst, b)
			AddTo(dst, a, dst)
			ScaleTo(dst, 3, dst)
			for i := range dst {
				p := float32(a[i] * b[i]) // rounded: some architectures fuse what follows
				s := a[i] + p
				same(t, 3*s, dst[i], n, i)
			}
			g.release()
		}
	})
}

func TestGroupSums(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for _, group := range []int{32, 64, 128} {
			for n := range 20 {
				for _, fill := range fills {
					x, dst := fill.fn(rng(uint64(n)), g.floats(n*group)), g.floats(n)
					GroupSums(dst, x, group)
					for i := range dst {
						var want, magnitude float64
						for _, v := range x[i*group : (i+1)*group] {
							want, magnitude = want+float64(v), magnitude+math.Abs(float64(v))
						}
						near(t, want, magnitude, dst[i], "group = %d, i = %d, %s", group, i, fill.name)
					}
				}
				g.release()
			}
		}
	})
}

func TestVectorLengths(t *testing.T) {
	two, three := make([]float32, 2), make([]float32, 3)
	for want, call := range map[string]func(){
		"simd: Dot: len(a) = 2, len(b) = 3: want one length":         func() { Dot(two, three) },
		"simd: Axpy: len(x) = 2, len(y) = 3: want one length":        func() { Axpy(1, two, three) },
		"simd: ScaleTo: len(dst) = 3, len(x) = 2: want one length":   func() { ScaleTo(three, 1, two) },
		"simd: AddTo: len(dst) = 2, len(b) = 3: want one length":     func() { AddTo(two, two, three) },
		"simd: MulTo: len(dst) = 2, len(a) = 3: want one length":     func() { MulTo(two, three, two) },
		"simd: ExpTo: len(dst) = 2, len(x) = 3: want one length":     func() { ExpTo(two, three) },
		"simd: SigmoidTo: len(dst) = 2, len(x) = 3: want one length": func() { SigmoidTo(two, three) },
		"simd: SiluTo: len(dst) = 2, len(x) = 3: want one length":    func() { SiluTo(two, three) },
		"simd: GroupSums: group = 16, want 32, 64 or 128":            func() { GroupSums(two, make([]float32, 32), 16) },
		"simd: GroupSums: k = 33 is no multiple of group = 32":       func() { GroupSums(two, make([]float32, 33), 32) },
		"simd: GroupSums: len(dst) = 2, want len(x)/g = 32/32":       func() { GroupSums(two, make([]float32, 32), 32) },
		"simd: MatVecF32: len(x) = 2, want k = 3":                    func() { MatVecF32(two, two, make([]float32, 6), 3) },
		"simd: MatVecF32: len(w) = 5, want len(y)*k = 2*3":           func() { MatVecF32(two, three, make([]float32, 5), 3) },
	} {
		assert.PanicsWithValue(t, want, call)
	}
}
