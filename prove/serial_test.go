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

// The order of a serial graph is its list, in B and in A. If A is no longer serial, it
// must have barriers and events for all of that order, also towards the next replay.
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

// A command of unknown effects in a serial graph is ordered like every other. If only
// the list ordered it, A must have a barrier once the graph is no longer serial.
func TestSerialOfUnknownEffects(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(`mlxt 1

graph g serial {
  memory %x input 16
  memory %s scratch 16
  memory %y output 16
  kernel @k metallib "m.metallib" sha256 0101010101010101010101010101010101010101010101010101010101010101 "f" args(0 a: device f32 read, 1 b: device f32 write)

  #0 copy %x -> %s
  #1 copy %s -> %y
  #2 @k (a = %s, b = %y) grid threads [1, 1, 1] of [1, 1, 1]
  commit
  #3 copy %x -> %s
  #4 @k (a = %s, b = %y) grid threads [1, 1, 1] of [1, 1, 1]
}
`))
	require.NoError(t, err)
	before := m.Graphs[0]
	require.NoError(t, before.Check())
	require.Equal(t, prove.Proved, prove.Check(context.Background(), before, before.Clone(), prove.Options{Strict: true}).Verdict)
	after := before.Clone()
	after.Ordering = ir.ByBarriers
	require.Equal(t, prove.Refused, prove.Check(context.Background(), before, after, prove.Options{}).Verdict)
	for i := len(after.Nodes) - 1; i >= 0; i-- {
		if c, ok := after.Nodes[i].(*ir.Commit); ok {
			c.Order = ir.OrderEvent
			continue
		}
		after.Nodes = slices.Insert(after.Nodes, i+1, ir.Node(&ir.Barrier{}))
	}
	require.Equal(t, prove.Proved, prove.Check(context.Background(), before, after, prove.Options{Strict: true}).Verdict)
	require.Equal(t, prove.Proved, prove.Check(context.Background(), after, before, prove.Options{Strict: true}).Verdict)
}
