// Package gpu has the interfaces by which the commands find and open GPUs. It does not import their backends: a
// program that does needs the system's dynamic linker at its start, and on Linux the commands can be built without.
// Package metalgpu brings backend/metal to those programs that import it, and cudagpu backend/cuda.
package gpu

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/cost"
)

// Options choose a GPU of Apple's, and how it is driven. The zero value is good.
type Options struct {
	// Name is a part of the GPU's name; "" is the one that the system prefers.
	Name string
	// Library is a .metallib that builtin kernels are taken from.
	Library string
	// Plan is how replays are encoded, one of [Plans]; "" is the first, or auto with a profile.
	Plan string
	// Measured is what was measured of the GPU; nil: nothing.
	Measured *cost.Model
	// Encoders is how many command buffers of a replay are encoded side by side by the plan
	// parallel; 0: as many as it likes.
	Encoders int
	// Fences orders encoders by fences, and switches off Metal's tracking of what they share, if Measured says that
	// fences were seen to keep the order.
	Fences bool
	// Memory is the maximum of bytes that buffers may take together; 0: what the system recommends.
	Memory int64
	// Warn, if not nil, is told what is done in another way than was asked for.
	Warn func(text string)
}

// Plans are the names of ways to encode a replay.
var Plans = []string{"concurrent", "serial", "parallel", "indirect", "indirect-barriers", Auto}

// Auto is the plan that chooses one of the others for each graph, of either kind of GPU.
const Auto = "auto"

// Description is a GPU of Apple's.
type Description struct {
	Name             string `json:"name"`
	Default          bool   `json:"default"`
	Family           int    `json:"apple_family"` // 7 is that of M1; 0: none of Apple's
	Memory           int64  `json:"working_set"`  // bytes that it should have in use at most
	MaxBuffer        int64  `json:"max_buffer"`
	ThreadgroupBytes int    `json:"threadgroup_bytes"`
	Unified          bool   `json:"unified_memory"`
	RegistryID       uint64 `json:"registry_id"`
	Architecture     string `json:"architecture"`
	Families         string `json:"families"`
	LowPower         bool   `json:"low_power"`
	Removable        bool   `json:"removable"`
	Headless         bool   `json:"headless"`
}

// Driver finds and opens GPUs.
type Driver interface {
	List() ([]Description, error)
	Open(Options) (backend.Device, func(), error)
	// Litmus runs litmus tests on a device that Open has returned. An error is that there is no such GPU, or
	// that ctx has ended.
	Litmus(ctx context.Context, d backend.Device, o Litmus) ([]verdict.Result, error)
}

// Litmus says which litmus tests run, and how.
type Litmus struct {
	Trials int    // of each program; 0: as many as it has by default
	Only   string // a pattern of names, as path.Match has it; "": all
	// Begin, if not nil, is called with each test that begins, and the fraction of the work that is done.
	Begin func(name string, done float64)
	// Apart, if not nil, runs a test in a process of its own, where it needs one.
	Apart func(ctx context.Context, name string) (verdict.Result, error)
}

// Metal drives Apple's GPUs. A program that does not import package metalgpu has none.
var Metal Driver = none{}

type none struct{}

var errNone = errors.New("metal: Metal is on Macs alone: use --device cpu, or --device softmetal for the Metal kernels themselves")

func (none) List() ([]Description, error)                 { return nil, errNone }
func (none) Open(Options) (backend.Device, func(), error) { return nil, nil, errNone }

func (none) Litmus(context.Context, backend.Device, Litmus) ([]verdict.Result, error) {
	return nil, errNone
}
