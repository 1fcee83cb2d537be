package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/mlxc"
	"github.com/mlxc/mlxc/cmd/internal/mlxreplay"
)

// TestPagesCommands: the commands that README and the other pages show are such as the programs take: with these names, flags
// and numbers of arguments.
func TestPagesCommands(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	examples, err := filepath.Glob("../examples/*/README.md")
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^ {4}(?:out/)?(mlxc|mlxreplay) (.*)$`)
	shown := 0
	for _, page := range append(append(pages, examples...), "../README.md", "../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			args := words(m[2])
			if strings.Contains(m[2], "…") || strings.Contains(m[2], "[-") {
				continue // what is left out, and a sketch
			}
			shown++
			understands := mlxc.Understands
			if m[1] == "mlxreplay" {
				understands = mlxreplay.Understands
			}
			assert.NoError(t, understands(args), "%s: %s %s", page, m[1], m[2])
		}
	}
	assert.Greater(t, shown, 50)
	assert.Error(t, mlxc.Understands([]string{"optimize", "g.mlxg", "--nonsense", "-o", "o.mlxg"}))
	assert.Error(t, mlxreplay.Understands([]string{"generate"}))
}

// words are the arguments of a line as a shell has them: without its comment, and what is redirected or piped.
func words(line string) (out []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		if w := m[3]; strings.HasPrefix(w, "#") || strings.HasPrefix(w, "|") || strings.HasPrefix(w, "<") || strings.HasPrefix(w, ">") || strings.HasPrefix(w, "&") {
			break
		}
		out = append(out, m[1]+m[2]+m[3])
	}
	return out
}
