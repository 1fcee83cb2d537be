//go:build linux

package fakemetal_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// TestAdd: a kernel computes the right sums in a serial and a concurrent encoder, dispatched by threads, by
// threadgroups and by counts in memory.
func TestAdd(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		p := e.pipeline("add")
		assert.EqualValues(t, 1024, objc.MaxThreads.Send(p))
		assert.EqualValues(t, 32, objc.ThreadExecutionWidth.Send(p))
		assert.Zero(t, objc.StaticThreadgroup.Send(p))
		const n = 64
		var a, b [n]uint32
		for i := range a {
			a[i], b[i] = math.Float32bits(float32(i)), math.Float32bits(float32(2*i))
		}
		x, y := e.buffer(true, a[:]...), e.buffer(true, b[:]...)
		for kind := range 6 {
			z := e.buffer(true, make([]uint32, n)...)
			counts := e.buffer(true, n/16, 1, 1)
			c := e.commandBuffer()
			k := e.encoder(c, kind%2 == 1)
			objc.SetPipeline.Send(k, uintptr(p))
			objc.SetBuffer.Send(k, uintptr(x), 0, 0)
			objc.SetBuffer.Send(k, uintptr(y), 0, 1)
			objc.SetBuffer.Send(k, uintptr(z), 0, 2)
			setBytes(k, 3, float32(0.5))
			switch kind / 2 {
			case 0:
				threads(k, size{n, 1, 1}, size{24, 1, 1})
			case 1:
				groups(k, size{n / 16, 1, 1}, size{16, 1, 1})
			case 2:
				group := size{16, 1, 1}
				at(&group, func(g uintptr) { objc.DispatchIndirect.Send(k, uintptr(counts), 0, g) })
			}
			objc.EndEncoding.Send(k)
			require.NoError(t, finish(c))
			for i, w := range e.words(z) {
				require.Equal(t, float32(2*i), math.Float32frombits(w), "%d: %d", kind, i)
			}
			assert.Less(t, objc.GPUStartTime.SendDouble(c), objc.GPUEndTime.SendDouble(c))
		}
	})
}
