package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func drawConstraints(t *rapid.T, g *ir.Graph) {
	small := rapid.Int64Range(-4, 4)
	for range rapid.IntRange(0, 5).Draw(t, "constraints") {
		g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, drawTerms(t, len(g.Params), small)...), Max: rapid.Int64Range(-20, 40).Draw(t, "max")})
	}
}

// Bounds give the same answers as Range, whatever they were asked before. Once their work is used
// up, their answers are wider, but never too narrow.
func TestBoundsAnswerAsRange(t *testing.T) {
	small := rapid.Int64Range(-4, 4)
	rapid.Check(t, func(t *rapid.T) {
		g := drawBox(t, rapid.IntRange(1, 4).Draw(t, "params"), 4)
		drawConstraints(t, g)
		all, some := ir.NewBounds(g, -1), ir.NewBounds(g, rapid.Int64Range(0, 40).Draw(t, "work"))
		draw := func() ir.Affine {
			return ir.Linear(small.Draw(t, "constant"), drawTerms(t, len(g.Params), small)...)
		}
		for range 6 {
			a, b := draw(), draw()
			lo, hi, ok := g.Range(a)
			require.True(t, ok)
			x, y, ok := all.Range(a)
			require.True(t, ok)
			require.Equal(t, [2]int64{lo, hi}, [2]int64{x, y})
			x, y, ok = some.Range(a)
			require.True(t, ok)
			require.True(t, x <= lo && hi <= y, "[%d, %d] is narrower than [%d, %d]", x, y, lo, hi)

			limit := rapid.Int64Range(-30, 30).Draw(t, "limit")
			_, most, _ := g.Range(a.Sub(b))
			if l, h, any := extremes(g, ir.Const(0)); any {
				require.Equal(t, most <= limit, all.DifferenceAtMost(a, b, limit), "%v", []int64{l, h})
				require.Equal(t, hi <= limit, all.AtMost(a, limit))
				_, true_, _ := extremes(g, a.Sub(b))
				if some.DifferenceAtMost(a, b, limit) {
					require.LessOrEqual(t, true_, limit)
				}
			}
		}
	})
}

// The dozens of constraints that a hostile file may have cost what the bound says.
func TestBoundsEnd(t *testing.T) {
	g := &ir.Graph{Name: "g"}
	for range 64 {
		g.Params = append(g.Params, ir.Param{Name: "p", Type: ir.U32, Max: 1000})
	}
	for i := range 64 {
		g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, ir.Term{Param: ir.ParamID(i), Coeff: 1}, ir.Term{Param: ir.ParamID(i * 7 % 64), Coeff: 1}, ir.Term{Param: ir.ParamID(i * 13 % 64), Coeff: -1}), Max: 900})
	}
	b := ir.NewBounds(g, 1<<12)
	for i := range int64(10000) {
		a := ir.Linear(i, ir.Term{Param: ir.ParamID(i % 64), Coeff: 1 + i%9}, ir.Term{Param: ir.ParamID(i * 5 % 64), Coeff: 2 + i%7}, ir.Term{Param: ir.ParamID(i * 11 % 64), Coeff: 3})
		lo, hi, ok := b.Range(a)
		wideLo, wideHi, _ := (&ir.Graph{Params: g.Params}).Range(a)
		require.True(t, ok && wideLo <= lo && hi <= wideHi)
	}
}

func BenchmarkDifferenceAtMost(b *testing.B) {
	g := &ir.Graph{Name: "g"}
	for range 64 {
		g.Params = append(g.Params, ir.Param{Name: "p", Type: ir.U32, Max: 1000})
	}
	for i := range 64 {
		g.Constraints = append(g.Constraints, ir.Constraint{LHS: ir.Linear(0, ir.Term{Param: ir.ParamID(i), Coeff: 1}, ir.Term{Param: ir.ParamID((i*7 + 1) % 64), Coeff: 1}, ir.Term{Param: ir.ParamID((i*13 + 2) % 64), Coeff: 1}), Max: 900})
	}
	var as []ir.Affine
	for i := range int64(1000) {
		as = append(as, ir.Linear(i, ir.Term{Param: ir.ParamID(i % 64), Coeff: 1 + i%3}, ir.Term{Param: ir.ParamID(i * 5 % 64), Coeff: 2}, ir.Term{Param: ir.ParamID(i * 11 % 64), Coeff: 1}))
	}
	for _, k := range []struct {
		name  string
		limit int64
	}{{"reached", 0}, {"searched", 4000}} {
		b.Run(k.name, func(b *testing.B) {
			x := ir.NewBounds(g, -1)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				x.DifferenceAtMost(as[i%1000], as[i/1000%1000], k.limit)
				i++
			}
		})
	}
}
