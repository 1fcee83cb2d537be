package term

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOnlyKnownRewritesCanBeAllowed(t *testing.T) {
	require.NoError(t, CheckAllowed(nil))
	require.NoError(t, CheckAllowed([]string{Unrounded}))
	require.EqualError(t, CheckAllowed([]string{"fma"}), `there is no rewrite "fma" (there are round)`)
	require.EqualError(t, checkAllowed([]string{"fma"}, nil), `there is no rewrite "fma": none can be allowed yet, all that are made are exact to the bit`)
	known := []Rewrite{{Name: "fma"}, {Name: "reassociate"}}
	require.NoError(t, checkAllowed([]string{"reassociate", "fma"}, known))
	require.EqualError(t, checkAllowed([]string{"fma", "fast"}, known), `there is no rewrite "fast" (there are fma, reassociate)`)
	for _, r := range Rewrites() {
		require.NotEmpty(t, r.What, r.Name)
		require.NotEmpty(t, r.Bound, r.Name)
	}
}

// The bound of rewrite round is that of one rounding, and no smaller one is.
func TestBoundOfRound(t *testing.T) {
	types := []struct {
		round             func(float64) float64
		unit, normal, max float64 // unit roundoff, smallest normal, what overflows
	}{
		{F16Round, 1.0 / (1 << 11), math.Ldexp(1, -14), 65520},
		{BF16Round, 1.0 / (1 << 8), math.Ldexp(1, -126), math.Ldexp(2-math.Ldexp(1, -8), 127)},
	}
	reached := [2][2]float64{} // the max share of the bound that a rounding took: normal, subnormal
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(0, 1).Draw(t, "type")
		c := types[k]
		v := float64(math.Float32frombits(rapid.Uint32().Draw(t, "v")))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		got := c.round(v)
		if math.Abs(v) >= c.max {
			require.True(t, math.IsInf(got, 0), "%v", v)
			return
		}
		bound, sub := c.unit*math.Abs(v), 0
		if math.Abs(v) < c.normal {
			bound, sub = c.unit*c.normal, 1
		}
		require.LessOrEqual(t, math.Abs(got-v), bound, "%v", v)
		if bound > 0 {
			reached[k][sub] = max(reached[k][sub], math.Abs(got-v)/bound)
		}
	})
	for k, c := range types {
		// Halfway between neighbours, the bound is nearly reached.
		v := 1 + c.unit
		require.InDelta(t, 1, math.Abs(c.round(v)-v)/(c.unit*v), 0.01, "type %d", k)
		v = c.unit * c.normal
		require.Equal(t, v, math.Abs(c.round(v)-v), "type %d, subnormal", k)
	}
	t.Logf("shares of the bound reached: %.3f", reached)
}
