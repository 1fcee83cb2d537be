package term_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// TestParseErrors holds every message of the parser with the column it points
// at. The index variables r and i are in scope.
func TestParseErrors(t *testing.T) {
	deep := strings.Repeat("(", 101) + "n" + strings.Repeat(")", 101)
	minus := strings.Repeat("-", 101) + "n"
	calls := strings.Repeat("abs(", 101) + "n" + strings.Repeat(")", 101)
	for _, c := range []struct{ src, want string }{
		// Tokens.
		{"", `column 1 of "": the expression ends too early`},
		{"   ", `column 4 of "   ": the expression ends too early`},
		{"n $ m", `column 3 of "n $ m": unexpected "$"`},
		{"n + µ", "column 5 of \"n + µ\": unexpected \"\\xc2\""},
		{"n = m", `column 3 of "n = m": unexpected "="`},
		{"n < m & m < n", `column 7 of "n < m & m < n": unexpected "&"`},
		{"n < m | m < n", `column 7 of "n < m | m < n": unexpected "|"`},
		{"n\nm", "column 2 of \"n\\nm\": unexpected \"\\n\""},
		{"9223372036854775808", `column 1 of "9223372036854775808": "9223372036854775808" is no integer within 63 bits`},
		{"1.2.3", `column 1 of "1.2.3": "1.2.3" is no f32`},
		{"eps + 1e", `column 7 of "eps + 1e": "1e" is no f32`},
		{"1e39", `column 1 of "1e39": "1e39" is no f32`},
		// Form.
		{"n m", `column 3 of "n m": unexpected "m"`},
		{"n +", `column 4 of "n +": the expression ends too early`},
		{"* n", `column 1 of "* n": unexpected "*"`},
		{"n + )", `column 5 of "n + )": unexpected ")"`},
		{"(n", `column 3 of "(n": found "", want ")"`},
		{"(n]", `column 3 of "(n]": found "]", want ")"`},
		{"n)", `column 2 of "n)": unexpected ")"`},
		{"n, m", `column 2 of "n, m": unexpected ","`},
		{"min(n, m", `column 9 of "min(n, m": found "", want ")"`},
		{"min()", `column 5 of "min()": unexpected ")"`},
		{"v[]", `column 3 of "v[]": unexpected "]"`},
		{"v[n", `column 4 of "v[n": found "", want "]"`},
		{"n < m < 3", `column 7 of "n < m < 3": comparisons do not chain`},
		{"n == m != 3", `column 8 of "n == m != 3": comparisons do not chain`},
		{deep, `column 101 of "` + deep + `": nested deeper than 100`},
		{minus, `column 101 of "` + minus + `": nested deeper than 100`},
		{calls, `column 401 of "` + calls + `": nested deeper than 100`},
		// Names.
		{"q", `column 1 of "q": "q" is not defined`},
		{"n + k", `column 5 of "n + k": "k" is not defined`},
		{"x", `column 1 of "x": "x" is not defined`},
		{"s", `column 1 of "s": "s" is not defined`},
		{"z[1]", `column 1 of "z[1]": "z" is no readable argument and no abbreviation`},
		{"s[2]", `column 1 of "s[2]": "s" is no readable argument and no abbreviation`},
		{"s[n]", `column 1 of "s[n]": "s" is no readable argument and no abbreviation`},
		{"pow(n, m)", `column 1 of "pow(n, m)": there is no operation "pow"`},
		{"n + x(1)", `column 5 of "n + x(1)": there is no operation "x"`},
		{"f16(n)", `column 1 of "f16(n)": there is no operation "f16"`},
		// Ranks and numbers of arguments.
		{"x[r]", `column 1 of "x[r]": x has 2 dimensions, not 1`},
		{"eps * v[r, i]", `column 7 of "eps * v[r, i]": v has 1 dimensions, not 2`},
		{"inv[r, i]", `column 1 of "inv[r, i]": inv takes 1 indices, not 2`},
		{"exp(eps, eps)", `column 1 of "exp(eps, eps)": exp takes 1 arguments, not 2`},
		{"min(n)", `column 1 of "min(n)": min takes 2 arguments, not 1`},
		{"select(n < m, n)", `column 1 of "select(n < m, n)": select takes 3 arguments, not 2`},
		// Kinds.
		{"v[eps]", `column 1 of "v[eps]": an index of v is a float, not an integer`},
		{"v[n < m]", `column 1 of "v[n < m]": an index of v is a condition, not an integer`},
		{"inv[1.5]", `column 1 of "inv[1.5]": an index of inv is a float, not an integer`},
		{"n && m", `column 3 of "n && m": && takes conditions, not one of kind integer`},
		{"n < m || eps", `column 7 of "n < m || eps": || takes conditions, not one of kind float`},
		{"n + (n < m)", `column 3 of "n + (n < m)": + takes numbers, not conditions`},
		{"(n < m) == (m < n)", `column 9 of "(n < m) == (m < n)": == takes numbers, not conditions`},
		{"eps % 2", `column 5 of "eps % 2": % takes integers, not one of kind float`},
		{"!n", `column 1 of "!n": ! takes conditions, not one of kind integer`},
		{"n * -(n < m)", `column 5 of "n * -(n < m)": - takes numbers, not conditions`},
		{"ceil(n)", `column 1 of "ceil(n)": ceil takes a quotient of integers`},
		{"ceil(eps / n)", `column 1 of "ceil(eps / n)": ceil takes a quotient of integers`},
		{"ceil(n / 2, n / 2)", `column 1 of "ceil(n / 2, n / 2)": ceil takes a quotient of integers`},
		{"u32(eps)", `column 1 of "u32(eps)": u32 takes one integer`},
		{"u32(n, m)", `column 1 of "u32(n, m)": u32 takes one integer`},
		{"round(u32, eps)", `column 7 of "round(u32, eps)": round takes f16, bf16 or f32 first, not "u32"`},
		{"round(eps)", `column 7 of "round(eps)": round takes f16, bf16 or f32 first, not "eps"`},
		{"round(f32 eps)", `column 11 of "round(f32 eps)": found "eps", want ","`},
		{"round(f32, n < m)", `column 1 of "round(f32, n < m)": round takes a number, not a condition`},
		{"select(n, n, m)", `column 1 of "select(n, n, m)": select takes a condition first, not one of kind integer`},
		{"select(n < m, n < m, m)", `column 1 of "select(n < m, n < m, m)": select takes numbers, not conditions`},
		{"pow2(eps)", `column 1 of "pow2(eps)": pow2 takes integers, not one of kind float`},
		{"as_f16(eps)", `column 1 of "as_f16(eps)": as_f16 takes integers, not one of kind float`},
		{"as_f16(n < m)", `column 1 of "as_f16(n < m)": as_f16 takes integers, not one of kind condition`},
		{"as_f16(n, m)", `column 1 of "as_f16(n, m)": as_f16 takes 1 arguments, not 2`},
		{"exp(n < m)", `column 1 of "exp(n < m)": exp takes numbers, not conditions`},
		{"max(big[r], n)", `column 1 of "max(big[r], n)": max takes numbers, not conditions`},
		// Reductions.
		{"sum[](k < n, eps)", `column 5 of "sum[](k < n, eps)": a reduction's class is a name, not "]"`},
		{"sum[3](k < n, eps)", `column 5 of "sum[3](k < n, eps)": a reduction's class is a name, not "3"`},
		{"sum[a b](k < n, eps)", `column 7 of "sum[a b](k < n, eps)": found "b", want "]"`},
		{"sum[a] k", `column 8 of "sum[a] k": found "k", want "("`},
		{"sum[a](r < n, eps)", `column 8 of "sum[a](r < n, eps)": sum binds a new index, not "r"`},
		{"sum[a](n < m, eps)", `column 8 of "sum[a](n < m, eps)": sum binds a new index, not "n"`},
		{"sum[a](3 < m, eps)", `column 8 of "sum[a](3 < m, eps)": sum binds a new index, not "3"`},
		{"sum[a](k <= m, eps)", `column 10 of "sum[a](k <= m, eps)": found "<=", want "<"`},
		{"sum[a](k < eps, eps)", `column 12 of "sum[a](k < eps, eps)": the bound of k is a float, not an integer`},
		{"sum[a](k < n eps)", `column 14 of "sum[a](k < n eps)": found "eps", want ","`},
		{"sum[a](k < k, eps)", `column 12 of "sum[a](k < k, eps)": "k" is not defined`},
		{"max[a](k < n, k < n)", `column 15 of "max[a](k < n, k < n)": max takes numbers, not conditions`},
		{"sum(k < n, v[k]) + k", `column 20 of "sum(k < n, v[k]) + k": "k" is not defined`},
		{"sum(n)", `column 1 of "sum(n)": there is no operation "sum"`},
		{"argmax(k < n, v[k], eps)", `column 21 of "argmax(k < n, v[k], eps)": the place of argmax is a float, not an integer`},
		{"argmax(k < n, v[k], k)", `column 21 of "argmax(k < n, v[k], k)": "k" is not defined`},
		{"argmax(k < n, v[k], 1, 2)", `column 22 of "argmax(k < n, v[k], 1, 2)": found ",", want ")"`},
		{"max(k < n, v[k], 1)", `column 16 of "max(k < n, v[k], 1)": found ",", want ")"`},
		{"argmax(k < n, v[k]", `column 19 of "argmax(k < n, v[k]": found "", want ")"`},
	} {
		_, err := term.Parse(c.src, scope{}, "r", "i")
		assert.EqualError(t, err, c.want, "source %q", c.src)
	}
}

