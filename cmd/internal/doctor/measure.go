package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/launchtimes"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Numbers and sizes of what is measured; with Quick those of the second name.
const (
	many, manyQuick     = 512, 48            // dispatches
	buffers             = 16                 // command buffers
	rounds, roundsQuick = 15, 5              // repetitions, after one that fills caches
	moved, movedQuick   = 256 << 20, 8 << 20 // bytes of a copy
)

// measure measures the times of encoding, launches, barriers and command buffers by each plan, and the
// bandwidth of memory.
func (e *examination) measure(ctx context.Context) error {
	plans := e.o.Plans
	if len(plans) == 0 {
		plans = []Plan{{Name: e.o.Device.Name(), Open: func(*Report) (backend.Device, func(), error) { return e.o.Device, func() {}, nil }}}
	}
	for i, p := range plans {
		e.step("plan "+p.Name, float64(i)/float64(len(plans)+1))
		d, end, err := p.Open(e.r)
		if err != nil {
			e.unsupported("times", "plan "+p.Name, err.Error(), "nothing: the plan is not used here")
			continue
		}
		measure := e.plan
		if p.Launched {
			e.r.Launched = true
			measure = e.launches
		}
		t, err := measure(ctx, d, p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end()
		if err != nil {
			e.fail("times", "plan "+p.Name, err.Error(), next)
			continue
		}
		e.r.Times = append(e.r.Times, *t)
	}
	bytes := int64(moved)
	if e.o.Quick && !e.far {
		bytes = movedQuick
	}
	if most := e.o.Device.Info().MaxBuffer; most > 0 {
		bytes = min(bytes, most&^4095)
	}
	e.step("a copy", float64(len(plans))/float64(len(plans)+1))
	seconds, err := e.times(ctx, e.o.Device, copied(bytes), func(t backend.Times, wall time.Duration) float64 { return seconds(t, wall) })
	if err != nil {
		return err
	}
	var speed []float64
	for _, s := range seconds {
		speed = append(speed, 2*float64(bytes)/s/1e9) // read once, and written once
	}
	b := distribution(speed)
	e.r.Bandwidth = &b
	return nil
}

// launches measures a plan whose commands are launches ([Plan]).
func (e *examination) launches(ctx context.Context, d backend.Device, p Plan) (*PlanTimes, error) {
	n := many
	if e.o.Quick {
		n = manyQuick
	}
	t, err := launchtimes.Measure(n, p.Edges, func(g *ir.Graph) (s launchtimes.Sample, err error) {
		s.Device, err = e.times(ctx, d, g, func(t backend.Times, wall time.Duration) float64 {
			s.Host = append(s.Host, t.Encode.Seconds())
			return seconds(t, wall)
		})
		if len(s.Host) > 0 {
			s.Host = s.Host[1:] // the first run also prepares things
		}
		return s, err
	})
	if err != nil {
		return nil, err
	}
	in := func(v []float64) Distribution {
		for i := range v {
			v[i] *= 1e9
		}
		if len(v) == 0 {
			return Distribution{}
		}
		return distribution(v)
	}
	out := &PlanTimes{Plan: p.Name, Encode: in(t.Encode), Launch: in(t.Launch), Barrier: in(t.Fork)}
	out.Alone = out.Launch
	return out, nil
}

// plan measures the times of a plan, on a device that encodes by it.
func (e *examination) plan(ctx context.Context, d backend.Device, p Plan) (*PlanTimes, error) {
	n := many
	if e.o.Quick {
		n = manyQuick
	}
	var encode []float64
	gpu := func(g *ir.Graph, dispatches int) ([]float64, error) {
		return e.times(ctx, d, g, func(t backend.Times, wall time.Duration) float64 {
			encode = append(encode, float64(t.Encode.Nanoseconds())/float64(dispatches))
			return seconds(t, wall)
		})
	}
	// The time of a few dispatches is subtracted from that of many, to remove what is constant.
	few := n / 8
	small, err := gpu(adds(few, none), few)
	if err != nil {
		return nil, err
	}
	// Encoding is measured with a barrier after every few dispatches, as most graphs have them.
	encode = encode[:0]
	if _, err := gpu(adds(n, some), n); err != nil {
		return nil, err
	}
	out := &PlanTimes{Plan: p.Name, Encode: distribution(encode)}
	beside, err := gpu(adds(n, none), n)
	if err != nil {
		return nil, err
	}
	behind, err := gpu(adds(n, barriers), n)
	if err != nil {
		return nil, err
	}
	cut, err := gpu(adds(n, commits), n)
	if err != nil {
		return nil, err
	}
	var launch, alone, barrier, boundary []float64
	for i := range beside {
		launch = append(launch, 1e9*(beside[i]-small[i])/float64(n-few))
		alone = append(alone, 1e9*behind[i]/float64(n))
		barrier = append(barrier, 1e9*(behind[i]-beside[i])/float64(n-1))
		boundary = append(boundary, 1e9*(cut[i]-beside[i])/float64(buffers-1))
	}
	out.Launch, out.Alone, out.Barrier, out.CommandBuffer = distribution(launch), distribution(alone), distribution(barrier), distribution(boundary)
	return out, nil
}

// seconds returns the time on the device, or that on the host's clock if the device reports none.
func seconds(t backend.Times, wall time.Duration) float64 {
	if d := t.Duration(); d > 0 {
		return d.Seconds()
	}
	return wall.Seconds()
}

// times runs a graph several times and returns the figure of each run but the first.
func (e *examination) times(ctx context.Context, d backend.Device, g *ir.Graph, figure func(t backend.Times, wall time.Duration) float64) (out []float64, err error) {
	m, err := newMachine(ctx, d, g)
	if err != nil {
		return nil, err
	}
	defer func() {
		if ctx.Err() != nil {
			return // a run that was left behind may use it
		}
		if closed := m.close(); err == nil {
			err = closed
		}
	}()
	n := rounds
	if e.o.Quick {
		n = roundsQuick
	}
	for i := range n + 1 {
		begin := time.Now()
		t, err := m.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("graph %s: %w", g.Name, err)
		}
		if err := told(t, begin, time.Now()); err != nil {
			return nil, fmt.Errorf("graph %s: %w", g.Name, err)
		}
		if v := figure(t, time.Since(begin)); i > 0 {
			out = append(out, v)
		}
	}
	return out, nil
}

