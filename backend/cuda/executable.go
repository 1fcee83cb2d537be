//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/advance"
	"github.com/mlxc/mlxc/backend/internal/bound"
	"github.com/mlxc/mlxc/backend/internal/plan"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// executable is a compiled graph.
type executable struct {
	device  *Device
	program *bound.Program
	code
	stream bool   // its steps are launched one by one
	name   []byte // of the graph, with a zero byte, for ranges
}

// planning has plans made for a stream, which runs one launch after another, and for launches that take all their
// arguments.
var planning = plan.Options{Serial: true, Whole: true}

// noLimit allows any number of commands to be stored together (plan.Store).
const noLimit = 1 << 30

func specOf(n int64) backend.BufferSpec { return backend.BufferSpec{Size: n, Use: ir.Scratch} }

// Compile implements [backend.Device].
func (d *Device) Compile(ctx context.Context, p *backend.Program) (_ backend.Executable, err error) {
	g := p.Graph
	e := &executable{device: d}
	var how Plan
	how, e.code.programmatic = d.choose(g)
	e.name = append([]byte(g.Name), 0)
	fail := func(err error) (backend.Executable, error) {
		return nil, fmt.Errorf("cuda: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	lowered, err := plan.Lower(ctx, g, planning)
	if err != nil {
		return fail(err)
	}
	e.code.mu = &sync.Mutex{}
	if err := d.compile(ctx, &e.code, lowered, p.Progress); err != nil {
		return fail(err)
	}
	if e.program, err = bound.New(p, d.owns); err != nil {
		return fail(err)
	}
	if e.stream = how == Stream || len(e.steps) > mostNodes || e.program.Profile || e.rules == nil; !e.stream {
		e.link(how == Chain)
	}
	return e, nil
}

// compile makes the kernels and steps of a plan, and checks its dispatches against the limits of GPU and kernels.
func (d *Device) compile(ctx context.Context, c *code, p *plan.Plan, progress func(float64)) error {
	var errs []error
	c.kernels, errs = d.prepare(ctx, p)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	limits := func(i int32) (plan.Limits, error) {
		if errs[i] != nil {
			return plan.Limits{}, errs[i]
		}
		return plan.Limits{Threads: d.limits.threads, Memory: d.limits.optin}, nil
	}
	if err := p.Check(limits); err != nil {
		return err // before anything is arranged: a kernel may be missing
	}
	c.Stored = plan.Store(p, noLimit, false)
	c.nodes, c.describe = p.Graph.Nodes, func(node int32) string { return p.Graph.DescribeNode(int(node)) }
	c.mma, c.multiprocessors = d.mma, d.Multiprocessors
	c.arrange(p.Graph, d.limits.grid)
	c.specialise()
	c.fitsOf = nil
	if err := d.entries(ctx, c, errs, progress); err != nil {
		return err
	}
	if err := p.Check(func(i int32) (plan.Limits, error) {
		if errs[i] != nil {
			return plan.Limits{}, errs[i]
		}
		return c.kernels[i].limits(d), nil
	}); err != nil {
		return err
	}
	c.early(p.Graph)
	if d.ranges != nil {
		c.mark()
	}
	return nil
}

// entries has the driver compile the entries that a code launches. It joins errors to those in errs, by pipeline.
func (d *Device) entries(ctx context.Context, c *code, errs []error, progress func(float64)) error {
	type wanted struct {
		*kernel
		*entry
	}
	pipelines := map[*kernel]int{}
	for i, k := range c.kernels {
		if _, ok := pipelines[k]; !ok {
			pipelines[k] = i
		}
	}
	var all []wanted
	seen := map[*entry]bool{}
	for i := range c.steps {
		s := &c.steps[i]
		for _, e := range s.entries() {
			if !seen[e] {
				seen[e] = true
				all = append(all, wanted{s.kernel, e})
			}
		}
	}
	var mu sync.Mutex
	done := 0
	parallel(len(all), func(i int) {
		err := d.load(ctx, all[i].kernel, all[i].entry)
		mu.Lock()
		defer mu.Unlock()
		p := pipelines[all[i].kernel]
		errs[p] = errors.Join(errs[p], err)
		if done++; progress != nil {
			progress(float64(done) / float64(len(all)))
		}
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.rules == nil || len(c.rules.groups) == 0 {
		return nil
	}
	var err error
	if c.advance, err = d.ours(ctx, advance.File, advance.Source, advance.Entry); err == nil {
		err = d.load(ctx, c.advance, c.advance.entry(form{}, "", nil))
	}
	return err
}

// early finds out which steps read nothing but weights, which no launch writes, before they wait.
func (c *code) early(g *ir.Graph) {
	c.unwritten = make([]bool, len(c.steps))
	for n := range c.steps {
		s := &c.steps[n]
		c.unwritten[n] = true
		early := uint32(0)
		for _, e := range s.entries() {
			early |= e.early
		}
		for i := s.first; i < s.dispatch; i++ {
			if o := &c.Ops[i]; o.Kind == plan.SetBuffer && early>>o.Slot&1 != 0 {
				c.unwritten[n] = c.unwritten[n] && int(o.Index) < len(g.Memories) && g.Memories[o.Index].Kind == ir.Weight
			}
		}
	}
}

// limits are the limits of the GPU, and of the kernel's compiled entries, for its dispatches.
func (x *kernel) limits(d *Device) plan.Limits {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := plan.Limits{Threads: d.limits.threads, Memory: d.limits.optin}
	for _, e := range x.entries {
		if e.made && !e.fit.Fits() { // package ptxmatrix has blocks of its own
			of := e.limits(d)
			l.Threads, l.Own = min(l.Threads, of.Threads), max(l.Own, of.Own)
		}
	}
	return l
}

func (e *entry) limits(d *Device) plan.Limits {
	if e.fit.Fits() {
		return plan.Limits{Threads: d.limits.threads, Memory: d.limits.optin}
	}
	return plan.Limits{Threads: e.threads, Own: e.static, Memory: d.limits.optin}
}

// Close implements [backend.Executable].
func (e *executable) Close() error {
	return e.device.gpu.Do(func() error {
		var errs []error
		for _, t := range e.kept {
			errs = append(errs, t.destroy())
		}
		e.kept = nil
		return errors.Join(errs...)
	})
}

// frame implements [backend.Frame]. As many of its launches are in flight at a time as it has slots.
type frame struct {
	*backend.FrameMemory
	owner *executable
	room  int
	// launches has one element, for all slots, if the GPU evaluates rules, else one for each slot.
	launches []*launches
	slots    []slot
}

// slot is what a launch in flight, of a replay or of several in one CUDA graph, has of its own.
type slot struct {
	end driver.Event
	// memory is pinned memory, from which the GPU copies params, and then the contents of argument memory
	memory  []byte
	replays int  // that were launched with it
	whole   bool // the launch was submitted as a whole
}

// ahead is the maximum of launches of a submission that are in flight.
const ahead = 3

// frameWords is how many bytes a slot has for params.
func frameWords(g *ir.Graph) int { return (4*(len(g.Params)+1) + 15) &^ 15 }

// NewFrame implements [backend.Executable].
func (e *executable) NewFrame(s backend.FrameSpec) (_ backend.Frame, err error) {
	g := e.program.Graph
	f := &frame{owner: e, room: max(1, s.Replays)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cuda: graph %s: %w", ir.QuoteName(g.Name), err), f.Close())
		}
	}()
	if f.FrameMemory, err = e.program.Frame(e.device, s); err != nil {
		return nil, err
	}
	arguments := int64(0)
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Argument && f.Place(ir.MemID(i)).Buffer != nil {
			arguments += (m.Size + 15) &^ 15
		}
	}
	count := min(f.room, ahead)
	if g.NextHost || len(e.Guards) > 0 || e.program.Profile {
		count = 1
	}
	params := frameWords(g)
	for i := range count {
		f.slots = append(f.slots, slot{})
		x := &f.slots[len(f.slots)-1]
		if i == 0 || e.rules == nil {
			l, err := e.device.newLaunches(&e.code)
			if err != nil {
				return nil, err
			}
			f.launches = append(f.launches, l)
		}
		err = e.device.do(func() (err error) {
			if x.memory, err = driver.AllocHost(params + int(arguments)); err != nil {
				return err
			}
			x.end, err = driver.NewEvent(true)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Close implements [backend.Frame].
func (f *frame) Close() error {
	var errs []error
	for i := range f.slots {
		x := &f.slots[i]
		errs = append(errs, f.owner.device.gpu.Do(func() (err error) {
			if x.end != 0 {
				err = x.end.Destroy()
			}
			if x.memory != nil {
				err = errors.Join(err, driver.FreeHost(x.memory))
			}
			return err
		}))
	}
	for _, l := range f.launches {
		errs = append(errs, l.close())
	}
	f.slots, f.launches = nil, nil
	if f.FrameMemory != nil {
		errs = append(errs, f.FrameMemory.Close())
	}
	return errors.Join(errs...)
}

// NewStates implements [backend.Executable].
func (e *executable) NewStates(places []backend.Place) (backend.States, error) {
	s, err := e.program.States(places)
	if err != nil {
		return nil, fmt.Errorf("cuda: graph %s: %w", ir.QuoteName(e.program.Graph.Name), err)
	}
	return s, nil
}
