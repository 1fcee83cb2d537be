//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// kernel is one that the driver has compiled.
type kernel struct {
	mu       sync.Mutex
	made     bool
	kernel   *air.Kernel
	module   driver.Module
	function driver.Function
	static   int // bytes of shared memory that it has of its own
	threads  int // of a block, at most
}

// load returns the kernel of a pipeline, made once. An attempt that failed is made again.
func (d *Device) load(ctx context.Context, g *ir.Graph, p *plan.Pipeline) (*kernel, error) {
	own := ir.Kernel{Function: p.Entry(), Library: ir.Library{Kind: ir.SourceFile, Path: plan.MovesFile}}
	k := &own
	if p.Source == plan.FromGraph {
		k = &g.Kernels[p.Kernel]
	}
	var id strings.Builder
	fmt.Fprintf(&id, "%d %d %q %x %q", p.Source, k.Library.Kind, k.Library.Path, k.Library.Digest, k.Function)
	for _, c := range k.Constants {
		fmt.Fprintf(&id, " %d=%d", c.Index, c.Bits)
	}
	d.mu.Lock()
	x := d.kernels[id.String()]
	if x == nil {
		x = &kernel{}
		d.kernels[id.String()] = x
	}
	d.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.made {
		return x, nil
	}
	var in air.Input
	var err error
	if p.Source == plan.FromGraph {
		in, err = d.code.Find(ctx, k)
	} else {
		in, err = d.code.Source(ctx, plan.MovesFile, plan.Moves, k.Function)
	}
	if err != nil {
		return nil, err
	}
	text, err := d.cache.Data(ctx, air.PTXKey(d.compiler, in), "kernel.ptx", func() ([]byte, error) { return air.PTX(ctx, d.compiler, in) })
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Function, err)
	}
	err = d.gpu.Do(func() (err error) {
		if x.module, err = driver.LoadModule(text); err != nil {
			return err
		}
		if x.function, err = x.module.Function(air.PTXEntry); err != nil {
			return err
		}
		if x.static, err = x.function.Attribute(driver.FunctionSharedBytes); err != nil {
			return err
		}
		if x.threads, err = x.function.Attribute(driver.FunctionMaxThreads); err != nil {
			return err
		}
		if most := d.limits.optin - x.static; most > 0 {
			return x.function.SetAttribute(driver.FunctionDynamicShared, most)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Function, err)
	}
	x.kernel, x.made = in.Kernel, true
	return x, nil
}

// prepare makes the kernels of a plan, several at a time, and returns the errors of those that cannot be
// made.
func (d *Device) prepare(ctx context.Context, p *plan.Plan, progress func(float64)) ([]*kernel, []error) {
	needed := make([]bool, len(p.Graph.Kernels))
	for i := range p.Pipelines {
		if x := &p.Pipelines[i]; x.Source == plan.FromGraph {
			needed[x.Kernel] = true
		}
	}
	workers := runtime.GOMAXPROCS(0)
	d.code.Together(ctx, p.Graph, needed, workers)
	out, errs := make([]*kernel, len(p.Pipelines)), make([]error, len(p.Pipelines))
	var wait sync.WaitGroup
	var mu sync.Mutex
	done := 0
	room := make(chan struct{}, workers)
	for i := range p.Pipelines {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			out[i], errs[i] = d.load(ctx, p.Graph, &p.Pipelines[i])
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(float64(done) / float64(len(p.Pipelines)))
			}
		})
	}
	wait.Wait()
	return out, errs
}
