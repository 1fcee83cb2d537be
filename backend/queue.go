package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Queue executes operations in the order in which they were given to it. An operation
// begins when what was given before has ended, with three exceptions: replays of one
// executable begin as early as the end of its graph allows, a command buffer as early as its
// [ir.CommitOrder] says, and an upload, download or copy runs beside replays and others of its
// kind with which it shares no byte that one of them writes.
//
// A method returns an error if nothing was submitted. What fails later is told by the
// operation's [Pending], and fails the queue: all that was given after it and has not begun, or
// is given later, ends with [ErrNotExecuted] and the first error. What was aborted by its
// context leaves the queue as it is.
//
// The context of an operation aborts it, also while it runs; it is not the context of
// a wait.
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
	// Copy copies n bytes. dst is of this device; src may be of another one, whose
	// queues do not know of it: Await what writes it. They do not overlap.
	Copy(ctx context.Context, dst, src Place, n int64) (Pending, error)
	// Event ends when everything given before it has.
	Event() (Pending, error)
	// Await keeps what is given after it from beginning before p has ended, an
	// operation of any queue of any device. If p fails, so does this queue.
	Await(p Pending) (Pending, error)
	// Err returns the error that has failed the queue, or nil.
	Err() error
	// Close waits for everything. Command buffers that are open are an error.
	Close() error
}

// Submission is a number of replays.
type Submission struct {
	Label      string // for people and errors
	Executable Executable
	// Frame is of the executable, and in no flight: its last submission has ended.
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

// Fits reports a submission that does not fit its program p, where its frame serves so many
// replays. A device checks besides that executable, frame and states are its own.
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

// Places returns where the root memories of its program lie, by memory. states are those of
// the submission.
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

// Scope is what the commands of command buffers refer to. While they are open, memories,
// kernels and params may be added to it. Of what is there only places may change: a command
// is encoded with the places that memories have at that moment.
type Scope struct {
	// Graph has the memories, kernels and params. Its nodes are not used.
	Graph *ir.Graph
	// Places, by memory, of all roots that commands bind.
	Places []Place
	// Params as in [Submission.Params].
	Params []uint32
}

// Recording says what a command buffer is to be like.
type Recording struct {
	Label string
	Scope *Scope
	// Profile asks for the times of each command.
	Profile bool
}

// CommandBuffer takes commands one by one, for one goroutine.
type CommandBuffer interface {
	// Encode appends a command or a mark of the scope's graph; a barrier orders as in a
	// graph. What the device cannot do is an error, after which the command buffer can
	// only be discarded. The node must stay as it is until the command buffer has ended.
	// What is committed has passed [ir.Graph.Check]. What is encoded and then discarded
	// may not have, and Encode must not fail in other ways than by an error.
	Encode(n ir.Node) error
	// Copy appends a copy of n bytes between places of this device, ordered as if barriers
	// stood on both sides of it.
	Copy(dst, src Place, n int64) error
	// Commit hands the command buffer over, under a name if label is not empty. order is what
	// orders it after everything before it. An error means that nothing was submitted and
	// that the command buffer is discarded.
	Commit(ctx context.Context, label string, order ir.CommitOrder) (Pending, error)
	// Discard abandons a command buffer that was not committed.
	Discard()
}

// ErrNotExecuted is in the error of an operation that a queue has not begun, for it had
// failed before.
var ErrNotExecuted = errors.New("not executed, for the queue has failed")

// Pending is an operation that was given to a queue.
type Pending interface {
	// Done is closed when the operation has ended.
	Done() <-chan struct{}
	// Wait waits for the end and returns the operation's error. If ctx ends before, Wait
	// returns its cause and the operation goes on.
	Wait(ctx context.Context) error
	Status() Status
	// Result waits for the end and returns all there is to know.
	Result() *Result
}

// Result is what became of an operation.
type Result struct {
	Status Status // Completed, Failed or Aborted
	// Err is nil if the status is Completed, and holds the cause if not.
	Err error
	// Replays is the number of replays of a [Submission] that have ended.
	Replays int
	// Torn says that something had begun that did not end: what it writes is undefined,
	// outputs and states too. If not, they are those of the last replay that has ended.
	Torn  bool
	Times Times
}

// Status is where an operation is in its life.
type Status uint8

// The states, in the order of a life.
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

// Ended reports whether nothing of the operation is still to come.
func (s Status) Ended() bool { return s >= Completed }
