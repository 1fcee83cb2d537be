package mlxg_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// smallModule has every kind of value of the format, and is small enough that tests can
// damage every byte of its file.
func smallModule(t testing.TB) *ir.Module {
	t.Helper()
	m, err := mlxg.SmallModule()
	require.NoError(t, err)
	return m
}
