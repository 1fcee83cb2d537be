package kernelcases_test

import (
	"context"
	"os"
	"testing"

	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// TestMain gives the tests the cache that all share. Tests in folders of their own do not find the clang of the tree.
func TestMain(m *testing.M) {
	store.Use()
	if c, err := clang.Find(context.Background()); err == nil {
		os.Setenv(clang.Env, c.Path)
	}
	os.Exit(m.Run())
}
