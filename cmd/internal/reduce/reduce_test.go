package reduce_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/cmd/internal/reduce"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
)

// has reports whether a module still has commands of all these IDs.
func has(m *ir.Module, ids ...ir.ID) bool {
	found := 0
	for _, g := range m.Graphs {
		for _, c := range part.Commands(g) {
			if slices.Contains(ids, c.Num()) {
				found++
			}
		}
	}
	return found == len(ids)
}

// What is left is valid, has a meaning as the graph had, and is all that is looked for, whichever two commands that are.
func TestLeavesWhatIsLookedFor(t *testing.T) {
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill", "norm_residual", "arena_reuse"} {
		g := recorded.Graph(t, name)
		all := part.Commands(g)
		for k := 0; k < len(all); k += 1 + len(all)/4 {
			ids := []ir.ID{all[k].Num()}
			if other := all[len(all)-1-k/2].Num(); other != ids[0] {
				ids = append(ids, other)
			}
			m := (&ir.Module{Graphs: []*ir.Graph{g, {Name: "other"}}, Data: []ir.Data{{Name: "d", Blob: ir.NewBlob([]byte("x"))}}}).Clone()
			better := 0
			r, err := reduce.Module(t.Context(), m, reduce.Options{
				Check: func(_ context.Context, m *ir.Module) (bool, error) {
					require.NoError(t, m.Check())
					return has(m, ids...), nil
				},
				Better: func(*ir.Module) error { better++; return nil },
			})
			require.NoError(t, err)
			assert.Equal(t, reduce.Smallest, r.Why)
			assert.Equal(t, r.Kept, better)
			require.Len(t, r.Module.Graphs, 1, name)
			out := r.Module.Graphs[0]
			assert.Len(t, part.Commands(out), len(ids), "%s %v", name, ids)
			assert.Empty(t, r.Module.Data)
			for i := range out.Memories {
				assert.NotEqual(t, ir.InitBlob, out.Memories[i].Init.Kind, "contents are made up")
			}
			for _, p := range out.Params {
				assert.Equal(t, p.Min, p.Max)
			}
			found, err := meaning.Of(t.Context(), out)
			require.NoError(t, err)
			assert.Empty(t, found.Faults, "%s %v", name, ids)
			// Barriers are left only where the two need one.
			before, err := meaning.Of(t.Context(), g)
			require.NoError(t, err)
			require.Empty(t, before.Faults)
			assert.LessOrEqual(t, out.Stats().Barriers, 1)
		}
	}
}

// What the check is about stays: contents, bounds of a param, a barrier, the graph that is meant.
func TestKeepsWhatTheCheckNeeds(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	p := &g.Params[0]
	mid := p.Min + (p.Max-p.Min)/2
	for name, check := range map[string]func(g *ir.Graph) bool{
		"a param of two values": func(g *ir.Graph) bool { return g.Params[0].Min <= 5 && g.Params[0].Max >= 6 },
		"half of its values":    func(g *ir.Graph) bool { return g.Params[0].Min <= mid+1 && g.Params[0].Max >= p.Max },
		"three barriers":        func(g *ir.Graph) bool { return g.Stats().Barriers >= 3 },
		"a kernel": func(g *ir.Graph) bool {
			return slices.ContainsFunc(g.Kernels, func(k ir.Kernel) bool { return strings.HasPrefix(k.Function, "rms") })
		},
		"a large memory": func(g *ir.Graph) bool {
			return slices.ContainsFunc(g.Memories, func(m ir.Memory) bool { return m.Size >= 1000 })
		},
	} {
		m := (&ir.Module{Graphs: []*ir.Graph{g}}).Clone()
		r, err := reduce.Module(t.Context(), m, reduce.Options{Check: func(_ context.Context, m *ir.Module) (bool, error) {
			return len(m.Graphs[0].Params) > 0 && check(m.Graphs[0]), nil
		}})
		require.NoError(t, err, name)
		out := r.Module.Graphs[0]
		assert.True(t, check(out), name)
		switch name {
		case "a param of two values":
			assert.Empty(t, part.Commands(out))
			assert.LessOrEqual(t, out.Params[0].Max-out.Params[0].Min, p.Max-p.Min)
		case "three barriers":
			assert.Equal(t, 3, out.Stats().Barriers)
		case "a kernel", "a large memory":
			assert.LessOrEqual(t, len(part.Commands(out)), 1, name)
		}
	}
}

