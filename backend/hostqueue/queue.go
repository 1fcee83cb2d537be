package hostqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// Executor does the work of a queue's operations, on the queue's goroutine. An error that
// is the cause of its context means that the operation was aborted.
type Executor interface {
	// Name is that of the device, for errors.
	Name() string
	// Accept says what is wrong with a submission, before it is taken.
	Accept(s *backend.Submission) error
	// Replay runs s.Count() replays and fills r's Replays, Torn and Times. It calls
	// s.Ended.
	Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error
	// Open begins a command buffer.
	Open(r backend.Recording) (Encoder, error)
	// Upload, Download and Copy are those of [backend.Queue], at once.
	Upload(ctx context.Context, dst backend.Place, data []byte) error
	Download(ctx context.Context, data []byte, src backend.Place) error
	Copy(ctx context.Context, dst, src backend.Place, n int64) error
}

// Encoder is a command buffer of an executor.
type Encoder interface {
	Encode(n ir.Node) error
	Copy(dst, src backend.Place, n int64) error
	// Commit is told before the command buffer goes to the queue.
	Commit(label string, order ir.CommitOrder) error
	// Run executes what was encoded.
	Run(ctx context.Context, r *backend.Result) error
	// Close ends it: after Run, or without.
	Close()
}

// Options of a queue. The zero value is that of a device that does what it was given at
// once, in order.
type Options struct {
	// MaxUncompleted is that of [backend.Info].
	MaxUncompleted int
	// Reverse begins what stands last among what may begin.
	Reverse bool
	// Ready, if not nil, says whether an operation may begin: a command buffer by its
	// encoder, a submission by itself, anything else nil. [Queue.Wake] has it asked again.
	Ready func(operation any) bool
}

// Queue implements [backend.Queue].
type Queue struct {
	do      Executor
	options Options

	mu       sync.Mutex
	wake     *sync.Cond
	list     []*entry // not ended, in order
	first    int      // the number of list[0]
	boundary int      // what is given next begins after all that is numbered below
	open     int      // command buffers
	buffers  int      // command buffers that were committed and have not ended
	working  bool     // there is a goroutine
	closed   bool
	err      error // that has failed the queue
}

// New returns a queue.
func New(do Executor, o Options) *Queue {
	q := &Queue{do: do, options: o}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// entry is an operation that has not ended.
type entry struct {
	*backend.Completion
	ctx       context.Context
	operation any // see Options.Ready
	// run does it; nil: it ends where it stands.
	run    func(ctx context.Context, r *backend.Result) error
	await  backend.Pending // that it waits for
	after  int             // it begins when all that are numbered below have ended
	ended  bool
	buffer bool   // a command buffer
	close  func() // called before it has ended, if not nil
}

// push gives e to the queue. An error is a queue that was closed; one that has failed
// takes what it is given, so that its error is always told by the operation.
func (q *Queue) push(e *entry, order ir.CommitOrder) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return q.gone()
	}
	number := q.first + len(q.list)
	if order != ir.OrderNone {
		q.boundary = number
	}
	e.after = q.boundary
	q.list = append(q.list, e)
	if e.buffer {
		q.open--
		q.buffers++
	} else {
		q.boundary = number + 1 // and everything after it waits for it
	}
	if e.await != nil {
		go func() {
			<-e.await.Done()
			q.Wake()
		}()
	}
	if !q.working {
		q.working = true
		go q.work()
	} else {
		q.wake.Broadcast()
	}
	return nil
}

func (q *Queue) gone() error { return fmt.Errorf("%s: the queue is closed", q.do.Name()) }

// Wake has what is not ready asked again.
func (q *Queue) Wake() {
	q.mu.Lock()
	q.wake.Broadcast()
	q.mu.Unlock()
}

// work does what there is to do, and ends: a queue that is idle has no goroutine.
func (q *Queue) work() {
	q.mu.Lock()
	for len(q.list) > 0 {
		e := q.next()
		if e == nil {
			q.wake.Wait()
			continue
		}
		failed := q.err
		q.mu.Unlock()
		r := q.perform(e, failed)
		if e.close != nil {
			e.close()
		}
		q.mu.Lock()
		e.ended = true
		if e.buffer {
			q.buffers--
		}
		n := 0
		for n < len(q.list) && q.list[n].ended {
			n++
		}
		q.list, q.first = slices.Delete(q.list, 0, n), q.first+n
		e.End(r)
		if r.Status == backend.Failed && q.err == nil {
			q.err = e.Result().Err
		}
		q.wake.Broadcast()
	}
	q.working = false
	q.mu.Unlock()
}