// TestParseKinds: what an expression yields follows from its operands.
func TestParseKinds(t *testing.T) {
	for src, want := range map[string]term.Kind{
		"n": term.Int, "eps": term.Float, "1": term.Int, "1.0": term.Float, "inf": term.Float,
		"n + m": term.Int, "n + eps": term.Float, "n / m": term.Int, "n / eps": term.Float, "ceil(n / m)": term.Int,
		"-n": term.Int, "-eps": term.Float, "n < m": term.Bool, "n < eps": term.Bool, "!(n < m)": term.Bool,
		"min(n, m)": term.Int, "min(n, eps)": term.Float, "abs(n)": term.Float, "f32(n)": term.Float, "exp(n)": term.Float,
		"select(n < m, n, m)": term.Float, "x[r, i]": term.Float, "id[r]": term.Int, "x[id[r], i]": term.Float,
		"sum[a](k < n, k)": term.Float, "max[a](k < n, v[k])": term.Float, "argmax(k < n, v[k])": term.Int, "argmax(k < n, v[k], i)": term.Int,
		"inv[r]": term.Float, "at[r]": term.Int, "big[r]": term.Bool, "round(f16, n)": term.Float, "u8(n)": term.Int, "pow2(n)": term.Bool, "as_f16(n)": term.Float, "as_f32(n)": term.Float,
	} {
		assert.Equal(t, want, parse(t, src, "r", "i").Kind, src)
	}
}

