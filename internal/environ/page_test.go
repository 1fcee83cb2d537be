package environ_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPage: docs/environment.md lists every variable that the code reads, tests apart, and no other.
func TestPage(t *testing.T) {
	literal := regexp.MustCompile(`"(MLXC_[A-Z0-9_]+)"|os\.(?:Getenv|LookupEnv)\("(\w+)"\)`)
	read := map[string]bool{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name == "testdata" || name == "testing" || name == "out" || name == ".git" {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range literal.FindAllSubmatch(text, -1) {
			read[string(m[1])+string(m[2])] = true
		}
		return err
	}))
	page, err := os.ReadFile(filepath.Join(root, "docs", "environment.md"))
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, cell := range regexp.MustCompile("(?m)^\\| `[^|]* \\|").FindAll(page, -1) {
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllSubmatch(cell, -1) {
			require.False(t, listed[string(m[1])], "%s stands there twice", m[1])
			listed[string(m[1])] = true
		}
	}
	require.Subset(t, slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(read)))
	for name := range listed {
		require.True(t, read[name] || !strings.HasPrefix(name, "MLXC_"), "nothing reads %s", name)
	}
}
