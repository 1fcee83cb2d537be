//go:build unix

package softmetal

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// executable is a compiled graph. It runs the commands one after another in the order of the list, which is one of
// the orders that every graph allows.
type executable struct {
	device  *Device
	graph   *ir.Graph
	profile bool
	steps   []step
	fixed   []backend.Place // places of root memories that the program fixes
	used    []bool          // by root memory: whether a command binds it

	mu    sync.Mutex // held during a replay, which uses what follows
	batch batch
	// What replays in random orders need, made by the first of them.
	freedom *freedom
	stepAt  []*step // by node; nil if that is no step
}

// Compile implements [backend.Device]. Kernels are compiled in parallel.
func (d *Device) Compile(ctx context.Context, p *backend.Program) (_ backend.Executable, err error) {
	defer interrupt.Catch(&err)
	g := p.Graph
	e := &executable{device: d, graph: g, profile: p.Profile, fixed: make([]backend.Place, len(g.Memories)), used: make([]bool, len(g.Memories))}
	copy(e.fixed, p.Places)
	if err := d.prepare(ctx, g, p.Progress); err != nil {
		return nil, err
	}
	for i, n := range g.Nodes {
		interrupt.Poll(ctx)
		c, ok := n.(ir.Command)
		if _, join := n.(*ir.Join); !ok || join {
			continue // the order of the list is one that every graph allows
		}
		s, err := d.step(ctx, g, c)
		if err != nil {
			return nil, fmt.Errorf("softmetal: graph %s: %s: %w", g.Name, g.DescribeNode(i), err)
		}
		e.steps = append(e.steps, s)
		c.EachView(func(v *ir.View) {
			root, _ := g.Root(v.Mem)
			e.used[root] = true
		})
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; e.fixed[i].Buffer != nil || e.used[i] && m.Kind == ir.Weight {
			if err := e.suits(ir.MemID(i), e.fixed[i]); err != nil {
				return nil, fmt.Errorf("softmetal: graph %s: %w", g.Name, err)
			}
		}
	}
	if p.Progress != nil {
		p.Progress(1)
	}
	return e, nil
}

// prepare compiles the kernels that the graph's dispatches use, in parallel. It ignores their errors, which step
// finds again at the command that uses the kernel.
func (d *Device) prepare(ctx context.Context, g *ir.Graph, progress func(float64)) error {
	needed := make([]bool, len(g.Kernels))
	total := 0
	for _, n := range g.Nodes {
		if x, ok := n.(*ir.Dispatch); ok && !needed[x.Kernel] {
			needed[x.Kernel] = true
			total++
		}
	}
	d.libraries.Together(ctx, g, needed, d.workers)
	var wait sync.WaitGroup
	var mu sync.Mutex
	done := 0
	room := make(chan struct{}, max(1, d.workers))
	for i := range g.Kernels {
		if !needed[i] || ctx.Err() != nil {
			continue
		}
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			_, _ = d.load(ctx, &g.Kernels[i])
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(float64(done) / float64(total+1))
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// step checks a command, after loading the kernel of a dispatch.
func (d *Device) step(ctx context.Context, g *ir.Graph, c ir.Command) (step, error) {
	s := step{node: c}
	x, ok := c.(*ir.Dispatch)
	if !ok {
		return s, nil
	}
	var err error
	if s.kernel, err = d.load(ctx, &g.Kernels[x.Kernel]); err != nil {
		return s, err
	}
	return s, s.check(g, d.check.covers(g.Kernels[x.Kernel].Function), d.memory.limit)
}

// suits returns an error if a memory cannot lie at a place, which may be too small, misaligned, or of another device.
func (e *executable) suits(root ir.MemID, p backend.Place) error {
	m := &e.graph.Memories[root]
	if err := p.Holds(m.Size); err != nil {
		return fmt.Errorf("memory %%%s %w", ir.QuoteName(m.Name), err)
	}
	if b, ok := p.Buffer.(*buffer); !ok || b.device != e.device {
		return fmt.Errorf("memory %%%s lies in a buffer of another device", ir.QuoteName(m.Name))
	}
	if align := max(m.Align, m.DType.Size(), 1); e.used[root] && p.Offset%align != 0 {
		return fmt.Errorf("memory %%%s begins at byte %d of a buffer, which is no multiple of %d", ir.QuoteName(m.Name), p.Offset, align)
	}
	return nil
}

// Close implements [backend.Executable].
func (e *executable) Close() error { return nil }

// frame is a [backend.Frame] of an executable.
type frame struct {
	*backend.FrameMemory
	owner *executable
	room  int // maximum number of replays of a submission
}

// states is a [backend.States] of an executable: the places of state memories.
type states struct {
	owner  *executable
	places []backend.Place
}

// Close implements [backend.States].
func (*states) Close() error { return nil }

// NewFrame implements [backend.Executable].
func (e *executable) NewFrame(s backend.FrameSpec) (_ backend.Frame, err error) {
	f := &frame{owner: e, room: max(1, s.Replays)}
	if f.FrameMemory, err = backend.NewFrameMemory(e.device, &backend.Program{Graph: e.graph, Places: e.fixed}, s); err != nil {
		return nil, fmt.Errorf("softmetal: graph %s: %w", e.graph.Name, err)
	}
	for i := range e.graph.Memories {
		if p := f.Place(ir.MemID(i)); p.Buffer != nil {
			if err := e.suits(ir.MemID(i), p); err != nil {
				return nil, errors.Join(fmt.Errorf("softmetal: graph %s: %w", e.graph.Name, err), f.Close())
			}
		}
	}
	return f, nil
}

// NewStates implements [backend.Executable].
func (e *executable) NewStates(places []backend.Place) (backend.States, error) {
	s := &states{owner: e, places: make([]backend.Place, len(e.graph.Memories))}
	copy(s.places, places)
	for i := range e.graph.Memories {
		if e.graph.Memories[i].Kind != ir.State || !e.used[i] || e.fixed[i].Buffer != nil {
			continue
		}
		if err := e.suits(ir.MemID(i), s.places[i]); err != nil {
			return nil, fmt.Errorf("softmetal: graph %s: %w", e.graph.Name, err)
		}
	}
	return s, nil
}
