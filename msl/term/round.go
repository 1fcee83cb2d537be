package term

import (
	"math"

	"github.com/mlxc/mlxc/ir"
)

// NaNBits returns the NaN that a store of a float type leaves: positive, quiet,
// without a payload (docs/terms.md, "Stores"). A copy keeps the NaN that it finds.
func NaNBits(t ir.DType) uint64 {
	switch t {
	case ir.F16:
		return 0x7e00
	case ir.BF16:
		return 0x7fc0
	}
	return 0x7fc00000
}

// Stored returns what memory of a float type holds after v was stored there.
func Stored(t ir.DType, v float32) float32 {
	switch {
	case v != v:
		return math.Float32frombits(uint32(NaNBits(ir.F32)))
	case t == ir.F16:
		return float32(F16Round(float64(v)))
	case t == ir.BF16:
		return float32(BF16Round(float64(v)))
	}
	return v
}

// F16Value returns the value of the IEEE binary16 with the given bits.
func F16Value(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&0x3ff)
	v := math.Ldexp(frac, -24)
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		v = math.Inf(1)
	case exp > 0:
		v = math.Ldexp(1024+frac, exp-25)
	}
	if h>>15 != 0 {
		return -v
	}
	return v
}

// F16Bits returns the bits of the IEEE binary16 that is nearest to v, ties to even; of a NaN those of [NaNBits].
func F16Bits(v float64) uint16 {
	v = F16Round(v)
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = 1<<15, -v
	}
	switch {
	case math.IsNaN(v):
		return uint16(NaNBits(ir.F16))
	case math.IsInf(v, 0):
		return sign | 0x7c00
	case v < 0x1p-14:
		return sign | uint16(v*0x1p24)
	}
	frac, exp := math.Frexp(v) // ½ ≤ frac < 1
	return sign | uint16(exp+14)<<10 | uint16(frac*0x1p11)&0x3ff
}

// F16Round rounds v to the nearest IEEE binary16, ties to even.
func F16Round(v float64) float64 { return roundBits(v, 11, -14, 65504) }

// BF16Round rounds v to the nearest bfloat16, ties to even.
func BF16Round(v float64) float64 {
	return roundBits(v, 8, -126, math.Float64frombits(0x47efe00000000000))
}

// roundBits rounds to p significant bits, smallest normal exponent emin, greatest
// finite value limit.
func roundBits(v float64, p, emin int, limit float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	_, exp := math.Frexp(v) // v = f·2^exp, ½ ≤ f < 1
	unit := math.Ldexp(1, max(exp-p, emin-p+1))
	r := math.RoundToEven(v/unit) * unit
	if math.Abs(r) > limit {
		return math.Copysign(math.Inf(1), v)
	}
	if r == 0 {
		return math.Copysign(0, v)
	}
	return r
}
