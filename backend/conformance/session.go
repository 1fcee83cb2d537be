package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// sessionTests: sessions share a device and nothing else; a context ends a
// replay; a profile has a time for every command.
var sessionTests = map[string]func(*T){
	"session/own_memory": func(t *T) {
		g := accumulate(t, "g", 10)
		a, b := t.planned(t.open(replay.Options{}, g), ""), t.planned(t.open(replay.Options{}, g), "")
		fill(a.Input("x"), 1)
		fill(b.Input("x"), 100)
		for range 3 {
			t.run(a)
			t.run(b)
		}
		assert.Equal(t, repeated(4, 10), get(a.State("sum")))
		assert.Equal(t, repeated(301, 10), get(b.State("sum")))
	},

	// Goroutines with a session each, on one device at the same time.
	"session/at_the_same_time": func(t *T) {
		const sessions, replays, n = 4, 30, 3000
		failures := make(chan error, sessions)
		var all sync.WaitGroup
		for k := range sessions {
			p := newProgram("g")
			x, a, b, sum := p.memory("x", ir.Input, n), p.memory("a", ir.Scratch, n), p.memory("b", ir.Scratch, n), p.state("sum", n, 0)
			p.add(a, x, x, n)
			p.mul(b, a, x, n)
			p.add(sum, sum, b, n)
			g := t.planned(t.open(replay.Options{Poison: true}, t.graph(p)), "")
			fill(g.Input("x"), float32(k+1))
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range replays {
					if _, err := g.Run(context.Background()); err != nil {
						failures <- err
						return
					}
					want := float32((i + 1) * 2 * (k + 1) * (k + 1))
					for j, v := range get(g.State("sum")) {
						if v != want {
							failures <- fmt.Errorf("session %d, replay %d: sum[%d] = %v, want %v", k, i, j, v, want)
							return
						}
					}
				}
			}()
		}
		all.Wait()
		close(failures)
		for err := range failures {
			t.Errorf("%v", err)
		}
	},

	"session/same_bits_again": func(t *T) {
		p := newProgram("g")
		const k, rows = 700, 40
		x, w, y := p.memory("x", ir.Input, rows*k), p.memory("w", ir.Input, k), p.memory("y", ir.Output, rows*k)
		p.Dispatch(ir.Dispatch{
			Kernel: p.kernel("rmsfloat32"), Grid: [3]ir.Extent{ir.Ext(rows), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{192, 1, 1},
			Bindings: []ir.Binding{
				ir.BufferArg(0, floats(x, 0, rows*k)), ir.BufferArg(1, floats(w, 0, k)), ir.BufferArg(2, floats(y, 0, rows*k)),
				ir.BytesArg(3, ir.ValueBytes(float32(1e-5))), ir.BytesArg(4, ir.ValueBytes(uint32(k))), ir.BytesArg(5, ir.ValueBytes(uint32(1))),
			},
		})
		g := t.plan(p)
		for i := range rows * k {
			put(g.Input("x")[4*i:], float32(i%97)/13-3)
		}
		put(g.Input("w"), counting(0.5, k)...)
		t.run(g)
		first := append([]byte(nil), g.Output("y")...)
		assert.NotEqual(t, make([]byte, len(first)), first)
		for i := range 20 {
			t.run(g)
			require.Equal(t, first, g.Output("y"), "replay %d", i)
		}
	},

	"cancel/before": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := g.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, repeated(1, 10), get(g.State("sum")), "nothing ran")
		fill(g.Input("x"), 1)
		t.run(g) // the next replay is not cancelled
		assert.Equal(t, repeated(2, 10), get(g.State("sum")))
	},

	"cancel/cause": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		reason := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(reason)
		_, err := g.Run(ctx)
		assert.ErrorIs(t, err, reason)
	},

	// A long replay ends soon after its context does, and the device works on.
	"cancel/during": func(t *T) {
		p := newProgram("g")
		const n = 20000
		x, a, b := p.memory("x", ir.Input, n), p.memory("a", ir.Scratch, n), p.memory("b", ir.Scratch, n)
		p.add(a, x, x, n)
		for range 50000 {
			p.add(b, a, x, n)
			p.add(a, b, x, n)
		}
		long := t.plan(p)
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := long.Run(ctx)
		took := time.Since(start)
		require.ErrorIs(t, err, context.DeadlineExceeded, "after %v", took)
		assert.Less(t, took, 5*time.Second)
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		fill(g.Input("x"), 1)
		t.run(g)
		assert.Equal(t, repeated(2, 10), get(g.State("sum")))
	},

	"profile/every_command": func(t *T) {
		p := newProgram("g")
		x, a, y := p.memory("x", ir.Input, 5000), p.memory("a", ir.Scratch, 5000), p.memory("y", ir.Output, 5000)
		p.add(a, x, x, 5000)
		p.Copy(floats(y, 0, 2500), floats(a, 0, 2500), "")
		p.Fill(ir.ViewOf(y, 10000, 10000), 0, "")
		p.Barrier()
		p.mul(y, a, x, 5000)
		g := t.planned(t.open(replay.Options{Profile: true}, t.graph(p)), "")
		for range 2 {
			timing := t.run(g)
			ids := map[ir.ID]bool{}
			sum := time.Duration(0)
			for _, d := range timing.Dispatches {
				ids[d.ID] = true
				sum += d.Time
				assert.GreaterOrEqual(t, d.Time, time.Duration(0))
			}
			assert.Equal(t, map[ir.ID]bool{0: true, 1: true, 2: true, 3: true}, ids)
			assert.Len(t, timing.Dispatches, 4)
			assert.Positive(t, sum)
			assert.Positive(t, timing.Total)
		}
		plain := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		assert.Empty(t, t.run(plain).Dispatches)
	},

	// Several programs may be compiled on one device over the same buffers.
	"session/programs_share_buffers": func(t *T) {
		buffer, err := t.Device.Alloc(40)
		require.NoError(t, err)
		fill(buffer.Bytes(), 1)
		compile := func(op func(p *program, m ir.MemID)) backend.Executable {
			p := newProgram("g")
			op(p, p.state("m", 10, 0))
			e, err := t.Device.Compile(&backend.Program{Graph: t.graph(p), Buffers: []backend.Buffer{buffer}})
			require.NoError(t, err)
			return e
		}
		double := compile(func(p *program, m ir.MemID) { p.add(m, m, m, 10) })
		square := compile(func(p *program, m ir.MemID) { p.mul(m, m, m, 10) })
		for _, e := range []backend.Executable{double, square, double} {
			pending, err := e.Submit(context.Background(), nil)
			require.NoError(t, err)
			_, err = pending.Wait()
			require.NoError(t, err)
		}
		assert.Equal(t, repeated(8, 10), get(buffer.Bytes()))
		require.NoError(t, errors.Join(double.Close(), square.Close(), buffer.Close()))
	},
}
