package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// newQueue returns another queue.
func (t *T) newQueue() backend.Queue {
	t.Helper()
	q, err := t.Device.NewQueue()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// ok waits for an operation and fails the test if it fails.
func (t *T) ok(p backend.Pending, err error) {
	t.Helper()
	require.NoError(t, err)
	require.NoError(t, p.Wait(context.Background()))
}

// sum compiles a graph that adds the n floats of input x to the state "sum" at place.
func (t *T) sum(n int64, place backend.Place) *bound {
	g := accumulate(t, "sum", n)
	states := make([]backend.Place, len(g.Memories))
	s, _ := g.MemoryNamed("sum")
	states[s] = place
	return t.bind(g, nil, states)
}

// input returns the place of x in a frame of a sum.
func (b *bound) input(f backend.Frame) backend.Place { return f.Place(0) }

// begun waits until the device has begun an operation.
func (t *T) begun(status func() backend.Status) {
	t.Helper()
	require.Eventually(t, func() bool { return status() == backend.Running }, 10*time.Second, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
}

// Sizes of the graphs that tests interrupt: few enough commands to be recorded and proved quickly, and enough work
// to keep a fast GPU busy for a tenth of a second. They are more than the 65,536 nodes of one CUDA graph, which
// cannot be interrupted.
const (
	longCommands = 66_000
	longElements = 20_000
)

// endless returns a graph that takes long and writes a state.
func endless(t *T) *ir.Graph {
	p := newProgram("endless")
	const n = longElements
	x, a, s := p.memory("x", ir.Input, n), p.memory("a", ir.Scratch, n), p.state("s", n, 1)
	p.add(a, x, x, n)
	for range longCommands / 2 {
		p.add(s, a, x, n)
		p.add(a, s, x, n)
	}
	return t.graph(p)
}

// queueTests test the order of a queue, how operations end, and transfers.
var queueTests = map[string]func(*T){
	// Uploads, copies between buffers and within one, and downloads run in the order in which
	// they were submitted.
	"queue/copies": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		a, b := backend.At(t.alloc(100)), backend.At(t.alloc(50)).Add(10)
		up, down := []byte("forty bytes of something that is a text"), make([]byte, 20)
		_, err := q.Upload(ctx, a.Add(30), up)
		require.NoError(t, err)
		_, err = q.Copy(ctx, b, a.Add(36), 20)
		require.NoError(t, err)
		last, err := q.Download(ctx, down, b)
		t.ok(last, err)
		require.Equal(t, string(up[6:26]), string(down))
		require.Equal(t, backend.Completed, last.Status())
		read := make([]byte, 5)
		n, err := a.Buffer.ReadAt(read, 30)
		require.NoError(t, err)
		require.Equal(t, "forty", string(read[:n]))
		for _, wrong := range []error{
			backend.Wait(ctx)(q.Upload(ctx, a.Add(90), up)), backend.Wait(ctx)(q.Download(ctx, down, b.Add(30))), backend.Wait(ctx)(q.Copy(ctx, a, b, 41)),
			backend.Wait(ctx)(q.Copy(ctx, a.Add(-1), b, 1)), backend.Wait(ctx)(q.Upload(ctx, backend.Place{}, up)),
		} {
			require.Error(t, wrong)
		}
		t.ok(q.Event()) // an operation that was refused does not fail the queue
	},

	// Each frame has inputs and outputs of its own; several are in flight.
	"frame/own_inputs": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		p := newProgram("double")
		p.add(p.memory("y", ir.Output, 8), p.memory("x", ir.Input, 8), 1, 8)
		b := t.bind(t.graph(p), nil, nil)
		var frames []backend.Frame
		for i := range 3 {
			f := b.frame()
			_, err := q.Upload(ctx, f.Place(1), floatBytes(repeated(float32(i+1), 8)))
			require.NoError(t, err)
			frames = append(frames, f)
		}
		var all []backend.Pending
		for _, f := range frames {
			all = append(all, b.submit(q, f))
		}
		for i, f := range frames {
			require.NoError(t, all[i].Wait(ctx))
			require.Equal(t, 1, all[i].Result().Replays)
			require.Equal(t, repeated(2*float32(i+1), 8), get(t.download(f.Place(0), 32)), "frame %d", i)
		}
	},

	// One executable serves several sets of states, in flight together.
	"states/several_sets": func(t *T) {
		q := t.newQueue()
		first := backend.At(t.alloc(40))
		b := t.sum(10, first)
		t.upload(first, floatBytes(repeated(0, 10)))
		other := backend.At(t.alloc(60)).Add(16)
		t.upload(other, floatBytes(repeated(100, 10)))
		places := make([]backend.Place, 2)
		places[1] = other
		second, err := b.Executable.NewStates(places)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, second.Close()) })
		one, two := b.frame(), b.frame()
		t.upload(b.input(one), floatBytes(repeated(1, 10)))
		t.upload(b.input(two), floatBytes(repeated(10, 10)))
		c := *b
		c.States = second
		for range 3 {
			x, y := b.submit(q, one), c.submit(q, two)
			t.ok(x, nil)
			t.ok(y, nil)
		}
		require.Equal(t, repeated(3, 10), get(t.download(first, 40)))
		require.Equal(t, repeated(130, 10), get(t.download(other, 40)))
	},

	// Different executables, copies and command buffers on one queue run one after another.
	"queue/order": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		place := backend.At(t.alloc(40))
		double := func() *bound {
			p := newProgram("double")
			s := p.state("s", 10, 0)
			p.add(s, s, s, 10)
			return t.bind(t.graph(p), nil, []backend.Place{place})
		}()
		add := t.sum(10, place)
		t.upload(add.input(add.Frame), floatBytes(repeated(3, 10)))
		scope := &backend.Scope{Graph: accumulate(t, "live", 10)}
		scope.Places = []backend.Place{add.input(add.Frame), place}
		var down [40]byte
		_, err := q.Upload(ctx, place, floatBytes(repeated(1, 10)))
		require.NoError(t, err)
		add.submit(q, add.Frame)       // 4
		double.submit(q, double.Frame) // 8
		c, err := q.CommandBuffer(ctx, backend.Recording{Label: "live", Scope: scope})
		require.NoError(t, err)
		for range 2 {
			for _, n := range scope.Graph.Nodes {
				require.NoError(t, c.Encode(n)) // 11, 14
			}
		}
		_, err = c.Commit(ctx, "", ir.OrderEvent)
		require.NoError(t, err)
		t.ok(q.Download(ctx, down[:], place))
		require.Equal(t, repeated(14, 10), get(down[:]))
	},

	// Uploads, downloads and copies that share no byte with a replay run while it does: the
	// replay here takes longer than all of them.
	"queue/beside_a_replay": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		double := newProgram("double")
		double.add(double.memory("y", ir.Output, 8), double.memory("x", ir.Input, 8), 1, 8)
		short := t.bind(t.graph(double), nil, nil)
		other := short.frame()
		_, err := q.Upload(ctx, short.Frame.Place(1), floatBytes(counting(1, 8)))
		require.NoError(t, err)
		short.submit(q, short.Frame)
		place := backend.At(t.alloc(4 * longElements))
		t.upload(place, floatBytes(repeated(1, longElements)))
		long := t.bind(endless(t), nil, []backend.Place{2: place})
		abort, cancel := context.WithCancel(ctx)
		defer cancel()
		running, err := q.Submit(abort, long.Submission)
		require.NoError(t, err)
		var down [32]byte
		t.ok(q.Download(ctx, down[:], short.Frame.Place(0)))
		require.Equal(t, []float32{2, 4, 6, 8, 10, 12, 14, 16}, get(down[:]))
		t.ok(q.Upload(ctx, other.Place(1), floatBytes(counting(5, 8))))
		t.ok(q.Copy(ctx, short.Frame.Place(1), other.Place(1), 32))
		require.False(t, running.Status().Ended())
		touching, err := q.Download(ctx, down[:], place)
		require.NoError(t, err)
		behind := short.submit(q, short.Frame) // another executable
		require.Equal(t, backend.Committed, touching.Status())
		cancel()
		require.ErrorIs(t, running.Wait(ctx), context.Canceled)
		t.ok(touching, nil)
		t.ok(behind, nil)
		require.Equal(t, []float32{10, 12, 14, 16, 18, 20, 22, 24}, get(t.download(short.Frame.Place(0), 32)))
	},

	// If a place changes while a command buffer is open, later commands use the new place.
	"queue/places_may_change": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		a, b, x := backend.At(t.alloc(40)), backend.At(t.alloc(40)), backend.At(t.alloc(40))
		for _, p := range []backend.Place{a, b, x} {
			t.upload(p, floatBytes(repeated(1, 10)))
		}
		scope := &backend.Scope{Graph: accumulate(t, "live", 10), Places: []backend.Place{x, a}}
		c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		require.NoError(t, err)
		n := scope.Graph.Nodes[0]
		require.NoError(t, c.Encode(n)) // a: 2
		require.NoError(t, c.Copy(b, a, 40))
		scope.Places[1] = b
		require.NoError(t, c.Encode(n)) // b: 3
		t.ok(c.Commit(ctx, "", ir.OrderEvent))
		require.Equal(t, repeated(2, 10), get(t.download(a, 40)))
		require.Equal(t, repeated(3, 10), get(t.download(b, 40)))

		// Commands that are discarded are not executed.
		c, err = q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		require.NoError(t, err)
		require.NoError(t, c.Encode(n))
		c.Discard()
		_, err = c.Commit(ctx, "", ir.OrderEvent)
		require.Error(t, err)
		t.ok(q.Event())
		require.Equal(t, repeated(3, 10), get(t.download(b, 40)))
	},

	// A queue begins nothing before the operation that it awaits has ended. Here that is a
	// Completion of the test, of no device.
	"queue/events": func(t *T) {
		ctx := context.Background()
		a, b := t.newQueue(), t.newQueue()
		place := backend.At(t.alloc(40))
		add := t.sum(10, place)
		t.upload(place, floatBytes(repeated(0, 10)))
		t.upload(add.input(add.Frame), floatBytes(repeated(1, 10)))
		foreign := backend.NewCompletion("foreign")
		_, err := a.Await(foreign)
		require.NoError(t, err)
		sum := add.submit(a, add.Frame)
		event, err := a.Event()
		require.NoError(t, err)
		_, err = b.Await(event)
		require.NoError(t, err)
		var down [40]byte
		read, err := b.Download(ctx, down[:], place)
		require.NoError(t, err)
		time.Sleep(20 * time.Millisecond)
		for _, p := range []backend.Pending{sum, event, read} {
			require.Equal(t, backend.Committed, p.Status())
		}
		t.upload(place, floatBytes(repeated(5, 10)))
		foreign.End(backend.Result{Status: backend.Completed})
		t.ok(read, nil)
		require.Equal(t, repeated(6, 10), get(down[:]))
	},

	// A copy from a buffer of another device reads it by Buffer.ReadAt.
	"queue/copy_between_devices": func(t *T) {
		if t.other == nil {
			return // there is no other device: see Options.Other
		}
		q, ctx := t.newQueue(), context.Background()
		theirs, err := t.other.Alloc(backend.BufferSpec{Size: 64})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, theirs.Close()) })
		their, err := t.other.NewQueue()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, their.Close()) })
		written, err := their.Upload(ctx, backend.At(theirs).Add(8), floatBytes(counting(1, 10)))
		require.NoError(t, err)
		ours := backend.At(t.alloc(80))
		_, err = q.Await(written)
		require.NoError(t, err)
		t.ok(q.Copy(ctx, ours.Add(4), backend.At(theirs).Add(8), 40))
		require.Equal(t, counting(1, 10), get(t.download(ours.Add(4), 40)))
		_, err = t.Device.Compile(ctx, &backend.Program{Graph: accumulate(t, "g", 10), Places: []backend.Place{{}, backend.At(theirs)}})
		require.ErrorContains(t, err, "%sum")
	},

	// A submission whose context ends before it begins does nothing. One that is aborted while
	// it runs leaves what it writes undefined and says so. The queue goes on.
	"abort/status": func(t *T) {
		q := t.newQueue()
		place := backend.At(t.alloc(4 * longElements))
		long := t.bind(endless(t), nil, []backend.Place{2: place})
		t.upload(place, floatBytes(repeated(7, longElements)))
		reason := errors.New("nobody wants it")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(reason)
		s := long.Submission
		running, err := q.Submit(ctx, s)
		require.NoError(t, err)
		second := long.frame()
		s.Frame = second
		waiting, err := q.Submit(ctx, s)
		require.NoError(t, err)
		after, err := q.Event()
		require.NoError(t, err)
		t.begun(running.Status)
		short, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		require.ErrorIs(t, running.Wait(short), context.DeadlineExceeded, "the wait ends, the operation goes on")
		require.False(t, running.Status().Ended())
		start := time.Now()
		cancel(reason)
		for _, p := range []backend.Pending{running, waiting} {
			require.ErrorIs(t, p.Wait(context.Background()), reason)
			require.Equal(t, backend.Aborted, p.Status())
			require.Zero(t, p.Result().Replays)
		}
		require.Less(t, time.Since(start), 5*time.Second)
		require.True(t, running.Result().Torn)
		require.False(t, waiting.Result().Torn, "it had not begun")
		require.NoError(t, after.Wait(context.Background()))
		require.NoError(t, q.Err())
	},

	// If an operation fails, it and all later ones report that, with the cause. Earlier ones do
	// not.
	"fail/sticky": func(t *T) {
		ctx := context.Background()
		q, err := t.Device.NewQueue()
		require.NoError(t, err)
		p := newProgram("g")
		counts, x, w, s := p.Memory(ir.Memory{Name: "counts", Kind: ir.Input, Size: 12}), p.memory("x", ir.Input, 64), p.memory("w", ir.Input, 32), p.state("s", 64, 0)
		at := ir.ViewOf(counts, 0, 12)
		p.rms(s, x, w, ir.Ext(2), 2, 32, 32).Indirect = &ir.Indirect{Grid: &at}
		b := t.bind(t.graph(p), nil, []backend.Place{3: backend.At(t.alloc(256))}) // the place of s
		before, err := q.Event()
		require.NoError(t, err)
		_, err = q.Upload(ctx, b.Frame.Place(counts), ir.ValueBytes(uint32(3), uint32(1), uint32(1))) // more than the 2 that the graph allows
		require.NoError(t, err)
		failing := b.submit(q, b.Frame)
		after, err := q.Event()
		require.NoError(t, err)
		cause := failing.Wait(ctx)
		require.Error(t, cause)
		require.NoError(t, before.Wait(ctx))
		require.Equal(t, backend.Failed, failing.Status())
		require.True(t, failing.Result().Torn)
		later, err := q.Event()
		require.NoError(t, err)
		for _, p := range []backend.Pending{after, later} {
			err := p.Wait(ctx)
			require.ErrorIs(t, err, backend.ErrNotExecuted)
			require.ErrorContains(t, err, cause.Error())
			require.Equal(t, backend.Failed, p.Status())
			require.False(t, p.Result().Torn)
		}
		require.Error(t, q.Err())
		require.NoError(t, q.Close())

		// Another queue works, and one that awaits the failure fails.
		third, err := t.Device.NewQueue()
		require.NoError(t, err)
		t.ok(third.Event())
		awaits, err := third.Await(failing)
		require.NoError(t, err)
		require.ErrorContains(t, awaits.Wait(ctx), cause.Error())
		require.Error(t, third.Err())
		require.NoError(t, third.Close())
	},

	// If MaxUncompleted command buffers are open, one more is an error; if some of them were
	// committed, CommandBuffer waits.
	"queue/uncompleted": func(t *T) {
		most := t.Device.Info().MaxUncompleted
		if most == 0 {
			return // the device has no limit
		}
		q := t.newQueue()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		place := backend.At(t.alloc(40))
		t.upload(place, floatBytes(repeated(0, 10)))
		x := backend.At(t.alloc(40))
		t.upload(x, floatBytes(repeated(1, 10)))
		scope := &backend.Scope{Graph: accumulate(t, "live", 10), Places: []backend.Place{x, place}}
		var open []backend.CommandBuffer
		for range most {
			c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
			require.NoError(t, err)
			open = append(open, c)
		}
		_, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		require.Error(t, err)
		require.NoError(t, ctx.Err(), "nobody would ever end one")
		for _, c := range open {
			c.Discard()
		}
		for range 3 * most {
			c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
			require.NoError(t, err)
			require.NoError(t, c.Encode(scope.Graph.Nodes[0]))
			_, err = c.Commit(ctx, "", ir.OrderEvent)
			require.NoError(t, err)
		}
		var down [40]byte
		t.ok(q.Download(ctx, down[:], place))
		require.Equal(t, repeated(float32(3*most), 10), get(down[:]))
	},

	// Close waits for all operations, reports command buffers that were left open, and ends
	// the queue.
	"queue/close": func(t *T) {
		q, err := t.Device.NewQueue()
		require.NoError(t, err)
		ctx := context.Background()
		place := backend.At(t.alloc(40))
		scope := &backend.Scope{Graph: accumulate(t, "live", 10), Places: []backend.Place{place, place}}
		c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		require.NoError(t, err)
		p, err := q.Upload(ctx, place, make([]byte, 40))
		require.NoError(t, err)
		require.Error(t, q.Close(), "a command buffer is open")
		require.True(t, p.Status().Ended())
		c.Discard()
		_, err = q.Event()
		require.Error(t, err)
		_, err = q.CommandBuffer(ctx, backend.Recording{Scope: scope})
		require.Error(t, err)
	},

	// A submission that does not fit its executable is refused by Submit.
	"error/submission": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		place := backend.At(t.alloc(40))
		one, two := t.sum(10, place), t.sum(10, place)
		for what, change := range map[string]func(s *backend.Submission){
			"frame of another executable":   func(s *backend.Submission) { s.Frame = two.Frame },
			"states of another executable":  func(s *backend.Submission) { s.States = two.States },
			"no states":                     func(s *backend.Submission) { s.States = nil },
			"a param too many":              func(s *backend.Submission) { s.Params = []uint32{1} },
			"more replays than the frame's": func(s *backend.Submission) { s.Replays = 2 },
		} {
			s := one.Submission
			change(&s)
			_, err := q.Submit(ctx, s)
			require.Error(t, err, what)
		}
		t.ok(q.Submit(ctx, one.Submission))
	},

	// Times are on the host's clock, and in the order of events.
	"profile/clock": func(t *T) {
		q, ctx := t.newQueue(), context.Background()
		start := time.Now()
		place := backend.At(t.alloc(40))
		t.upload(place, floatBytes(repeated(0, 10)))
		scope := &backend.Scope{Graph: accumulate(t, "live", 10), Places: []backend.Place{place, place.Add(0)}}
		scope.Places[0] = backend.At(t.alloc(40))
		var ends []backend.Times
		for range 2 {
			c, err := q.CommandBuffer(ctx, backend.Recording{Label: "a", Scope: scope, Profile: true})
			require.NoError(t, err)
			require.NoError(t, c.Encode(scope.Graph.Nodes[0]))
			p, err := c.Commit(ctx, "", ir.OrderEvent)
			t.ok(p, err)
			ends = append(ends, p.Result().Times)
		}
		at := start
		for _, x := range ends {
			for _, next := range []time.Time{x.Submitted, x.Begin, x.End} {
				require.False(t, next.Before(at), "times go backwards")
				at = next
			}
			if t.Device.Info().Sampling != backend.SampleNothing {
				require.Len(t, x.Commands, 1)
				require.False(t, x.Commands[0].Begin.Before(x.Begin) || x.Commands[0].End.After(x.End))
				require.Equal(t, []backend.Total{{Name: "", Count: 1, Time: x.Commands[0].Duration()}}, x.ByLabel())
			}
		}
		require.False(t, time.Now().Before(at))
	},

	// Sets of states are independent of each other. A set whose bytes are undefined after an
	// abort cannot be run any more.
	"states/torn": func(t *T) {
		s := t.open(replay.Options{}, endless(t))
		g := t.planned(s, "")
		ctx := context.Background()
		other, err := s.NewStates(ctx)
		require.NoError(t, err)
		short, cancel := context.WithCancel(ctx)
		defer cancel()
		r, err := g.Submit(short)
		require.NoError(t, err)
		t.begun(r.Status)
		cancel()
		_, err = r.Wait(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, r.Result().Torn)
		_, err = g.State("s")
		require.ErrorContains(t, err, "undefined")
		_, err = g.Run(ctx)
		require.ErrorContains(t, err, "undefined")
		data, err := other.Get("s")
		require.NoError(t, err)
		require.Equal(t, float32(1), get(data)[0], "another set has nothing to do with it")
		require.NoError(t, s.ResetStates())
		require.Equal(t, float32(1), get(t.bytes(g.State("s")))[0])
	},
}
