// Package cmd_test runs the commands as a user does: each file of
// testdata/script is a session at a prompt (the language is testscript's). Write
// the expected outputs anew with
//
//	go test ./cmd -update
package cmd_test

import (
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mlxc/mlxc/cmd/internal/mlxc"
	"github.com/mlxc/mlxc/cmd/internal/mlxreplay"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

var update = flag.Bool("update", false, "write the outputs of cmp into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(signalled{m}, map[string]func(){
		"mlxc":      func() { os.Exit(mlxc.Main(os.Args[1:])) },
		"mlxreplay": func() { os.Exit(withGPU(func() int { return mlxreplay.Main(os.Args[1:], devices...) })) },
	})
}

// signalled runs the tests where a shell may have them ignore signals: those of nohup,
// or of a command that a script has put into the background. Commands inherit that, and
// would wait for ever for the signals that tests send them. A signal that this process
// catches is one that its children do not ignore.
type signalled struct{ *testing.M }

func (m signalled) Run() int {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	return m.M.Run()
}

// modelPath returns the demonstration model, which must be there.
func modelPath(t *testing.T) string {
	model := os.Getenv("MODEL")
	if model == "" {
		model = filepath.Join("..", "testdata", "model", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	model, err := filepath.Abs(model)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(model); err != nil {
		t.Fatalf("the demonstration model is missing: run scripts/fetch-model.sh (%v)", err)
	}
	return model
}

func TestScripts(t *testing.T) {
	model := modelPath(t)
	testdata, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	library, older := metallibs.Path(t, "0.32.4"), metallibs.Path(t, "0.16.3")
	small := filepath.Join(t.TempDir(), "small.metallib")
	if err := os.WriteFile(small, metallibs.Small(t, "rmsfloat32", "gemv_wide_bfloat16_nv2_kl16", "vv_Addfloat32"), 0o644); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.metallib")
	functions := metallibs.Functions(t, "rmsfloat32", "vv_Addfloat32", "vv_Subtractfloat32")
	functions[2].Type = 1 // no kernel
	bytes := metallibs.Write(functions)
	bytes[len(bytes)-len(functions[2].Bitcode)-100] ^= 1 // of the kernel before it
	if err := os.WriteFile(damaged, bytes, 0o644); err != nil {
		t.Fatal(err)
	}
	tiny := filepath.Join(t.TempDir(), "tiny.gguf")
	tinyModel(t, tiny)
	compiler, err := clang.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"sarif": sarifCommand},
		Files:               scripts(t, scriptFolder, 4),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODEL", model)
			e.Setenv("TESTDATA", testdata)
			e.Setenv(clang.Env, compiler.Path)
			e.Setenv("OLDER", older)     // those of an older version
			e.Setenv("LIBRARY", library) // MLX's compiled kernels
			e.Setenv("DAMAGED", damaged) // two, of which one is damaged, and a function that is none
			e.Setenv("TINY", tiny)       // a language model that is quickly run
			e.Setenv("SMALL", small)     // three of them, in a library of their own
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("CUDA_VISIBLE_DEVICES", "-1") // what scripts compare is of no machine's GPU
			collectAsHere(e)
			e.Setenv("XDG_CACHE_HOME", store.Dir()) // of compiled kernels: files go by their digests
			return nil
		},
	})
}

// scripts returns the scripts of a folder that this run takes: one in `in`, and those of hostile input; or all if a run
// asks for some by name or updates them.
func scripts(t *testing.T, folder string, in int) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no scripts in %s: %v", folder, err)
	}
	if run := flag.Lookup("test.run"); *update || strings.Contains(run.Value.String(), "/") {
		return all
	}
	// The longest come first, so that no run takes two of them.
	slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	var taken []string
	for i, file := range all {
		if sample.Takes(folder, i, in) || strings.Contains(file, "hostile") {
			taken = append(taken, file)
		}
	}
	t.Logf("%d of %d scripts (%s=1 takes all)", len(taken), len(all), sample.WholeEnv)
	return taken
}

const scriptFolder = "testdata/script"

// longest are the scripts that take five seconds of a core or more.
var longest = []string{"model", "metal", "doctor"}

// rank returns a script's place in longest, or the place behind all.
func rank(file string) int {
	if i := slices.Index(longest, strings.TrimSuffix(filepath.Base(file), ".txtar")); i >= 0 {
		return i
	}
	return len(longest)
}

// collectAsHere gives a script's processes the garbage collector's settings of this one, which testscript takes away:
// make test lets programs that hold little collect nothing.
func collectAsHere(e *testscript.Env) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if value, ok := os.LookupEnv(name); ok {
			e.Setenv(name, value)
		}
	}
}
