package targets

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// block is a block of Go code in a page or in a package comment.
type block struct{ where, text string }

// TestBlocks: the Go code in README, in the other pages and in package comments type-checks. Names that the reader has
// to supply, such as ctx or data, may be undeclared, but every name of one of our packages must exist.
func TestBlocks(t *testing.T) {
	sample.Seldom(t)
	all, err := loaded()
	require.NoError(t, err)
	known := map[string]*types.Package{}
	byName := map[string]string{}
	packages.Visit(all, nil, func(p *packages.Package) {
		if p.Types == nil || p.ID != p.PkgPath { // skip test variants of packages
			return
		}
		known[p.PkgPath] = p.Types
		if old, ok := byName[p.Types.Name()]; !ok || better(p.PkgPath, old) {
			byName[p.Types.Name()] = p.PkgPath
		}
	})
	blocks := comments(all)
	inComments := len(blocks)
	dir, err := root()
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(dir, "docs", "*.md"))
	require.NoError(t, err)
	for _, page := range append(pages, filepath.Join(dir, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("(?s)\n```go\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
			blocks = append(blocks, block{filepath.Base(page), m[1]})
		}
	}
	assert.Greater(t, inComments, 10)
	assert.Greater(t, len(blocks), inComments, "README has some")
	for _, b := range blocks {
		for _, wrong := range untyped(b.text, known, byName) {
			t.Errorf("%s: %s, in\n%s", b.where, wrong, b.text)
		}
	}
	// The check fails for wrong code.
	assert.NotEmpty(t, untyped(`r := record.New("norm"); r.NoSuchThing()`, known, byName))
	assert.NotEmpty(t, untyped(`x, y, z := ir.Const(1)`, known, byName))
	assert.Empty(t, untyped(`x := ir.Const(n); fmt.Println(x)`, known, byName))
}

// better reports whether a page more likely means package a than package b of the same name: packages of this module
// come first, then those with the shorter path.
func better(a, b string) bool {
	ours := func(p string) bool { return strings.HasPrefix(p, "github.com/mlxc/mlxc/") }
	if ours(a) != ours(b) {
		return ours(a)
	}
	return len(a) < len(b)
}

// comments returns the code blocks of package comments that are Go.
func comments(all []*packages.Package) (out []block) {
	seen := map[string]bool{}
	for _, p := range all {
		if !strings.HasPrefix(p.PkgPath, "github.com/mlxc/mlxc/") || p.Types == nil || p.Types.Scope().Len() == 0 {
			continue // packages for Linux only have no types here
		}
		for _, f := range p.Syntax {
			if f.Doc == nil {
				continue
			}
			for _, c := range (&comment.Parser{}).Parse(f.Doc.Text()).Content {
				code, ok := c.(*comment.Code)
				if !ok || seen[p.PkgPath+code.Text] {
					continue
				}
				seen[p.PkgPath+code.Text] = true
				if parse(code.Text) != nil && regexp.MustCompile(`:=|\b[a-z]\w*\.[A-Z]\w*\(`).MatchString(code.Text) {
					out = append(out, block{"the comment of package " + path.Base(p.PkgPath), code.Text})
				}
			}
		}
	}
	return out
}

// parse parses statements or declarations as a file, or returns nil. Three dots stand for code that is left out.
func parse(text string) *ast.File {
	text = strings.ReplaceAll(text, "…", "")
	for _, form := range []string{"package p\nfunc _() {\n%s\n}", "package p\n%s"} {
		if f, err := parser.ParseFile(token.NewFileSet(), "", fmt.Sprintf(form, text), parser.SkipObjectResolution); err == nil {
			return f
		}
	}
	return nil
}

// untyped returns the type errors in Go code that are not just names for the reader to supply.
func untyped(text string, known map[string]*types.Package, byName map[string]string) (wrong []string) {
	text = strings.ReplaceAll(text, "…", "")
	files := token.NewFileSet()
	imports := ""
	for _, m := range regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`).FindAllStringSubmatch(text, -1) {
		declared := regexp.MustCompile(`\b` + m[1] + `\b[^\n]*(:=| range )`).MatchString(text)
		if p := byName[m[1]]; p != "" && !declared && !strings.Contains(imports, `"`+p+`"`) {
			imports += fmt.Sprintf("import %s %q\n", m[1], p)
		}
	}
	var f *ast.File
	var err error
	for _, form := range []string{"package p\n%sfunc _() error {\n%s\n}", "package p\n%s%s"} {
		if f, err = parser.ParseFile(files, "block", fmt.Sprintf(form, imports, text), parser.SkipObjectResolution); err == nil {
			break
		}
	}
	if err != nil {
		return []string{err.Error()}
	}
	conf := types.Config{
		Importer: importer(known),
		Error: func(err error) {
			e := err.(types.Error)
			if name, ok := strings.CutPrefix(e.Msg, "undefined: "); ok && !strings.Contains(name, ".") {
				return // a name for the reader to supply
			}
			if !e.Soft && e.Msg != "missing return" && !strings.Contains(e.Msg, "unknown type") { // soft: such as an unused variable
				wrong = append(wrong, e.Msg)
			}
		},
	}
	_, _ = conf.Check("p", files, []*ast.File{f}, nil) // errors were passed to conf.Error
	return wrong
}

// importer imports packages from those that were loaded.
type importer map[string]*types.Package

func (i importer) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
