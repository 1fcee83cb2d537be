package cpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestAnglesForgetNothingWrong asks one worker for the angles of many positions in turn. The answers must be those of
// a worker without a cache.
func TestAnglesForgetNothingWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
		var a angles
		for range dim("requests", 1, 10) {
			scale := rapid.SampledFrom([]float32{1, 0.25}).Draw(t, "scale")
			base := rapid.SampledFrom([]float32{13.25, 16.5}).Draw(t, "base")
			half, first, n := dim("half", 1, 2), dim("first", 0, 3), dim("n", 0, 4)
			cos, sin := a.of(scale, base, half, first, n)
			wantCos, wantSin := new(angles).of(scale, base, half, first, n)
			require.True(t, slices.Equal(wantCos, cos))
			require.True(t, slices.Equal(wantSin, sin))
		}
	})
}

// TestAnglesAreRemembered: a worker caches the angles, because the layers of a model ask for the same ones.
func TestAnglesAreRemembered(t *testing.T) {
	var a angles
	cos, _ := a.of(1, 13.25, 4, 10, 5)
	cos[0] = 7
	again, _ := a.of(1, 13.25, 4, 10, 5)
	require.Equal(t, float32(7), again[0])
	part, _ := a.of(1, 13.25, 4, 12, 2)
	require.Equal(t, cos[8:16], part)
}
