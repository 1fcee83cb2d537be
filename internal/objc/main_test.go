package objc_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testkit/store"
)

// TestMain has the tests share the stand-in for Metal with other packages', in the tree's folder for what
// is made: a machine that tests may have no home.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}
