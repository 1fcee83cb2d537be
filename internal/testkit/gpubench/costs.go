package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

// costs measures what moves bytes and what launches cost.
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
	moved := func(what string, seconds []float64, err error) {
		if err != nil {
			b.fail(what, err)
			return
		}
		rate := 2 * float64(bytes) / middle(seconds)
		b.copy = max(b.copy, rate)
		b.row(what, map[string]any{"microseconds": 1e6 * middle(seconds), "bytes_per_second": rate}, "| %s, %d MiB | %.1f | %.0f GB/s, read and written |\n", what, bytes>>20, 1e6*middle(seconds), rate/1e9)
	}
	s, err := b.time(d, moduleOf(copied(bytes)), "copied", 1, b.rounds, nil)
	moved("a copy by our kernel", s.device, err)
	seconds, err := b.queueCopy(d, bytes)
	moved("a copy by the driver", seconds, err)
	end()
	if b.copy > 0 {
		b.model.Bandwidth = b.copy
	}

	n := 2048
	if b.tiny {
		n = 64
	}
	of := map[plan]float64{}
	var host float64
	for _, p := range []plan{onStream, asChain, waiting} {
		what := "a smallest kernel behind another, " + p.name
		d, end, err := b.open(p)
		if err != nil {
			b.fail(what, err)
			continue
		}
		many, err := b.time(d, moduleOf(row(n)), "row", 1, b.rounds, nil)
		if err == nil {
			var few sample
			if few, err = b.time(d, moduleOf(row(n/8)), "row", 1, b.rounds, nil); err == nil {
				// The difference leaves out what a submission costs. On a busy machine it can be nothing or
				// less, which is no duration: then the whole is shared out.
				each := (middle(many.device) - middle(few.device)) / float64(n-n/8)
				if each <= 0 {
					each = middle(many.device) / float64(n)
				}
				of[p] = each
				host = middle(many.host) / float64(n)
				b.row(what, map[string]any{"microseconds": 1e6 * each, "host_microseconds": 1e6 * host}, "| %s | %.3f | host %.3f µs |\n", what, 1e6*each, 1e6*host)
			}
		}
		if err != nil {
			b.fail(what, err)
		}
		end()
	}
	for _, p := range []plan{byEdges, edgesToo} {
		what := "an epoch that forks into four and joins, " + p.name
		d, end, err := b.open(p)
		if err != nil {
			b.fail(what, err)
			continue
		}
		g, err := forked(b.ctx, n/8)
		if err == nil {
			var s sample
			if s, err = b.time(d, moduleOf(g), "forked", 1, b.rounds, nil); err == nil {
				each := middle(s.device) / float64(n/8)
				of[p] = each / 2
				b.row(what, map[string]any{"microseconds": 1e6 * each / 2}, "| %s | %.3f | half of a fork and its join |\n", what, 1e6*each/2)
			}
		}
		if err != nil {
			b.fail(what, err)
		}
		end()
	}
	// What replays do without more being said: a graph in which each waits for the one before.
	b.serial = cmp.Or(of[waiting], of[asChain], of[onStream])
	b.model.Launch = cost.Seconds(b.serial)
	b.model.ConcurrentLaunch, b.model.Barrier, b.model.CommandBuffer, b.model.Event = b.model.Launch, 0, b.model.Launch, 0
	b.model.Encode = cost.Seconds(host)
	b.model.Plans = map[string]cost.PlanTimes{}
	for p, name := range map[plan]string{onStream: "stream", asChain: "chain", waiting: "chain-waiting", byEdges: "edges", edgesToo: "edges-waiting"} {
		if of[p] > 0 {
			b.model.Plans[name] = cost.PlanTimes{Launch: cost.Seconds(of[p])}
		}
	}
	return nil
}

// row prints a row and keeps it.
func (b *bench) row(what string, values map[string]any, format string, args ...any) {
	fmt.Fprintf(b.out, format, args...)
	values["what"] = what
	b.rows = append(b.rows, values)
}

func moduleOf(g *ir.Graph) *ir.Module { return &ir.Module{Graphs: []*ir.Graph{g}} }

// queueCopy measures copies of a queue.
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
			out = append(out, time.Since(begin).Seconds()/together)
		}
	}
	return out, nil
}

// copied is a graph that copies bytes.
func copied(bytes int64) *ir.Graph {
	b := ir.NewBuilder("copied")
	from := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: bytes})
	to := b.Memory(ir.Memory{Name: "y", Kind: ir.State, Size: bytes})
	b.Copy(ir.ViewOf(to, 0, bytes), ir.ViewOf(from, 0, bytes), "")
	return b.Unfinished()
}

const smallest = "vv_Addfloat32"

// add dispatches an addition of n floats.
func add(b *ir.Builder, k ir.KernelID, n int64, left, right, to ir.View) {
	b.Dispatch(ir.Dispatch{
		Kernel: k, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(n), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, left), ir.BufferArg(1, right), ir.BufferArg(2, to)},
	})
}

// row is a graph of n smallest kernels, each of which reads what the one before it wrote.
func row(n int) *ir.Graph {
	b := ir.NewBuilder("row")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: 256 * int64(n+1)})
	k := b.Kernel(msl.Declarations(smallest)[0].Kernel(smallest))
	for i := range int64(n) {
		if i > 0 {
			b.Barrier()
		}
		add(b, k, 32, ir.ViewOf(x, 256*i, 128), ir.ViewOf(x, 256*i, 128), ir.ViewOf(x, 256*(i+1), 128))
	}
	return b.Unfinished()
}

// forked is a graph of n times four kernels and one that reads what they wrote, ordered by edges.
func forked(ctx context.Context, n int) (*ir.Graph, error) {
	b := ir.NewBuilder("forked")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: 512 * int64(2*n+1)})
	k := b.Kernel(msl.Declarations(smallest)[0].Kernel(smallest))
	for i := range int64(n) {
		from, middle, to := 1024*i, 1024*i+512, 1024*i+1024
		if i > 0 {
			b.Barrier()
		}
		for j := range int64(4) {
			add(b, k, 32, ir.ViewOf(x, from+128*j, 128), ir.ViewOf(x, from+128*((j+1)%4), 128), ir.ViewOf(x, middle+128*j, 128))
		}
		b.Barrier()
		add(b, k, 128, ir.ViewOf(x, middle, 512), ir.ViewOf(x, middle, 512), ir.ViewOf(x, to, 512))
	}
	p, err := passes.ParsePipeline("annotate,edges")
	if err != nil {
		return nil, err
	}
	r, err := optimize.Run(ctx, b.Unfinished(), optimize.Options{Pipeline: p})
	if err != nil {
		return nil, err
	}
	return r.Optimized, nil
}
