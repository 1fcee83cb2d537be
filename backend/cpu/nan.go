package cpu

import (
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// What a store makes of a NaN (docs/terms.md, "Stores"): one NaN for each type,
// whichever operation made it and whatever its operands carried. The sign and
// payload that the processor gives depend on the order of operands, which equal
// terms need not share.
const (
	nanBits       = 0x7fc00000
	nanHalfBits   = 0x7e00
	nanBFloatBits = 0x7fc0
)

var nan32 = math.Float32frombits(nanBits)

// canonical replaces every NaN in x, which holds computed results, by the one that a store
// leaves. It has to be called before anybody else reads x. NaNs are rare, and looking for
// one costs a fraction of the time that computing x took.
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

// stored is canonical for one number.
func stored(v float32) float32 {
	if v != v {
		return nan32
	}
	return v
}
