package mlxlib_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/mlxlib"
	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// alone has only what a test makes looked at.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", t.TempDir())
}

// write makes files below a folder, by their names.
func write(t *testing.T, dir string, files ...string) string {
	t.Helper()
	for _, f := range files {
		path := filepath.Join(dir, f)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		text := ""
		if filepath.Base(f) == "METADATA" {
			text = "Metadata-Version: 2.1\nName: x\nVersion: 9\n"
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// What wheels of MLX have, at these versions: one package, then two that share a folder.
var (
	older = []string{"mlx/lib/mlx.metallib", "mlx/lib/libmlx.dylib", "mlx/core.cpython-311-darwin.so", "mlx/nn/__init__.py", "mlx-0.16.3.dist-info/METADATA"}
	newer = []string{"mlx/lib/mlx.metallib", "mlx/lib/libmlx.dylib", "mlx/core.cpython-311-darwin.so", "mlx/nn/__init__.py", "mlx-0.32.4.dist-info/METADATA", "mlx_metal-0.32.4.dist-info/METADATA"}
	linux = []string{"mlx/lib/libmlx.so", "mlx/core.cpython-311-x86_64-linux-gnu.so", "mlx-0.32.4.dist-info/METADATA", "mlx_cpu-0.32.4.dist-info/METADATA"}
)

func site(prefix string, files []string) (out []string) {
	for _, f := range files {
		out = append(out, filepath.Join(prefix, "site-packages", f))
	}
	return out
}

// TestEnvironments: the environments that are active are looked into, in order, without any Python.
func TestEnvironments(t *testing.T) {
	alone(t)
	a := write(t, filepath.Join(t.TempDir(), "a[1]"), site("lib/python3.11", newer)...)
	b := write(t, t.TempDir(), site("lib/python3.12", older)...)
	none := write(t, t.TempDir(), site("lib/python3.12", linux)...)
	bare := write(t, t.TempDir(), "lib/python3.13/site-packages/mlx/lib/mlx.metallib", "lib/python3.9/site-packages/x")
	for _, c := range []struct{ venv, conda, path, version string }{
		{a, "", filepath.Join(a, "lib/python3.11/site-packages/mlx/lib/mlx.metallib"), "0.32.4"},
		{"", b, filepath.Join(b, "lib/python3.12/site-packages/mlx/lib/mlx.metallib"), "0.16.3"},
		{a, b, filepath.Join(a, "lib/python3.11/site-packages/mlx/lib/mlx.metallib"), "0.32.4"},
		{none, b, filepath.Join(b, "lib/python3.12/site-packages/mlx/lib/mlx.metallib"), "0.16.3"},
		{bare, "", filepath.Join(bare, "lib/python3.13/site-packages/mlx/lib/mlx.metallib"), ""},
	} {
		t.Setenv("VIRTUAL_ENV", c.venv)
		t.Setenv("CONDA_PREFIX", c.conda)
		path, version, err := mlxlib.Find(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, c.path, path)
		assert.Equal(t, c.version, version)
	}
	t.Setenv("VIRTUAL_ENV", none)
	t.Setenv("CONDA_PREFIX", filepath.Join(none, "nothing"))
	_, _, err := mlxlib.Find(t.Context(), "")
	require.Error(t, err)
	assert.Equal(t, fmt.Sprintf("the kernels of MLX (mlx.metallib) are not found:\n\t$VIRTUAL_ENV: %s has no lib/python3.*/site-packages/mlx/lib/mlx.metallib\n\t"+
		"$CONDA_PREFIX: %s/nothing has no lib/python3.*/site-packages/mlx/lib/mlx.metallib\n\tpython3: there is no such program on the path\n"+
		"install MLX in one of these environments (on a Mac: pip install mlx==0.32.4), activate the one that has it, or name the file itself", none, none), err.Error())
}

// TestPython: an interpreter is asked where its packages are. It imports nothing of MLX, and nothing
// that lies where it runs.
func TestPython(t *testing.T) {
	py, err := python.Find()
	require.NoError(t, err)
	alone(t)
	t.Chdir(write(t, t.TempDir(), "mlx/lib/mlx.metallib")) // not meant
	for _, c := range []struct {
		files         []string
		path, version string
		want          string
	}{
		{older, "mlx/lib/mlx.metallib", "0.16.3", ""},
		{newer, "mlx/lib/mlx.metallib", "0.32.4", ""},
		{linux, "", "", "has no "},
		{nil, "", "", "it has no package mlx"},
	} {
		dir := write(t, t.TempDir(), c.files...)
		for _, f := range c.files { // the version is the one that the package says
			if filepath.Base(f) == "METADATA" {
				text := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", map[bool]string{true: "mlx-metal", false: "mlx"}[f[3] == '_'], c.version)
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte(text), 0o600))
			}
		}
		t.Setenv("PYTHONPATH", dir)
		path, version, err := mlxlib.Find(t.Context(), py)
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, py)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, c.path), path)
		assert.Equal(t, c.version, version)
	}
}

// TestStrangePython: a program that is no Python, answers nonsense, too much or never, is an error that
// says so.
func TestStrangePython(t *testing.T) {
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "python3")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
		return path
	}
	for text, want := range map[string]string{
		"echo so what":                    `its answer is not understood: "so what"`,
		"echo no such module >&2; exit 3": "exit status 3: no such module",
		"exec cat /dev/zero":              "python3: ",
		`echo '{"folders": 1}'`:           "its answer is not understood",
	} {
		_, _, err := mlxlib.Find(t.Context(), script(text))
		assert.ErrorContains(t, err, want, text)
	}
	_, _, err := mlxlib.Find(t.Context(), filepath.Join(t.TempDir(), "nothing"))
	assert.ErrorContains(t, err, "no such file")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = mlxlib.Find(ctx, script("exec sleep 60"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}
