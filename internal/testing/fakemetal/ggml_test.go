//go:build linux && amd64

package fakemetal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/traced"
)

// ggmlHost are the functions of the library that scripts/ggml-host.sh makes: llama.cpp with ggml's Metal backend, unmodified.
type ggmlHost struct {
	ops   func(only, out string) int32
	llama func(model, out string, prompt *int32, nPrompt, n, context int32) int32
	marks func(function uintptr)
	end   func()
	took  func(out *int64, n int32) int32
}

// openGGML loads the library after the stand-in for Metal, whose functions it calls.
func openGGML(t testing.TB) *ggmlHost {
	t.Helper()
	path, err := filepath.Abs("../../../out/ggmlhost/ggmlhost.so")
	require.NoError(t, err)
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	g := &ggmlHost{}
	purego.RegisterLibFunc(&g.ops, h, "ggmlhost_ops")
	purego.RegisterLibFunc(&g.llama, h, "ggmlhost_llama")
	purego.RegisterLibFunc(&g.marks, h, "ggmlhost_marks")
	purego.RegisterLibFunc(&g.end, h, "ggmlhost_end")
	purego.RegisterLibFunc(&g.took, h, "ggmlhost_took")
	return g
}

// ggmlRan: ggml's device is made once in a process, and destroyed once.
var ggmlRan bool

// withGGML runs ggml on the stand-in and captures it, and returns where the log and the program's results are.
func withGGML(t *testing.T, f func(g *ggmlHost, out string)) (log, out string) {
	t.Helper()
	if _, err := os.Stat("../../../out/ggmlhost/ggmlhost.so"); err != nil {
		t.Skip("scripts/ggml-host.sh has not made llama.cpp with ggml's Metal backend")
	}
	if ggmlRan {
		t.Skip("ggml has run in this process")
	}
	ggmlRan = true
	dir := t.TempDir()
	log, out = filepath.Join(dir, "log.mlxtrace"), filepath.Join(dir, "out")
	if keep := os.Getenv("MLXC_GGML_CAPTURE"); keep != "" {
		log, out = keep+".mlxtrace", keep+".out"
	}
	run(t, fakemetal.Options{Anywhere: true, InOrder: true, Seed: uint64(sample.Run()), Patience: time.Minute}, func(e *engine) {
		start, stop := shim(t)
		require.Zero(t, start(log, uintptr(e.device)))
		g := openGGML(t)
		g.marks(stepsOfShim(t))
		f(g, out)
		g.end()
		require.Zero(t, stop())
	})
	return log, out
}

// ggml's Metal backend computes on the stand-in what ggml's CPU backend computes, nearly, and its capture what it computed itself, bit for
// bit: the driver has the operations.
func TestGGML(t *testing.T) {
	sample.Seldom(t)
	log, out := withGGML(t, func(g *ggmlHost, out string) { require.Zero(t, g.ops("", out), "operations whose results are wrong") })
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	want := traced.Results(t, data)
	r := traced.Import(t, log, trace.Options{})
	require.Len(t, r.Runs, 32, "a module has as many graphs; the other operations are compared with the CPU's alone")
	for i, left := range traced.Replay(t, shared, r.Module, r.Runs) {
		require.Equal(t, want[i].Name, r.Runs[i].Graph)
		found := false
		for _, m := range left {
			for at := 0; at+len(want[i].Data) <= len(m.Data); at += 32 { // somewhere in the one buffer that has all tensors
				found = found || string(m.Data[at:at+len(want[i].Data)]) == string(want[i].Data)
			}
		}
		require.True(t, found, want[i].Name)
	}
}

// llama.cpp decodes with the demonstration model on ggml's Metal backend. The steps become one graph without params, which computes
// llama.cpp's own logits, bit for bit. With MLXC_GGML_MODEL it is another model.
func TestGGMLModel(t *testing.T) {
	sample.Seldom(t)
	model := os.Getenv("MLXC_GGML_MODEL")
	if model == "" {
		model = "../../../testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf"
	}
	if _, err := os.Stat(model); err != nil {
		t.Skip(err)
	}
	const steps = 4
	prompt := []int32{1, 5, 9, 33}
	log, out := withGGML(t, func(g *ggmlHost, out string) {
		require.EqualValues(t, steps, g.llama(model, out, &prompt[0], int32(len(prompt)), steps, 64))
	})
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	want := traced.Results(t, data)
	r := traced.Import(t, log, trace.Options{})
	require.Len(t, r.Module.Graphs, 2)
	require.Len(t, r.Runs, steps)
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	for i, left := range traced.Replay(t, d, r.Module, r.Runs) {
		require.Len(t, left, 1)
		require.Equal(t, want[i].Data, left[0].Data, "step %d, token %s", i, want[i].Name)
	}
}
