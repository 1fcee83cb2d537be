package replay

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Frame holds the params, inputs and outputs for runs of a graph. At most one run of a frame is in flight at a time.
type Frame struct {
	g      *Graph
	frame  backend.Frame
	states *States
	params []uint32 // values as 32 bits each
	given  []bool
	// staged holds the host's copies of inputs whose device memory the host cannot write.
	staged map[ir.MemID]*staging
	last   *Run
	// burst is the max number of replays in a submission, replays that of the last submission.
	burst, replays int
}

// staging is the host's copy of an input that it cannot write on the device.
type staging struct {
	data  []byte
	dirty bool // the host's copy was changed since it was uploaded
}

// Use makes the following runs use another set of states.
func (f *Frame) Use(st *States) error {
	if st.instance != f.g.instance {
		return fmt.Errorf("graph %s: the states are of another instance", ir.QuoteName(f.g.graph.Name))
	}
	f.states = st
	return nil
}

// SetParam sets a param for the following runs. v must be within the param's
// bound; a u32 param takes whole numbers only, an f32 param the f32 nearest to v.
func (f *Frame) SetParam(name string, v float64) error {
	i, ok := f.g.graph.ParamNamed(name)
	if !ok {
		return fmt.Errorf("graph %s has no param $%s%s", ir.QuoteName(f.g.graph.Name), ir.QuoteName(name), f.g.params())
	}
	q := f.g.graph.Params[i]
	value := v
	if q.Type == ir.F32 {
		value = float64(float32(v)) // the bounds are f32 values too: 0.3 is within [0, 0.3]
	}
	if !(value >= q.Min && value <= q.Max) {
		return fmt.Errorf("param $%s = %s is outside its bound %s", ir.QuoteName(name), q.Format(v), bound(q))
	}
	if q.Type == ir.U32 && v != math.Trunc(v) {
		return fmt.Errorf("param $%s = %v is no %s", ir.QuoteName(name), v, q.Type)
	}
	f.params[i], f.given[i] = bitsOf(q, value), true
	return nil
}

// Params returns the values of the params, as bits, with which the next run will be.
func (f *Frame) Params() []uint32 { return slices.Clone(f.params) }

func (g *Graph) params() string {
	var names []string
	for _, q := range g.graph.Params {
		names = append(names, "$"+ir.QuoteName(q.Name))
	}
	return listed(names)
}

// bound formats the values that q may have.
func bound(q ir.Param) string { return fmt.Sprintf("[%s, %s]", q.Format(q.Min), q.Format(q.Max)) }

func bitsOf(q ir.Param, v float64) uint32 {
	if q.Type == ir.F32 {
		return math.Float32bits(float32(v))
	}
	return uint32(v)
}

// find returns a memory of the frame.
func (f *Frame) find(name string, kind ir.MemKind) (root ir.MemID, off, size int64, err error) {
	g := f.g.graph
	if err := f.g.instance.errClosed(); err != nil {
		return 0, 0, 0, fmt.Errorf("graph %s: %w", ir.QuoteName(g.Name), err)
	}
	i, ok := g.MemoryNamed(name)
	if !ok || g.Memories[i].Kind != kind {
		var names []string
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Kind == kind && m.Alias == ir.NoMem {
				names = append(names, "%"+ir.QuoteName(m.Name))
			}
		}
		return 0, 0, 0, fmt.Errorf("graph %s has no %s %%%s%s", ir.QuoteName(g.Name), kind, ir.QuoteName(name), listed(names))
	}
	root, off = g.Root(i)
	return root, off, g.Memories[i].Size, nil
}

// settle waits for the end of the frame's last run.
func (f *Frame) settle() {
	if f.last != nil {
		f.last.finish()
	}
}

