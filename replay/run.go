package replay

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
)

// Timing says how long a run took.
type Timing struct {
	backend.Times
	// Replays is how many have ended: those of a row are timed together.
	Replays int
	// Wait is how long the host waited for it, which may be longer than the device
	// worked on it, or shorter.
	Wait time.Duration
	// Params are those that the first replay ran with, as bits, if commands were timed.
	Params []uint32
}

// Run is a replay that was submitted.
type Run struct {
	pending  backend.Pending
	states   *States
	stateful bool // its graph has states
	buffers  int  // command buffers
	params   []uint32

	once   sync.Once
	before *Run // the one before it on the same states
	result backend.Result
}

// finish waits for the end and finds out what it did to states.
func (r *Run) finish() *backend.Result {
	r.once.Do(func() {
		if r.before != nil {
			r.before.finish() // what it says of the states comes first
			r.before = nil
		}
		r.result = *r.pending.Result()
		if !r.stateful {
			return
		}
		in := r.states.instance
		in.mu.Lock()
		defer in.mu.Unlock()
		switch {
		case r.states.torn != nil && r.result.Status == backend.Completed:
			// It was in flight when the one before it was torn.
			r.result.Status, r.result.Torn = backend.Failed, true
			r.result.Err = fmt.Errorf("it ran on states that are undefined: %w", r.states.torn)
		case r.result.Torn && r.states.torn == nil:
			r.states.torn = r.result.Err
		}
	})
	return &r.result
}

// Done is closed when the run has ended.
func (r *Run) Done() <-chan struct{} { return r.pending.Done() }

// Wait waits for the end; an error says what became of outputs and states, see
// [Run.Result]. If ctx ends before, Wait returns its cause and the run goes on.
func (r *Run) Wait(ctx context.Context) (Timing, error) {
	start := time.Now()
	select {
	case <-r.pending.Done():
	default:
		select {
		case <-r.pending.Done():
		case <-ctx.Done():
			return Timing{}, context.Cause(ctx)
		}
	}
	x := r.finish()
	return Timing{Times: x.Times, Replays: x.Replays, Wait: time.Since(start), Params: r.params}, x.Err
}

// Status says where the run is.
func (r *Run) Status() backend.Status { return r.pending.Status() }

// Result waits for the end and returns what became of the run.
func (r *Run) Result() *backend.Result { return r.finish() }

// torn says why the outputs are undefined, or nil.
func (r *Run) torn() error {
	if x := r.finish(); x.Torn || x.Replays == 0 {
		return x.Err
	}
	return nil
}
