package textgen_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testing/store"
)

// TestMain lets the tests share a cache of compiled kernels with other packages, in the tree's folder for
// build results.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}
