//go:build linux && (amd64 || arm64)

package cudagpu

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
)

// TestPlans: the plans stand in the order of their names, and all of them have one.
func TestPlans(t *testing.T) {
	assert.Len(t, plans, len(gpu.CUDAPlans))
	for i, name := range gpu.CUDAPlans {
		assert.Equal(t, name, plans[i].String())
	}
	assert.Empty(t, cuda.Plan(len(plans)).String(), "a plan that has no flag")
}
