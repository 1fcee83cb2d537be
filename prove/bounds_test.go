package prove_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

// chain returns a graph of n commands, each of which reads the result of the one
// before, and a graph in which one command claims to stand for all of them. The other
// value that each command reads begins `apart` elements after the previous one's. All
// commands but the last compute one element more, so that only the last one can be what
// the single command writes.
func chain(t *testing.T, n int, text string, apart int) (before, after *ir.Graph) {
	t.Helper()
	two := strings.Contains(text, "in1")
	args := "0 in0: device f32 read, 1 out0: device f32 write"
	if two {
		args = "0 in0: device f32 read, 1 in1: device f32 read, 2 out0: device f32 write"
	}
	head := fmt.Sprintf("mlxt 1\ngraph g {\n  memory %%x input %d\n  memory %%t scratch 520\n  memory %%y output 256\n", 260+4*apart*n) +
		fmt.Sprintf("  kernel @k generated %q args(%s)\n", text, args) +
		"  kernel @one generated \"out0[i] = round(f32, in0[i] - 7.0)\" args(0 in0: device f32 read, 1 out0: device f32 write)\n"
	var b strings.Builder
	var from []string
	for k := range n {
		m := 65
		out := fmt.Sprintf("%%t[%d:%d]", (k+1)%2*260, (k+1)%2*260+260)
		if k == n-1 {
			m, out = 64, "%y[0:256]"
		}
		in := fmt.Sprintf("%%t[%d:%d]", k%2*260, k%2*260+4*m)
		if k == 0 {
			in = fmt.Sprintf("%%x[0:%d]", 4*m)
		}
		if two {
			in += fmt.Sprintf(", in1 = %%x[%d:%d]", 4*apart*k, 4*apart*k+4*m)
		}
		fmt.Fprintf(&b, "  #%d @k (in0 = %s, out0 = %s) grid threads [%d, 1, 1] of [64, 1, 1]\n  barrier\n", k, in, out, m)
		from = append(from, fmt.Sprint("#", k))
	}
	parse := func(s string) *ir.Graph {
		m, err := mlxt.Parse(t.Context(), "g.mlxt", []byte(head+s+"}\n"))
		require.NoError(t, err)
		return m.Graphs[0]
	}
	return parse(b.String()), parse(fmt.Sprintf("  #%d @one (in0 = %%x[0:256], out0 = %%y[0:256]) grid threads [64, 1, 1] of [64, 1, 1] from %s\n  barrier\n", n-1, strings.Join(from, ", ")))
}

// A fusion that no kernel can compute is not compared, however a file claims it: the
// time and the length of the message stay bounded.
func TestChecksBoundsOfFusions(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		text  string
		reads int
		want  string
	}{
		{"too many commands", 5000, "out0[i] = round(f32, -in0[i])", 0, "stands for 5000 commands"},
		{"too many values", 1000, "out0[i] = round(f32, in0[i] + in1[i])", 1, "they read more than 512 values"},
		{"too deep", 2500, "v0[i] = in0[i] + 1.0; out0[i] = round(f32, v0[i] * v0[i])", 0, "need one another"},
		{"too many parts", 4000, "out0[i] = round(f32, " + strings.Repeat("exp(", 20) + "in0[i]" + strings.Repeat(")", 20) + ")", 0, "parts"},
	} {
		before, after := chain(t, c.n, c.text, c.reads)
		r := prove.Check(t.Context(), before, after, prove.Options{})
		require.Equal(t, prove.CannotTell, r.Verdict, "%s: %v", c.name, r.Findings)
		require.Contains(t, fmt.Sprint(r.Findings), c.want, c.name)
		require.Less(t, len(fmt.Sprint(r.Findings[0].Text)), 1000, c.name)
	}
}

// A difference between terms that double at each step is found, and the message is
// short.
func TestSharedTerms(t *testing.T) {
	for _, n := range []int{40, 1500} {
		before, after := chain(t, n, "out0[i] = round(f32, in0[i] + in0[i] / (1.0 + exp(-in0[i])))", 0)
		r := prove.Check(t.Context(), before, after, prove.Options{})
		require.Equal(t, prove.Refused, r.Verdict)
		require.Contains(t, fmt.Sprint(r.Findings), "its term is")
		require.Less(t, len(fmt.Sprint(r.Findings[0].Text)), 5000)
	}
}
