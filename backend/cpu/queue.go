package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/ir"
)

// NewQueue implements [backend.Device].
func (d *Device) NewQueue() (backend.Queue, error) {
	return hostqueue.New(&executor{Device: d}, hostqueue.Options{}), nil
}

// executor does the operations of one queue.
type executor struct {
	*Device
	machine machine

	spare sync.Mutex // guards the memory that a command buffer leaves to the next one
	left  *encoder
}

// Accept implements [hostqueue.Executor].
func (x *executor) Accept(s *backend.Submission) error {
	e, ok := s.Executable.(*executable)
	if !ok || e.device != x.Device {
		return errors.New("cpu: the executable is of another device")
	}
	if f, ok := s.Frame.(*frame); !ok || f.owner != e {
		return fmt.Errorf("cpu: graph %s: the frame is of another executable", e.graph.Name)
	}
	set, ok := s.States.(*states)
	switch {
	case ok && set.owner != e:
		return fmt.Errorf("cpu: graph %s: the states are of another executable", e.graph.Name)
	case !ok && !e.stateless():
		return fmt.Errorf("cpu: graph %s has states, and the submission none", e.graph.Name)
	case s.Count() > s.Frame.(*frame).room:
		return fmt.Errorf("cpu: graph %s: a submission of %d replays, the frame serves %d", e.graph.Name, s.Count(), s.Frame.(*frame).room)
	case len(s.Params) != len(e.graph.Params):
		return fmt.Errorf("cpu: graph %s has %d params, the submission %d", e.graph.Name, len(e.graph.Params), len(s.Params))
	}
	return nil
}

// Overlap implements [hostqueue.Executor]. Replays never overlap: every command uses all cores, and commands run
// in list order.
func (x *executor) Overlap(earlier, next *backend.Submission) bool { return false }

// Uses implements [hostqueue.Executor].
func (x *executor) Uses(s *backend.Submission) (*ir.Graph, []backend.Place) {
	e := s.Executable.(*executable)
	var places []backend.Place
	if set, ok := s.States.(*states); ok {
		places = set.places
	}
	return e.graph, s.Places(&backend.Program{Graph: e.graph, Places: e.fixed}, places)
}

// Forget implements [hostqueue.Executor].
func (x *executor) Forget(*backend.Submission) {}

