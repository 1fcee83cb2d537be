//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// ways are the ways in which a replay is launched, each with the passes that order its graph.
var ways = []struct {
	name, pipeline string
	options        cuda.Options
}{
	{"edges", "edges", cuda.Options{Plan: cuda.Edges}},
	{"full edges", "edges", cuda.Options{Plan: cuda.Edges, Full: true}},
	{"chain", "", cuda.Options{Plan: cuda.Chain}},
	{"stream", "", cuda.Options{Plan: cuda.Stream}},
}

// reference returns the results of the workload when software Metal itself replays it.
func reference(t testing.TB, submissions ...int) outcome {
	t.Helper()
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	want, err := run(d, newWorkload(t, ""), submissions...)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	return want
}

// TestWorkload: submissions of many replays, some of which are in flight together, have the results of software
// Metal, which runs one command after another, in whatever order the driver runs them and with random delays.
func TestWorkload(t *testing.T) {
	sample.Seldom(t)
	want := reference(t, several...)
	for _, w := range ways {
		g := newWorkload(t, w.pipeline)
		for _, seed := range sample.Of(t, w.name, []uint64{0, 1, 4, 5}, 4) {
			x := serve(t, fakecuda.Options{Seed: seed, Late: time.Millisecond})
			d := standIn(t, w.options)
			got, err := run(d, g, several...)
			require.NoError(t, err)
			assert.True(t, slices.Equal(want, got), "%s, seed %d", w.name, seed)
			require.NoError(t, d.Close())
			assert.Zero(t, x.Pageable(), "copies are of memory that the GPU reaches by itself")
			quit(t, x)
		}
	}
}

// TestNothingLeaks: after 1,000 replays, or recordings of a live engine, the driver has as many objects as after
// ten.
func TestNothingLeaks(t *testing.T) {
	hold := func(begin func(d *cuda.Device) (once, end func())) {
		x := serve(t, fakecuda.Options{})
		d := standIn(t, cuda.Options{Plan: cuda.Edges})
		once, end := begin(d)
		var live map[string]int
		for i := range 1000 {
			if i == 10 {
				live = x.Live()
			}
			once()
		}
		assert.Equal(t, live, x.Live())
		end()
		require.NoError(t, d.Close())
		quit(t, x)
	}
	g := testGraphs(t)["two_streams, edges"]
	hold(func(d *cuda.Device) (once, end func()) {
		o := open(t, d, g)
		return func() {
			_, err := o.p.Run(context.Background())
			require.NoError(t, err)
		}, o.close
	})
	hold(func(d *cuda.Device) (once, end func()) {
		e := record.NewEncoder("live", record.Live(d))
		return func() {
			e.Encode(g)
			_, err := e.Finish()
			require.NoError(t, err)
		}, func() { require.NoError(t, e.Close()) }
	})
}

// TestHostCalls counts what the host asks of the driver: a submission of many replays costs one launch of a
// graph for every sixteen, and nothing for a param that advances.
func TestHostCalls(t *testing.T) {
	x := serve(t, fakecuda.Options{})
	d := standIn(t, cuda.Options{Plan: cuda.Edges})
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{newWorkload(t, "edges")}}, replay.Options{})
	require.NoError(t, err)
	p, err := s.Graph(t.Context(), "")
	require.NoError(t, err)
	f, err := p.NewBurstFrame(t.Context(), 48)
	require.NoError(t, err)
	require.NoError(t, f.SetInput("x", make([]byte, 4*cells)))
	require.NoError(t, f.SetParam("pos", 1))
	require.NoError(t, f.SetParam("rows", 2))
	_, err = f.RunBurst(t.Context(), 48) // makes graphs and memory that are kept
	require.NoError(t, err)
	before := x.Calls()
	_, err = f.RunBurst(t.Context(), 48)
	require.NoError(t, err)
	made := map[string]int{}
	for name, n := range x.Calls() {
		if n -= before[name]; n > 0 && name != fakecuda.KernelRun {
			made[name] = n
		}
	}
	assert.Equal(t, map[string]int{
		"cuCtxSetCurrent":       1,
		"cuMemcpyHtoDAsync_v2":  2, // the contents of argument memory, and params from where they begin again
		"cuGraphLaunch":         3,
		"cuGraphNodeSetEnabled": 2, // the carry, which the last replay leaves out
		"cuEventRecord":         4,
		"cuEventSynchronize":    3,
		"cuEventElapsedTime":    1,
	}, made)
	require.NoError(t, s.Close())
	require.NoError(t, d.Close())
}

// faulty runs the workload, and records a graph live.
func faulty(t *testing.T, o cuda.Options, w, g *ir.Graph) (out outcome, err error) {
	d, err := cuda.Open(t.Context(), o.WithImages(images))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if out, err = run(d, w, 18, 2); err != nil {
		return nil, err
	}
	e := record.NewEncoder("live", record.Live(d))
	e.Encode(g)
	_, err = e.Finish()
	return out, errors.Join(err, e.Close())
}

