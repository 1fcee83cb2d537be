// Package recorded gives tests the graphs of testdata/graphs, as they were
// recorded.
package recorded

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// T is what is needed of a test.
type T interface {
	require.TestingT
	Helper()
}

// dir finds testdata/graphs from the folder of any package.
func dir(t T) string {
	t.Helper()
	at, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return filepath.Join(at, "testdata", "graphs")
		}
		up := filepath.Dir(at)
		require.NotEqual(t, at, up, "no go.mod above the package")
		at = up
	}
}

// Names returns the names of the recordings, sorted.
func Names(t T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir(t), "*.txtar"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 8)
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".txtar"))
	}
	return names
}

// Graph returns the recording of that name, made anew.
func Graph(t T, name string) *ir.Graph {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(dir(t), name+".txtar"))
	require.NoError(t, err)
	m, err := mlxt.Parse(context.Background(), name, a.Files[0].Data)
	require.NoError(t, err)
	require.Len(t, m.Graphs, 1, name)
	return m.Graphs[0]
}

// Graphs returns all recordings, in the order of their names.
func Graphs(t T) (out []*ir.Graph) {
	t.Helper()
	for _, name := range Names(t) {
		out = append(out, Graph(t, name))
	}
	return out
}
