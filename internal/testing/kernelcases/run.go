package kernelcases

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Prepared is a case whose kernel is compiled for a device.
type Prepared struct {
	*Case
	device backend.Device
	graph  *ir.Graph
	places []backend.Place
	x      backend.Executable
}

// Prepare compiles a case's kernel. Several cases may be prepared at a time.
func (c *Case) Prepare(ctx context.Context, d backend.Device, g *ir.Graph) (_ *Prepared, err error) {
	p := &Prepared{Case: c, device: d, graph: g, places: make([]backend.Place, len(g.Memories))}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", c.Name, err), p.Close())
		}
	}()
	for i := range g.Memories {
		b, err := d.Alloc(backend.Spec(&g.Memories[i]))
		if err != nil {
			return nil, err
		}
		p.places[i] = backend.At(b)
	}
	p.x, err = d.Compile(ctx, &backend.Program{Graph: g, Places: p.places})
	return p, err
}

// Close releases the executable and the buffers.
func (p *Prepared) Close() error {
	var errs []error
	if p.x != nil {
		errs = append(errs, p.x.Close())
	}
	for _, at := range p.places {
		if at.Buffer != nil {
			errs = append(errs, at.Buffer.Close())
		}
	}
	return errors.Join(errs...)
}

// Run runs the case, and compares every buffer with its expected contents. It returns the largest fraction of a
// tolerance that a result has used.
func (p *Prepared) Run(ctx context.Context, q backend.Queue) (used float64, _ error) {
	m := 0
	for i := range p.Args {
		a := &p.Args[i]
		if a.Bytes != "" || a.Threadgroup > 0 {
			continue
		}
		if before := p.before(a); before != nil {
			if err := backend.Wait(ctx)(q.Upload(ctx, p.places[m], before)); err != nil {
				return 0, err
			}
		}
		m++
	}
	f, err := p.x.NewFrame(backend.FrameSpec{})
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := backend.Wait(ctx)(q.Submit(ctx, backend.Submission{Executable: p.x, Frame: f})); err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	m = 0
	for i := range p.Args {
		a := &p.Args[i]
		if a.Bytes != "" || a.Threadgroup > 0 {
			continue
		}
		if !a.Free {
			got := make([]byte, p.graph.Memories[m].Size)
			if err := backend.Wait(ctx)(q.Download(ctx, got, p.places[m])); err != nil {
				return 0, err
			}
			part, err := p.compare(a, got)
			if err != nil {
				return part, err
			}
			used = max(used, part)
		}
		m++
	}
	return used, nil
}
