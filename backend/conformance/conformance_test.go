package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// broken is a device with one defect.
type broken struct {
	backend.Device
	change func(p *backend.Program)          // changes the program before it is compiled
	submit submitter                         // submits in place of the device's queue
	queue  func(backend.Queue) backend.Queue // wraps the device's queues
	refuse func(err error) error             // changes the error of Compile
}

func (b broken) Compile(ctx context.Context, p *backend.Program) (backend.Executable, error) {
	if b.change != nil {
		copied := *p.Graph
		copied.Nodes = slices.Clone(p.Graph.Nodes)
		copied.Memories = slices.Clone(p.Graph.Memories)
		q := *p
		q.Graph = &copied
		p = &q
		b.change(p)
	}
	e, err := b.Device.Compile(ctx, p)
	if err != nil && b.refuse != nil {
		return late{}, b.refuse(err)
	}
	return e, err
}

func (b broken) NewQueue() (backend.Queue, error) {
	q, err := b.Device.NewQueue()
	if err == nil && b.submit != nil {
		q = submits{q, b.submit}
	}
	if err == nil && b.queue != nil {
		q = b.queue(q)
	}
	return q, err
}

// late is an executable that fails only when a frame is made.
type late struct{ backend.Executable }

func (late) NewFrame(backend.FrameSpec) (backend.Frame, error) { return nil, errors.New("too late") }
func (late) Close() error                                      { return nil }

// submits is a queue that submits by calling f.
type submits struct {
	backend.Queue
	f submitter
}

type submitter func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error)

func (s submits) Submit(ctx context.Context, x backend.Submission) (backend.Pending, error) {
	return s.f(s.Queue, ctx, x)
}

// drop removes the commands that f picks.
func drop(f func(n ir.Node) bool) func(p *backend.Program) {
	return func(p *backend.Program) { p.Graph.Nodes = slices.DeleteFunc(p.Graph.Nodes, f) }
}

