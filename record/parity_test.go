package record_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every row of docs/parity.md about encoder and session names an example or test,
// and every name there is one.
func TestParityPage(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	source := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		source += string(b)
	}
	page, err := os.ReadFile("../docs/parity.md")
	require.NoError(t, err)
	name := regexp.MustCompile("`((?:Example|Test)\\w*)(…?)`")
	rows := 0
	for line := range strings.SplitSeq(string(page), "\n") {
		if !strings.HasPrefix(line, "| S2.") && !strings.HasPrefix(line, "| S4.") {
			continue
		}
		rows++
		found := name.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, found, "no example: %s", line)
		for _, m := range found {
			end := "("
			if m[2] != "" {
				end = ""
			}
			require.Contains(t, source, "func "+m[1]+end, "of: %s", line)
		}
	}
	require.Equal(t, 16, rows)
}
