//go:build unix

package softmetal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/ir"
)

// kernel is a kernel that was compiled and loaded by the executor.
type kernel struct {
	*air.Kernel
	number uint32
	frame  uint64 // bytes of a thread's coroutine frame, as the executor says
	once   sync.Once
	err    error
	// endless returns the source lines of loops that never end.
	endless func() []int
}

// load returns a kernel of a graph, which it compiles and loads if that was not done before.
func (d *Device) load(ctx context.Context, k *ir.Kernel) (*kernel, error) {
	var id strings.Builder
	fmt.Fprintf(&id, "%d %q %x %q", k.Library.Kind, k.Library.Path, k.Library.Digest, k.Function)
	for _, c := range k.Constants {
		fmt.Fprintf(&id, " %d=%d", c.Index, c.Bits)
	}
	for {
		d.mu.Lock()
		out := d.kernels[id.String()]
		if out == nil {
			out = &kernel{}
			d.kernels[id.String()] = out
		}
		d.mu.Unlock()
		own := false
		out.once.Do(func() { own, out.err = true, out.compile(ctx, d, k) })
		if out.err == nil {
			return out, nil
		}
		d.mu.Lock()
		if d.kernels[id.String()] == out {
			delete(d.kernels, id.String())
		}
		d.mu.Unlock()
		if own || ctx.Err() != nil {
			return nil, out.err
		}
		// The attempt of another goroutine has failed, perhaps because its own context has ended: try again.
	}
}

// code returns the code of a kernel: that of Options.Module, or that of its library.
func (d *Device) code(ctx context.Context, k *ir.Kernel) (in air.Input, err error) {
	if d.module != nil {
		data, err := d.module(ctx, k)
		if err != nil {
			return in, err
		}
		if data != nil {
			err := json.Unmarshal(data, &in)
			in.Trusted = true // only tests set Options.Module
			return in, err
		}
	}
	return d.libraries.Find(ctx, k)
}

func (out *kernel) compile(ctx context.Context, d *Device, k *ir.Kernel) error {
	in, err := d.code(ctx, k)
	if err != nil {
		return err
	}
	in.Checked = d.check.covers(k.Function)
	if _, err := d.object(ctx, in); err != nil { // compiles, in parallel with others: the executor loads one at a time
		return err
	}
	out.Kernel = in.Kernel
	out.endless = func() []int { return air.Endless(in) }
	l, err := d.process.load(ctx, object{in.Kernel.Name, func(ctx context.Context) ([]byte, error) { return d.object(ctx, in) }, !in.Trusted})
	out.number, out.frame = l.number, l.frame
	return err
}

// object returns a kernel's shared object, compiling it unless the cache has it.
func (d *Device) object(ctx context.Context, in air.Input) ([]byte, error) {
	in.Machine = d.machine.triple
	return d.cache.Data(ctx, host.Key(d.compiler, in), "kernel.so", func() ([]byte, error) { return host.Build(ctx, d.compiler, in) })
}
