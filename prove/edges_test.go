package prove_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/analysis/reach"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
)

const byEdges = "annotate,fuse,dce,rename,schedule,barriers,plan,edges"

// unordered compares all pairs of commands and returns one that conflicts without a
// path of edges between the two.
func unordered(g *ir.Graph) (with, at ir.Command) {
	t := hazard.NewTable(context.Background(), g)
	var places []int32
	for i, n := range g.Nodes {
		if _, ok := n.(ir.Command); ok {
			places = append(places, int32(i))
		}
	}
	x, n := reach.New(g, 2), int32(len(g.Nodes))
	for j := range t.Len() {
		for i := range t.Len() {
			if path, _ := x.Path(places[i], places[j]); i < j && !path && t.Between(i, j) != hazard.None {
				return t.Node(i), t.Node(j)
			}
			if path, _ := x.Path(places[i], n+places[j]); !g.NextHost && !path && t.BetweenReplays(i, j) != hazard.None {
				return t.Node(i), t.Node(j)
			}
		}
	}
	return nil, nil
}

// Graphs ordered by edges are proved. Without one of their edges they are refused if
// the conflict that the edge orders has no other path, and proved if it has one.
func TestChecksOfEdges(t *testing.T) {
	refused, proved := 0, 0
	for _, name := range recorded.Names(t) {
		g := recorded.Graph(t, name)
		o := optimized(t, g, byEdges)
		r := prove.Check(context.Background(), g, o, prove.Options{})
		require.Equal(t, prove.Proved, r.Verdict, "%s: %s", name, r)
		r = prove.Check(context.Background(), o, o.Clone(), prove.Options{Strict: true})
		if name != "unannotated" {
			require.Equal(t, prove.Proved, r.Verdict, "%s against itself: %s", name, r)
			with, at := unordered(o)
			require.Nil(t, with, "%s: %v and %v", name, with, at)
		}
		for k, e := range o.Edges {
			less := o.Clone()
			less.Edges = slices.Delete(less.Edges, k, k+1)
			r := prove.Check(context.Background(), o, less, prove.Options{})
			if with, at := unordered(less); with == nil {
				require.Equal(t, prove.Proved, r.Verdict, "%s without %v: %s", name, e, r)
				proved++
				continue
			} else {
				require.Equal(t, prove.Refused, r.Verdict, "%s without %v, of %s and %s: %s", name, e, o.Describe(with), o.Describe(at), r)
			}
			require.Equal(t, prove.Order, r.Findings[0].Point, "%s without %v: %s", name, e, r)
			refused++
		}
	}
	t.Logf("%d edges refused, %d with another path", refused, proved)
	require.Greater(t, refused, 80)
	require.Positive(t, proved)
}

// A search that would take more steps than its bound cannot tell, and names the pair.
func TestChecksOfEdgesEndWithTheirBound(t *testing.T) {
	const pairs, deep, wide = 400, 2000, 20
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Scratch, Size: pairs})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: pairs})
	var fills []ir.Command
	for i := range int64(pairs) {
		fills = append(fills, b.Fill(ir.ViewOf(x, i, 1), 1, ""))
	}
	// Many paths lead from each fill to each copy, but none along the latest commands
	// that each command waits for.
	var joins []ir.Command
	for i := range deep {
		j := b.Join()
		b.After(j, joins[max(0, i-wide):i]...)
		joins = append(joins, j)
	}
	b.After(joins[0], fills...)
	for i := range int64(pairs) {
		b.After(b.Copy(ir.ViewOf(y, i, 1), ir.ViewOf(x, i, 1), ""), joins[deep-1])
	}
	g, err := b.Graph()
	require.NoError(t, err)
	g.NextHost = true
	r := prove.Check(context.Background(), g, g.Clone(), prove.Options{})
	require.Equal(t, prove.CannotTell, r.Verdict, "%s", r)
	require.Len(t, r.Findings, 1)
	require.Regexp(t, `^whether a path of edges leads from #\d+ fill to #\d+ copy was not found within the bound$`, r.Findings[0].Text)
	few := g.Clone()
	few.Edges = slices.DeleteFunc(few.Edges, func(e ir.Edge) bool { return int(e.To-e.From) > 1 && e.From >= pairs && e.To < pairs+deep })
	r = prove.Check(context.Background(), few, few.Clone(), prove.Options{})
	require.Equal(t, prove.Proved, r.Verdict, "%s", r)
}

// If the host waits between two replays, nothing else need order them. If the recording
// orders them, A must order them or say that the host waits.
func TestChecksOfTheNextReplay(t *testing.T) {
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 16})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16})
	b.Copy(ir.ViewOf(s, 0, 16), ir.ViewOf(x, 0, 16), "")
	b.Barrier()
	b.Copy(ir.ViewOf(y, 0, 16), ir.ViewOf(s, 0, 16), "")
	g, err := b.Graph()
	require.NoError(t, err)
	edged := optimized(t, g, byEdges)
	within := func(hosted bool) *ir.Graph {
		o := edged.Clone()
		o.Edges = slices.DeleteFunc(o.Edges, func(e ir.Edge) bool { return e.Previous })
		o.NextHost = hosted
		return o
	}
	check := func(before, after *ir.Graph) *prove.Result {
		return prove.Check(context.Background(), before, after, prove.Options{Strict: true})
	}
	require.Less(t, len(within(false).Edges), len(edged.Edges))
	require.Equal(t, prove.Proved, check(edged, within(true)).Verdict)
	require.Equal(t, prove.Refused, check(edged, within(false)).Verdict)
	// A recording may rely on its host without saying so.
	require.Equal(t, prove.Proved, prove.Check(context.Background(), g, within(false), prove.Options{}).Verdict)
	require.Equal(t, prove.CannotTell, check(g, within(false)).Verdict)
	// If it says so, A must say so too.
	said := g.Clone()
	said.NextHost = true
	require.Equal(t, prove.Proved, check(said, said.Clone()).Verdict)
	require.Equal(t, prove.Proved, check(said, edged).Verdict)
	require.Equal(t, prove.Refused, check(said, within(false)).Verdict)
	require.Equal(t, prove.Refused, check(said, g).Verdict)
}
