//go:build unix

package softmetal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/kernelcode"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
)

// Device executes Metal kernels on the CPU. [New] returns one; the zero value is not usable.
type Device struct {
	compiler  clang.Compiler
	cache     *air.Cache
	libraries *kernelcode.Source
	memory    *sharedMemory
	process   *process
	workers   int
	machine   machine
	check     *check                                            // nil: without the checker
	module    func(context.Context, *ir.Kernel) ([]byte, error) // Options.Module

	close  sync.Once
	closed error

	mu      sync.Mutex
	kernels map[string]*kernel // by library, function and function constants
	order   uint64             // see SetOrder
}

// New returns a device. It finds clang and compiles the executor unless the cache has it. The executor's process is
// started when it is first needed.
func New(ctx context.Context, o Options) (_ *Device, err error) {
	d := &Device{workers: o.Workers, machine: elsewhere, module: o.Module, kernels: map[string]*kernel{}}
	if o.Machine != "" {
		d.machine = machine{o.Machine, o.Emulator}
	}
	if o.Check {
		d.check = &check{seed: o.Seed, only: o.Only}
	}
	if d.workers <= 0 {
		d.workers = runtime.GOMAXPROCS(0)
	}
	if d.compiler, err = clang.Find(ctx); err != nil {
		return nil, err
	}
	d.compiler.Trust = o.Trust || len(d.machine.emulator) > 0 // emulators are for tests alone
	if d.cache, err = air.OpenCache(o.Cache, 0); err != nil {
		return nil, fmt.Errorf("softmetal: the cache of compiled kernels: %w", err)
	}
	d.libraries = kernelcode.New(d.compiler, d.cache, o.Library)
	if o.Check {
		d.libraries.Unset()
	}
	program, err := executor(ctx, d.compiler, d.cache, d.machine)
	if err != nil {
		return nil, fmt.Errorf("softmetal: %w", err)
	}
	if d.memory, err = newSharedMemory(o.Memory); err != nil {
		return nil, err
	}
	if d.process, err = newProcess(d.machine, program, d.memory, &o, d.workers); err != nil {
		return nil, errors.Join(err, d.memory.file.Close())
	}
	return d, nil
}

// Close ends the executor; a second call has no effect. All buffers must be closed before.
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
		MaxThreadgroup: 1024, ThreadgroupBytes: maxThreadgroupBytes, ArgumentSlots: slots,
		Numerics: backend.Numerics{FlushesDenormals: true, ManyNaNs: true},
	}
}

// maxThreadgroupBytes is the size of the threadgroup memory of Apple's GPUs.
const maxThreadgroupBytes = 32 << 10

// slots is the maximum number of buffer arguments of a Metal kernel.
const slots = 31
