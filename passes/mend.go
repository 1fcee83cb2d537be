package passes

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
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

// marks says before which commands of g a barrier or a commit stands, one behind the
// last command before the first: the list goes round.
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

// needsEnd reports whether the next replay needs a barrier behind the last command of
// g: whether it conflicts with what no barrier and no commit within the list orders
// before it. t holds the commands of g in their order.
func needsEnd(g *ir.Graph, t *hazard.Table) bool {
	l := layoutOf(g, t)
	n := t.Len()
	if n == 0 || l.begins[0] {
		return false
	}
	fixed := marks(g, l)
	first, last := n, 0 // no mark stands among the commands before first, and none among those from last on
	for i := 1; i < n; i++ {
		if fixed[i] {
			first, last = min(first, i), i
		}
	}
	// What conflicts across the end with nothing between begins behind the last mark
	// and ends before the first one: mostly a command or two on each side.
	const few = 1 << 12
	if pairs := int64(first) * int64(n-last); pairs <= few {
		for j := range first {
			for i := last; i < n; i++ {
				if t.BetweenReplays(i, j) != hazard.None {
					return true
				}
			}
		}
		return false
	}
	for _, p := range t.Latest(nil)[n : n+first] {
		if int(p) >= last && int(p) < n {
			return true
		}
	}
	return false
}

// Barriers returns how many barriers g needs beside its commits as it stands: those
// between its commands, and one behind the last of them if the next replay needs it,
// whether it is there or left to the host, which may wait between replays. A graph
// ordered by edges needs none. t holds the commands of g in their order.
func Barriers(g *ir.Graph, t *hazard.Table) (count int) {
	if g.Ordering == ir.ByEdges {
		return 0
	}
	i := 0
	for _, x := range g.Nodes {
		if _, ok := x.(ir.Command); ok {
			i++
		} else if _, ok := x.(*ir.Barrier); ok && i < t.Len() {
			count++
		}
	}
	if needsEnd(g, t) {
		count++
	}
	return count
}
