package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/toolchain/python"
)

// pythonIn runs Python in the folder of the peers' scripts and returns what it prints.
func pythonIn(t *testing.T, args ...string) string {
	t.Helper()
	interpreter, err := python.Find()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), interpreter, append([]string{"-B"}, args...)...)
	c.Dir = filepath.Join("..", "..", "..", "testdata", "gen")
	c.Stderr = os.Stderr
	out, err := c.Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// Peers are given models of the shapes that are measured here.
func TestPeersHaveOurShapes(t *testing.T) {
	type shape struct {
		Layers, Width, FFN, Heads, KV, Dim, Vocab int64
		Theta                                     float64
		Tied                                      bool
	}
	var theirs map[string]shape
	require.NoError(t, json.Unmarshal([]byte(pythonIn(t, "-c", "import json, synthetic_gguf; print(json.dumps(synthetic_gguf.SHAPES))")), &theirs))
	ours := map[string]shape{}
	for _, m := range []decoder.Synthetic{demonstration, billions} {
		ours[m.Name] = shape{m.Layers, m.Embedding, m.FFN, m.Heads, m.KVHeads, m.HeadDim, m.Vocab, m.RopeTheta, !m.Untied}
	}
	assert.Equal(t, ours, theirs)
}

// The made-up file is one that the reader of such files takes, with the shapes that were asked for.
func TestSyntheticFile(t *testing.T) {
	for _, kind := range []string{"q4_0", "q4_1"} {
		path := filepath.Join(t.TempDir(), kind+".gguf")
		pythonIn(t, "synthetic_gguf.py", "SmolLM2-135M", path, "--tiny", "--type", kind)
		m, err := gguf.Load(path)
		require.NoError(t, err)
		want := demonstration.Config
		want.Layers, want.Vocab, want.Context, want.Trained, want.Name = 2, 512, 8192, 8192, m.Config.Name
		assert.Equal(t, want, m.Config)
		types := map[string]string{}
		for _, tensor := range m.File.Tensors {
			types[tensor.Name] = strings.ToLower(tensor.Type.String())
		}
		assert.Equal(t, "q8_0", types["token_embd.weight"])
		assert.Equal(t, kind, types["blk.1.ffn_down.weight"])
		assert.Equal(t, "f32", types["blk.1.ffn_norm.weight"])
		require.NoError(t, m.Close())
	}
}

// The table of a peer has our figures of the same test beside it.
func TestPeersTable(t *testing.T) {
	dir := t.TempDir()
	figures := filepath.Join(dir, "figures.json")
	require.NoError(t, os.WriteFile(figures, []byte(`[{"what": "recorded", "dispatches": 605, "position": 2, "microseconds": 90},
		{"what": "all passes", "dispatches": 153, "position": 2, "microseconds": 10}, {"what": "rms norm", "microseconds": 1},
		{"what": "16 tokens from position 8", "dispatches": 9, "position": 16, "microseconds": 7, "shape": "8B"}, {"what": "prompt", "tokens": 16, "microseconds": 30, "shape": "8B"},
		{"what": "tokens, by code for any GPU", "dispatches": 9, "position": 2, "microseconds": 1, "shape": "8B"}, {"what": "x", "failed": "y"}]`), 0o644))
	program := filepath.Join(dir, "llama-peer")
	require.NoError(t, os.WriteFile(program, []byte(`#!/bin/sh
echo '{"device": "none"}'
echo '{"test": "n4@0", "tokens": 4, "depth": 0, "microseconds": [90.0, 80.0, 70.0]}'
echo '{"test": "p16", "failed": "the time is over"}'
echo "it broke" >&2
exit 1
`), 0o755))
	out := pythonIn(t, "bench_gpu_llamacpp.py", "--tiny", "--shapes", "SmolLM2-135M", "--program", program, "--ours", figures, "--out", filepath.Join(dir, "peers.json"))
	assert.Contains(t, out, "| 4 tokens from position 0 | 50000 | 20.0 | 17.5–22.5 | 100000 | 2.00 |")
	assert.Contains(t, out, "| not run: p16: the time is over |")
	assert.Contains(t, out, "| not run: exit code 1: it broke |")
	assert.JSONEq(t, `[["SmolLM2-135M", "n4@0", 40], ["8B", "n16@8", 112], ["8B", "p16", 30]]`,
		pythonIn(t, "-c", "import gpu_ours, json, sys; print(json.dumps([[*k, v] for k, v in gpu_ours.figures(sys.argv[1]).items()]))", figures))
	out = pythonIn(t, "bench_gpu_llamacpp.py", "--program", filepath.Join(dir, "nothing"))
	assert.Contains(t, out, "| not run: there is no out/llama-cuda/llama-peer (scripts/fetch-llama-cuda.sh makes it) |")
}

// A model file in llama.cpp's mix is recorded, optimized and measured, and its figures are those that llama.cpp's stand beside.
func TestMix(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mlxc":      "#!/bin/sh\ntest -f model.gguf\n",
		"mlxreplay": "#!/bin/sh\ntest \"$2\" = model.mlxg || exit 3\necho '{\"decode_tokens_per_second\": {\"median\": 100, \"min\": 90, \"max\": 110}, \"prompt_tokens_per_second\": {\"median\": 1000, \"min\": 1000, \"max\": 1000}}'\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	figures := filepath.Join(dir, "mix.json")
	out := pythonIn(t, "bench_gpu_mix.py", "--tiny", "--programs", dir, "--out", figures)
	assert.Contains(t, out, "| 4 tokens from position 8 | 100 [90–110] | 10000.0 |")
	assert.JSONEq(t, `[["8B", "n4@0", 40000], ["8B", "p8", 8000], ["8B", "n4@8", 40000], ["8B", "p16", 16000]]`,
		pythonIn(t, "-c", "import gpu_ours, json, sys; print(json.dumps([[*k, v] for k, v in gpu_ours.figures(sys.argv[1]).items()]))", figures))
}
