package dispatches

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Generated kernels have no source of their own that could be wrong, but each executor compiles
// their terms. So random ones are compared with the interpreter, like the kernels of the
// library.

// Generated are generated kernels like those that passes make, and corner cases of their syntax.
var Generated = []string{
	"out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])",
	"out0[i, j] = round(f32, in0[i, j] * in1[j])",
	"out0[i, j] = round(f32, (in0[i, j] - in1[i]) * s0 + in2[0]); out1[i, j] = round(f32, in0[i, j] - in1[i])",
	"out0[i] = round(f32, select(in0[i] < 0.0, 1.0 / (1.0 + exp(abs(in0[i]))), 1.0 - 1.0 / (1.0 + exp(abs(in0[i])))))",
	"out0[i] = in0[i]; out1[i] = in1[i]; out2[i] = round(f32, in0[i] + in1[i])",
	"out0[i] = round(f32, s0 * inf)",
	"out0[i] = round(f16, round(f16, in0_f16[i] * in1_f16[i]) + in2_f16[i])",
	"out0[i] = in0_f16[i]; out1[i] = round(f16, in0_f16[i] * s0); out2[i] = round(f32, in0_f16[i] * s0)",
	"out0[i, j] = round(f16, in0[i, j] * in1_f16[j]); out1[i, j] = round(f32, in2_f16[i] + in3_f16[0])",
	"v0[i] = in0[i] + in0[i] / (1.0 + exp(-in0[i])); v1[i] = v0[i] * s0; out0[i] = round(f32, v0[i] + v1[i] * v1[i]); out1[i] = round(f16, v1[i])",
	"v0[i, j] = in0[i, j] < in1[j]; v1[i, j] = round(f16, in0[i, j] - in1[j]); out0[i, j] = round(f32, select(v0[i, j], v1[i, j], 1.0 - v1[i, j])); out1[i, j] = round(f32, select(v0[i, j], 2.0, 3.0))",
}

// RandomGenerated makes the text of a random generated kernel.
func RandomGenerated(r *rand.Rand) string {
	g := &randomTerm{r: r, flat: r.IntN(2) == 0}
	text := ""
	for k := range r.IntN(3) { // terms that the results share
		e := g.float(1 + r.IntN(2))
		if e.Op == term.Load || e.Op == term.Symbol || e.Op == term.Real || e.Op == term.Call {
			break
		}
		text += fmt.Sprintf("v%d[%s] = %s; ", k, g.index(), e)
		g.shared = append(g.shared, 0)
	}
	lets := len(g.shared)
	for k := range 1 + r.IntN(3) {
		head := fmt.Sprintf("out%d[i, j] = ", k)
		if g.flat {
			head = fmt.Sprintf("out%d[i] = ", k)
		}
		if k > 0 {
			text += "; "
		}
		e := g.float(1 + r.IntN(4))
		for v := range lets { // each has to be used twice at least
			for k == 0 && g.shared[v] < 2 {
				e = &term.Expr{Op: term.Add, Kind: term.Float, Args: []*term.Expr{e, g.call(v)}}
			}
		}
		if e.Op == term.Load && r.IntN(2) == 0 {
			text += head + e.String()
			continue
		}
		text += head + (&term.Expr{Op: term.Round, Kind: term.Float, Type: []ir.DType{ir.F32, ir.F32, ir.F16}[r.IntN(3)], Args: []*term.Expr{e}}).String()
	}
	return text
}

// randomTerm draws terms from left to right, as they are written: names are
// numbered as they appear.
type randomTerm struct {
	r        *rand.Rand
	flat     bool
	operands []string // their indices
	names    []string
	scalars  int
	shared   []int // uses of v0, v1, …
	exact    bool  // in a condition
}

// index returns the indices of results.
func (g *randomTerm) index() string {
	if g.flat {
		return "i"
	}
	return "i, j"
}

func (g *randomTerm) call(k int) *term.Expr {
	g.shared[k]++
	return &term.Expr{Op: term.Call, Kind: term.Float, Name: fmt.Sprintf("v%d", k), Args: []*term.Expr{{Op: term.Var, Name: g.index()}}}
}

