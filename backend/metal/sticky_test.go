//go:build linux

package metal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// doubling is a graph that doubles its state, compiled for a device, with the buffer of that state.
type doubling struct {
	t     *testing.T
	exec  backend.Executable
	frame backend.Frame
	state backend.Buffer
}

// doubling compiles a graph of so many command buffers, each of which doubles the state.
func (r *rig) doubling(buffers int) *doubling {
	t := r.t.(*testing.T)
	s := record.New("double")
	x := s.State("x", ir.F32, 4)
	for range buffers {
		s.Add(x, x, record.Into(x))
		s.Commit("one")
	}
	g, err := s.Graph()
	require.NoError(t, err)
	d := &doubling{t: t, state: r.buffer(1, 1, 1, 1)}
	d.exec, err = r.Compile(t.Context(), &backend.Program{Graph: g, Places: []backend.Place{backend.At(d.state)}})
	require.NoError(t, err)
	d.frame, err = d.exec.NewFrame(backend.FrameSpec{Replays: 4})
	require.NoError(t, err)
	return d
}

func (d *doubling) submit(ctx context.Context, q backend.Queue) backend.Pending {
	d.t.Helper()
	p, err := q.Submit(ctx, backend.Submission{Executable: d.exec, Frame: d.frame})
	require.NoError(d.t, err)
	return p
}

func (d *doubling) value() float32 { return numbers(d.state.Bytes())[0] }

func (d *doubling) close() {
	require.NoError(d.t, d.frame.Close())
	require.NoError(d.t, d.exec.Close())
	require.NoError(d.t, d.state.Close())
}

// TestStickyError: a command buffer that fails fails its queue, with the cause as far as Metal tells it.
// Operations that wait behind it, or are given later, are not executed and say why. Unless the GPU is lost,
// other queues of the device go on, and a new queue can be made.
func TestStickyError(t *testing.T) {
	for code, want := range map[int]metal.Cause{
		1: metal.Unknown, 2: metal.Timeout, 3: metal.PageFault, 4: metal.DeviceLost, 7: metal.NotPermitted, 8: metal.OutOfMemory,
		9: metal.InvalidResource, 12: metal.StackOverflow, fakemetal.Interactivity: metal.Interactivity, fakemetal.DeviceRemoved: metal.DeviceLost,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			r := gpu(t, fakemetal.Options{Late: time.Millisecond, Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 2, Code: code}}}, metal.Options{})
			d, q, other := r.doubling(1), r.queue(), r.queue()
			require.NoError(t, d.submit(t.Context(), q).Wait(t.Context()))
			failing := d.submit(t.Context(), q)
			failed := failing.Result()
			require.Equal(t, backend.Failed, failed.Status)
			require.True(t, failed.Torn)
			require.NotErrorIs(t, failed.Err, backend.ErrNotExecuted)
			var cause *metal.CommandBufferError
			require.ErrorAs(t, failed.Err, &cause)
			require.Equal(t, want, cause.Cause)
			require.ErrorContains(t, failed.Err, want.String())
			require.ErrorIs(t, q.Err(), cause)
			for range 2 {
				later := d.submit(t.Context(), q).Result()
				require.Equal(t, backend.Failed, later.Status)
				require.False(t, later.Torn)
				require.ErrorIs(t, later.Err, backend.ErrNotExecuted)
				require.ErrorAs(t, later.Err, &cause)
				require.ErrorIs(t, backend.Wait(t.Context())(q.Upload(t.Context(), backend.At(d.state), floats(9))), backend.ErrNotExecuted)
			}
			before := d.value()
			result := d.submit(t.Context(), other).Result()
			again, err := r.NewQueue()
			if code == fakemetal.DeviceRemoved {
				require.ErrorAs(t, result.Err, &cause)
				require.Equal(t, metal.DeviceLost, cause.Cause)
				require.ErrorContains(t, err, "gives no command queue")
			} else {
				require.NoError(t, result.Err)
				require.NoError(t, err)
				require.NoError(t, d.submit(t.Context(), again).Wait(t.Context()))
				require.Equal(t, 4*before, d.value())
				require.NoError(t, again.Close())
				require.NoError(t, other.Err())
			}
			total := r.Totals()
			require.Equal(t, map[bool]int{false: 1, true: 2}[code == fakemetal.DeviceRemoved], total.Failed)
			require.NoError(t, q.Close())
			require.NoError(t, other.Close())
			d.close()
		})
	}
}

