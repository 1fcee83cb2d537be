package cpu

import (
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// A store replaces any NaN by one canonical NaN of the element type (docs/terms.md, "Stores"), whatever operation
// produced it. Otherwise the sign and payload, which the processor takes from one of the operands, would depend on
// the order of operands, in which equal terms may differ.
const nanBits = 0x7fc00000 // of f32; simd.ToHalf and simd.ToBFloat make those of f16 and bf16

var nan32 = math.Float32frombits(nanBits)

// canonical replaces every NaN in x, which holds computed results, by the canonical NaN. It must be called before x
// is read by anything else. Looking for a NaN costs a fraction of the time that computing x took.
func canonical(x []float32) {
	if m := simd.Max(x); m == m {
		return
	}
	for i, v := range x {
		if v != v {
			x[i] = nan32
		}
	}
}

// canonicalRows is canonical for rows of n elements that lie ld apart.
func canonicalRows(x []float32, rows, n, ld int) {
	for r := range rows {
		canonical(x[r*ld : r*ld+n])
	}
}

// stored returns v as a store leaves it: a NaN becomes canonical.
func stored(v float32) float32 {
	if v != v {
		return nan32
	}
	return v
}
