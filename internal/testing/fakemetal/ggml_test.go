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
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// ggmlHost are the functions of the library that scripts/ggml-host.sh makes: llama.cpp with ggml's Metal backend, unmodified.
type ggmlHost struct {
	ops   func(only, out string) int32
	llama func(model, out string, prompt *int32, nPrompt, n, context int32) int32
	end   func()
	marks func(function uintptr)
}

// openGGML loads the library after the stand-in for Metal, whose functions it calls.
func openGGML(t *testing.T) *ggmlHost {
	t.Helper()
	path, err := filepath.Abs("../../../out/ggmlhost/ggmlhost.so")
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("scripts/ggml-host.sh has not made llama.cpp with ggml's Metal backend")
	}
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	g := &ggmlHost{}
	purego.RegisterLibFunc(&g.ops, h, "ggmlhost_ops")
	purego.RegisterLibFunc(&g.llama, h, "ggmlhost_llama")
	purego.RegisterLibFunc(&g.marks, h, "ggmlhost_marks")
	purego.RegisterLibFunc(&g.end, h, "ggmlhost_end")
	return g
}

// TestGGML runs ggml's Metal backend on the stand-in: what it computes is what ggml's CPU backend computes, nearly.
func TestGGML(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if p := os.Getenv("GGMLHOST_OUT"); p != "" {
		out = p
	}
	run(t, fakemetal.Options{Anywhere: true, InOrder: true}, func(e *engine) {
		g := openGGML(t)
		defer g.end()
		if p := os.Getenv("GGMLHOST_CAPTURE"); p != "" {
			start, stop := shim(t)
			require.Zero(t, start(p, uintptr(e.device)))
			g.marks(stepsOfShim(t))
			defer func() { require.Zero(t, stop()) }()
		}
		require.Zero(t, g.ops(os.Getenv("GGMLHOST_ONLY"), out))
	})
}

// TestGGMLModel decodes with a model.
func TestGGMLModel(t *testing.T) {
	model := os.Getenv("GGMLHOST_MODEL")
	out := os.Getenv("GGMLHOST_OUT")
	d, err := fakemetal.SoftMetal(softmetal.Options{Workers: 2})
	require.NoError(t, err)
	defer d.Close()
	run(t, fakemetal.Options{Anywhere: true, InOrder: true, Device: d, Patience: time.Minute}, func(e *engine) {
		g := openGGML(t)
		defer g.end()
		if p := os.Getenv("GGMLHOST_CAPTURE"); p != "" {
			start, stop := shim(t)
			require.Zero(t, start(p, uintptr(e.device)))
			g.marks(stepsOfShim(t))
			defer func() { require.Zero(t, stop()) }()
		}
		prompt := []int32{1, 5, 9, 33}
		require.EqualValues(t, 4, g.llama(model, out, &prompt[0], 4, 4, 64))
	})
}

var _ = objc.Load
