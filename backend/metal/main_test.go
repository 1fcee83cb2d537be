//go:build linux

package metal_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testkit/store"
)

// TestMain has the tests share compiled kernels with those of software Metal, in the tree's folder for
// what is made.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}
