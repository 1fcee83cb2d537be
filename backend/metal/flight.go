//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"sync"

	"github.com/mlxc/mlxc/internal/objc"
)

// flight knows the queues of a device and the command buffers that were committed and not waited for,
// so that one can wait for all.
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

// begin is told that command buffers were committed, end that one has ended and is about to be released.
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

// land waits for all command buffers that are committed, on whatever queue.
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

// drain waits until everything has ended that any queue of the device was given. What failed is told
// by its own error.
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
