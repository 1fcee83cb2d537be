package term_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/msl/term"
)

// operands makes an interpreter whose arguments hold the given values by their
// last index, and whose symbols are n = 7, m = -3, s = {2, 5}, eps = 0.5.
func operands(values ...float32) *term.Interp {
	return &term.Interp{
		Symbols: []term.Value{integer(7), integer(-3), integer(2), integer(5), {F: 0.5}},
		Load: func(arg int, index []int64) (term.Value, error) {
			i := index[len(index)-1]
			if i < 0 || i >= int64(len(values)) {
				return term.Value{}, fmt.Errorf("index %d of %d", i, len(values))
			}
			if arg == 3 { // id
				return integer(int64(values[i])), nil
			}
			return term.Value{F: float64(values[i])}, nil
		},
	}
}

func integer(v int64) term.Value { return term.Value{I: v, F: float64(v)} }

func eval(t require.TestingT, in *term.Interp, e *term.Expr, vars ...int64) term.Value {
	v, err := in.Eval(e, vars)
	require.NoError(t, err, "%s", e)
	return v
}

// anyFloat draws f32 of every sort: infinities, NaN, subnormals, both zeros.
func anyFloat(t *rapid.T, name string) float32 {
	switch rapid.IntRange(0, 3).Draw(t, name+" sort") {
	case 0:
		return math.Float32frombits(rapid.Uint32().Draw(t, name))
	case 1:
		return rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}).Draw(t, name)
	}
	return rapid.Float32Range(-1e4, 1e4).Draw(t, name)
}

// TestExactOperations: + − · / √ and the operations on signs are those of
// IEEE 754, to the bit. The oracle is the machine's own f32 arithmetic, and
// math/big for the square root.
func TestExactOperations(t *testing.T) {
	for src, want := range map[string]func(a, b float32) float32{
		"v[0] + v[1]":         func(a, b float32) float32 { return a + b },
		"v[0] - v[1]":         func(a, b float32) float32 { return a - b },
		"v[0] * v[1]":         func(a, b float32) float32 { return a * b },
		"v[0] / v[1]":         func(a, b float32) float32 { return a / b },
		"-v[0]":               func(a, b float32) float32 { return -a },
		"abs(v[0])":           func(a, b float32) float32 { return math.Float32frombits(math.Float32bits(a) &^ (1 << 31)) },
		"sqrt(v[0])":          func(a, b float32) float32 { return bigSqrt(a) },
		"round(f32, v[0])":    func(a, b float32) float32 { return a },
		"f32(v[0])":           func(a, b float32) float32 { return a },
		"v[0] * v[1] + v[0]":  func(a, b float32) float32 { return float32(a*b) + a },
		"v[0] + 0.1":          func(a, b float32) float32 { return a + float32(0.1) },
		"v[0] * n":            func(a, b float32) float32 { return a * 7 },
		"v[0] + (inf - inf)":  func(a, b float32) float32 { return float32(math.NaN()) },
		"sum[a](k < 1, v[0])": func(a, b float32) float32 { return 0 + a },
	} {
		t.Run(src, func(t *testing.T) {
			e := parse(t, src)
			rapid.Check(t, func(t *rapid.T) {
				a, b := anyFloat(t, "a"), anyFloat(t, "b")
				w := want(a, b)
				got := eval(t, operands(a, b), e)
				if got.Err != 0 {
					require.True(t, src == "sum[a](k < 1, v[0])" && w == 0, "%v is not exact", got)
				}
				require.True(t, got.Allows(float64(w)), "%v and %v: got %v, want %v", a, b, got, w)
			})
		})
	}
}

func bigSqrt(a float32) float32 {
	if !(a > 0) || math.IsInf(float64(a), 1) {
		return float32(math.Sqrt(float64(a)))
	}
	r, _ := new(big.Float).Sqrt(new(big.Float).SetPrec(200).SetFloat64(float64(a))).Float32()
	return r
}