// clear fills the inputs with zeros.
func (f *Frame) clear() error {
	for i := range f.g.graph.Memories {
		m := &f.g.graph.Memories[i]
		if m.Kind != ir.Input || m.Alias != ir.NoMem {
			continue
		}
		p := f.frame.Place(ir.MemID(i))
		if data := p.Bytes(m.Size); data != nil {
			clear(data)
		} else if p.Buffer != nil {
			if f.staged == nil {
				f.staged = map[ir.MemID]*staging{}
			}
			f.staged[ir.MemID(i)] = &staging{make([]byte, m.Size), true}
		}
	}
	return nil
}

// SetInput copies data to an input, from its first byte on. Bytes behind the data keep their
// values.
func (f *Frame) SetInput(name string, data []byte) error {
	root, off, size, err := f.find(name, ir.Input)
	if err != nil {
		return err
	}
	if int64(len(data)) > size {
		return fmt.Errorf("input %%%s has %d bytes, not %d", ir.QuoteName(name), size, len(data))
	}
	f.settle()
	if s := f.staged[root]; s != nil {
		s.dirty = true
		copy(s.data[off:], data)
		return nil
	}
	copy(f.frame.Place(root).Add(off).Bytes(size), data)
	return nil
}

// Output returns a copy of an output of the last run, which it waits for.
func (f *Frame) Output(name string) ([]byte, error) {
	_, _, size, err := f.find(name, ir.Output)
	if err != nil {
		return nil, err
	}
	out := make([]byte, size)
	return out, f.ReadOutput(name, out)
}

// ReadOutput copies the first bytes of an output of the last run, which it waits for,
// as many as to has.
func (f *Frame) ReadOutput(name string, to []byte) error {
	root, off, size, err := f.find(name, ir.Output)
	if err != nil {
		return err
	}
	if int64(len(to)) > size {
		return fmt.Errorf("output %%%s has %d bytes, not %d", ir.QuoteName(name), size, len(to))
	}
	ended := f.replays
	if f.last != nil {
		if err := f.last.torn(); err != nil {
			return fmt.Errorf("output %%%s is undefined: %w", ir.QuoteName(name), err)
		}
		ended = f.last.finish().Replays // if the submission was aborted, the number of replays that ended
	}
	place := f.frame.Place(root).Add(off)
	if m := &f.g.graph.Memories[root]; m.Every {
		place = place.Add(int64(max(1, ended)-1) * m.Size)
	}
	return f.g.instance.get(place, to)
}

// State returns a copy of a state of the set that the frame uses, or of an alias of one.
func (f *Frame) State(name string) ([]byte, error) {
	root, off, size, err := f.find(name, ir.State)
	if err != nil {
		return nil, err
	}
	all, err := f.states.Get(f.g.graph.Memories[root].Name)
	if err != nil {
		return nil, err
	}
	return all[off : off+size], nil
}

// SetState is [States.Set] of the set that the frame uses.
func (f *Frame) SetState(name string, data []byte) error {
	if _, _, _, err := f.find(name, ir.State); err != nil {
		return err
	}
	return f.states.Set(name, data)
}

// Check reports a param without a value and a broken constraint.
func (f *Frame) Check() error {
	g := f.g.graph
	for i, q := range g.Params {
		if !f.given[i] {
			return fmt.Errorf("param $%s has no value (it is a %s in %s)", ir.QuoteName(q.Name), q.Type, bound(q))
		}
	}
	for _, c := range g.Constraints {
		if v := c.LHS.Eval(f.params); v > c.Max {
			return fmt.Errorf("params break %s <= %d: it is %d", g.FormatAffine(c.LHS), c.Max, v)
		}
	}
	return nil
}

// Work is the modelled time of a run with the params that are set, on one worker
// of the device, in seconds; it may be infinite. ok is false where the device has
// no model.
func (f *Frame) Work() (seconds float64, ok bool, err error) {
	if err := f.Check(); err != nil {
		return 0, false, fmt.Errorf("graph %s: %w", ir.QuoteName(f.g.graph.Name), err)
	}
	e, ok := f.g.exec.(backend.Modelled)
	if !ok {
		return 0, false, nil
	}
	st, err := f.states.bind(context.Background(), f.g)
	if err != nil {
		return 0, false, err
	}
	return e.Work(f.frame, st, f.params), true, nil
}

