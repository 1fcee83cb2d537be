package gguf_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// generated is what llama.cpp computes of a model (testdata/gen/architectures.py).
type generated struct {
	Prompt int         `json:"prompt"`
	IDs    []int32     `json:"ids"`
	Logits [][]float64 `json:"logits"` // behind the prompt, one token later, and behind the last but one
	MinGap float64     `json:"min_gap"`
}

// readModel reads a model of testdata/architectures and what llama.cpp computes of it.
func readModel(t *testing.T, name string) (*gguf.Model, generated) {
	t.Helper()
	folder := filepath.Join("..", "..", "testdata", "architectures")
	packed, err := os.ReadFile(filepath.Join(folder, name+".gguf.gz"))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	file, err := io.ReadAll(z)
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(folder, name+".json"))
	require.NoError(t, err)
	var want generated
	require.NoError(t, json.Unmarshal(raw, &want))
	m, err := gguf.Read(name+".gguf", file)
	require.NoError(t, err)
	return m, want
}

// TestArchitectures: the models of every architecture have llama.cpp's logits, to 1e-3, and its tokens, recorded and
// optimized, with weights repacked and as blocks.
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
				module, err := m.Record(context.Background(), frontend.Options{Prefill: 16, Blocks: (i%2 == 0) == optimized})
				require.NoError(t, err)
				for n, g := range module.Graphs {
					if optimized {
						module.Graphs[n], err = optimize.New("").Optimize(context.Background(), g) // and proved
						require.NoError(t, err)
					}
				}
				checkTokens(t, module, want)
			}
		})
	}
	require.ElementsMatch(t, gguf.Architectures(), slices.Collect(maps.Keys(seen)), "architectures without a model")
}

// checkTokens runs a model's graphs: the prompt in two parts, then one token after another, each that of llama.cpp.
func checkTokens(t *testing.T, module *ir.Module, want generated) {
	t.Helper()
	d := cpu.New(2)
	defer d.Close()
	s, err := replay.Open(d, module, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	const first = 7
	for pos := 0; pos < len(want.IDs)-1; {
		graph, end := "decode", pos+1
		if pos < want.Prompt {
			graph, end = "prefill", first
			if pos == first {
				end = want.Prompt
			}
		}
		g, err := s.Graph(context.Background(), graph)
		require.NoError(t, err)
		require.NoError(t, g.SetInput("tokens", ir.ValueBytes(want.IDs[pos:end])))
		require.NoError(t, g.SetParam("pos", float64(pos)))
		if graph == "prefill" {
			require.NoError(t, g.SetParam("n", float64(end-pos)))
		}
		_, err = g.Run(context.Background())
		require.NoError(t, err)
		logits, err := g.Output("logits")
		require.NoError(t, err)
		if kept := slices.Index([]int{want.Prompt, want.Prompt + 1, len(want.IDs) - 1}, end); kept >= 0 {
			require.Len(t, logits, 4*len(want.Logits[kept]))
			for j, w := range want.Logits[kept] {
				require.InDelta(t, w, math.Float32frombits(binary.LittleEndian.Uint32(logits[4*j:])), 1e-3, "logit %d behind %d tokens", j, end)
			}
		}
		if end >= want.Prompt {
			token, err := g.Output("token")
			require.NoError(t, err)
			require.Equal(t, want.IDs[end], int32(binary.LittleEndian.Uint32(token)), "token %d", end)
		}
		pos = end
	}
}
