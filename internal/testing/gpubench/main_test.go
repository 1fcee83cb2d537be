package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
)

// A try on the CPU has every row of the tables, and a profile that can be read.
func TestTiny(t *testing.T) {
	dir := t.TempDir()
	profile := filepath.Join(dir, "p.json")
	var out, errs strings.Builder
	code := run(t.Context(), []string{"--device", "cpu", "--tiny", "--rounds", "1", "--tokens", "4", "--out", dir, "--write-profile", profile}, &out, &errs)
	require.Zero(t, code, "%s%s", &out, &errs)
	assert.NotContains(t, out.String(), "failed")
	for _, row := range []string{
		"a copy by our kernel", "a smallest kernel behind another", "an epoch that forks", "4-bit matrix × vector, K = 512, N = 64", "f16 matrix", "rms norm",
		"gradients of a layer norm", "| recorded, on a stream |", "| passes to fuse |", "| all passes and edges, graph of edges |", "| all passes, without fused kernels |",
		"| and affine_", "What is chosen (passes to ", "4 tokens from position 0", "of it reached", "a prompt of 8 tokens |", "a prompt of 8 tokens, without tensor cores |", "a prompt of 8 tokens, by code for any GPU |", "| sdpa_rows_float_64_64 | 2 |", "| a step of 6 rows |", "| 8B, a step of 8 rows |", "| passes to plan |",
	} {
		assert.Contains(t, out.String(), row)
	}
	m, err := cost.LoadProfile(profile)
	require.NoError(t, err)
	assert.Positive(t, m.Bandwidth)
	assert.Contains(t, m.Kernels, "gemv_float16_float32")
	for _, plan := range []string{"stream", "chain", "chain-waiting", "edges", "edges-waiting"} {
		assert.Positive(t, m.Plans[plan].Launch, plan)
	}
	fused := false // kernels that only the graphs of decode have
	for name := range m.Kernels {
		fused = fused || strings.HasPrefix(name, "affine_qmv_rms")
	}
	assert.True(t, fused, "%v", m.Kernels)
	data, err := os.ReadFile(filepath.Join(dir, "figures.json"))
	require.NoError(t, err)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal(data, &rows))
	assert.Greater(t, len(rows), 40)
	// With all fused kernels, one after another, the form is that of all passes.
	var passes, last any
	for _, r := range rows {
		switch what, _ := r["what"].(string); {
		case r["shape"] != nil: // of another model
		case what == "all passes, graph":
			passes = r["kernels"]
		case strings.HasPrefix(what, "and "):
			last = r["kernels"]
		}
	}
	assert.NotNil(t, passes)
	assert.Equal(t, passes, last)
	// The scripts that compare peers with us find our figures in it.
	assert.Equal(t, "8B n4@0, 8B n4@8, 8B p16, 8B p6, 8B p8, 8B, a cache of f16 n4@0, 8B, a cache of f16 n4@8, 8B, a cache of f16 p8, 8B, a cache of i8 n4@0, 8B, a cache of i8 n4@8, 8B, a cache of i8 p8, 8B, weights of f16 n4@0, 8B, weights of f16 n4@8, 8B, weights of f16 p16, 8B, weights of f16 p6, 8B, weights of f16 p8, SmolLM2-135M n4@0, SmolLM2-135M n4@8, SmolLM2-135M p8\n",
		pythonIn(t, "-c", `import gpu_ours, sys; print(", ".join(sorted(" ".join(k) for k in gpu_ours.figures(sys.argv[1]))))`, filepath.Join(dir, "figures.json")))
}

// A figure that cannot be had is a row that says so, and an exit code.
func TestFailures(t *testing.T) {
	var out, errs strings.Builder
	assert.Equal(t, 2, run(t.Context(), []string{"--parts", "lunch"}, &out, &errs))
	assert.Contains(t, errs.String(), `no part "lunch"`)
	assert.Equal(t, 1, run(t.Context(), []string{"--device", "tpu", "--parts", "kernels"}, &out, &errs))
	assert.Contains(t, out.String(), `failed: there is no device "tpu"`)
	out.Reset()
	assert.Equal(t, 1, run(t.Context(), []string{"--device", "cpu", "--tiny", "--parts", "decode", "--limit", "0s"}, &out, &errs))
	assert.Contains(t, out.String(), "| recorded, on a stream | failed: the time is over |")
}
