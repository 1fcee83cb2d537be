package doctor

import (
	"context"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/measure"
)

// Numbers and sizes of what is measured; with Quick those of the second name.
const (
	many, manyQuick     = 512, 48            // dispatches
	rounds, roundsQuick = 15, 5              // repetitions
	moved, movedQuick   = 256 << 20, 8 << 20 // bytes of a copy
)

// measure measures what launches or dispatches, barriers and command buffers cost by each plan, and the bandwidth of
// memory.
func (e *examination) measure(ctx context.Context) error {
	plans := e.o.Plans
	if len(plans) == 0 {
		plans = []Plan{{Name: e.o.Device.Name(), Open: func(*Report) (backend.Device, func(), error) { return e.o.Device, func() {}, nil }}}
	}
	n, times, bytes := many, rounds, int64(moved)
	if e.o.Quick {
		n, times = manyQuick, roundsQuick
		if !e.far {
			bytes = movedQuick
		}
	}
	for i, p := range plans {
		e.step("plan "+p.Name, float64(i)/float64(len(plans)+1))
		d, end, err := p.Open(e.r)
		if err != nil {
			e.unsupported("times", "plan "+p.Name, err.Error(), "nothing: the plan is not used here")
			continue
		}
		var t measure.Times
		if p.Launched {
			e.r.Launched = true
			t, err = measure.Launches(n, p.Edges, measure.On(ctx, d, times))
		} else {
			t, err = measure.Encoding(n, measure.On(ctx, d, times))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end()
		if err != nil {
			e.fail("times", "plan "+p.Name, err.Error(), next)
			continue
		}
		const ns = 1e9
		e.r.Times = append(e.r.Times, PlanTimes{
			Plan: p.Name, Encode: distribution(t.Encode, ns), Launch: distribution(t.Launch, ns), Alone: distribution(t.Alone, ns),
			Barrier: distribution(t.Barrier, ns), CommandBuffer: distribution(t.CommandBuffer, ns),
		})
	}
	if most := e.o.Device.Info().MaxBuffer; most > 0 {
		bytes = min(bytes, most&^4095)
	}
	e.step("a copy", float64(len(plans))/float64(len(plans)+1))
	rates, err := measure.Copy(bytes, measure.On(ctx, e.o.Device, times))
	if err != nil {
		return err
	}
	b := distribution(rates, 1e-9)
	e.r.Bandwidth = &b
	return nil
}
