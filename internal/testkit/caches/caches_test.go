package caches

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/invariants"
)

// resultsFile names where the other build writes what it found.
const resultsFile = "MLXC_CACHES_RESULTS"

// Both builds say the same of every recording of testdata/graphs, of layers repeated,
// and of random graphs, pipelines and changes. The build that runs makes the other one.
func TestCachesDecideNothing(t *testing.T) {
	if path := os.Getenv(resultsFile); path != "" { // this is the other one
		require.NoError(t, os.WriteFile(path, results(t), 0o644))
		return
	}
	tags := ""
	if invariants.Caches {
		tags = "invariants"
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "caches.test")
	out, err := exec.Command("go", "test", "-c", "-tags", tags, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	path := filepath.Join(dir, "results")
	cmd := exec.Command(binary, "-test.run", "^TestCachesDecideNothing$")
	cmd.Env = append(os.Environ(), resultsFile+"="+path)
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	require.NoError(t, cmd.Start())
	with := results(t)
	require.NoError(t, cmd.Wait(), "%s", said)
	without, err := os.ReadFile(path)
	require.NoError(t, err)
	if !invariants.Caches {
		with, without = without, with
	}
	compare(t, sections(with), sections(without))
}

// section is what was found of one graph.
type section struct {
	Name string
	Text string
}

func sections(data []byte) (out []section) {
	if err := json.Unmarshal(data, &out); err != nil {
		panic(err)
	}
	return out
}

// compare reports the first line that differs of each section, at most a few.
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

// Every file that asks whether caches are believed is in the list of docs/proof.md, by
// its path or, behind another of its folder, by its name.
func TestCachesAreListed(t *testing.T) {
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/proof.md"))
	require.NoError(t, err)
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "out" || d.Name() == "testkit" || d.Name() == ".git") {
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
