package prove_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

// norms is the head of the graphs below.
const norms = `mlxt 1

graph g {
  param $n u32 in [1, 8]
  memory %x input 2048 f32[8, 64]
  memory %s weight 256 f32[64] = random seed 1
  memory %s2 weight 256 f32[64] = random seed 2
  memory %y output 2048 f32[8, 64]
  memory %kv state 4096 f32[16, 64] = fill 0x00000000
  memory %one weight 4 f32[1] = fill 0x3f800000
  memory %two weight 4 f32[1] = fill 0x40000000
  memory %t scratch 2048 f32[8, 64]
  memory %u scratch 2048 f32[8, 64]
  kernel @rms builtin "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @bmul builtin "g2_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write, 3 a_strides: constant i64[2], 4 b_strides: constant i64[2])

`

func parseGraph(t *testing.T, body string) *ir.Graph {
	text := norms + body
	if params, rest, ok := strings.Cut(body, "---\n"); ok { // params in the place of $n
		text = strings.Replace(norms, "  param $n u32 in [1, 8]\n", params, 1) + rest
	}
	m, err := mlxt.Parse(context.Background(), "test", []byte(text+"}\n"))
	require.NoError(t, err)
	require.NoError(t, m.Graphs[0].Check())
	return m.Graphs[0]
}

const (
	// One row, and $n rows.
	norm1 = `  #0 @rms (x = %x[0:256], w = %one[0:4], out = %t[0:256], eps = 1e-05, axis_size = 64, w_stride = 0) grid threads [32, 1, 1] of [32, 1, 1]
  barrier
  #1 @mul (a = %t[0:256], b = %s[0:256], c = %y[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
`
	fused1 = `  #1 @rms (x = %x[0:256], w = %s[0:256], out = %y[0:256], eps = 1e-05, axis_size = 64, w_stride = 1) grid threads [32, 1, 1] of [32, 1, 1] from #0, #1
`
	normN = `  #0 @rms (x = %x[0:256*$n], w = %one[0:4], out = %t[0:256*$n], eps = 1e-05, axis_size = 64, w_stride = 0) grid threadgroups [$n, 1, 1] of [32, 1, 1]
  barrier
  #1 @bmul (a = %t[0:256*$n], b = %s[0:256], c = %y[0:256*$n], a_strides = [64, 1], b_strides = [0, 1]) grid threads [64, $n, 1] of [64, 1, 1]
`
	fusedN = `  #1 @rms (x = %x[0:256*$n], w = %s[0:256], out = %y[0:256*$n], eps = 1e-05, axis_size = 64, w_stride = 1) grid threadgroups [$n, 1, 1] of [32, 1, 1] from #0, #1
`
)