// Replay implements [hostqueue.Executor].
func (x *executor) Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error {
	e, f := s.Executable.(*executable), s.Frame.(*frame)
	set, _ := s.States.(*states)
	var times *[]backend.CommandTime
	if e.profile {
		r.Times.Commands = make([]backend.CommandTime, 0, len(e.steps)*s.Count())
		times = &r.Times.Commands
	}
	r.Times.Begin = time.Now()
	defer func() { r.Times.End = time.Now() }()
	for i := range s.Count() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.Torn = true
		if err := e.replay(ctx, f, set, s, i, times); err != nil {
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

// replay runs the steps of replay i of a submission. One replay runs at a time, on all
// cores.
func (e *executable) replay(ctx context.Context, f *frame, set *states, s *backend.Submission, i int, times *[]backend.CommandTime) error {
	e.device.mu.Lock()
	defer e.device.mu.Unlock()
	f.bind(set)
	if len(f.every) > 0 {
		for _, m := range f.every {
			size := e.graph.Memories[m].Size
			f.mem[m] = f.Place(m).Add(int64(i) * size).Bytes(size)
		}
		f.mem.aliases(e.graph)
	}
	params := s.Params
	if i > 0 {
		for k := range params { // the slice is a copy of the caller's
			params[k] += uint32(e.graph.Params[k].Advance)
		}
	}
	for _, a := range e.arguments {
		e.graph.Memories[a].WriteValues(f.mem[a], params)
	}
	m := &e.machine
	m.pool, m.mem, m.params, m.carries = e.device.pool, f.mem, params, i+1 < s.Count()
	m.scalars = slices.Grow(m.scalars[:0], e.scalars)[:e.scalars]
	defer m.watch(ctx)()
	return m.run(ctx, e.steps, times)
}

// Upload implements [hostqueue.Executor].
func (x *executor) Upload(ctx context.Context, dst backend.Place, data []byte) error {
	to, err := x.own(dst, int64(len(data)))
	if err != nil {
		return err
	}
	return move(ctx, to, data)
}

// Download implements [hostqueue.Executor].
func (x *executor) Download(ctx context.Context, data []byte, src backend.Place) error {
	from, err := x.own(src, int64(len(data)))
	if err != nil {
		return err
	}
	return move(ctx, data, from)
}

// Copy implements [hostqueue.Executor].
func (x *executor) Copy(ctx context.Context, dst, src backend.Place, n int64) error {
	to, err := x.own(dst, n)
	if err != nil {
		return err
	}
	if from, err := x.own(src, n); err == nil {
		return move(ctx, to, from)
	}
	// A buffer of another device is read in pieces, directly into this one's memory.
	return hostqueue.Read(ctx, to, src)
}

func move(ctx context.Context, to, from []byte) error {
	var m machine
	defer m.watch(ctx)()
	err := m.copy(to, from)
	if errors.Is(err, errStopped) {
		err = context.Cause(ctx)
	}
	return err
}

// own returns n bytes at a place in a buffer of this device.
func (d *Device) own(p backend.Place, n int64) ([]byte, error) {
	b, ok := p.Buffer.(*buffer)
	if !ok || b.device != d {
		return nil, errors.New("cpu: a buffer is of another device")
	}
	if b.closed.Load() {
		return nil, errors.New("cpu: a buffer was closed")
	}
	return p.Bytes(n), nil
}

// Open implements [hostqueue.Executor].
func (x *executor) Open(r backend.Recording) (hostqueue.Encoder, error) {
	x.spare.Lock()
	c := x.left
	x.left = nil
	x.spare.Unlock()
	if c == nil {
		c = &encoder{x: x}
	}
	if c.kernels.graph != r.Scope.Graph {
		c.kernels = kernels{graph: r.Scope.Graph}
	}
	c.scope, c.profile = r.Scope, r.Profile
	return c, nil
}

// encoder is a command buffer. The executor keeps its memory and the kernels that it has looked up for the next
// command buffer.
type encoder struct {
	x       *executor
	kernels kernels
	scope   *backend.Scope
	profile bool
	steps   []step
	scalars int
	bases   [][]byte // those of all steps
	params  []uint32
}

// Encode implements [hostqueue.Encoder].
func (c *encoder) Encode(n ir.Node) error {
	cmd, ok := n.(ir.Command)
	if _, join := n.(*ir.Join); !ok || join {
		return nil // commands run in the order in which they come
	}
	s, err := c.kernels.step(cmd, &c.scalars)
	if err == nil {
		err = c.bind(&s)
	}
	if err != nil {
		return fmt.Errorf("cpu: %s: %w", c.scope.Graph.Describe(n), err)
	}
	c.steps = append(c.steps, s)
	return nil
}

// bind resolves the memories of a step's views.
func (c *encoder) bind(s *step) error {
	switch n := s.node.(type) {
	case *ir.Copy:
		s.bases = c.take(2)
		return errors.Join(c.base(&s.bases[0], &n.Dst), c.base(&s.bases[1], &n.Src))
	case *ir.Carry: // copies to the next replay, and a command buffer has none
		s.bases = c.take(2)
	case *ir.Fill:
		s.bases = c.take(1)
		return c.base(&s.bases[0], &n.Dst)
	case *ir.Dispatch:
		views := len(n.Bindings)
		if x := n.Indirect; x != nil {
			s.bases = c.take(views + 1 + len(x.Offsets))
			if x.Grid != nil {
				if err := c.base(&s.bases[views], x.Grid); err != nil {
					return err
				}
				views++
			}
			for i := range x.Offsets {
				if err := c.base(&s.bases[views+i], &x.Offsets[i].At); err != nil {
					return err
				}
			}
		} else {
			s.bases = c.take(views)
		}
		k := &c.scope.Graph.Kernels[n.Kernel]
		for i := range n.Bindings {
			b := &n.Bindings[i]
			if b.Kind != ir.BindView {
				continue
			}
			if err := c.base(&s.bases[i], &b.View); err != nil {
				return err
			}
			if a, _ := k.Arg(b.Slot); a.Type.Size() > 1 {
				if err := misaligned(c.scope.Graph, b.View, a, int64(addressOf(s.bases[i])%4096)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// base sets the memory of a view.
func (c *encoder) base(to *[]byte, v *ir.View) error {
	g := c.scope.Graph
	root, off := g.Root(v.Mem)
	m := &g.Memories[v.Mem]
	if int(root) >= len(c.scope.Places) {
		return fmt.Errorf("memory %%%s has no place", ir.QuoteName(g.Memories[root].Name))
	}
	p := c.scope.Places[root]
	if err := p.Holds(g.Memories[root].Size); err != nil {
		return fmt.Errorf("memory %%%s %w", ir.QuoteName(g.Memories[root].Name), err)
	}
	data, err := c.x.own(p.Add(off), m.Size)
	*to = data
	return err
}

// Copy implements [hostqueue.Encoder].
func (c *encoder) Copy(dst, src backend.Place, n int64) error {
	s := step{bases: c.take(2)}
	var err [2]error
	s.bases[0], err[0] = c.x.own(dst, n)
	s.bases[1], err[1] = c.x.own(src, n)
	c.steps = append(c.steps, s)
	return errors.Join(err[:]...)
}

// Commit implements [hostqueue.Encoder].
func (c *encoder) Commit(string, ir.CommitOrder) error {
	c.params = append(c.params[:0], c.scope.Params...)
	return nil
}

// Run implements [hostqueue.Encoder].
func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	m := &c.x.machine
	m.pool, m.mem, m.params = c.x.pool, nil, c.params
	m.scalars = slices.Grow(m.scalars[:0], c.scalars)[:c.scalars]
	defer m.watch(ctx)()
	var times *[]backend.CommandTime
	if c.profile {
		times = &r.Times.Commands
	}
	r.Times.Begin = time.Now()
	defer func() { r.Times.End = time.Now() }()
	return m.run(ctx, c.steps, times)
}

// Close implements [hostqueue.Encoder].
func (c *encoder) Close() {
	clear(c.steps)
	clear(c.bases)
	c.steps, c.bases, c.scalars, c.scope = c.steps[:0], c.bases[:0], 0, nil
	c.x.spare.Lock()
	c.x.left = c
	c.x.spare.Unlock()
}

// take returns n nil slices of the memory for bases.
func (c *encoder) take(n int) [][]byte {
	if n > cap(c.bases)-len(c.bases) {
		c.bases = make([][]byte, 0, max(2*cap(c.bases), n, 64)) // earlier steps keep their slices of the old array
	}
	at := len(c.bases)
	c.bases = c.bases[:at+n]
	return c.bases[at : at+n : at+n]
}
