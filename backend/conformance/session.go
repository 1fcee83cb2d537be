package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// sessionTests test that sessions share nothing but a device, that a replay ends when its
// context does, and that a profile has a time for every command.
var sessionTests = map[string]func(*T){
	"session/own_memory": func(t *T) {
		g := accumulate(t, "g", 10)
		a, b := t.planned(t.open(replay.Options{}, g), ""), t.planned(t.open(replay.Options{}, g), "")
		t.fillInput(a, "x", 1)
		t.fillInput(b, "x", 100)
		for range 3 {
			t.run(a)
			t.run(b)
		}
		require.Equal(t, repeated(4, 10), get(t.bytes(a.State("sum"))))
		require.Equal(t, repeated(301, 10), get(t.bytes(b.State("sum"))))
	},

	// Several goroutines use one device at the same time, each with a session of its own.
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
			t.fillInput(g, "x", float32(k+1))
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range replays {
					_, err := g.Run(context.Background())
					sum, other := g.State("sum")
					if err = errors.Join(err, other); err != nil {
						failures <- err
						return
					}
					want := float32((i + 1) * 2 * (k + 1) * (k + 1))
					for j, v := range get(sum) {
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
		p.rms(y, x, w, ir.Ext(rows), rows, k, 192)
		g := t.plan(p)
		values := make([]float32, rows*k)
		for i := range values {
			values[i] = float32(i%97)/13 - 3
		}
		t.putInput(g, "x", values...)
		t.putInput(g, "w", counting(0.5, k)...)
		t.run(g)
		first := t.bytes(g.Output("y"))
		require.NotEqual(t, make([]byte, len(first)), first)
		for i := range 20 {
			t.run(g)
			require.Equal(t, first, t.bytes(g.Output("y")), "replay %d", i)
		}
	},

	"cancel/before": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := g.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, repeated(1, 10), get(t.bytes(g.State("sum"))), "nothing ran")
		t.fillInput(g, "x", 1)
		t.run(g) // the replay after a cancelled one runs
		require.Equal(t, repeated(2, 10), get(t.bytes(g.State("sum"))))
	},

	"cancel/cause": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		reason := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(reason)
		_, err := g.Run(ctx)
		require.ErrorIs(t, err, reason)
	},

	// A long replay ends soon after its context does, and the device still works.
	"cancel/during": func(t *T) {
		p := newProgram("g")
		const n = longElements
		x, a, b := p.memory("x", ir.Input, n), p.memory("a", ir.Scratch, n), p.memory("b", ir.Scratch, n)
		p.add(a, x, x, n)
		for range longCommands / 2 {
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
		require.Less(t, took, 5*time.Second)
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		t.fillInput(g, "x", 1)
		t.run(g)
		require.Equal(t, repeated(2, 10), get(t.bytes(g.State("sum"))))
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
			for _, d := range timing.Commands {
				ids[d.ID] = true
				sum += d.Duration()
				require.GreaterOrEqual(t, d.Duration(), time.Duration(0))
				require.False(t, d.Begin.Before(timing.Begin) || d.End.After(timing.End), "#%d is outside of its replay", d.ID)
			}
			require.Equal(t, map[ir.ID]bool{0: true, 1: true, 2: true, 3: true}, ids)
			require.Len(t, timing.Commands, 4)
			require.Zero(t, timing.Unsampled, "commands that the device has taken no time of")
			require.Positive(t, sum)
			require.Positive(t, timing.Duration())
		}
		plain := t.planned(t.open(replay.Options{}, accumulate(t, "g", 10)), "")
		require.Empty(t, t.run(plain).Commands)
	},

	// Several programs may be compiled on one device over the same buffers.
	"session/programs_share_buffers": func(t *T) {
		buffer := t.alloc(40)
		t.upload(backend.At(buffer), floatBytes(repeated(1, 10)))
		compile := func(op func(p *program, m ir.MemID)) *bound {
			p := newProgram("g")
			op(p, p.state("m", 10, 0))
			return t.bind(t.graph(p), nil, []backend.Place{backend.At(buffer)})
		}
		double := compile(func(p *program, m ir.MemID) { p.add(m, m, m, 10) })
		square := compile(func(p *program, m ir.MemID) { p.mul(m, m, m, 10) })
		for _, b := range []*bound{double, square, double} {
			b.run(nil)
		}
		require.Equal(t, repeated(8, 10), get(t.download(backend.At(buffer), 40)))
	},
}
