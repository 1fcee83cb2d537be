package ir

import (
	"cmp"
	"fmt"
	"slices"
)

// Ordering says what orders the commands of a graph.
type Ordering uint8

// The orderings.
const (
	// ByBarriers means that barriers and commits order the commands.
	ByBarriers Ordering = iota
	// Serial means that the list orders the commands, as a serial encoder does: each command begins
	// when the one before it has ended, whatever barriers and commits say, and each replay begins
	// when the one before it has ended.
	Serial
	// ByEdges means that [Graph.Edges] alone order the commands. The graph has no barriers, and its
	// commits only end command buffers.
	ByEdges
)

var orderings = [...]string{"barriers", "serial", "edges"}

func (o Ordering) String() string {
	if int(o) >= len(orderings) {
		return fmt.Sprintf("Ordering(%d)", uint8(o))
	}
	return orderings[o]
}

// Edge makes the command To begin only when the command From has ended. Without Previous, From
// stands before To in the list, and both belong to the same replay. With Previous, From belongs to
// the replay before that of To, and may stand anywhere in the list. Commands are ordered by paths
// of edges. A path through several replays has one edge with Previous for each step from a replay
// to the next.
type Edge struct {
	From, To ID
	Previous bool
}

// Join is a command that does nothing: it waits for commands, and others wait for it. If r commands
// all wait for m others, m + r edges through a join replace m·r edges.
type Join struct{ ID ID }

// compareEdges is the canonical order of edges into one command: edges from the same replay come
// first, and within each half From ascends.
func compareEdges(a, b Edge) int {
	if a.Previous != b.Previous {
		if b.Previous {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.From, b.From)
}

// SortEdges puts g's edges into their canonical order, which Check demands: by the index of To in
// the list, then edges of the same replay before edges from the previous replay, then by From. It
// removes repeated edges.
func (g *Graph) SortEdges() {
	if len(g.Edges) == 0 {
		return
	}
	places := newCommandPlaces(g)
	slices.SortFunc(g.Edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(places.of(a.To), places.of(b.To)), compareEdges(a, b))
	})
	g.Edges = slices.Compact(g.Edges)
}

// SortWaits puts edges into one command into their canonical order.
func SortWaits(edges []Edge) { slices.SortFunc(edges, compareEdges) }

// SetOrdering changes what orders g. Barriers and the orders of commits stay. Edges and joins are
// dropped unless o is ByEdges.
func (g *Graph) SetOrdering(o Ordering) {
	g.Ordering = o
	if o == ByEdges {
		return
	}
	g.Edges = nil
	isJoin := func(n Node) bool { _, ok := n.(*Join); return ok }
	if !slices.ContainsFunc(g.Nodes, isJoin) {
		return
	}
	g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), isJoin)
	if g.Source != nil { // the indices of nodes have changed
		source := *g.Source
		source.Nodes = nil
		g.Source = &source
	}
}

// DropLooseEdges drops the edges from or to commands that the graph does not have.
func (g *Graph) DropLooseEdges() {
	if len(g.Edges) == 0 {
		return
	}
	places := newCommandPlaces(g)
	g.Edges = slices.DeleteFunc(slices.Clone(g.Edges), func(e Edge) bool { return places.of(e.From) < 0 || places.of(e.To) < 0 })
}

// Levels groups the commands of a graph ordered by edges, without its joins, by the number of
// commands on the longest path that leads to them; the first group waits for nothing. The results
// are indices into Nodes. It takes linear time.
func (g *Graph) Levels() (levels [][]int32) {
	waits := g.Waits()
	done := make([]int32, len(g.Nodes)) // by index: the number of commands on the longest path that ends with this node
	var count []int
	for i, n := range g.Nodes {
		same, _ := waits.Of(i)
		for _, k := range same {
			done[i] = max(done[i], done[k])
		}
		if !works(n) {
			continue
		}
		if done[i]++; int(done[i]) > len(count) {
			count = append(count, 0)
		}
		count[done[i]-1]++
	}
	levels = make([][]int32, len(count))
	for i, n := range g.Nodes {
		if works(n) {
			l := &levels[done[i]-1]
			if *l == nil {
				*l = make([]int32, 0, count[done[i]-1])
			}
			*l = append(*l, int32(i))
		}
	}
	return levels
}

// works reports whether n is a command other than a join.
func works(n Node) bool {
	c, ok := n.(Command)
	_, join := c.(*Join)
	return ok && !join
}

// Waits is the edges of a graph, by the indices of commands in [Graph.Nodes].
type Waits struct {
	first []int32 // by index, with one more at the end: where the node's edges begin in from
	same  []int32 // by index: where in from the edges from the previous replay begin
	from  []int32 // indices of nodes
}

// Of returns the indices of the commands for which node i waits: those of the same replay and those
// of the previous one.
func (w *Waits) Of(i int) (same, previous []int32) {
	return w.from[w.first[i]:w.same[i]], w.from[w.same[i]:w.first[i+1]]
}

// Waits returns the edges of a graph that passed Check. It takes linear time.
func (g *Graph) Waits() *Waits {
	places := newCommandPlaces(g)
	w := &Waits{first: make([]int32, len(g.Nodes)+1), same: make([]int32, len(g.Nodes)), from: make([]int32, 0, len(g.Edges))}
	edges := g.Edges
	for i, n := range g.Nodes {
		w.first[i] = int32(len(w.from))
		c, ok := n.(Command)
		for _, previous := range [2]bool{false, true} {
			if previous {
				w.same[i] = int32(len(w.from))
			}
			for ok && len(edges) > 0 && edges[0].To == c.Num() && edges[0].Previous == previous {
				w.from = append(w.from, places.of(edges[0].From))
				edges = edges[1:]
			}
		}
	}
	w.first[len(g.Nodes)] = int32(len(w.from))
	return w
}

// commandPlaces finds the index of the command that has an ID. It uses an array if IDs are at most
// a few times the number of commands, as recorders give them, and a map otherwise.
type commandPlaces struct {
	dense  []int32 // by ID: 1 + index, or 0 for no command
	sparse map[ID]int32
}

func newCommandPlaces(g *Graph) *commandPlaces {
	p := &commandPlaces{dense: make([]int32, 4*len(g.Nodes)+64)}
	for i, n := range g.Nodes {
		c, ok := n.(Command)
		switch {
		case !ok:
		case int(c.Num()) < len(p.dense):
			p.dense[c.Num()] = int32(i) + 1
		default:
			if p.sparse == nil {
				p.sparse = map[ID]int32{}
			}
			p.sparse[c.Num()] = int32(i) + 1
		}
	}
	return p
}

// of returns the index of the command with the ID, or −1 if there is none.
func (p *commandPlaces) of(id ID) int32 {
	if int(id) < len(p.dense) {
		return p.dense[id] - 1
	}
	return p.sparse[id] - 1
}
