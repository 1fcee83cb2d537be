package simd

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/msl/term"
)

// halfValue is the value of an f16 by the definition of IEEE 754 binary16.
func halfValue(h int) float64 {
	exponent, fraction := h>>10&31, h&1023
	v := math.Ldexp(float64(1024+fraction), exponent-25)
	switch exponent {
	case 0:
		v = math.Ldexp(float64(fraction), -24)
	case 31:
		if v = math.Inf(1); fraction != 0 {
			v = math.NaN()
		}
	}
	if h>>15 == 1 {
		v = math.Copysign(v, -1)
	}
	return v
}

// allNarrow are all numbers of 16 bits.
func allNarrow() []uint16 {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	return all
}

// TestWiden: every f16 and bf16. The payload of a NaN keeps its position at the top of the longer fraction.
func TestWiden(t *testing.T) {
	all, got := allNarrow(), make([]float32, 1<<16)
	each(t, func(t *testing.T, _ *guard) {
		HalfTo(got, all)
		for h, v := range got {
			want := math.Float32bits(float32(halfValue(h)))
			if h&0x7fff > 0x7c00 {
				want = uint32(h>>15<<31 | 0x1ff<<22 | h&1023<<13)
			}
			if math.Float32bits(v) != want {
				require.Equal(t, want, math.Float32bits(v), "%#04x", h)
			}
		}
		BFloatTo(got, all)
		for h, v := range got {
			if math.Float32bits(v) != uint32(h)<<16 {
				require.Equal(t, uint32(h)<<16, math.Float32bits(v), "%#04x", h)
			}
		}
	})
}

// roundings are numbers of every exponent whose fraction has one bit set, or all bits below one, and numbers on either
// side of each f16 and bf16 and of the middle to the next.
func roundings() (x []float32) {
	for high := uint32(0); high < 1<<9; high++ { // sign and exponent
		for bit := range 24 {
			b := high<<23 | 1<<bit&0x7fffff
			x = append(x, math.Float32frombits(b), math.Float32frombits(high<<23|(1<<bit-1)), math.Float32frombits(b|0x2000), math.Float32frombits(b|0x10000))
		}
	}
	for h := range 1 << 16 {
		for _, b := range []uint32{math.Float32bits(float32(halfValue(h))), uint32(h) << 16} {
			for _, more := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff} {
				x = append(x, math.Float32frombits(b+more))
			}
		}
	}
	return x
}

// TestNarrow: the loop in Go rounds as the interpreter of terms does, and the others do what it does.
func TestNarrow(t *testing.T) {
	x := roundings()
	half, bfloat := make([]uint16, len(x)), make([]uint16, len(x))
	toHalfGeneric(half, x)
	toBFloatGeneric(bfloat, x)
	for i, v := range x {
		if v != v {
			require.Equal(t, []uint16{nanHalf, nanBFloat}, []uint16{half[i], bfloat[i]}, "%#x", math.Float32bits(v))
			continue
		}
		h, b := term.F16Round(float64(v)), term.BF16Round(float64(v))
		if math.Float64bits(h) != math.Float64bits(halfValue(int(half[i]))) || uint32(bfloat[i])<<16 != math.Float32bits(float32(b)) {
			require.Failf(t, "rounds wrongly", "%v: f16 %#04x, want %v; bf16 %#04x, want %v", v, half[i], h, bfloat[i], b)
		}
	}
	got, values := make([]uint16, len(x)), make([]float32, len(x))
	each(t, func(t *testing.T, _ *guard) {
		ToHalf(got, x)
		require.True(t, equal(half, got), "f16")
		ToBFloat(got, x)
		require.True(t, equal(bfloat, got), "bf16")

		rounded := append([]float32(nil), x...)
		RoundHalf(rounded)
		HalfTo(values, half)
		require.True(t, equal(bits(values), bits(rounded)), "rounded to f16")
		copy(rounded, x)
		RoundBFloat(rounded)
		BFloatTo(values, bfloat)
		require.True(t, equal(bits(values), bits(rounded)), "rounded to bf16")
	})
}

func equal[T comparable](a, b []T) bool {
	for i, v := range a {
		if b[i] != v {
			return false
		}
	}
	return len(a) == len(b)
}

func bits(x []float32) []uint32 {
	b := make([]uint32, len(x))
	for i, v := range x {
		b[i] = math.Float32bits(v)
	}
	return b
}

// TestNarrowTails: any length, up to a page that nothing may touch.
func TestNarrowTails(t *testing.T) {
	each(t, func(t *testing.T, g *guard) {
		for n := range 70 {
			testNarrowTail(t, n, g.floats(n), g.halves(n), g.halves(n), narrowLoops{HalfTo, BFloatTo, ToHalf, ToBFloat, RoundHalf, RoundBFloat})
			g.release()
		}
	})
}

type narrowLoops struct {
	halfTo, bfloatTo func([]float32, []uint16)
	toHalf, toBFloat func([]uint16, []float32)
	roundHalf        func([]float32)
	roundBFloat      func([]float32)
}

// testNarrowTail compares loops with those in Go for n elements.
func testNarrowTail(t *testing.T, n int, f []float32, h, out []uint16, loops narrowLoops) {
	t.Helper()
	r := rng(uint64(n))
	wild(r, f)
	special := []float32{nan, -nan, inf, -inf, 65519.996, 65520, -1e-8, math.MaxFloat32}
	for i := range h {
		h[i] = uint16(r.Uint32())
		if r.IntN(3) == 0 {
			f[i] = special[r.IntN(len(special))]
		}
	}
	x, want16, want := append([]float32(nil), f...), make([]uint16, n), make([]float32, n)
	toHalfGeneric(want16, x)
	loops.toHalf(out, f)
	require.Equal(t, want16, out, "to f16, n = %d", n)
	toBFloatGeneric(want16, x)
	loops.toBFloat(out, f)
	require.Equal(t, want16, out, "to bf16, n = %d", n)

	copy(want, x)
	roundHalfGeneric(want)
	loops.roundHalf(f)
	require.Equal(t, bits(want), bits(f), "rounded to f16, n = %d", n)
	copy(f, x)
	copy(want, x)
	roundBFloatGeneric(want)
	loops.roundBFloat(f)
	require.Equal(t, bits(want), bits(f), "rounded to bf16, n = %d", n)

	halfToGeneric(want, h)
	loops.halfTo(f, h)
	require.Equal(t, bits(want), bits(f), "f16, n = %d", n)
	bfloatToGeneric(want, h)
	loops.bfloatTo(f, h)
	require.Equal(t, bits(want), bits(f), "bf16, n = %d", n)
}
