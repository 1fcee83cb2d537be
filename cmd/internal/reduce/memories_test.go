package reduce

import (
	"context"
	"strconv"
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
