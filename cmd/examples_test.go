package cmd_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// TestExamples runs the sessions that stand beside the examples.
func TestExamples(t *testing.T) {
	interpreter, err := python.Find("msgpack")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{"../examples/python/engine.txtar"},
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PYTHON", interpreter)
			e.Setenv("ROOT", root)
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			collectAsHere(e)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
	})
}

// TestCaptureExample runs the session beside an engine in C, which the one clang of all tests compiles.
func TestCaptureExample(t *testing.T) {
	sample.Long(t)
	interpreter, err := python.Find("msgpack")
	if err != nil {
		t.Fatal(err)
	}
	c, err := clang.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	out, err := c.Program(t.Context(), "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-I", filepath.Join(root, "capture"),
		filepath.Join(root, "examples/capture/engine.c"), "-o", filepath.Join(bin, "engine")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{"../examples/capture/engine.txtar"},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("PYTHON", interpreter)
			e.Setenv("ROOT", root)
			e.Setenv("PYTHONPATH", filepath.Join(root, "python"))
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			e.Setenv(clang.Env, c.Path)
			collectAsHere(e)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
	})
}
