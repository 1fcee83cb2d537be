//go:build unix

package softmetal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/ir"
)

// NewQueue implements [backend.Device].
func (d *Device) NewQueue() (backend.Queue, error) {
	return hostqueue.New(&queueExecutor{Device: d}, hostqueue.Options{}), nil
}

// queueExecutor executes the operations of one queue.
type queueExecutor struct{ *Device }

// Accept implements [hostqueue.Executor].
func (x *queueExecutor) Accept(s *backend.Submission) error {
	e, ok := s.Executable.(*executable)
	if !ok || e.device != x.Device {
		return errors.New("softmetal: the executable is of another device")
	}
	f, ok := s.Frame.(*frame)
	if !ok || f.owner != e {
		return fmt.Errorf("softmetal: graph %s: the frame is of another executable", e.graph.Name)
	}
	if set, ok := s.States.(*states); s.States != nil && (!ok || set.owner != e) {
		return fmt.Errorf("softmetal: graph %s: the states are of another executable", e.graph.Name)
	}
	if err := s.Fits(&backend.Program{Graph: e.graph, Places: e.fixed}, f.room); err != nil {
		return fmt.Errorf("softmetal: %w", err)
	}
	return nil
}

// Overlap implements [hostqueue.Executor]. Submissions never overlap, since every command uses all workers.
func (x *queueExecutor) Overlap(earlier, next *backend.Submission) bool { return false }

// Uses implements [hostqueue.Executor].
func (x *queueExecutor) Uses(s *backend.Submission) (*ir.Graph, []backend.Place) {
	e := s.Executable.(*executable)
	return e.graph, s.Places(&backend.Program{Graph: e.graph, Places: e.fixed}, statePlaces(s))
}

// statePlaces returns the places of a submission's states, or nil if it has none.
func statePlaces(s *backend.Submission) []backend.Place {
	if set, ok := s.States.(*states); ok {
		return set.places
	}
	return nil
}

// Forget implements [hostqueue.Executor].
func (x *queueExecutor) Forget(*backend.Submission) {}

// Replay implements [hostqueue.Executor].
func (x *queueExecutor) Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error {
	e := s.Executable.(*executable)
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.graph
	e.batch.graph = g
	b := &bindings{memories: g.Memories, params: s.Params, places: s.Places(&backend.Program{Graph: g, Places: e.fixed}, statePlaces(s))}
	first := slices.Clone(b.places)
	x.mu.Lock()
	order := x.order
	x.mu.Unlock()
	r.Times.Begin = time.Now()
	defer func() { r.Times.End = time.Now() }()
	for i := range s.Count() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Torn = true
		if i > 0 {
			for k := range b.params { // the slice is a copy of the caller's
				b.params[k] += uint32(g.Params[k].Advance)
			}
		}
		for k := range g.Memories {
			m := &g.Memories[k]
			if b.places[k].Buffer == nil || m.Alias != ir.NoMem {
				continue
			}
			if m.Every {
				b.places[k] = first[k].Add(int64(i) * m.Size)
			}
			if m.Kind == ir.Argument {
				m.WriteValues(b.places[k].Buffer.(*buffer).bytes()[b.places[k].Offset:][:m.Size], b.params)
			}
		}
		fillAliases(g.Memories, b.places)
		b.carries = i+1 < s.Count()
		if x.check != nil {
			forget(g, b.places)
			for k := range g.Memories {
				if m := &g.Memories[k]; m.Kind == ir.Argument && b.places[k].Buffer != nil {
					define(b.places[k], m.Size)
				}
			}
			if err := x.checked(ctx, g, e.steps, b, &e.batch); err != nil {
				return err
			}
		} else if order != 0 {
			if err := x.shuffled(ctx, e, b, r, order+uint64(i)); err != nil {
				return err
			}
		} else if err := x.execute(ctx, e.steps, b, &e.batch, e.profile, r); err != nil {
			return err
		}
		r.Torn = false
		r.Replays++
		if s.Ended != nil {
			s.Ended(i)
		}
	}
	return nil
}

// maxBatch is the size in bytes beyond which a batch of commands is sent.
const maxBatch = 1 << 22

// execute runs steps in their order, several in one batch.
func (x *queueExecutor) execute(ctx context.Context, list []step, with *bindings, b *batch, timed bool, r *backend.Result) error {
	b.reset()
	for i := range list {
		s := &list[i]
		if d, ok := s.node.(*ir.Dispatch); ok && d.Indirect != nil || len(b.data) > maxBatch {
			if err := x.send(ctx, b, timed, r); err != nil {
				return err
			}
		}
		if err := b.encode(s, with); err != nil {
			return fmt.Errorf("softmetal: %w", err)
		}
	}
	return x.send(ctx, b, timed, r)
}

// send runs the encoded batch, adds the times of its commands to the result, and begins a new batch.
func (x *queueExecutor) send(ctx context.Context, b *batch, timed bool, r *backend.Result) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b.count == 0 {
		return nil
	}
	times, err := x.process.run(ctx, b, timed)
	if err != nil {
		return b.explain(err)
	}
	for i, t := range times {
		if c, ok := b.nodes[i].(ir.Command); ok {
			r.Times.Commands = append(r.Times.Commands, backend.TimeOf(c, t.begin, t.end))
		}
	}
	b.reset()
	return nil
}