// TestMinMax: a number goes before NaN, −0 before +0, whatever the order of
// operands.
func TestMinMax(t *testing.T) {
	nan, zero := float32(math.NaN()), float32(math.Copysign(0, -1))
	for _, c := range []struct{ a, b, min, max float32 }{
		{1, 2, 1, 2}, {2, 1, 1, 2}, {-1, nan, -1, -1}, {nan, -1, -1, -1}, {float32(math.Inf(1)), 3, 3, float32(math.Inf(1))}, {0, zero, zero, 0}, {zero, 0, zero, 0}, {zero, zero, zero, zero},
	} {
		for src, want := range map[string]float32{"min(v[0], v[1])": c.min, "max(v[0], v[1])": c.max} {
			v := eval(t, operands(c.a, c.b), parse(t, src))
			assert.True(t, v.Allows(float64(want)), "%s of %v, %v = %v", src, c.a, c.b, v)
			assert.Zero(t, v.Err)
		}
	}
	assert.True(t, math.IsNaN(eval(t, operands(nan, nan), parse(t, "min(v[0], v[1])")).F))
}

// TestFunctions: the value is the nearest f32 to the function's, and the bound
// lets every f32 within 4 ulp pass and none that is 16 ulp away.
func TestFunctions(t *testing.T) {
	for src, f := range map[string]func(float64) float64{
		"exp(v[0])": math.Exp, "exp2(v[0])": math.Exp2, "log(v[0])": math.Log, "sin(v[0])": math.Sin, "cos(v[0])": math.Cos,
		"tanh(v[0])": math.Tanh, "erf(v[0])": math.Erf, "rsqrt(v[0])": func(x float64) float64 { return 1 / math.Sqrt(x) },
	} {
		t.Run(src, func(t *testing.T) {
			e := parse(t, src)
			rapid.Check(t, func(t *rapid.T) {
				a := rapid.Float32Range(-80, 80).Draw(t, "a")
				v := eval(t, operands(a), e)
				want := f(float64(a))
				if math.IsNaN(want) || math.IsInf(want, 0) {
					require.True(t, v.Allows(want))
					return
				}
				require.Equal(t, float64(float32(want)), v.F)
				up, down := float32(v.F), float32(v.F)
				for range 4 {
					up, down = math.Nextafter32(up, float32(math.Inf(1))), math.Nextafter32(down, float32(math.Inf(-1)))
				}
				require.True(t, v.Allows(float64(up)) && v.Allows(float64(down)), "%v does not allow 4 ulp", v)
				for range 12 {
					up, down = math.Nextafter32(up, float32(math.Inf(1))), math.Nextafter32(down, float32(math.Inf(-1)))
				}
				if math.Abs(v.F) > 1e-30 {
					require.False(t, v.Allows(float64(up)) || v.Allows(float64(down)), "%v allows 16 ulp", v)
				}
			})
		})
	}
}

// TestIntegers compares integer operations with math/big.
func TestIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "a"), rapid.Int64Range(-1000, 1000).Draw(t, "b")
		if rapid.Bool().Draw(t, "small") {
			a %= 50
		}
		x, y := big.NewInt(a), big.NewInt(b)
		check := func(op term.Op, want *big.Int) {
			got, err := term.IntOp(op, a, b)
			require.NoError(t, err)
			require.Equal(t, want.Int64(), got, "operation %d of %d and %d", op, a, b)
		}
		check(term.Add, new(big.Int).Add(x, y))
		check(term.Sub, new(big.Int).Sub(x, y))
		check(term.Mul, new(big.Int).Mul(x, y))
		check(term.Neg, new(big.Int).Neg(x))
		check(term.Min, big.NewInt(min(a, b)))
		check(term.Max, big.NewInt(max(a, b)))
		if b == 0 {
			for _, op := range []term.Op{term.Div, term.Mod, term.CeilDiv} {
				_, err := term.IntOp(op, a, b)
				require.EqualError(t, err, "division by zero")
			}
			return
		}
		// floor(a/b) from big's Euclidean division, whose remainder is never negative.
		q, r := new(big.Int).DivMod(x, y, new(big.Int))
		if b < 0 && r.Sign() != 0 {
			q.Sub(q, big.NewInt(1))
			r.Add(r, y)
		}
		check(term.Div, q)
		check(term.Mod, r)
		up := new(big.Int).Set(q)
		if r.Sign() != 0 {
			up.Add(up, big.NewInt(1))
		}
		check(term.CeilDiv, up)
		for op, want := range map[term.Op]bool{term.Eq: a == b, term.Ne: a != b, term.Lt: a < b, term.Le: a <= b, term.Gt: a > b, term.Ge: a >= b} {
			got, err := term.IntOp(op, a, b)
			require.NoError(t, err)
			require.Equal(t, want, got == 1)
		}
	})
}

