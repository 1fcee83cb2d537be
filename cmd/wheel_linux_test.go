package cmd_test

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestWheelInstalled installs the wheels of this machine where nothing but a Python with pip is, without a network: a model is
// recorded there and answers. The programs of the wheel for musl need nothing at all: they run in an empty folder.
func TestWheelInstalled(t *testing.T) {
	switch {
	case !sample.Whole():
		t.Skipf("builds both wheels of this machine and installs them: %s=1", sample.WholeEnv)
	case os.Geteuid() != 0:
		t.Skip("only root may change the root directory of a program")
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if machine == "" {
		t.Skip("there are no wheels for " + runtime.GOARCH)
	}
	model := modelPath(t)
	wheels := t.TempDir()
	build := exec.Command("../scripts/wheel.py", "manylinux_"+machine, "musllinux_"+machine, "--out", wheels, "--version", "0.0.1.dev1")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	for _, libc := range []string{"manylinux", "musllinux"} {
		t.Run(libc, func(t *testing.T) {
			root := t.TempDir()
			python := onlyPython(t, root)
			found, err := filepath.Glob(filepath.Join(wheels, "mlxc-*"+libc+"*.whl"))
			require.NoError(t, err)
			require.Len(t, found, 1)
			wheel := filepath.Base(found[0])
			if libc == "musllinux" { // pip refuses it on this machine by its name: its programs run on any
				wheel = wheel[:strings.Index(wheel, "musllinux")] + "linux_" + machine + ".whl"
			}
			copyFile(t, found[0], filepath.Join(root, wheel))
			copyFile(t, model, filepath.Join(root, "model.gguf"))
			inside(t, root, python, "-m", "pip", "install", "--no-index", "--no-cache-dir", "--disable-pip-version-check", "--target", "/packages", "/"+wheel)
			programs := map[string]string{}
			for _, name := range []string{"mlxc", "mlxreplay"} {
				programs[name] = "/packages/bin/" + name
			}
			assert.Contains(t, inside(t, root, programs["mlxc"], "--version"), runtime.Version()+" linux/"+runtime.GOARCH)
			inside(t, root, programs["mlxc"], "record", "/model.gguf", "-o", "/g.mlxg")
			answer := inside(t, root, programs["mlxreplay"], "generate", "/g.mlxg", "--device", "cpu", "--chat", "--prompt", "What is the capital of France?", "-n", "8")
			assert.Contains(t, answer, "Paris")
			inside(t, root, python, "-c", "import sys; sys.path.insert(0, '/packages'); from mlxc import Recorder; Recorder('/log').close()")
			if libc == "manylinux" {
				f, err := elf.Open(filepath.Join(root, programs["mlxreplay"]))
				require.NoError(t, err)
				defer f.Close()
				libraries, err := f.ImportedLibraries()
				require.NoError(t, err)
				assert.Subset(t, []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}, libraries, "any glibc has these")
				symbols, err := f.ImportedSymbols()
				require.NoError(t, err)
				assert.NotEmpty(t, symbols)
				for _, s := range symbols {
					assert.Empty(t, s.Version, "%s is wanted in a version", s.Name)
				}
			}
			if libc == "musllinux" {
				empty := t.TempDir()
				for name, path := range programs {
					assert.False(t, linked(t, filepath.Join(root, path)), "%s needs a dynamic linker", name)
					copyFile(t, filepath.Join(root, path), filepath.Join(empty, name))
				}
				copyFile(t, model, filepath.Join(empty, "model.gguf"))
				inside(t, empty, "/mlxc", "record", "/model.gguf", "-o", "/g.mlxg")
				assert.Contains(t, inside(t, empty, "/mlxreplay", "generate", "/g.mlxg", "--chat", "--prompt", "What is the capital of France?", "-n", "8"), "Paris")
			}
		})
	}
}

// inside runs a program with another root directory, an empty environment, and no network.
func inside(t *testing.T, root, program string, args ...string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "tmp"), 0o777))
	c := exec.Command(program, args...)
	c.Path, c.Err, c.Dir = program, nil, "/" // of the other root
	c.Env = []string{"HOME=/", "PATH=/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWNET}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s %v\n%s%s", program, args, out, stderr.Bytes())
	return string(out)
}

// onlyPython copies a Python, its library with pip, and the shared libraries that they need to the same paths below root, and
// nothing else. It returns the path of the Python.
func onlyPython(t *testing.T, root string) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", `import os, pip, sys, sysconfig
print(os.path.realpath(sys.executable), sysconfig.get_path("stdlib"), os.path.dirname(pip.__file__), sep="\n")`).Output()
	if err != nil {
		t.Skip("there is no python3 with pip")
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	python, library, pip := lines[0], lines[1], lines[2]
	programs := []string{python}
	for _, from := range []string{library, pip} {
		require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != from && (d.Name() == "site-packages" || d.Name() == "dist-packages" || d.Name() == "test" || d.Name() == "__pycache__"):
				return fs.SkipDir
			case d.Type().IsRegular():
				copyFile(t, path, filepath.Join(root, path))
				if strings.HasSuffix(path, ".so") {
					programs = append(programs, path)
				}
			}
			return nil
		}))
	}
	copyFile(t, python, filepath.Join(root, python))
	needed, err := exec.Command("ldd", programs...).Output()
	require.NoError(t, err)
	for _, word := range strings.Fields(string(needed)) {
		if !strings.HasPrefix(word, "/") || strings.HasSuffix(word, ":") {
			continue
		}
		add := []string{word}
		if filepath.Base(word) == "libc.so.6" { // what this C library has in files of their own
			for _, part := range []string{"libdl.so.2", "libpthread.so.0"} {
				add = append(add, filepath.Join(filepath.Dir(word), part))
			}
		}
		for _, file := range add {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				copyFile(t, file, filepath.Join(root, file))
			}
		}
	}
	return python
}

// copyFile copies a file with its permissions, by a link if that is possible.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	from, err := filepath.EvalSymlinks(from)
	require.NoError(t, err)
	if os.Link(from, to) == nil {
		return
	}
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	st, err := os.Stat(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, st.Mode()))
}