// next returns the operation to do now, nil if none may begin.
func (q *Queue) next() (found *entry) {
	for _, e := range q.list {
		if e.after > q.first { // what stands before the boundary has not all ended
			break
		}
		if e.ended || !q.ready(e) {
			continue
		}
		if found = e; !q.options.Reverse {
			break
		}
	}
	return found
}

func (q *Queue) ready(e *entry) bool {
	if e.await != nil {
		select {
		case <-e.await.Done():
		default:
			return false
		}
	}
	return q.options.Ready == nil || q.options.Ready(e.operation)
}

// perform does one operation.
func (q *Queue) perform(e *entry, failed error) (r backend.Result) {
	switch {
	case failed != nil:
		r.Status, r.Err = backend.Failed, fmt.Errorf("%w: %w", backend.ErrNotExecuted, failed)
		return r
	case e.ctx.Err() != nil:
		r.Status, r.Err = backend.Aborted, context.Cause(e.ctx)
		return r
	}
	e.Begin()
	r.Status = backend.Completed
	if e.await != nil {
		if a := e.await.Result(); a.Err != nil {
			r.Status, r.Err = a.Status, fmt.Errorf("what was awaited did not end well: %w", a.Err)
		}
	}
	if e.run == nil || r.Err != nil {
		return r
	}
	err := mmap.Guard(func() error { return e.run(e.ctx, &r) })
	switch {
	case err == nil:
	case e.ctx.Err() != nil && errors.Is(err, context.Cause(e.ctx)):
		r.Status, r.Err = backend.Aborted, err
	default:
		r.Status, r.Err = backend.Failed, err
	}
	return r
}

// give pushes an operation that is ordered after everything before it.
func (q *Queue) give(ctx context.Context, what string, operation any, run func(ctx context.Context, r *backend.Result) error) (backend.Pending, error) {
	e := &entry{Completion: backend.NewCompletion(what), ctx: ctx, operation: operation, run: run}
	if err := q.push(e, ir.OrderEvent); err != nil {
		return nil, err
	}
	return e, nil
}

// Submit implements [backend.Queue].
func (q *Queue) Submit(ctx context.Context, s backend.Submission) (backend.Pending, error) {
	if err := q.do.Accept(&s); err != nil {
		return nil, err
	}
	s.Params = slices.Clone(s.Params)
	return q.give(ctx, s.Label, &s, func(ctx context.Context, r *backend.Result) error { return q.do.Replay(ctx, &s, r) })
}

// Upload implements [backend.Queue].
func (q *Queue) Upload(ctx context.Context, dst backend.Place, data []byte) (backend.Pending, error) {
	if err := dst.Holds(int64(len(data))); err != nil {
		return nil, fmt.Errorf("%s: upload: the destination %w", q.do.Name(), err)
	}
	return q.give(ctx, "upload", nil, func(ctx context.Context, r *backend.Result) error {
		r.Torn = true
		err := q.do.Upload(ctx, dst, data)
		r.Torn = err != nil
		return err
	})
}

// Download implements [backend.Queue].
func (q *Queue) Download(ctx context.Context, data []byte, src backend.Place) (backend.Pending, error) {
	if err := src.Holds(int64(len(data))); err != nil {
		return nil, fmt.Errorf("%s: download: the source %w", q.do.Name(), err)
	}
	return q.give(ctx, "download", nil, func(ctx context.Context, r *backend.Result) error { return q.do.Download(ctx, data, src) })
}

// Copy implements [backend.Queue].
func (q *Queue) Copy(ctx context.Context, dst, src backend.Place, n int64) (backend.Pending, error) {
	if err := dst.Holds(n); err != nil {
		return nil, fmt.Errorf("%s: copy: the destination %w", q.do.Name(), err)
	}
	if err := src.Holds(n); err != nil {
		return nil, fmt.Errorf("%s: copy: the source %w", q.do.Name(), err)
	}
	return q.give(ctx, "copy", nil, func(ctx context.Context, r *backend.Result) error {
		r.Torn = true
		err := q.do.Copy(ctx, dst, src, n)
		r.Torn = err != nil
		return err
	})
}

// Event implements [backend.Queue].
func (q *Queue) Event() (backend.Pending, error) {
	return q.give(context.Background(), "", nil, nil)
}

// Await implements [backend.Queue].
func (q *Queue) Await(p backend.Pending) (backend.Pending, error) {
	e := &entry{Completion: backend.NewCompletion(""), ctx: context.Background(), await: p}
	if err := q.push(e, ir.OrderEvent); err != nil {
		return nil, err
	}
	return e, nil
}

// Err implements [backend.Queue].
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Close implements [backend.Queue].
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) > 0 {
		q.wake.Wait()
	}
	q.closed = true
	if q.open > 0 {
		return fmt.Errorf("%s: %d command buffers were neither committed nor discarded", q.do.Name(), q.open)
	}
	return nil
}
