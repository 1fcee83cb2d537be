package passes

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// mend adds the fewest barriers that the commands of g need in their order and do not
// have, and turns bare commits into events where a conflict needs it; it removes
// nothing. Passes that make new conflicts call it, so that the graph is sound behind
// each of them and not only behind the pass barriers. It returns how many barriers it
// added.
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

// marks says before which commands of g a barrier or a commit stands. One behind the
// last command counts as one before the first, which comes next when the graph is
// replayed again.
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