// told returns an error if the device's times of a run, converted to the host's clock, are not between the
// times at which the host began and ended it, which would mean that the clocks are converted wrongly. The
// conversion is exact to about a microsecond; a millisecond is tolerated.
func told(t backend.Times, begin, end time.Time) error {
	const about = time.Millisecond
	if t.Duration() <= 0 {
		return nil // the device reports no times
	}
	if early, late := begin.Sub(t.Begin), t.End.Sub(end); early > about || late > about {
		return fmt.Errorf("the device says that it ran from %v after the host had begun to %v before the host saw the end: its clock and the host's do not agree", -early, -late)
	}
	return nil
}

// between is what separates the dispatches of a graph.
type between int

const (
	none     between = iota
	some             // a barrier after every fourth dispatch
	barriers         // a barrier after each dispatch
	commits          // commits, so that there are as many command buffers as buffers says
)

// adds returns a graph of n small dispatches, none of which touches what another writes.
func adds(n int, what between) *ir.Graph {
	b := ir.NewBuilder([...]string{"beside", "some", "behind", "cut"}[what])
	from := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: 256})
	to := b.Memory(ir.Memory{Name: "y", Kind: ir.State, Size: int64(256 * n)})
	const function = "vv_Addfloat32"
	k := b.Kernel(msl.Declarations(function)[0].Kernel(function))
	for i := range n {
		b.Dispatch(ir.Dispatch{
			Kernel: k, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(32), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
			Bindings: []ir.Binding{
				ir.BufferArg(0, ir.ViewOf(from, 0, 128)), ir.BufferArg(1, ir.ViewOf(from, 128, 128)),
				ir.BufferArg(2, ir.ViewOf(to, int64(256*i), 128)),
			},
		})
		switch {
		case i == n-1:
		case what == barriers, what == some && i%4 == 3:
			b.Barrier()
		case what == commits && i%(n/buffers) == n/buffers-1:
			b.Commit(ir.OrderNone, "")
		}
	}
	return b.Unfinished()
}

// copied returns a graph that copies so many bytes from one memory to another.
func copied(bytes int64) *ir.Graph {
	b := ir.NewBuilder("copied")
	from := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: bytes})
	to := b.Memory(ir.Memory{Name: "y", Kind: ir.State, Size: bytes})
	b.Copy(ir.ViewOf(to, 0, bytes), ir.ViewOf(from, 0, bytes), "")
	return b.Unfinished()
}
