package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// sample is what replays took: seconds of one, a value for each round.
type sample struct {
	device []float64 // on the device, from the first command's begin to the last one's end
	wall   []float64 // until the host had seen the end
	host   []float64 // work of the host
}

// around is the minimum and the maximum, in µs.
func around(v []float64) string {
	return fmt.Sprintf("%.1f–%.1f", 1e6*slices.Min(v), 1e6*slices.Max(v))
}

// time replays a graph of a module, `burst` times in one submission, for some rounds, after one that fills caches. set
// sets params and inputs.
func (b *bench) time(d backend.Device, m *ir.Module, graph string, burst, rounds int, set func(*replay.Frame) error) (s sample, err error) {
	in, err := replay.Open(d, m, replay.Options{})
	if err != nil {
		return s, err
	}
	defer in.Close()
	return b.timeOn(in, graph, burst, rounds, set)
}

// timeOn is time on an instance.
func (b *bench) timeOn(in *replay.Instance, graph string, burst, rounds int, set func(*replay.Frame) error) (s sample, err error) {
	g, err := in.Graph(b.ctx, graph)
	if err != nil {
		return s, err
	}
	f, err := g.NewBurstFrame(b.ctx, burst)
	if err != nil {
		return s, err
	}
	for i := range rounds + 1 {
		if set != nil {
			if err := set(f); err != nil {
				return s, err
			}
		}
		begin := time.Now()
		t, err := f.RunBurst(b.ctx, burst)
		wall := time.Since(begin)
		if err != nil {
			return s, err
		}
		if i == 0 {
			continue
		}
		n := float64(burst)
		s.device = append(s.device, measure.Seconds(t.Times, wall)/n)
		s.wall = append(s.wall, wall.Seconds()/n)
		s.host = append(s.host, t.Encode.Seconds()/n)
	}
	return s, nil
}
