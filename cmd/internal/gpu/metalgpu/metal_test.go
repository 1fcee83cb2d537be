//go:build (darwin || linux) && (amd64 || arm64)

package metalgpu

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
)

func TestPlans(t *testing.T) {
	for i, name := range gpu.Plans {
		assert.Equal(t, metal.Plan(i).String(), name)
	}
	assert.Equal(t, "auto", metal.Auto.String())
	assert.Len(t, gpu.Plans, int(metal.Auto)+1)
}