// TestFaults: when a call of the driver fails, what needs it ends with an error that says why, and the rest is
// closed without a leak: with each function, at several of its calls, and also when the context is lost.
func TestFaults(t *testing.T) {
	sample.Long(t)
	live := testGraphs(t)["commits"]
	tried := 0
	for _, w := range []int{0, 3} {
		way := ways[w]
		g := newWorkload(t, way.pipeline)
		x := serve(t, fakecuda.Options{})
		_, err := faulty(t, way.options, g, live)
		require.NoError(t, err)
		calls := x.Calls()
		quit(t, x)
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			n := calls[name]
			for nth := 1; nth <= n; nth++ {
				if nth > 2 && nth != n/2 && nth != n {
					continue
				}
				if tried++; !sample.Takes(t.Name(), tried, 4) {
					continue
				}
				code, want := uint32(2), "out of memory"
				// To wait fails only where the context is lost.
				if nth == n/2 || name == fakecuda.KernelRun || strings.HasSuffix(name, "Synchronize") {
					code, want = 719, "unspecified launch failure"
				}
				x := serve(t, fakecuda.Options{Faults: []fakecuda.Fault{{On: name, Nth: nth, Code: code}}})
				_, err := faulty(t, way.options, g, live)
				x.Close()
				failures := x.Failures()
				what := fmt.Sprintf("%s: call %d of %d of %s fails, code %d", way.name, nth, n, name, code)
				switch {
				case name == "cuEventElapsedTime" && code == 2, name == "cuMemFreeHost" && err == nil:
					// Only times are missing; or a command buffer has run, which does not report that freeing its
					// memory failed.
				case err == nil && x.Count(name) < nth:
					// Memory that was given back in time was used again, and fewer calls were made.
				case err == nil && code == 2 && (name == "cuMemGetInfo_v2" || name == "cuCtxSetCurrent" && nth == 2):
					// It is not known how much is free.
				case err == nil && code == 2 && name == "cuMemAlloc_v2":
					// The memory of closed buffers was freed, and the allocation tried again.
					assert.Greater(t, x.Count(name), nth, what)
				case assert.Error(t, err, what):
					assert.ErrorContains(t, err, want, what)
				}
				if name == "cuCtxSetCurrent" && nth == n {
					// If its context cannot be made current, a device leaves its pool and its modules to be freed
					// with the context.
					assert.Len(t, failures, 2, what)
					assert.Contains(t, failures[0], "of memory leaked", what)
					assert.Contains(t, failures[1], "of module leaked", what)
					continue
				}
				assert.Empty(t, failures, what)
			}
		}
	}
}

// doubling replays a graph whose commands double a state, each after the one before.
type doubling struct {
	t     *testing.T
	q     backend.Queue
	exec  backend.Executable
	frame backend.Frame
	state backend.Buffer
}

func newDoubling(t *testing.T, d *cuda.Device, commands, replays int) *doubling {
	t.Helper()
	s := record.New("double")
	x := s.State("x", ir.F32, 4)
	for range commands {
		s.Add(x, x, record.Into(x))
	}
	g, err := s.Graph()
	require.NoError(t, err)
	o := &doubling{t: t}
	o.q, err = d.NewQueue()
	require.NoError(t, err)
	o.state, err = d.Alloc(backend.BufferSpec{Size: 16})
	require.NoError(t, err)
	require.NoError(t, backend.Wait(t.Context())(o.q.Upload(t.Context(), backend.At(o.state), []byte{0, 0, 128, 63, 0, 0, 128, 63, 0, 0, 128, 63, 0, 0, 128, 63})))
	o.exec, err = d.Compile(t.Context(), &backend.Program{Graph: g, Places: []backend.Place{backend.At(o.state)}})
	require.NoError(t, err)
	o.frame, err = o.exec.NewFrame(backend.FrameSpec{Replays: replays})
	require.NoError(t, err)
	return o
}

func (o *doubling) submit(ctx context.Context, replays int) *backend.Result {
	o.t.Helper()
	p, err := o.q.Submit(ctx, backend.Submission{Executable: o.exec, Frame: o.frame, Replays: replays})
	require.NoError(o.t, err)
	return p.Result()
}

// close closes all, and returns the errors: a device that was lost may have some.
func (o *doubling) close() error {
	return errors.Join(o.q.Close(), o.frame.Close(), o.exec.Close(), o.state.Close())
}

