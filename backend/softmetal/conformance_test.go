package softmetal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// The conformance suite passes on our own library's kernels, compiled from source. Tests of the CPU device compare
// each declaration with another implementation, so a few cases of each kernel suffice here to find miscompilation.
func TestConformance(t *testing.T) {
	sample.Long(t)
	o := conformance.Options{Cases: 4, Choose: sample.Choose(t, "plain"), Other: func() backend.Device { return cpu.New(1) }}
	if !sample.Whole() {
		o.Cases, o.Values, o.Witnesses, o.Turn = 4, 2, 2, sample.Turn()
	}
	conformance.Run(t, func() backend.Device {
		d, err := softmetal.New(context.Background(), softmetal.Options{Workers: 2})
		require.NoError(t, err)
		return d
	}, o)
}
