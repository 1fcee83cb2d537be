package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// Queue executes command buffers, for those who dispatch as they go instead of
// replaying a whole graph. It may be used by several goroutines.
type Queue interface {
	// CommandBuffer returns a new command buffer. It is uncommitted until Commit
	// or Discard; a queue holds at most so many uncommitted ones (Metal: 64) and
	// refuses another.
	CommandBuffer() (CommandBuffer, error)
	// Close waits for what was committed. Uncommitted command buffers are an error.
	Close() error
}

// Submission is what a command buffer executes.
type Submission struct {
	Label string // for people and errors
	// Program holds the commands of this one command buffer: its graph has no
	// commits. The memories may be more than it binds.
	Program *Program
	// Params as in [Executable.Submit].
	Params []uint32
	// Order is what orders it after everything that was committed before.
	Order ir.CommitOrder
}

// CommandBuffer is one unit of submission.
type CommandBuffer interface {
	// Commit hands s over; an error means that nothing was submitted and that the
	// command buffer is discarded. What the device cannot do is such an error.
	// The host may change the program's graph and params after Commit returns; the
	// buffers must stay until the command buffer has ended.
	Commit(ctx context.Context, s Submission) error
	// Discard abandons an uncommitted command buffer.
	Discard()
	Status() Status
	// Wait blocks until a committed command buffer has ended. It may be called
	// more than once.
	Wait() (Times, error)
}

// Status is where a command buffer is in its life.
type Status uint8

// The states, in the order of a life.
const (
	Uncommitted Status = iota
	Committed
	Scheduled // it executes
	Completed
	Failed // an error ended it: what it writes is undefined
	Discarded
)

var statusNames = [...]string{"uncommitted", "committed", "scheduled", "completed", "failed", "discarded"}

func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return statusNames[s]
}

// Ended reports whether nothing of the command buffer is still to come.
func (s Status) Ended() bool { return s >= Completed }

// Times are those of one command buffer on the device's clock, from the
// queue's beginning.
type Times struct {
	Start, End time.Duration
	// Dispatches holds an entry for each sampled command when Program.Profile is set.
	Dispatches []DispatchTime
	// Unsampled is the number of commands that the device had no room to sample.
	Unsampled int
}

// MaxUncommitted is the number of uncommitted command buffers that a queue of
// Metal holds.
const MaxUncommitted = 64

// NewQueue returns a queue of d: its own if it has one (a method NewQueue), else
// one that compiles each command buffer when it is committed and executes one
// after another, on a goroutine of their own.
func NewQueue(d Device) Queue {
	if q, ok := d.(interface{ NewQueue() Queue }); ok {
		return q.NewQueue()
	}
	return &queue{device: d, begin: time.Now()}
}

type queue struct {
	device Device
	begin  time.Time

	mu          sync.Mutex
	uncommitted int
	last        *commandBuffer // the last that was committed
}

func (q *queue) CommandBuffer() (CommandBuffer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.uncommitted >= MaxUncommitted {
		return nil, fmt.Errorf("%s: %d command buffers are uncommitted, a queue holds no more: commit or discard them", q.device.Name(), q.uncommitted)
	}
	q.uncommitted++
	return &commandBuffer{queue: q, done: make(chan struct{})}, nil
}

func (q *queue) Close() error {
	q.mu.Lock()
	last, open := q.last, q.uncommitted
	q.mu.Unlock()
	if last != nil {
		<-last.done
	}
	if open > 0 {
		return fmt.Errorf("%s: %d command buffers were neither committed nor discarded", q.device.Name(), open)
	}
	return nil
}

type commandBuffer struct {
	queue *queue
	label string
	done  chan struct{}

	status Status // guarded by queue.mu
	times  Times  // these two: by done
	err    error
}

func (c *commandBuffer) Status() Status {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	return c.status
}

// leave ends the time uncommitted.
func (c *commandBuffer) leave(to Status) error {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	if c.status != Uncommitted {
		return fmt.Errorf("a command buffer is %s, not uncommitted", c.status)
	}
	c.status = to
	c.queue.uncommitted--
	return nil
}

func (c *commandBuffer) Discard() {
	if c.leave(Discarded) == nil {
		close(c.done)
	}
}

func (c *commandBuffer) Commit(ctx context.Context, s Submission) error {
	exec, err := c.queue.device.Compile(s.Program)
	if err != nil {
		c.Discard()
		return err
	}
	if err := c.leave(Committed); err != nil {
		return errors.Join(err, exec.Close())
	}
	q := c.queue
	q.mu.Lock()
	before := q.last
	q.last = c
	q.mu.Unlock()
	c.label = s.Label
	params := append([]uint32(nil), s.Params...)
	go func() {
		if before != nil {
			<-before.done
		}
		c.run(ctx, exec, params)
	}()
	return nil
}

func (c *commandBuffer) run(ctx context.Context, exec Executable, params []uint32) {
	c.set(Scheduled)
	c.times.Start = time.Since(c.queue.begin)
	pending, err := exec.Submit(ctx, params)
	var t Timing
	if err == nil {
		t, err = pending.Wait()
	}
	c.times.End = time.Since(c.queue.begin)
	c.times.Dispatches = t.Dispatches
	if err = errors.Join(err, exec.Close()); err != nil {
		c.err = fmt.Errorf("command buffer %q: %w", c.label, err)
		c.set(Failed)
	} else {
		c.set(Completed)
	}
	close(c.done)
}

func (c *commandBuffer) set(s Status) {
	c.queue.mu.Lock()
	c.status = s
	c.queue.mu.Unlock()
}

func (c *commandBuffer) Wait() (Times, error) {
	if s := c.Status(); s == Uncommitted || s == Discarded {
		return Times{}, fmt.Errorf("a command buffer is %s: it never ends", s)
	}
	<-c.done
	return c.times, c.err
}