// TestIntegerStores: a store to an integer type keeps the low bits.
func TestIntegerStores(t *testing.T) {
	for _, c := range []struct {
		src  string
		want int64
	}{
		{"u8(300)", 44}, {"i8(200)", -56}, {"i8(-129)", 127}, {"u16(-1)", 65535}, {"i16(32768)", -32768}, {"u32(-1)", 4294967295},
		{"i32(2147483648)", -2147483648}, {"i64(-5)", -5}, {"u4(17)", 1}, {"u2(7)", 3}, {"bool(4)", 1}, {"bool(0)", 0}, {"u64(12)", 12},
	} {
		v := eval(t, operands(), parse(t, c.src))
		assert.Equal(t, term.Value{I: c.want, F: float64(c.want)}, v, c.src)
	}
}

// TestIntegersAsFloats: an integer among floats is rounded to f32 first.
func TestIntegersAsFloats(t *testing.T) {
	assert.Equal(t, 16777216.0, eval(t, operands(), parse(t, "f32(16777217)")).F)
	assert.Equal(t, 16777220.0, eval(t, operands(), parse(t, "f32(16777219)")).F, "a tie goes to even")
	assert.Equal(t, 16777216.5-16777216.0, eval(t, operands(), parse(t, "0.5 + (16777217 - f32(16777216))")).F)
	assert.Equal(t, int64(1), eval(t, operands(), parse(t, "16777217 == f32(16777216)")).I)
	assert.Equal(t, 3.5, eval(t, operands(), parse(t, "n / 2.0")).F)
	assert.Equal(t, int64(-4), eval(t, operands(), parse(t, "-n / 2")).I)
}

func TestConditions(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		src  string
		want int64
	}{
		{"n == 7 && m == -3", 1}, {"n == 7 && m == 3", 0}, {"n == 8 || m == -3", 1}, {"!(n == 7)", 0}, {"!!(n == 7)", 1},
		{"n == 7 || 1 / (n - 7) == 0", 1}, {"n != 7 && 1 / (n - 7) == 0", 0}, // not evaluated
		{"pow2(8)", 1}, {"pow2(6)", 0}, {"pow2(0)", 0}, {"pow2(-4)", 0}, {"pow2(1)", 1},
		{"v[0] < 1.0", 0}, {"v[0] >= 1.0", 0}, {"v[0] == v[0]", 0}, {"v[0] != v[0]", 1}, {"v[1] <= 2", 1}, {"2 > v[1]", 0},
	} {
		assert.Equal(t, c.want, eval(t, operands(nan, 2), parse(t, c.src)).I, c.src)
	}
}

// TestAsF16: the low 16 bits of the integer are those of the half, whatever is
// above them.
func TestAsF16(t *testing.T) {
	e := parse(t, "as_f16(id[r] * 65536 + r)", "r")
	for bits := range int64(1 << 16) {
		want := term.F16Value(uint16(bits))
		v := eval(t, operands(), parse(t, "as_f16(r)", "r"), bits)
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(v.F) && v.Err == 0, "%#x: %v", bits, v)
			continue
		}
		require.Equal(t, term.Value{F: want}, v, "%#x", bits)
		require.Equal(t, math.Signbit(want), math.Signbit(v.F), "%#x", bits)
	}
	for _, high := range []int64{1, 7, -1} {
		in := operands()
		in.Load = func(int, []int64) (term.Value, error) { return term.Value{I: high}, nil }
		assert.Equal(t, term.Value{F: -2.5}, eval(t, in, e, 0xc100), "%d", high)
	}
	assert.Equal(t, -0.5, eval(t, operands(), parse(t, "as_f16(0 - 18432)")).F, "0xb800 in two's complement")
	_, err := operands().Eval(parse(t, "as_f16(n / 0)"), nil)
	assert.EqualError(t, err, "division by zero")
}

