package reduce

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// What can be shortened is found in time that grows with the number of memories, not with its square, which would be ten seconds here.
func TestManyMemories(t *testing.T) {
	const n = 50_000
	g := &ir.Graph{Name: "many"}
	for i := range n {
		g.Memories = append(g.Memories, ir.Memory{Name: "m" + strconv.Itoa(i), Kind: ir.State, Size: 64, Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitFill}})
		g.Nodes = append(g.Nodes, &ir.Fill{ID: ir.ID(i), Dst: ir.View{Mem: ir.MemID(i), Off: ir.Const(0), Len: ir.Const(4)}})
	}
	m := &ir.Module{Graphs: []*ir.Graph{g}}
	require.NoError(t, m.Check())
	sizes := int64(0)
	start := time.Now()
	r := &reducer{ctx: t.Context(), m: m, bare: true, o: Options{Tries: 1, Check: func(_ context.Context, m *ir.Module) (bool, error) {
		for i := range m.Graphs[0].Memories {
			sizes += m.Graphs[0].Memories[i].Size
		}
		return false, nil
	}}}
	r.memories(0)
	assert.Equal(t, int64(4*n), sizes, "all are tried at once first")
	assert.Less(t, time.Since(start), 4*time.Second)
}

// A memory is as long as what is bound of it by all commands, whichever comes last; a param of one value does not advance.
func TestShortens(t *testing.T) {
	g := &ir.Graph{Name: "g", Ordering: ir.Serial, Params: []ir.Param{{Name: "p", Type: ir.U32, Min: 0, Max: 8, Advance: 1}}}
	g.Memories = []ir.Memory{{Name: "m", Kind: ir.State, Size: 4096, Alias: ir.NoMem}}
	for i, off := range []int64{64, 0} {
		g.Nodes = append(g.Nodes, &ir.Fill{ID: ir.ID(i), Dst: ir.View{Off: ir.Const(off), Len: ir.Const(32)}})
	}
	m := &ir.Module{Graphs: []*ir.Graph{g}}
	require.NoError(t, m.Check())
	r, err := Module(t.Context(), m, Options{Check: func(_ context.Context, m *ir.Module) (bool, error) { return len(m.Graphs[0].Nodes) == 2, nil }})
	require.NoError(t, err)
	out := r.Module.Graphs[0]
	assert.Equal(t, int64(96), out.Memories[0].Size)
	assert.Equal(t, ir.Param{Name: "p", Type: ir.U32}, out.Params[0])
}

// What is left of a graph ordered by edges is ordered as it was, within a replay and from one to the next.
func TestWithoutKeepsEdges(t *testing.T) {
	type edges = []ir.Edge
	// 1 → 2 → 3, and 3 of the replay before → 1.
	g := &ir.Graph{Name: "g", Ordering: ir.ByEdges, Edges: edges{{From: 1, To: 2}, {From: 2, To: 3}, {From: 3, To: 1, Previous: true}}}
	for id := range ir.ID(3) {
		g.Nodes = append(g.Nodes, &ir.Fill{ID: id + 1})
	}
	for drop, want := range map[int]edges{
		0: {{From: 2, To: 3}, {From: 3, To: 2, Previous: true}},
		1: {{From: 1, To: 3}, {From: 3, To: 1, Previous: true}},
		2: {{From: 1, To: 2}, {From: 2, To: 1, Previous: true}},
	} {
		gone := make([]bool, 3)
		gone[drop] = true
		out := without(g, gone)
		assert.Len(t, out.Nodes, 2)
		assert.ElementsMatch(t, want, out.Edges, "without %d", drop+1)
	}
	// A command that waited for many is a join of them, for few it is none.
	for sources, want := range map[int]int{2: 1, mostSources: 1, mostSources + 1: 2} {
		g := &ir.Graph{Name: "g", Ordering: ir.ByEdges}
		last := ir.ID(sources + 1)
		for id := range last {
			g.Nodes = append(g.Nodes, &ir.Fill{ID: id})
			if int(id) < sources {
				g.Edges = append(g.Edges, ir.Edge{From: id, To: last - 1})
			}
		}
		g.Nodes = append(g.Nodes, &ir.Fill{ID: last})
		g.Edges = append(g.Edges, ir.Edge{From: last - 1, To: last})
		gone := make([]bool, len(g.Nodes))
		gone[sources] = true
		out := without(g, gone)
		assert.Len(t, out.Nodes, sources+want, "%d sources", sources)
		assert.Len(t, out.Edges, sources+want-1)
	}
}

// However much a command prints, little of it is kept.
func TestTail(t *testing.T) {
	var last tail
	for i := range 10_000 {
		_, _ = last.Write([]byte(strconv.Itoa(i) + strings.Repeat(".", 1000)))
	}
	assert.Less(t, last.b.Cap(), 1<<16)
	assert.Contains(t, last.b.String(), "9999.")
}
