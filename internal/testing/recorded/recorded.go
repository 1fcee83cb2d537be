// Package recorded gives tests the graphs of testdata/graphs as they were recorded, for
// example recorded.Graph(t, "llama_layer_decode").
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

// T is what this package needs of a test or benchmark.
type T interface {
	require.TestingT
	Helper()
}

// dir finds testdata/graphs, from whatever folder the test runs in.
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

// Names returns the names of all recordings, sorted.
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

// Graph returns a new copy of the recording with that name.
func Graph(t T, name string) *ir.Graph {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(dir(t), name+".txtar"))
	require.NoError(t, err)
	m, err := mlxt.Parse(context.Background(), name, a.Files[0].Data)
	require.NoError(t, err)
	require.Len(t, m.Graphs, 1, name)
	return m.Graphs[0]
}

// Graphs returns new copies of all recordings, sorted by name.
func Graphs(t T) (out []*ir.Graph) {
	t.Helper()
	for _, name := range Names(t) {
		out = append(out, Graph(t, name))
	}
	return out
}
