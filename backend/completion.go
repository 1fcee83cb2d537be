package backend

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Completion is the [Pending] that devices use. A device makes one when it accepts an operation,
// calls Begin when it begins to work on it, and End, once, when it has ended.
type Completion struct {
	what   string // for errors
	status atomic.Uint32
	done   chan struct{}
	result Result // may be read once done is closed
}

// NewCompletion returns an operation that was submitted just now. what is its name in errors.
func NewCompletion(what string) *Completion {
	c := &Completion{what: what, done: make(chan struct{})}
	c.result.Times.Submitted = time.Now()
	return c
}

// Begin sets the status to Running.
func (c *Completion) Begin() { c.status.Store(uint32(Running)) }

// End ends the operation with a result. The time when it was submitted is filled in.
func (c *Completion) End(r Result) {
	r.Times.Submitted = c.result.Times.Submitted
	if r.Err != nil && c.what != "" {
		r.Err = fmt.Errorf("%s: %w", c.what, r.Err)
	}
	c.result = r
	c.status.Store(uint32(r.Status))
	close(c.done)
}

// Done implements [Pending].
func (c *Completion) Done() <-chan struct{} { return c.done }

// Status implements [Pending].
func (c *Completion) Status() Status { return Status(c.status.Load()) }

// Wait implements [Pending].
func (c *Completion) Wait(ctx context.Context) error {
	select {
	case <-c.done: // takes precedence if ctx has ended as well
		return c.result.Err
	default:
	}
	select {
	case <-c.done:
		return c.result.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Result implements [Pending].
func (c *Completion) Result() *Result {
	<-c.done
	return &c.result
}
