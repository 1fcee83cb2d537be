package site_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/site"
)

// TestLinks: every link of README and the other pages leads somewhere, and so does every link of the site that is made of them.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	names, err := site.Files(root)
	require.NoError(t, err)
	assert.Equal(t, "README.md", names[0])
	assert.Greater(t, len(names), 30)
	s, err := site.Read(root, names)
	require.NoError(t, err)
	require.NoError(t, s.Check())
	out := t.TempDir()
	require.NoError(t, s.Write(out))
	index, err := os.ReadFile(filepath.Join(out, "index.html"))
	require.NoError(t, err)
	assert.Contains(t, string(index), `<a href="docs/architecture.html">docs/architecture.md</a>`)
	links := 0
	href := regexp.MustCompile(`(?:href|src)="([^"#]+)(#[^"]*)?"`)
	for _, name := range names {
		file := filepath.Join(out, filepath.FromSlash(strings.TrimSuffix(name, ".md")+".html"))
		if name == "README.md" {
			file = filepath.Join(out, "index.html")
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range href.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], ":") {
				continue
			}
			links++
			target, err := os.ReadFile(filepath.Join(filepath.Dir(file), filepath.FromSlash(m[1])))
			if assert.NoError(t, err, "%s: %s", name, m[0]) && m[2] != "" {
				assert.Contains(t, string(target), `id="`+m[2][1:]+`"`, "%s: %s", name, m[0])
			}
		}
	}
	assert.Greater(t, links, 1000)
}

// A link to a page, a heading or a file that is not there is an error that names it.
func TestBrokenLinks(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	write("README.md", "# Top\n\n[good](docs/a.md#what-is-this) [self](#top) [out](https://example.com/x) [page](docs/b.md) [heading](docs/a.md#nothing) [file](gone.go) ![picture](gone.png)\n")
	write("docs/a.md", "# A\n\n## What *is* `this`?\n\n## What is this\n\n[second](#what-is-this-1) [up](../README.md) [far](../../x)\n")
	s, err := site.Read(root, []string{"README.md", "docs/a.md"})
	require.NoError(t, err)
	assert.EqualError(t, s.Check(), `README.md: [page](docs/b.md): there is no docs/b.md
README.md: [heading](docs/a.md#nothing): docs/a.md has no heading #nothing
README.md: [file](gone.go): there is no gone.go
README.md: [picture](gone.png): there is no gone.png
docs/a.md: [far](../../x): it lies outside of the repository`)
}
