package cmd_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

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
