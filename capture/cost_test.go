//go:build linux

package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// cost runs testdata/cost.c, and returns for each of its words the nanoseconds of a dispatch: of its messages, and of all.
func cost(t testing.TB, log string) map[string][2]float64 {
	t.Helper()
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	shim, remove, err := Build(func(args ...string) *exec.Cmd { return c.Program(t.Context(), args...) })
	require.NoError(t, err)
	defer remove()
	program := filepath.Join(t.TempDir(), "cost")
	text, err := c.Program(t.Context(), "-O2", "-w", "-rdynamic", "testdata/cost.c", "-o", program).CombinedOutput()
	require.NoError(t, err, "%s", text)
	text, err = exec.CommandContext(t.Context(), program, shim, log).CombinedOutput()
	require.NoError(t, err, "%s", text)
	out := map[string][2]float64{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		require.Len(t, words, 3, line)
		messages, err := strconv.ParseFloat(words[1], 64)
		require.NoError(t, err)
		whole, err := strconv.ParseFloat(words[2], 64)
		require.NoError(t, err)
		out[words[0]] = [2]float64{messages, whole}
	}
	require.Len(t, out, 3)
	return out
}

// What is captured of a dispatch takes less than a microsecond, ten times what it should take, and all dispatches are in the log.
func TestCost(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	took := cost(t, log)
	t.Log(took)
	require.Less(t, took["captured"][0], 1000.0)
	st, err := os.Stat(log)
	require.NoError(t, err)
	require.Greater(t, st.Size(), int64(500*200*(24+40+40+80)), "the messages of 500 command buffers of 200 dispatches")
}

// BenchmarkCapture measures what the library that captures takes of a program's time, for a dispatch of four messages.
func BenchmarkCapture(b *testing.B) {
	took := cost(b, filepath.Join(b.TempDir(), "log"))
	for b.Loop() {
	}
	for name, ns := range took {
		b.ReportMetric(ns[0], name+"-ns/dispatch")
		b.ReportMetric(ns[1], name+"-whole-ns/dispatch")
	}
}
