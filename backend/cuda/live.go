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

// encoder is a command buffer of a recording. What it is given becomes operations at once, with the
// places that memories have then, and launches when it runs.
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
	check := func(m *ir.Memory, p backend.Place) error {
		_, err := x.own(p, m.Size)
		return err
	}
	return &encoder{x: x, scope: r.Scope, plan: plan.NewLive(r.Scope, planning, check), profile: r.Profile}, nil
}

// Encode implements [hostqueue.Encoder].
func (c *encoder) Encode(n ir.Node) (err error) {
	g := c.scope.Graph
	d, dispatch := n.(*ir.Dispatch)
	if dispatch {
		err = plan.Arguments(g, d, 4)
	}
	if err == nil {
		err = c.plan.Encode(n)
	}
	if err == nil {
		err = c.kernels()
	}
	if i := c.plan.Pipeline(); err == nil && dispatch && i >= 0 {
		err = c.code.kernels[i].takes(c.x.Device, d)
	}
	if err != nil {
		return fmt.Errorf("cuda: %s: %w", g.Describe(n), err)
	}
	return nil
}

// kernels makes those that the plan has and that are not made.
func (c *encoder) kernels() error {
	for i := len(c.code.kernels); i < len(c.plan.Pipelines); i++ {
		k, err := c.x.load(context.Background(), c.scope.Graph, &c.plan.Pipelines[i])
		if err != nil {
			return err
		}
		c.code.kernels = append(c.code.kernels, k)
	}
	return nil
}

// Copy implements [hostqueue.Encoder].
func (c *encoder) Copy(dst, src backend.Place, n int64) error {
	_, err := c.x.own(dst, n)
	if err == nil {
		_, err = c.x.own(src, n)
	}
	if err != nil {
		return err
	}
	c.plan.Copy(dst, src, n)
	return c.kernels()
}

// Commit implements [hostqueue.Encoder].
func (c *encoder) Commit(label string, _ ir.CommitOrder) (err error) {
	c.params = slices.Clone(c.scope.Params)
	c.code.Stored = plan.Store(c.plan.Finish(label), noLimit, false)
	c.code.nodes, c.code.describe = c.plan.Nodes, c.plan.Describe
	c.code.arrange()
	c.run, err = c.x.newLaunches(&c.code)
	return err
}

// Run implements [hostqueue.Encoder].
func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	if len(c.code.steps) == 0 {
		return nil
	}
	err := c.x.gpu.Do(func() (err error) {
		end, err := driver.NewEvent(true)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end.Destroy()) }()
		before := time.Now()
		if err := errors.Join(c.x.begin.Record(c.x.stream), c.run.bring(c.x.stream, c.x.addresses(c.plan.Places), c.params)); err != nil {
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
		span, _ := end.Since(c.x.begin)
		r.Times.Begin = r.Times.End.Add(-span)
		within(&r.Times)
		return err
	})
	if err != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("cuda: %w", err)
	}
	return err
}

// Close implements [hostqueue.Encoder].
func (c *encoder) Close() { _ = c.run.close() }
