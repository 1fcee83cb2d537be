package main

import (
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// costs measures the bandwidth of copies, and what launches cost.
func (b *bench) costs() error {
	fmt.Fprintf(b.out, "\n| what | µs | |\n|---|---|---|\n")
	d, end, err := b.open(waiting)
	if err != nil {
		return err
	}
	info := d.Info()
	b.model = cost.Model{}.OrDefault()
	b.model.Name, b.model.Device, b.model.Cores = "gpubench", info.Description, max(1, info.Threads)
	bytes := int64(1 << 30)
	if b.tiny {
		bytes = 1 << 20
	}
	moved := func(what string, rates []float64, err error) {
		if err != nil {
			b.fail(what, err)
			return
		}
		rate := measure.Median(rates)
		took := 2e6 * float64(bytes) / rate
		b.copy = max(b.copy, rate)
		b.row(what, map[string]any{"microseconds": took, "bytes_per_second": rate}, "| %s, %d MiB | %.1f | %.0f GB/s, read and written |\n", what, bytes>>20, took, rate/1e9)
	}
	rates, err := measure.Copy(bytes, measure.On(b.ctx, d, b.rounds))
	moved("a copy by our kernel", rates, err)
	rates, err = b.queueCopy(d, bytes)
	moved("a copy by the driver", rates, err)
	end()
	if b.copy > 0 {
		b.model.Bandwidth = b.copy
	}

	n := 2048
	if b.tiny {
		n = 64
	}
	plans := map[string]cost.PlanTimes{}
	for _, p := range []plan{onStream, asChain, waiting, byEdges, edgesToo} {
		edges := p.cuda == "edges"
		d, end, err := b.open(p)
		var t measure.Times
		if err == nil {
			t, err = measure.Launches(n, edges, measure.On(b.ctx, d, b.rounds))
			end()
		}
		if err != nil {
			b.fail("launches, "+p.name, err)
			continue
		}
		c := t.Costs()
		plans[p.measured] = c
		what := "a smallest kernel behind another, " + p.name
		b.row(what, map[string]any{"microseconds": c.Launch.Microseconds(), "host_microseconds": c.Encode.Microseconds()},
			"| %s | %.3f | host %.3f µs |\n", what, c.Launch.Microseconds(), c.Encode.Microseconds())
		if edges {
			what := "an epoch that forks into four, beside that, " + p.name
			b.row(what, map[string]any{"microseconds": c.Barrier.Microseconds()}, "| %s | %.3f | |\n", what, c.Barrier.Microseconds())
		}
	}
	// The default plan of replays: a CUDA graph in which each command waits for the one before.
	base := onStream
	for _, p := range []plan{waiting, asChain} {
		if _, ok := plans[p.measured]; ok {
			base = p
			break
		}
	}
	measure.Believe(&b.model, plans, base.measured)
	b.serial = float64(b.model.Launch)
	b.fit = cost.NewFit(b.model)
	return nil
}

// row prints a row and keeps it.
func (b *bench) row(what string, values map[string]any, format string, args ...any) {
	fmt.Fprintf(b.out, format, args...)
	values["what"] = what
	if b.shape != "" {
		values["shape"] = b.shape
	}
	b.rows = append(b.rows, values)
}

func moduleOf(g *ir.Graph) *ir.Module { return &ir.Module{Graphs: []*ir.Graph{g}} }

// queueCopy measures copies of a queue, and returns bytes read and written per second, by round.
func (b *bench) queueCopy(d backend.Device, bytes int64) (out []float64, err error) {
	q, err := d.NewQueue()
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var at [2]backend.Place
	for i := range at {
		buffer, err := d.Alloc(backend.BufferSpec{Size: bytes, Use: ir.State})
		if err != nil {
			return nil, err
		}
		defer buffer.Close()
		at[i] = backend.At(buffer)
	}
	const together = 8 // copies, of which the host waits for the last
	for i := range b.rounds + 1 {
		var last backend.Pending
		begin := time.Now()
		for range together {
			if last, err = q.Copy(b.ctx, at[1], at[0], bytes); err != nil {
				return nil, err
			}
		}
		if err := last.Wait(b.ctx); err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, 2*together*float64(bytes)/time.Since(begin).Seconds())
		}
	}
	return out, nil
}
