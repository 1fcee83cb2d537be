package judge

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// withoutOrder drops everything that orders the commands.
func withoutOrder(g *ir.Graph) {
	g.SetOrdering(ir.ByBarriers)
	g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), is[*ir.Barrier])
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			c.Order = ir.OrderNone
		}
	}
}

// PlaceEdges orders a graph by an edge for each pair of commands that conflict, within
// a replay and from one to the next, except for edges that two others imply. Sometimes
// a join stands before a command for all that the command waits for.
func PlaceEdges(rng Choices, g *ir.Graph) {
	withoutOrder(g)
	x := newWorld(g)
	n := len(x.at)
	id := func(i int) ir.ID { return g.Nodes[x.at[i]].(ir.Command).Num() }
	same, previous := make([][]bool, n), make([][]bool, n) // [i][j]: i before j
	for i := range n {
		same[i], previous[i] = make([]bool, n), make([]bool, n)
		for j := range n {
			same[i][j] = i < j && x.conflict(i, j, false)
			previous[i][j] = x.conflict(i, j, true)
		}
	}
	// INVARIANT: the two edges that imply an edge span less of the list, so that they
	// are present themselves or implied by others.
	for j := range n {
		for i := range n {
			within, around := false, false
			for k := range n {
				within = within || same[i][k] && same[k][j]
				around = around || previous[i][k] && same[k][j] || same[i][k] && previous[k][j]
			}
			if same[i][j] && !within {
				g.Edges = append(g.Edges, ir.Edge{From: id(i), To: id(j)})
			}
			if previous[i][j] && !around {
				g.Edges = append(g.Edges, ir.Edge{From: id(i), To: id(j), Previous: true})
			}
		}
	}
	g.Ordering = ir.ByEdges
	for j := n - 1; j >= 0; j-- {
		if rng.IntN(3) == 0 {
			joinBefore(g, x.at[j])
		}
	}
	g.SortEdges()
}

// joinBefore makes the command at node i wait for a join of everything that it waited
// for, if that is more than one command.
func joinBefore(g *ir.Graph, i int) {
	to := g.Nodes[i].(ir.Command).Num()
	into := func(e ir.Edge) bool { return e.To == to && !e.Previous }
	k := slices.IndexFunc(g.Edges, into)
	if k < 0 || !slices.ContainsFunc(g.Edges[k+1:], into) {
		return
	}
	join := &ir.Join{ID: freeID(g)}
	for k := range g.Edges {
		if into(g.Edges[k]) {
			g.Edges[k].To = join.ID
		}
	}
	g.Edges = append(g.Edges, ir.Edge{From: join.ID, To: to})
	insert(g, i, join)
}

// byEdges orders g by edges, unless it is ordered so already.
func byEdges(rng *rand.Rand, g *ir.Graph) {
	if g.Ordering != ir.ByEdges {
		PlaceEdges(rng, g)
	}
}

func honestEdges(rng *rand.Rand, g *ir.Graph) bool {
	PlaceEdges(rng, g)
	return true
}

// someEdge returns the index of an edge that suits.
func someEdge(rng *rand.Rand, g *ir.Graph, suits func(e ir.Edge) bool) (int, bool) {
	byEdges(rng, g)
	var list []int
	for k, e := range g.Edges {
		if suits(e) {
			list = append(list, k)
		}
	}
	return pick(rng, list)
}

// dropEdge returns a mutation that drops an edge, within a replay or from the previous one.
func dropEdge(previous bool) func(*rand.Rand, *ir.Graph) bool {
	return func(rng *rand.Rand, g *ir.Graph) bool {
		k, ok := someEdge(rng, g, func(e ir.Edge) bool { return e.Previous == previous })
		if ok {
			g.Edges = slices.Delete(g.Edges, k, k+1)
		}
		return ok
	}
}

func isNumbered(n ir.Node) bool { _, ok := n.(ir.Command); return ok }

// redirectEdge makes an edge come from another command or another replay, or lead to
// another command.
func redirectEdge(rng *rand.Rand, g *ir.Graph) bool {
	k, ok := someEdge(rng, g, func(ir.Edge) bool { return true })
	if !ok {
		return false
	}
	all := indices(g, isNumbered)
	other, e := g.Nodes[all[rng.IntN(len(all))]].(ir.Command).Num(), &g.Edges[k]
	switch rng.IntN(3) {
	case 0:
		e.From = other
	case 1:
		e.To = other
	default:
		e.Previous = !e.Previous
	}
	g.SortEdges()
	return true
}

func addEdge(rng *rand.Rand, g *ir.Graph) bool {
	byEdges(rng, g)
	all := indices(g, isNumbered)
	from, to := rng.IntN(len(all)), rng.IntN(len(all))
	g.Edges = append(g.Edges, ir.Edge{From: g.Nodes[all[from]].(ir.Command).Num(), To: g.Nodes[all[to]].(ir.Command).Num(), Previous: from >= to})
	g.SortEdges()
	return true
}

// dropJoin removes a join with its edges.
func dropJoin(rng *rand.Rand, g *ir.Graph) bool {
	byEdges(rng, g)
	i, ok := pick(rng, indices(g, is[*ir.Join]))
	if ok {
		id := g.Nodes[i].(*ir.Join).ID
		g.Nodes = slices.Delete(g.Nodes, i, i+1)
		g.Edges = slices.DeleteFunc(g.Edges, func(e ir.Edge) bool { return e.From == id || e.To == id })
	}
	return ok
}

// forgetHost leaves only the edges within a replay. Between two replays the host then
// has to wait, and sometimes the graph says so.
func forgetHost(rng *rand.Rand, g *ir.Graph) bool {
	byEdges(rng, g)
	g.Edges = slices.DeleteFunc(g.Edges, func(e ir.Edge) bool { return e.Previous })
	g.NextHost = rng.IntN(2) == 0
	return true
}

// drawEdges orders the commands by some of all possible edges: nearly all, or few.
func drawEdges(rng *rand.Rand, g *ir.Graph) bool {
	withoutOrder(g)
	g.Ordering = ir.ByEdges
	if rng.IntN(2) == 0 {
		insert(g, rng.IntN(len(g.Nodes)+1), &ir.Join{ID: freeID(g)})
	}
	at := indices(g, isNumbered)
	few := rng.IntN(8)
	for j := range at {
		for i := range at {
			if rng.IntN(8) >= few {
				g.Edges = append(g.Edges, ir.Edge{From: g.Nodes[at[i]].(ir.Command).Num(), To: g.Nodes[at[j]].(ir.Command).Num(), Previous: i >= j || rng.IntN(4) == 0})
			}
		}
	}
	g.NextHost = rng.IntN(4) == 0
	g.SortEdges()
	return true
}
