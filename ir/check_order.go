package ir

import "fmt"

// ordering checks that g has a known Ordering, and edges only if they are its order.
func (c *checker) ordering(g *Graph) {
	at := "graph " + QuoteName(g.Name)
	switch {
	case int(g.Ordering) >= len(orderings):
		c.add(at, Pos{}, "is ordered in no known way", "")
	case g.Ordering != ByEdges && len(g.Edges) > 0:
		c.add(at, Pos{}, fmt.Sprintf("has edges, and is ordered by %s", g.Ordering), "a graph is ordered in one way: leave the edges out, or have it ordered by them")
	}
}

// edgeChecker checks the edges of a graph in one walk along its list.
type edgeChecker struct {
	nc     *nodeChecker
	places *commandPlaces
	left   []Edge // edges that lead to later commands
}

func newEdgeChecker(nc *nodeChecker) *edgeChecker {
	e := &edgeChecker{nc: nc, left: nc.g.Edges}
	if len(e.left) > 0 {
		e.places = newCommandPlaces(nc.g)
	}
	return e
}

func (e *edgeChecker) command(c Command) {
	nc := e.nc
	if _, ok := c.(*Join); ok && nc.g.Ordering != ByEdges {
		nc.add("joins edges, and the graph is not ordered by edges", "leave it out, or have the graph ordered by edges")
	}
	n := 0
	for n < len(e.left) && e.left[n].To == c.Num() {
		n++
	}
	into := e.left[:n]
	e.left = e.left[n:]
	for k, x := range into {
		from := e.places.of(x.From)
		switch {
		case k > 0 && into[k-1] == x:
			nc.add(fmt.Sprintf("waits for %s twice", x.From), "one edge is enough")
		case k > 0 && compareEdges(into[k-1], x) > 0:
			nc.add("has edges out of order", "sort them: those of the same replay first, each by ascending ids")
		case from < 0:
			nc.add(fmt.Sprintf("waits for %s, which is no command of the graph", x.From), "")
		case !x.Previous && int(from) >= nc.i:
			nc.add(fmt.Sprintf("waits for %s, which does not stand before it", x.From), "edges lead forward in the list; if the command of the replay before is meant: previous "+x.From.String())
		default:
			continue
		}
		return // one defect of a command is enough
	}
}

// end reports the edges that are left after the last command: they lead to no command, or stand out
// of order.
func (e *edgeChecker) end() {
	if len(e.left) == 0 {
		return
	}
	x, why := e.left[0], "leads to no command of the graph"
	if e.places.of(x.To) >= 0 {
		why = "is out of order: edges stand in the order of the commands that they lead to"
	}
	c := e.nc.c
	c.add(c.prefix+"edges", Pos{}, fmt.Sprintf("edge from %s to %s %s", x.From, x.To, why), "")
}
