package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
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
	sample.Seldom(t)
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

// TestCaptureInRust: the same engine in Rust writes the same log as the one in C, byte for byte. It needs a rustc that links.
func TestCaptureInRust(t *testing.T) {
	sample.Seldom(t)
	rustc, err := exec.LookPath("rustc")
	if err != nil {
		t.Skip("there is no rustc")
	}
	c, err := clang.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../examples/capture")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(what *exec.Cmd) {
		t.Helper()
		what.Dir = dir
		if out, err := what.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", what.Args, err, out)
		}
	}
	header := filepath.Join(examples, "../../capture")
	empty := filepath.Join(dir, "empty.rs")
	if err := os.WriteFile(empty, []byte("fn main() {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(rustc, "--edition", "2021", empty, "-o", filepath.Join(dir, "empty")).CombinedOutput(); err != nil {
		t.Skipf("rustc does not link here: %s", out)
	}
	run(c.Program(t.Context(), "-std=c99", "-O1", "-c", "-x", "c", "-DMLXREC_IMPLEMENTATION", filepath.Join(header, "mlxrec.h"), "-o", filepath.Join(dir, "mlxrec.o")))
	run(exec.Command(rustc, "--edition", "2021", "-D", "warnings", "-C", "link-arg=mlxrec.o", filepath.Join(examples, "engine.rs"), "-o", "rust"))
	run(c.Program(t.Context(), "-std=c99", "-O1", "-I", header, filepath.Join(examples, "engine.c"), "-o", filepath.Join(dir, "c")))
	var logs [2][]byte
	for i, name := range []string{"c", "rust"} {
		run(exec.Command(filepath.Join(dir, name), filepath.Join(examples, "engine.metal"), name+".mlxtrace"))
		if logs[i], err = os.ReadFile(filepath.Join(dir, name+".mlxtrace")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(logs[0], logs[1]) {
		t.Error("the logs differ")
	}
}
