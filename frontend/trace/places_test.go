package trace_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/replay"
)

// products logs steps that multiply elements; each is a list of products of two buffers with a third for the result.
func products(t *testing.T, l *log, steps [][][3]uint64) {
	t.Helper()
	lib, mul := l.id(), uint64(0)
	l.Event(trace.Library, lib, "metallib", "mlx.metallib", metallibs.Small(t, "vv_Multiplyfloat32"))
	mul = l.id()
	l.Event(trace.Pipeline, mul, lib, "vv_Multiplyfloat32")
	for _, s := range steps {
		l.run(0, func(e uint64) {
			l.Event(trace.Use, e, mul)
			for _, p := range s {
				for slot, b := range p {
					l.Event(trace.Bind, e, uint64(slot), b, uint64(0))
				}
				l.Event(trace.Bytes, e, uint64(3), word(4))
				l.Event(trace.Dispatch, e, uint64(1), uint64(4), uint64(1), uint64(1), uint64(4), uint64(1), uint64(1))
				l.Event(trace.Barrier, e)
			}
		})
	}
}

func four(x float32) []byte { return ir.ValueBytes(x, x, x, x) }

// kinds returns the kinds of a graph's memories, and how many copies it has.
func kinds(g *ir.Graph) (out string, copies int) {
	for i := range g.Memories {
		out += g.Memories[i].Kind.String() + " "
	}
	for _, n := range g.Nodes {
		if _, ok := n.(*ir.Copy); ok {
			copies++
		}
	}
	return out, copies
}

// An engine that writes a new buffer in each step, and reads that in the next one.
func TestStateMoves(t *testing.T) {
	l := newLog()
	x, y, w := l.buffer(16, four(1)), l.buffer(16, nil), l.buffer(16, four(2))
	products(t, l, [][][3]uint64{{{x, w, y}}, {{y, w, x}}, {{x, w, y}}})
	r := imported(t, l, trace.Options{Builtin: true})
	g := r.Module.Graphs[0]
	found, copies := kinds(g)
	require.Equal(t, "state weight output ", found)
	require.Equal(t, 1, copies)
	replayed(t, r.Module, func(p *replay.Graph) {
		for n := range 4 {
			_, err := p.Run(t.Context())
			require.NoError(t, err)
			got, err := p.Output(g.Memories[2].Name)
			require.NoError(t, err)
			require.Equal(t, four(float32(int(2)<<n)), got)
		}
	})
}

// Two states that change places: each is copied to where the other one was, and neither is lost.
func TestStatesChangePlaces(t *testing.T) {
	l := newLog()
	x, y, two, three := l.buffer(16, four(1)), l.buffer(16, four(10)), l.buffer(16, four(2)), l.buffer(16, four(3))
	products(t, l, [][][3]uint64{{{x, two, x}, {y, three, y}}, {{y, two, y}, {x, three, x}}, {{x, two, x}, {y, three, y}}})
	r := imported(t, l, trace.Options{Builtin: true})
	g := r.Module.Graphs[0]
	found, copies := kinds(g)
	require.Equal(t, "state weight state weight scratch scratch ", found, mlxt.Format(r.Module))
	require.Equal(t, 4, copies)
	replayed(t, r.Module, func(p *replay.Graph) {
		a, b := float32(1), float32(10)
		for range 5 {
			_, err := p.Run(t.Context())
			require.NoError(t, err)
			a, b = 3*b, 2*a // what the next step finds in the first and the second place
			first, err := p.State(g.Memories[0].Name)
			require.NoError(t, err)
			second, err := p.State(g.Memories[2].Name)
			require.NoError(t, err)
			require.Equal(t, four(a), first)
			require.Equal(t, four(b), second)
		}
	})
}

// What a run finds must have been left in one place.
func TestStateOfTwoPlaces(t *testing.T) {
	l := newLog()
	x, y, z, w := l.buffer(16, four(1)), l.buffer(16, nil), l.buffer(16, nil), l.buffer(16, four(2))
	products(t, l, [][][3]uint64{{{x, w, y}, {x, w, z}}, {{y, w, x}, {y, w, z}}, {{z, w, x}, {z, w, y}}})
	f, err := trace.Read("test", l.Bytes())
	require.NoError(t, err)
	_, err = trace.Import(t.Context(), f, trace.Options{Builtin: true})
	require.ErrorContains(t, err, "another has left in")
}

