package cmd_test

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// TestWheelForm: wheels list the digests of what is in them, programs may be run, the recorder can be imported from them, and two of
// the same files are the same bytes.
func TestWheelForm(t *testing.T) {
	interpreter, err := python.Find()
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"mlxc", "mlxreplay"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("a program named "+name), 0o644))
	}
	run := func(path, program string, args ...string) string {
		c := exec.Command(interpreter, append([]string{"-B", "-c", program}, args...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "PYTHONPATH="+path)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	const build = `import pathlib, sys, wheel
print(wheel.wheel(sys.argv[1], "1.2.3", 1700000000, pathlib.Path(sys.argv[2]), [pathlib.Path("mlxc"), pathlib.Path("mlxreplay")][::int(sys.argv[3])]))`
	scripts := filepath.Join(root, "scripts")
	first := run(scripts, build, "musllinux_x86_64", "one", "1")
	again := run(scripts, build, "musllinux_x86_64", "two", "-1")
	assert.Equal(t, filepath.Join("one", "mlxc-1.2.3-py3-none-musllinux_1_2_x86_64.whl"), first)
	one, err := os.ReadFile(filepath.Join(dir, first))
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(dir, again))
	require.NoError(t, err)
	assert.Equal(t, sha256.Sum256(one), sha256.Sum256(two), "the same files make another wheel")

	z, err := zip.OpenReader(filepath.Join(dir, first))
	require.NoError(t, err)
	defer z.Close()
	listed, metadata, record := map[string]string{}, "", "mlxc-1.2.3.dist-info/RECORD"
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		digest := sha256.Sum256(data)
		listed[f.Name] = fmt.Sprintf("sha256=%s,%d", base64.RawURLEncoding.EncodeToString(digest[:]), len(data))
		assert.Equal(t, strings.Contains(f.Name, ".data/scripts/"), f.Mode()&0o111 != 0, "%s has mode %v", f.Name, f.Mode())
		switch f.Name {
		case record:
			record = string(data)
			listed[f.Name] = ","
		case "mlxc-1.2.3.dist-info/METADATA":
			metadata = string(data)
		}
	}
	want := ""
	for line := range strings.Lines(record) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
		want += name + "\n"
		assert.Equal(t, listed[name], rest, name)
		delete(listed, name)
	}
	assert.Empty(t, listed, "RECORD does not list these")
	for _, name := range []string{"mlxc/__init__.py", "mlxc_capture.py", "mlxc-1.2.3.data/scripts/mlxreplay", "mlxc-1.2.3.dist-info/licenses/LICENSE"} {
		assert.Contains(t, want, name+"\n")
	}
	assert.Contains(t, metadata, "\nVersion: 1.2.3\n")
	assert.Contains(t, metadata, "\nProvides-Extra: kernels\n")
	assert.Contains(t, run(filepath.Join(dir, first), "import mlxc; print(mlxc.__file__, mlxc.Recorder, mlxc.__version__)"), "musllinux_1_2_x86_64.whl/mlxc/__init__.py <class 'mlxc.Recorder'> 1.2.3")
}
