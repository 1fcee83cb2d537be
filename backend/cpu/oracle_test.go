package cpu

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/msl"
)

// TestOracle compares every kernel, with every implementation of package simd, with results that NumPy computed in
// float64, and some also with MLX's results. A fused kernel may have no such data: another test compares it with
// the kernels that it replaces, bit by bit.
func TestOracle(t *testing.T) {
	forEachImpl(t, func(t *testing.T) {
		dev := New(1) // one worker for all, whose caches must not affect results
		counts := conformance.Goldens(t, dev, os.DirFS("../../testdata/kernels"))
		assert.NoError(t, dev.Close())
		for _, n := range Names() {
			if ofParts(n) {
				assert.Zero(t, counts[n], "%s has a golden: take it off the list of fused kernels", n)
				continue
			}
			d := msl.Declarations(n)[0]
			assert.NotZero(t, counts[n], "%s:%d: testdata/kernels has no golden of %s that its declaration describes: write one (docs/kernels.md, \"Goldens\")", d.File, d.Line, n)
		}
	})
}

func forEachImpl(t *testing.T, f func(t *testing.T)) {
	for _, impl := range simd.Available() {
		t.Run(string(impl), func(t *testing.T) {
			previous, err := simd.Use(impl)
			require.NoError(t, err)
			defer simd.Use(previous)
			f(t)
		})
	}
}
