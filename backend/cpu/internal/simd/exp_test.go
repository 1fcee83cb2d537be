package simd

import (
	"flag"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/msl/term"
)

var exhaustive = flag.Bool("exhaustive", false, "try all 2^32 arguments of ExpTo, SigmoidTo and SiluTo (minutes)")

// ulps is the distance of got and want in units in the last place of a float32
// of want's size. +Inf counts as 2^128.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) || math.IsNaN(float64(got)) {
		if math.IsNaN(want) && math.IsNaN(float64(got)) {
			return 0
		}
		return math.Inf(1)
	}
	limit := func(v float64) float64 { return math.Copysign(min(math.Abs(v), 0x1p128), v) }
	g, w := limit(float64(got)), limit(want)
	_, e := math.Frexp(min(math.Abs(w), math.MaxFloat32))
	return math.Abs(g-w) / math.Ldexp(1, max(e-1, -126)-23)
}

// The three functions, their bounds in ulp, and absolute bounds below which
// the former do not count.
var exps = []struct {
	name      string
	fn        func(dst, x []float32)
	exact     func(float64) float64
	ulps, abs float64
}{
	{"exp", ExpTo, math.Exp, 1.1, 0},
	{"sigmoid", SigmoidTo, exactSigmoid, 4, 3e-39}, // where exp(|x|) overflows
	{"silu", SiluTo, func(x float64) float64 {
		if math.IsInf(x, -1) {
			return math.NaN()
		}
		return x * exactSigmoid(x)
	}, 4, 3e-37}, // where exp(-x) overflows
}

func exactSigmoid(x float64) float64 {
	if x < 0 {
		return math.Exp(x) / (1 + math.Exp(x))
	}
	return 1 / (1 + math.Exp(-x))
}

// Every 4099th float32 (a prime, so that all exponents and many fractions come)
// or all of them, and the neighbourhood of each place where a branch of the
// method changes.
func TestExp(t *testing.T) {
	sample.Seldom(t)
	step := uint64(4099)
	if *exhaustive {
		step = 1
	}
	borders := []float32{0, 1, -1, math.Ln2, math.Ln2 / 2, 88, 88.72283, 89, -87.33654, -88, -103.97208, -104,
		math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, inf, -inf, nan}
	each(t, func(t *testing.T, g *guard) {
		const chunk = 1 << 15
		for _, f := range exps {
			var worst float64
			var worstAt float32
			check := func(x, dst []float32) {
				f.fn(dst, x)
				for i, v := range x {
					want := f.exact(float64(v))
					u := ulps(dst[i], want)
					if f.abs > 0 && math.Abs(float64(dst[i])-want) <= f.abs {
						continue
					}
					if u > worst || math.IsNaN(u) {
						worst, worstAt = u, v
					}
				}
			}
			x, dst := g.floats(chunk+1), g.floats(chunk+1)
			for _, b := range borders {
				for i := range x {
					x[i] = math.Float32frombits(math.Float32bits(b) + uint32(i) - chunk/2)
				}
				check(x, dst)
			}
			for from := uint64(0); from < 1<<32; {
				n := 0
				for ; n < len(x) && from < 1<<32; n++ {
					x[n] = math.Float32frombits(uint32(from))
					from += step
				}
				check(x[:n], dst[:n])
			}
			t.Logf("%s: at most %.3f ulp, at %v", f.name, worst, worstAt)
			assert.LessOrEqual(t, worst, f.ulps, "%s at %v", f.name, worstAt)
		}
	})
}

func TestExpExact(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		x := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, -200, 200, -math.MaxFloat32, math.MaxFloat32, nan}
		dst := make([]float32, len(x))
		ExpTo(dst, x)
		assert.Equal(t, []float32{1, 1, inf, 0, 0, inf, 0, inf}, dst[:8])
		assert.True(t, dst[8] != dst[8])
		SigmoidTo(dst, x)
		assert.Equal(t, []float32{.5, .5, 1, 0, 0, 1, 0, 1}, dst[:8])
		assert.True(t, dst[8] != dst[8])
		SiluTo(dst, x)
		assert.Equal(t, float32(0), dst[0])
		assert.Equal(t, inf, dst[2])
		assert.True(t, dst[3] != dst[3], "-Inf/Inf")
		assert.Equal(t, float32(200), dst[5])
		assert.Equal(t, float32(math.MaxFloat32), dst[7])
		assert.True(t, dst[8] != dst[8])
	})
}

// SigmoidTo and SiluTo are the steps of their terms, each rounded to float32 and
// made by the loops that a generated kernel uses: for every f16, and for ten
// million float32 of all exponents.
func TestSigmoidsAreTheirSteps(t *testing.T) {
	sample.Seldom(t)
	const step = 429
	each(t, func(t *testing.T, g *guard) {
		const chunk = 1<<14 + 5 // with a tail
		x, e, got := g.floats(chunk), g.floats(chunk), g.floats(chunk)
		check := func(x []float32) {
			e, got := e[:len(x)], got[:len(x)]
			bad := func(name string, i int, want float32) {
				if math.Float32bits(got[i]) != math.Float32bits(want) && (got[i] == got[i] || want == want) {
					t.Fatalf("%s(%v) = %v (%#x), its steps make %v (%#x)", name, x[i], got[i], math.Float32bits(got[i]), want, math.Float32bits(want))
				}
			}
			for i, v := range x {
				e[i] = -v
			}
			ExpTo(e, e)
			SiluTo(got, x)
			for i, v := range x {
				d := 1 + e[i]
				bad("silu", i, v/d)
			}
			for i, v := range x {
				e[i] = float32(math.Abs(float64(v)))
			}
			ExpTo(e, e)
			SigmoidTo(got, x)
			for i, v := range x {
				d := 1 + e[i]
				y := 1 / d
				if !(v < 0) {
					y = 1 - y
				}
				bad("sigmoid", i, y)
			}
		}
		n := 0
		add := func(v float32) {
			if x[n] = v; n+1 == chunk {
				check(x)
				n = -1
			}
			n++
		}
		for h := range 1 << 16 {
			add(float32(term.F16Value(uint16(h))))
		}
		for b := uint64(0); b < 1<<32; b += step {
			add(math.Float32frombits(uint32(b)))
		}
		check(x[:n])
	})
}

// A result depends on its own argument only: not on its place in the slice, on
// the length, or on whether dst is x.
func TestExpTails(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for _, f := range exps {
			long := random(rng(3), g.floats(64))
			ScaleTo(long, 100, long)
			want := g.floats(64)
			f.fn(want, long)
			for n := range 64 {
				x, dst := g.floats(n), g.floats(n)
				copy(x, long)
				f.fn(dst, x)
				require.Equal(t, want[:n:n], dst[:n:n], "%s, n = %d", f.name, n)
				f.fn(x, x)
				require.Equal(t, want[:n:n], x[:n:n], "%s in place, n = %d", f.name, n)
			}
			g.release()
		}
	})
}

// ulps itself can tell.
func TestUlps(t *testing.T) {
	assert.Equal(t, 1.0, ulps(1+0x1p-23, 1))
	assert.Equal(t, 2.0, ulps(math.SmallestNonzeroFloat32, -0x1p-149))
	assert.Equal(t, 1.0, ulps(math.MaxFloat32, 1e300))
	assert.Equal(t, 1.0, ulps(inf, math.MaxFloat32))
	assert.Equal(t, 0.0, ulps(inf, math.Inf(1)))
	assert.True(t, math.IsInf(ulps(1, math.NaN()), 1))
}
