//go:build linux && (amd64 || arm64)

package cudagpu

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
)

func init() { gpu.CUDA = driver{} }

type driver struct{}

// instead is what to do where there is no GPU.
const instead = "use --device cpu"

// List implements [gpu.CUDADriver].
func (driver) List() ([]gpu.CUDADescription, error) {
	all, err := cuda.List()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, instead)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cuda: the driver finds no GPU: %s", instead)
	}
	out := make([]gpu.CUDADescription, len(all))
	for i, d := range all {
		out[i] = gpu.CUDADescription{
			Name: d.Name, Default: i == 0, Ordinal: d.Ordinal, Capability: fmt.Sprintf("%d.%d", d.Major, d.Minor),
			Memory: d.Memory, Multiprocessors: d.Multiprocessors,
		}
	}
	return out, nil
}

// Open implements [gpu.CUDADriver].
func (driver) Open(ctx context.Context, o gpu.CUDAOptions) (backend.Device, func() error, error) {
	plan := 0
	if o.Plan != "" {
		if plan = slices.Index(gpu.CUDAPlans, o.Plan); plan < 0 {
			return nil, nil, fmt.Errorf("cuda: there is no plan %q", o.Plan)
		}
	}
	d, err := cuda.Open(ctx, cuda.Options{Device: o.Name, Library: o.Library, Trust: o.Trust, Plan: plans[plan], Measured: o.Measured, Full: o.Full, NoMMA: o.NoMMA, Memory: o.Memory})
	switch {
	case err != nil && o.Name == "":
		return nil, nil, fmt.Errorf("%w: %s", err, instead)
	case err != nil:
		return nil, nil, err
	}
	return d, d.Close, nil
}

// plans are those of gpu.CUDAPlans, in its order.
var plans = []cuda.Plan{cuda.Auto, cuda.Stream, cuda.Chain, cuda.Edges}

// Counts implements [gpu.CUDADriver].
func (driver) Counts(d backend.Device) (gpu.Counts, bool) {
	x, ok := d.(*cuda.Device)
	if !ok {
		return gpu.Counts{}, false
	}
	k := x.Kernels()
	ranges := ""
	if err := x.NoRanges(); err != nil {
		ranges = err.Error()
	}
	return gpu.Counts{NoRanges: ranges, Peak: x.Peak(), Held: x.Held(), Kernels: k.Prebuilt + k.Generated + k.Cached + k.Compiled, Compiled: k.Compiled, Why: k.Why, Find: k.Find, JIT: k.JIT}, true
}
