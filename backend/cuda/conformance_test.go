//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestConformance runs on a machine with a GPU: go test -tags gpu ./backend/cuda. A driver compiles one text at a time, so
// several processes take a part of the kernels each (MLXC_PART).
func TestConformance(t *testing.T) {
	parted := func(members []string, _ func(string) string) []string { return sample.Parted(members) }
	for name, o := range map[string]cuda.Options{"graph": {Plan: cuda.Edges}, "full": {Plan: cuda.Edges, Full: true}, "chain": {Plan: cuda.Chain}, "stream": {Plan: cuda.Stream},
		// The code of package ptxmatrix for GPUs of compute capability 8.0 and 8.9, which later ones run too.
		"ampere": {Plan: cuda.Stream, Capability: "8.0"}, "ada": {Plan: cuda.Stream, Capability: "8.9"},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func() backend.Device {
				d, err := cuda.Open(context.Background(), o)
				require.NoError(t, err)
				return d
			}, conformance.Options{Choose: parted, Regular: 10, Other: func() backend.Device { return cpu.New(1) }})
		})
	}
}
