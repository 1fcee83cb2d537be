//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"sync"
)

// turns lets submissions, which goroutines execute in parallel, encode and commit in the order in which
// they were given: each takes a turn, waits until all earlier turns have ended, and ends its own.
type turns struct {
	mu    sync.Mutex
	cond  *sync.Cond
	first uint64          // the turn that may commit now
	next  uint64          // the turn that take returns next
	over  map[uint64]bool // turns after first that have ended
}

func newTurns() *turns {
	t := &turns{over: map[uint64]bool{}}
	t.cond = sync.NewCond(&t.mu)
	return t
}

// take returns the next turn.
func (t *turns) take() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	return t.next - 1
}

// wait waits until all turns before n have ended. If ctx ends first, its cause is returned.
func (t *turns) wait(ctx context.Context, n uint64) error {
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		t.cond.Broadcast()
		t.mu.Unlock()
	})()
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.first < n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.cond.Wait()
	}
	return nil
}

// end ends a turn; it may be called again for the same turn.
func (t *turns) end(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < t.first {
		return
	}
	t.over[n] = true
	for t.over[t.first] {
		delete(t.over, t.first)
		t.first++
	}
	t.cond.Broadcast()
}
