package conformance

import (
	"context"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// orderTests test that commands after a barrier wait for those before it, that copies and fills
// are commands like dispatches, and that an alias shares the bytes of the memory that it lies
// in.
var orderTests = map[string]func(*T){
	"order/barriers": func(t *T) {
		p := newProgram("g")
		x, a, b, y := p.memory("x", ir.Input, 100), p.memory("a", ir.Scratch, 100), p.memory("b", ir.Scratch, 100), p.memory("y", ir.Output, 100)
		p.add(a, x, x, 100) // 2x
		p.mul(b, a, x, 100) // 2x²
		p.add(a, b, x, 100) // 2x² + x
		p.mul(b, a, a, 100) // its square: a write after a read of b
		p.add(y, b, a, 100)
		g := t.plan(p)
		t.putInput(g, "x", counting(0, 100)...)
		t.run(g)
		want := make([]float32, 100)
		for i := range want {
			v := float32(i)
			a := float32(2*v*v) + v // each is rounded: Go contracts expressions on some machines
			want[i] = float32(a*a) + a
		}
		require.Equal(t, want, get(t.bytes(g.Output("y"))))
	},

	// A long chain through two buffers, in which every step needs the result of the one before.
	"order/long_chain": func(t *T) {
		p := newProgram("g")
		x, a, b, y := p.memory("x", ir.Input, 1000), p.memory("a", ir.Scratch, 1000), p.memory("b", ir.Scratch, 1000), p.memory("y", ir.Output, 1000)
		p.add(a, x, x, 1000)
		for range 100 {
			p.add(b, a, x, 1000)
			p.add(a, b, x, 1000)
		}
		p.add(y, a, x, 1000)
		g := t.plan(p)
		t.fillInput(g, "x", 1)
		t.run(g)
		require.Equal(t, repeated(203, 1000), get(t.bytes(g.Output("y"))))
	},

	"order/commits": func(t *T) {
		for _, order := range []ir.CommitOrder{ir.OrderFence, ir.OrderEvent} {
			p := newProgram("g")
			x, a, y := p.memory("x", ir.Input, 10), p.memory("a", ir.Scratch, 10), p.memory("y", ir.Output, 10)
			p.add(a, x, x, 10)
			p.Commit(order, "first")
			p.mul(y, a, a, 10)
			p.Commit(order, "second")
			p.binary("Add", floats(y, 0, 10), floats(y, 0, 10), floats(x, 0, 10), ir.Const(10))
			g := t.plan(p)
			t.fillInput(g, "x", 3)
			t.run(g)
			require.Equal(t, repeated(39, 10), get(t.bytes(g.Output("y"))), "order %d", order)
		}
	},

	// The end of the list orders the next replay, whether that is in the same submission or in
	// another one: in any other order s = 2s + x[pos] gives another number.
	"order/end_of_the_list": func(t *T) {
		const n, k = 5, 100
		for _, end := range []ir.Node{&ir.Barrier{}, &ir.Commit{Order: ir.OrderFence}, &ir.Commit{Order: ir.OrderEvent}, &ir.Commit{}, nil} {
			p := newProgram("g")
			pos := p.Param("pos", 0, 2*n)
			x, a, s := p.memory("x", ir.Input, 3*n*k), p.memory("a", ir.Scratch, k), p.state("s", k, 0)
			p.add(a, s, s, k)
			p.Barrier()
			p.binary("Add", floats(s, 0, k), floats(a, 0, k), ir.View{Mem: x, Off: param(pos, 4*k), Len: ir.Const(4 * k)}, ir.Const(k))
			switch end := end.(type) {
			case *ir.Barrier:
				p.Barrier()
			case *ir.Commit:
				p.Commit(end.Order, "")
			}
			p.Unfinished().Params[0].Advance = 1
			instance := t.open(replay.Options{}, t.graph(p))
			g := t.planned(instance, "")
			burst, err := g.NewBurstFrame(context.Background(), n)
			require.NoError(t, err)
			in := make([]byte, 4*3*n*k)
			put(in, counting(1, 3*n*k)...)
			want := make([]float32, k)
			next := func(pos int) {
				for j := range want {
					want[j] = 2*want[j] + float32(1+pos*k+j)
				}
			}
			require.NoError(t, burst.SetInput("x", in))
			require.NoError(t, burst.SetParam("pos", 0))
			r, err := burst.SubmitBurst(context.Background(), n, nil)
			require.NoError(t, err)
			for i := range n {
				next(i)
			}
			var runs []*replay.Run
			for i := range 3 {
				f, err := g.NewFrame(context.Background())
				require.NoError(t, err)
				require.NoError(t, f.SetInput("x", in))
				require.NoError(t, f.SetParam("pos", float64(n+i)))
				run, err := f.Submit(context.Background())
				require.NoError(t, err)
				runs = append(runs, run)
				next(n + i)
			}
			for _, run := range append(runs, r) {
				_, err := run.Wait(context.Background())
				require.NoError(t, err)
			}
			require.Equal(t, want, get(t.bytes(g.State("s"))), "the list ends with %T", end)
		}
	},

	"order/groups_are_labels": func(t *T) {
		p := newProgram("g")
		x, y := p.memory("x", ir.Input, 10), p.memory("y", ir.Output, 10)
		p.Group("outer")
		p.Group("inner")
		p.add(y, x, x, 10)
		p.EndGroup()
		p.EndGroup()
		g := t.plan(p)
		t.fillInput(g, "x", 3)
		t.run(g)
		require.Equal(t, repeated(6, 10), get(t.bytes(g.Output("y"))))
	},

	"copy/bytes": func(t *T) {
		p := newProgram("g")
		x, y := p.memory("x", ir.Input, 4), p.memory("y", ir.Output, 4)
		p.Fill(ir.ViewOf(y, 0, 16), 0xee, "")
		p.Barrier()
		p.Copy(ir.ViewOf(y, 5, 7), ir.ViewOf(x, 3, 7), "")
		g := t.plan(p)
		n, _ := g.Size("x", ir.Input)
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i)
		}
		require.NoError(t, g.SetInput("x", data))
		t.run(g)
		require.Equal(t, []byte{0xee, 0xee, 0xee, 0xee, 0xee, 3, 4, 5, 6, 7, 8, 9, 0xee, 0xee, 0xee, 0xee}, t.bytes(g.Output("y")))
	},

	"copy/between_dispatches": func(t *T) {
		p := newProgram("g")
		x, a, b, y := p.memory("x", ir.Input, 10), p.memory("a", ir.Scratch, 10), p.memory("b", ir.Scratch, 10), p.memory("y", ir.Output, 10)
		p.add(a, x, x, 10)
		p.Copy(floats(b, 5, 5), floats(a, 0, 5), "")
		p.Copy(floats(b, 0, 5), floats(a, 5, 5), "")
		p.Barrier()
		p.add(y, b, x, 10)
		g := t.plan(p)
		t.putInput(g, "x", counting(0, 10)...)
		t.run(g)
		require.Equal(t, []float32{10, 13, 16, 19, 22, 5, 8, 11, 14, 17}, get(t.bytes(g.Output("y"))))
	},

	"copy/within_a_memory": func(t *T) {
		p := newProgram("g")
		s := p.state("s", 4, 0)
		p.Copy(floats(s, 2, 2), floats(s, 0, 2), "")
		g := t.plan(p)
		t.putState(g, "s", 1, 2, 3, 4)
		t.run(g)
		require.Equal(t, []float32{1, 2, 1, 2}, get(t.bytes(g.State("s"))))
	},

	"copy/empty": func(t *T) {
		p := newProgram("g")
		s := p.state("s", 4, 7)
		p.Copy(ir.ViewOf(s, 16, 0), ir.ViewOf(s, 0, 0), "")
		p.Copy(ir.ViewOf(s, 0, 0), ir.ViewOf(s, 7, 0), "")
		p.Fill(ir.ViewOf(s, 4, 0), 1, "")
		g := t.plan(p)
		t.run(g)
		require.Equal(t, repeated(7, 4), get(t.bytes(g.State("s"))))
	},

	"fill/bytes": func(t *T) {
		p := newProgram("g")
		s := p.state("s", 3, 0)
		p.Fill(ir.ViewOf(s, 1, 5), 0xab, "")
		g := t.plan(p)
		t.run(g)
		require.Equal(t, []byte{0, 0xab, 0xab, 0xab, 0xab, 0xab, 0, 0, 0, 0, 0, 0}, t.bytes(g.State("s")))
	},

	// A dispatch writes a memory by one alias. Other commands read, copy and fill it by other names.
	"alias/both_names": func(t *T) {
		p := newProgram("g")
		x, whole, y := p.memory("x", ir.Input, 8), p.memory("whole", ir.Scratch, 32), p.memory("y", ir.Output, 24)
		middle := p.Alias("middle", whole, 32, 64) // floats 8…23
		inner := p.Alias("inner", middle, 16, 32)  // floats 12…19
		p.Fill(ir.ViewOf(whole, 0, 128), 0, "")
		p.Barrier()
		p.binary("Add", floats(inner, 0, 8), floats(x, 0, 8), floats(x, 0, 8), ir.Const(8))
		p.Barrier()
		p.binary("Add", floats(y, 0, 8), floats(whole, 12, 8), floats(x, 0, 8), ir.Const(8))
		p.Copy(floats(y, 8, 16), floats(middle, 0, 16), "")
		g := t.plan(p)
		t.putInput(g, "x", counting(1, 8)...)
		t.run(g)
		want := []float32{3, 6, 9, 12, 15, 18, 21, 24, 0, 0, 0, 0, 2, 4, 6, 8, 10, 12, 14, 16, 0, 0, 0, 0}
		require.Equal(t, want, get(t.bytes(g.Output("y"))))
	},

	"alias/of_input_and_output": func(t *T) {
		p := newProgram("g")
		x, y := p.memory("x", ir.Input, 8), p.memory("y", ir.Output, 8)
		p.Copy(floats(p.Alias("high", y, 16, 16), 0, 4), floats(p.Alias("low", x, 0, 16), 0, 4), "")
		p.Copy(floats(y, 0, 4), floats(p.Alias("rest", x, 16, 16), 0, 4), "")
		g := t.plan(p)
		t.putInput(g, "x", counting(0, 4)...)
		t.putInput(g, "rest", counting(10, 4)...)
		t.run(g)
		require.Equal(t, []float32{10, 11, 12, 13, 0, 1, 2, 3}, get(t.bytes(g.Output("y"))))
		require.Equal(t, []float32{0, 1, 2, 3}, get(t.bytes(g.Output("high"))))
	},

	"inplace/chain": func(t *T) {
		p := newProgram("g")
		x, y := p.memory("x", ir.Input, 300), p.memory("y", ir.Output, 300)
		p.add(y, x, x, 300)
		p.add(y, y, x, 300)
		p.mul(y, x, y, 300)
		g := t.plan(p)
		t.putInput(g, "x", counting(0, 300)...)
		t.run(g)
		for i, v := range get(t.bytes(g.Output("y"))) {
			if want := float32(3 * i * i); v != want {
				t.Errorf("y[%d] = %v, want %v", i, v, want)
			}
		}
	},
}
