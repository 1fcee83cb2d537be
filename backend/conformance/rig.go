package conformance

import (
	"context"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
)

// workQueue returns the queue of a test, which uploads, downloads and runs use.
func (t *T) workQueue() backend.Queue {
	if t.queue == nil {
		var err error
		t.queue, err = t.Device.NewQueue()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, t.queue.Close()) })
	}
	return t.queue
}

// alloc returns a buffer that the test closes at its end.
func (t *T) alloc(size int64) backend.Buffer {
	t.Helper()
	b, err := t.Device.Alloc(backend.BufferSpec{Size: size})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
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
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	b := &bound{t, backend.Submission{Executable: x}}
	b.Frame = b.frame()
	b.States, err = x.NewStates(states)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.States.Close()) })
	return b
}

// frame returns another frame.
func (b *bound) frame() backend.Frame {
	b.t.Helper()
	f, err := b.Executable.NewFrame(backend.FrameSpec{})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, f.Close()) })
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
