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
	// Replays is the number of replays that have ended; the times are of all of them together.
	Replays int
	// Wait is how long the host waited for the run. The device may have worked on it for a longer or shorter time.
	Wait time.Duration
	// Params are the values, as bits, with which the first replay ran, if commands were timed.
	Params []uint32
}

// Run is a submission of one or more replays.
type Run struct {
	pending  backend.Pending
	states   *States
	stateful bool // its graph has states
	buffers  int  // command buffers
	params   []uint32

	once   sync.Once
	before *Run // the previous run on the same states
	result backend.Result
}

// finish waits for the end of the run and records what it did to states, once.
func (r *Run) finish() *backend.Result {
	r.once.Do(func() {
		if r.before != nil {
			r.before.finish() // decides first whether the states are undefined
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
			// The run was in flight when the previous one left the states undefined.
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

// torn returns the reason why the outputs are undefined, or nil.
func (r *Run) torn() error {
	if x := r.finish(); x.Torn || x.Replays == 0 {
		return x.Err
	}
	return nil
}
