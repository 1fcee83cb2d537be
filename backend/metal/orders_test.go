//go:build linux

package metal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// inFlight is a graph with several frames, whose replays are in flight together.
type inFlight struct {
	name   string
	graph  *ir.Graph
	s      *replay.Instance
	frames []*replay.Frame
}

// fly opens a graph with one frame for each round, each with other params and inputs.
func fly(t testing.TB, d backend.Device, name string, g *ir.Graph) *inFlight {
	t.Helper()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g.Clone()}}, replay.Options{})
	require.NoError(t, err)
	p, err := s.Graph(t.Context(), "")
	require.NoError(t, err)
	f := &inFlight{name: name, graph: g, s: s, frames: []*replay.Frame{p.Frame}}
	for len(f.frames) < rounds {
		more, err := p.NewFrame(t.Context())
		require.NoError(t, err)
		f.frames = append(f.frames, more)
	}
	for round, frame := range f.frames {
		for i := range g.Params {
			require.NoError(t, frame.SetParam(g.Params[i].Name, param(&g.Params[i], round)))
		}
		for name, data := range inputs(g, uint64(round)) {
			require.NoError(t, frame.SetInput(name, data))
		}
	}
	return f
}

// run submits a replay of each frame before any has ended. It returns the outputs by frame, with the states
// in the last.
func (f *inFlight) run(t testing.TB) (out []map[string][]byte) {
	t.Helper()
	for _, frame := range f.frames {
		_, err := frame.Submit(context.Background())
		require.NoError(t, err)
	}
	last := f.frames[len(f.frames)-1]
	for _, frame := range f.frames {
		state := func(string) ([]byte, error) { return nil, nil }
		if frame == last {
			state = frame.State
		}
		out = append(out, results(t, f.graph, frame.Output, state))
	}
	return out
}

// flown returns the graphs that TestSeeds runs in many orders: one of each kind.
func flown(graphs map[string]*ir.Graph) map[string]*ir.Graph {
	out := map[string]*ir.Graph{}
	for _, name := range []string{
		"llama_layer_decode, optimized", "llama_layer_decode", "arena_reuse, optimized", "two_streams, optimized",
		"ring_buffer", "commits", "copies_and_fills, optimized",
	} {
		out[name] = graphs[name]
	}
	return out
}

// TestSeeds: three replays in flight, which end late, compute the same in 200 random orders of the GPU, of which a run
// takes half. Larger graphs, and plans other than the default, run in some of these orders, or in all with MLXC_LONG=1.
func TestSeeds(t *testing.T) {
	sample.Seldom(t)
	soft, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer soft.Close()
	graphs := flown(testGraphs(t))
	want := map[string][]map[string][]byte{}
	for name, g := range graphs {
		f := fly(t, soft, name, g)
		want[name] = f.run(t)
		require.NoError(t, f.s.Close())
	}
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			o := w.on(soft, 1)
			o.Late = 200 * time.Microsecond
			m := serve(t, o)
			d := open(t, w.options())
			var all []*inFlight
			for name, g := range graphs {
				all = append(all, fly(t, d, name, g))
			}
			for seed := range uint64(200) {
				if !sample.Whole() && seed/100 != uint64(sample.Run()%2) {
					continue
				}
				m.SetSeed(seed + 1)
				for _, f := range all {
					often := uint64(1)
					switch {
					case strings.HasPrefix(f.name, "llama"):
						often = 20
					case f.name != "two_streams, optimized" && f.name != "commits":
						often = 4
					}
					if i > 0 {
						often *= 8
					}
					if seed%often != 0 && !sample.Whole() {
						continue
					}
					same(t, want[f.name], f.run(t), fmt.Sprintf("%s: seed %d", f.name, seed+1))
				}
			}
			for _, f := range all {
				require.NoError(t, f.s.Close())
			}
			require.NoError(t, d.Close())
		})
	}
}

// bare is a graph that the backend compiles without package replay, which would refuse a graph with a race.
type bare struct {
	graph   *ir.Graph
	q       backend.Queue
	e       backend.Executable
	f       backend.Frame
	set     backend.States
	weights []backend.Place
	states  []backend.Place
	buffers []backend.Buffer
}

