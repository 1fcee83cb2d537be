package testdevice

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// commandBuffer is a command buffer of a graph: its nodes first to end, without end.
type commandBuffer struct {
	first, end int
	ordered    bool // it begins when all earlier ones have ended
}

// encode divides the graph of a new executable into command buffers at its commits, and finds
// the nodes that the next replay waits for.
func (x *executable) encode() {
	g := x.program.Graph
	x.wake, x.runs = sync.NewCond(&x.mu), map[*backend.Submission]*progress{}
	at := commandBuffer{ordered: true}
	for i, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			at.end = i
			x.buffers = append(x.buffers, at)
			at = commandBuffer{first: i + 1, ordered: c.Order != ir.OrderNone || g.Ordering != ir.ByBarriers}
		}
	}
	at.end = len(g.Nodes)
	x.buffers = append(x.buffers, at)
	if g.Ordering != ir.ByEdges {
		return
	}
	x.waits, x.awaited = g.Waits(), make([]bool, len(g.Nodes))
	for i := range g.Nodes {
		_, previous := x.waits.Of(i)
		for _, from := range previous {
			x.awaited[from] = true
		}
	}
}

// unordered reports whether nothing orders two replays: the list ends in a barrier, which orders
// only its own encoder, and replays do not share one.
func (x *executable) unordered() bool {
	g := x.program.Graph
	if !x.d.info.Apart || g.Ordering != ir.ByBarriers || g.NextHost {
		return false
	}
	for _, n := range slices.Backward(g.Nodes) {
		switch n.(type) {
		case *ir.Barrier:
			return true
		case *ir.GroupEnd:
		default:
			return false
		}
	}
	return false
}

// progress is how far a submission has got, for the one after it.
type progress struct {
	earlier *progress // that of the submission before; nil: none is in flight
	begun   bool
	nodes   int // number of nodes of its last replay that have ended
	ended   bool
}

func (x *executable) accept(s *backend.Submission) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &progress{earlier: x.last}
	x.runs[s], x.last = p, p
}

// advance notes that the nodes of the last replay before node n have ended.
func (x *executable) advance(p *progress, n int) {
	x.mu.Lock()
	p.nodes = n
	x.wake.Broadcast()
	x.mu.Unlock()
}

// await waits until the submission before p has ended, or node n of its last replay has.
func (x *executable) await(ctx context.Context, p *progress, n int) error {
	defer context.AfterFunc(ctx, func() {
		x.mu.Lock()
		x.wake.Broadcast()
		x.mu.Unlock()
	})()
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := p.earlier; e != nil; {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case e.ended && !e.begun:
			e = e.earlier // it was never run: wait for the one before it
		case e.ended || e.nodes > n:
			return nil
		default:
			x.wake.Wait()
		}
	}
	return nil
}

// Overlap implements [hostqueue.Executor].
func (x *executor) Overlap(earlier, _ *backend.Submission) bool {
	e := earlier.Executable.(*executable)
	return e.waits != nil && !e.program.Graph.NextHost || e.unordered()
}

// Uses implements [hostqueue.Executor].
func (x *executor) Uses(s *backend.Submission) (*ir.Graph, []backend.Place) {
	e := s.Executable.(*executable)
	var places []backend.Place
	if set, ok := s.States.(*states); ok && set != nil {
		places = set.places
	}
	return e.program.Graph, s.Places(&e.program, places)
}

// Forget implements [hostqueue.Executor].
func (x *executor) Forget(s *backend.Submission) {
	e := s.Executable.(*executable)
	e.mu.Lock()
	p := e.runs[s]
	delete(e.runs, s)
	p.ended = true
	if p.begun {
		p.earlier = nil
	}
	e.wake.Broadcast()
	e.mu.Unlock()
	_ = x.q.d.end(s, usedBy(s)) // only closing memory can fail, which does not matter here
}

// Replay implements [hostqueue.Executor]. Each command buffer is one of the inner device;
// unordered replays run in reverse order.
func (x *executor) Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error {
	d, e := x.q.d, s.Executable.(*executable)
	d.mu.Lock()
	n := d.numbers[s]
	d.mu.Unlock()
	e.mu.Lock()
	p := e.runs[s]
	p.begun = true
	e.mu.Unlock()
	if err := d.fault(n, s.Label, usedBy(s)); err != nil {
		r.Torn = true
		return err
	}
	for k := range s.Count() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := k
		if e.unordered() {
			i = s.Count() - 1 - k
		}
		r.Torn = true
		if err := x.replay(ctx, s, p, i, r); err != nil {
			return err
		}
		r.Torn = false
		r.Replays++
		if s.Ended != nil {
			s.Ended(i)
		}
	}
	d.late(ctx)
	d.sampled(&r.Times)
	return nil
}

