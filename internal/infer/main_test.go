//go:build unix

package infer

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testing/store"
)

// TestMain makes the tests share compiled kernels with those of software Metal, in the tree's folder for what is
// built.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}
