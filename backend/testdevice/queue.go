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
	last, open := q.d.last, q.d.uncommitted
	q.d.mu.Unlock()
	if last != nil {
		<-last.done
	}
	if open > 0 {
		return fmt.Errorf("test device: %d command buffers were neither committed nor discarded", open)
	}
	return nil
}

type commandBuffer struct {
	d      *Device
	label  string
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
	n, before := d.committed, d.last
	d.committed++
	d.last = c
	params := append([]uint32(nil), s.Params...)
	go c.run(ctx, n, before, x, params, used)
	return nil
}

func (c *commandBuffer) run(ctx context.Context, n int, before *commandBuffer, x backend.Executable, params []uint32, used []*buffer) {
	d := c.d
	if before != nil {
		<-before.done
	}
	d.mu.Lock()
	for d.options.Hold && d.released <= n {
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
}

func (c *commandBuffer) Wait() (backend.Times, error) {
	if s := c.Status(); s == backend.Uncommitted || s == backend.Discarded {
		return backend.Times{}, fmt.Errorf("test device: a command buffer is %s: it never ends", s)
	}
	<-c.done
	return c.times, c.err
}
