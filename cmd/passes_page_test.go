package cmd_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/cli"
	"github.com/mlxc/mlxc/internal/optimize"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// budgets of the pass rename that the page shows.
var budgets = []string{"0", "1x", "2x", "unlimited"}

// The figures of docs/passes.md are those of the demonstration model. Write them
// anew with
//
//	go test ./cmd -run PassesPage -update
func TestPassesPage(t *testing.T) {
	const page = "../docs/passes.md"
	m, err := gguf.Load(modelPath(t))
	require.NoError(t, err)
	defer m.Close()
	module, err := m.Record(context.Background(), gguf.Options{})
	require.NoError(t, err)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	was := string(text)
	for _, g := range module.Graphs {
		begin, end := fmt.Sprintf("<!-- figures of %s -->\n", g.Name), "<!-- end of figures -->\n"
		head, rest, ok := strings.Cut(string(text), begin)
		require.True(t, ok, "%s has no line %q", page, begin)
		_, tail, ok := strings.Cut(rest, end)
		require.True(t, ok, "%s has no line %q", page, end)
		text = []byte(head + begin + figures(t, g) + end + tail)
	}
	if *update {
		require.NoError(t, os.WriteFile(page, text, 0o644))
		return
	}
	if diff := cmp.Diff(was, string(text)); diff != "" {
		t.Errorf("%s is not what the passes do now: -page +now\n%s", page, diff)
	}
}

// figures is a table of what each pass makes of g; what stands before rename is
// the same for every budget.
func figures(t *testing.T, g *ir.Graph) string {
	var b strings.Builder
	b.WriteString("| after | dispatches | epochs | barriers | depth | depth∞ | scratch | modelled |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	row := func(name string, f optimize.Figures) string {
		return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %s | %s |\n", name, f.Dispatches, f.Epochs, f.Barriers, f.Depth, f.ValueDepth, cli.Bytes(f.Bytes.Scratch), cli.Micros(f.Modelled.GPU))
	}
	same := "" // the rows of the budget before, without their names
	for i, budget := range budgets {
		p := passes.DefaultPipeline()
		at := -1
		for k := range p {
			if p[k].Pass.Name == "rename" {
				at, p[k].Values = k, passes.Values{"budget": budget}
			}
		}
		require.Positive(t, at, "the default pipeline renames")
		r, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: p})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
		require.Empty(t, r.Undone())
		require.Equal(t, r.After.Depth, r.After.Epochs, "a scheduled graph has as many epochs as its depth")
		if budget == "unlimited" {
			require.Equal(t, r.After.ValueDepth, r.Rows[at].After.Depth, "with unlimited renaming no false dependence is left")
		}
		if i == 0 {
			b.WriteString(row("(recorded)", r.Before))
			for _, x := range r.Rows[:at] {
				b.WriteString(row("`"+x.Pass+"`", x.After))
			}
		}
		rows, bare := "", ""
		for _, x := range r.Rows[at:] {
			name := "`" + x.Pass + "`"
			if x.Pass != p[at].String() {
				name = "… " + name
			}
			rows += row(name, x.After)
			bare += row("", x.After)
		}
		if bare == same {
			rows = fmt.Sprintf("| `%s` and the rest | as with budget=%s | | | | | | |\n", p[at], budgets[i-1])
		}
		b.WriteString(rows)
		same = bare
	}
	return b.String()
}
