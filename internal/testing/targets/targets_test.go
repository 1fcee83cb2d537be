package targets

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// root is the module's folder.
var root = sync.OnceValues(func() (string, error) { return filepath.Abs(filepath.Join("..", "..", "..")) })

// loaded returns all packages of the module, type-checked for Macs.
var loaded = sync.OnceValues(func() ([]*packages.Package, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	return packages.Load(&packages.Config{
		Dir:       dir,
		Env:       append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"),
		Mode:      packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		Tests:     true,
		ParseFile: ours(dir),
	}, "./...")
})

// ours parses files. Of functions outside of dir, which are other modules', only types are needed, and no bodies.
func ours(dir string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	return func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
		f, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution|parser.ParseComments)
		if f != nil && !strings.HasPrefix(name, dir+string(filepath.Separator)) {
			f.Comments = nil
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					d.Body = nil
				}
			}
		}
		return f, err
	}
}

// TestDarwin: the whole module type-checks for Macs, where none of these tests run.
func TestDarwin(t *testing.T) {
	all, err := loaded()
	require.NoError(t, err)
	assert.Greater(t, len(all), 200)
	seen := map[string]bool{}
	onlyThere := 0
	for _, p := range all {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue // the main package that the go command generates for tests
		}
		for _, e := range p.Errors {
			if !seen[e.Error()] {
				seen[e.Error()] = true
				t.Errorf("for darwin/arm64: %v", e)
			}
		}
		for _, f := range p.GoFiles {
			if strings.HasSuffix(f, "_darwin.go") {
				onlyThere++
			}
		}
	}
	assert.Positive(t, onlyThere, "files for Macs alone")
}

// TestWindows: both commands, with all that is linked into them, type-check for Windows, where none of these tests run.
func TestWindows(t *testing.T) {
	sample.Seldom(t)
	dir, err := root()
	require.NoError(t, err)
	all, err := packages.Load(&packages.Config{
		Dir:       dir,
		Env:       append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"),
		Mode:      packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes,
		ParseFile: ours(dir),
	}, "./cmd/mlxc", "./cmd/mlxreplay")
	require.NoError(t, err)
	assert.Len(t, all, 2)
	seen := 0
	packages.Visit(all, nil, func(p *packages.Package) {
		if !strings.HasPrefix(p.PkgPath, "github.com/mlxc/mlxc/") {
			return
		}
		seen++
		for _, e := range p.Errors {
			t.Errorf("for windows/amd64: %v", e)
		}
	})
	assert.Greater(t, seen, 50)
}