// TestAborted: if its context ends, a replay is aborted between two of its command buffers. That is no
// failure: the queue goes on, and the result says that something had begun.
func TestAborted(t *testing.T) {
	const buffers = 30 // they take most of a second, so that also on a busy machine the context ends first
	r := gpu(t, fakemetal.Options{Late: 50 * time.Millisecond}, metal.Options{})
	d, short, q := r.doubling(buffers), r.doubling(1), r.queue()
	commits := r.sent("commit")
	reason := errors.New("nobody listens")
	ctx, cancel := context.WithCancelCause(t.Context())
	p := d.submit(ctx, q)
	behind := short.submit(t.Context(), q)
	for commits() < 2 { // one may be that of the residency set, before any command buffer
		time.Sleep(100 * time.Microsecond)
	}
	cancel(reason)
	x := p.Result()
	require.Equal(t, backend.Aborted, x.Status)
	require.ErrorIs(t, x.Err, reason)
	require.True(t, x.Torn)
	require.Zero(t, x.Replays)
	require.Less(t, commits(), buffers, "the rest of it is not given to the GPU")
	require.NoError(t, q.Err())
	require.NoError(t, behind.Wait(t.Context()))
	require.Equal(t, float32(2), short.value())

	// A replay whose context had ended before does nothing at all.
	before := commits()
	x = d.submit(ctx, q).Result()
	require.Equal(t, backend.Aborted, x.Status)
	require.False(t, x.Torn)
	require.Equal(t, before, commits())
	require.NoError(t, q.Close())
	d.close()
	short.close()
}

// TestAbortedRecording: once the context of a live encoder has ended, command buffers that were committed and
// have not begun are not executed. With another context the encoder goes on.
func TestAbortedRecording(t *testing.T) {
	const buffers = 40 // they take long, as in TestAborted
	r := gpu(t, fakemetal.Options{Late: 50 * time.Millisecond}, metal.Options{})
	commits := r.sent("commit")
	reason := errors.New("nobody listens")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := record.New("t", record.Live(r.Device))
	s.SetContext(ctx)
	add(s, buffers, 1)
	cancel(reason)
	_, err := s.Finish()
	require.ErrorIs(t, err, reason)
	require.Less(t, commits(), buffers, "the rest of it is not given to the GPU")
	var failure *metal.CommandBufferError
	require.False(t, errors.As(err, &failure), "aborted is not failed")

	s.SetContext(t.Context())
	in, err := s.Bytes(s.Input("x", ir.F32, 4))
	require.NoError(t, err)
	copy(in, floats(1, 2, 3, 4))
	_, y := add(s, 1, 1)
	_, err = s.Finish()
	require.NoError(t, err)
	out, err := s.Bytes(y)
	require.NoError(t, err)
	require.Equal(t, []float32{3, 6, 9, 12}, numbers(out))
	require.NoError(t, s.Close())
}

// TestRecordingAfterFailure: a live encoder returns the error of a command buffer once, and then goes on with
// a new queue.
func TestRecordingAfterFailure(t *testing.T) {
	r := gpu(t, fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 2, Code: 8}}}, metal.Options{})
	s := record.New("t", record.Live(r.Device))
	add(s, 2, 1)
	x, err := s.Finish()
	var cause *metal.CommandBufferError
	require.ErrorAs(t, err, &cause)
	require.Equal(t, metal.OutOfMemory, cause.Cause)
	require.ErrorContains(t, err, `command buffer "some"`)
	require.NoError(t, x.CommandBuffers[0].Err)
	require.ErrorIs(t, x.CommandBuffers[2].Err, backend.ErrNotExecuted)
	add(s, 2, 1)
	_, err = s.Finish()
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
