//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// committed is a replay whose command buffers were committed and not all waited for.
type committed struct {
	buffers []objc.ID
	settled []settled // the outcome of the earlier command buffers, which were waited for
	replay  int
}

// Replay implements [hostqueue.Executor].
func (x *executor) Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error {
	e := s.Executable.(*executable)
	turn := x.turn(s)
	defer x.turns.end(turn)
	defer func() { x.counts.sampled(&r.Times) }()
	if err := x.turns.wait(ctx, turn); err != nil {
		return err
	}
	g, places := x.Uses(s)
	own := s.Frame.(*frame)
	params := slices.Clone(s.Params)
	var flight []committed
	var err error
	// land waits, in order, for all replays in flight but the last n.
	land := func(n int) {
		for len(flight) > n {
			landed := x.wait(&flight[0], e.plan, r)
			if landed == nil {
				landed = own.guard.check(func(i int) string { return g.DescribeNode(int(e.plan.Guards[i])) })
			}
			switch {
			case err != nil:
			case landed != nil:
				err, r.Torn = landed, true
			default:
				own.samples.end(x.Device, &r.Times, len(e.plan.Timed), func(i int) ir.Command { return g.Nodes[e.plan.Timed[i]].(ir.Command) })
				r.Replays++
				if s.Ended != nil {
					s.Ended(flight[0].replay)
				}
			}
			flight = slices.Delete(flight, 0, 1)
		}
	}
	for i := 0; i < s.Count() && err == nil; i++ {
		if err = context.Cause(ctx); err != nil {
			break
		}
		if land(len(own.slots) - 1); err != nil {
			break
		}
		in := &own.slots[i%len(own.slots)]
		for k := range g.Memories {
			m := &g.Memories[k]
			if places[k].Buffer == nil || m.Alias != ir.NoMem {
				continue
			}
			if m.Every && i > 0 {
				places[k] = places[k].Add(m.Size)
			}
			if m.Kind == ir.Argument {
				if in.arguments != nil && in.arguments[k].Buffer != nil {
					places[k] = in.arguments[k]
				} else {
					places[k] = own.Place(ir.MemID(k))
				}
				m.WriteValues(places[k].Bytes(m.Size), params)
			}
		}
		c := committed{replay: i}
		next := sending{
			code: &e.code, queue: x.id, places: placesOf(places), params: params, guard: own.guard.at(), next: i+1 < s.Count(), device: x.Device,
			stored: in.stored, samples: own.samples, fence: x.fence,
		}
		if next.stored != nil && !next.stored.fits(g, next.places) {
			next.stored = nil
		}
		own.samples.begin(x.Device)
		before := time.Now()
		err = x.commit(ctx, &next, &c)
		r.Times.Encode += time.Since(before)
		if err != nil {
			r.Torn = len(c.buffers)+len(c.settled) > 0
			_ = x.wait(&c, e.plan, r)
			break
		}
		flight = append(flight, c)
		for k := range params {
			params[k] += uint32(g.Params[k].Advance)
		}
	}
	x.turns.end(turn)
	land(0)
	return err
}

// atOnce is how many command buffers of a replay are committed together. Between two such groups the
// context is checked, and the group before the last is waited for.
const atOnce = 3

// commit encodes and commits the command buffers of a replay and records them in c. The caller waits for
// those in c, also after an error.
func (x *executor) commit(ctx context.Context, s *sending, c *committed) error {
	defer x.captured()()
	x.resident.use()
	n := len(s.plan.Buffers)
	window := atOnce
	if s.how == Parallel {
		window = x.options.encoders()
	}
	for first := 0; first < n; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end, before := min(n, first+window), len(c.buffers)
		for i := first; i < end; i++ {
			select {
			case x.room <- struct{}{}:
			case <-ctx.Done():
				x.leave(i - first)
				return context.Cause(ctx)
			}
		}
		began := time.Now()
		var made []objc.ID
		var some bool // one of them has an encoder
		var err error
		if s.how == Parallel && end-first > 1 {
			made, some, err = x.sendSideBySide(ctx, s, first, end)
		} else {
			made, err = x.send(s, first, end)
			some = len(made) > 0
		}
		c.buffers = append(c.buffers, made...)
		x.flight.begin(made)
		x.leave(end - first - len(made))
		if some {
			x.fence.committed()
		}
		if err != nil {
			return err
		}
		x.log.committed(s, first, end, time.Since(began))
		if first = end; first < n { // the last group runs while the next is encoded; wait for the ones before it
			c.settled = append(c.settled, x.settle(c.buffers[:before])...)
			c.buffers = slices.Delete(c.buffers, 0, before)
			if i := slices.IndexFunc(c.settled, func(t settled) bool { return t.err != nil }); i >= 0 {
				return c.settled[i].err
			}
		}
	}
	return nil
}

// errNoBuffer means that Metal returned nil: the device was lost, or the system has no memory.
var errNoBuffer = errors.New("metal: the system gives no command buffer")

