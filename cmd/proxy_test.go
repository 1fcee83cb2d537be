package cmd_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	modulepath "golang.org/x/mod/module"
	modulezip "golang.org/x/mod/zip"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

const thisModule = "github.com/mlxc/mlxc"

// tracked is a file of the repository, as a module's archive takes it.
type tracked struct{ root, name string }

func (f tracked) Path() string                 { return f.name }
func (f tracked) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f tracked) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }

// repository lists the files that git knows.
func repository(t *testing.T) (files []modulezip.File) {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	list, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Skip("no git, or no repository")
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			files = append(files, tracked{root, name})
		}
	}
	require.Greater(t, len(files), 1000)
	return files
}

// TestModuleArchive: a module proxy takes every file of the repository, by its name and size.
func TestModuleArchive(t *testing.T) {
	files := repository(t)
	checked, err := modulezip.CheckFiles(files)
	require.NoError(t, err)
	require.NoError(t, checked.Err())
	assert.Empty(t, checked.Omitted)
	assert.Len(t, checked.Valid, len(files))
	_, err = modulezip.CheckFiles(append(files, tracked{t.TempDir(), "con:.go"}))
	require.Error(t, err)
}

// TestInstallFromProxy makes a module proxy of the repository, in files, and installs both commands from it as go install does: at
// @latest, in an empty folder, without a network.
func TestInstallFromProxy(t *testing.T) {
	if !sample.Whole() {
		t.Skipf("compiles all commands anew: %s=1", sample.WholeEnv)
	}
	const version = "v0.999.0"
	files := repository(t)
	versions := filepath.Join(t.TempDir(), filepath.FromSlash(thisModule), "@v")
	proxy := strings.TrimSuffix(versions, filepath.FromSlash("/"+thisModule+"/@v"))
	require.NoError(t, os.MkdirAll(versions, 0o755))
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(versions, name), text, 0o644))
	}
	write("list", []byte(version+"\n"))
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(1700000000, 0).UTC()})
	require.NoError(t, err)
	write(version+".info", info)
	mod, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	write(version+".mod", mod)
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	require.NoError(t, err)
	require.NoError(t, modulezip.Create(archive, modulepath.Version{Path: thisModule, Version: version}, files))
	require.NoError(t, archive.Close())

	modules, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	cache, bin, empty := t.TempDir(), t.TempDir(), t.TempDir()
	run := func(program string, args ...string) string {
		c := exec.Command(program, args...)
		c.Dir = empty
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOBIN="+bin, "GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GONOSUMDB=*", "GOTOOLCHAIN=local",
			fmt.Sprintf("GOPROXY=file://%s,file://%s/cache/download,off", filepath.ToSlash(proxy), filepath.ToSlash(strings.TrimSpace(string(modules)))))
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s %v\n%s", program, args, out)
		return string(out)
	}
	run("go", "install", thisModule+"/cmd/...@latest") // as docs/install.md has it
	for _, name := range []string{"mlxc", "mlxreplay"} {
		assert.Equal(t, name+" "+version+", "+runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+"\n", run(filepath.Join(bin, name), "--version"))
	}
	assert.Contains(t, run(filepath.Join(bin, "mlxreplay"), "devices"), "softmetal")
}