func compile(t testing.TB, d backend.Device, g *ir.Graph) *bare {
	t.Helper()
	b := &bare{graph: g, weights: make([]backend.Place, len(g.Memories)), states: make([]backend.Place, len(g.Memories))}
	var err error
	b.q, err = d.NewQueue()
	require.NoError(t, err)
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem || m.Kind != ir.Weight && m.Kind != ir.State {
			continue
		}
		buffer, err := backend.AllocMemory(t.Context(), d, b.q, m)
		require.NoError(t, err)
		b.buffers = append(b.buffers, buffer)
		map[ir.MemKind][]backend.Place{ir.Weight: b.weights, ir.State: b.states}[m.Kind][i] = backend.At(buffer)
	}
	b.e, err = d.Compile(t.Context(), &backend.Program{Graph: g, Places: b.weights})
	require.NoError(t, err)
	b.f, err = b.e.NewFrame(backend.FrameSpec{})
	require.NoError(t, err)
	b.set, err = b.e.NewStates(b.states)
	require.NoError(t, err)
	return b
}

// run clears all memories, sets the inputs, replays the graph once and returns its outputs and states.
func (b *bare) run(t testing.TB) []byte {
	t.Helper()
	var out []byte
	in := inputs(b.graph, 1)
	for pass := range 2 {
		for i := range b.graph.Memories {
			m := &b.graph.Memories[i]
			p := b.f.Place(ir.MemID(i))
			if m.Kind == ir.State {
				p = b.states[i]
			}
			if p.Buffer == nil || m.Alias != ir.NoMem || m.Kind == ir.Weight {
				continue
			}
			switch data := p.Bytes(m.Size); {
			case pass == 0:
				clear(data)
				copy(data, in[m.Name])
			case m.Kind == ir.Output || m.Kind == ir.State:
				out = append(out, data...)
			}
		}
		if pass == 0 {
			s := backend.Submission{Executable: b.e, Frame: b.f, States: b.set, Params: b.graph.Greatest()}
			require.NoError(t, backend.Wait(t.Context())(b.q.Submit(t.Context(), s)))
		}
	}
	return out
}

func (b *bare) close(t testing.TB) {
	t.Helper()
	require.NoError(t, b.set.Close())
	require.NoError(t, b.f.Close())
	require.NoError(t, b.e.Close())
	require.NoError(t, b.q.Close())
	for _, x := range b.buffers {
		require.NoError(t, x.Close())
	}
}

// TestBarriers: without a barrier that a graph needs, some order of the GPU computes something else. So a
// barrier that the backend did not emit would be noticed.
func TestBarriers(t *testing.T) {
	sample.Seldom(t)
	m := serve(t, fakemetal.Options{Seed: 1})
	d := open(t, metal.Options{})
	needed := 0
	for name, g := range testGraphs(t) {
		if g.Ordering != ir.ByBarriers {
			continue
		}
		whole := compile(t, d, g)
		want := whole.run(t)
		whole.close(t)
		for i, n := range g.Nodes {
			if _, ok := n.(*ir.Barrier); !ok || i == len(g.Nodes)-1 {
				continue // a barrier at the end of the list orders only the next replay
			}
			without := g.Clone()
			without.Nodes = slices.Delete(without.Nodes, i, i+1)
			r, err := meaning.Of(t.Context(), without)
			require.NoError(t, err)
			if r.Err() == nil || slices.ContainsFunc(r.Faults, func(f meaning.Fault) bool { return f.Kind != "race" }) {
				continue
			}
			needed++
			b := compile(t, d, without)
			seen := false
			for seed := uint64(1); seed <= 60 && !seen; seed++ {
				m.SetSeed(seed)
				seen = !slices.Equal(want, b.run(t))
			}
			b.close(t)
			assert.True(t, seen, "%s: no order shows that the barrier at place %d is missing: %s", name, i, fmt.Sprint(r.Lines()))
		}
	}
	t.Logf("%d barriers", needed)
	assert.Greater(t, needed, 60)
	require.NoError(t, d.Close())
}
