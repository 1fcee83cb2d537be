package caches

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// Results are the same whether caches are trusted or not: for every recording of testdata/graphs, repeated layers,
// and random graphs, pipelines and changes.
func TestCachesDecideNothing(t *testing.T) {
	sample.Seldom(t)
	with := results(t)
	invariants.Caches = false
	defer func() { invariants.Caches = true }()
	compare(t, with, results(t))
}

// section is the result for one graph.
type section struct {
	Name string
	Text string
}

// compare reports the first line that differs, for at most a few sections.
func compare(t *testing.T, with, without []section) {
	require.Equal(t, len(with), len(without))
	shown := 0
	for i, x := range with {
		y := without[i]
		require.Equal(t, x.Name, y.Name)
		if x.Text == y.Text || shown == 5 {
			continue
		}
		shown++
		a, b := strings.Split(x.Text, "\n"), strings.Split(y.Text, "\n")
		for k := range min(len(a), len(b)) {
			if a[k] != b[k] {
				t.Errorf("%s, line %d:\n    with caches: %s\n without caches: %s", x.Name, k+1, a[k], b[k])
				break
			}
		}
		if len(a) != len(b) {
			t.Errorf("%s: %d lines with caches, %d without", x.Name, len(a), len(b))
		}
	}
}

// Every file that asks whether caches are trusted is in the list of docs/proof.md, by its path or, behind another
// file of its folder, by its name.
func TestCachesAreListed(t *testing.T) {
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/proof.md"))
	require.NoError(t, err)
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "out" || d.Name() == "testing" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("invariants.Caches")) {
			return err
		}
		found++
		name, _ := filepath.Rel(root, path)
		listed := bytes.Contains(page, []byte("`"+name+"`")) || bytes.Contains(page, []byte(filepath.Dir(name))) && bytes.Contains(page, []byte("`, `"+filepath.Base(name)+"`"))
		require.True(t, listed, "docs/proof.md, \"Caches never decide\", does not say what %s remembers", name)
		return nil
	}))
	require.Greater(t, found, 10)
}
