package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// shown is an indented block of a page. A comment in front of it says what is done with it: "file NAME" writes it to a file, "gpu"
// runs it where there is a GPU of NVIDIA's, and "not run: …" says why it is not run. Without one it is run.
type shown struct{ order, text string }

// blocks returns the indented blocks of a page.
func blocks(page string) (out []shown) {
	order, inside, fenced := "", false, false
	var lines []string
	end := func() {
		if inside {
			out = append(out, shown{order, strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"})
			order, inside, lines = "", false, nil
		}
	}
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		text, indented := strings.CutPrefix(line, "    ")
		comment := regexp.MustCompile(`^<!-- (.*) -->$`).FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			fenced = !fenced
		case fenced:
		case indented:
			inside = true
			lines = append(lines, text)
		case line == "" && inside:
			lines = append(lines, "")
		default:
			end()
			if comment != nil {
				order = comment[1]
			}
		}
	}
	end()
	return out
}

// TestStartPages runs the commands of the pages by which one begins, in their order, in a folder that has a model.
func TestStartPages(t *testing.T) {
	pages, err := filepath.Glob("../docs/start-*.md")
	require.NoError(t, err)
	require.Len(t, pages, 4)
	pages = append(pages, "../docs/install.md", "../docs/stability.md")
	// The one that takes longest comes first, with the number behind those of the longest scripts: no run takes it beside one of these.
	const slowest = "../docs/start-linux.md"
	require.Contains(t, pages, slowest)
	pages = slices.Insert(slices.DeleteFunc(pages, func(page string) bool { return page == slowest }), 0, slowest)
	compiler, err := clang.Find(t.Context())
	require.NoError(t, err)
	interpreter, err := python.Find()
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	model := modelPath(t)
	for i, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			if testing.Short() || !sample.Takes(scriptFolder, len(longest)+i, sample.Few) {
				t.Skip("another run takes this page")
			}
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			dir, bin := t.TempDir(), t.TempDir()
			require.NoError(t, os.Symlink(model, filepath.Join(dir, "model.gguf")))
			require.NoError(t, os.Symlink(interpreter, filepath.Join(bin, "python3")))
			ran := 0
			for _, b := range blocks(string(text)) {
				order, rest, _ := strings.Cut(b.order, " ")
				switch order {
				case "file":
					require.NoError(t, os.WriteFile(filepath.Join(dir, rest), []byte(b.text), 0o644))
					continue
				case "not":
					require.Regexp(t, `^run: \w+`, rest)
					continue
				case "gpu":
					if _, err := os.Stat("/dev/nvidiactl"); err != nil {
						continue
					}
				default:
					require.Empty(t, b.order)
				}
				c := exec.Command("bash", "-c", "set -euxo pipefail\n"+b.text)
				c.Dir = dir
				c.Env = append(os.Environ(), clang.Env+"="+compiler.Path, "XDG_CACHE_HOME="+store.Dir(), "PYTHONDONTWRITEBYTECODE=1",
					"PYTHONPATH="+filepath.Join(root, "python"), fmt.Sprintf("PATH=%s%c%s", bin, filepath.ListSeparator, os.Getenv("PATH")))
				out, err := c.CombinedOutput()
				require.NoError(t, err, "%s:\n%s\n%s", page, b.text, out)
				ran += strings.Count(b.text, "\n")
			}
			if strings.Contains(page, "start-") {
				assert.GreaterOrEqual(t, ran, 3)
			}
		})
	}
	assert.Equal(t, []shown{{"file x", "a\n\n  b\n"}, {"", "c\n"}}, blocks("text\n\n<!-- file x -->\n\n    a\n\n      b\n\nmore\n\n    c\n```yaml\n    d\n```\n"))
}
