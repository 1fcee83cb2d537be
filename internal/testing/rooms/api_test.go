package rooms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPublicTypes checks that whoever imports a public package can name every type that
// its exported functions, methods and fields use: none of them is internal.
func TestPublicTypes(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	files := token.NewFileSet()
	seen := 0
	require.NoError(t, filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			switch base := e.Name(); {
			case base == "internal", base == "testdata", base == "cmd", base == "out", base == "examples", name != root && strings.HasPrefix(base, "."):
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		for _, found := range internalTypes(f) {
			assert.Fail(t, "an exported declaration needs an internal type", "%s: %s", files.Position(found.Pos()), found.Sel.Name)
		}
		return nil
	}))
	require.Greater(t, seen, 100)
}

// internalTypes returns the types of internal packages that a file's exported
// declarations name.
func internalTypes(f *ast.File) (found []*ast.SelectorExpr) {
	internal := map[string]bool{}
	for _, x := range f.Imports {
		p, _ := strconv.Unquote(x.Path.Value)
		name := path.Base(p)
		if x.Name != nil {
			name = x.Name.Name
		}
		internal[name] = strings.Contains("/"+p+"/", "/internal/")
	}
	look := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
					found = append(found, s)
				}
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
				look(d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if !s.Name.IsExported() {
						continue
					}
					fields, ok := s.Type.(*ast.StructType)
					if !ok {
						look(s.Type)
						continue
					}
					for _, x := range fields.Fields.List {
						if len(x.Names) == 0 || x.Names[0].IsExported() {
							look(x.Type)
						}
					}
				case *ast.ValueSpec:
					if s.Type != nil && s.Names[0].IsExported() {
						look(s.Type)
					}
				}
			}
		}
	}
	return found
}

func exportedReceiver(r *ast.FieldList) bool {
	exported := false
	ast.Inspect(r.List[0].Type, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			exported = exported || x.IsExported()
		}
		return true
	})
	return exported
}
