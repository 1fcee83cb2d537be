package prove_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

const serial = `mlxt 1

graph g serial {
  memory %x input 16
  memory %s scratch 16
  memory %y output 16

  #0 copy %x -> %s
  #1 copy %s -> %y
  commit
  #2 copy %y -> %s
}
`

// The list of a serial graph is its order, before and after; who gives the
// attribute up owes barriers and events for all of it, the next replay included.
func TestSerial(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(serial))
	require.NoError(t, err)
	before := m.Graphs[0]
	check := func(change func(g *ir.Graph)) *prove.Result {
		g := before.Clone()
		change(g)
		return prove.Check(context.Background(), before, g, prove.Options{Strict: true})
	}
	require.Equal(t, prove.Proved, check(func(*ir.Graph) {}).Verdict)
	explicit := func(g *ir.Graph) {
		g.Ordering = ir.ByBarriers
		g.Nodes = []ir.Node{g.Nodes[0], &ir.Barrier{}, g.Nodes[1], &ir.Commit{Order: ir.OrderEvent}, g.Nodes[3], &ir.Barrier{}}
	}
	require.Equal(t, prove.Proved, check(explicit).Verdict)
	for _, leave := range []int{1, 3, 5} {
		r := check(func(g *ir.Graph) {
			explicit(g)
			if leave == 3 {
				g.Nodes[3] = &ir.Commit{}
			} else {
				g.Nodes = slices.Delete(g.Nodes, leave, leave+1)
			}
		})
		require.Equal(t, prove.Refused, r.Verdict, "without node %d: %s", leave, r)
		require.Equal(t, prove.Order, r.Findings[0].Point)
	}
	// A graph of barriers may become a serial one.
	open := before.Clone()
	explicit(open)
	require.Equal(t, prove.Proved, prove.Check(context.Background(), open, before, prove.Options{Strict: true}).Verdict)
}
