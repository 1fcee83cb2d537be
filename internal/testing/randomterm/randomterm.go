// Package randomterm draws random generated kernels (docs/kernels.md) with all operations, types and indices, and
// launches of their PTX. Arguments of functions are not kept within the functions' domains.
package randomterm

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

var (
	unary    = term.FloatOperations(1)
	binaries = term.FloatOperations(2)
	compare  = term.Comparisons()
	logical  = term.Logical()
)

// Elementwise returns the text of a random kernel.
func Elementwise(r *rand.Rand) string {
	for {
		g := &generator{r: r, flat: r.IntN(2) == 0}
		if text, ok := g.text(); ok {
			return text
		}
	}
}

type generator struct {
	r     *rand.Rand
	flat  bool
	pool  []*term.Expr
	conds []*term.Expr
}

func one[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func (g *generator) text() (string, bool) {
	i, j := variable("i"), variable("j")
	zero := &term.Expr{Op: term.Number, Kind: term.Int}
	indices := [][]*term.Expr{{i, j}, {i, j}, {j}, {i}, {zero}}
	if g.flat {
		indices = [][]*term.Expr{{i}, {i}, {i}, {zero}}
	}
	for k := range 1 + g.r.IntN(4) {
		g.pool = append(g.pool, &term.Expr{Op: term.Load, Kind: term.Float, Name: fmt.Sprint("x", k), Args: one(g.r, indices), Type: one(g.r, []ir.DType{ir.F32, ir.F32, ir.F16, ir.BF16})})
	}
	for k := range g.r.IntN(3) {
		g.pool = append(g.pool, &term.Expr{Op: term.Symbol, Kind: term.Float, Name: fmt.Sprint("c", k)})
	}
	g.pool = append(g.pool, &term.Expr{Op: term.Real, Kind: term.Float, Val: one(g.r, []float64{0, 1, 0.5, 2, 1e-5, 3.25, 1e30})})
	for range 1 + g.r.IntN(12) {
		g.step()
	}
	var results []*term.Expr
	for k := range 1 + g.r.IntN(3) {
		e := g.pool[len(g.pool)-1-min(k*g.r.IntN(3), len(g.pool)-1)]
		switch {
		case e.Op == term.Load && g.r.IntN(2) == 0 && len(e.Args) == len(indices[0]) && e.Args[0].Op == term.Var: // a copy, which is stored without rounding
		default:
			e = &term.Expr{Op: term.Round, Kind: term.Float, Type: one(g.r, []ir.DType{ir.F32, ir.F32, ir.F16, ir.BF16}), Args: []*term.Expr{e}}
		}
		results = append(results, e)
	}
	text, _, err := elementwise.Text(g.flat, results...)
	return text, err == nil
}

func variable(name string) *term.Expr { return &term.Expr{Op: term.Var, Kind: term.Int, Name: name} }

// step adds a random operation on the values so far, mostly on the latest.
func (g *generator) step() {
	float := func() *term.Expr {
		if g.r.IntN(2) == 0 {
			return g.pool[len(g.pool)-1]
		}
		return one(g.r, g.pool)
	}
	add := func(op term.Op, args ...*term.Expr) *term.Expr {
		e := &term.Expr{Op: op, Kind: term.Float, Args: args}
		g.pool = append(g.pool, e)
		return e
	}
	condition := func(op term.Op, args ...*term.Expr) {
		g.conds = append(g.conds, &term.Expr{Op: op, Kind: term.Bool, Args: args})
	}
	switch g.r.IntN(10) {
	case 0, 1, 2:
		add(one(g.r, unary), float())
	case 3:
		add(term.Round, float()).Type = one(g.r, []ir.DType{ir.F16, ir.BF16})
	case 4:
		condition(one(g.r, compare), float(), float())
		if g.r.IntN(2) == 0 {
			op := one(g.r, logical)
			args := []*term.Expr{one(g.r, g.conds), one(g.r, g.conds)}
			if op == term.Not {
				args = args[:1]
			}
			condition(op, args...)
		}
		add(term.Select, g.conds[len(g.conds)-1], float(), float())
	default:
		add(one(g.r, binaries), float(), float())
	}
}
