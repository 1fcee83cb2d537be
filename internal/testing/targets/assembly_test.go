package targets

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAssembly: the assembly for arm64 assembles. Only make arm64 runs it.
func TestAssembly(t *testing.T) {
	dir, err := root()
	require.NoError(t, err)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	include := filepath.Join(strings.TrimSpace(string(goroot)), "pkg", "include")
	n := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "out" || strings.HasPrefix(d.Name(), ".") && path != dir):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_arm64.s"):
			return nil
		}
		n++
		cmd := exec.Command("go", "tool", "asm", "-p", "p", "-I", include, "-I", filepath.Dir(path), "-D", "GOOS_linux", "-D", "GOARCH_arm64", "-o", filepath.Join(t.TempDir(), "o"), path)
		cmd.Env = append(os.Environ(), "GOARCH=arm64")
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%s", out)
		return nil
	}))
	assert.GreaterOrEqual(t, n, 2, "the inner loops of the CPU, and messages to Metal")
}
