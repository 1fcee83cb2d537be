package ir_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func box(bounds ...[2]uint32) *ir.Graph {
	g := &ir.Graph{Name: "g"}
	for i, b := range bounds {
		g.Params = append(g.Params, ir.Param{Name: string(rune('a' + i)), Type: ir.U32, Min: float64(b[0]), Max: float64(b[1])})
	}
	return g
}

func drawBox(t *rapid.T, params int, widest uint32) *ir.Graph {
	var bounds [][2]uint32
	for range params {
		lo := rapid.Uint32Range(0, 9).Draw(t, "min")
		bounds = append(bounds, [2]uint32{lo, lo + rapid.Uint32Range(0, widest).Draw(t, "width")})
	}
	return box(bounds...)
}

func drawTerms(t *rapid.T, params int, coeff *rapid.Generator[int64]) []ir.Term {
	var out []ir.Term
	for p := range params {
		out = append(out, ir.Term{Param: ir.ParamID(p), Coeff: coeff.Draw(t, "coefficient")})
	}
	return out
}

// points calls yield with every value of the params that g allows.
func points(g *ir.Graph, yield func([]uint32)) {
	v := make([]uint32, len(g.Params))
	for i, p := range g.Params {
		v[i] = uint32(p.Min)
	}
	for {
		allowed := true
		for _, c := range g.Constraints {
			allowed = allowed && c.LHS.Eval(v) <= c.Max
		}
		if allowed {
			yield(v)
		}
		i := 0
		for ; i < len(v); i++ {
			if v[i]++; float64(v[i]) <= g.Params[i].Max {
				break
			}
			v[i] = uint32(g.Params[i].Min)
		}
		if i == len(v) {
			return
		}
	}
}

// extremes returns the min and the max of a among the points.
func extremes(g *ir.Graph, a ir.Affine) (lo, hi int64, any bool) {
	lo, hi = math.MaxInt64, math.MinInt64
	points(g, func(v []uint32) {
		x := a.Eval(v)
		lo, hi, any = min(lo, x), max(hi, x), true
	})
	return lo, hi, any
}

func TestRangeIsSafe(t *testing.T) {
	small := rapid.Int64Range(-4, 4)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "params")
		g := drawBox(t, n, 4)
		for range rapid.IntRange(0, 4).Draw(t, "constraints") {
			g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, drawTerms(t, n, small)...), Max: rapid.Int64Range(-40, 40).Draw(t, "max")})
		}
		a := ir.Linear(small.Draw(t, "constant"), drawTerms(t, n, small)...)
		lo, hi, ok := g.Range(a)
		if !ok {
			t.Fatal("small numbers leave 64 bits")
		}
		if l, h, any := extremes(g, a); any && (lo > l || hi < h) {
			t.Fatalf("range of %s is [%d, %d], but it takes [%d, %d]", g.FormatAffine(a), lo, hi, l, h)
		}
	})
}

func TestRangeIsExactWithoutConstraints(t *testing.T) {
	small := rapid.Int64Range(-4, 4)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "params")
		g := drawBox(t, n, 3)
		exact(t, g, ir.Linear(small.Draw(t, "constant"), drawTerms(t, n, small)...))
	})
}

// Range is exact for any expression if there is one constraint, between at most 8 params with
// coefficients ±1.
func TestRangeIsExactUnderOneConstraint(t *testing.T) {
	sign := rapid.Int64Range(-1, 1)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "params")
		g := drawBox(t, n, uint32(map[bool]int{true: 5, false: 1}[n <= 3]))
		lhs := ir.Linear(0, drawTerms(t, n, sign)...)
		g.Constraints = []ir.Constraint{{LHS: lhs, Max: rapid.Int64Range(-20, 60).Draw(t, "max")}}
		if _, _, any := extremes(g, lhs); !any {
			return // nothing satisfies it: any range is safe, none is exact
		}
		exact(t, g, ir.Linear(sign.Draw(t, "constant"), drawTerms(t, n, rapid.Int64Range(-9, 9))...))
	})
}

func exact(t *rapid.T, g *ir.Graph, a ir.Affine) {
	lo, hi, ok := g.Range(a)
	if l, h, _ := extremes(g, a); !ok || lo != l || hi != h {
		t.Fatalf("range of %s is [%d, %d], want [%d, %d]", g.FormatAffine(a), lo, hi, l, h)
	}
}

