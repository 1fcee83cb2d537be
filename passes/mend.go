package passes

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// mend adds the fewest barriers that the order of g's commands needs beside those it has, and turns
// bare commits into events where a conflict needs it. It removes nothing. Passes that make new
// conflicts call it, so that the graph is sound after each of them and not only after the pass
// barriers. It returns the number of added barriers.
func mend(ctx context.Context, g *ir.Graph) (added int) {
	t := hazard.NewTable(ctx, g)
	n := t.Len()
	if n == 0 {
		return 0
	}
	l := layoutOf(g, t)
	l.order(nil)
	fixed := marks(g, l)
	cut := cuts(t.Latest(nil), n, fixed)
	for _, c := range cut {
		if c {
			added++
		}
	}
	if added == 0 {
		return 0
	}
	out, i := make([]ir.Node, 0, len(g.Nodes)+added), 0
	for _, x := range g.Nodes {
		if _, ok := x.(ir.Command); ok {
			if i > 0 && cut[i] {
				out = append(out, &ir.Barrier{})
			}
			i++
		}
		out = append(out, x)
	}
	if cut[0] {
		out = append(out, &ir.Barrier{})
	}
	g.Nodes = out
	return added
}

// marks says before which commands of g a barrier or a commit stands. A mark after the last command
// counts as one before the first command, which follows it in the next replay.
func marks(g *ir.Graph, l *layout) []bool {
	out, i, n := slices.Clone(l.begins), 0, len(l.begins)
	for _, x := range g.Nodes {
		if _, ok := x.(*ir.Barrier); ok && n > 0 {
			out[i%n] = true
		} else if _, ok := x.(ir.Command); ok {
			i++
		}
	}
	return out
}
