//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/backend/internal/bound"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// queue is a backend.Queue: a hostqueue, which keeps the order, and an executor with an MTLCommandQueue.
type queue struct {
	*hostqueue.Queue
	x    *executor
	once sync.Once
	err  error
}

// NewQueue implements [backend.Device].
func (d *Device) NewQueue() (backend.Queue, error) {
	x := &executor{Device: d, turns: newTurns(), taken: map[*backend.Submission]uint64{}, room: make(chan struct{}, maxUncompleted)}
	objc.Pool(func() {
		x.id = objc.NewQueue.SendID(d.id, uintptr(maxUncompleted))
		x.fence = d.newFence()
		if x.id != 0 {
			labelQueue(x.id)
			d.resident.queue(x.id)
		}
	})
	if x.id == 0 || x.fence != nil && x.fence.id == 0 {
		objc.Release(x.id)
		x.fence.close()
		return nil, errors.New("metal: the system gives no command queue, or no fence")
	}
	q := &queue{Queue: hostqueue.New(x, hostqueue.Options{MaxUncompleted: maxUncompleted}), x: x}
	d.flight.open(q)
	return q, nil
}

// Close implements [backend.Queue].
func (q *queue) Close() error {
	err := q.Queue.Close()
	q.once.Do(func() {
		q.x.flight.closed(q)
		q.x.resident.leave(q.x.id)
		objc.Release(q.x.id)
		q.x.fence.close()
		q.err = q.x.batches.Close()
	})
	return errors.Join(err, q.err)
}

// executor does the operations of one queue; it implements [hostqueue.Executor].
type executor struct {
	*Device
	id    objc.ID
	turns *turns
	// room holds a token for each command buffer that was made and has not completed. Goroutines wait
	// for room here, since in Metal they would block a whole thread.
	room chan struct{}

	fence *fence

	mu    sync.Mutex
	taken map[*backend.Submission]uint64

	batches objc.Batches
}

// Accept implements [hostqueue.Executor].
func (x *executor) Accept(s *backend.Submission) error {
	e, ok := s.Executable.(*executable)
	if !ok || e.device != x.Device {
		return errors.New("metal: the executable is of another device")
	}
	f, _ := s.Frame.(*frame)
	var owner *bound.Program
	room := 0
	if f != nil {
		owner, room = f.owner.program, f.room
	}
	if err := e.program.Accept(s, owner, room); err != nil {
		return fmt.Errorf("metal: %w", err)
	}
	if !f.known || f.fits != s.States {
		if err := x.fits(x.Uses(s)); err != nil {
			return fmt.Errorf("metal: graph %s: %w", ir.QuoteName(e.program.Graph.Name), err)
		}
		f.fits, f.known = s.States, true
	}
	n := x.turns.take()
	x.mu.Lock()
	x.taken[s] = n
	x.mu.Unlock()
	return nil
}

// turn returns the turn that Accept took for a submission.
func (x *executor) turn(s *backend.Submission) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.taken[s]
}

// Forget implements [hostqueue.Executor].
func (x *executor) Forget(s *backend.Submission) {
	x.turns.end(x.turn(s))
	x.mu.Lock()
	delete(x.taken, s)
	x.mu.Unlock()
}

// Overlap implements [hostqueue.Executor]. Replays may overlap since hazard tracking, or the fence,
// orders them by their commits, unless the host has work to do between two replays.
func (x *executor) Overlap(earlier, _ *backend.Submission) bool {
	return !earlier.Executable.(*executable).program.Graph.NextHost
}

// Uses implements [hostqueue.Executor].
func (x *executor) Uses(s *backend.Submission) (*ir.Graph, []backend.Place) {
	e := s.Executable.(*executable)
	return e.program.Graph, e.program.Uses(s)
}

// Upload implements [hostqueue.Executor].
func (x *executor) Upload(ctx context.Context, dst backend.Place, data []byte) error {
	b, err := x.own(dst, int64(len(data)))
	if err != nil {
		return err
	}
	if b.data == nil {
		return x.upload(ctx, b, dst.Offset, data)
	}
	return hostqueue.Copy(ctx, b.data[dst.Offset:dst.Offset+int64(len(data))], data)
}

// Download implements [hostqueue.Executor].
func (x *executor) Download(ctx context.Context, data []byte, src backend.Place) error {
	b, err := x.own(src, int64(len(data)))
	if err != nil {
		return err
	}
	if b.data == nil {
		return x.download(ctx, data, b, src.Offset)
	}
	return hostqueue.Copy(ctx, data, b.data[src.Offset:src.Offset+int64(len(data))])
}

// Copy implements [hostqueue.Executor].
func (x *executor) Copy(ctx context.Context, dst, src backend.Place, n int64) error {
	b, err := x.own(dst, n)
	if err != nil {
		return err
	}
	from, err := x.own(src, n)
	if err == nil && (b.data == nil || from.data == nil) {
		return x.copyBuffer(ctx, dst, src, n)
	}
	if b.data == nil { // src is another device's
		return hostqueue.Through(ctx, src, n, func(at int64, data []byte) error { return x.upload(ctx, b, dst.Offset+at, data) })
	}
	return hostqueue.Read(ctx, b.data[dst.Offset:dst.Offset+n], src)
}
