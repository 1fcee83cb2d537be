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
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// serve lets the stand-in for Metal answer messages, with a GPU of these options, until the test ends.
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
	t.Cleanup(func() { _ = d.Close() }) // if the test fails before it closes the device
	return d
}

// TestConformance: the conformance suite passes on the stand-in, which gets the messages that a Mac would get.
// Kernels are left out: softmetal's tests run the same ones.
func TestConformance(t *testing.T) {
	serve(t, fakemetal.Options{})
	conform(t, metal.Options{})
}

// conform runs the conformance suite on devices with these options.
func conform(t *testing.T, o metal.Options) {
	conformance.Run(t, func() backend.Device { return open(t, o) }, conformance.Options{
		BorrowedKernels: true,
		Other:           func() backend.Device { return cpu.New(1) },
	})
}

// TestAnyOrder: the suite passes in any order of the GPU that the messages allow, and if work ends late.
func TestAnyOrder(t *testing.T) {
	sample.Long(t)
	seeds := []uint64{uint64(sample.Run()) + 1}
	if sample.Whole() {
		seeds = []uint64{1, 2, 3, 4}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			serve(t, fakemetal.Options{Seed: seed, Late: 3 * time.Millisecond})
			conform(t, metal.Options{})
		})
	}
}

// keeps is the profile of a GPU on which fences and barriers in indirect commands have been seen to work.
var keeps = &cost.Model{Litmus: cost.Litmus{Fences: true, IndirectBarriers: true}}

// TestOptions: the suite passes with options under which the device sends other messages. A run takes one in four.
func TestOptions(t *testing.T) {
	sample.Seldom(t)
	for i, x := range []struct {
		name    string
		options metal.Options
	}{
		{"parallel, fences, private", metal.Options{Plan: metal.Parallel, Encoders: 3, Fences: true, Measured: keeps, Private: true}},
		{"serial, unretained, groups", metal.Options{Plan: metal.Serial, Unretained: true, Groups: true}},
		{"indirect, private", metal.Options{Plan: metal.Indirect, Private: true}},
		{"indirect barriers, measured", metal.Options{Plan: metal.IndirectBarriers, Fences: true, Measured: keeps}},
	} {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			serve(t, fakemetal.Options{Seed: 5, SampleDispatches: x.options.Fences, IndirectBarriers: true})
			conform(t, x.options)
		})
	}
}