// TestPrecedence shows the tree by way of the text without redundant brackets.
func TestPrecedence(t *testing.T) {
	for src, want := range map[string]string{
		"n+m*3":                           "n + m * 3",
		"(n+m)*3":                         "(n + m) * 3",
		"n-(m-3)":                         "n - (m - 3)",
		"(n-m)-3":                         "n - m - 3",
		"n/(m/3)":                         "n / (m / 3)",
		"n%m*3":                           "n % m * 3",
		"-n*m":                            "-n * m",
		"-(n*m)":                          "-(n * m)",
		"- - n":                           "--n",
		"!(n<m)&&!big[r]":                 "!(n < m) && !big[r]",
		"!!(n<m)":                         "!!(n < m)",
		"n<m||n==m&&n>=3":                 "n < m || n == m && n >= 3",
		"(n<m||n==m)&&n>=3":               "(n < m || n == m) && n >= 3",
		"ceil((n)/(m*3))":                 "ceil(n / (m * 3))",
		"ceil((n+1)/m)*3":                 "ceil((n + 1) / m) * 3",
		"max(n,m)":                        "max(n, m)",
		"max(k<n,v[k])":                   "max(k < n, v[k])",
		"sum[q](k<n*3,sum(j<k,x[k,j]))":   "sum[q](k < n * 3, sum(j < k, x[k, j]))",
		"argmax(k<(n),v[k])+1":            "argmax(k < n, v[k]) + 1",
		"argmax(k<n,v[k],(i)+1)*2":        "argmax(k < n, v[k], i + 1) * 2",
		"round( f16 , 1e-5*eps )":         "round(f16, 1e-05 * eps)",
		"as_f16( id[r]+256*n )*eps":       "as_f16(id[r] + 256 * n) * eps",
		"u32( s[1]*n )":                   "u32(s[1] * n)",
		"select(n<m,-inf,1e30)":           "select(n < m, -inf, 1e+30)",
		"x[ id[r] % n , i/2 ]":            "x[id[r] % n, i / 2]",
		"100.0 + 0.1":                     "100.0 + 0.1",
		"9223372036854775807":             "9223372036854775807",
		"16777216.0 + 340282346638528e24": "1.6777216e+07 + 3.4028235e+38",
	} {
		assert.Equal(t, want, parse(t, src, "r", "i").String(), src)
	}
}

