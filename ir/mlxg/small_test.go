package mlxg_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// smallModule has every kind of value that the format knows, in 64 bytes of
// memory each: small enough to damage in every place.
func smallModule(t testing.TB) *ir.Module {
	t.Helper()
	m, err := mlxg.SmallModule()
	require.NoError(t, err)
	return m
}
