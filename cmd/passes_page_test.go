package cmd_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
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
	module, err := m.Record(context.Background(), frontend.Options{})
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

// TestPassesList: docs/passes.md lists the passes of the table and their options. Written
// anew with
//
//	go test ./cmd -run PassesList -update
func TestPassesList(t *testing.T) {
	const page, begin, end = "../docs/passes.md", "<!-- passes -->\n", "<!-- end of passes -->\n"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has no line %q", page, begin)
	was, tail, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has no line %q", page, end)
	list := "| pass | does | by default | options |\n|---|---|---|---|\n"
	for _, p := range passes.All() {
		var options []string
		for _, o := range p.Options() {
			options = append(options, fmt.Sprintf("`%s` (%s): %s", o.Name, o.Default, o.Help))
		}
		runs := "no"
		if p.Default {
			runs = "yes"
		}
		list += fmt.Sprintf("| `%s` | %s | %s | %s |\n", p.Name, p.Summary, runs, strings.Join(options, "; "))
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+begin+list+end+tail), 0o644))
		return
	}
	if diff := cmp.Diff(was, list); diff != "" {
		t.Errorf("%s does not list the passes that there are; go test ./cmd -run PassesList -update does: -page +now\n%s", page, diff)
	}
}

// The README shows what optimize prints for decode, but for how long passes took.
// Written anew with -update.
func TestReadmeShowsOptimize(t *testing.T) {
	const page = "../README.md"
	m, err := gguf.Load(modelPath(t))
	require.NoError(t, err)
	defer m.Close()
	module, err := m.Record(context.Background(), frontend.Options{Advance: true}) // as mlxc record does
	require.NoError(t, err)
	r, err := optimize.Run(context.Background(), module.Graph("decode"), optimize.Options{Pipeline: passes.DefaultPipeline()})
	require.NoError(t, err)
	table := cli.Table{Header: []string{"decode", "dispatches", "barriers", "epochs", "depth", "depth∞", "scratch", "modelled"}}
	add := func(name string, f optimize.Figures) {
		table.Add(name, f.Dispatches, f.Barriers, f.Epochs, f.Depth, f.ValueDepth, cli.Bytes(f.Bytes.Scratch), cli.Micros(f.Modelled.GPU))
	}
	add("(recorded)", r.Before)
	for _, x := range r.Rows {
		add(x.Pass, x.After)
	}
	var b strings.Builder
	require.NoError(t, table.Print(&b))
	fmt.Fprintf(&b, "graph decode: fused %s, …\n", optimize.FusedText(r.Fused[:1])) // the page has no room for all
	fmt.Fprintf(&b, "graph decode: times modelled for %s with $%s = %d\ngraph decode: %s\n", r.Model, r.ModelledAt[0].Name, r.ModelledAt[0].Value, r.Proof)
	var want strings.Builder
	for line := range strings.Lines(b.String()) {
		want.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	fmt.Fprintf(&want, "```\n\n%.0f %% of the dispatches and %.0f %% of the barriers",
		100*float64(r.After.Dispatches)/float64(r.Before.Dispatches), 100*float64(r.After.Barriers)/float64(r.Before.Barriers))

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	const begin, end = "through `mlxc optimize`:\n\n```\n", " that a careful engine records"
	head, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	got, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(head+begin+want.String()+end+tail), 0o644))
		return
	}
	if diff := cmp.Diff(got, want.String()); diff != "" {
		t.Errorf("%s: -page +now\n%s", page, diff)
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
