//go:build unix

package softmetal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// Options of a device. The zero value is good.
type Options struct {
	// Workers is how many threads run threadgroups; 0: one for each core.
	Workers int
	// Memory is the most bytes that buffers may take together; 0: no limit.
	Memory int64
	// Cache is the folder in which compiled kernels are kept; "" is the user's own.
	Cache string
	// Check runs every dispatch under the checker, on one thread; [Device.Observed] has what
	// it found. It is slow: five to a hundred times as slow (docs/checker.md).
	Check bool
	// Only, if it is not empty, are patterns (path.Match) of the kernels whose dispatches are
	// checked; others just run.
	Only []string
	// Seed, if it is not 0, chooses the order in which threadgroups run under the checker.
	Seed uint64
	// Library is a .metallib from which the kernels of our own library are taken, such as
	// MLX's, where they have the same names and arguments; those that it lacks, and all if
	// it is "", are compiled from their Metal source.
	// Other kernels come from the file that their graph names.
	Library string
}

// Device is software Metal. The zero value is not usable; see [New].
type Device struct {
	compiler  clang.Compiler
	cache     *air.Cache
	libraries *libraries
	memory    *sharedMemory
	process   *process
	workers   int
	check     *check // nil: nothing is checked

	close  sync.Once
	closed error

	mu      sync.Mutex
	kernels map[string]*kernel // by what says everything of it
	order   uint64             // see SetOrder
}

// New returns a device. It finds clang, compiles the executor if the cache has it not, and
// starts nothing.
func New(ctx context.Context, o Options) (_ *Device, err error) {
	d := &Device{libraries: &libraries{builtin: o.Library, open: map[string]*library{}, units: map[string]*unit{}}, workers: o.Workers, kernels: map[string]*kernel{}}
	if o.Check {
		d.check = &check{seed: o.Seed, only: o.Only}
	}
	if d.workers <= 0 {
		d.workers = runtime.GOMAXPROCS(0)
	}
	if d.compiler, err = clang.Find(ctx); err != nil {
		return nil, err
	}
	if d.cache, err = air.OpenCache(o.Cache, 0); err != nil {
		return nil, fmt.Errorf("softmetal: the cache of compiled kernels: %w", err)
	}
	program, err := executor(ctx, d.compiler, d.cache)
	if err != nil {
		return nil, fmt.Errorf("softmetal: %w", err)
	}
	if d.memory, err = newSharedMemory(o.Memory); err != nil {
		return nil, err
	}
	if d.process, err = newProcess(program, d.memory, d.workers); err != nil {
		return nil, errors.Join(err, d.memory.file.Close())
	}
	return d, nil
}

// Close ends the executor, once. Buffers are closed before.
func (d *Device) Close() error {
	d.close.Do(func() { d.closed = errors.Join(d.process.close(), d.memory.file.Close(), d.cache.Close()) })
	return d.closed
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "softmetal" }

// Info implements [backend.Device]. The limits are those of Apple's GPUs.
func (d *Device) Info() backend.Info {
	return backend.Info{
		Description: fmt.Sprintf("software Metal, kernels compiled by clang %d", d.compiler.Version),
		Threads:     d.workers, Memory: d.memory.limit, Alignment: 256,
		MaxThreadgroup: 1024, ThreadgroupBytes: 32 << 10, ArgumentSlots: slots,
		Numerics: backend.Numerics{FlushesDenormals: true, ManyNaNs: true},
	}
}

// slots is how many buffers a Metal kernel has at most.
const slots = 31
