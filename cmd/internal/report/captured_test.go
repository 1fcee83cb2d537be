package report_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/report"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/testing/traced"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/prove"
)

// TestMain lets the tests use a cache in the tree's folder for build results.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}

// What docs/report.md says of a decode that ggml's own host code sent, held by hand against the commands of the capture.
func TestCaptured(t *testing.T) {
	sample.Seldom(t)
	const folder = "../../../testdata/ggmlhost"
	packed, err := os.Open(filepath.Join(folder, "decode.mlxtrace.gz"))
	require.NoError(t, err)
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "log.mlxtrace")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	effects, err := os.ReadFile(filepath.Join(folder, "decode.effects"))
	require.NoError(t, err)
	require.NoError(t, msl.Register("ggml.effects", string(effects)))
	m := traced.Import(t, path, trace.Options{Values: true}).Module
	r, err := report.Of(t.Context(), m.Graph("decode"), report.Options{Proof: prove.Options{Sources: []string{"ggml.effects"}}})
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict)
	assert.Zero(t, r.Unknown)
	finding := func(kind report.Kind, what string) *report.Finding {
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Kind == kind && strings.Contains(f.What, what) {
				return f
			}
		}
		require.Fail(t, "no finding", "%s %s", kind, what)
		return nil
	}
	if f := finding(report.Barrier, "no conflict asks"); assert.Equal(t, 2, f.Count) { // of each layer one: both rotations
		assert.Equal(t, "kernel_rope_norm_f32", f.Examples[0][0].Op)
		assert.Equal(t, "kernel_rope_norm_f32", f.Examples[0][1].Op)
	}
	assert.Equal(t, 4, finding(report.Lanes, "kernel_bin_fuse_f32_f32_f32_4 leaves 97 %").Count) // a thread a threadgroup
	assert.Equal(t, 4, finding(report.Cores, "kernel_set_rows_f32_i64_f16 has 1 threadgroup").Count)
	order := finding(report.Order, "schedule")
	assert.InDelta(t, r.Now-r.Optimized, order.Saves, 0.1)
	assert.Less(t, finding(report.Cores, "kernel_set_rows").Saves, order.Saves, "a row is written, not the whole cache")
}
