//go:build linux

package fakemetal_test

import (
	"testing"

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
