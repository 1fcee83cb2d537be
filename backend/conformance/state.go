package conformance

import (
	"context"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// accumulate returns a graph that adds its input to the state "sum".
func accumulate(t *T, name string, n int64) *ir.Graph {
	p := newProgram(name)
	x, sum := p.memory("x", ir.Input, n), p.state("sum", n, 1)
	p.add(sum, sum, x, n)
	return t.graph(p)
}

// stateTests test how long the bytes of each kind of memory live.
var stateTests = map[string]func(*T){
	"state/across_replays": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 500)), "")
		want := float32(1)
		for i := range 20 {
			t.fillInput(g, "x", float32(i))
			t.run(g)
			want += float32(i)
			require.Equal(t, repeated(want, 500), get(t.bytes(g.State("sum"))), "replay %d", i)
		}
	},

	"state/across_graphs": func(t *T) {
		p := newProgram("double")
		p.add(p.state("sum", 10, 1), 0, 0, 10)
		s := t.open(replay.Options{}, accumulate(t, "add", 10), t.graph(p))
		add, double := t.planned(s, "add"), t.planned(s, "double")
		t.fillInput(add, "x", 2)
		for _, g := range []*replay.Graph{add, double, double, add} {
			t.run(g)
		}
		require.Equal(t, repeated(14, 10), get(t.bytes(add.State("sum"))))
		require.Equal(t, repeated(14, 10), get(t.bytes(double.State("sum"))))
	},

	"state/initial_contents_and_reset": func(t *T) {
		p := newProgram("g")
		blob, random, x := p.Memory(ir.Memory{Name: "blob", Kind: ir.State, Size: 8, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob([]byte("\x00\x00\x80\x3f\x00\x00\x00\x40"))}}),
			p.Memory(ir.Memory{Name: "random", Kind: ir.State, Size: 8, Init: ir.Init{Kind: ir.InitRandom, Seed: 7}}), p.memory("x", ir.Input, 2)
		p.add(blob, blob, x, 2)
		p.Fill(ir.ViewOf(random, 0, 8), 0, "")
		s := t.open(replay.Options{}, t.graph(p))
		g := t.planned(s, "")
		seeded := t.bytes(g.State("random"))
		require.NotEqual(t, make([]byte, 8), seeded)
		t.fillInput(g, "x", 10)
		t.run(g)
		t.run(g)
		require.Equal(t, []float32{21, 22}, get(t.bytes(g.State("blob"))))
		require.Equal(t, make([]byte, 8), t.bytes(g.State("random")))
		require.NoError(t, s.ResetStates())
		require.Equal(t, []float32{1, 2}, get(t.bytes(g.State("blob"))))
		require.Equal(t, seeded, t.bytes(g.State("random")))
		t.run(g)
		require.Equal(t, []float32{11, 12}, get(t.bytes(g.State("blob"))))
	},

	// The host may read and change states between replays.
	"state/written_by_the_host": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 4)), "")
		t.fillInput(g, "x", 1)
		t.run(g)
		t.putState(g, "sum", 10, 20, 30, 40)
		t.run(g)
		require.Equal(t, []float32{11, 21, 31, 41}, get(t.bytes(g.State("sum"))))
	},

	"input/changed_between_replays": func(t *T) {
		p := newProgram("g")
		x, y := p.memory("x", ir.Input, 100), p.memory("y", ir.Output, 100)
		p.add(y, x, x, 100)
		g := t.plan(p)
		for i := range 10 {
			t.putInput(g, "x", counting(float32(i), 100)...)
			t.run(g)
			require.Equal(t, float32(2*(i+99)), get(t.bytes(g.Output("y")))[99])
		}
		t.run(g) // an input keeps what the host wrote
		require.Equal(t, float32(18), get(t.bytes(g.Output("y")))[0])
	},

	// A second replay may be submitted before anybody has waited for the first. Both have
	// their effect on the state.
	"state/submitted_in_turn": func(t *T) {
		g := t.planned(t.open(replay.Options{}, accumulate(t, "g", 1000)), "")
		t.fillInput(g, "x", 1)
		for range 3 {
			a, err := g.Submit(context.Background())
			require.NoError(t, err)
			b, err := g.Submit(context.Background())
			require.NoError(t, err)
			_, err = a.Wait(context.Background())
			require.NoError(t, err)
			_, err = b.Wait(context.Background())
			require.NoError(t, err)
		}
		require.Equal(t, repeated(7, 1000), get(t.bytes(g.State("sum"))))
	},

	"weight/contents": func(t *T) {
		p := newProgram("g")
		data := make([]byte, 64)
		put(data, counting(1, 16)...)
		w := p.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 64, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(data)}})
		f := p.Memory(ir.Memory{Name: "f", Kind: ir.Weight, Size: 64, Init: ir.FillU32(0x40000000)})
		y := p.memory("y", ir.Output, 16)
		p.mul(y, w, f, 16)
		g := t.plan(p)
		before := append([]byte(nil), data...)
		for range 3 {
			t.run(g)
		}
		want := make([]float32, 16)
		for i := range want {
			want[i] = 2 * float32(i+1)
		}
		require.Equal(t, want, get(t.bytes(g.Output("y"))))
		require.Equal(t, before, data, "mapped weights are read-only")
	},

	// With Poison, an output is filled with other bytes before each replay, so that reading bytes
	// that the graph did not write is noticed. Defined results stay the same.
	"poison/differs": func(t *T) {
		p := newProgram("g")
		x, scratch, y := p.memory("x", ir.Input, 8), p.memory("scratch", ir.Scratch, 8), p.memory("y", ir.Output, 16)
		p.add(scratch, x, x, 8)
		p.Barrier()
		p.binary("Add", floats(y, 0, 8), floats(scratch, 0, 8), floats(x, 0, 8), ir.Const(8))
		g := t.planned(t.open(replay.Options{Poison: true}, t.graph(p)), "")
		t.fillInput(g, "x", 2)
		seen := map[string]bool{}
		for i := range 6 {
			t.run(g)
			rest := string(t.bytes(g.Output("y"))[32:40])
			require.False(t, seen[rest], "replay %d: the output holds what it held before", i)
			seen[rest] = true
			require.Equal(t, repeated(6, 8), get(t.bytes(g.Output("y")))[:8])
		}
	},

	// A graph that reads undefined bytes, or whose commands race, is refused.
	"meaning/refused": func(t *T) {
		for what, undefined := range map[string]bool{"undefined read": true, "race": false} {
			p := newProgram("g")
			x, scratch, y := p.memory("x", ir.Input, 8), p.memory("scratch", ir.Scratch, 8), p.memory("y", ir.Output, 8)
			whole := func(m ir.MemID) ir.View { return floats(m, 0, 8) }
			if !undefined {
				p.binary("Add", whole(scratch), whole(x), whole(x), ir.Const(8))
			}
			p.binary("Add", whole(y), whole(scratch), whole(x), ir.Const(8))
			_, err := t.open(replay.Options{}, t.graph(p)).Graph(context.Background(), "")
			require.ErrorContains(t, err, "graph g has no one meaning", what)
		}
	},

	// The commands of a serial graph run in the order of its list.
	"meaning/serial": func(t *T) {
		p := newProgram("g")
		x, scratch, y := p.memory("x", ir.Input, 8), p.memory("scratch", ir.Scratch, 8), p.memory("y", ir.Output, 8)
		add := func(c, a, b ir.MemID) {
			p.binary("Add", floats(c, 0, 8), floats(a, 0, 8), floats(b, 0, 8), ir.Const(8))
		}
		for range 50 {
			add(scratch, x, x)
			add(y, scratch, x)
			add(scratch, y, y)
			add(y, scratch, y)
		}
		list := t.graph(p)
		list.Ordering = ir.Serial
		g := t.planned(t.open(replay.Options{Poison: true}, list), "")
		t.fillInput(g, "x", 2)
		for range 3 {
			t.run(g)
			require.Equal(t, repeated(18, 8), get(t.bytes(g.Output("y"))))
		}
	},
}
