package trace_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/testing/traced"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// TestMain lets the tests use a cache in the tree's folder for build results.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}

const (
	ggmlFolder = "../../testdata/ggmlhost"
	ggmlLog    = "../ggmlhost/decode.mlxtrace.gz" // of testdata/mlxhost
)

// logFile writes a log to a file of the test.
func logFile(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.mlxtrace")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// The stored log of llama.cpp on ggml's own Metal backend, a prompt and three steps of decoding of a model of two layers, becomes two
// graphs that compute llama.cpp's own logits, bit for bit.
func TestGGML(t *testing.T) {
	sample.Seldom(t)
	data, err := os.ReadFile(filepath.Join(ggmlFolder, "decode.out"))
	require.NoError(t, err)
	want := traced.Results(t, data)
	r := traced.Import(t, logFile(t, unpacked(t, ggmlLog)), trace.Options{})
	require.Len(t, r.Runs, len(want))
	require.Len(t, r.Module.Graphs, 2, "the steps of decoding are runs of one graph") // although structs of arguments have padding that was never written
	for i, r := range r.Runs {
		require.Equal(t, map[bool]string{true: "prompt", false: "decode"}[i == 0], r.Graph)
		require.Empty(t, r.Params, "positions are in memory that the host writes")
		require.Equal(t, i > 0, len(r.Writes) > 0)
	}
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	same := func(m *ir.Module, runs []trace.Run) {
		t.Helper()
		for i, left := range traced.Replay(t, d, m, runs) {
			require.Len(t, left, 1, "the logits")
			require.Equal(t, want[i].Data, left[0].Data, "run %d, token %s", i, want[i].Name)
		}
	}
	same(r.Module, r.Runs)

	// With what the kernels were observed to touch, what layers hand on and what the host writes are memories of their own: both graphs can
	// be optimized, proved.
	text, err := os.ReadFile(filepath.Join(ggmlFolder, "decode.effects"))
	require.NoError(t, err)
	require.NoError(t, msl.Register("ggml.effects", string(text)))
	r = traced.Import(t, logFile(t, unpacked(t, ggmlLog)), trace.Options{Values: true})
	require.Len(t, r.Module.Graphs, 2)
	count := map[ir.MemKind]int{}
	for i := range r.Module.Graph("decode").Memories {
		m := &r.Module.Graph("decode").Memories[i]
		count[m.Kind]++
		require.True(t, m.Kind == ir.Weight || m.Kind == ir.State || m.Size <= 4<<10 || m.Kind == ir.Scratch && m.Size <= 128<<10, "%s has %d bytes", m.Name, m.Size)
	}
	require.Equal(t, map[ir.MemKind]int{ir.Weight: 2, ir.State: 1, ir.Input: 5, ir.Output: 1, ir.Scratch: 34}, count) // the only state is the cache
	same(r.Module, r.Runs)
	optimized := &ir.Module{}
	for i, g := range r.Module.Graphs {
		x, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: passes.DefaultPipeline(), Proof: prove.Options{Sources: []string{"ggml.effects"}}})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, x.Proof.Verdict, "%v", x.Proof)
		require.Equal(t, 40, x.After.Dispatches)
		require.Equal(t, 31, x.Before.Barriers)
		require.Equal(t, []int{30, 29}[i], x.After.Barriers)
		require.Equal(t, []int{31, 30}[i], x.After.Epochs)
		optimized.Graphs = append(optimized.Graphs, x.Optimized)
	}
	same(optimized, r.Runs)
	checked, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1, Check: true})
	require.NoError(t, err)
	defer checked.Close()
	traced.Replay(t, checked, optimized, r.Runs[:2])
	for _, o := range checked.Observed() {
		for i := range o.Findings { // nothing is touched beyond the memories, and nothing read that is not written
			require.Contains(t, []softmetal.FindingKind{softmetal.ReadAfterWrite, softmetal.WriteAfterRead}, o.Findings[i].Kind, "%v", o.Findings[i].String())
		}
	}
}

// A barrier that is missing in ggml's source is found by its capture alone: the checker runs the imported graph.
func TestPlantedRace(t *testing.T) {
	sample.Seldom(t)
	data := unpacked(t, ggmlLog)
	out := bytes.Clone(data[:16])
	planted := 0
	records(data, func(kind uint32, p []byte, _ int) {
		if kind == library {
			const barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
			fields := texts(p, 1)
			source := string(fields[2])
			if _, rest, ok := strings.Cut(source, "helper_mv_reduce_and_write("); ok {
				_, rest, _ = strings.Cut(rest, barrier)
				_, rest, _ = strings.Cut(rest, barrier) // behind the second one
				fields[2] = []byte(strings.TrimSuffix(source, barrier+rest) + rest)
				planted++
			}
			p = bytes.Clone(p[:8])
			for _, f := range fields {
				p = append(binary.LittleEndian.AppendUint32(p, uint32(len(f))), f...)
			}
		}
		out = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out, uint32(len(p))), kind)
		out = append(append(out, p...), make([]byte, -len(p)&7)...)
	})
	require.Equal(t, 1, planted)
	r := traced.Import(t, logFile(t, out), trace.Options{Values: true})
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1, Check: true})
	require.NoError(t, err)
	defer d.Close()
	traced.Replay(t, d, r.Module, r.Runs[:2])
	races := 0
	for _, o := range d.Observed() {
		for i := range o.Findings {
			if f := &o.Findings[i]; f.Kind == softmetal.ReadAfterWrite && strings.Contains(f.String(), "line 4362") {
				require.Equal(t, "threadgroup argument 0 (shmem)", f.Argument) // which the kernel addresses through an array of pointers
				races++
			}
		}
	}
	require.Positive(t, races)
}
