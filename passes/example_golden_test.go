package passes_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// Each archive of passes/testdata shows one pass: its comment explains, in.mlxt
// is a graph, and for each line of pipelines there are an output and, if there
// are any, remarks, called after the line. Every output is proved. (The archives
// of testdata/graphs show the default pipeline on whole layers.)
func TestPassExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	seen := map[string]bool{}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		seen[name] = true
		t.Run(name, func(t *testing.T) { passExample(t, passes.All(), path) })
	}
	for _, p := range passes.All() {
		require.True(t, seen[p.Name], "pass %s has no example: write passes/testdata/%s.txtar", p.Name, p.Name)
	}
}

func passExample(t *testing.T, table passes.Table, path string) {
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(a.Files), 2)
	require.Equal(t, "pipelines", a.Files[0].Name)
	require.Equal(t, "in.mlxt", a.Files[1].Name)
	got := &txtar.Archive{Comment: a.Comment, Files: a.Files[:1:1]}
	add := func(name, text string) {
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	in, err := mlxt.Parse(context.Background(), path+"/in.mlxt", a.Files[1].Data)
	require.NoError(t, err)
	require.Len(t, in.Graphs, 1)
	recorded := in.Graphs[0]
	add("in.mlxt", mlxt.Format(in))
	for _, line := range strings.Fields(string(a.Files[0].Data)) {
		p, err := table.Parse(line)
		require.NoError(t, err)
		g := recorded.Clone()
		reports, err := passes.Run(context.Background(), g, p, passes.Options{})
		require.NoError(t, err)
		r := prove.Check(context.Background(), recorded, g, prove.Options{})
		require.Equal(t, prove.Proved, r.Verdict, "%s: %s", line, r)
		add(line+".mlxt", mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}))
		remarks := ""
		for _, r := range reports {
			for _, x := range r.Remarks {
				remarks += r.Pass + ": " + x.String() + "\n"
			}
		}
		if remarks != "" {
			add(line+".remarks", remarks)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, txtar.Format(got), 0o644))
		return
	}
	if d := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); d != "" {
		t.Errorf("the output changed (-want +got); if that is right: go test ./passes -run PassExamples -update\n%s", d)
	}
}
