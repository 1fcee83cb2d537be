//go:build linux

package fakemetal_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// BenchmarkDispatch measures the time of a dispatch, from its messages to its completion.
func BenchmarkDispatch(b *testing.B) {
	for _, seed := range []uint64{0, 2} {
		run(b, fakemetal.Options{Seed: seed}, func(e *engine) {
			p, x := e.pipeline("advance"), e.buffer(true, 1, 2, 3, 4)
			const n = 1000
			b.Run(map[uint64]string{0: "list", 2: "lazy"}[seed], func(b *testing.B) {
				for b.Loop() {
					objc.Pool(func() {
						c := e.commandBuffer()
						k := e.encoder(c, true)
						objc.SetPipeline.Send(k, uintptr(p))
						for range n {
							objc.SetBuffer.Send(k, uintptr(x), 0, 0)
							setBytes(k, 1, doubles)
							threads(k, size{4, 1, 1}, size{4, 1, 1})
						}
						objc.EndEncoding.Send(k)
						require.NoError(b, finish(c))
					})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/dispatch")
			})
		})
	}
}

// BenchmarkCaptured measures the host's time of a dispatch without the library that captures, and with it: its messages,
// without what the device does. Contents do not change. The median of many command buffers leaves out those during which something else ran.
func BenchmarkCaptured(b *testing.B) {
	start, stop := shim(b)
	run(b, fakemetal.Options{}, func(e *engine) {
		const n = 200
		measure := func(b *testing.B, p, x objc.ID) {
			var took []time.Duration
			for b.Loop() {
				objc.Pool(func() {
					begin := time.Now()
					c := e.commandBuffer()
					k := e.encoder(c, true)
					for range n {
						objc.SetPipeline.Send(k, uintptr(p))
						objc.SetBuffer.Send(k, uintptr(x), 0, 0)
						setBytes(k, 1, doubles)
						threads(k, size{4, 1, 1}, size{4, 1, 1})
					}
					objc.EndEncoding.Send(k)
					took = append(took, time.Since(begin))
					require.NoError(b, finish(c))
				})
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/n, "ns/dispatch")
			b.ReportMetric(float64(took[0].Nanoseconds())/n, "least-ns/dispatch")
		}
		p, x := e.pipeline("advance"), e.buffer(true, 1, 2, 3, 4)
		b.Run("alone", func(b *testing.B) { measure(b, p, x) })
		log := filepath.Join(b.TempDir(), "log.mlxtrace")
		require.Zero(b, start(log, uintptr(e.device)))
		e.queue, e.library = 0, 0 // what was made before is not captured
		p, x = e.pipeline("advance"), e.buffer(true, 1, 2, 3, 4)
		b.Run("captured", func(b *testing.B) { measure(b, p, x) })
		require.Zero(b, stop())
		st, err := os.Stat(log)
		require.NoError(b, err)
		require.Greater(b, st.Size(), int64(100*n), "the dispatches are in the log")
		b.Run("stopped", func(b *testing.B) { measure(b, p, x) })
	})
}
