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
	// ByBarriers graphs are ordered by their barriers and commits.
	ByBarriers Ordering = iota
	// Serial graphs are ordered by their list, as a serial encoder does it: each command
	// begins when the one before it has ended, whatever barriers and commits say, and each
	// replay when the one before it has ended.
	Serial
	// ByEdges graphs are ordered by [Graph.Edges] and by nothing else. They have no
	// barriers; their commits end command buffers and order nothing.
	ByEdges
)

var orderings = [...]string{"barriers", "serial", "edges"}

func (o Ordering) String() string {
	if int(o) >= len(orderings) {
		return fmt.Sprintf("Ordering(%d)", uint8(o))
	}
	return orderings[o]
}

// Edge has the command To begin when the command From has ended: the From that
// stands before it in the list, or, with Previous, the From of the replay before,
// wherever it stands. Commands are ordered by the paths of edges. An edge of the
// replay before reaches over one replay at a time, so a path through several
// replays has one for each.
type Edge struct {
	From, To ID
	Previous bool
}

// Join is a command that does nothing. It waits for the commands before it and is
// waited for: m commands before r others need m + r edges through one, instead of m·r.
type Join struct{ ID ID }

// compareEdges is the canonical order of edges into one command: those of its own
// replay first, each by ascending From.
func compareEdges(a, b Edge) int {
	if a.Previous != b.Previous {
		if b.Previous {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.From, b.From)
}

// SortEdges brings g's edges into their canonical order, which Check demands: by the
// place of To in the list, then those of the same replay before those of the replay
// before, then by From. Equal edges become one.
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

// SortWaits brings edges into one command into their canonical order.
func SortWaits(edges []Edge) { slices.SortFunc(edges, compareEdges) }

// SetOrdering has g ordered in another way. Barriers and the orders of commits stay; edges and
// joins are dropped, unless they are the new order.
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
	if g.Source != nil { // the places of nodes are others now
		source := *g.Source
		source.Nodes = nil
		g.Source = &source
	}
}

// DropLooseEdges drops edges from or to commands that are gone.
func (g *Graph) DropLooseEdges() {
	if len(g.Edges) == 0 {
		return
	}
	places := newCommandPlaces(g)
	g.Edges = slices.DeleteFunc(slices.Clone(g.Edges), func(e Edge) bool { return places.of(e.From) < 0 || places.of(e.To) < 0 })
}

// Levels sorts the commands of a graph ordered by edges, but for joins, by the most
// commands on a path to them: as indices into Nodes, those that wait for nothing
// first. It takes linear time.
func (g *Graph) Levels() (levels [][]int32) {
	waits := g.Waits()
	done := make([]int32, len(g.Nodes)) // by place: commands on the longest path that ends with it
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

// Waits are the edges of a graph by the places of commands in [Graph.Nodes].
type Waits struct {
	first []int32 // by place, and one more: where its edges begin in from
	same  []int32 // by place: where those from the replay before begin
	from  []int32 // places
}

// Of returns the places of the commands that the one at place i waits for: those of
// its replay, and those of the replay before.
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

// commandPlaces finds the place in the list of an ID: in an array, where IDs are numbers up
// to a few times the commands, as recorders give them.
type commandPlaces struct {
	dense  []int32 // 1 + place, 0 for none
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

// of returns the place of a command, −1 if there is none.
func (p *commandPlaces) of(id ID) int32 {
	if int(id) < len(p.dense) {
		return p.dense[id] - 1
	}
	return p.sparse[id] - 1
}
