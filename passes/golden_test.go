package passes_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
)

var update = flag.Bool("update", false, "write the outputs of the passes into testdata/graphs")

// Each archive of testdata/graphs holds a graph and, as <pass>.mlxt and
// <pass>.remarks, what each pass of the default pipeline makes of it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../testdata/graphs/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 5)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { golden(t, path) })
	}
}

func golden(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, a.Files)
	require.Equal(t, "recorded.mlxt", a.Files[0].Name)
	m, err := mlxt.Parse(path+"/recorded.mlxt", a.Files[0].Data)
	require.NoError(t, err)
	require.Equal(t, string(a.Files[0].Data), mlxt.Format(m), "recorded.mlxt is not in canonical form")
	got := &txtar.Archive{Comment: a.Comment, Files: a.Files[:1:1]}
	add := func(name, text string) {
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	for _, g := range m.Graphs {
		var after []string
		reports, err := passes.Run(g, passes.DefaultPipeline(), passes.Options{After: func(s passes.Step, g *ir.Graph) error {
			after = append(after, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}))
			return nil
		}})
		require.NoError(t, err)
		for i, r := range reports {
			add(r.Pass+".mlxt", after[i])
			remarks := ""
			for _, x := range r.Remarks {
				remarks += x.String() + "\n"
			}
			if remarks != "" {
				add(r.Pass+".remarks", remarks)
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, txtar.Format(got), 0o644))
		return
	}
	if d := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); d != "" {
		t.Errorf("the passes' output changed (-want +got); if that is right: go test ./passes -run Golden -update\n%s", d)
	}
}
