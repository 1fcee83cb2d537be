package objc_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testing/store"
)

// TestMain lets the tests share the compiled stand-in for Metal with other packages, in the tree's folder for
// build results, since a machine that runs tests may have no home folder.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}
