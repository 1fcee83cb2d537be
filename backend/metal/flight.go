//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"sync"

	"github.com/mlxc/mlxc/internal/objc"
)

// flight lists the open queues of a device, and the command buffers that were committed and not waited
// for, so that a capture can wait for all of them.
type flight struct {
	mu      sync.Mutex
	queues  map[*queue]bool
	buffers map[objc.ID]bool
}

func newFlight() *flight {
	return &flight{queues: map[*queue]bool{}, buffers: map[objc.ID]bool{}}
}

func (f *flight) open(q *queue) {
	f.mu.Lock()
	f.queues[q] = true
	f.mu.Unlock()
}

func (f *flight) closed(q *queue) {
	f.mu.Lock()
	delete(f.queues, q)
	f.mu.Unlock()
}

// begin adds command buffers that were committed; end removes one that has completed.
func (f *flight) begin(buffers []objc.ID) {
	f.mu.Lock()
	for _, b := range buffers {
		f.buffers[b] = true
	}
	f.mu.Unlock()
}

func (f *flight) end(buffer objc.ID) {
	f.mu.Lock()
	delete(f.buffers, buffer)
	f.mu.Unlock()
}

// land waits until all command buffers that are committed have completed, those of every queue.
func (f *flight) land() {
	f.mu.Lock()
	var all []objc.ID
	for b := range f.buffers {
		all = append(all, objc.Retain(b))
	}
	f.mu.Unlock()
	objc.Pool(func() {
		for _, b := range all {
			objc.WaitUntilCompleted.Send(b)
			objc.Release(b)
		}
	})
}

// drain waits until every operation that any queue of the device was given has ended. It returns the
// cause of ctx only: failures are reported by the operations themselves.
func (f *flight) drain(ctx context.Context) error {
	f.mu.Lock()
	var all []*queue
	for q := range f.queues {
		all = append(all, q)
	}
	f.mu.Unlock()
	for _, q := range all {
		p, err := q.Event()
		if err != nil {
			continue // it was closed meanwhile
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