// replay runs replay i of a submission.
func (x *executor) replay(ctx context.Context, s *backend.Submission, p *progress, i int, r *backend.Result) error {
	e := s.Executable.(*executable)
	g := e.program.Graph
	_, outer := x.Uses(s)
	var used []*buffer
	places, err := x.q.d.unwrapAll(g, outer, &used)
	if err != nil {
		return err
	}
	params := slices.Clone(s.Params)
	for k := range params {
		params[k] += uint32(int64(i) * g.Params[k].Advance)
	}
	for k := range places {
		m := &g.Memories[k]
		if places[k].Buffer == nil {
			continue
		}
		if m.Every {
			places[k] = places[k].Add(int64(i) * m.Size)
		}
		if m.Kind == ir.Argument {
			data := make([]byte, m.Size)
			m.WriteValues(data, params)
			if err := backend.Wait(ctx)(x.q.copies.Upload(ctx, places[k], data)); err != nil {
				return err
			}
		}
	}
	run := encoding{x: x, e: e, p: p, r: r, first: i == 0, last: i == s.Count()-1, scope: backend.Scope{Graph: g, Places: places, Params: params}}
	for from := 0; from < len(e.buffers); {
		to := from + 1
		for to < len(e.buffers) && !e.buffers[to].ordered {
			to++
		}
		for k := range to - from {
			at := from + k
			if x.q.d.options.Reverse {
				at = to - 1 - k
			}
			if err := run.buffer(ctx, &e.buffers[at]); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// encoding is one replay while it is encoded and run.
type encoding struct {
	x           *executor
	e           *executable
	p           *progress
	r           *backend.Result
	scope       backend.Scope
	first, last bool // of the submission's replays
	open        backend.CommandBuffer
}

// buffer runs a command buffer. If edges order the graph, it is divided where this replay waits
// for the one before it, and where the next one waits for this.
func (c *encoding) buffer(ctx context.Context, b *commandBuffer) error {
	defer func() {
		if c.open != nil {
			c.open.Discard()
			c.open = nil
		}
	}()
	for i := b.first; i < b.end; i++ {
		if c.e.waits != nil && c.first {
			if _, previous := c.e.waits.Of(i); len(previous) > 0 {
				if err := c.flush(ctx, i); err != nil {
					return err
				}
				if err := c.e.await(ctx, c.p, int(slices.Max(previous))); err != nil {
					return err
				}
			}
		}
		if err := c.node(c.scope.Graph.Nodes[i]); err != nil {
			return err
		}
		if c.e.awaited != nil && c.e.awaited[i] {
			if err := c.flush(ctx, i+1); err != nil {
				return err
			}
		}
	}
	return c.flush(ctx, b.end)
}

func (c *encoding) node(n ir.Node) (err error) {
	if c.open == nil {
		if c.open, err = c.x.q.inner.CommandBuffer(context.Background(), backend.Recording{Scope: &c.scope, Profile: c.e.program.Profile}); err != nil {
			return err
		}
	}
	carry, ok := n.(*ir.Carry)
	if !ok {
		return c.open.Encode(n)
	}
	if c.last {
		return nil
	}
	at := func(v *ir.View) backend.Place {
		root, off := c.scope.Graph.Root(v.Mem)
		return c.scope.Places[root].Add(off + v.Off.Eval(c.scope.Params))
	}
	if err := c.open.Copy(at(&carry.Dst), at(&carry.Src), carry.Src.Len.Eval(c.scope.Params)); err != nil {
		return fmt.Errorf("%s: %w", c.scope.Graph.Describe(n), err)
	}
	return nil
}

// flush runs what was encoded, after which the nodes before node n have ended.
func (c *encoding) flush(ctx context.Context, n int) error {
	if c.open != nil {
		p, err := c.open.Commit(ctx, "", ir.OrderEvent)
		c.open = nil
		if err != nil {
			return err
		}
		if err := finish(c.r, p); err != nil {
			return err
		}
	}
	if c.last {
		c.e.advance(c.p, n)
	}
	return nil
}
