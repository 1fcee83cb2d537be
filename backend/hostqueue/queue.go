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

// Executor does the operations of a queue, on goroutines of the queue. If it returns the cause of
// its context as the error, the operation was aborted.
type Executor interface {
	// Name returns the name of the device, for errors.
	Name() string
	// Accept checks a submission before the queue takes it; an error refuses it. It is called in the
	// order of submissions. For each one that was accepted Forget is called at the end.
	Accept(s *backend.Submission) error
	// Overlap reports whether next, a later submission of the same executable, may begin before
	// earlier has ended. If so, the executor must order their commands.
	Overlap(earlier, next *backend.Submission) bool
	// Uses returns the graph of a submission, and the places of its memories.
	Uses(s *backend.Submission) (*ir.Graph, []backend.Place)
	// Replay runs s.Count() replays, calls s.Ended for each, and sets r's Replays, Torn and
	// Times.
	Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error
	// Forget is called when an accepted submission has ended, also if it was never replayed.
	Forget(s *backend.Submission)
	// Open begins a command buffer.
	Open(r backend.Recording) (Encoder, error)
	// Upload, Download and Copy do what those of [backend.Queue] ask for, and return when it is done.
	Upload(ctx context.Context, dst backend.Place, data []byte) error
	Download(ctx context.Context, data []byte, src backend.Place) error
	Copy(ctx context.Context, dst, src backend.Place, n int64) error
}

// Encoder is an executor's command buffer, from Open to Close.
type Encoder interface {
	Encode(n ir.Node) error
	Copy(dst, src backend.Place, n int64) error
	// Commit is called before the command buffer is added to the queue.
	Commit(label string, order ir.CommitOrder) error
	// Run executes what was encoded.
	Run(ctx context.Context, r *backend.Result) error
	// Close releases it, after Run or without Run.
	Close()
}

// Options of a queue. The zero value has no limits and begins operations in order.
type Options struct {
	// MaxUncompleted is [backend.Info.MaxUncompleted].
	MaxUncompleted int
	// Reverse begins the last instead of the first of the operations that may begin.
	Reverse bool
	// Ready, if not nil, reports whether an operation may begin. Its argument is the [Encoder]
	// of a command buffer, the [*backend.Submission] of a submission, and nil for others.
	// [Queue.Wake] makes the queue call it again.
	Ready func(operation any) bool
}

// Queue implements [backend.Queue].
type Queue struct {
	do      Executor
	options Options

	mu    sync.Mutex
	wake  *sync.Cond
	list  []*entry // from the first operation that has not ended on, in order
	first int      // the number of list[0]
	// Limits for the next operation, as numbers: a command buffer without an order begins when all
	// operations below ordered have ended, a transfer or submission when all below unordered have.
	ordered, unordered int
	open               int // command buffers that are open
	buffers            int // command buffers that were committed and have not ended
	workers            int // goroutines that do operations
	idle               int // those of them that wait for something to do
	closed             bool
	err                error // the error that has failed the queue; nil: none
	failed             int   // the number of the operation that has failed
}