func (g *randomTerm) leaf() *term.Expr {
	if n := len(g.shared); n > 0 && g.r.IntN(4) == 0 && !g.exact {
		return g.call(g.r.IntN(n))
	}
	switch g.r.IntN(8) {
	case 0:
		return &term.Expr{Op: term.Real, Kind: term.Float, Val: []float64{0, 1, 0.5, 2, 1e-5, 3.25}[g.r.IntN(6)]}
	case 1:
		if g.scalars < 3 {
			g.scalars++
		}
		return &term.Expr{Op: term.Symbol, Kind: term.Float, Name: fmt.Sprintf("s%d", g.scalars-1)}
	}
	k := g.r.IntN(len(g.operands) + 1)
	if k == len(g.operands) && k < 6 {
		indices := []string{"i, j", "i, j", "j", "i", "0"}
		if g.flat {
			indices = []string{"i", "i", "i", "0"}
		}
		g.operands = append(g.operands, indices[g.r.IntN(len(indices))])
		g.names = append(g.names, decl.ElementwiseOperand(k, []ir.DType{ir.F32, ir.F32, ir.F16}[g.r.IntN(3)]))
	}
	k = min(k, len(g.operands)-1)
	return &term.Expr{Op: term.Load, Kind: term.Float, Name: g.names[k], Args: []*term.Expr{{Op: term.Var, Name: g.operands[k]}}}
}

func (g *randomTerm) float(depth int) *term.Expr {
	if depth == 0 {
		return g.leaf()
	}
	unary := term.FloatOperations(1)
	binary := append(term.FloatOperations(2), term.Add, term.Sub, term.Mul) // these three more often
	e := &term.Expr{Kind: term.Float}
	switch g.r.IntN(7) {
	case 6:
		e.Op, e.Type, e.Args = term.Round, ir.F16, []*term.Expr{g.float(depth - 1)}
	case 0:
		// Functions that are undefined for some arguments, or grow fast, get arguments
		// in a safe range.
		e.Op = unary[g.r.IntN(len(unary))]
		switch e.Op {
		case term.Sqrt, term.Log, term.Rsqrt:
			e.Args = []*term.Expr{{Op: term.Add, Kind: term.Float, Args: []*term.Expr{{Op: term.Abs, Kind: term.Float, Args: []*term.Expr{g.float(depth - 1)}}, {Op: term.Real, Kind: term.Float, Val: 1}}}}
		case term.Neg, term.Abs, term.Tanh:
			e.Args = []*term.Expr{g.float(depth - 1)}
		default:
			e.Args = []*term.Expr{{Op: term.Tanh, Kind: term.Float, Args: []*term.Expr{g.float(depth - 1)}}}
		}
	case 1:
		e.Op, e.Args = term.Select, []*term.Expr{g.condition(1), g.float(depth - 1), g.float(depth - 1)}
	default:
		e.Op = binary[g.r.IntN(len(binary))]
		e.Args = []*term.Expr{g.float(depth - 1), g.float(depth - 1)}
	}
	return e
}

// condition compares exact values: near a tie an inexact one may fall on either
// side.
func (g *randomTerm) condition(depth int) *term.Expr {
	e := &term.Expr{Kind: term.Bool}
	switch k := g.r.IntN(8); {
	case k == 0 && depth > 0:
		e.Op, e.Args = term.And, []*term.Expr{g.condition(depth - 1), g.condition(depth - 1)}
	case k == 1 && depth > 0:
		e.Op, e.Args = term.Or, []*term.Expr{g.condition(depth - 1), g.condition(depth - 1)}
	case k == 2 && depth > 0:
		e.Op, e.Args = term.Not, []*term.Expr{g.condition(depth - 1)}
	default:
		comparisons := term.Comparisons()
		e.Op = comparisons[g.r.IntN(len(comparisons))]
		g.exact = true
		e.Args = []*term.Expr{g.leaf(), g.leaf()}
		g.exact = false
	}
	return e
}
