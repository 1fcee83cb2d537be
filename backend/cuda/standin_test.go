//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testkit/fakecuda"
)

// serve has what stands in for a GPU answer until the test ends.
func serve(t testing.TB, o fakecuda.Options) *fakecuda.GPU {
	t.Helper()
	if shared == nil {
		var err error
		shared, err = fakecuda.SoftMetal()
		require.NoError(t, err)
	}
	o.Device = shared
	return fakecuda.Serve(t, o)
}

// quit takes the stand-in away before the test ends.
func quit(t testing.TB, x *fakecuda.GPU) {
	t.Helper()
	x.Close()
	require.Empty(t, x.Failures())
}

// images are those that the stand-in runs.
func images(_ context.Context, in air.Input, form air.Launch) ([]byte, error) {
	return fakecuda.Image(in, form)
}

// standIn opens the stand-in.
func standIn(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	if !o.HasImages() {
		o = o.WithImages(images)
	}
	d, err := cuda.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() }) // of a test that fails before it closes the device
	return d
}

// TestStandIn: the suite passes, through the calls that a GPU's driver would get. The kernels are those
// that the tests of softmetal run.
func TestStandIn(t *testing.T) {
	for name, o := range map[string]cuda.Options{"graph": {}, "full": {Full: true}, "chain": {Plan: cuda.Chain}, "stream": {Plan: cuda.Stream}} {
		t.Run(name, func(t *testing.T) {
			serve(t, fakecuda.Options{})
			conform(t, o)
		})
	}
}

// conform runs the suite on a device.
func conform(t *testing.T, o cuda.Options) {
	conformance.Run(t, func() backend.Device { return standIn(t, o) }, conformance.Options{
		BorrowedKernels: true,
		Other:           func() backend.Device { return cpu.New(1) },
	})
}

// TestAnyOrder: what is ordered is enough, in whatever order a GPU runs the rest, and late.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			serve(t, fakecuda.Options{Seed: seed + 1, Late: 300 * time.Microsecond})
			conform(t, cuda.Options{Full: seed == 2})
		})
	}
}
