package conformance

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/assert"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
)

// rig is a compiled graph with a buffer for each root memory, for tests that look at every
// byte.
type rig struct {
	g       *ir.Graph
	queue   backend.Queue
	exec    backend.Executable
	frame   backend.Frame
	buffers []backend.Buffer // of each memory; nil for an alias
}

// newRig allocates the buffers and compiles the graph.
func newRig(dev backend.Device, g *ir.Graph) (_ *rig, err error) {
	r := &rig{g: g, buffers: make([]backend.Buffer, len(g.Memories))}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.queue, err = dev.NewQueue(); err != nil {
		return r, err
	}
	places := make([]backend.Place, len(g.Memories))
	for i := range g.Memories {
		if g.Memories[i].Alias != ir.NoMem {
			continue
		}
		if r.buffers[i], err = dev.Alloc(backend.Spec(&g.Memories[i])); err != nil {
			return r, err
		}
		places[i] = backend.At(r.buffers[i])
	}
	if r.exec, err = dev.Compile(context.Background(), &backend.Program{Graph: g, Places: places}); err != nil {
		return r, err
	}
	r.frame, err = r.exec.NewFrame(backend.FrameSpec{})
	return r, err
}

func (r *rig) close() error {
	var errs []error
	if r.queue != nil {
		errs = append(errs, r.queue.Close())
	}
	if r.frame != nil {
		errs = append(errs, r.frame.Close())
	}
	if r.exec != nil {
		errs = append(errs, r.exec.Close())
	}
	for _, b := range r.buffers {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}

// run runs the graph once.
func (r *rig) run(params []uint32) error {
	ctx := context.Background()
	return backend.Wait(ctx)(r.queue.Submit(ctx, backend.Submission{Executable: r.exec, Frame: r.frame, Params: params}))
}

// put writes the bytes of a memory.
func (r *rig) put(m int, data []byte) error {
	if to := r.buffers[m].Bytes(); to != nil {
		copy(to, data)
		return nil
	}
	ctx := context.Background()
	return backend.Wait(ctx)(r.queue.Upload(ctx, backend.At(r.buffers[m]), data))
}

// get returns a copy of a memory's bytes, in out if that is not nil.
func (r *rig) get(out []byte, m int) ([]byte, error) {
	if out == nil {
		out = make([]byte, r.g.Memories[m].Size)
	}
	if from := r.buffers[m].Bytes(); from != nil {
		copy(out, from)
		return out, nil
	}
	ctx := context.Background()
	return out, backend.Wait(ctx)(r.queue.Download(ctx, out, backend.At(r.buffers[m])))
}

// workQueue returns the queue of a test, which uploads, downloads and runs use.
func (t *T) workQueue() backend.Queue {
	if t.queue == nil {
		var err error
		t.queue, err = t.Device.NewQueue()
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, t.queue.Close()) })
	}
	return t.queue
}

// alloc returns a buffer that the test closes at its end.
func (t *T) alloc(size int64) backend.Buffer {
	t.Helper()
	b, err := t.Device.Alloc(backend.BufferSpec{Size: size})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}

func (t *T) upload(p backend.Place, data []byte) {
	t.Helper()
	ctx := context.Background()
	require.NoError(t, backend.Wait(ctx)(t.workQueue().Upload(ctx, p, data)))
}

func (t *T) download(p backend.Place, n int64) []byte {
	t.Helper()
	ctx := context.Background()
	data := make([]byte, n)
	require.NoError(t, backend.Wait(ctx)(t.workQueue().Download(ctx, data, p)))
	return data
}

// bound is an executable with a frame and a set of states.
type bound struct {
	t *T
	backend.Submission
}

// bind compiles g; weights, frame and states have the given places, by memory.
func (t *T) bind(g *ir.Graph, weights, states []backend.Place) *bound {
	t.Helper()
	if _, barrier := g.Nodes[len(g.Nodes)-1].(*ir.Barrier); barrier && t.Device.Info().Apart { // as in package replay
		g = g.Clone()
		g.Nodes[len(g.Nodes)-1] = &ir.Commit{Order: ir.OrderEvent}
	}
	x, err := t.Device.Compile(context.Background(), &backend.Program{Graph: g, Places: weights})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, x.Close()) })
	b := &bound{t, backend.Submission{Executable: x}}
	b.Frame = b.frame()
	b.States, err = x.NewStates(states)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.States.Close()) })
	return b
}

// frame returns another frame.
func (b *bound) frame() backend.Frame {
	b.t.Helper()
	f, err := b.Executable.NewFrame(backend.FrameSpec{})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, f.Close()) })
	return f
}

// submit submits on a queue.
func (b *bound) submit(q backend.Queue, f backend.Frame, params ...uint32) backend.Pending {
	b.t.Helper()
	s := b.Submission
	s.Frame, s.Params = f, params
	p, err := q.Submit(context.Background(), s)
	require.NoError(b.t, err)
	return p
}

// run submits on the test's queue and waits.
func (b *bound) run(params []uint32) {
	b.t.Helper()
	require.NoError(b.t, b.submit(b.t.workQueue(), b.Frame, params...).Wait(context.Background()))
}

// floatBytes returns the bytes of floats.
func floatBytes(values []float32) []byte {
	data := make([]byte, 4*len(values))
	put(data, values...)
	return data
}
