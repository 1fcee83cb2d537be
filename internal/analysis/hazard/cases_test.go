package hazard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
	"github.com/mlxc/mlxc/ir"
)

// of returns a graph of commands, each of which reads one region and must-writes
// another; an empty region is left out.
func of(accesses ...[2]ir.Region) *ir.Graph {
	g := smallgraph.Graph()
	for i, a := range accesses {
		e := &ir.Effects{Complete: true}
		if a[0].Run != ir.Const(0) {
			e.Reads = []ir.Region{a[0]}
		}
		if a[1].Run != ir.Const(0) {
			e.Writes = []ir.Write{{Region: a[1], Must: true}}
		}
		g.Nodes = append(g.Nodes, &ir.Dispatch{ID: ir.ID(i), Effects: e})
	}
	return g
}

var (
	nothing ir.Region
	pos     = ir.Linear(0, ir.Term{Param: 0, Coeff: 16})
)

func bytesOf(lo, n int64) ir.Region { return ir.ViewOf(0, lo, n).Contiguous() }

// A group of readers takes in no reader after a writer waits for it, although the
// writer is strided and so does not remove the group from the cells: the later reader
// reads what the writer wrote.
func TestGroupsClose(t *testing.T) {
	column := ir.Region{Run: ir.Const(1), Dims: []ir.Dim{{Count: ir.Const(4), Stride: 8}}}
	g := of(
		[2]ir.Region{nothing, bytesOf(0, 8)}, [2]ir.Region{nothing, bytesOf(8, 8)}, [2]ir.Region{nothing, bytesOf(16, 8)}, [2]ir.Region{nothing, bytesOf(24, 8)},
		[2]ir.Region{bytesOf(0, 32), nothing},
		[2]ir.Region{nothing, column},
		[2]ir.Region{bytesOf(0, 32), nothing},
	)
	o := hazard.NewTable(context.Background(), g).Order()
	direct := square(o.Nodes)
	for i := range int32(o.Nodes) {
		for _, j := range o.Successors(i) {
			direct[i][j] = true
		}
	}
	reach := closed(direct)
	require.True(t, reach[4][5])
	require.True(t, reach[5][6])
	for i := range reach {
		require.False(t, reach[i][i], "node %d waits for itself", i)
	}
}

// The row at pos and the rows before pos are apart within a replay, but not from one
// replay to the next, which may have another pos.
func TestLatestKnowsThatParamsChange(t *testing.T) {
	row := ir.View{Off: pos, Len: ir.Const(16)}.Contiguous()
	rows := ir.View{Len: pos}.Contiguous()
	table := hazard.NewTable(context.Background(), of([2]ir.Region{rows, nothing}, [2]ir.Region{nothing, row}))
	require.Equal(t, []int32{-1, -1, 1, 1}, table.Latest(nil), "the read meets the write before it; the write meets that write")
	require.Equal(t, hazard.None, table.Between(0, 1))
	require.Equal(t, hazard.WAR, table.BetweenReplays(0, 1))
	// Parts of rows in different columns are apart, whatever the params.
	left := ir.View{Off: pos, Len: ir.Const(8)}.Contiguous()
	right := ir.View{Off: pos.AddConst(8), Len: ir.Const(8)}.Contiguous()
	table = hazard.NewTable(context.Background(), of([2]ir.Region{left, nothing}, [2]ir.Region{nothing, right}))
	require.Equal(t, hazard.None, table.BetweenReplays(0, 1))
	require.Equal(t, hazard.None, table.BetweenReplays(1, 0))
	require.Equal(t, []int32{-1, -1, -1, 1}, table.Latest(nil))
}

// A later write that covers what is read hides a larger earlier write, whichever of
// them depends on params.
func TestValueLevelsHide(t *testing.T) {
	n := ir.View{Len: ir.Linear(0, ir.Term{Param: 1, Coeff: 16})}.Contiguous()
	other := ir.ViewOf(3, 0, 16).Contiguous()
	for _, k := range []struct {
		name        string
		early, late ir.Region
	}{{"const under params", bytesOf(0, 64), n}, {"params under const", n, bytesOf(0, 64)}} {
		table := hazard.NewTable(context.Background(), of([2]ir.Region{nothing, other}, [2]ir.Region{other, k.early}, [2]ir.Region{nothing, k.late}, [2]ir.Region{n, nothing}))
		levels, _ := table.ValueLevels()
		require.Equal(t, []int32{0, 1, 0, 1}, levels, k.name)
	}
}

// A write at pos removes nothing that it only may cover.
func TestParamsRetireOnlyWhatTheyCover(t *testing.T) {
	half := ir.View{Off: pos, Len: ir.Const(8)}.Contiguous()
	table := hazard.NewTable(context.Background(), of([2]ir.Region{nothing, bytesOf(40, 16)}, [2]ir.Region{nothing, half}, [2]ir.Region{bytesOf(40, 8), nothing}))
	require.Equal(t, hazard.None, table.Between(1, 2), "8 bytes of every 16")
	levels, _ := table.Levels()
	require.Equal(t, []int32{0, 1, 1}, levels)
}