// A buffer that is written anew within a step is two memories there, and one where the engine takes another buffer: both are one graph.
func TestLives(t *testing.T) {
	l := newLog()
	x, s, u, y, w := l.buffer(16, four(1)), l.buffer(16, nil), l.buffer(16, nil), l.buffer(16, nil), l.buffer(16, four(2))
	products(t, l, [][][3]uint64{
		{{x, w, s}, {s, w, u}, {u, w, s}, {s, w, y}}, // s is taken again
		{{x, w, s}, {s, w, u}, {u, w, y}, {y, w, s}}, // another one, and the result is in s
	})
	r := imported(t, l, trace.Options{Builtin: true})
	require.Len(t, r.Module.Graphs, 1, mlxt.Format(r.Module))
	g := r.Module.Graphs[0]
	found, _ := kinds(g)
	require.Equal(t, "weight weight scratch scratch scratch output ", found, mlxt.Format(r.Module))
	replayed(t, r.Module, func(p *replay.Graph) {
		_, err := p.Run(t.Context())
		require.NoError(t, err)
		got, err := p.Output(g.Memories[5].Name)
		require.NoError(t, err)
		require.Equal(t, four(16), got)
	})
}

func replayed(t *testing.T, m *ir.Module, do func(p *replay.Graph)) {
	t.Helper()
	i, err := replay.Open(cpu.New(0), m, replay.Options{})
	require.NoError(t, err)
	defer i.Close()
	p, err := i.Graph(t.Context(), m.Graphs[0].Name)
	require.NoError(t, err)
	do(p)
}

// What one graph leaves another one finds, in the same state, without a copy.
func TestStateOfTwoGraphs(t *testing.T) {
	l := newLog()
	x, y, z, w := l.buffer(16, four(1)), l.buffer(16, nil), l.buffer(16, nil), l.buffer(16, four(2))
	one, other := [][3]uint64{{x, w, y}}, [][3]uint64{{y, w, z}, {z, w, x}}
	products(t, l, [][][3]uint64{one, other, one, other})
	r := imported(t, l, trace.Options{Builtin: true})
	require.Len(t, r.Module.Graphs, 2)
	for i, want := range []string{"state weight state ", "state weight scratch state "} {
		found, copies := kinds(r.Module.Graphs[i])
		require.Equal(t, want, found, mlxt.Format(r.Module))
		require.Zero(t, copies)
	}
	i, err := replay.Open(cpu.New(0), r.Module, replay.Options{})
	require.NoError(t, err)
	defer i.Close()
	value := float32(1)
	for n := range 6 {
		g := r.Module.Graphs[n%2]
		p, err := i.Graph(t.Context(), g.Name)
		require.NoError(t, err)
		_, err = p.Run(t.Context())
		require.NoError(t, err)
		value *= float32(2 + 2*(n%2))
		got, err := p.State(g.Memories[len(g.Memories)-1].Name)
		require.NoError(t, err)
		require.Equal(t, four(value), got, "run %d", n)
	}
}

// A host that writes the same again is seen by what the buffer holds, and its words are numbers of the graph.
func TestHolds(t *testing.T) {
	l := newLog()
	lib, rope := l.id(), uint64(0)
	l.Event(trace.Library, lib, "metallib", "mlx.metallib", metallibs.Small(t, "rope_single_float16"))
	rope = l.id()
	l.Event(trace.Pipeline, rope, lib, "rope_single_float16", append(append(word(1), word(53)...), append(ir.ValueBytes(uint64(1)), append(append(word(2), word(53)...), ir.ValueBytes(uint64(0))...)...)...))
	in, out, at := l.buffer(128, make([]byte, 128)), l.buffer(128, nil), l.buffer(4, nil)
	products(t, l, [][][3]uint64{{{in, in, at}}}) // by chance a kernel leaves there what the host writes then
	for i := range uint32(4) {
		if i == 0 {
			l.Event(trace.Holds, at, uint64(0), word(10+i))
		} else {
			l.Event(trace.Contents, at, uint64(0), word(10+i))
		}
		l.run(0, func(e uint64) {
			l.Event(trace.Use, e, rope)
			for slot, b := range []uint64{in, out, at} {
				l.Event(trace.Bind, e, uint64(slot), b, uint64(0))
			}
			l.Event(trace.Bytes, e, uint64(3), ir.ValueBytes(float32(1)))
			l.Event(trace.Bytes, e, uint64(4), ir.ValueBytes(uint64(64)))
			l.Event(trace.Bytes, e, uint64(10), ir.ValueBytes(float32(13)))
			l.Event(trace.Dispatch, e, uint64(1), uint64(32), uint64(1), uint64(1), uint64(32), uint64(1), uint64(1))
		})
	}
	r := imported(t, l, trace.Options{Builtin: true})
	require.Len(t, r.Module.Graphs, 2)
	require.Contains(t, mlxt.Format(r.Module), "offset = $pos", mlxt.Format(r.Module))
}
