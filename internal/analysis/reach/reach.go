package reach

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Index answers questions about the paths of a graph. Its nodes are those of the list,
// for one replay after the other: position p of replay r is node r·len(Nodes) + p.
type Index struct {
	first, from []int32 // edges into node i are from[first[i]:first[i+1]]
	pre, size   []int32 // the tree of latest predecessors: the descendants of node i are numbered pre[i] up to pre[i]+size[i]
	level       []int32 // by node: how many nodes the longest path to it has
	left        int     // the steps that searches may still take

	seen  []int32 // by node: the last question whose search visited it
	want  []int32 // by node: the last question that asked for it
	asked int32
	queue []int32
	open  []int32
}

// The steps that all searches together may take. Recordings need a few for each edge.
const (
	freeSteps    = 1 << 22
	stepsPerEdge = 64
)

// New returns an index of the edges of g, for the given number of replays in a row.
func New(g *ir.Graph, replays int) *Index {
	w, places := g.Waits(), len(g.Nodes)
	n := places * replays
	x := &Index{
		first: make([]int32, n+1), from: make([]int32, 0, replays*len(g.Edges)), pre: make([]int32, n), size: make([]int32, n), level: make([]int32, n),
		left: freeSteps + stepsPerEdge*replays*(places+len(g.Edges)), seen: make([]int32, n), want: make([]int32, n),
	}
	parent := make([]int32, n)
	for i := range n {
		at := int32(i / places * places)
		same, previous := w.Of(i % places)
		parent[i] = -1
		add := func(k int32) {
			x.from = append(x.from, k)
			x.level[i] = max(x.level[i], x.level[k]+1)
			parent[i] = max(parent[i], k)
		}
		for _, k := range same {
			add(at + k)
		}
		for _, k := range previous {
			if at > 0 {
				add(at - int32(places) + k)
			}
		}
		x.first[i+1] = int32(len(x.from))
		x.size[i] = 1
	}
	// INVARIANT: a parent has a smaller number than its children.
	for i := n - 1; i >= 0; i-- {
		if p := parent[i]; p >= 0 {
			x.size[p] += x.size[i]
		}
	}
	next, free := make([]int32, n), int32(0) // by node: the number of its next child
	for i := range n {
		at := &free
		if p := parent[i]; p >= 0 {
			at = &next[p]
		}
		x.pre[i] = *at
		*at += x.size[i]
		next[i] = x.pre[i] + 1
	}
	return x
}

// Into returns the nodes that node i waits for.
func (x *Index) Into(i int32) []int32 { return x.from[x.first[i]:x.first[i+1]] }

// Left returns how many steps searches may still take.
func (x *Index) Left() int { return x.left }

// above reports whether a is an ancestor of b in the tree of latest predecessors. Then
// a path leads from a to b. If not, there may still be one.
func (x *Index) above(a, b int32) bool {
	return uint32(x.pre[b]-x.pre[a]) < uint32(x.size[a])
}

// Path reports whether a path leads from node a to node b. decided is false if the
// budget did not suffice; then path is false, too.
func (x *Index) Path(a, b int32) (path, decided bool) {
	x.open = append(x.open[:0], a)
	missing, decided := x.missing(b)
	return len(missing) == 0, decided
}

// Missing returns those of the nodes `from` from which no path leads to b. The result
// is valid until the next question. decided is false if the budget did not suffice;
// then the result may contain too many nodes.
func (x *Index) Missing(from []int32, b int32) (missing []int32, decided bool) {
	x.open = append(x.open[:0], from...)
	return x.missing(b)
}

// few is the number of nodes in question up to which each visited node is compared with
// all of them by the tree.
const few = 8

// missing answers for the nodes in x.open, which it changes.
func (x *Index) missing(b int32) (missing []int32, decided bool) {
	x.left -= 1 + len(x.open)
	x.open = slices.DeleteFunc(x.open, func(a int32) bool { return a != b && x.above(a, b) })
	if len(x.open) == 0 {
		return nil, true
	}
	x.asked++
	floor, least := b, x.level[b]
	for _, a := range x.open {
		x.want[a] = x.asked
		floor, least = min(floor, a), min(least, x.level[a])
	}
	left := 0
	for _, a := range x.open { // a node may be asked for twice
		if x.want[a] == x.asked {
			x.want[a] = -x.asked
			left++
		}
	}
	found := func(a int32) {
		x.want[a] = 0
		left--
	}
	x.queue = append(x.queue[:0], b)
	for k := 0; k < len(x.queue) && left > 0; k++ {
		for _, p := range x.Into(x.queue[k]) {
			if x.left--; x.left < 0 {
				return x.unfound(), false
			}
			if p < floor || x.seen[p] == x.asked {
				continue
			}
			x.seen[p] = x.asked
			if x.want[p] == -x.asked {
				found(p)
			}
			if len(x.open) <= few {
				for _, a := range x.open {
					if x.want[a] == -x.asked && x.above(a, p) {
						found(a)
					}
				}
			}
			if x.level[p] > least {
				x.queue = append(x.queue, p)
			}
		}
	}
	return x.unfound(), true
}

// unfound returns those of the open nodes that were not found.
func (x *Index) unfound() []int32 {
	return slices.DeleteFunc(x.open, func(a int32) bool { return x.want[a] != -x.asked })
}
