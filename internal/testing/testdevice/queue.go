package testdevice

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/ir"
)

type queue struct {
	*hostqueue.Queue
	inner  backend.Queue // the inner device's queue for commands
	copies backend.Queue // and that for transfers, which hostqueue may run beside commands
	d      *Device
	closed bool
}

func (q *queue) executor() hostqueue.Executor { return &executor{q} }

// Close implements [backend.Queue].
func (q *queue) Close() error {
	err := q.Queue.Close()
	if q.closed {
		return err
	}
	q.closed = true
	q.d.mu.Lock()
	delete(q.d.queues, q)
	q.d.mu.Unlock()
	return errors.Join(err, q.inner.Close(), q.copies.Close())
}

// executor does the operations of a queue on the queues of the inner device.
type executor struct{ q *queue }

func (x *executor) Name() string { return "test device" }

// commit gives a command buffer its number, and counts it as a user of its buffers.
func (d *Device) commit(operation any, used []*buffer) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n = d.committed
	d.committed++
	d.numbers[operation] = n
	for _, b := range used {
		b.users++
	}
	if d.staged {
		d.staged = false
		d.flushes++
	}
	return n
}

// end forgets a command buffer, and closes buffers that were closed while it used them.
func (d *Device) end(operation any, used []*buffer) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.numbers, operation)
	for _, b := range used {
		if b.users--; b.users == 0 && b.closed {
			err = errors.Join(err, b.Buffer.Close())
		}
	}
	return err
}