func TestFusions(t *testing.T) {
	replace := strings.NewReplacer
	const (
		one   = "  param $n u32 in [1, 1]\n---\n"
		three = "  param $n u32 in [1, 3]\n  require -1*$n <= -3\n---\n"
		equal = "  param $n u32 in [1, 8]\n  param $m u32 in [1, 8]\n  require $n - $m <= 0\n  require $m - $n <= 0\n---\n"
		below = "  param $n u32 in [1, 8]\n  param $m u32 in [1, 8]\n  require $n - $m <= 0\n---\n"
	)
	fused3 := replace("256*$n", "768", "[$n,", "[3,").Replace(fusedN)
	for _, c := range []struct {
		name          string
		before, after string
		want          prove.Verdict
		point         prove.Point
		text          string
	}{
		{"norm and scale", norm1, fused1, prove.Proved, 0, ""},
		{"operands exchanged", replace("a = %t[0:256], b = %s[0:256]", "a = %s[0:256], b = %t[0:256]").Replace(norm1), fused1, prove.Proved, 0, ""},
		{"rows by a param", normN, fusedN, prove.Proved, 0, ""},
		{"another scale", norm1, replace("%s[", "%s2[").Replace(fused1), prove.Refused, prove.Fusion, "its term is"},
		{"another eps", norm1, replace("1e-05", "1e-06").Replace(fused1), prove.Refused, prove.Fusion, "its term is"},
		{"another input", norm1, replace("%x[0:256]", "%x[256:512]").Replace(fused1), prove.Refused, prove.Fusion, "its term is"},
		{"a weight that is not one", replace("%one[", "%two[").Replace(norm1), fused1, prove.Refused, prove.Fusion, "its term is"},
		{"a sum instead of a product", replace("@mul", "@add").Replace(norm1), fused1, prove.Refused, prove.Fusion, "its term is"},
		{"fewer elements", replace("%t[0:256], b = %s[0:256], c = %y[0:256]) grid threads [64", "%t[0:128], b = %s[0:128], c = %y[0:128]) grid threads [32").Replace(norm1), fused1, prove.Refused, prove.Fusion, "its term is"},
		{"the intermediate read later", norm1 + "  barrier\n  #2 @mul (a = %t[0:256], b = %s[0:256], c = %kv[0:256]) grid threads [64, 1, 1] of [64, 1, 1]\n",
			fused1 + "  barrier\n  #2 @mul (a = %t[0:256], b = %s[0:256], c = %kv[0:256]) grid threads [64, 1, 1] of [64, 1, 1]\n", prove.Refused, prove.Values, "#2"},
		{"the intermediate an output", replace("%t[0:256]", "%y[1024:1280]").Replace(norm1), fused1, prove.Refused, prove.FinalBytes, "%y"},
		{"the scale multiplied twice", replace("b = %s[0:256]", "b = %t[0:256]").Replace(norm1), fused1, prove.Refused, prove.Fusion, ""},
		{"x overwritten between", `  #2 @mul (a = %s[0:256], b = %s[0:256], c = %u[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
  barrier
` + replace("x = %x[", "x = %u[").Replace(norm1[:strings.Index(norm1, "  #1")]) + `  #3 @mul (a = %s2[0:256], b = %s[0:256], c = %u[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
` + norm1[strings.Index(norm1, "  #1"):], `  #2 @mul (a = %s[0:256], b = %s[0:256], c = %u[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
  barrier
  #3 @mul (a = %s2[0:256], b = %s[0:256], c = %u[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
  barrier
` + replace("%x[", "%u[").Replace(fused1), prove.Refused, prove.Fusion, "its term is"},
		{"provenance short of one", norm1, replace("from #0, #1", "from #1").Replace(fused1), prove.Proved, 0, ""},
		{"provenance lost", norm1, replace("from #0, #1", "").Replace(fused1), prove.Proved, 0, ""},
		{"provenance of another file", normN, replace("from #0, #1", "from #7, #8").Replace(fusedN), prove.Proved, 0, ""},
		{"no provenance, and another scale", norm1, replace("from #0, #1", "", "%s[", "%s2[").Replace(fused1), prove.Refused, prove.Fusion, "its term is"},
		{"the other way round", fused1, norm1, prove.Proved, 0, ""},
		{"the other way round, rows by a param", fusedN, normN, prove.Proved, 0, ""},
		{"the other way round, without provenance", replace("from #0, #1", "").Replace(fused1), norm1, prove.Proved, 0, ""},
		{"the other way round, without a barrier", fused1, replace("  barrier\n", "").Replace(norm1), prove.Refused, prove.Order, "nothing orders them"},
		{"the other way round, another scale", fused1, replace("%s[", "%s2[").Replace(norm1), prove.Refused, prove.Coverage, "implements no command"},
		{"provenance twice", norm1, fused1 + replace("#1 ", "#2 ").Replace(fused1), prove.Refused, prove.Order, "nothing orders them"},
		{"two of one, in order", norm1, fused1 + "  barrier\n" + replace("#1 ", "#2 ").Replace(fused1) + "  barrier\n", prove.Proved, 0, ""},
		{"another number of rows", normN, replace("[$n, 1, 1]", "[8, 1, 1]", "256*$n", "2048").Replace(fusedN), prove.Refused, prove.Fusion, "none of them"},
		{"a norm into its copy's place", `  #0 @rms (x = %x[0:256], w = %s[0:256], out = %t[0:256], eps = 1e-05, axis_size = 64, w_stride = 1) grid threads [32, 1, 1] of [32, 1, 1]
  barrier
  #1 copy %t[0:256] -> %kv[256:512]
`, `  #0 @rms (x = %x[0:256], w = %s[0:256], out = %kv[256:512], eps = 1e-05, axis_size = 64, w_stride = 1) grid threads [32, 1, 1] of [32, 1, 1] from #0, #1
`, prove.Proved, 0, ""},
		{"rows that bounds pin to one", one + normN, one + fused1, prove.Proved, 0, ""},
		{"rows that a constraint pins to three", three + normN, three + fused3, prove.Proved, 0, ""},
		{"rows that a constraint pins to three, and one too few", three + normN, three + replace("[0:768]", "[0:512]", "[3,", "[2,").Replace(fused3), prove.Refused, prove.Fusion, "none of them"},
		{"rows of two params that constraints make equal", equal + normN, equal + replace("$n", "$m").Replace(fusedN), prove.Proved, 0, ""},
		{"rows of two params that may differ", below + normN, below + replace("$n", "$m").Replace(fusedN), prove.Refused, prove.Fusion, "none of them"},
		{"two norms in sequence", norm1, `  #0 @rms (x = %x[0:256], w = %one[0:4], out = %y[0:256], eps = 1e-05, axis_size = 64, w_stride = 0) grid threads [32, 1, 1] of [32, 1, 1]
  barrier
  #1 @mul (a = %y[0:256], b = %s[0:256], c = %y[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
`, prove.Proved, 0, ""},
	} {
		r := prove.Check(context.Background(), parseGraph(t, c.before), parseGraph(t, c.after), prove.Options{})
		require.Equal(t, c.want, r.Verdict, "%s: %s", c.name, r)
		if c.want != prove.Proved {
			require.Equal(t, c.point, r.Findings[0].Point, "%s: %s", c.name, r)
			require.Contains(t, r.Findings[0].Text, c.text, c.name)
			continue
		}
	}
}
