package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Queue executes operations in the order in which they were given to it. An operation begins
// when all earlier ones have ended, with three exceptions: a replay begins as early as the end
// of its graph allows after a replay of the same executable, a command buffer as early as its
// [ir.CommitOrder] says, and an upload, download or copy may run beside replays and other such
// transfers, unless they share a byte that one of them writes.
//
// If a method returns an error, nothing was submitted. A later failure is reported by the
// operation's [Pending], and fails the queue: operations after it that have not begun, and all
// that are given later, end with [ErrNotExecuted] and the first error. An operation that its
// context aborts does not fail the queue.
//
// If the context of an operation ends, the operation is aborted, also while it runs. Waiting
// has a context of its own.
type Queue interface {
	// Submit starts replays of an executable.
	Submit(ctx context.Context, s Submission) (Pending, error)
	// CommandBuffer begins a command buffer. Where as many as [Info.MaxUncompleted] are
	// begun and not completed, it waits; if all of them are open, that is an error.
	CommandBuffer(ctx context.Context, s Recording) (CommandBuffer, error)
	// Upload copies data to dst. data must stay as it is until the end.
	Upload(ctx context.Context, dst Place, data []byte) (Pending, error)
	// Download copies src to data, which holds the bytes at the end.
	Download(ctx context.Context, data []byte, src Place) (Pending, error)
	// Copy copies n bytes. dst is of this device. src may be of another device, whose queues
	// do not wait for the copy, nor it for them: Await what writes src. They must not overlap.
	Copy(ctx context.Context, dst, src Place, n int64) (Pending, error)
	// Event returns an operation that ends when all earlier ones have ended.
	Event() (Pending, error)
	// Await makes all later operations wait until p has ended, which may be an operation of
	// any queue of any device. If p fails, so does this queue.
	Await(p Pending) (Pending, error)
	// Err returns the error that has failed the queue, or nil.
	Err() error
	// Close waits for all operations. It is an error if command buffers are open.
	Close() error
}

// Submission is one or more replays of an executable, for [Queue.Submit].
type Submission struct {
	Label      string // for people and errors
	Executable Executable
	// Frame is of the executable, and its last submission has ended.
	Frame Frame
	// States are of the executable; nil if its graph has none.
	States States
	// Params holds the value of every param of the graph, in order: a u32, or the bits
	// of an f32. They are valid: replay has checked bounds and constraints. The caller
	// may change the slice after Submit.
	Params []uint32
	// Replays is their number; 0 means 1.
	Replays int
	// Ended, if not nil, is called when replay i, counted from 0, has ended: for one replay
	// after another, on a goroutine of the device, which it must not block.
	Ended func(i int)
}

// Fits returns an error if a submission does not fit its program p, or has more replays than
// its frame serves. A device must check in addition that executable, frame and states are its own.
func (s *Submission) Fits(p *Program, replays int) error {
	g := p.Graph
	name := ir.QuoteName(g.Name)
	switch {
	case len(s.Params) != len(g.Params):
		return fmt.Errorf("graph %s has %d params, the submission %d", name, len(g.Params), len(s.Params))
	case s.Count() > max(1, replays):
		return fmt.Errorf("graph %s: a submission of %d replays, the frame serves %d", name, s.Count(), max(1, replays))
	case s.States != nil:
		return nil
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.State && m.Alias == ir.NoMem && p.Place(ir.MemID(i)).Buffer == nil {
			return fmt.Errorf("graph %s has states, and the submission none", name)
		}
	}
	return nil
}

// Places returns the places of the root memories of program p, by memory. states are the places of
// the submission's states.
func (s *Submission) Places(p *Program, states []Place) []Place {
	out := make([]Place, len(p.Graph.Memories))
	for i := range out {
		if out[i] = p.Place(ir.MemID(i)); out[i].Buffer == nil {
			out[i] = s.Frame.Place(ir.MemID(i))
		}
		if out[i].Buffer == nil && i < len(states) {
			out[i] = states[i]
		}
	}
	return out
}

// Count is the number of replays.
func (s *Submission) Count() int { return max(1, s.Replays) }

// Scope has the memories, kernels and params that commands of command buffers refer to. While
// command buffers are open, more may be added, and of the existing only places may change: a
// command is encoded with the places that memories have at that moment.
type Scope struct {
	// Graph has the memories, kernels and params. Its nodes are not used.
	Graph *ir.Graph
	// Places are those of all root memories that commands bind, by memory.
	Places []Place
	// Params as in [Submission.Params].
	Params []uint32
}

// Recording describes a command buffer to begin.
type Recording struct {
	Label string
	Scope *Scope
	// Profile asks for the times of each command.
	Profile bool
}

// CommandBuffer records commands one by one. One goroutine at a time may use it.
type CommandBuffer interface {
	// Encode appends a command or a mark of the scope's graph; a barrier orders as in a graph.
	// If the device cannot do it, that is an error, after which the command buffer can only be
	// discarded. The node must not change until the command buffer has ended. Commands that
	// are committed have passed [ir.Graph.Check]; those of a command buffer that is discarded
	// may be invalid, for which Encode must return an error, and not panic.
	Encode(n ir.Node) error
	// Copy appends a copy of n bytes between places of this device, ordered as if there were
	// barriers before and after it.
	Copy(dst, src Place, n int64) error
	// Commit submits the command buffer, under a name if label is not empty. order says how it
	// is ordered after all earlier operations. An error means that nothing was submitted and
	// that the command buffer is discarded.
	Commit(ctx context.Context, label string, order ir.CommitOrder) (Pending, error)
	// Discard abandons a command buffer that was not committed.
	Discard()
}

// ErrNotExecuted is wrapped by the error of an operation that a queue has not begun, since the
// queue had failed before.
var ErrNotExecuted = errors.New("not executed, for the queue has failed")

// Pending is an operation that was given to a queue.
type Pending interface {
	// Done is closed when the operation has ended.
	Done() <-chan struct{}
	// Wait waits for the end and returns the operation's error. If ctx ends before, Wait
	// returns its cause and the operation goes on.
	Wait(ctx context.Context) error
	Status() Status
	// Result waits for the end and returns the result.
	Result() *Result
}

// Result is the outcome of an operation.
type Result struct {
	Status Status // Completed, Failed or Aborted
	// Err is nil if the status is Completed, and holds the cause if not.
	Err error
	// Replays is the number of replays of a [Submission] that have ended.
	Replays int
	// Torn says that a replay or command had begun and did not end, so that what it writes,
	// outputs and states included, is undefined. If not, outputs and states are those of the
	// last replay that has ended.
	Torn  bool
	Times Times
}

// Status is the state of an operation.
type Status uint8

// The states, in the order in which an operation goes through them.
const (
	Committed Status = iota
	Running
	Completed
	Failed  // an error ended it
	Aborted // its context ended it
)

var statusNames = [...]string{"committed", "running", "completed", "failed", "aborted"}

func (s Status) String() string {
	if int(s) >= len(statusNames) {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return statusNames[s]
}

// Ended reports whether the operation has ended, in whatever way.
func (s Status) Ended() bool { return s >= Completed }