// TestAsF32: the low 32 bits of the integer are those of the f32, from the smallest subnormal to NaN.
func TestAsF32(t *testing.T) {
	e := parse(t, "as_f32(r)", "r")
	for bits, want := range map[int64]float64{
		1: 0x1p-149, 0x200000: 0x1p-128, 0x3f800000: 1, 0xc0200000: -2.5, 0x7f7fffff: math.MaxFloat32, 0x7f800000: math.Inf(1),
		0x123_c0200000: -2.5, -0x3fe00000: -2.5,
	} {
		assert.Equal(t, term.Value{F: want}, eval(t, operands(), e, bits), "%#x", bits)
	}
	assert.True(t, math.Signbit(eval(t, operands(), e, 0x80000000).F))
	nan := eval(t, operands(), e, 0x7f800001)
	assert.True(t, math.IsNaN(nan.F) && nan.Err == 0, "%v", nan)
}

// TestSelect evaluates one branch only, so that a guard protects a gather.
func TestSelect(t *testing.T) {
	e := parse(t, "select(id[r] >= 0 && id[r] < 3, v[id[r]], inf - inf)", "r")
	in := operands(2, -1, 7)
	assert.Equal(t, 7.0, eval(t, in, e, 0).F)
	assert.True(t, math.IsNaN(eval(t, in, e, 1).F))
	assert.True(t, math.IsNaN(eval(t, in, e, 2).F))
	_, err := in.Eval(parse(t, "v[id[r]]", "r"), []int64{2})
	assert.EqualError(t, err, "index 7 of 3")
}

func TestReductions(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		src    string
		values []float32
		want   float64
	}{
		{"sum[a](k < 0, v[k])", nil, 0},
		{"sum[a](k < 3, v[k] * k)", []float32{5, 6, 7}, 20},
		{"max[a](k < 0, v[k])", nil, math.Inf(-1)},
		{"max[a](k < 3, v[k])", []float32{-5, -6, -7}, -5},
		{"max[a](k < 3, v[k])", []float32{1, nan, 2}, 2},
		{"max(k < 0, v[k])", nil, math.Inf(-1)},
		{"max(k < 3, v[k])", []float32{-5, -6, -7}, -5},
		{"argmax(k < 0, v[k])", nil, 0},
		{"argmax(k < 4, v[k])", []float32{1, 3, 3, 2}, 1},
		{"argmax(k < 4, v[k])", []float32{nan, 1, nan, 2}, 3},
		{"argmax(k < 2, v[k])", []float32{-inf, -inf}, 0},
		{"argmax(k < 3, v[k])", []float32{-inf, nan, inf}, 2},
		{"argmax(k < 2, v[k])", []float32{float32(math.Copysign(0, -1)), 0}, 0},
		{"sum[a](k < 3, sum[b](j < k, v[j]))", []float32{1, 2, 4}, 4},
		{"f32(argmax(k < 4, v[k])) / 2", []float32{1, 1, 1, 2}, 1.5},
		{"argmax(k < 4, v[k], 0)", []float32{1, 3, 3, 2}, 1},
		{"argmax(k < 4, v[k], 1)", []float32{1, 3, 3, 2}, 2},
		{"argmax(k < 4, v[k], 3)", []float32{1, 3, 3, 2}, 0},
		{"argmax(k < 4, v[k], n - 5)", []float32{1, 3, 3, 2}, 3},
		{"argmax(k < 4, v[k], 2)", []float32{nan, -inf, nan, inf}, 0},
		{"argmax(k < 4, v[k], 3)", []float32{nan, -inf, nan, inf}, 2},
		{"argmax(k < 3, v[k], 1)", []float32{float32(math.Copysign(0, -1)), -1, 0}, 2},
	} {
		v := eval(t, operands(c.values...), parse(t, c.src))
		assert.Equal(t, c.want, v.F, "%s of %v", c.src, c.values)
	}
	for _, src := range []string{"sum[a](k < 3, v[k])", "max[a](k < 3, v[k])", "sum[a](k < 1 / (n - 7), eps)", "argmax(k < 3, v[k])", "argmax(k < 2, v[k], 2)", "argmax(k < 2, v[k], -1)", "exp(v[k - k + 9])"} {
		vars := []string{"k"}
		if src != "exp(v[k - k + 9])" {
			vars = nil
		}
		_, err := operands(1, 2).Eval(parse(t, src, vars...), make([]int64, len(vars)))
		assert.Error(t, err, src)
	}
}