// A barrier that two commands need stays, unless graphs with faults are wanted or the graph has one.
func TestFaults(t *testing.T) {
	r := record.New("sums")
	x, y := r.Input("x", ir.F32, 64), r.Output("y", ir.F32, 64)
	sum := r.Add(x, x)
	for range 5 {
		sum = r.Add(sum, x)
	}
	r.Add(sum, x, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	all := part.Commands(g)
	ids := []ir.ID{all[len(all)-2].Num(), all[len(all)-1].Num()} // an output depends on them
	check := func(_ context.Context, m *ir.Module) (bool, error) { return has(m, ids...), nil }
	for faults, barriers := range map[bool]int{false: 1, true: 0} {
		r, err := reduce.Module(t.Context(), (&ir.Module{Graphs: []*ir.Graph{g}}).Clone(), reduce.Options{Check: check, Faults: faults})
		require.NoError(t, err)
		assert.Equal(t, barriers, r.Module.Graphs[0].Stats().Barriers, "%v", faults)
	}
	racy := g.Clone()
	racy.Nodes = slices.DeleteFunc(racy.Nodes, func(n ir.Node) bool { _, ok := n.(*ir.Barrier); return ok })
	small, err := reduce.Module(t.Context(), &ir.Module{Graphs: []*ir.Graph{racy}}, reduce.Options{Check: check})
	require.NoError(t, err)
	assert.Len(t, part.Commands(small.Module.Graphs[0]), 2, "what has no meaning is reduced too")
}

// Where edges order a graph, commands that are kept stay ordered as they were, whatever is left out between them.
func TestKeepsOrderByEdges(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	p, err := passes.ParsePipeline("annotate,edges")
	require.NoError(t, err)
	_, err = passes.Run(t.Context(), g, p, passes.Options{})
	require.NoError(t, err)
	require.Equal(t, ir.ByEdges, g.Ordering)
	before := reached(g)
	all := part.Commands(g)
	pairs := 0
	for k := range all {
		a, b := all[k].Num(), all[(k*7+3)%len(all)].Num()
		if !before[[2]ir.ID{a, b}] {
			continue
		}
		pairs++
		m := (&ir.Module{Graphs: []*ir.Graph{g}}).Clone()
		r, err := reduce.Module(t.Context(), m, reduce.Options{Check: func(_ context.Context, m *ir.Module) (bool, error) { return has(m, a, b), nil }})
		require.NoError(t, err)
		out := r.Module.Graphs[0]
		require.Len(t, part.Commands(out), 2)
		assert.True(t, reached(out)[[2]ir.ID{a, b}], "%s waited for %s", b, a)
	}
	assert.Greater(t, pairs, 3)
}

// reached lists which commands paths of edges lead to, within one replay.
func reached(g *ir.Graph) map[[2]ir.ID]bool {
	out := map[[2]ir.ID]bool{}
	for _, n := range g.Nodes { // the list is a topological order
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		for _, e := range g.Edges {
			if e.To != c.Num() || e.Previous {
				continue
			}
			out[[2]ir.ID{e.From, e.To}] = true
			for k := range out {
				if k[1] == e.From {
					out[[2]ir.ID{k[0], e.To}] = true
				}
			}
		}
	}
	return out
}

// A reduction ends where it is told to, with what it has.
func TestEnds(t *testing.T) {
	m := &ir.Module{Graphs: []*ir.Graph{recorded.Graph(t, "llama_layer_decode")}}
	last := part.Commands(m.Graphs[0])[0].Num()
	check := func(_ context.Context, m *ir.Module) (bool, error) { return has(m, last), nil }
	r, err := reduce.Module(t.Context(), m, reduce.Options{Check: check, Tries: 5})
	require.NoError(t, err)
	assert.Equal(t, reduce.OutOfTries, r.Why)
	assert.Equal(t, 5, r.Tries)
	r, err = reduce.Module(t.Context(), m, reduce.Options{Check: check, Time: time.Nanosecond})
	require.NoError(t, err)
	assert.Equal(t, reduce.OutOfTime, r.Why)
	assert.True(t, has(r.Module, last))

	// A check that does not come back is broken off when the time is over.
	tries := 0
	r, err = reduce.Module(t.Context(), m, reduce.Options{Time: 200 * time.Millisecond, Check: func(ctx context.Context, m *ir.Module) (bool, error) {
		if tries++; tries > 2 {
			<-ctx.Done()
			return false, context.Cause(ctx)
		}
		return has(m, last), nil
	}})
	require.NoError(t, err)
	assert.Equal(t, reduce.OutOfTime, r.Why)
	assert.Equal(t, 3, r.Tries)

	_, err = reduce.Module(t.Context(), m, reduce.Options{Check: func(context.Context, *ir.Module) (bool, error) { return false, nil }})
	require.ErrorIs(t, err, reduce.ErrNot)

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	tries = 0
	r, err = reduce.Module(ctx, m, reduce.Options{Check: func(_ context.Context, m *ir.Module) (bool, error) {
		if tries++; tries == 4 {
			cancel(stop)
		}
		return has(m, last), nil
	}})
	require.ErrorIs(t, err, stop)
	assert.Equal(t, reduce.Interrupted, r.Why)
	assert.True(t, has(r.Module, last))

	broken := errors.New("broken")
	tries = 0
	r, err = reduce.Module(t.Context(), m, reduce.Options{Check: func(_ context.Context, m *ir.Module) (bool, error) {
		if tries++; tries == 4 {
			return false, broken
		}
		return has(m, last), nil
	}})
	require.ErrorIs(t, err, broken)
	assert.True(t, has(r.Module, last), "what was found before")
}

// Groups, and barriers that separate nothing, go in one try each, however many there are.
func TestMarksGoAtOnce(t *testing.T) {
	r := record.New("sums")
	x, y := r.Input("x", ir.F32, 64), r.Output("y", ir.F32, 64)
	r.Add(x, x, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	g.Nodes = append([]ir.Node{&ir.GroupBegin{}}, append(g.Nodes, &ir.GroupEnd{})...)
	for range 100 {
		g.Nodes = slices.Insert(g.Nodes, 0, ir.Node(&ir.Barrier{}))
	}
	g.Nodes = append(g.Nodes, &ir.Barrier{})
	m := &ir.Module{Graphs: []*ir.Graph{g}}
	require.NoError(t, m.Check())
	id := part.Commands(g)[0].Num()
	var left []int
	small, err := reduce.Module(t.Context(), m, reduce.Options{
		Check: func(_ context.Context, m *ir.Module) (bool, error) {
			return has(m, id), nil
		},
		Better: func(m *ir.Module) error { left = append(left, len(m.Graphs[0].Nodes)); return nil },
	})
	require.NoError(t, err)
	assert.Equal(t, []int{102, 2, 1}, left[:3], "groups, barriers before all, the one behind")
	assert.Len(t, small.Module.Graphs[0].Nodes, 1)
}
