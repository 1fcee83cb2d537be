//go:build unix

package softmetal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// kernel is one that was compiled and loaded.
type kernel struct {
	*air.Kernel
	number uint32
	frame  uint64 // bytes that a thread of it takes, as the executor says
	once   sync.Once
	err    error
	// endless finds the lines of loops that nothing leaves.
	endless func() []int
}

// load returns a kernel of a graph, compiled and loaded. What is asked for twice is done once.
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
		// Another has tried, whose context may have ended.
	}
}

// code finds the code of a kernel.
func (d *Device) code(ctx context.Context, k *ir.Kernel) (in air.Input, err error) {
	if d.module != nil {
		data, err := d.module(ctx, k)
		if err != nil {
			return in, err
		}
		if data != nil {
			err := json.Unmarshal(data, &in)
			in.Trusted = true // it is a test's
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
	if _, err := d.object(ctx, in); err != nil { // while others are loaded
		return err
	}
	out.Kernel = in.Kernel
	out.endless = func() []int { return air.Endless(in) }
	l, err := d.process.load(ctx, object{in.Kernel.Name, func(ctx context.Context) ([]byte, error) { return d.object(ctx, in) }, !in.Trusted})
	out.number, out.frame = l.number, l.frame
	return err
}

// object returns a kernel's shared object, compiled if the cache has it not.
func (d *Device) object(ctx context.Context, in air.Input) ([]byte, error) {
	in.Machine = d.machine.triple
	return d.cache.Data(ctx, air.HostKey(d.compiler, in), "kernel.so", func() ([]byte, error) { return air.BuildHost(ctx, d.compiler, in) })
}
