package passes_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

var update = flag.Bool("update", false, "write the outputs of the passes into testdata/graphs")

// asides are pipelines with passes that the default one lacks, and those of their passes
// whose output is kept as goldens. (Every pass has an example of its own:
// TestPassExamples.)
var asides = []struct{ pipeline, keep string }{
	{"annotate,fuse,dce,rename,reorder,barriers", "reorder"},
	{"annotate,fuse,dce,rename,schedule,barriers,plan,split{first=2},constants", "split{first=2} constants"},
	{"annotate,fuse,dce,rename,schedule,barriers,plan,edges", "edges"},
}

// Each archive of testdata/graphs holds a graph and what every pass does to it:
// <pass>.diff is the change of its text, <pass>.remarks what the pass says;
// optimized.mlxt comes out of the default pipeline. All of it is proved.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("../testdata/graphs/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 10)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { golden(t, path) })
	}
}

func golden(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, a.Files)
	require.Equal(t, "recorded.mlxt", a.Files[0].Name)
	m, err := mlxt.Parse(context.Background(), path+"/recorded.mlxt", a.Files[0].Data)
	require.NoError(t, err)
	require.Equal(t, string(a.Files[0].Data), mlxt.Format(m), "recorded.mlxt is not in canonical form")
	require.Len(t, m.Graphs, 1)
	got := &txtar.Archive{Comment: a.Comment, Files: a.Files[:1:1]}
	add := func(name, text string) {
		if text != "" {
			got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(text)})
		}
	}
	// show runs a pipeline and adds what the chosen passes do.
	show := func(p passes.Pipeline, keep func(string) bool) string {
		g := m.Graphs[0].Clone()
		text := func() string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }
		was := text()
		var changes []string
		reports, err := passes.Run(context.Background(), g, p, passes.Options{After: func(s passes.Step, g *ir.Graph) error {
			is := text()
			changes = append(changes, string(diff.Diff("before", []byte(was), "after "+s.String(), []byte(is))))
			was = is
			return nil
		}})
		require.NoError(t, err)
		proof := prove.Check(context.Background(), m.Graphs[0], g, prove.Options{})
		require.Equal(t, prove.Proved, proof.Verdict, "%v: %s", p, proof)
		for i, r := range reports {
			if !keep(r.Pass) {
				continue
			}
			add(r.Pass+".diff", changes[i])
			remarks := ""
			for _, x := range r.Remarks {
				remarks += x.String() + "\n"
			}
			add(r.Pass+".remarks", remarks)
		}
		return was
	}
	add("optimized.mlxt", show(passes.DefaultPipeline(), func(string) bool { return true }))
	for _, x := range asides {
		p, err := passes.ParsePipeline(x.pipeline)
		require.NoError(t, err)
		show(p, func(name string) bool {
			for _, k := range strings.Fields(x.keep) {
				if k == name {
					return true
				}
			}
			return false
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(path, txtar.Format(got), 0o644))
		return
	}
	if d := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(got))); d != "" {
		t.Errorf("the passes' output changed (-want +got); if that is right: go test ./passes -run Golden -update\n%s", d)
	}
}
