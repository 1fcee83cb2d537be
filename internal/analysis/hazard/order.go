package hazard

import (
	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Order is the order that conflicts demand, as an explicit graph. Nodes below Len of
// the table are commands. The others are joins: they do no work, and let many readers
// meet many writers with few edges. Every two conflicting commands are connected by a
// path; an edge that other edges imply may be missing.
type Order struct {
	Nodes int // commands and joins
	// The successors of node i are Next[First[i]:First[i+1]].
	First, Next []int32
	// Waits[i] is the number of edges into node i.
	Waits []int32
}

// Successors returns the nodes that wait for node i.
func (o *Order) Successors(i int32) []int32 { return o.Next[o.First[i]:o.First[i+1]] }

// wideRead is the number of pieces from which on the writers that a read meets are
// joined, so that the next read of the same bytes needs only one edge, and its readers
// grouped, so that each piece remembers only the group.
const wideRead = 4

type edge struct{ from, to int32 }

// orderBuilder finds the edges into each command: from the last writers of the bytes
// that it touches and, if it writes, from the readers since.
type orderBuilder struct {
	t        *Table
	s        *bytestate.State
	commands int32
	nodes    int32   // commands and joins
	seen     []int32 // by node: the last node that an edge from it led to
	// links are the readers since the last write of some bytes, in lists that may share
	// their tails.
	links []link
	wide  map[wideKey]wideJoin
	// groups are joins for readers of the same bytes. A group takes in readers until a
	// writer waits for it.
	groups map[wideKey]int32
	closed []bool  // by join: it takes in no more readers
	from   []int32 // scratch: the writers of a read
	as     []int32 // scratch: by access of a command, the node that reads it
	visit  func(Hazard)

	era, pillar int32 // era: the first command since the last pillar; pillar: that pillar

	edges  []edge  // all edges, unless stream is set
	stream *Stream // takes the edges as the list goes on; nil for an Order
}

type link struct {
	node, next int32
}

type wideKey struct {
	lo, end      int64
	root, region int32
}

// wideJoin is the join of the writers of some bytes. It is valid as long as none of the
// bytes was written after command at.
type wideJoin struct {
	node, at int32
}

// Hazard is one reason for an edge of an [Order].
type Hazard struct {
	Kind     Kind
	From, To int32 // nodes; From may be a join, To is a command
	// Bytes [Lo, End) of root memory Mem contain every byte of the conflict. They are
	// exact if both accesses are contiguous and no param moves them, otherwise the
	// hull. They mean nothing if Kind is Unknown.
	Mem     ir.MemID
	Lo, End int64
}

// Order returns the order of t's commands as an explicit graph. It has O(Σ(k+1)) edges,
// where k is the number of pieces that an access meets.
func (t *Table) Order() *Order { return t.Hazards(nil) }

// Hazards is Order, and calls visit (unless nil) with each hazard found, in ascending
// order of To: those with the last writers of the bytes and, for writes, those with the
// readers since.
func (t *Table) Hazards(visit func(Hazard)) *Order {
	n := t.Len()
	b := newOrderBuilder(t, n)
	b.visit = visit
	b.edges = make([]edge, 0, 3*n)
	for i := range n {
		b.enter(int32(i), t.of(i), t.commands[i].pillar)
	}
	b.t.done(b.s)
	return b.order()
}

// Replays is [Table.Order] for two replays in a row, whose params are independent.
// Commands from Len on are those of the second replay. Joins numbered from `join` on
// were made for the second replay; the others join commands of the first only.
func (t *Table) Replays() (o *Order, join int32) {
	n := t.Len()
	b := newOrderBuilder(t, 2*n)
	b.edges = make([]edge, 0, 6*n)
	var later []bytestate.Access
	for x := range int32(2 * n) {
		as := t.of(int(x) % n)
		if int(x) == n {
			join = b.nodes
			clear(b.wide)
			clear(b.groups)
		}
		if int(x) >= n && t.moves(as) {
			later = append(later[:0], as...)
			for k := range later {
				later[k].Region = t.facts.Later(later[k].Region)
			}
			as = later
		}
		b.enter(x, as, t.commands[int(x)%n].pillar)
	}
	b.t.done(b.s)
	return b.order(), join
}

func newOrderBuilder(t *Table, n int) *orderBuilder {
	b := &orderBuilder{t: t, s: bytestate.NewState(t.ctx, t.facts, max(2*n, len(t.accesses))), commands: int32(n), nodes: int32(n), pillar: none, wide: map[wideKey]wideJoin{}, groups: map[wideKey]int32{}}
	b.links = make([]link, 0, 2*n)
	b.seen = make([]int32, n, n+n/4)
	for i := range b.seen {
		b.seen[i] = none
	}
	b.s.Reader = func(r, x int32) int32 {
		if r != none && b.links[r].node == x {
			return r
		}
		b.links = append(b.links, link{x, r})
		return int32(len(b.links) - 1)
	}
	b.s.Gather = b.gather
	b.s.Share = func(r int32) int32 {
		if b.stream != nil && b.stream.ended(r) {
			return none
		}
		if b.links[r].next == none {
			return r
		}
		j := b.join()
		for ; r != none; r = b.links[r].next {
			b.edge(b.links[r].node, j)
			b.close(b.links[r].node)
		}
		b.links = append(b.links, link{j, none})
		return int32(len(b.links) - 1)
	}
	return b
}

// gather makes joins that stand for the writers and the readers of a crowd.
func (b *orderBuilder) gather(members []int32) (w, r int32) {
	w, r = none, none
	several := false
	for _, h := range members {
		if x := b.s.Cell(h).W; x != none {
			several = several || w != none && x != w
			w = x
		}
	}
	if several {
		w = b.join()
		b.close(w)
		for _, h := range members {
			if x := b.s.Cell(h).W; x != none {
				b.edge(x, w)
			}
		}
	}
	for _, h := range members {
		for l := b.s.Cell(h).R; l != none; l = b.links[l].next {
			if r == none {
				r = b.join()
			}
			b.edge(b.links[l].node, r)
			b.close(b.links[l].node)
		}
	}
	if r == none {
		return w, none
	}
	if w != none {
		b.edge(w, r) // whoever waits for readers is then ordered after the writer, as with other cells
	}
	b.links = append(b.links, link{r, none})
	return w, int32(len(b.links) - 1)
}

// enter finds the edges into command x, the next one of the list.
func (b *orderBuilder) enter(x int32, as []bytestate.Access, pillar bool) {
	if !pillar {
		if b.pillar != none {
			b.unknown(b.pillar, x)
		}
		b.command(x, as)
		return
	}
	for k := b.era; k < x; k++ {
		b.unknown(k, x)
	}
	if b.era == x && b.pillar != none {
		b.unknown(b.pillar, x)
	}
	b.era, b.pillar = x+1, x
	b.s.Reset()
	clear(b.wide)
	clear(b.groups)
}

func (b *orderBuilder) join() int32 {
	b.seen = append(b.seen, none)
	b.closed = append(b.closed, false)
	if b.stream != nil {
		b.stream.join()
	}
	b.nodes++
	return b.nodes - 1
}

// close ends a group. INVARIANT: nothing enters a join that something waits for,
// because the order could then have a cycle.
func (b *orderBuilder) close(node int32) {
	if j := node - b.commands; j >= 0 {
		b.closed[j] = true
	}
}

func (b *orderBuilder) edge(from, to int32) {
	if from == to || b.seen[from] == to {
		return
	}
	b.seen[from] = to
	if b.stream != nil {
		b.stream.edge(from, to)
	} else {
		b.edges = append(b.edges, edge{from, to})
	}
}

func (b *orderBuilder) unknown(from, to int32) {
	b.edge(from, to)
	if b.visit != nil {
		b.visit(Hazard{Kind: Unknown, From: from, To: to})
	}
}

func (b *orderBuilder) show(k Kind, from, to int32, a *bytestate.Access, c *bytestate.Cell) {
	if b.visit != nil && from != none {
		b.visit(Hazard{k, from, to, ir.MemID(a.Root), max(a.Lo, c.Lo), min(a.End, c.End)})
	}
}

func (b *orderBuilder) command(x int32, as []bytestate.Access) {
	b.as = b.as[:0]
	b.s.Begin()
	for k := range as {
		a := &as[k]
		met := b.s.Look(a)
		if !a.Write {
			b.reads(x, a, met)
			b.as = append(b.as, b.group(x, as, a, met))
			continue
		}
		b.as = append(b.as, x)
		for _, h := range met {
			c := b.s.Cell(h)
			if c.R == none && c.W != none {
				b.edge(c.W, x)
			}
			b.show(WAW, c.W, x, a, c)
			for r := c.R; r != none; r = b.links[r].next {
				b.edge(b.links[r].node, x)
				b.close(b.links[r].node)
				b.show(WAR, b.links[r].node, x, a, c)
			}
		}
	}
	for k := range as {
		if !as[k].Write {
			b.s.AddRead(k, &as[k], b.as[k])
		}
	}
	for k := range as {
		if as[k].Write {
			b.s.AddWrite(k, &as[k], x)
		}
	}
}

// group returns the node that pieces remember as the reader of a: x itself, or an open
// group that x joins.
func (b *orderBuilder) group(x int32, as []bytestate.Access, a *bytestate.Access, met []int32) int32 {
	if a.Region != 0 || len(met) < wideRead {
		return x
	}
	for k := range as {
		if as[k].Write && as[k].Root == a.Root {
			return x // x would wait for a group that it belongs to
		}
	}
	key := wideKey{a.Lo, a.End, a.Root, 0}
	g, ok := b.groups[key]
	ok = ok && !b.closed[g-b.commands]
	for _, h := range met {
		if !ok {
			break
		}
		c := b.s.Cell(h)
		ok = c.Region != 0 || c.R != none && b.links[c.R].node == g
	}
	if !ok {
		g = b.join()
		b.groups[key] = g
	}
	b.edge(x, g)
	return g
}

// reads adds the edges into x from the writers of a.
func (b *orderBuilder) reads(x int32, a *bytestate.Access, met []int32) {
	last := none
	b.from = b.from[:0]
	for _, h := range met {
		if w := b.s.Cell(h).W; w != none {
			b.show(RAW, w, x, a, b.s.Cell(h))
			b.from = append(b.from, w)
			last = max(last, w)
		}
	}
	if len(b.from) < wideRead {
		for _, w := range b.from {
			b.edge(w, x)
		}
		return
	}
	key := wideKey{a.Lo, a.End, a.Root, a.Region}
	j, ok := b.wide[key]
	if !ok || last >= j.at {
		j = wideJoin{b.join(), x}
		for _, w := range b.from {
			b.edge(w, j.node)
		}
		b.wide[key] = j
	}
	b.edge(j.node, x)
}

// order returns the Order, with the edges sorted by their sources.
func (b *orderBuilder) order() *Order {
	o := &Order{Nodes: int(b.nodes), First: make([]int32, b.nodes+1), Next: make([]int32, len(b.edges)), Waits: make([]int32, b.nodes)}
	for _, e := range b.edges {
		o.First[e.from+1]++
		o.Waits[e.to]++
	}
	for i := range b.nodes {
		o.First[i+1] += o.First[i]
	}
	at := make([]int32, b.nodes)
	copy(at, o.First)
	for _, e := range b.edges {
		o.Next[at[e.from]] = e.to
		at[e.from]++
	}
	return o
}
