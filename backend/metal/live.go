//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/ir"
)

// encoder is a command buffer of a live recording. Each command is lowered to operations when it is given,
// with the places that memories have then; Run turns the operations into messages.
type encoder struct {
	x       *executor
	scope   *backend.Scope
	plan    *plan.Live
	code    code
	params  []uint32
	guard   *guard
	samples *samples
}

// Open implements [hostqueue.Executor].
func (x *executor) Open(r backend.Recording) (hostqueue.Encoder, error) {
	c := &encoder{x: x, scope: r.Scope, code: code{how: x.live()}}
	c.plan = plan.NewLive(r.Scope, x.planning(x.live(), r.Profile || x.options.Profile), c)
	return c, nil
}

// Holds implements [plan.Maker].
func (c *encoder) Holds(p backend.Place, n int64) error {
	_, err := c.x.own(p, n)
	return err
}

// Placed implements [plan.Maker].
func (c *encoder) Placed(m *ir.Memory, p backend.Place) { c.x.label(p, m) }

// Make implements [plan.Maker].
func (c *encoder) Make(p *plan.Pipeline) (plan.Limits, error) {
	made, err := c.x.pipelines.find(context.Background(), c.scope.Graph, p, false)
	if err == nil {
		c.code.pipes = append(c.code.pipes, made)
	}
	return made.limits(c.x.Device), err
}

// Encode implements [hostqueue.Encoder].
func (c *encoder) Encode(n ir.Node) error {
	if err := c.plan.Encode(n); err != nil {
		return fmt.Errorf("metal: %w", err)
	}
	return nil
}

// Copy implements [hostqueue.Encoder].
func (c *encoder) Copy(dst, src backend.Place, n int64) error { return c.plan.Copy(dst, src, n) }

// Commit implements [hostqueue.Encoder].
func (c *encoder) Commit(label string, _ ir.CommitOrder) error {
	c.params = slices.Clone(c.scope.Params)
	c.code.plan = c.plan.Finish(label)
	c.code.settle()
	var err error
	c.guard, err = c.x.newGuard(c.code.plan)
	if n := len(c.code.plan.Timed); n > 0 {
		c.samples = c.x.newSamples(n, c.code.how)
	}
	return err
}

// Run implements [hostqueue.Encoder].
func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	if len(c.code.plan.Buffers) == 0 {
		return nil
	}
	turn := c.x.turns.take()
	defer c.x.turns.end(turn)
	defer func() { c.x.counts.sampled(&r.Times) }()
	if err := c.x.turns.wait(ctx, turn); err != nil {
		return err
	}
	s := sending{
		code: &c.code, queue: c.x.id, places: placesOf(c.plan.Places), params: c.params, guard: c.guard.at(), device: c.x.Device,
		samples: c.samples, fence: c.x.fence,
	}
	var done committed
	c.samples.begin(c.x.Device)
	before := time.Now()
	err := c.x.commit(ctx, &s, &done)
	r.Times.Encode = time.Since(before)
	c.x.turns.end(turn)
	if failed := c.x.wait(&done, c.code.plan, r); err == nil {
		err = failed
	}
	if err == nil {
		timed := c.code.plan.Timed
		c.samples.end(c.x.Device, &r.Times, len(timed), func(i int) ir.Command { return c.plan.Nodes[timed[i]].(ir.Command) })
		err = c.guard.check(func(i int) string { return c.plan.Describe(c.code.plan.Guards[i]) })
	}
	return err
}

// Close implements [hostqueue.Encoder].
func (c *encoder) Close() {
	_ = c.code.close()
	c.guard.close()
	c.samples.close()
}
