//go:build unix

package softmetal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/softmetal"
)

// Nothing is found in the kernels of our library.
func TestCheckedConformance(t *testing.T) {
	d, err := softmetal.New(context.Background(), softmetal.Options{Workers: 1, Check: true})
	require.NoError(t, err)
	conformance.Run(t, func() backend.Device { return d }, conformance.Options{Cases: 40})
	seen := map[string]bool{}
	for _, o := range d.Observed() {
		for _, f := range o.Findings {
			// Random arguments overflow, and indices that lead nowhere give NaNs, by declaration.
			if f.Kind == softmetal.NonFinite {
				continue
			}
			if id := f.Kernel + f.Kind.String() + f.Argument; !seen[id] {
				seen[id] = true
				t.Errorf("%s: %v: %v", f.Kernel, f.Kind, &f)
			}
		}
	}
}
