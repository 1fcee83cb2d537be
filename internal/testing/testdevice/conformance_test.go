package testdevice_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
)

// owned is a test device that closes the device on which it executes.
type owned struct {
	*testdevice.Device
	inner *cpu.Device
}

func (d owned) Close() error { return d.inner.Close() }

// TestConformance: the suite passes on devices that are very unlike the CPU: with memory that the
// host cannot see, with operations that end late, with small buffers, with host memory mapped in
// pages or not at all, with an encoder for each replay, and with passes that rewrite graphs for
// the device, also with edges. A run takes one of them.
func TestConformance(t *testing.T) {
	sample.Long(t)
	devices := map[string]testdevice.Options{
		"discrete": {Private: true, Late: 100 * time.Microsecond, Info: func(i *backend.Info) {
			i.PageSize, i.MaxBuffer, i.MaxOffset = 0, 1<<32, 1<<32-1
			i.Lower = "split,constants"
		}},
		"shared": {Late: 100 * time.Microsecond, Reverse: true, Info: func(i *backend.Info) { i.PageSize, i.MaxBuffer, i.Apart = 16<<10, 1<<32, true }},
		"edges":  {Reverse: true, Info: func(i *backend.Info) { i.Lower, i.Apart = "annotate,edges", true }},
	}
	for _, name := range sample.Turns(t, t.Name(), slices.Sorted(maps.Keys(devices))) {
		o := devices[name]
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func() backend.Device {
				c := cpu.New(2)
				d := testdevice.New(c, o)
				t.Cleanup(func() {
					if leaks := d.Leaks(); len(leaks) > 0 {
						t.Error(leaks)
					}
				})
				return owned{d, c}
			}, conformance.Options{BorrowedKernels: true, Other: func() backend.Device { return cpu.New(1) }})
		})
	}
}