// TestGreatest: max without a class is one number to the bit, whatever the order of its elements:
// folding them with max(a, b).
func TestGreatest(t *testing.T) {
	nan, inf, minus := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	pool := []float32{nan, inf, -inf, minus, 0, 1, -1, 1e-45, -1e-45}
	fold := parse(t, "max(v[0], v[1])")
	e := parse(t, "max(k < 4, v[k])")
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		var v [4]float32
		best := term.Value{F: math.Inf(-1)}
		for i := range v {
			v[i] = pool[r.IntN(len(pool))]
			best = eval(t, operands(float32(best.F), v[i]), fold)
		}
		got := eval(t, operands(v[:]...), e)
		require.Zero(t, got.Err, "%v", v)
		require.True(t, best.Allows(got.F), "max of %v is %v, and not %v", v, best.F, got.F)
	}
	for _, c := range []struct {
		values []float32
		want   float32
	}{{[]float32{nan, nan}, -inf}, {[]float32{minus, 0}, 0}, {[]float32{0, minus}, 0}, {[]float32{minus, minus}, minus}, {[]float32{nan, -1}, -1}, {[]float32{inf, nan}, inf}} {
		got := eval(t, operands(c.values...), parse(t, "max(k < 2, v[k])"))
		require.Equal(t, math.Float32bits(c.want), math.Float32bits(float32(got.F)), "%v", c.values)
		require.Zero(t, got.Err)
	}
	// An inexact value has a bound. If an executor may have a NaN there, which max ignores, nothing
	// is known.
	in := operands()
	for _, c := range []struct {
		first term.Value
		err   float64
	}{{term.Value{F: 3, Err: 0.5}, 0.5}, {term.Value{F: math.Inf(1), Err: 0.5}, math.Inf(1)}, {term.Value{F: math.NaN(), Err: 0.5}, math.Inf(1)}, {term.Value{F: math.NaN()}, 0}} {
		in.Load = func(_ int, i []int64) (term.Value, error) {
			if i[0] == 0 {
				return c.first, nil
			}
			return term.Value{F: 1}, nil
		}
		require.Equal(t, c.err, eval(t, in, parse(t, "max(k < 2, v[k])")).Err, "%v", c.first)
	}
}

// TestAbbreviationsOnce: an abbreviation is computed once for the same indices.
func TestAbbreviationsOnce(t *testing.T) {
	loads := 0
	in := operands()
	in.Load = func(int, []int64) (term.Value, error) { loads++; return term.Value{F: 2}, nil }
	in.Abbrevs = []term.Abbrev{{Params: 1, Body: parse(t, "v[r] * v[r + 1]", "r")}}
	v := eval(t, in, parse(t, "sum[a](k < 10, inv[k % 2] + inv[k / 5])"))
	assert.Equal(t, 80.0, v.F)
	assert.Equal(t, 4, loads)
	in.Load = func(int, []int64) (term.Value, error) { return term.Value{}, errors.New("no such element") }
	_, err := in.Eval(parse(t, "inv[5]"), nil)
	assert.EqualError(t, err, "no such element")
}

