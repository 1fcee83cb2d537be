//go:build unix

package softmetal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// TestOldest repeats tests with the oldest supported clang: of control flow, of functions by which the threads of a
// simdgroup exchange values, of matrices, atomic functions, division, and positions of threads.
func TestOldest(t *testing.T) {
	sample.Long(t)
	c, err := clang.Oldest(t.Context())
	require.NoError(t, err)
	t.Setenv(clang.Env, c.Path)
	for _, x := range sample.Turns(t, t.Name(), []struct {
		name string
		test func(*testing.T)
	}{
		{"control", TestControl}, {"exchange", TestExchangeVectors}, {"matrix", TestMatrix}, {"atomics", TestAtomics},
		{"division", TestDivision}, {"places", TestPlaces},
	}) {
		t.Run(x.name, x.test)
	}
}