// With numbers near 2^63 a range is either safe or not ok, never wrapped.
func TestRangeNeverWraps(t *testing.T) {
	huge := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 1 << 32, -1 << 40}))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "params")
		g := drawBox(t, n, 2)
		for range rapid.IntRange(0, 2).Draw(t, "constraints") {
			g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, drawTerms(t, n, huge)...), Max: huge.Draw(t, "max")})
		}
		a := ir.Linear(huge.Draw(t, "constant"), drawTerms(t, n, huge)...)
		lo, hi, ok := g.Range(a)
		if !ok {
			return
		}
		all := *g
		all.Constraints = nil
		points(&all, func(v []uint32) {
			for _, c := range g.Constraints {
				if bigEval(c.LHS, v).Cmp(big.NewInt(c.Max)) > 0 {
					return
				}
			}
			if x := bigEval(a, v); x.Cmp(big.NewInt(lo)) < 0 || x.Cmp(big.NewInt(hi)) > 0 {
				t.Fatalf("%s is %d at %v, outside [%d, %d]", g.FormatAffine(a), x, v, lo, hi)
			}
		})
	})
}

func bigEval(a ir.Affine, v []uint32) *big.Int {
	x := big.NewInt(a.Const)
	for _, t := range a.Terms() {
		x.Add(x, new(big.Int).Mul(big.NewInt(t.Coeff), big.NewInt(int64(v[t.Param]))))
	}
	return x
}

func TestRange(t *testing.T) {
	p := func(c int64) ir.Term { return ir.Term{0, c} }
	q := func(c int64) ir.Term { return ir.Term{1, c} }
	for _, c := range []struct {
		name        string
		constraints []ir.Constraint
		a           ir.Affine
		lo, hi      int64
		ok          bool
	}{
		{"constant", nil, ir.Const(-7), -7, -7, true},
		{"box", nil, ir.Linear(1, p(2), q(-1)), 1 - 1, 1 + 4*2 - 0, true},
		{"pos + n", []ir.Constraint{{ir.Linear(0, p(1), q(1)), 4}}, ir.Linear(0, p(256), q(256)), 0, 1024, true},
		{"two constraints", []ir.Constraint{{ir.Linear(0, p(1)), 3}, {ir.Linear(0, q(1)), 0}}, ir.Linear(0, p(1), q(1)), 0, 3, true},
		{"lower bound by a constraint", []ir.Constraint{{ir.Linear(0, p(-1)), -2}}, ir.Linear(0, p(3)), 6, 12, true},
		{"coefficients of 64 bits", nil, ir.Linear(0, p(math.MaxInt64)), 0, 0, false},
		{"least integer", nil, ir.Const(math.MinInt64), math.MinInt64, math.MinInt64, true},
		{"coefficient that has no negative", nil, ir.Linear(0, q(math.MinInt64)), 0, 0, false},
		// λ·LHS leaves 64 bits: 2^40·(p − 2^40·q) wraps to 2^40·p, which would
		// make a ≤ 0.
		{"multiple of a constraint that wraps", []ir.Constraint{{ir.Linear(0, p(1), q(-1<<40)), 0}}, ir.Linear(0, p(1<<40)), 0, 4 << 40, true},
		{"param that does not exist", nil, ir.Linear(0, ir.Term{2, 1}), 0, 0, false},
		{"negative param", nil, ir.Linear(0, ir.Term{-1, 1}), 0, 0, false},
	} {
		g := box([2]uint32{0, 4}, [2]uint32{0, 1})
		g.Constraints = c.constraints
		lo, hi, ok := g.Range(c.a)
		require.Equal(t, c.ok, ok, c.name)
		if ok {
			require.Equal(t, [2]int64{c.lo, c.hi}, [2]int64{lo, hi}, c.name)
		}
	}
}

// A hostile graph has more combinations of constraints than anybody can try:
// the range is safe all the same, and found soon.
func TestRangeGivesUp(t *testing.T) {
	bounds := make([][2]uint32, 64)
	for i := range bounds {
		bounds[i] = [2]uint32{0, 1}
	}
	g := box(bounds...)
	var sum []ir.Term
	for p := range ir.ParamID(64) {
		sum = append(sum, ir.Term{Param: p, Coeff: 1})
	}
	for range 64 {
		g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, sum...), Max: 60})
	}
	lo, hi, ok := g.Range(ir.Linear(0, sum...))
	require.True(t, ok)
	require.Equal(t, [2]int64{0, 60}, [2]int64{lo, hi})
	allocs := testing.AllocsPerRun(10, func() { g.Range(ir.Linear(0, sum...)) })
	require.Less(t, allocs, 1000.0, "work grows with the third power of the constraints")
}

func TestGreatest(t *testing.T) {
	half := math.Float32bits(0.5)
	g := &ir.Graph{
		Params:      []ir.Param{{Name: "pos", Type: ir.U32, Max: 1023}, {Name: "n", Type: ir.U32, Min: 1, Max: 64}, {Name: "eps", Type: ir.F32, Min: 0.5, Max: 1}},
		Constraints: []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: 0, Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 1024}},
	}
	require.Equal(t, []uint32{960, 64, half}, g.Greatest())
	g.Constraints[0].Max = 40
	require.Equal(t, []uint32{0, 40, half}, g.Greatest())
}
