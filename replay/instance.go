package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// Options of an instance.
type Options struct {
	// Poison fills scratch and outputs before each run with a pattern that
	// differs from run to run, so that a read of undefined bytes shows. For tests.
	Poison bool
	// Profile asks the device for a time for each dispatch.
	Profile bool
	// Progress, if not nil, is called with the share of a graph that the device has compiled, from 0 to 1.
	Progress func(graph string, done float64)
	// Loading, if not nil, is called with the share of a graph's weights that the device has, from 0 to 1.
	Loading func(graph string, done float64)
}

// Instance is a module on a device, with its memory. The instance, its graphs, frames and states must be used by one
// goroutine at a time; a [Run] may be used by any goroutine.
type Instance struct {
	device  backend.Device
	queue   backend.Queue // of replays
	copies  backend.Queue // for what the host sets and gets while replays run; nil until first needed
	module  *ir.Module
	options Options
	weights weights
	states  *States   // the first set
	sets    []*States // all
	graphs  map[string]*Graph
	runs    uint64
	flight  []*Run // runs that may not have ended
	remarks []string
	closed  bool

	mu sync.Mutex // guards the results of runs that concern states
}

// Open puts a module on the device. Memory is allocated, and graphs are planned, when they are
// first used. The module's blobs must be loaded and stay mapped until Close.
func Open(d backend.Device, m *ir.Module, o Options) (*Instance, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	q, err := d.NewQueue()
	if err != nil {
		return nil, err
	}
	s := &Instance{device: d, queue: q, module: m, options: o, graphs: map[string]*Graph{}}
	s.weights.of = s
	s.states = s.newStates()
	return s, nil
}

// Close waits for all runs and releases the memory of every graph. Afterwards all methods return an error.
func (s *Instance) Close() error {
	if s.closed {
		return nil
	}
	s.settle()
	s.closed = true
	var errs []error
	for _, set := range s.sets {
		errs = append(errs, set.release())
	}
	for _, name := range slices.Sorted(maps.Keys(s.graphs)) {
		errs = append(errs, s.graphs[name].close())
	}
	errs = append(errs, s.weights.close(), s.closeQueues())
	s.graphs = nil
	return errors.Join(errs...)
}

func (s *Instance) closeQueues() error {
	err := s.queue.Close()
	if s.copies != nil {
		err = errors.Join(err, s.copies.Close())
	}
	s.copies = nil
	return err
}

// side returns the queue for copies by the host. These copies need not wait for replays, because no replay in
// flight uses the same memory; a replay that needs a copy waits for it.
func (s *Instance) side() (_ backend.Queue, err error) {
	if s.copies == nil {
		s.copies, err = s.device.NewQueue()
	}
	return s.copies, err
}

// settle waits until nothing is in flight.
func (s *Instance) settle() {
	for _, r := range s.flight {
		r.finish()
	}
	s.flight = nil
}

// room waits until the given number of command buffers more may be in flight, or until ctx ends. If a replay has
// more command buffers than may ever be in flight, room waits until nothing is; the device then encodes the last
// ones as the first complete.
func (s *Instance) room(ctx context.Context, buffers int) error {
	most := s.device.Info().MaxUncompleted
	for {
		s.flight = slices.DeleteFunc(s.flight, func(r *Run) bool { return r.Status().Ended() })
		total := 0
		for _, r := range s.flight {
			total += r.buffers
		}
		if most == 0 || total == 0 || total+buffers <= most {
			return nil
		}
		select {
		case <-s.flight[0].Done():
		case <-ctx.Done():
			return fmt.Errorf("%d command buffers are in flight, this run has %d more, and a queue of the device %s may have %d: %w", total, buffers, s.device.Name(), most, context.Cause(ctx))
		}
	}
}

// errClosed is the error of every method after Close, nil before.
func (s *Instance) errClosed() error {
	if !s.closed {
		return nil
	}
	return errors.New("its instance is closed: its memory is gone (open another one)")
}

// Graph returns the graph called name, after planning it; "" is the first graph of the module. Planning a large
// graph takes a while, and ctx can cancel it.
func (s *Instance) Graph(ctx context.Context, name string) (*Graph, error) {
	if s.closed {
		return nil, fmt.Errorf("graph %s: the instance is closed", ir.QuoteName(name))
	}
	g := s.module.Graph(name)
	if name == "" {
		g = s.module.Graphs[0]
	}
	if g == nil {
		var have []string
		for _, x := range s.module.Graphs {
			have = append(have, ir.QuoteName(x.Name))
		}
		return nil, fmt.Errorf("the module has no graph %q (it has %v)", name, have)
	}
	if p := s.graphs[g.Name]; p != nil {
		return p, nil
	}
	p, err := s.plan(ctx, g)
	if err != nil {
		if none := (*meaning.Error)(nil); errors.As(err, &none) {
			return nil, err // the error names the graph
		}
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.Name), err)
	}
	s.graphs[g.Name] = p
	return p, nil
}

// Remarks lists what was done differently from what a caller may expect: weights that were copied,
// and passes that the device asks for and that were not run.
func (s *Instance) Remarks() []string { return slices.Clone(s.remarks) }

func (s *Instance) remark(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.remarks, text) {
		s.remarks = append(s.remarks, text)
	}
}

func (s *Instance) plan(ctx context.Context, g *ir.Graph) (_ *Graph, err error) {
	defer mmap.Catch(&err)() // reading initial contents from a mapped file may fault
	if err := sound(ctx, g); err != nil {
		return nil, err
	}
	if g, err = s.lower(ctx, g); err != nil {
		return nil, err
	}
	info := s.device.Info()
	if err := within(ctx, g, &info); err != nil {
		return nil, err
	}
	if err := s.fits(g, &info); err != nil {
		return nil, err
	}
	p := &Graph{instance: s, graph: g, buffers: commandBuffers(g), stateful: slices.ContainsFunc(g.Memories, func(m ir.Memory) bool { return m.Kind == ir.State })}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	places, err := s.weights.place(ctx, g, &info)
	if err != nil {
		return nil, err
	}
	program := &backend.Program{Graph: g, Places: places, Profile: s.options.Profile}
	if s.options.Progress != nil {
		program.Progress = func(done float64) { s.options.Progress(g.Name, done) }
	}
	if p.exec, err = s.device.Compile(ctx, program); err != nil {
		return nil, err
	}
	if p.Frame, err = p.newFrame(ctx, 1); err != nil {
		return nil, err
	}
	if _, err := s.states.bind(ctx, p); err != nil {
		return nil, err
	}
	return p, p.checkOverlap(places)
}

// sound refuses a graph with no meaning: one whose result depends on undefined bytes, or on an order of commands
// that nothing enforces. It also refuses a dispatch of a builtin or generated kernel that the kernel's declaration
// does not describe, because its effects would be unknown.
func sound(ctx context.Context, g *ir.Graph) error {
	found, err := meaning.Of(ctx, g)
	if err != nil {
		return err
	}
	if found.Undescribed != nil {
		return found.Undescribed
	}
	return found.Err()
}
