package prove_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/internal/reach"
	"github.com/mlxc/mlxc/internal/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
)

const byEdges = "annotate,fuse,dce,rename,schedule,barriers,plan,edges"

// unordered returns a pair of commands that conflict and that no path of edges orders,
// found pair by pair.
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

// Graphs ordered by edges are proved; without an edge they are refused if the conflict
// that it orders has no other path, and proved if it has.
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
	require.Greater(t, proved, 20)
}