// Upload implements [hostqueue.Executor].
func (x *queueExecutor) Upload(ctx context.Context, dst backend.Place, data []byte) error {
	_, to, err := x.own(dst, int64(len(data)))
	if err != nil {
		return err
	}
	if x.check != nil {
		define(dst, int64(len(data)))
	}
	return hostqueue.Copy(ctx, to, data)
}

// Download implements [hostqueue.Executor].
func (x *queueExecutor) Download(ctx context.Context, data []byte, src backend.Place) error {
	_, from, err := x.own(src, int64(len(data)))
	if err != nil {
		return err
	}
	return hostqueue.Copy(ctx, data, from)
}

// Copy implements [hostqueue.Executor].
func (x *queueExecutor) Copy(ctx context.Context, dst, src backend.Place, n int64) error {
	_, to, err := x.own(dst, n)
	if err != nil {
		return err
	}
	if x.check != nil {
		if b, ok := src.Buffer.(*buffer); ok && b.states != nil {
			copyStates(dst, src, n)
		} else {
			define(dst, n)
		}
	}
	return hostqueue.Read(ctx, to, src)
}

// Open implements [hostqueue.Executor].
func (x *queueExecutor) Open(r backend.Recording) (hostqueue.Encoder, error) {
	c := &encoder{x: x, scope: r.Scope, profile: r.Profile}
	c.batch.reset()
	return c, nil
}

// encoder is a command buffer. Its commands run after it is committed, with the places that memories had when each
// command was encoded.
type encoder struct {
	x       *queueExecutor
	scope   *backend.Scope
	profile bool
	params  []uint32 // as they were at the commit
	batch   batch
	pieces  []piece
}

// piece is a sequence of commands for which every memory has the same place, or a copy.
type piece struct {
	steps []step
	roots []backend.Place // of root memories, as the scope had them
	bindings
	copy *placesCopy // if not nil, instead of steps
}

type placesCopy struct {
	dst, src backend.Place
	n        int64
}

// Encode implements [hostqueue.Encoder].
func (c *encoder) Encode(n ir.Node) error {
	cmd, ok := n.(ir.Command)
	if _, join := n.(*ir.Join); !ok || join {
		return nil // commands run in the order in which they come
	}
	g := c.scope.Graph
	s, err := c.x.step(context.Background(), g, cmd)
	if err == nil {
		cmd.EachView(func(v *ir.View) {
			root, _ := g.Root(v.Mem)
			if int(root) >= len(c.scope.Places) || err != nil {
				err = errors.Join(err, fmt.Errorf("memory %%%s has no place", ir.QuoteName(g.Memories[root].Name)))
				return
			}
			m := &g.Memories[root]
			if _, _, e := c.x.own(c.scope.Places[root], m.Size); e != nil {
				err = fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), e)
			} else if align := max(m.DType.Size(), 1); c.scope.Places[root].Offset%align != 0 {
				err = fmt.Errorf("memory %%%s begins at byte %d of a buffer, which is no multiple of %d", ir.QuoteName(m.Name), c.scope.Places[root].Offset, align)
			}
		})
	}
	if err != nil {
		return fmt.Errorf("softmetal: %s: %w", g.Describe(n), err)
	}
	last := len(c.pieces) - 1
	if last < 0 || c.pieces[last].copy != nil || len(c.pieces[last].memories) != len(g.Memories) || !slices.Equal(c.pieces[last].roots, c.scope.Places) {
		places := make([]backend.Place, len(g.Memories))
		copy(places, c.scope.Places)
		fillAliases(g.Memories, places)
		c.pieces = append(c.pieces, piece{roots: slices.Clone(c.scope.Places), bindings: bindings{memories: g.Memories, places: places}})
		last++
	}
	c.pieces[last].steps = append(c.pieces[last].steps, s)
	return nil
}

// Copy implements [hostqueue.Encoder].
func (c *encoder) Copy(dst, src backend.Place, n int64) error {
	_, _, err := c.x.own(dst, n)
	if err == nil {
		_, _, err = c.x.own(src, n)
	}
	c.pieces = append(c.pieces, piece{copy: &placesCopy{dst, src, n}})
	return err
}

// Commit implements [hostqueue.Encoder].
func (c *encoder) Commit(string, ir.CommitOrder) error {
	c.params = slices.Clone(c.scope.Params)
	return nil
}

// Run implements [hostqueue.Encoder].
func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	r.Times.Begin = time.Now()
	defer func() { r.Times.End = time.Now() }()
	for i := range c.pieces {
		p := &c.pieces[i]
		if p.copy != nil {
			c.batch.reset()
			if p.copy.n > 0 {
				c.batch.copy(nil, p.copy.dst, p.copy.src, p.copy.n)
			}
			if err := c.x.send(ctx, &c.batch, false, r); err != nil {
				return err
			}
			if c.x.check != nil {
				copyStates(p.copy.dst, p.copy.src, p.copy.n)
			}
			continue
		}
		p.params = c.params
		c.batch.graph = c.scope.Graph
		if c.x.check != nil {
			if err := c.x.checked(ctx, c.scope.Graph, p.steps, &p.bindings, &c.batch); err != nil {
				return err
			}
			continue
		}
		if err := c.x.execute(ctx, p.steps, &p.bindings, &c.batch, c.profile, r); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [hostqueue.Encoder].
func (c *encoder) Close() {}
