package textgen_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testkit/store"
)

// TestMain has the tests share compiled kernels with those of other packages, in the tree's folder for
// what is made.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}
