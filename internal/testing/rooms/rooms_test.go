// Package rooms compares the table in docs/architecture.md with the folders and imports
// of the module.
package rooms

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root   = "../../.."
	module = "github.com/mlxc/mlxc/"
)

// free lists packages that every room may import, because they know nothing of graphs.
var free = []string{"internal/collections", "internal/environ", "internal/files", "internal/interrupt", "internal/invariants"}

// upward names the only row that imports one below it.
const upward = "internal/air internal/toolchain"

// room is one row of the table.
type room struct {
	folder  string
	text    string
	imports []string
}

// table reads those rows of docs/architecture.md that begin with a folder.
func table(t *testing.T) (out []room) {
	page, err := os.ReadFile(path.Join(root, "docs/architecture.md"))
	require.NoError(t, err)
	names := regexp.MustCompile("`([^`]+)`")
	for _, l := range strings.Split(string(page), "\n") {
		cells := strings.Split(strings.Trim(l, "|"), "|")
		if !strings.HasPrefix(l, "| `") || len(cells) != 3 {
			continue
		}
		r := room{folder: strings.Trim(cells[0], " `/"), text: cells[1]}
		for _, m := range names.FindAllStringSubmatch(cells[2], -1) {
			r.imports = append(r.imports, m[1])
		}
		out = append(out, r)
	}
	require.NotEmpty(t, out, "docs/architecture.md has no table of rooms")
	return out
}

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// of returns the room that a package lies in: the row with the longest folder that
// contains it.
func of(rooms []room, pkg string) (found *room) {
	for i := range rooms {
		if r := &rooms[i]; within(pkg, r.folder) && (found == nil || len(r.folder) > len(found.folder)) {
			found = r
		}
	}
	return found
}

func place(rooms []room, r *room) int {
	return slices.IndexFunc(rooms, func(o room) bool { return o.folder == r.folder })
}

type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func packages(t *testing.T) (out []listed) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	list.Dir = root
	text, err := list.Output()
	require.NoError(t, err)
	d := json.NewDecoder(strings.NewReader(string(text)))
	for {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
}

func TestImports(t *testing.T) {
	rooms := table(t)
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(pkg, "testdata/") {
			continue // a script
		}
		r := of(rooms, pkg)
		if r == nil {
			t.Errorf("%s lies in no room of docs/architecture.md", pkg)
			continue
		}
		for _, imported := range p.Imports {
			i, ours := strings.CutPrefix(imported, module)
			if !ours || within(i, r.folder) {
				continue
			}
			allowed := slices.ContainsFunc(append(r.imports, free...), func(f string) bool { return within(i, f) })
			if to := of(rooms, i); to != nil && to.folder != r.folder && len(to.folder) > len(r.folder) && within(to.folder, r.folder) {
				allowed = false // the package belongs to a room within this one
			}
			if !allowed {
				t.Errorf("%s imports %s, which docs/architecture.md does not allow to %s/", pkg, i, r.folder)
			}
			if to := of(rooms, i); to != nil && place(rooms, to) > place(rooms, r) && r.folder+" "+to.folder != upward {
				t.Errorf("%s imports %s, whose row of docs/architecture.md is below that of %s/", pkg, i, r.folder)
			}
		}
	}
}

// Only tests import what tests share.
func TestTestkitIsForTests(t *testing.T) {
	for _, p := range packages(t) {
		if within(strings.TrimPrefix(p.ImportPath, module), "internal/testing") || strings.HasPrefix(p.ImportPath, module+"testdata/") {
			continue
		}
		for _, i := range p.Imports {
			require.NotContains(t, i, "internal/testing", "%s is no test", p.ImportPath)
		}
	}
}

// Every folder of the table exists, has packages, imports only what the table allows,
// and every package in it is named by its row.
func TestRooms(t *testing.T) {
	rooms := table(t)
	all := packages(t)
	for _, r := range rooms {
		used := map[string]bool{}
		found := false
		for _, p := range all {
			pkg := strings.TrimPrefix(p.ImportPath, module)
			if of(rooms, pkg) == nil || of(rooms, pkg).folder != r.folder {
				continue
			}
			found = true
			for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
				for _, f := range r.imports {
					used[f] = used[f] || within(strings.TrimPrefix(i, module), f)
				}
			}
			if name := path.Base(pkg); pkg != r.folder && !strings.HasPrefix(pkg, "examples/") && !named(pkg) {
				assert.Regexp(t, "[`/]"+regexp.QuoteMeta(name)+"[`/]", r.text, "the row of %s does not name %s", r.folder, pkg)
			}
		}
		assert.True(t, found, "%s/ of docs/architecture.md holds no package", r.folder)
		for _, f := range r.imports {
			assert.True(t, used[f], "docs/architecture.md allows %s/ to import %s, which nothing in it does", r.folder, f)
		}
	}
}

// named reports whether a package need not be named, because the name of its neighbour
// stands for it.
func named(pkg string) bool {
	return slices.Contains([]string{"cmd/mlxc", "cmd/mlxreplay", "internal/testing/irtest", "internal/toolchain/clang/find", "frontend/gguf/ggufio", "frontend/gguf/ggufio/ggufwrite", "internal/testing/rooms"}, pkg)
}

// The list of third-party software names every module that this one is built with.
func TestThirdParty(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "THIRD_PARTY.md"))
	require.NoError(t, err)
	var modules, listed []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v`).FindAllStringSubmatch(string(mod), -1) {
		modules = append(modules, m[1])
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| [^?|]+ \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	assert.ElementsMatch(t, modules, listed)
}

// README's table of components has a row for every frontend and every device, and no row for anything else.
func TestState(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, state, found := strings.Cut(string(page), "\n## State\n")
	require.True(t, found)
	state, _, _ = strings.Cut(state, "\n## ")
	var listed, there []string
	for _, m := range regexp.MustCompile("`((?:backend|frontend)/\\w+)`").FindAllStringSubmatch(state, -1) {
		listed = append(listed, m[1])
	}
	for _, p := range packages(t) {
		pkg := strings.TrimPrefix(p.ImportPath, module)
		switch {
		case path.Dir(pkg) == "frontend" && has(t, pkg, `(?m)^(var Source = frontend\.Source\b|func Import\()`):
			there = append(there, pkg)
		case path.Dir(pkg) == "backend" && has(t, pkg, `(?m)^func \(\w+ \*Device\) Compile\(`):
			there = append(there, pkg)
		}
	}
	assert.ElementsMatch(t, there, listed)
}

// has reports whether a package has a text that an expression matches.
func has(t *testing.T, pkg, expression string) bool {
	files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		if regexp.MustCompile(expression).Match(text) {
			return true
		}
	}
	return false
}
