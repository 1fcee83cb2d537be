package textgen_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain has the tests share compiled kernels with those of other packages, in the tree's folder for
// what is made.
func TestMain(m *testing.M) {
	if dir, err := filepath.Abs("../../../out/test-cache"); err == nil {
		os.Setenv("XDG_CACHE_HOME", dir)
	}
	os.Exit(m.Run())
}
