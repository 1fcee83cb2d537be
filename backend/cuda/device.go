//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/backend/internal/ptxcode"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	driver "github.com/mlxc/mlxc/internal/cuda"
)

// Options of a device. The zero value is good.
type Options struct {
	// Device names the GPU: a part of its name; "" is the first.
	Device string
	// Library is a .metallib, such as MLX's, from which the kernels of our own library are taken where
	// it has them.
	Library string
	// Trust has kernels of files, which a graph or Library names, compiled also without a sandbox.
	Trust bool
	// Cache is the folder of compiled kernels; "" is the user's own.
	Cache string
	// Memory is the maximum of bytes that buffers may take together; 0: what the GPU has.
	Memory int64
	// Pool is the maximum of bytes of closed buffers that are kept for others; 0: [DefaultPool], −1: none.
	Pool int64
	// Plan is how the commands of a replay are launched.
	Plan Plan
	// Measured is a profile of this GPU by `mlxreplay doctor`, by which [Auto] chooses; nil: the figures of an H200
	// ([cost.Chip]).
	Measured *cost.Model
	// Full switches off programmatic dependent launches, which GPUs of compute capability 9.0 and later have: every
	// launch begins when those before it have ended.
	Full bool
	// NoMMA keeps products of simdgroup matrices from tensor cores: all are sums of f32 by fma, in the order of the
	// inner index.
	NoMMA bool
	// NoWarpgroups keeps products and attention from the code of package ptxmatrix, which GPUs run where there is some for them, unless
	// Library has the kernels.
	NoWarpgroups bool
	// Capability has the code of that package that is for GPUs of an older compute capability, "8.0" or "8.9": newer ones run it too. "": the GPU's own.
	Capability string

	// archive, if not nil, has the compiled kernels of source files: tests run on machines without a compiler.
	archive *prebuilt.Archive
	// image, if not nil, makes what the driver loads for a kernel in place of PTX: tests have no GPU.
	image func(ctx context.Context, in air.Input, form nvptx.Launch) ([]byte, error)
	// fitted has images launched as the code of package ptxmatrix is.
	fitted bool
}

// capabilities are the values of [Options.Capability].
var capabilities = []string{"8.0", "8.9"}

// elders are the GPUs for which there is code then.
var elders = []ptxmatrix.GPU{{Major: 8, Memory: 164 << 10}, {Major: 8, Minor: 9, Memory: 100 << 10}}

// Plan is how the commands of a replay are launched.
type Plan uint8

// The plans. They are for replays: command buffers of live recordings are always launched one by one.
const (
	Auto   Plan = iota // for each graph the one that takes the least time by what was measured
	Stream             // one by one
	Chain              // as a CUDA graph, in which each command waits for the one before
	Edges              // as a CUDA graph with the edges of the ir.Graph, where that is ordered by edges
)

// Description is a GPU of the machine.
type Description struct {
	Ordinal         int
	Name            string
	Major, Minor    int // of its compute capability
	Memory          int64
	Multiprocessors int
}

// List returns the GPUs of the machine.
func List() ([]Description, error) {
	all, err := driver.List()
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	out := make([]Description, len(all))
	for i, x := range all {
		out[i] = Description(x)
	}
	return out, nil
}

// Device is a GPU. See [Open].
type Device struct {
	Description
	gpu    *driver.Device
	cache  *air.Cache
	code   *ptxcode.Source
	limits limits
	plan   Plan
	costs  cost.Model // by which plans are chosen
	// programmatic: kernels are compiled for programmatic dependent launches.
	programmatic bool
	mma          nvptx.MMA     // what tensor cores may multiply
	matrix       ptxmatrix.GPU // code of package ptxmatrix is taken that is for this GPU; zero: none is
	imaged       bool          // what is loaded are images
	// disturb has hooks by which tests change kernels' PTX and graphs' edges, to show what keeps the order.
	disturb struct {
		text func(kernel string, text []byte) []byte
		arcs func(all []arc) []arc
	}

	mu        sync.Mutex
	kernels   map[string]*kernel
	memory    int64 // maximum of bytes of buffers
	allocated int64
	peak      int64
	held      int64 // maximum of allocated and the pool's bytes together
	pool      pool
	free      int64 // what room has found; valid if asked
	asked     bool
	lost      error // the error by which the context was lost; nil: it was not
	jit       jit
	ranges    *driver.Ranges // nil: no tool takes them
	noRanges  error
	closed    bool
}

// limits are the maxima of a launch on a GPU.
type limits struct {
	grid          [3]int // blocks
	threads       int    // of a block
	shared, optin int    // bytes of shared memory per block, by default and with opt-in
}

