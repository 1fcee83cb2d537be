package prove_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

// halves is the head of graphs in half precision.
const halves = `mlxt 1

graph g {
  memory %a input 128 f16[64]
  memory %b input 128 f16[64]
  memory %c input 128 f16[64]
  memory %y output 128 f16[64]
  memory %z output 256 f32[64]
  memory %one weight 4 f16[2] = fill 0x3c003c00
  memory %t scratch 128 f16[64]
  memory %u scratch 128 f16[64]
  kernel @mul builtin "vv_Multiplyfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)
  kernel @add builtin "vv_Addfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)
  kernel @rms builtin "rmsfloat16" args(0 x: device f16 read, 1 w: device f16 read, 2 out: device f16 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
`

// elementwise declares a generated kernel of one result, with operands in f16.
func elementwise(name string, operands int, text string) string {
	var args []string
	for k := range operands {
		args = append(args, fmt.Sprintf("%d in%d_f16: device f16 read", k, k))
	}
	typ := "f16"
	if strings.Contains(text, "= round(f32") {
		typ = "f32"
	}
	args = append(args, fmt.Sprintf("%d out0: device %s write", operands, typ))
	return "  kernel @" + name + " generated \"" + text + "\" args(" + strings.Join(args, ", ") + ")\n"
}

func halfGraph(t *testing.T, body string) *ir.Graph {
	m, err := mlxt.Parse(context.Background(), "test", []byte(halves+body+"}\n"))
	require.NoError(t, err, body)
	require.NoError(t, m.Graphs[0].Check(), body)
	return m.Graphs[0]
}

