package testdevice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

type queue struct{ d *Device }

// NewQueue returns the device's queue; see [backend.NewQueue].
func (d *Device) NewQueue() backend.Queue { return queue{d} }

func (q queue) CommandBuffer() (backend.CommandBuffer, error) {
	d := q.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uncommitted >= d.options.MaxUncommitted {
		return nil, fmt.Errorf("test device: %d command buffers are uncommitted: Metal would block for ever", d.uncommitted)
	}
	d.uncommitted++
	return &commandBuffer{d: d, done: make(chan struct{})}, nil
}

func (q queue) Close() error {
	q.d.mu.Lock()
	queued, open := q.d.queued, q.d.uncommitted
	q.d.mu.Unlock()
	for _, c := range queued {
		<-c.done
	}
	if open > 0 {
		return fmt.Errorf("test device: %d command buffers were neither committed nor discarded", open)
	}
	return nil
}

type commandBuffer struct {
	d      *Device
	label  string
	n      int            // in the order of commits
	after  int            // it waits for all below this number
	status backend.Status // guarded by d.mu
	done   chan struct{}
	times  backend.Times // these two: by done
	err    error
}

func (c *commandBuffer) Status() backend.Status {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.status
}

func (c *commandBuffer) Discard() {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.status == backend.Uncommitted {
		c.status = backend.Discarded
		c.d.uncommitted--
	}
}

func (c *commandBuffer) Commit(ctx context.Context, s backend.Submission) error {
	for _, n := range s.Program.Graph.Nodes {
		if _, ok := n.(*ir.Commit); ok {
			c.Discard()
			return fmt.Errorf("test device: a command buffer holds a commit")
		}
	}
	x, err := c.d.Compile(s.Program)
	if err != nil {
		c.Discard()
		return err
	}
	d := c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.status != backend.Uncommitted {
		d.mu.Unlock()
		err := errors.Join(fmt.Errorf("test device: a command buffer is %s", c.status), x.Close())
		d.mu.Lock()
		return err
	}
	c.status = backend.Committed
	d.uncommitted--
	var used []*buffer
	for _, b := range s.Program.Buffers {
		if b, ok := b.(*buffer); ok {
			b.users++
			used = append(used, b)
		}
	}
	if d.staged {
		d.staged = false
		d.flushes++
	}
	c.label = s.Label
	c.n = d.committed
	d.committed++
	if s.Order != ir.OrderNone {
		d.boundary = c.n
	}
	c.after = d.boundary
	d.queued = append(d.queued, c)
	params := append([]uint32(nil), s.Params...)
	go c.run(ctx, x, params, used)
	return nil
}

// turn reports whether c is the one to execute now: an order lets it, and among
// those that an order lets it is the first, or the last if the device is perverse.
func (d *Device) turn(c *commandBuffer) bool {
	ready := func(c *commandBuffer) bool {
		if d.options.Hold && d.released <= c.n {
			return false
		}
		for _, b := range d.queued[:c.after] {
			if !b.status.Ended() {
				return false
			}
		}
		return true
	}
	if !ready(c) {
		return false
	}
	for _, b := range d.queued {
		if b.status == backend.Scheduled || b.status == backend.Committed && b != c && (b.n > c.n) == d.options.Reverse && ready(b) {
			return false
		}
	}
	return true
}

func (c *commandBuffer) run(ctx context.Context, x backend.Executable, params []uint32, used []*buffer) {
	d, n := c.d, c.n
	d.mu.Lock()
	for !d.turn(c) {
		d.wake.Wait()
	}
	c.status = backend.Scheduled
	lost := 0
	for _, b := range used {
		if b.lost {
			lost++
		}
	}
	d.mu.Unlock()

	c.times.Start = time.Since(d.begin)
	var err error
	switch {
	case d.options.Fault != nil && d.options.Fault(n, c.label) != nil:
		err = d.options.Fault(n, c.label)
	case lost > 0:
		err = fmt.Errorf("page fault: %d buffers were freed while this command buffer used them", lost)
	default:
		var pending backend.Pending
		var t backend.Timing
		if pending, err = x.Submit(ctx, params); err == nil {
			t, err = pending.Wait()
		}
		if room := d.options.Samples / 2; len(t.Dispatches) > room {
			c.times.Unsampled = len(t.Dispatches) - room
			t.Dispatches = t.Dispatches[:room]
		}
		if d.options.Sampling != backend.SampleNothing {
			c.times.Dispatches = t.Dispatches
		}
	}
	c.times.End = time.Since(d.begin)
	err = errors.Join(err, x.Close())

	d.mu.Lock()
	for _, b := range used {
		if b.users--; b.users == 0 && b.closed {
			err = errors.Join(err, b.Buffer.Close())
		}
	}
	c.status = backend.Completed
	if err != nil {
		c.status, c.err = backend.Failed, fmt.Errorf("command buffer %q: %w", c.label, err)
	}
	d.mu.Unlock()
	close(c.done)
	d.wake.Broadcast()
}

func (c *commandBuffer) Wait() (backend.Times, error) {
	if s := c.Status(); s == backend.Uncommitted || s == backend.Discarded {
		return backend.Times{}, fmt.Errorf("test device: a command buffer is %s: it never ends", s)
	}
	<-c.done
	return c.times, c.err
}