// TestDefectsAreNoticed: the suite fails on devices with defects, and each of its
// tests fails on at least one of them.
func TestDefectsAreNoticed(t *testing.T) {
	device := cpu.New(1)
	defer device.Close()
	other := cpu.New(1)
	defer other.Close()
	frozen := map[backend.Executable][]uint32{}
	frames, states := map[backend.Executable]backend.Frame{}, map[backend.Executable]backend.States{}
	wrapped := func(f func(p backend.Pending) backend.Pending) submitter {
		return func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			p, err := q.Submit(ctx, s)
			if err == nil {
				p = f(p)
			}
			return p, err
		}
	}
	stepwise := func(p *backend.Program, change func(n ir.Node) ir.Node) {
		for i, n := range p.Graph.Nodes {
			p.Graph.Nodes[i] = change(n)
		}
	}
	defects := map[string]struct {
		b     broken
		tests []string
	}{
		"runs commands backwards": {broken{change: func(p *backend.Program) { slices.Reverse(p.Graph.Nodes) }},
			[]string{"order/barriers", "order/long_chain", "order/commits", "copy/between_dispatches", "alias/both_names", "inplace/chain", "session/at_the_same_time", "meaning/serial"}},
		"forgets copies": {broken{change: drop(func(n ir.Node) bool { _, ok := n.(*ir.Copy); return ok })},
			[]string{"copy/bytes", "copy/within_a_memory", "alias/of_input_and_output", "param/several", "param/no_wrap", "param/taken_at_submit", "profile/every_command"}},
		"forgets fills": {broken{change: drop(func(n ir.Node) bool { _, ok := n.(*ir.Fill); return ok })},
			[]string{"fill/bytes", "param/length_of_copy_and_fill", "param/fixed_by_its_bound", "param/refused", "state/initial_contents_and_reset"}},
		"copies a byte more": {broken{change: func(p *backend.Program) {
			stepwise(p, func(n ir.Node) ir.Node {
				if c, ok := n.(*ir.Copy); ok && c.Dst.End().IsConst() && c.Dst.End().Const < p.Graph.Memories[c.Dst.Mem].Size && c.Src.End().Const < p.Graph.Memories[c.Src.Mem].Size {
					more := *c
					more.Dst.Len, more.Src.Len = c.Dst.Len.AddConst(1), c.Src.Len.AddConst(1)
					return &more
				}
				return n
			})
		}}, []string{"copy/bytes", "copy/empty"}},
		"forgets what lies in groups": {broken{change: func(p *backend.Program) {
			inside := 0
			p.Graph.Nodes = slices.DeleteFunc(p.Graph.Nodes, func(n ir.Node) bool {
				switch n.(type) {
				case *ir.GroupBegin:
					inside++
				case *ir.GroupEnd:
					inside--
				}
				return inside > 0
			})
		}}, []string{"order/groups_are_labels"}},
		"runs the first threadgroup only": {broken{change: func(p *backend.Program) {
			stepwise(p, func(n ir.Node) ir.Node {
				if d, ok := n.(*ir.Dispatch); ok {
					first := *d
					first.GridKind = ir.Threadgroups
					first.Grid = [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}
					return &first
				}
				return n
			})
		}}, []string{"grid/in_memory", "grid/threadgroups", "grid/rows", "grid/empty", "grid/empty_by_param", "param/grid", "kernel/vv_Addfloat32", "kernel/g2_copyfloat32float32", "kernel/rmsfloat32"}},
		"keeps the first params": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			if frozen[s.Executable] == nil {
				frozen[s.Executable] = slices.Clone(s.Params)
			}
			s.Params = frozen[s.Executable]
			return q.Submit(ctx, s)
		}}, []string{"params/offset_in_memory", "param/offset", "param/grid", "param/f32", "param/several", "param/no_wrap", "param/ceil_grid_and_scalar", "grid/empty_by_param", "kernel/vv_Addfloat32"}},
		"takes params when it begins": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			return &delayed{submit: func() (backend.Pending, error) { return q.Submit(ctx, s) }}, nil
		}}, []string{"param/taken_at_submit"}},
		"never ends early": {broken{submit: func(q backend.Queue, _ context.Context, s backend.Submission) (backend.Pending, error) {
			return q.Submit(context.Background(), s)
		}}, []string{"cancel/before", "cancel/cause"}},
		"runs everything twice": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			if p, err := q.Submit(ctx, s); err != nil {
				return p, err
			}
			return q.Submit(ctx, s)
		}}, []string{"state/across_replays", "state/across_graphs", "state/submitted_in_turn", "state/written_by_the_host", "session/own_memory", "session/programs_share_buffers"}},
		"runs nothing": {broken{change: drop(func(ir.Node) bool { return true })},
			[]string{"input/changed_between_replays", "weight/contents", "session/same_bits_again", "poison/differs", "kernel/argmax_float32", "kernel/rope_float32"}},
		"says what is wrong too late": {broken{refuse: func(error) error { return nil }},
			[]string{"error/unknown_kernel", "error/foreign_library", "error/unbound_argument", "error/misaligned_view", "error/missing_place", "error/short_buffer", "error/through_replay"}},
		"says nothing useful": {broken{refuse: func(error) error { return errors.New("failed") }},
			[]string{"error/unknown_kernel", "error/missing_place"}},
		"allocates anything": {broken{Device: generous{device}}, []string{"error/allocation"}},
		"has one frame": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			if frames[s.Executable] == nil {
				frames[s.Executable] = s.Frame
			}
			s.Frame = frames[s.Executable]
			return q.Submit(ctx, s)
		}}, []string{"frame/own_inputs"}},
		"has one set of states": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			if states[s.Executable] == nil {
				states[s.Executable] = s.States
			}
			s.States = states[s.Executable]
			return q.Submit(ctx, s)
		}}, []string{"states/several_sets"}},
		"carries nothing": {broken{change: drop(func(n ir.Node) bool { _, ok := n.(*ir.Carry); return ok })}, []string{"replays/burst"}},
		"runs a row as one replay": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			s.Replays = 1
			return q.Submit(ctx, s)
		}}, []string{"replays/burst"}},
		"advances nothing": {broken{change: func(p *backend.Program) {
			p.Graph.Params = slices.Clone(p.Graph.Params)
			for i := range p.Graph.Params {
				p.Graph.Params[i].Advance = 0
			}
		}}, []string{"replays/burst", "order/end_of_the_list"}},
		"copies nothing":              {broken{queue: func(q backend.Queue) backend.Queue { return copiesNothing{q} }}, []string{"queue/copies", "queue/copy_between_devices", "queue/beside_a_replay"}},
		"executes no command buffers": {broken{queue: func(q backend.Queue) backend.Queue { return noBuffers{q} }}, []string{"queue/order", "queue/places_may_change", "profile/clock"}},
		"awaits nothing":              {broken{queue: func(q backend.Queue) backend.Queue { return awaitsNothing{q} }}, []string{"queue/events"}},
		"says that it has not failed": {broken{queue: func(q backend.Queue) backend.Queue { return forgets{q} }}, []string{"fail/sticky", "queue/close"}},
		"has less room than it says":  {broken{Device: claims{device}}, []string{"queue/uncompleted"}},
		"takes any submission": {broken{submit: func(q backend.Queue, ctx context.Context, s backend.Submission) (backend.Pending, error) {
			p, err := q.Submit(ctx, s)
			if err != nil {
				return q.Event()
			}
			return p, nil
		}}, []string{"error/submission"}},
		"calls an abort a failure":        {broken{submit: wrapped(func(p backend.Pending) backend.Pending { return failed{p} })}, []string{"abort/status"}},
		"says that nothing is torn":       {broken{submit: wrapped(func(p backend.Pending) backend.Pending { return untorn{p} })}, []string{"states/torn"}},
		"takes states that are not there": {broken{Device: lenient{device}}, []string{"error/missing_state", "error/short_buffer"}},
		"wants a buffer for every memory": {broken{Device: greedy{device}}, []string{"error/unbound_memory"}},
	}
	tests := semantics()
	maps.Copy(tests, kernelTests(Options{Cases: 20}))
	failed := map[string]bool{}
	for name, d := range defects {
		if d.b.Device == nil {
			d.b.Device = device
		}
		for _, test := range d.tests {
			require.Contains(t, tests, test)
			failed[test] = true
			assert.NotEmpty(t, recorded(d.b, other, test, tests[test]), "a device that %s passes %s", name, test)
		}
	}
	without := []string{
		"cancel/during",   // a device that "never ends early" would take minutes for it
		"meaning/refused", // package replay refuses it before a device sees the graph
	}
	for test := range semantics() {
		if !failed[test] && !slices.Contains(without, test) {
			t.Errorf("no defect makes %s fail", test)
		}
	}
}