// TestBinders: an index counts its binders from the outside, and a name goes
// back to what it was when its reduction ends.
func TestBinders(t *testing.T) {
	e := parse(t, "sum(k < n, x[r, k] * sum(j < m, y[k, j]) + v[k])", "r", "i")
	got := map[string]int{}
	e.Walk(func(e *term.Expr) {
		if e.Op == term.Var {
			got[e.Name] = e.Index
		}
	})
	assert.Equal(t, map[string]int{"r": 0, "k": 2, "j": 3}, got)
	e = parse(t, "sum(k < n, v[k]) + sum(k < m, v[k])", "r")
	assert.Equal(t, 1, e.Args[0].Index)
	assert.Equal(t, 1, e.Args[1].Index)
}

// TestRoundTrip: printing and parsing again gives the same tree.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{t: t, vars: []string{"r", "i"}}
		kind := rapid.SampledFrom([]term.Kind{term.Int, term.Float, term.Bool}).Draw(t, "kind")
		e := g.expr(kind, rapid.IntRange(0, 5).Draw(t, "depth"))
		again, err := term.Parse(e.String(), scope{}, "r", "i")
		require.NoError(t, err, "%s", e)
		require.Empty(t, cmp.Diff(e, again), "%s", e)
	})
}

// FuzzParse: the parser does not crash, and what it accepts round-trips.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "n", "ceil((n + 1) / m) * 3", "round(f16, sum[rms](k < n, x[r, k] * x[r, k]) / f32(n) + eps)",
		"select(id[r] >= 0 && !(id[r] >= n), x[id[r], i], inf - inf)", "u8(argmax(k < n, v[k]) % 3)", "argmax(k < n, v[k], i % 2)", "as_f16(id[r] + 256 * n) * 2", "--n", "1e-5", "max(max(j < m, y[j, i]), 2.5)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := term.Parse(src, scope{}, "r", "i")
		if err != nil {
			require.Regexp(t, `^column \d+ of `, err.Error())
			return
		}
		again, err := term.Parse(e.String(), scope{}, "r", "i")
		require.NoError(t, err, "%q printed as %q", src, e)
		require.Empty(t, cmp.Diff(e, again))
	})
}

// generator draws well-formed expressions over scope.
type generator struct {
	t    *rapid.T
	vars []string
	// plain leaves out what only declarations have: arrays, abbreviations.
	plain bool
}

func (g *generator) pick(label string, n int) int { return rapid.IntRange(0, n-1).Draw(g.t, label) }

func (g *generator) expr(k term.Kind, depth int) *term.Expr {
	switch k {
	case term.Int:
		return g.integer(depth)
	case term.Float:
		return g.float(depth)
	}
	return g.condition(depth)
}

// number draws an expression of either kind of number.
func (g *generator) number(depth int) *term.Expr {
	if g.pick("float", 3) == 0 {
		return g.integer(depth)
	}
	return g.float(depth)
}

func (g *generator) symbol(k term.Kind) *term.Expr {
	var of []int
	for i, s := range symbols {
		if s.kind == k {
			of = append(of, i)
		}
	}
	i := rapid.SampledFrom(of).Draw(g.t, "symbol")
	return &term.Expr{Op: term.Symbol, Kind: k, Name: symbols[i].name, Index: i}
}

func (g *generator) integer(depth int) *term.Expr {
	if depth <= 0 {
		switch g.pick("leaf", 3) {
		case 0:
			return &term.Expr{Op: term.Number, Num: int64(g.pick("number", 100))}
		case 1:
			return g.symbol(term.Int)
		}
		i := g.pick("var", len(g.vars))
		return &term.Expr{Op: term.Var, Name: g.vars[i], Index: i}
	}
	depth--
	op := rapid.SampledFrom([]term.Op{term.Add, term.Sub, term.Mul, term.Div, term.Mod, term.CeilDiv, term.Min, term.Max, term.Neg, term.ToInt, term.Load, term.Call, term.ArgMax}).Draw(g.t, "op")
	switch op {
	case term.Neg:
		return &term.Expr{Op: op, Args: []*term.Expr{g.integer(depth)}}
	case term.ToInt:
		ty := rapid.SampledFrom([]ir.DType{ir.Bool, ir.U8, ir.I8, ir.U16, ir.I16, ir.U32, ir.I32, ir.U64, ir.I64, ir.U4}).Draw(g.t, "type")
		return &term.Expr{Op: op, Type: ty, Args: []*term.Expr{g.integer(depth)}}
	case term.Load:
		return &term.Expr{Op: op, Name: "id", Index: 3, Args: []*term.Expr{g.integer(depth)}}
	case term.Call:
		return &term.Expr{Op: op, Name: "at", Index: 1, Args: []*term.Expr{g.integer(depth)}}
	case term.ArgMax:
		return g.reduction(op, depth)
	}
	return &term.Expr{Op: op, Args: []*term.Expr{g.integer(depth), g.integer(depth)}}
}

