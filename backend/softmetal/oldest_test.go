//go:build unix

package softmetal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testkit/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// TestOldest runs tests again with the oldest clang that will do: what the threads of a
// simdgroup exchange, control flow, matrices, atomic functions, and what is said of places in
// the source.
func TestOldest(t *testing.T) {
	sample.Long(t)
	c, err := clang.Oldest(t.Context())
	require.NoError(t, err)
	t.Setenv(clang.Env, c.Path)
	t.Run("exchange", TestExchangeVectors)
	t.Run("matrix", TestMatrix)
	t.Run("atomics", TestAtomics)
	t.Run("control", TestControl)
	t.Run("division", TestDivision)
	t.Run("places", TestPlaces)
}
