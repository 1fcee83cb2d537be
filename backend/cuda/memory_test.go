//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// TestPool: memory of closed buffers serves others of the same length, up to a bound, and is freed when other
// buffers need it.
func TestPool(t *testing.T) {
	x := serve(t, fakecuda.Options{Memory: 1 << 20})
	d := standIn(t, cuda.Options{Pool: 512 << 10})
	take := func(n int64) backend.Buffer {
		b, err := d.Alloc(backend.BufferSpec{Size: n})
		require.NoError(t, err)
		return b
	}
	calls := func(name string, f func()) int {
		before := x.Count(name)
		f()
		return x.Count(name) - before
	}
	const some = 200 << 10
	assert.Equal(t, 1, calls("cuMemAlloc_v2", func() {
		for range 5 {
			require.NoError(t, take(some).Close())
		}
		require.NoError(t, take(some-100).Close(), "of the same granules")
	}))
	assert.EqualValues(t, some, d.Peak())
	assert.Equal(t, 1, calls("cuMemFree_v2", func() {
		a, b, c := take(some), take(some), take(some)
		for _, x := range []backend.Buffer{a, b, c} { // the third is beyond the bound
			require.NoError(t, x.Close())
		}
	}))
	assert.EqualValues(t, 3*some, d.Peak())
	// What is kept is freed for a larger buffer, and is no reason to refuse it.
	assert.Equal(t, 3, calls("cuMemFree_v2", func() { require.NoError(t, take(900<<10).Close()) }), "and itself it is not kept")
	assert.Equal(t, 1, calls("cuMemAlloc_v2", func() { require.NoError(t, take(some).Close()) }))
	assert.EqualValues(t, 900<<10, d.Peak())
	assert.EqualValues(t, 900<<10, d.Held(), "more was never had")

	// The driver may have less than is reckoned with here: then what is kept is freed, and the error has the
	// figures.
	other := standIn(t, cuda.Options{})
	taken, err := other.Alloc(backend.BufferSpec{Size: 700 << 10})
	require.NoError(t, err)
	require.NoError(t, take(200<<10).Close())
	require.NoError(t, take(300<<10).Close())
	_, err = d.Alloc(backend.BufferSpec{Size: 400 << 10})
	require.ErrorContains(t, err, "cuda: a buffer of 409600 bytes: of 1048576 bytes that the GPU has 331776 are free, and 0 are in use here: cuMemAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY): use a smaller graph")
	require.NoError(t, taken.Close())
	require.NoError(t, take(400<<10).Close())
	require.NoError(t, other.Close())
	require.NoError(t, d.Close())
}

// TestTooLarge: a graph that does not fit what is free is refused before anything of it is allocated.
func TestTooLarge(t *testing.T) {
	x := serve(t, fakecuda.Options{Memory: 1 << 20})
	d, other := standIn(t, cuda.Options{}), standIn(t, cuda.Options{})
	taken, err := other.Alloc(backend.BufferSpec{Size: 700 << 10})
	require.NoError(t, err)
	s := record.New("large")
	a := s.Input("a", ir.F32, 50<<10)
	s.Add(a, a, record.Into(s.Output("b", ir.F32, 50<<10)))
	g, err := s.Graph()
	require.NoError(t, err)
	before := x.Count("cuMemAlloc_v2")
	in, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(t, err)
	_, err = in.Graph(t.Context(), "")
	require.ErrorContains(t, err, "its memories need 409600 bytes")
	require.ErrorContains(t, err, "the device cuda may take 331776 (--memory sets how much)")
	assert.Equal(t, before, x.Count("cuMemAlloc_v2"))
	require.NoError(t, taken.Close())
	require.NoError(t, in.Close())
	require.NoError(t, other.Close())
	require.NoError(t, d.Close())
}