// TestF16Values and the two after it check the narrow types against math/big
// and against each other.
func TestF16Values(t *testing.T) {
	assert.Equal(t, 1.0, term.F16Value(0x3c00))
	assert.Equal(t, 65504.0, term.F16Value(0x7bff))
	assert.Equal(t, math.Ldexp(1, -24), term.F16Value(0x0001))
	assert.Equal(t, math.Ldexp(1, -14), term.F16Value(0x0400))
	assert.True(t, math.IsInf(term.F16Value(0xfc00), -1))
	assert.True(t, math.IsNaN(term.F16Value(0x7c01)))
	assert.True(t, math.Signbit(term.F16Value(0x8000)))
	last := math.Inf(-1)
	for h := 0xfc00; h >= 0x8000; h-- { // ascending from -Inf to -0
		v := term.F16Value(uint16(h))
		require.True(t, v > last || h == 0xfc00)
		last = v
	}
	for h := range 1 << 16 {
		if v := term.F16Value(uint16(h)); v == v {
			require.Equal(t, uint16(h), term.F16Bits(v), "%#x", h)
		}
	}
	assert.Equal(t, uint16(0x7e00), term.F16Bits(math.NaN()))
	assert.Equal(t, uint16(0x3c00), term.F16Bits(1+0x1p-11), "a tie goes to even")
	assert.Equal(t, uint16(0xfc00), term.F16Bits(-65520))
}

// TestNarrowRoundings: every f16 (bf16) is itself, what lies between two goes to
// the nearer one and from the middle to the even one, past the last to infinity.
func TestNarrowRoundings(t *testing.T) {
	bf16 := func(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) }
	for name, c := range map[string]struct {
		value func(uint16) float64
		round func(float64) float64
		inf   uint16
	}{"f16": {term.F16Value, term.F16Round, 0x7c00}, "bf16": {bf16, term.BF16Round, 0x7f80}} {
		for h := uint16(0); h < c.inf; h++ {
			lo, hi := c.value(h), c.value(h+1)
			if h+1 == c.inf { // the value after the last finite one, were there one
				hi = 2*lo - c.value(h-1)
			}
			mid := lo + (hi-lo)/2
			even, up := lo, c.value(h+1)
			if h%2 == 1 {
				even = up
			}
			for _, sign := range []float64{1, -1} {
				require.Equal(t, sign*lo, c.round(sign*lo), "%s %#x", name, h)
				require.Equal(t, sign*even, c.round(sign*mid), "%s: middle above %#x", name, h)
				require.Equal(t, sign*lo, c.round(sign*math.Nextafter(mid, lo)), "%s: below the middle above %#x", name, h)
				require.Equal(t, sign*up, c.round(sign*math.Nextafter(mid, hi)), "%s: above the middle above %#x", name, h)
			}
		}
		assert.True(t, math.IsNaN(c.round(math.NaN())))
		assert.True(t, math.IsInf(c.round(math.Inf(-1)), -1))
		assert.True(t, math.Signbit(c.round(math.Copysign(0, -1))))
		assert.True(t, math.Signbit(c.round(-1e-45)))
	}
}

// TestNarrowAgainstBig is the same law from another side: big.Float's rounding
// to 11 and 8 bits, where neither is subnormal.
func TestNarrowAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := float64(rapid.Float32Range(-6e4, 6e4).Draw(t, "x"))
		if math.Abs(x) < 1e-4 {
			return
		}
		for prec, round := range map[uint]func(float64) float64{11: term.F16Round, 8: term.BF16Round} {
			want, _ := new(big.Float).SetPrec(prec).SetMode(big.ToNearestEven).SetFloat64(x).Float64()
			require.Equal(t, want, round(x))
		}
	})
}

// TestExactStores: a store of an exact value is exact, whatever the type.
func TestExactStores(t *testing.T) {
	for src, want := range map[string]float64{"round(f16, 0.1)": 0.0999755859375, "round(bf16, 0.1)": 0.10009765625, "round(f32, 0.1)": float64(float32(0.1))} {
		assert.Equal(t, term.Value{F: want}, eval(t, operands(), parse(t, src)), src)
	}
}

// A device that flushes may take 1/x of a large x for zero, and then y·(1/x) is zero too: both are allowed, and on
// other devices only the quotient.
func TestFlushes(t *testing.T) {
	e := parse(t, "1000000.0 * (1.0 / v[0])")
	in := operands(0x1p127)
	small := float64(1e6 * 0x1p-127)
	assert.True(t, eval(t, in, e).Allows(small))
	assert.False(t, eval(t, in, e).Allows(0))
	in.Flushes = true
	assert.True(t, eval(t, in, e).Allows(small))
	assert.True(t, eval(t, in, e).Allows(0))
	assert.False(t, eval(t, in, e).Allows(4*small))
}
