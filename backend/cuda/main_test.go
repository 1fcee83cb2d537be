//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"os"
	"testing"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/store"
)

// shared is a software Metal for all tests, as to open one for each takes long.
var shared *softmetal.Device

// TestMain has the tests use the cache of compiled kernels that those of software Metal use, in the source tree's
// folder of build results.
func TestMain(m *testing.M) {
	store.Use()
	ptxmatrix.Fewest, ptxmatrix.FewestStages = 0, 1
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}
