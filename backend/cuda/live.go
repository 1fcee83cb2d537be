//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/backend/internal/plan"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// encoder is a command buffer of a live recording. A node becomes operations when it is encoded, with the places
// that memories have at that time; Commit makes launches of them, which Run submits.
type encoder struct {
	x       *executor
	scope   *backend.Scope
	plan    *plan.Live
	code    code
	profile bool
	params  []uint32
	run     *launches
}

// Open implements [hostqueue.Executor].
func (x *executor) Open(r backend.Recording) (hostqueue.Encoder, error) {
	c := &encoder{x: x, scope: r.Scope, profile: r.Profile, code: code{programmatic: x.programmatic}}
	c.plan = plan.NewLive(r.Scope, planning, c)
	return c, nil
}

// Holds implements [plan.Maker].
func (c *encoder) Holds(p backend.Place, n int64) error {
	_, err := c.x.own(p, n)
	return err
}

// Placed implements [plan.Maker].
func (*encoder) Placed(*ir.Memory, backend.Place) {}

// Make implements [plan.Maker].
func (c *encoder) Make(p *plan.Pipeline) (plan.Limits, error) {
	ctx := context.Background()
	k, err := c.x.find(ctx, c.scope.Graph, p)
	if err != nil {
		return plan.Limits{}, err
	}
	e := k.entry(form{values: true, waits: c.code.programmatic, mma: c.x.mma}, "", nil) // unless a constant lies in a buffer
	if err := c.x.load(ctx, k, e); err != nil {
		return plan.Limits{}, err
	}
	c.code.kernels = append(c.code.kernels, k)
	return e.limits(c.x.Device), nil
}

// Encode implements [hostqueue.Encoder].
func (c *encoder) Encode(n ir.Node) error {
	if err := c.plan.Encode(n); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// Copy implements [hostqueue.Encoder].
func (c *encoder) Copy(dst, src backend.Place, n int64) error { return c.plan.Copy(dst, src, n) }

// Commit implements [hostqueue.Encoder].
func (c *encoder) Commit(label string, _ ir.CommitOrder) (err error) {
	c.params = append(slices.Clone(c.scope.Params), 0)
	c.code.Stored = plan.Store(c.plan.Finish(label), noLimit, false)
	c.code.nodes, c.code.describe = c.plan.Nodes, c.plan.Describe
	c.code.mma, c.code.multiprocessors = c.x.mma, c.x.Multiprocessors
	c.code.arrange(nil, c.x.limits.grid)
	if c.x.ranges != nil {
		c.code.mark()
	}
	for i := range c.code.steps { // most were loaded when they were encoded
		if s := &c.code.steps[i]; err == nil {
			err = c.x.load(context.Background(), s.kernel, s.entry)
		}
	}
	if err != nil {
		return err
	}
	c.run, err = c.x.newLaunches(&c.code)
	return err
}

// Run implements [hostqueue.Encoder].
func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	if len(c.code.steps) == 0 {
		return nil
	}
	err := c.x.do(func() (err error) {
		end, err := driver.NewEvent(true)
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				c.x.settle()
			}
			err = errors.Join(err, end.Destroy())
		}()
		before := time.Now()
		if err := errors.Join(c.x.begin.Record(c.x.stream), c.run.bring(c.x.stream, c.x.addresses(c.plan.Places), c.params, nil)); err != nil {
			return err
		}
		if c.profile {
			err = c.x.timed(c.run, r, false)
		} else {
			err = c.x.start(ctx, c.run, false)
		}
		r.Times.Encode = time.Since(before)
		err = errors.Join(err, end.Record(c.x.stream), end.Synchronize())
		r.Times.End = time.Now()
		span := time.Duration(0)
		if err == nil || errors.Is(err, context.Cause(ctx)) {
			span, _ = end.Since(c.x.begin)
		}
		r.Times.Begin = r.Times.End.Add(-span)
		r.Times.Fit(0)
		return err
	})
	if err != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("cuda: %w", err)
	}
	return err
}

// Close implements [hostqueue.Encoder].
func (c *encoder) Close() { _ = c.run.close() }