// TestLost: a kernel that fails loses the context. Its submission says why and what to do, and counts the replays
// that had ended; later submissions are not executed, nothing of the device can be used any more, and everything can
// be closed all the same.
func TestLost(t *testing.T) {
	for code, want := range map[uint32]string{
		700: "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS): run `mlxreplay check`",
		702: "the launch timed out and was terminated (CUDA_ERROR_LAUNCH_TIMEOUT): the GPU draws a screen too",
		716: "misaligned address (CUDA_ERROR_MISALIGNED_ADDRESS): run `mlxreplay check`",
		719: "unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)",
	} {
		const commands = 3
		x := serve(t, fakecuda.Options{Faults: []fakecuda.Fault{{On: fakecuda.KernelRun, Nth: commands*18 + 2, Code: code}}})
		d := standIn(t, cuda.Options{Plan: cuda.Edges})
		o := newDoubling(t, d, commands, 40)
		failed := o.submit(t.Context(), 40) // 16, 16 and eight single ones
		require.Equal(t, backend.Failed, failed.Status)
		require.True(t, failed.Torn)
		// Once the context is lost, events that were reached before fail too: only those replays count whose end the
		// host has seen before.
		require.Contains(t, []int{0, 16}, failed.Replays, "the last graph of which something failed counts for none")
		require.ErrorContains(t, failed.Err, want)
		require.NotErrorIs(t, failed.Err, backend.ErrNotExecuted)
		later := o.submit(t.Context(), 1)
		require.Equal(t, backend.Failed, later.Status)
		require.ErrorIs(t, later.Err, backend.ErrNotExecuted)
		// Every later call returns that error, with the graph, and calls nothing of the driver.
		first := "the context of the GPU was lost before, and the program has to be started again: graph double: "
		before := x.Calls()
		_, err := d.NewQueue()
		require.ErrorContains(t, err, first)
		require.ErrorContains(t, err, want)
		_, err = d.Alloc(backend.BufferSpec{Size: 64})
		require.ErrorContains(t, err, first)
		_, err = o.exec.NewFrame(backend.FrameSpec{Replays: 2})
		require.ErrorContains(t, err, first)
		_, err = o.state.ReadAt(make([]byte, 16), 0)
		require.ErrorContains(t, err, first)
		require.ErrorContains(t, d.Lost(), want)
		after := x.Calls()
		delete(before, "cuCtxSetCurrent") // what a failed call had made is closed
		delete(after, "cuCtxSetCurrent")
		require.Equal(t, before, after)
		_ = o.close()
		_ = d.Close()
		quit(t, x)
	}
}

// TestAborted: when its Go context is cancelled, a submission ends between two of its launches. What was launched
// runs to its end and is counted, and the queue goes on.
func TestAborted(t *testing.T) {
	x := serve(t, fakecuda.Options{Late: 2 * time.Millisecond})
	d := standIn(t, cuda.Options{Plan: cuda.Edges})
	const replays = 50_000 // they take seconds, so that on a busy machine too the end comes before theirs
	o := newDoubling(t, d, 1, replays)
	reason := errors.New("nobody listens")
	ctx, cancel := context.WithCancelCause(t.Context())
	p, err := o.q.Submit(ctx, backend.Submission{Executable: o.exec, Frame: o.frame, Replays: replays})
	require.NoError(t, err)
	for x.Count("cuGraphLaunch") < 4 {
		time.Sleep(100 * time.Microsecond)
	}
	cancel(reason)
	r := p.Result()
	require.Equal(t, backend.Aborted, r.Status)
	require.ErrorIs(t, r.Err, reason)
	require.Less(t, r.Replays, replays)
	require.Equal(t, 16*x.Count("cuGraphLaunch"), r.Replays)
	require.False(t, r.Torn)
	require.NoError(t, o.q.Err())
	require.Equal(t, backend.Completed, o.submit(t.Context(), 1).Status)

	// A submission whose context was cancelled before does nothing at all.
	before := x.Count("cuGraphLaunch")
	r = o.submit(ctx, 1)
	require.Equal(t, backend.Aborted, r.Status)
	require.Equal(t, before, x.Count("cuGraphLaunch"))
	require.NoError(t, o.close())
	require.NoError(t, d.Close())
}

// TestStray: a kernel that accesses memory out of bounds ends with the GPU's error for that.
func TestStray(t *testing.T) {
	serve(t, fakecuda.Options{})
	d := standIn(t, cuda.Options{Plan: cuda.Edges})
	g := newWorkload(t, "")
	g.Nodes[0].(*ir.Dispatch).Grid[0] = ir.Ext(1 << 16)
	_, err := run(d, g, 1)
	require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS")
	_ = d.Close()
}

// TestMisplaced: kernels load as widely as the graph says its memories are aligned, so placing a memory at a lesser
// alignment is an error of the caller.
func TestMisplaced(t *testing.T) {
	x := serve(t, fakecuda.Options{})
	d := standIn(t, cuda.Options{Plan: cuda.Chain})
	s := record.New("double")
	m := s.State("x", ir.F32, 4)
	for range 9 { // enough for the kernel to be specialised
		s.Add(m, m, record.Into(m))
	}
	g, err := s.Graph()
	require.NoError(t, err)
	state, err := d.Alloc(backend.BufferSpec{Size: 32})
	require.NoError(t, err)
	_, err = d.Compile(t.Context(), &backend.Program{Graph: g, Places: []backend.Place{{Buffer: state, Offset: 4}}})
	assert.ErrorContains(t, err, "memory %x begins at byte 4 of a buffer, which is no multiple of 16")
	exec, err := d.Compile(t.Context(), &backend.Program{Graph: g})
	require.NoError(t, err)
	_, err = exec.NewStates([]backend.Place{{Buffer: state, Offset: 4}})
	assert.ErrorContains(t, err, "memory %x begins at byte 4 of a buffer, which is no multiple of 16")
	require.NoError(t, errors.Join(exec.Close(), state.Close(), d.Close()))
	quit(t, x)
}
