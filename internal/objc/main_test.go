package objc_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain has the tests share the stand-in for Metal with other packages', in the tree's folder for what
// is made: a machine that tests may have no home.
func TestMain(m *testing.M) {
	if dir, err := filepath.Abs("../../out/test-cache"); err == nil {
		os.Setenv("XDG_CACHE_HOME", dir)
	}
	os.Exit(m.Run())
}
