package cmd_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/analysis/reach"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// conflicts lists the pairs of commands of g that conflict, as places in two replays.
func conflicts(g *ir.Graph) (pairs [][2]int32) {
	t := hazard.NewTable(context.Background(), g)
	var places []int32
	for i, n := range g.Nodes {
		if _, ok := n.(ir.Command); ok {
			places = append(places, int32(i))
		}
	}
	for j := range t.Len() {
		for i := range t.Len() {
			if i < j && t.Between(i, j) != hazard.None {
				pairs = append(pairs, [2]int32{places[i], places[j]})
			}
			if t.BetweenReplays(i, j) != hazard.None {
				pairs = append(pairs, [2]int32{places[i], int32(len(g.Nodes)) + places[j]})
			}
		}
	}
	return pairs
}

// The graphs of the demonstration model are proved when edges order them. Without one
// they are refused if some conflict has no other path, and proved if each has.
func TestModelByEdges(t *testing.T) {
	sample.Seldom(t)
	m, err := gguf.Load(modelPath(t))
	require.NoError(t, err)
	defer m.Close()
	module, err := m.Record(context.Background(), frontend.Options{})
	require.NoError(t, err)
	p, err := passes.ParsePipeline("annotate,fuse,dce,rename,schedule,barriers,plan,constants,edges")
	require.NoError(t, err)
	for _, g := range module.Graphs {
		o := g.Clone()
		_, err := passes.Run(context.Background(), o, p, passes.Options{})
		require.NoError(t, err)
		r := prove.Check(context.Background(), g, o, prove.Options{})
		require.Equal(t, prove.Proved, r.Verdict, "%s: %s", g.Name, r)
		pairs := conflicts(o)
		refused, proved := 0, 0
		for _, k := range rand.New(rand.NewPCG(11, 5)).Perm(len(o.Edges))[:40] {
			less := o.Clone()
			less.Edges = slices.Delete(less.Edges, k, k+1)
			x := reach.New(less, 2)
			want := prove.Proved
			for _, pair := range pairs {
				if path, decided := x.Path(pair[0], pair[1]); decided && !path {
					want = prove.Refused
					break
				}
			}
			r := prove.Check(context.Background(), o, less, prove.Options{})
			require.Equal(t, want, r.Verdict, "%s without %v: %s", g.Name, o.Edges[k], r)
			if want == prove.Refused {
				require.Equal(t, prove.Order, r.Findings[0].Point, "%s", r)
				refused++
			} else {
				proved++
			}
		}
		s := o.Stats()
		t.Logf("%s: %d dispatches, %d edges, %d joins, %d levels, %d conflicts; %d were left out in turn and are needed, %d are not", g.Name, s.Dispatches, s.Edges, s.Joins, s.Epochs, len(pairs), refused, proved)
		require.Positive(t, refused)
	}
}
