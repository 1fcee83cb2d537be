package gguf_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/testing/generated"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

// readModel reads a model of testdata/architectures and what llama.cpp computes of it.
func readModel(t *testing.T, name string) (*gguf.Model, generated.Want) {
	t.Helper()
	folder := filepath.Join("..", "..", "testdata", "architectures")
	packed, err := os.ReadFile(filepath.Join(folder, name+".gguf.gz"))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	file, err := io.ReadAll(z)
	require.NoError(t, err)
	m, err := gguf.Read(name+".gguf", file)
	require.NoError(t, err)
	return m, generated.Read(t, filepath.Join(folder, name+".json"))
}

// TestArchitectures: the models of every architecture have llama.cpp's logits, to 1e-3, and its tokens, recorded and
// optimized, with weights repacked and as blocks; optimized, in steps that verify guesses too.
func TestArchitectures(t *testing.T) {
	models, err := filepath.Glob(filepath.Join("..", "..", "testdata", "architectures", "*.json"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for i, path := range models {
		name := filepath.Base(path[:len(path)-len(".json")])
		t.Run(name, func(t *testing.T) {
			m, want := readModel(t, name)
			arch, err := m.File.KV.String("general.architecture")
			require.NoError(t, err)
			seen[arch] = true
			for _, optimized := range []bool{false, true} {
				o := frontend.Options{Prefill: 16, Blocks: (i%2 == 0) == optimized}
				if optimized {
					o.Draft = 4
				}
				module, err := m.Record(context.Background(), o)
				require.NoError(t, err)
				for n, g := range module.Graphs {
					if optimized {
						module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
						require.NoError(t, err)
					}
				}
				generated.Check(t, module, want, 0.01)
			}
		})
	}
	require.ElementsMatch(t, gguf.Architectures(), slices.Collect(maps.Keys(seen)), "architectures without a model")
}

// TestArchitecturesWithCachesOfF16: with keys and values rounded to f16 the models have llama.cpp's tokens, which has a cache
// of f32 here, and its logits to 0.01.
func TestArchitecturesWithCachesOfF16(t *testing.T) {
	withCaches(t, ir.F16, func(t *testing.T, module *ir.Module, want generated.Want) { generated.Check(t, module, want, 0.01) })
}

// TestArchitecturesWithCachesOf8Bits: with keys and values in codes of 8 bits, too, logits are llama.cpp's with a cache of f32, within
// 5% of the greatest one, most within 0.5%.
func TestArchitecturesWithCachesOf8Bits(t *testing.T) {
	withCaches(t, ir.I8, func(t *testing.T, module *ir.Module, want generated.Want) {
		worst := generated.Roughly(t, module, ir.F32, want)
		t.Logf("off by %.2g of the greatest logit", worst)
		require.Less(t, worst, 0.05)
	})
}

// withCaches checks models of all architectures, optimized, with a cache of a type.
func withCaches(t *testing.T, cache ir.DType, check func(t *testing.T, module *ir.Module, want generated.Want)) {
	models, err := filepath.Glob(filepath.Join("..", "..", "testdata", "architectures", "*.json"))
	require.NoError(t, err)
	for i, path := range models {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		name := filepath.Base(path[:len(path)-len(".json")])
		t.Run(name, func(t *testing.T) {
			m, want := readModel(t, name)
			module, err := m.Record(context.Background(), frontend.Options{Prefill: 16, Cache: cache, Blocks: i%2 == 0})
			require.NoError(t, err)
			for n, g := range module.Graphs {
				module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
				require.NoError(t, err)
			}
			check(t, module, want)
		})
	}
}

// TestEachTypeOfEachArchitecture: models whose matrices all have one type have llama.cpp's logits, to 1e-3, and its tokens. They
// are too many to be stored: GGUF_MODELS names the folder that testdata/gen/architectures.py --types has written.
func TestEachTypeOfEachArchitecture(t *testing.T) {
	folder := os.Getenv("GGUF_MODELS")
	if folder == "" {
		t.Skip("GGUF_MODELS names no folder of models")
	}
	models, err := filepath.Glob(filepath.Join(folder, "*.gguf"))
	require.NoError(t, err)
	require.NotEmpty(t, models)
	for _, path := range models {
		name := strings.TrimSuffix(path, ".gguf")
		t.Run(filepath.Base(name), func(t *testing.T) {
			m, err := gguf.Load(path)
			require.NoError(t, err)
			defer m.Close()
			want := generated.Read(t, name+".json")
			worst := 0.0
			for _, blocks := range []bool{false, true} {
				module, err := m.Record(context.Background(), frontend.Options{Prefill: 16, Blocks: blocks})
				require.NoError(t, err)
				worst = max(worst, generated.Check(t, module, want, 1e-3))
				for n, g := range module.Graphs {
					module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
					require.NoError(t, err)
				}
				worst = max(worst, generated.Check(t, module, want, 1e-3))
			}
			t.Logf("logits are off by %.1e at most", worst)
		})
	}
}

// All layers of phi3 have the window that its file says, as in transformers. llama.cpp, which computes without one, is no oracle beyond
// it; folders of phi3 are held against mlx-lm with windows.
func TestWindowOfPhi3(t *testing.T) {
	m, want := readModel(t, "phi3")
	require.EqualValues(t, 100, m.Config.Window)
	require.NotContains(t, m.Config.Windowed, false)
	require.Less(t, len(want.IDs), 100)
}

// TestArchitecturesIn16Bits: what only some architectures compute is roughly llama.cpp's in f16 and bf16 too.
func TestArchitecturesIn16Bits(t *testing.T) {
	for _, name := range []string{"gemma2", "gemma3-pattern", "gpt-oss", "phi3-long", "qwen3-yarn"} {
		for typ, tolerance := range map[ir.DType]float64{ir.F16: 0.005, ir.BF16: 0.04} { // of the greatest logit
			t.Run(name+" "+typ.String(), func(t *testing.T) {
				m, want := readModel(t, name)
				module, err := m.Record(context.Background(), frontend.Options{Prefill: 16, Type: typ})
				require.NoError(t, err)
				require.Less(t, generated.Roughly(t, module, typ, want), tolerance)
			})
		}
	}
}
