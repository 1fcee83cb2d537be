//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/bound"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// executable implements [backend.Executable]: a graph with its plan and its pipelines.
type executable struct {
	device  *Device
	program *bound.Program
	code
}

// code is a plan with what is needed to send it as messages.
type code struct {
	plan   *plan.Plan
	pipes  []pipeline // by index in plan.Pipelines
	labels []objc.ID  // NSStrings, by index in plan.Labels
	names  []objc.ID  // NSStrings: labels of command buffers, by index in plan.Buffers; 0: none
	data   uintptr    // address of a copy of plan.Data outside of Go's memory
	memory objc.Batch // holds that copy
	how    Plan       // the way in which it is encoded, never Auto
	stored *commands  // its dispatches as indirect commands; nil: each replay encodes them
}

// mostDispatches is the max number of dispatches in a command buffer: a replay can be aborted only between
// command buffers, and the system kills one that runs for too long.
const mostDispatches = 500

// longestBuffer is the max modelled duration of a command buffer, in seconds. The system kills one that
// keeps the GPU from drawing the screen for much longer.
const longestBuffer = 50e-3

// model returns the cost model of this GPU: the measured profile, else that of its chip, else that of the
// slowest chip.
func (d *Device) model() cost.Model {
	if m := d.options.Measured; m != nil && m.Bandwidth > 0 {
		return *m
	}
	if m, err := cost.Chip(d.Description.Name); err == nil {
		return m
	}
	m, _ := cost.Chip("m1")
	return m
}

// planning returns the options for lowering a graph that is encoded as how; profile: with times of commands.
func (d *Device) planning(how Plan, profile bool) plan.Options {
	o := plan.Options{Serial: how == Serial, Groups: d.options.Groups, Most: mostDispatches}
	switch {
	case profile && d.sampling == backend.SampleCommands:
		o.Times = plan.ByDispatch
	case profile && d.sampling == backend.SampleEncoders:
		o.Times = plan.ByEncoder
	case how == Parallel:
		o.Parts = d.options.encoders()
	case how.indirect():
		o.Whole = true
	}
	return o
}

// live returns how live command buffers are encoded. They run once, so storing or splitting them would not pay.
func (d *Device) live() Plan {
	if d.options.Plan == Serial {
		return Serial
	}
	return Concurrent
}

// lower chooses how a graph is encoded and makes its plan; profile: with times of commands.
func (d *Device) lower(ctx context.Context, c *code, g *ir.Graph, profile bool) (err error) {
	c.how = d.options.Plan
	if c.how == Auto {
		p, err := plan.Lower(ctx, g, d.planning(Concurrent, false))
		if err != nil {
			return err
		}
		c.how = d.options.choose(p)
	}
	o := d.planning(c.how, profile)
	time := d.model().AtMost(g)
	o.Time, o.Longest = func(n ir.Node) float64 { return float64(time.Work(n).Alone) }, longestBuffer
	if c.plan, err = plan.Lower(ctx, g, o); err != nil {
		return err
	}
	if c.how.indirect() && len(c.plan.Timed) == 0 {
		c.stored = store(c.plan, c.how == IndirectBarriers)
	}
	return nil
}

// Compile implements [backend.Device]. Pipelines are made in parallel.
func (d *Device) Compile(ctx context.Context, p *backend.Program) (_ backend.Executable, err error) {
	g := p.Graph
	e := &executable{device: d}
	timed := p.Profile || d.options.Profile
	if err := d.lower(ctx, &e.code, g, timed); err != nil {
		return nil, fmt.Errorf("metal: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	if err := d.prepare(ctx, &e.code, p.Progress); err != nil {
		return nil, fmt.Errorf("metal: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	if e.program, err = bound.New(p, d.owns); err != nil {
		return nil, fmt.Errorf("metal: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	e.program.Profile = timed
	if err := d.fits(g, e.program.Places); err != nil { // only weights have places yet
		return nil, fmt.Errorf("metal: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	e.code.settle()
	d.labelAll(g, func(root ir.MemID) backend.Place { return e.program.Places[root] })
	return e, nil
}

// prepare makes the pipelines of a plan and checks its dispatches against their limits.
func (d *Device) prepare(ctx context.Context, c *code, progress func(float64)) error {
	p := c.plan
	var errs []error
	c.pipes, errs = d.pipelines.all(ctx, p.Graph, p.Pipelines, c.stored != nil, progress)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.Check(func(i int32) (plan.Limits, error) { return c.pipes[i].limits(d), errs[i] })
}

// limits returns the max threads and threadgroup memory of dispatches of a pipeline.
func (p *pipeline) limits(d *Device) plan.Limits {
	return plan.Limits{Threads: p.threads, Own: p.static, Memory: d.groupMax}
}

// settle copies what is the same in every replay, data and labels, out of Go's memory for messages.
func (c *code) settle() {
	if len(c.plan.Data) > 0 {
		c.data = c.memory.Bytes(c.plan.Data)
	}
	objc.Pool(func() {
		for _, l := range c.plan.Labels {
			c.labels = append(c.labels, objc.Retain(objc.String(l)))
		}
		for _, b := range c.plan.Buffers {
			name := objc.ID(0)
			if b.Label != "" {
				name = objc.Retain(objc.String(b.Label))
			}
			c.names = append(c.names, name)
		}
	})
}

func (c *code) close() error {
	for _, o := range c.labels {
		objc.Release(o)
	}
	for _, o := range c.names {
		objc.Release(o)
	}
	c.labels, c.names = nil, nil
	return c.memory.Close()
}

// Close implements [backend.Executable].
func (e *executable) Close() error { return e.code.close() }

// NewStates implements [backend.Executable].
func (e *executable) NewStates(places []backend.Place) (backend.States, error) {
	g := e.program.Graph
	s, err := e.program.States(places)
	if err != nil {
		return nil, fmt.Errorf("metal: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	e.device.labelAll(g, s.Place)
	return s, nil
}
