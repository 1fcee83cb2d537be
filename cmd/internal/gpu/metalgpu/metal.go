//go:build (darwin || linux) && (amd64 || arm64)

package metalgpu

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/metal/litmus"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
)

func init() { gpu.Metal = driver{} }

type driver struct{}

// instead is what to do where there is no GPU.
const instead = "use --device cpu, or --device softmetal for the Metal kernels themselves"

// List implements [gpu.Driver].
func (driver) List() ([]gpu.Description, error) {
	all, err := metal.List()
	if err != nil {
		return nil, fmt.Errorf("metal: %w: %s", err, instead)
	}
	out := make([]gpu.Description, len(all))
	for i, d := range all {
		out[i] = gpu.Description(d)
	}
	return out, nil
}

// Open implements [gpu.Driver].
func (driver) Open(o gpu.Options) (backend.Device, func(), error) {
	plan := int(metal.Concurrent)
	switch {
	case o.Plan == "" && o.Measured != nil:
		plan = int(metal.Auto)
	case o.Plan != "":
		if plan = slices.Index(gpu.Plans, o.Plan); plan < 0 {
			return nil, nil, fmt.Errorf("metal: there is no plan %q", o.Plan)
		}
	}
	d, err := metal.Open(metal.Options{Device: o.Name, Library: o.Library, Plan: metal.Plan(plan), Encoders: o.Encoders, Fences: o.Fences, Measured: o.Measured, Memory: o.Memory, Warn: o.Warn})
	switch {
	case err != nil && o.Name == "":
		return nil, nil, fmt.Errorf("%w: %s", err, instead)
	case err != nil:
		return nil, nil, err
	}
	return d, func() { _ = d.Close() }, nil // the error of what it did matters, not this one
}

// Litmus implements [gpu.Driver].
func (driver) Litmus(ctx context.Context, d backend.Device, how gpu.Litmus) ([]litmus.Result, error) {
	o := litmus.Options{Device: d.(*metal.Device).RegistryID, Trials: how.Trials, Only: how.Only, Begin: how.Begin, Apart: how.Apart}
	// Metal's API validation ends a process that dispatches an empty grid.
	o.EmptyGrids = cmp.Or(os.Getenv("MTL_DEBUG_LAYER"), os.Getenv("METAL_DEVICE_WRAPPER_TYPE"), "0") == "0"
	return litmus.Run(ctx, o)
}