// Submit starts a run with the frame's params and inputs, on its set of states; ctx aborts
// it. It waits for the frame's last run. After an error nothing was submitted.
func (f *Frame) Submit(ctx context.Context) (*Run, error) {
	r, err := f.submit(ctx, backend.Submission{})
	if err == nil {
		f.replays = 1
	}
	return r, err
}

func (f *Frame) submit(ctx context.Context, s backend.Submission) (*Run, error) {
	g, in := f.g.graph, f.g.instance
	fail := func(err error) (*Run, error) { return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.Name), err) }
	if err := in.errClosed(); err != nil {
		return fail(err)
	}
	if err := f.Check(); err != nil {
		return fail(err)
	}
	f.settle()
	states, err := f.states.bind(ctx, f.g)
	if err == nil && f.g.stateful {
		err = f.states.undefined()
	}
	if err != nil {
		return fail(err)
	}
	buffers := f.g.buffers * s.Count()
	if err := in.room(ctx, buffers); err != nil {
		return fail(err)
	}
	if err := f.upload(); err != nil {
		return fail(err)
	}
	in.runs++
	if in.options.Poison {
		if err := f.poison(in.runs); err != nil {
			return fail(err)
		}
	}
	s.Executable, s.Frame, s.States, s.Params, s.Label = f.g.exec, f.frame, states, f.params, "graph "+ir.QuoteName(g.Name)
	pending, err := in.queue.Submit(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &Run{pending: pending, states: f.states, stateful: f.g.stateful, buffers: buffers, before: f.states.last}
	if in.options.Profile {
		r.params = slices.Clone(f.params)
	}
	f.last, f.states.last, in.flight = r, r, append(in.flight, r)
	return r, nil
}

// upload copies changed inputs to the device where the host cannot write its memory.
func (f *Frame) upload() error {
	for i := range f.g.graph.Memories { // in their order
		s := f.staged[ir.MemID(i)]
		if s == nil || !s.dirty {
			continue
		}
		in := f.g.instance
		q, err := in.side()
		if err != nil {
			return err
		}
		p, err := q.Upload(context.Background(), f.frame.Place(ir.MemID(i)), s.data)
		if err == nil {
			_, err = in.queue.Await(p)
		}
		if err != nil {
			return err
		}
		s.dirty = false
	}
	return nil
}

// Run submits and waits for the end; ctx aborts the run.
func (f *Frame) Run(ctx context.Context) (Timing, error) {
	r, err := f.Submit(ctx)
	if err != nil {
		return Timing{}, err
	}
	return r.Wait(context.Background())
}

// poison fills scratch and outputs with a byte pattern that differs from run to run and is, read as f32, NaN
// in every other run.
func (f *Frame) poison(run uint64) error {
	in := ir.Init{Kind: ir.InitRandom, Seed: run}
	if run%2 == 1 {
		in = ir.FillU32(0x7fc00000 | uint32(run)&0x3fffff)
	}
	f.g.instance.settle() // runs of other frames use the same scratch
	for i := range f.g.graph.Memories {
		m := &f.g.graph.Memories[i]
		p := f.frame.Place(ir.MemID(i))
		if p.Buffer == nil || m.Kind != ir.Scratch && m.Kind != ir.Output {
			continue
		}
		data := p.Bytes(m.Size)
		if data == nil {
			data = make([]byte, m.Size)
		}
		_ = in.Write(data) // writing to memory cannot fail
		if p.Bytes(m.Size) == nil {
			if err := f.g.instance.set(p, data); err != nil {
				return err
			}
		}
	}
	return nil
}