// New returns a queue.
func New(do Executor, o Options) *Queue {
	q := &Queue{do: do, options: o}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// entry is an operation in the queue.
type entry struct {
	*backend.Completion
	ctx       context.Context
	operation any // the argument of Options.Ready
	// run does the operation; nil: it does nothing, as an event.
	run    func(ctx context.Context, r *backend.Result) error
	await  backend.Pending // what it waits for; nil: nothing
	number int
	after  int // it begins when all operations with smaller numbers have ended
	// touches are the bytes that a transfer or submission reads or writes; those of a
	// submission are found when they are first needed.
	touches    []touch
	submission *backend.Submission
	waits      int      // number of operations from after on that it waits for
	waiting    []*entry // operations that wait for it
	begun      bool
	ended      bool
	buffer     bool   // it is a command buffer
	close      func() // called just before it ends, if not nil
}

// beside reports whether e is a transfer or submission, which may run beside others.
func (e *entry) beside() bool { return e.touches != nil || e.submission != nil }

// maxBeside is the max number of earlier operations that an operation is compared with. If there
// are more, it waits for all of them, so that a long queue does not take quadratic time.
const maxBeside = 64

// push adds e to the queue. It returns an error if the queue is closed or the submission is
// refused. A failed queue takes operations too, so that these always report its error.
func (q *Queue) push(e *entry, order ir.CommitOrder) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return q.gone()
	}
	if e.submission != nil {
		if err := q.do.Accept(e.submission); err != nil {
			return err
		}
	}
	e.number = q.first + len(q.list)
	switch {
	case e.beside():
		if e.number-max(q.unordered, q.first) >= maxBeside {
			q.unordered = e.number
		}
		e.after = q.unordered
		for _, earlier := range q.list[min(max(0, e.after-q.first), len(q.list)):] {
			if !earlier.ended && !q.apart(earlier, e) {
				e.waits++
				earlier.waiting = append(earlier.waiting, e)
			}
		}
		q.ordered = e.number + 1
	case e.buffer:
		if order != ir.OrderNone {
			q.ordered = e.number
		}
		e.after, q.unordered = q.ordered, e.number+1
	default:
		e.after = e.number
		q.ordered, q.unordered = e.number+1, e.number+1
	}
	q.list = append(q.list, e)
	if e.buffer {
		q.open--
		q.buffers++
	}
	if e.await != nil {
		go func() {
			<-e.await.Done()
			q.Wake()
		}()
	}
	q.hands()
	return nil
}

// apart reports whether two transfers or submissions may run at the same time.
func (q *Queue) apart(earlier, e *entry) bool {
	if a, b := earlier.submission, e.submission; a != nil && b != nil {
		return a.Executable == b.Executable && q.do.Overlap(a, b)
	}
	return !conflict(q.touched(earlier), q.touched(e))
}

func (q *Queue) touched(e *entry) []touch {
	if e.touches == nil {
		e.touches = ofSubmission(q.do.Uses(e.submission))
	}
	return e.touches
}

func (q *Queue) gone() error { return fmt.Errorf("%s: the queue is closed", q.do.Name()) }

// Wake makes the queue call Options.Ready again for operations that were not ready.
func (q *Queue) Wake() {
	q.mu.Lock()
	q.wake.Broadcast()
	q.mu.Unlock()
}

// hands wakes the idle goroutines or, if there are none and an operation may begin, starts
// one.
func (q *Queue) hands() {
	switch {
	case q.idle > 0:
		q.wake.Broadcast()
	case q.workers == 0 || q.next() != nil:
		q.workers++
		go q.work()
	}
}

// work does operations until the queue is empty, so that an idle queue has no goroutine.
func (q *Queue) work() {
	q.mu.Lock()
	for len(q.list) > 0 {
		e := q.next()
		if e == nil {
			if q.workers > 1 && q.idle > 0 {
				break // one idle goroutine is enough
			}
			q.idle++
			q.wake.Wait()
			q.idle--
			continue
		}
		e.begun = true
		failed := q.err
		if e.beside() {
			q.hands() // for operations that may run beside it
		}
		q.mu.Unlock()
		r := q.perform(e, failed)
		if e.close != nil {
			e.close()
		}
		q.mu.Lock()
		q.end(e, r)
	}
	q.workers--
	q.mu.Unlock()
}

// end ends e with result r, and removes operations that have ended from the front of the list.
func (q *Queue) end(e *entry, r backend.Result) {
	if q.err != nil && q.failed < e.number && e.submission != nil && r.Status == backend.Completed {
		r.Status, r.Torn, r.Err = backend.Failed, true, fmt.Errorf("what was given before it failed while it ran: %w", q.err)
	}
	e.ended = true
	for _, x := range e.waiting {
		x.waits--
	}
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
		q.err, q.failed = e.Result().Err, e.number
	}
	q.wake.Broadcast()
}