// delayed is an operation that is submitted only when one of its methods is called.
type delayed struct {
	submit  func() (backend.Pending, error)
	pending backend.Pending
}

func (d *delayed) start() backend.Pending {
	if d.pending == nil {
		var err error
		if d.pending, err = d.submit(); err != nil {
			c := backend.NewCompletion("")
			c.End(backend.Result{Status: backend.Failed, Err: err})
			d.pending = c
		}
	}
	return d.pending
}

func (d *delayed) Done() <-chan struct{}          { return d.start().Done() }
func (d *delayed) Wait(ctx context.Context) error { return d.start().Wait(ctx) }
func (d *delayed) Status() backend.Status         { return d.start().Status() }
func (d *delayed) Result() *backend.Result        { return d.start().Result() }

type greedy struct{ backend.Device }

func (g greedy) Compile(ctx context.Context, p *backend.Program) (backend.Executable, error) {
	for i, m := range p.Graph.Memories {
		if m.Kind == ir.Weight && p.Place(ir.MemID(i)).Buffer == nil {
			return nil, errors.New("a weight has no place")
		}
	}
	return g.Device.Compile(ctx, p)
}

type copiesNothing struct{ backend.Queue }

func (q copiesNothing) Copy(context.Context, backend.Place, backend.Place, int64) (backend.Pending, error) {
	return q.Event()
}

type noBuffers struct{ backend.Queue }

func (q noBuffers) CommandBuffer(ctx context.Context, r backend.Recording) (backend.CommandBuffer, error) {
	c, err := q.Queue.CommandBuffer(ctx, r)
	return noBuffer{c, q.Queue}, err
}

type noBuffer struct {
	backend.CommandBuffer
	q backend.Queue
}

func (c noBuffer) Commit(context.Context, string, ir.CommitOrder) (backend.Pending, error) {
	c.Discard()
	return c.q.Event()
}

type awaitsNothing struct{ backend.Queue }

