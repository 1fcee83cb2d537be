package prove

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// Two commands of different kinds are never the same.
func TestChecksKindsOfCommands(t *testing.T) {
	g := &ir.Graph{Kernels: []ir.Kernel{{}}}
	commands := []ir.Node{&ir.Copy{}, &ir.Carry{}, &ir.Fill{}, &ir.Dispatch{}}
	for i, x := range commands {
		for j, y := range commands {
			require.Equal(t, i == j, newTwins(g, g).sameCommand(x, y).none(), "%T and %T", x, y)
		}
	}
}

// A kernel without declaration must take its grid from the same bytes of the same
// memory, because no argument binds them.
func TestChecksGridsInMemory(t *testing.T) {
	g := &ir.Graph{Kernels: []ir.Kernel{{Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}}}, Memories: []ir.Memory{
		{Name: "x", Kind: ir.Input, Size: 64, Alias: ir.NoMem}, {Name: "y", Kind: ir.Input, Size: 64, Alias: ir.NoMem},
	}}
	at := func(m ir.MemID, off int64) *ir.Dispatch {
		v := ir.ViewOf(m, off, 12)
		return &ir.Dispatch{Indirect: &ir.Indirect{Grid: &v}}
	}
	same := func(x, y *ir.Dispatch) bool { return newTwins(g, g).sameCommand(x, y).none() }
	require.True(t, same(at(0, 4), at(0, 4)))
	require.False(t, same(at(0, 4), at(0, 8)))
	require.False(t, same(at(0, 4), at(1, 4)))
	require.False(t, same(at(0, 4), &ir.Dispatch{}))
}
