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

// A step of a decoder. The token that it finds is carried to the input of the next
// step, and the row of the state that it writes is part of what the next step reads.
const stepping = `mlxt 1

graph g {
  param $pos u32 in [0, 7] += 1
  memory %in input 16 u32[4]
  memory %other input 16 u32[4]
  memory %st state 128 u32[32]
  memory %out output 16 u32[4] every
  memory %s scratch 16
  memory %t scratch 16

  #0 copy %in -> %s
  barrier
  #1 copy %s -> %st[16*$pos:16*$pos + 16]
  #2 copy %s -> %out
  barrier
  #3 carry %out -> %in
  barrier
}
`

// Carries are commands of the list: they are ordered and compared as such. What params
// advance by, which outputs are kept of every replay, and what is carried to belongs to
// the interface.
func TestChecksCarry(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(stepping))
	require.NoError(t, err)
	before := m.Graphs[0]
	carry := func(g *ir.Graph) *ir.Carry { return g.Nodes[5].(*ir.Carry) }
	for name, c := range map[string]struct {
		change func(g *ir.Graph)
		want   prove.Verdict
		point  prove.Point
	}{
		"nothing": {func(g *ir.Graph) {}, prove.Proved, 0},
		"by way of other bytes": {func(g *ir.Graph) {
			g.Nodes[0].(*ir.Copy).Dst.Mem, g.Nodes[2].(*ir.Copy).Src.Mem, g.Nodes[3].(*ir.Copy).Src.Mem = 5, 5, 5
		}, prove.Proved, 0},
		"another step":      {func(g *ir.Graph) { g.Params[0].Advance = 2 }, prove.Refused, prove.Interface},
		"no step":           {func(g *ir.Graph) { g.Params[0].Advance = 0 }, prove.Refused, prove.Interface},
		"the last one only": {func(g *ir.Graph) { g.Memories[3].Every = false }, prove.Refused, prove.Interface},
		"no carry":          {func(g *ir.Graph) { g.Nodes = slices.Delete(g.Nodes, 5, 6) }, prove.Refused, prove.Interface},
		"another input":     {func(g *ir.Graph) { carry(g).Dst.Mem = 1 }, prove.Refused, prove.Interface},
		"a state":           {func(g *ir.Graph) { carry(g).Dst.Mem = 2 }, prove.Refused, prove.Interface},
		"half of it": {func(g *ir.Graph) {
			carry(g).Dst.Len, carry(g).Src.Len = ir.Const(8), ir.Const(8)
		}, prove.Refused, prove.Interface},
		"other bytes": {func(g *ir.Graph) {
			n := &ir.Carry{ID: 4, Dst: ir.ViewOf(0, 0, 8), Src: ir.ViewOf(3, 8, 8)}
			m := &ir.Carry{ID: 3, Dst: ir.ViewOf(0, 8, 8), Src: ir.ViewOf(3, 0, 8)}
			g.Nodes = append(slices.Clone(g.Nodes[:5]), n, m, &ir.Barrier{})
		}, prove.Refused, prove.Coverage},
		"a copy, which is not for the next replay only": {func(g *ir.Graph) {
			carry(g).Dst.Mem = 2
			g.Nodes = slices.Insert(g.Nodes, 5, ir.Node(&ir.Copy{ID: 9, Dst: carry(g).Dst, Src: carry(g).Src}))
		}, prove.Refused, prove.Interface},
		"not ordered behind the output": {func(g *ir.Graph) { g.Nodes = slices.Delete(g.Nodes, 4, 5) }, prove.Refused, prove.Order},
		"not ordered before the next":   {func(g *ir.Graph) { g.Nodes = g.Nodes[:6] }, prove.Refused, prove.Order},
	} {
		g := before.Clone()
		c.change(g)
		require.NoError(t, g.Check(), name)
		r := prove.Check(context.Background(), before, g, prove.Options{})
		if r.Verdict != c.want {
			t.Errorf("%s: %s", name, r)
			continue
		}
		if c.want != prove.Proved && r.Findings[0].Point != c.point {
			t.Errorf("%s: found by another point: %s", name, r)
		}
	}

	// That the recording leaves the end of a replay unordered does not allow A to do so
	// too: between the replays of a burst no host waits.
	open := before.Clone()
	open.Nodes = open.Nodes[:len(open.Nodes)-1]
	for _, change := range []func(g *ir.Graph){
		func(g *ir.Graph) {},
		func(g *ir.Graph) { g.Params[0].Advance = 0 },
		func(g *ir.Graph) { g.Nodes = g.Nodes[:len(g.Nodes)-2] }, // the carry, and the barrier before it
	} {
		g := open.Clone()
		change(g)
		r := prove.Check(context.Background(), g, g.Clone(), prove.Options{})
		require.Equal(t, prove.Refused, r.Verdict, "%s", r)
		require.Contains(t, r.Findings[0].Text, "no host is between the replays of a burst")
	}
	open.Nodes, open.Params[0].Advance = open.Nodes[:len(open.Nodes)-2], 0
	require.NotEmpty(t, prove.Check(context.Background(), open, open.Clone(), prove.Options{}).Assumptions)

	// The carry after the last replay does nothing, so the bytes that a state held
	// before it count.
	onto, err := mlxt.Parse(context.Background(), "g", []byte(`mlxt 1
graph g {
  memory %in input 16 u32[4]
  memory %st state 16 u32[4]
  memory %out output 16 u32[4]
  #0 copy %in -> %st
  #1 copy %in -> %out
  barrier
  #2 carry %out -> %st
  barrier
}
`))
	require.NoError(t, err)
	g := onto.Graphs[0].Clone()
	g.Nodes = g.Nodes[1:]
	r := prove.Check(context.Background(), onto.Graphs[0], g, prove.Options{})
	require.NotEqual(t, prove.Proved, r.Verdict, "%s", r)
}