// send encodes and commits the command buffers first to end, without end, by one call from Go to C, and
// returns those that were committed.
func (x *executor) send(s *sending, first, end int) (made []objc.ID, err error) {
	b := x.batches.Take()
	defer x.batches.Give(b)
	if s.stored != nil && first == 0 {
		s.stored.bring(b, s)
	}
	var refs []objc.Ref
	for i := first; i < end; i++ {
		cb := s.create(b, i)
		s.fill(b, cb, i)
		b.SendTo(objc.Commit, cb)
		refs = append(refs, cb)
	}
	if err := b.RunInPool(); err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if id := objc.ID(ref.Value()); id != 0 {
			made = append(made, id)
		}
	}
	if len(made) < end-first {
		return made, errNoBuffer
	}
	return made, nil
}

// sendSideBySide does the same with one thread for each command buffer. All are enqueued before any is
// encoded, which fixes their order; each is committed as soon as it is encoded. some: one has an encoder.
func (x *executor) sendSideBySide(ctx context.Context, s *sending, first, end int) (made []objc.ID, some bool, err error) {
	b := x.batches.Take()
	var refs []objc.Ref
	for i := first; i < end; i++ {
		cb := s.create(b, i)
		b.SendTo(objc.Enqueue, cb)
		refs = append(refs, cb)
	}
	if err = b.RunInPool(); err == nil {
		for _, ref := range refs {
			if id := objc.ID(ref.Value()); id != 0 {
				made = append(made, id)
			}
		}
	}
	x.batches.Give(b)
	if err != nil {
		return nil, false, err
	}
	lost := len(made) < end-first
	errs := make([]error, len(made))
	var wait sync.WaitGroup
	one := func(i int) {
		b := x.batches.Take()
		defer x.batches.Give(b)
		// An enqueued command buffer must be committed in any case, or the queue would wait for it for ever.
		cb := b.Object(made[i])
		if errs[i] = context.Cause(ctx); errs[i] == nil && !lost {
			s.fill(b, cb, first+i)
		}
		b.SendTo(objc.Commit, cb)
		if err := b.RunInPool(); err != nil {
			errs[i] = err
			objc.Pool(func() { objc.Commit.Send(made[i]) })
		}
	}
	for i := 1; i < len(made); i++ {
		wait.Go(func() { one(i) })
	}
	if len(made) > 0 {
		one(0)
	}
	wait.Wait()
	some = !lost && slices.Contains(errs, nil)
	if lost {
		errs = append(errs, errNoBuffer)
	}
	return made, some, cmp.Or(errs...)
}

func (x *executor) leave(n int) {
	for range n {
		<-x.room
	}
}

// settled is the outcome of a command buffer: when it ran on the GPU, and its error.
type settled struct {
	backend.BufferTime
	waited time.Duration // for how long the host waited for it
	err    error
}

// settle waits until command buffers have completed, releases them and returns their outcomes.
func (x *executor) settle(buffers []objc.ID) (out []settled) {
	for _, id := range buffers {
		var t settled
		b := x.batches.Take()
		b.Send(objc.WaitUntilCompleted, id)
		begin, end := b.Send(objc.GPUStartTime, id), b.Send(objc.GPUEndTime, id)
		status, failure := b.Send(objc.BufferStatus, id), b.Send(objc.BufferError, id)
		b.SendTo(objc.RetainObject, failure)
		before := time.Now()
		if t.err = b.RunInPool(); t.err != nil { // no memory for the batch: wait without one, so that the buffer can be released
			objc.Pool(func() { objc.WaitUntilCompleted.Send(id) })
		} else {
			t.waited = time.Since(before)
			t.Begin, t.End = x.clock.at(begin.Double()), x.clock.at(end.Double())
			e := objc.ID(failure.Value())
			if uint64(status.Value()) != objc.CommandBufferStatusCompleted {
				objc.Pool(func() { t.err = decode(objc.Failure(e)) })
			}
			objc.Release(e)
		}
		x.batches.Give(b)
		x.flight.end(id)
		objc.Release(id)
		x.leave(1)
		out = append(out, t)
	}
	return out
}

// wait waits until a replay has completed, adds its times to the result and returns its first error.
func (x *executor) wait(c *committed, p *plan.Plan, r *backend.Result) error {
	all := append(c.settled, x.settle(c.buffers)...)
	var err error
	for i, t := range all {
		if r.Times.Begin.IsZero() {
			r.Times.Begin = t.Begin
		}
		r.Times.End = t.End
		t.Label, t.Dispatches, t.Barriers = p.Buffers[i].Label, int(p.Buffers[i].Dispatches), int(p.Buffers[i].Barriers)
		r.Times.Buffers = append(r.Times.Buffers, t.BufferTime)
		x.counts.buffer(p, i, &t)
		if t.err != nil && err == nil {
			err = t.err
		}
	}
	return err
}