func (g *generator) float(depth int) *term.Expr {
	if depth <= 0 {
		if g.pick("leaf", 3) == 0 {
			return g.symbol(term.Float)
		}
		return &term.Expr{Op: term.Real, Kind: term.Float, Val: float64(rapid.Float32Range(0, 1e10).Draw(g.t, "real"))}
	}
	depth--
	e := &term.Expr{Kind: term.Float, Op: rapid.SampledFrom([]term.Op{
		term.Add, term.Sub, term.Mul, term.Div, term.Min, term.Max, term.Neg, term.Abs, term.Exp, term.Exp2, term.Log, term.Sqrt, term.Rsqrt,
		term.Sin, term.Cos, term.Tanh, term.Erf, term.ToF32, term.AsF16, term.AsF32, term.Round, term.Select, term.Sum, term.MaxOver, term.Load, term.Call,
	}).Draw(g.t, "op")}
	switch e.Op {
	case term.Add, term.Sub, term.Mul, term.Div, term.Min, term.Max:
		e.Args = []*term.Expr{g.float(depth), g.number(depth)}
		if g.pick("swap", 2) == 1 {
			e.Args[0], e.Args[1] = e.Args[1], e.Args[0]
		}
	case term.Neg:
		e.Args = []*term.Expr{g.float(depth)}
	case term.AsF16, term.AsF32:
		e.Args = []*term.Expr{g.integer(depth)}
	case term.Round:
		e.Type = rapid.SampledFrom([]ir.DType{ir.F16, ir.BF16, ir.F32}).Draw(g.t, "type")
		e.Args = []*term.Expr{g.number(depth)}
	case term.Select:
		e.Args = []*term.Expr{g.condition(depth), g.number(depth), g.number(depth)}
	case term.Sum, term.MaxOver:
		return g.reduction(e.Op, depth)
	case term.Load:
		e.Name, e.Args = "v", []*term.Expr{g.integer(depth)}
		e.Index = 2
		if g.pick("matrix", 2) == 1 {
			e.Name, e.Index = "x", 0
			e.Args = append(e.Args, g.integer(depth))
		}
	case term.Call:
		e.Name, e.Args = "inv", []*term.Expr{g.integer(depth)}
	default:
		e.Args = []*term.Expr{g.number(depth)}
	}
	return e
}

func (g *generator) condition(depth int) *term.Expr {
	depth--
	op := rapid.SampledFrom([]term.Op{term.Eq, term.Ne, term.Lt, term.Le, term.Gt, term.Ge, term.And, term.Or, term.Not, term.Pow2, term.Call}).Draw(g.t, "op")
	if depth < 0 && (op == term.And || op == term.Or || op == term.Not) {
		op = term.Lt
	}
	e := &term.Expr{Op: op, Kind: term.Bool}
	switch op {
	case term.And, term.Or:
		e.Args = []*term.Expr{g.condition(depth), g.condition(depth)}
	case term.Not:
		e.Args = []*term.Expr{g.condition(depth)}
	case term.Pow2:
		e.Args = []*term.Expr{g.integer(depth)}
	case term.Call:
		e.Name, e.Index, e.Args = "big", 2, []*term.Expr{g.integer(depth)}
	default:
		e.Args = []*term.Expr{g.number(depth), g.number(depth)}
	}
	return e
}

func (g *generator) reduction(op term.Op, depth int) *term.Expr {
	e := &term.Expr{Op: op, Index: len(g.vars), Name: string(rune('a' + len(g.vars))), Class: rapid.SampledFrom([]string{"", "rms", "q8_"}).Draw(g.t, "class")}
	if op != term.ArgMax {
		e.Kind = term.Float
	}
	count := g.integer(depth)
	g.vars = append(g.vars, e.Name)
	e.Args = []*term.Expr{count, g.number(depth)}
	g.vars = g.vars[:e.Index]
	return e
}
