package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
)

// TestLedger: buffers and scratch count together against the limit and are given back when they are closed. Asking for
// more than is left is an error that says how much that is.
func TestLedger(t *testing.T) {
	d := NewLimited(1, 1<<20)
	defer d.Close()
	a, err := d.Alloc(backend.BufferSpec{Size: 700_000})
	require.NoError(t, err)
	assert.Len(t, a.Bytes(), 700_000)
	_, err = d.Alloc(backend.BufferSpec{Size: 400_000})
	assert.ErrorContains(t, err, "cannot allocate 400000 bytes beside 700000 in use: the device may take 1048576")

	w := &d.pool.scratch[0]
	assert.Len(t, w.Scratch(50_000), 50_000) // growing takes half as much again
	assert.EqualValues(t, 700_000+4*75_000, d.ledger.used.Load())
	assert.PanicsWithError(t, "scratch: cpu: cannot allocate 600000 bytes beside 700000 in use: the device may take 1048576 (--memory sets how much)", func() { w.Scratch(100_000) })
	assert.EqualValues(t, 700_000, d.ledger.used.Load(), "what was there is gone")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	assert.Zero(t, d.ledger.used.Load())
	assert.Len(t, w.Scratch(100_000), 100_000)

	_, err = d.Alloc(backend.BufferSpec{Size: -1})
	assert.Error(t, err)
	_, err = d.Alloc(backend.BufferSpec{Size: math.MaxInt64})
	assert.Error(t, err)

	// Asking for more memory than the address space has is an error and does not end the process.
	huge := NewLimited(1, math.MaxInt64)
	defer huge.Close()
	_, err = huge.Alloc(backend.BufferSpec{Size: 1 << 55})
	assert.ErrorContains(t, err, "the system does not give 36028797018963968 bytes")
	assert.Zero(t, huge.ledger.used.Load())
	for _, size := range []int64{0, 1, 63, fromSystem - 1, fromSystem, fromSystem + 1} {
		b, err := huge.Alloc(backend.BufferSpec{Size: size})
		require.NoError(t, err)
		assert.Len(t, b.Bytes(), int(size))
		assert.Zero(t, addressOf(b.Bytes())%bufferAlign, "%d bytes", size)
		for _, x := range b.Bytes() {
			require.Zero(t, x)
		}
		require.NoError(t, b.Close())
	}
}
