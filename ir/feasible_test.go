package ir

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/collections/mix"
)

// A contradiction is found only if no whole numbers satisfy the constraints, and always if no
// fractions do.
func TestContradictionAgainstEveryValue(t *testing.T) {
	found, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := &Graph{}
		n := rapid.IntRange(1, 3).Draw(t, "params")
		for range n {
			lo := rapid.IntRange(0, 3).Draw(t, "min")
			g.Params = append(g.Params, Param{Type: U32, Min: float64(lo), Max: float64(lo + rapid.IntRange(0, 4).Draw(t, "more"))})
		}
		for range rapid.IntRange(1, 5).Draw(t, "constraints") {
			var ts []Term
			for j := range n {
				if k := rapid.Int64Range(-3, 3).Draw(t, "coefficient"); k != 0 {
					ts = append(ts, Term{ParamID(j), k})
				}
			}
			if ts != nil {
				g.Constraints = append(g.Constraints, Constraint{Linear(0, ts...), rapid.Int64Range(-12, 12).Draw(t, "bound")})
			}
		}
		holds := func(step int64) bool { // for multiples of 1/step
			v := make([]int64, n)
			var try func(j int) bool
			try = func(j int) bool {
				if j == n {
					for _, c := range g.Constraints {
						sum := int64(0)
						for _, x := range c.LHS.Terms() {
							sum += x.Coeff * v[x.Param]
						}
						if sum > c.Max*step {
							return false
						}
					}
					return true
				}
				p := g.Params[j]
				for v[j] = int64(p.Min) * step; v[j] <= int64(p.Max)*step; v[j]++ {
					if try(j + 1) {
						return true
					}
				}
				return false
			}
			return try(0)
		}
		got := g.contradiction()
		if holds(1) {
			require.Empty(t, got)
			return
		}
		if len(got) == 0 {
			missed++
			return
		}
		found++
		for _, k := range got {
			require.Less(t, k, len(g.Constraints))
		}
		// The constraints that are named contradict one another without the others.
		var named []Constraint
		for _, k := range got {
			named = append(named, g.Constraints[k])
		}
		all := g.Constraints
		g.Constraints = named
		require.False(t, holds(1))
		g.Constraints = all
	})
	require.Greater(t, found, 10)
	require.Less(t, missed, found/4, "whole numbers alone are seldom the reason")
}

// The search ends soon for many constraints of many params with long coefficients.
func TestContradictionIsBounded(t *testing.T) {
	g := &Graph{}
	for range 64 {
		g.Params = append(g.Params, Param{Type: U32, Min: 0, Max: 1<<32 - 1})
	}
	x := uint64(1)
	for i := range 64 {
		var ts []Term
		for j := range 64 {
			x = mix.Word(x, uint64(i*64+j))
			ts = append(ts, Term{ParamID(j), int64(x%(1<<28)) - 1<<27})
		}
		x = mix.Word(x, 7)
		g.Constraints = append(g.Constraints, Constraint{Linear(0, ts...), -int64(x % (1 << 50))})
	}
	start := time.Now()
	g.contradiction()
	require.Less(t, time.Since(start), 2*time.Minute) // with room for a busy machine
}
