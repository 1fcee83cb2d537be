package record_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every row of docs/parity.md names an example or test, unless it only says that a feature
// is missing, and every name there exists.
func TestParityPage(t *testing.T) {
	var source strings.Builder
	for _, dir := range []string{".", "../backend", "../passes", "../replay", "../internal", "../prove", "../optimize"} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			source.Write(b)
			return err
		}))
	}
	page, err := os.ReadFile("../docs/parity.md")
	require.NoError(t, err)
	row := regexp.MustCompile(`^\| S[1-5]\.\d+ \|`)
	name := regexp.MustCompile("`((?:Example|Test)\\w*)(…?)`")
	rows := map[byte]int{}
	for line := range strings.SplitSeq(string(page), "\n") {
		if !row.MatchString(line) {
			continue
		}
		rows[line[3]]++
		found := name.FindAllStringSubmatch(line, -1)
		if !strings.HasSuffix(line, "| **No** |") {
			require.NotEmpty(t, found, "no example: %s", line)
		}
		for _, m := range found {
			end := "("
			if m[2] != "" {
				end = ""
			}
			require.Contains(t, source.String(), "func "+m[1]+end, "of: %s", line)
		}
	}
	require.Equal(t, map[byte]int{'1': 6, '2': 13, '3': 10, '4': 9, '5': 4}, rows)
}