// next returns an operation that may begin now, nil if none may.
func (q *Queue) next() (found *entry) {
	for _, e := range q.list {
		if e.after > q.first { // earlier operations that it waits for have not all ended
			break
		}
		if e.buffer && e.begun && !e.ended {
			return nil // command buffers run one at a time
		}
		if e.begun || e.waits > 0 || !q.ready(e) {
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

// perform does one operation; failed is the error of the queue, if it has failed.
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

// transfer adds an upload, download or copy to the queue. If it fails, what it writes is torn.
func (q *Queue) transfer(ctx context.Context, what string, touches []touch, do func(ctx context.Context) error) (backend.Pending, error) {
	e := &entry{Completion: backend.NewCompletion(what), ctx: ctx, touches: touches}
	e.run = func(ctx context.Context, r *backend.Result) error {
		r.Torn = touches[0].write
		err := do(ctx)
		r.Torn = r.Torn && err != nil
		return err
	}
	return q.give(e)
}

// give adds an operation other than a command buffer.
func (q *Queue) give(e *entry) (backend.Pending, error) {
	if err := q.push(e, ir.OrderEvent); err != nil {
		return nil, err
	}
	return e, nil
}

// Submit implements [backend.Queue].
func (q *Queue) Submit(ctx context.Context, s backend.Submission) (backend.Pending, error) {
	s.Params = slices.Clone(s.Params)
	e := &entry{Completion: backend.NewCompletion(s.Label), ctx: ctx, operation: &s, submission: &s, close: func() { q.do.Forget(&s) }}
	e.run = func(ctx context.Context, r *backend.Result) error { return q.do.Replay(ctx, &s, r) }
	return q.give(e)
}

// Upload implements [backend.Queue].
func (q *Queue) Upload(ctx context.Context, dst backend.Place, data []byte) (backend.Pending, error) {
	n := int64(len(data))
	if err := dst.Holds(n); err != nil {
		return nil, fmt.Errorf("%s: upload: the destination %w", q.do.Name(), err)
	}
	return q.transfer(ctx, "upload", []touch{touchOf(dst, n, true), ofHost(data, false)}, func(ctx context.Context) error { return q.do.Upload(ctx, dst, data) })
}

// Download implements [backend.Queue].
func (q *Queue) Download(ctx context.Context, data []byte, src backend.Place) (backend.Pending, error) {
	n := int64(len(data))
	if err := src.Holds(n); err != nil {
		return nil, fmt.Errorf("%s: download: the source %w", q.do.Name(), err)
	}
	return q.transfer(ctx, "download", []touch{touchOf(src, n, false), ofHost(data, true)}, func(ctx context.Context) error { return q.do.Download(ctx, data, src) })
}

// Copy implements [backend.Queue].
func (q *Queue) Copy(ctx context.Context, dst, src backend.Place, n int64) (backend.Pending, error) {
	if err := dst.Holds(n); err != nil {
		return nil, fmt.Errorf("%s: copy: the destination %w", q.do.Name(), err)
	}
	if err := src.Holds(n); err != nil {
		return nil, fmt.Errorf("%s: copy: the source %w", q.do.Name(), err)
	}
	return q.transfer(ctx, "copy", []touch{touchOf(dst, n, true), touchOf(src, n, false)}, func(ctx context.Context) error { return q.do.Copy(ctx, dst, src, n) })
}

// Event implements [backend.Queue].
func (q *Queue) Event() (backend.Pending, error) {
	return q.give(&entry{Completion: backend.NewCompletion(""), ctx: context.Background()})
}

// Await implements [backend.Queue].
func (q *Queue) Await(p backend.Pending) (backend.Pending, error) {
	return q.give(&entry{Completion: backend.NewCompletion(""), ctx: context.Background(), await: p})
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