// fault returns the error with which a command buffer ends instead of running, nil if it runs.
func (d *Device) fault(n int, label string, used []*buffer) error {
	if d.options.Fault != nil {
		if err := d.options.Fault(n, label); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	lost := 0
	for _, b := range used {
		if b.lost {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Errorf("page fault: %d buffers were freed while this command buffer used them", lost)
	}
	return nil
}

// late waits for Options.Late, or until ctx ends.
func (d *Device) late(ctx context.Context) {
	if d.options.Late <= 0 {
		return
	}
	select {
	case <-time.After(d.options.Late):
	case <-ctx.Done():
	}
}

// finish adds the times of a command buffer of the inner device to r, and returns its error
// without the inner device's name for it.
func finish(r *backend.Result, p backend.Pending) error {
	x := p.Result()
	if r.Times.Begin.IsZero() {
		r.Times.Begin = x.Times.Begin
	}
	r.Times.End = x.Times.End
	r.Times.Commands = append(r.Times.Commands, x.Times.Commands...)
	if x.Err == nil {
		return nil
	}
	return errors.Unwrap(x.Err)
}

// sampled removes the times for which the device has no room.
func (d *Device) sampled(t *backend.Times) {
	if room := d.options.Samples / 2; len(t.Commands) > room {
		t.Unsampled = len(t.Commands) - room
		t.Commands = t.Commands[:room]
	}
	if d.options.Sampling == backend.SampleNothing {
		t.Commands = nil
	}
}

// usedBy lists the buffers that a submission uses.
func usedBy(s *backend.Submission) (used []*buffer) {
	used = append(used, s.Executable.(*executable).used...)
	used = append(used, s.Frame.(*frame).used...)
	if set, ok := s.States.(*states); ok && set != nil {
		used = append(used, set.used...)
	}
	return used
}

func (x *executor) Accept(s *backend.Submission) error {
	e, ok := s.Executable.(*executable)
	if !ok || e.d != x.q.d {
		return errors.New("test device: the executable is of another device")
	}
	if f, ok := s.Frame.(*frame); !ok || f.owner != e {
		return errors.New("test device: the frame is of another executable")
	}
	if set, ok := s.States.(*states); ok && set.owner != e {
		return errors.New("test device: the states are of another executable")
	}
	if err := s.Fits(&e.program, s.Frame.(*frame).room); err != nil {
		return fmt.Errorf("test device: %w", err)
	}
	x.q.d.commit(s, usedBy(s))
	e.accept(s)
	return nil
}

func (x *executor) Upload(ctx context.Context, dst backend.Place, data []byte) error {
	to, err := x.q.d.unwrap(dst)
	if err != nil {
		return err
	}
	err = backend.Wait(context.Background())(x.q.copies.Upload(ctx, to, data))
	x.q.d.late(ctx)
	return err
}

func (x *executor) Download(ctx context.Context, data []byte, src backend.Place) error {
	from, err := x.q.d.unwrap(src)
	if err != nil {
		return err
	}
	x.q.d.late(ctx)
	return backend.Wait(context.Background())(x.q.copies.Download(ctx, data, from))
}

func (x *executor) Copy(ctx context.Context, dst, src backend.Place, n int64) error {
	to, err := x.q.d.unwrap(dst)
	if err != nil {
		return err
	}
	if own, ok := src.Buffer.(*buffer); ok && own.d == x.q.d {
		if src, err = x.q.d.unwrap(src); err != nil {
			return err
		}
	}
	err = backend.Wait(context.Background())(x.q.copies.Copy(ctx, to, src, n))
	x.q.d.late(ctx)
	return err
}

// encoder is a command buffer of the inner queue, which is committed when Run is called.
type encoder struct {
	x      *executor
	outer  *backend.Scope
	scope  backend.Scope
	inner  backend.CommandBuffer
	seen   map[*buffer]bool
	used   []*buffer
	number int
	label  string
	state  encoderState
}

type encoderState uint8

const (
	isOpen encoderState = iota
	isCommitted
	hasRun
)

func (x *executor) Open(r backend.Recording) (hostqueue.Encoder, error) {
	c := &encoder{x: x, outer: r.Scope, scope: backend.Scope{Graph: r.Scope.Graph}, seen: map[*buffer]bool{}}
	r.Scope, r.Label = &c.scope, ""
	var err error
	if c.inner, err = x.q.inner.CommandBuffer(context.Background(), r); err != nil {
		return nil, err
	}
	x.q.d.count(&x.q.d.open, 1)
	return c, nil
}

func (c *encoder) Encode(n ir.Node) error {
	if _, ok := n.(*ir.Commit); ok {
		return errors.New("test device: a command buffer holds a commit")
	}
	var err error
	if cmd, ok := n.(ir.Command); ok {
		cmd.EachView(func(v *ir.View) {
			root, _ := c.scope.Graph.Root(v.Mem)
			for len(c.scope.Places) <= int(root) {
				c.scope.Places = append(c.scope.Places, backend.Place{})
			}
			if int(root) < len(c.outer.Places) && err == nil {
				if c.scope.Places[root], err = c.place(c.outer.Places[root]); err != nil {
					err = fmt.Errorf("test device: memory %%%s %w", ir.QuoteName(c.scope.Graph.Memories[root].Name), err)
				}
			}
		})
	}
	if err != nil {
		return err
	}
	c.scope.Params = c.outer.Params
	return c.inner.Encode(n)
}

// place unwraps p and notes that the command buffer uses its buffer.
func (c *encoder) place(p backend.Place) (backend.Place, error) {
	inner, err := c.x.q.d.unwrap(p)
	if b, ok := p.Buffer.(*buffer); ok && err == nil && !c.seen[b] {
		c.seen[b] = true
		c.used = append(c.used, b)
	}
	return inner, err
}

func (c *encoder) Copy(dst, src backend.Place, n int64) error {
	to, err := c.place(dst)
	if err != nil {
		return err
	}
	from, err := c.place(src)
	if err != nil {
		return err
	}
	return c.inner.Copy(to, from, n)
}

func (c *encoder) Commit(label string, _ ir.CommitOrder) error {
	c.label = label
	c.scope.Params = append([]uint32(nil), c.outer.Params...)
	c.number = c.x.q.d.commit(hostqueue.Encoder(c), c.used)
	c.state = isCommitted
	c.x.q.d.count(&c.x.q.d.open, -1)
	return nil
}

func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	d := c.x.q.d
	if err := d.fault(c.number, c.label, c.used); err != nil {
		return err
	}
	p, err := c.inner.Commit(ctx, "", ir.OrderEvent)
	c.state = hasRun
	if err != nil {
		return err
	}
	err = finish(r, p)
	d.late(ctx)
	d.sampled(&r.Times)
	return err
}

func (c *encoder) Close() {
	d := c.x.q.d
	if c.state != hasRun {
		c.inner.Discard()
	}
	if c.state == isOpen {
		d.count(&d.open, -1)
		return
	}
	_ = d.end(hostqueue.Encoder(c), c.used) // only closing memory can fail, which does not matter here
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
