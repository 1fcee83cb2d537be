package hostqueue

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// commandBuffer implements [backend.CommandBuffer] until it is committed or discarded.
type commandBuffer struct {
	q       *Queue
	label   string
	encoder Encoder // nil: committed or discarded
	err     error   // the error of a command that could not be encoded; Commit returns it
}

// CommandBuffer implements [backend.Queue].
func (q *Queue) CommandBuffer(ctx context.Context, s backend.Recording) (backend.CommandBuffer, error) {
	if err := q.room(ctx); err != nil {
		return nil, err
	}
	encoder, err := q.do.Open(s)
	if err != nil {
		q.leave()
		return nil, err
	}
	return &commandBuffer{q: q, label: s.Label, encoder: encoder}, nil
}

// room waits until there is room for one more open command buffer, and counts it.
func (q *Queue) room(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	most := q.options.MaxUncompleted
	if most > 0 && q.open+q.buffers >= most && ctx.Done() != nil {
		defer context.AfterFunc(ctx, q.Wake)()
	}
	for {
		if q.closed {
			return q.gone()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if most > 0 && q.open >= most {
			return fmt.Errorf("%s: %d command buffers are open, a queue holds no more that are not completed: commit or discard them", q.do.Name(), q.open)
		}
		if most == 0 || q.open+q.buffers < most {
			q.open++
			return nil
		}
		q.wake.Wait()
	}
}

// leave counts an open command buffer as closed.
func (q *Queue) leave() {
	q.mu.Lock()
	q.open--
	q.wake.Broadcast()
	q.mu.Unlock()
}

func (c *commandBuffer) Encode(n ir.Node) error {
	if c.encoder == nil {
		return c.gone("Encode")
	}
	if err := c.encoder.Encode(n); err != nil {
		c.err = err
		return err
	}
	return nil
}

func (c *commandBuffer) Copy(dst, src backend.Place, n int64) error {
	if c.encoder == nil {
		return c.gone("Copy")
	}
	err := dst.Holds(n)
	if err == nil {
		err = src.Holds(n)
	}
	if err == nil {
		err = c.encoder.Copy(dst, src, n)
	}
	if err != nil {
		c.err = err
	}
	return err
}

func (c *commandBuffer) gone(method string) error {
	return fmt.Errorf("%s: %s: the command buffer was committed or discarded", c.q.do.Name(), method)
}

func (c *commandBuffer) Discard() {
	if c.encoder == nil {
		return
	}
	c.encoder.Close()
	c.encoder = nil
	c.q.leave()
}

func (c *commandBuffer) Commit(ctx context.Context, label string, order ir.CommitOrder) (backend.Pending, error) {
	encoder := c.encoder
	if encoder == nil {
		return nil, c.gone("Commit")
	}
	if c.err != nil {
		c.Discard()
		return nil, c.err
	}
	label = cmp.Or(label, c.label)
	if err := encoder.Commit(label, order); err != nil {
		c.Discard()
		return nil, err
	}
	what := "command buffer"
	if label != "" {
		what = fmt.Sprintf("command buffer %q", label)
	}
	e := &entry{Completion: backend.NewCompletion(what), ctx: ctx, operation: encoder, buffer: true}
	e.run = func(ctx context.Context, r *backend.Result) error {
		r.Torn = true
		err := encoder.Run(ctx, r)
		r.Torn = err != nil
		return err
	}
	e.close = encoder.Close
	if err := c.q.push(e, order); err != nil {
		c.Discard()
		return nil, err
	}
	c.encoder = nil
	return e, nil
}
