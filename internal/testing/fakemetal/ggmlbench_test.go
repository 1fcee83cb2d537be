//go:build linux && amd64

package fakemetal_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// These measure the processor's time of the thread on which llama.cpp decodes a token with the demonstration model and sends it to the stand-in:
// alone, captured, and captured without the contents of buffers. Each needs a process of its own:
//
//	go test ./internal/testing/fakemetal -run - -bench 'GGMLAlone$'
func BenchmarkGGMLAlone(b *testing.B)    { benchmarkGGML(b, false) }
func BenchmarkGGMLCaptured(b *testing.B) { benchmarkGGML(b, true) }
func BenchmarkGGMLWithoutContents(b *testing.B) {
	benchmarkGGML(b, true, "-DMLXCAPTURE_WITHOUT_CONTENTS")
}

func benchmarkGGML(b *testing.B, captured bool, macros ...string) {
	if b.N > 1 {
		return
	}
	const model, dispatches, steps = "../../../testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf", 544, 12
	if _, err := os.Stat(model); err != nil {
		b.Skip(err)
	}
	if _, err := os.Stat("../../../out/ggmlhost/ggmlhost.so"); err != nil {
		b.Skip("scripts/ggml-host.sh has not made llama.cpp with ggml's Metal backend")
	}
	if ggmlRan {
		b.Skip("ggml has run in this process")
	}
	ggmlRan = true
	dir := b.TempDir()
	run(b, fakemetal.Options{Anywhere: true, InOrder: true, Patience: time.Minute}, func(e *engine) {
		if captured {
			start, stop := shim(b, macros...)
			require.Zero(b, start(filepath.Join(dir, "log.mlxtrace"), uintptr(e.device)))
			defer func() { require.Zero(b, stop()) }()
		}
		g := openGGML(b)
		prompt := []int32{1, 5, 9, 33}
		require.EqualValues(b, steps, g.llama(model, filepath.Join(dir, "out"), &prompt[0], int32(len(prompt)), steps, 64))
		took := make([]int64, steps)
		took = took[:g.took(&took[0], steps)]
		slices.Sort(took)
		if captured {
			st, err := os.Stat(filepath.Join(dir, "log.mlxtrace"))
			require.NoError(b, err)
			require.Greater(b, st.Size(), int64(100*dispatches*steps), "the dispatches are in the log")
		}
		b.ReportMetric(float64(took[len(took)/2])/dispatches, "ns/dispatch")
		b.ReportMetric(float64(took[0])/dispatches, "least-ns/dispatch")
		g.end()
	})
}