// Open opens the GPU that the options name.
func Open(ctx context.Context, o Options) (_ *Device, err error) {
	if o.Capability != "" && !slices.Contains(capabilities, o.Capability) {
		return nil, fmt.Errorf("cuda: code for compute capability %q: there is some for %s", o.Capability, strings.Join(capabilities, " and "))
	}
	all, err := List()
	if err != nil {
		return nil, err
	}
	at := -1
	var names []string
	for i, x := range all {
		if at < 0 && strings.Contains(strings.ToLower(x.Name), strings.ToLower(o.Device)) {
			at = i
		}
		names = append(names, x.Name)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("cuda: the driver finds no GPU")
	case at < 0:
		return nil, fmt.Errorf("cuda: no GPU is called %q: there are %s", o.Device, strings.Join(names, ", "))
	}
	d := &Device{Description: all[at], kernels: map[string]*kernel{}}
	if d.cache, err = air.OpenCache(o.Cache, 0); err != nil {
		return nil, fmt.Errorf("cuda: the cache of compiled kernels: %w", err)
	}
	d.code = ptxcode.New(d.cache, o.Library)
	if o.Trust {
		d.code.Trust()
	}
	d.code.Beforehand(o.archive)
	if o.image != nil {
		d.code.Images(o.image)
		d.imaged = true
	}
	if d.gpu, err = driver.Open(at); err != nil {
		return nil, errors.Join(fmt.Errorf("cuda: %w", err), d.cache.Close())
	}
	if d.memory = d.Description.Memory; o.Memory > 0 && o.Memory < d.memory {
		d.memory = o.Memory
	}
	switch {
	case o.Pool == 0:
		d.pool.most = min(DefaultPool, d.memory/16)
	case o.Pool > 0:
		d.pool.most = o.Pool
	}
	for a, to := range map[driver.Attribute]*int{
		driver.MaxGridX: &d.limits.grid[0], driver.MaxGridY: &d.limits.grid[1], driver.MaxGridZ: &d.limits.grid[2],
		driver.MaxThreadsPerBlock: &d.limits.threads, driver.SharedPerBlock: &d.limits.shared, driver.SharedPerBlockOptin: &d.limits.optin,
	} {
		if *to, err = d.gpu.Attribute(a); err != nil {
			return nil, errors.Join(fmt.Errorf("cuda: %w", err), d.gpu.Close(), d.cache.Close())
		}
	}
	if d.Major < 8 {
		return nil, errors.Join(fmt.Errorf("cuda: %s has compute capability %d.%d: kernels are compiled for 8.0 and later", d.Description.Name, d.Major, d.Minor), d.gpu.Close(), d.cache.Close())
	}
	d.plan, d.programmatic = o.Plan, d.Major >= 9 && !o.Full
	d.attach()
	if !o.NoMMA {
		d.mma = nvptx.AllMMA
	}
	if o.Library == "" && (o.image == nil || o.fitted) && !o.NoWarpgroups {
		d.matrix = ptxmatrix.GPU{Major: d.Major, Minor: d.Minor, Memory: d.limits.optin + 1<<10}
		if o.Capability != "" {
			elder := elders[slices.Index(capabilities, o.Capability)]
			elder.Memory = min(elder.Memory, d.matrix.Memory)
			d.matrix = elder
		}
	}
	if err := d.believe(o.Measured); err != nil {
		return nil, errors.Join(err, d.gpu.Close(), d.cache.Close())
	}
	return d, nil
}

// Close releases the device. Everything that was made by it has to be closed before.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	err := d.gpu.Do(func() error {
		var errs []error
		errs = append(errs, release(d.pool.take()))
		for _, k := range d.kernels {
			for _, e := range k.entries {
				if e.module != 0 {
					errs = append(errs, e.module.Unload())
				}
			}
		}
		return errors.Join(errs...)
	})
	err = errors.Join(err, d.gpu.Close(), d.cache.Close())
	if d.allocated != 0 {
		err = errors.Join(err, fmt.Errorf("cuda: the device is closed, and buffers of %d bytes are not", d.allocated))
	}
	return err
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "cuda" }

// Info implements [backend.Device].
func (d *Device) Info() backend.Info {
	return backend.Info{
		Submits:     true,
		Description: d.description(), Threads: d.Multiprocessors,
		Alignment: 256, Memory: d.room(), MaxThreadgroup: min(mostInBlock, d.limits.threads), ThreadgroupBytes: 32 << 10, ArgumentSlots: slots,
		Sampling: backend.SampleCommands, Numerics: backend.Numerics{ManyNaNs: true},
	}
}

// slots is how many buffers a Metal kernel has at most.
const slots = 31

// description is the GPU's name in profiles.
func (d *Device) description() string {
	return fmt.Sprintf("%s, compute capability %d.%d", d.Description.Name, d.Major, d.Minor)
}

// planNames are the names of the plans, in their order.
var planNames = [...]string{"auto", "stream", "chain", "edges"}

// String is the plan's name.
func (p Plan) String() string {
	if int(p) >= len(planNames) {
		return ""
	}
	return planNames[p]
}
