package passes

import (
	"context"

	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/ir"
)

// mend adds the barriers that the commands of g need in their order and do not
// have, the fewest, and makes events of commits that must order; what orders
// already stays. For passes that make new conflicts, so that the graph is sound
// behind each of them and not only behind the pass barriers. It returns how many
// barriers it added.
func mend(ctx context.Context, g *ir.Graph) (added int) {
	t := hazard.NewTable(ctx, g)
	n := t.Len()
	if n == 0 {
		return 0
	}
	l := layoutOf(g, t)
	l.order(nil)
	// A barrier behind the last command stands before the first of the next replay.
	fixed, i := l.begins, 0
	for _, x := range g.Nodes {
		if _, ok := x.(*ir.Barrier); ok {
			fixed[i%n] = true
		} else if _, ok := ir.NodeID(x); ok {
			i++
		}
	}
	cut := cuts(t.Latest(nil), n, fixed)
	for _, c := range cut {
		if c {
			added++
		}
	}
	if added == 0 {
		return 0
	}
	out := make([]ir.Node, 0, len(g.Nodes)+added)
	i = 0
	for _, x := range g.Nodes {
		if _, ok := ir.NodeID(x); ok {
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
