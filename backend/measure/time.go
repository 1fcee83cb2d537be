package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Sample is what rounds of replaying a graph took: seconds on the device, and of the host's work.
type Sample struct{ Device, Host []float64 }

// host divides the times of the host by a number of commands.
func (s Sample) host(n int) (each []float64) {
	for _, t := range s.Host {
		each = append(each, t/float64(n))
	}
	return each
}

// Timer replays a graph for some rounds.
type Timer func(g *ir.Graph) (Sample, error)

// On times graphs on a device, for so many rounds after one that fills caches. If ctx ends first, a run that was left
// behind may still use the graph's memory, which is not released then.
func On(ctx context.Context, d backend.Device, rounds int) Timer {
	return func(g *ir.Graph) (s Sample, err error) {
		r, err := backend.NewRig(ctx, d, g)
		if err != nil {
			return s, err
		}
		defer func() {
			if ctx.Err() == nil {
				if closed := r.Close(); err == nil {
					err = closed
				}
			}
		}()
		for i := range rounds + 1 {
			begin := time.Now()
			t, err := r.Run(ctx)
			wall := time.Since(begin)
			if err == nil {
				err = agree(t, begin, time.Now())
			}
			if err != nil {
				return s, fmt.Errorf("graph %s: %w", g.Name, err)
			}
			if i > 0 {
				s.Device = append(s.Device, Seconds(t, wall))
				s.Host = append(s.Host, t.Encode.Seconds())
			}
		}
		return s, nil
	}
}

// Seconds returns the time on the device, or that on the host's clock if the device reports none.
func Seconds(t backend.Times, wall time.Duration) float64 {
	if d := t.Duration(); d > 0 {
		return d.Seconds()
	}
	return wall.Seconds()
}

// agree returns an error if the device's times of a run, converted to the host's clock, are not between the
// times at which the host began and ended it, which would mean that the clocks are converted wrongly. The
// conversion is exact to about a microsecond; a millisecond is tolerated.
func agree(t backend.Times, begin, end time.Time) error {
	const about = time.Millisecond
	if t.Duration() <= 0 {
		return nil // the device reports no times
	}
	if early, late := begin.Sub(t.Begin), t.End.Sub(end); early > about || late > about {
		return fmt.Errorf("the device says that it ran from %v after the host had begun to %v before the host saw the end: its clock and the host's do not agree", -early, -late)
	}
	return nil
}
