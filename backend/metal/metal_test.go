//go:build linux

package metal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testkit/fakemetal"
)

// serve has what stands in for Metal answer until the test ends.
func serve(t testing.TB, o fakemetal.Options) *fakemetal.Metal {
	t.Helper()
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	return l.Serve(t, o)
}

func open(t testing.TB, o metal.Options) *metal.Device {
	t.Helper()
	d, err := metal.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() }) // of a test that fails before it closes the device
	return d
}

// TestConformance: the suite passes, through the messages that a Mac would get. The kernels are those
// that the tests of softmetal run.
func TestConformance(t *testing.T) {
	serve(t, fakemetal.Options{})
	conform(t, metal.Options{})
}

// conform runs the suite on a device.
func conform(t *testing.T, o metal.Options) {
	conformance.Run(t, func() backend.Device { return open(t, o) }, conformance.Options{
		BorrowedKernels: true,
		Other:           func() backend.Device { return cpu.New(1) },
	})
}

// TestAnyOrder: what the messages order is enough, in whatever order a GPU runs the rest, and late.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			serve(t, fakemetal.Options{Seed: seed + 1, Late: 3 * time.Millisecond})
			conform(t, metal.Options{})
		})
	}
}

// keeps is the profile of a GPU that keeps what Metal does not promise.
var keeps = &cost.Model{Litmus: cost.Litmus{Fences: true, IndirectBarriers: true}}

// TestOptions: devices that send other messages compute the same.
func TestOptions(t *testing.T) {
	for name, o := range map[string]metal.Options{
		"serial, unretained, groups":  {Plan: metal.Serial, Unretained: true, Groups: true},
		"parallel, fences, private":   {Plan: metal.Parallel, Encoders: 3, Fences: true, Measured: keeps, Private: true},
		"indirect, private":           {Plan: metal.Indirect, Private: true},
		"indirect barriers, measured": {Plan: metal.IndirectBarriers, Fences: true, Measured: keeps},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, fakemetal.Options{Seed: 5, SampleDispatches: o.Fences, IndirectBarriers: true})
			conform(t, o)
		})
	}
}
