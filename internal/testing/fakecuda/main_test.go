//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/store"
)

// shared is a software Metal for all tests, as to open one for each takes long.
var shared *softmetal.Device

// TestMain gives the tests a cache of their own, in the source tree's folder of build results.
func TestMain(m *testing.M) {
	store.Use()
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}