// Rewrite `round` drops roundings of intermediates, where it is allowed, and nothing
// else: not the rounding of a result, no rounding in a condition, and no other change
// beside it.
func TestChecksRewrites(t *testing.T) {
	const (
		grid  = " grid threads [64, 1, 1] of [64, 1, 1]"
		chain = "\n  #0 @mul (a = %a[0:128], b = %b[0:128], c = %t[0:128])" + grid + "\n  barrier\n  #1 @add (a = %t[0:128], b = %c[0:128], c = %y[0:128])" + grid + "\n"
		long  = "\n  #0 @mul (a = %a[0:128], b = %b[0:128], c = %t[0:128])" + grid + "\n  barrier\n  #1 @add (a = %t[0:128], b = %c[0:128], c = %u[0:128])" + grid +
			"\n  barrier\n  #2 @mul (a = %u[0:128], b = %t[0:128], c = %y[0:128])" + grid + "\n"
		twice = "\n  #0 @mul (a = %a[0:128], b = %b[0:128], c = %t[0:128])" + grid + "\n  barrier\n  #1 @mul (a = %t[0:128], b = %t[0:128], c = %u[0:128])" + grid +
			"\n  #2 @mul (a = %t[0:128], b = %t[0:128], c = %y[0:128])" + grid + "\n"
		norm = "\n  #0 @rms (x = %a[0:128], w = %one[0:2], out = %t[0:128], eps = 1e-05, axis_size = 64, w_stride = 0) grid threadgroups [1, 1, 1] of [32, 1, 1]\n  barrier\n" +
			"  #1 @mul (a = %t[0:128], b = %b[0:128], c = %y[0:128])" + grid + "\n"
	)
	// fused returns one command of a generated kernel, which reads the inputs named in
	// operands.
	fused := func(from, operands, text string) string {
		var bind []string
		for k, m := range operands {
			bind = append(bind, fmt.Sprintf("in%d_f16 = %%%c[0:128]", k, m))
		}
		out := "%y[0:128]"
		if strings.Contains(text, "= round(f32") {
			out = "%z[0:256]"
		}
		return elementwise("k", len(operands), text) + "\n  #9 @k (" + strings.Join(bind, ", ") + ", out0 = " + out + ")" + grid + " from " + from + "\n"
	}
	// Two results of one set whose terms differ in roundings only.
	nearly := elementwise("e", 1, "out0[i] = round(f16, exp(in0_f16[i]))") + elementwise("f", 2, "out0[i] = round(f16, exp(round(f16, in0_f16[i] * in1_f16[i]) * 1.0))") +
		"\n  #0 @mul (a = %a[0:128], b = %b[0:128], c = %t[0:128])" + grid + "\n  #1 @f (in0_f16 = %a[0:128], in1_f16 = %b[0:128], out0 = %u[0:128])" + grid +
		"\n  barrier\n  #2 @e (in0_f16 = %t[0:128], out0 = %y[0:128])" + grid + "\n"
	// behind returns a recorded command that reads %t, which #0 mul writes.
	behind := func(text string) string {
		out := "%y[0:128]"
		if strings.Contains(text, "= round(f32") {
			out = "%z[0:256]"
		}
		return elementwise("then", 1, text) + chain[:strings.Index(chain, "  #1")] + "  #1 @then (in0_f16 = %t[0:128], out0 = " + out + ")" + grid + "\n"
	}
	for _, c := range []struct {
		name          string
		before, after string
		dropped       int // −1: refused, though allowed
	}{
		{"to the bit", chain, fused("#0, #1", "abc", "out0[i] = round(f16, round(f16, in0_f16[i] * in1_f16[i]) + in2_f16[i])"), 0},
		{"one rounding", chain, fused("#0, #1", "abc", "out0[i] = round(f16, in0_f16[i] * in1_f16[i] + in2_f16[i])"), 1},
		{"operands exchanged", chain, fused("#0, #1", "cab", "out0[i] = round(f16, in0_f16[i] + in1_f16[i] * in2_f16[i])"), 1},
		{"a rounding that is used twice", long, fused("#0, #1, #2", "abc", "out0[i] = round(f16, (in0_f16[i] * in1_f16[i] + in2_f16[i]) * (in0_f16[i] * in1_f16[i]))"), 2},
		{"some of them", long, fused("#0, #1, #2", "abc", "out0[i] = round(f16, round(f16, in0_f16[i] * in1_f16[i] + in2_f16[i]) * (in0_f16[i] * in1_f16[i]))"), 1},
		{"in one place of two", long, fused("#0, #1, #2", "abc", "out0[i] = round(f16, (round(f16, in0_f16[i] * in1_f16[i]) + in2_f16[i]) * (in0_f16[i] * in1_f16[i]))"), 2},
		{"a norm and its scale, to the bit", norm, "\n  #9 @rms (x = %a[0:128], w = %b[0:128], out = %y[0:128], eps = 1e-05, axis_size = 64, w_stride = 1) grid threadgroups [1, 1, 1] of [32, 1, 1] from #0, #1\n", 0},
		{"under a select", behind("out0[i] = round(f16, sqrt(abs(in0_f16[i])))"), fused("#0, #1", "ab", "out0[i] = round(f16, sqrt(abs(in0_f16[i] * in1_f16[i])))"), 1},
		{"two results that it may be", twice, fused("#0, #1, #2", "ab", "out0[i] = round(f16, in0_f16[i] * in1_f16[i] * (in0_f16[i] * in1_f16[i]))"), 1},
		{"of two results the one that lies there", nearly, fused("#0, #1, #2", "ab", "out0[i] = round(f16, exp(in0_f16[i] * in1_f16[i]))"), 1},

		{"another operation beside", chain, fused("#0, #1", "abc", "out0[i] = round(f16, in0_f16[i] * in1_f16[i] - in2_f16[i])"), -1},
		{"another operand beside", chain, fused("#0, #1", "ab", "out0[i] = round(f16, in0_f16[i] * in1_f16[i] + in1_f16[i])"), -1},
		{"another operand of the product", chain, fused("#0, #1", "ab", "out0[i] = round(f16, in0_f16[i] * in0_f16[i] + in1_f16[i])"), -1},
		{"an operand more", chain, fused("#0, #1", "abc", "out0[i] = round(f16, in0_f16[i] * in1_f16[i] + in2_f16[i] + 0.0)"), -1},
		{"a function dropped with the rounding", behind("out0[i] = round(f16, sqrt(abs(in0_f16[i])))"), fused("#0, #1", "ab", "out0[i] = round(f16, sqrt(in0_f16[i] * in1_f16[i]))"), -1},
		{"another function", behind("out0[i] = round(f16, exp(in0_f16[i]))"), fused("#0, #1", "ab", "out0[i] = round(f16, exp2(in0_f16[i] * in1_f16[i]))"), -1},
		{"operands that do not commute", behind("out0[i] = round(f16, in0_f16[i] - 1.0)"), fused("#0, #1", "ab", "out0[i] = round(f16, 1.0 - in0_f16[i] * in1_f16[i])"), -1},
		{"a rounding added", behind("out0[i] = round(f16, exp(in0_f16[i]) * 3.0)"), fused("#0, #1", "ab", "out0[i] = round(f16, round(f16, exp(in0_f16[i] * in1_f16[i])) * 3.0)"), -1},
		{"the rounding of the result", behind("out0[i] = round(f32, in0_f16[i])"), fused("#0, #1", "ab", "out0[i] = round(f32, in0_f16[i] * in1_f16[i])"), -1},
		{"a rounding that decides", behind("out0[i] = round(f16, select(in0_f16[i] < 0.0, 1.0, exp(in0_f16[i])))"), fused("#0, #1", "ab", "out0[i] = round(f16, select(in0_f16[i] * in1_f16[i] < 0.0, 1.0, exp(in0_f16[i] * in1_f16[i])))"), -1},
		{"one that decides nothing", behind("out0[i] = round(f16, select(in0_f16[i] < 0.0, 1.0, exp(in0_f16[i])))"), fused("#0, #1", "ab", "out0[i] = round(f16, select(round(f16, in0_f16[i] * in1_f16[i]) < 0.0, 1.0, exp(in0_f16[i] * in1_f16[i])))"), 1},
		{"another branch", behind("out0[i] = round(f16, select(in0_f16[i] < 0.0, 1.0, exp(in0_f16[i])))"), fused("#0, #1", "ab", "out0[i] = round(f16, select(round(f16, in0_f16[i] * in1_f16[i]) < 0.0, 2.0, exp(in0_f16[i] * in1_f16[i])))"), -1},
	} {
		before, after := halfGraph(t, c.before), halfGraph(t, c.after)
		r := prove.Check(context.Background(), before, after, prove.Options{})
		require.Empty(t, r.Rewrites, c.name)
		require.Equal(t, c.dropped == 0, r.Verdict == prove.Proved, "%s, not allowed: %s", c.name, r)
		if c.dropped != 0 {
			require.Contains(t, r.Findings[0].Text, "its term is", c.name)
		}
		r = prove.Check(context.Background(), before, after, prove.Options{Allow: []string{"round"}})
		require.Equal(t, c.dropped >= 0, r.Verdict == prove.Proved, "%s, allowed: %s", c.name, r)
		switch {
		case c.dropped > 0:
			require.Len(t, r.Rewrites, 1, c.name)
			require.Equal(t, "round", r.Rewrites[0].Name)
			require.Equal(t, c.dropped, r.Rewrites[0].Count, c.name)
			require.Contains(t, r.String(), "2^-11·|v|")
		case c.dropped == 0:
			require.Empty(t, r.Rewrites, c.name)
		}
	}
	r := prove.Check(context.Background(), halfGraph(t, chain), halfGraph(t, chain), prove.Options{Allow: []string{"round", "fma"}})
	require.Equal(t, prove.Refused, r.Verdict)
	require.Equal(t, `there is no rewrite "fma" (there are round)`, r.Findings[0].Text)
}
