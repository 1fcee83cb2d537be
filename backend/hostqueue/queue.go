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

// Executor does the work of a queue's operations, on goroutines of the queue. An error that
// is the cause of its context means that the operation was aborted.
type Executor interface {
	// Name is that of the device, for errors.
	Name() string
	// Accept says what is wrong with a submission, before it is taken. Submissions are
	// accepted in their order, and each that was accepted ends with Forget.
	Accept(s *backend.Submission) error
	// Overlap reports whether next, a later submission of the executable of earlier, may
	// begin before that has ended. The executor orders their commands then.
	Overlap(earlier, next *backend.Submission) bool
	// Uses returns the graph of a submission, and where its memories lie.
	Uses(s *backend.Submission) (*ir.Graph, []backend.Place)
	// Replay runs s.Count() replays and fills r's Replays, Torn and Times. It calls
	// s.Ended.
	Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error
	// Forget is told that a submission has ended, or will not be replayed at all.
	Forget(s *backend.Submission)
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

// Options of a queue. The zero value is for a device that does its operations at once and in
// order.
type Options struct {
	// MaxUncompleted is that of [backend.Info].
	MaxUncompleted int
	// Reverse begins what stands last among what may begin.
	Reverse bool
	// Ready, if not nil, says whether an operation may begin. It is given the [Encoder] of a
	// command buffer, the [*backend.Submission] of a submission, and nil of anything else.
	// [Queue.Wake] makes the queue ask again.
	Ready func(operation any) bool
}

// Queue implements [backend.Queue].
type Queue struct {
	do      Executor
	options Options

	mu    sync.Mutex
	wake  *sync.Cond
	list  []*entry // not ended, in order
	first int      // the number of list[0]
	// An operation that is given next begins when all that are numbered below ordered have
	// ended if it is a command buffer without an order, and all below unordered if it is a
	// transfer or a submission.
	ordered, unordered int
	open               int // command buffers
	buffers            int // command buffers that were committed and have not ended
	workers            int // goroutines
	idle               int // goroutines that wait for something to do
	closed             bool
	err                error // that has failed the queue
	failed             int   // the number of the operation that did
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
	number int
	after  int // it begins when all that are numbered below have ended
	// touches are the bytes of a transfer; submission is what else may run beside others.
	// A submission's are found when they are asked for.
	touches    []touch
	submission *backend.Submission
	waits      int      // for others of the list, beside those below after
	waiting    []*entry // for it
	begun      bool
	ended      bool
	buffer     bool   // a command buffer
	close      func() // called before it has ended, if not nil
}

// beside reports whether e may run while others do.
func (e *entry) beside() bool { return e.touches != nil || e.submission != nil }

// maxBeside is how many operations an operation is compared with. If more are in the queue, it
// waits for all of them, so that a long queue takes no quadratic time.
const maxBeside = 64

// push gives e to the queue. An error is a queue that was closed; one that has failed
// takes what it is given, so that its error is always told by the operation.
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

// apart reports whether two operations that may run beside others may run beside each other.
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

// Wake has what is not ready asked again.
func (q *Queue) Wake() {
	q.mu.Lock()
	q.wake.Broadcast()
	q.mu.Unlock()
}

// hands wakes the goroutines that wait for something to do. If there are none, and an
// operation may begin, it starts one.
func (q *Queue) hands() {
	switch {
	case q.idle > 0:
		q.wake.Broadcast()
	case q.workers == 0 || q.next() != nil:
		q.workers++
		go q.work()
	}
}

// work does what there is to do, and ends: a queue that is idle has no goroutine.
func (q *Queue) work() {
	q.mu.Lock()
	for len(q.list) > 0 {
		e := q.next()
		if e == nil {
			if q.workers > 1 && q.idle > 0 {
				break // another one waits already
			}
			q.idle++
			q.wake.Wait()
			q.idle--
			continue
		}
		e.begun = true
		failed := q.err
		if e.beside() {
			q.hands() // what may run beside it
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

// end takes e, whose result is r, off the list.
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

// next returns the operation to do now, nil if none may begin.
func (q *Queue) next() (found *entry) {
	for _, e := range q.list {
		if e.after > q.first { // what stands before it has not all ended
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

// transfer gives a copy of bytes to the queue. What it writes is torn if it fails.
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

// give pushes anything but a command buffer.
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
