package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// pythonPath returns a Python that has msgpack, which must be there: $PYTHON,
// else the environment that scripts/python.sh makes, else python3.
func pythonPath(t *testing.T) string {
	python := os.Getenv("PYTHON")
	if python == "" {
		python = filepath.Join("..", "out", "python", "bin", "python")
		if _, err := os.Stat(python); err != nil {
			python = "python3"
		}
	}
	if filepath.Base(python) != python {
		// Not EvalSymlinks: a virtual environment is known by its own path.
		var err error
		if python, err = filepath.Abs(python); err != nil {
			t.Fatal(err)
		}
	}
	// What is called python3 may be a script that needs more of the environment
	// than sessions have.
	out, err := exec.Command(python, "-s", "-c", "import sys, msgpack; sys.stdout.write(sys.executable)").Output()
	if err != nil {
		t.Fatalf("%s with msgpack is needed: run scripts/python.sh, or set PYTHON (%v)", python, err)
	}
	return string(out)
}

// TestExamples runs the sessions that stand beside the examples.
func TestExamples(t *testing.T) {
	python := pythonPath(t)
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
			e.Setenv("PYTHON", python)
			e.Setenv("ROOT", root)
			e.Setenv("PYTHONDONTWRITEBYTECODE", "1")
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			return nil
		},
	})
}
