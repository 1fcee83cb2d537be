//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testkit/store"
)

// shared is the software Metal of all tests, which need not start one each.
var shared *softmetal.Device

// TestMain gives the tests a cache of their own, in the tree's folder for what is made.
func TestMain(m *testing.M) {
	store.Use()
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}