func (q awaitsNothing) Await(backend.Pending) (backend.Pending, error) { return q.Event() }

type forgets struct{ backend.Queue }

func (forgets) Err() error { return nil }

func (f forgets) Close() error {
	_ = f.Queue.Close()
	return nil
}

type claims struct{ backend.Device }

func (c claims) Info() backend.Info {
	i := c.Device.Info()
	i.MaxUncompleted = 4
	return i
}

type failed struct{ backend.Pending }

func (p failed) Status() backend.Status {
	if s := p.Pending.Status(); s != backend.Aborted {
		return s
	}
	return backend.Failed
}

type untorn struct{ backend.Pending }

func (p untorn) Result() *backend.Result {
	r := *p.Pending.Result()
	r.Torn = false
	return &r
}

type lenient struct{ backend.Device }

func (l lenient) Compile(ctx context.Context, p *backend.Program) (backend.Executable, error) {
	e, err := l.Device.Compile(ctx, p)
	return anyStates{e}, err
}

type anyStates struct{ backend.Executable }

func (anyStates) NewStates([]backend.Place) (backend.States, error) { return nil, nil }

type generous struct{ backend.Device }

func (g generous) Alloc(s backend.BufferSpec) (backend.Buffer, error) {
	s.Size = min(max(s.Size, 0), 1<<30)
	return g.Device.Alloc(s)
}

// TestRecorded: recorded returns the errors of a test that may fail.
func TestRecorded(t *testing.T) {
	assert.Empty(t, recorded(nil, nil, "x", func(*T) {}))
	assert.Equal(t, "bad 1", recorded(nil, nil, "x", func(t *T) { t.Errorf("bad %d", 1) }))
	assert.Equal(t, "stopped", recorded(nil, nil, "x", func(t *T) { t.FailNow() }))
	assert.Equal(t, "panic: oh", recorded(nil, nil, "x", func(t *T) { panic("oh") }))
	cleaned := false
	recorded(nil, nil, "x", func(t *T) {
		t.Cleanup(func() { cleaned = true })
		require.True(t, false)
	})
	assert.True(t, cleaned)
}

func TestListed(t *testing.T) {
	list := map[string]string{"kernel/gemv_*": "later", "cancel/before": "never"}
	for name, want := range map[string]string{"kernel/gemv_x": "later", "cancel/before": "never", "cancel/during": "", "kernel/x": ""} {
		reason, ok := listed(list, name)
		assert.Equal(t, want, reason)
		assert.Equal(t, want != "", ok)
	}
}

// TestUpdates: a declared update is reported if the kernel never keeps an old byte, and
// only then.
func TestUpdates(t *testing.T) {
	device := cpu.New(1)
	defer device.Close()
	d := *msl.Declarations("vv_Addfloat32")[0]
	d.Args = slices.Clone(d.Args)
	d.Args[2].Mode = decl.Update
	_, err := dispatches.Cases(device, &d, 10, dispatches.Everything, "updates")
	assert.ErrorContains(t, err, "declare a write")
	half := broken{Device: device, change: func(p *backend.Program) { // the kernel leaves the last element alone
		for i, n := range p.Graph.Nodes {
			if x, ok := n.(*ir.Dispatch); ok && x.Grid[0].IsConst() && x.GridKind == ir.Threads {
				less := *x
				less.Grid[0] = ir.Ext(max(0, x.Grid[0].Num.Const-1))
				p.Graph.Nodes[i] = &less
			}
		}
	}}
	_, err = dispatches.Cases(half, &d, 10, dispatches.Everything, "updates")
	assert.Error(t, err)
	assert.NotContains(t, err.Error(), "declare a write")
}

// TestSomethingIsCompared: if all dispatches that were asked for are empty, more are drawn.
func TestSomethingIsCompared(t *testing.T) {
	device := cpu.New(1)
	defer device.Close()
	d := msl.Declarations("affine_embed_float_gs_32_b_4")[0]
	more := false
	for i := range 20 {
		v, err := dispatches.Cases(device, d, 1, dispatches.Everything, fmt.Sprint("compared ", i))
		require.NoError(t, err)
		assert.NotZero(t, v.Elements)
		more = more || v.Dispatches > 1
	}
	assert.True(t, more, "no first dispatch was empty")
}
