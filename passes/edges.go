package passes

import (
	"context"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

var edgesPass = New(Pass{Name: "edges", Summary: "order commands by edges, for devices that take graphs of commands, and no longer by barriers", KeepsList: true}, edges)

// edges orders the graph by edges. They are the ones that the conflicts of its list demand, within
// a replay and from each replay to the next, with joins where many writers meet many readers. An
// edge is left out if a path of other edges orders the same two commands and a short search finds
// that path ([fewEdges]). The barriers are removed, and commits only end command buffers.
func edges(ctx context.Context, s *State, _ struct{}) error {
	g := s.Graph
	w := waitsOf(ctx, s.hazards(ctx), !g.NextHost)
	ids := w.ids()
	w.reduce(ctx)
	out := make([]ir.Node, 0, len(g.Nodes)+len(w.joins))
	g.SetOrdering(ir.ByEdges)
	g.Edges = make([]ir.Edge, 0, len(w.from))
	joins, previous := 0, 0
	into := func(node int32, row []int32, before bool) {
		for _, from := range row {
			g.Edges = append(g.Edges, ir.Edge{From: ids[w.command(from)], To: ids[w.command(node)], Previous: before})
		}
	}
	joinsUpTo := func(place int32) {
		for ; joins < len(w.joins) && w.place[w.joins[joins]] <= place; joins++ {
			j := w.joins[joins]
			out = append(out, &ir.Join{ID: ids[j]})
			into(j, w.into(j), false)
		}
	}
	i := int32(0)
	for _, x := range g.Nodes {
		switch x := x.(type) {
		case *ir.Barrier:
			continue
		case *ir.Commit:
			out = append(out, &ir.Commit{Label: x.Label})
			continue
		case ir.Command:
			joinsUpTo(i)
			into(i, w.into(i), false)
			into(i, w.into(w.n+i), true)
			previous += len(w.into(w.n + i))
			i++
		}
		out = append(out, x)
	}
	joinsUpTo(math.MaxInt32)
	g.Nodes, g.Source = out, withoutNodes(g.Source)
	g.SortEdges()
	s.Changed(len(g.Edges))
	s.About("the list", "ordered by %d edges, %d of them from the replay before, with %d joins", len(g.Edges), previous, joins)
	return nil
}

// waits holds the edges of two replays in a row between the nodes of [hazard.Table.Replays]: the
// commands of the first replay, those of the second, and joins.
type waits struct {
	t      *hazard.Table
	n      int32   // commands
	second int32   // the first of the joins that were made for the second replay
	joins  []int32 // the joins that are kept, in the order of the list
	place  []int32 // by join: the number of the command that it stands before
	list   []int32 // the commands of the first replay and the joins, in the order of the list
	rank   []int32 // by node: its index in that order; the second replay follows the first
	first  []int32 // by node, with one more at the end: where the edges into it begin in from
	end    []int32 // by node: where the remaining edges into it end
	from   []int32 // the nodes from which edges lead, grouped by the node to which they lead
}

// command returns the node of the first replay that stands for the same command as node.
func (w *waits) command(node int32) int32 {
	if node >= w.n && node < 2*w.n {
		return node - w.n
	}
	return node
}

func (w *waits) isJoin(node int32) bool { return node >= 2*w.n }

// again reports whether a node is a command of the second replay.
func (w *waits) again(node int32) bool { return node >= w.n && node < 2*w.n }

// into returns the nodes for which a node waits.
func (w *waits) into(node int32) []int32 { return w.from[w.first[node]:w.end[node]] }

// waitsOf finds the edges. Of the edges into the second replay it keeps those that come from the
// first replay, which become edges from the previous replay, and the joins on their way, which are
// put at the end of the list. It drops edges between commands of the second replay, because the
// first replay has them already. If previous is false, it drops everything about the second replay.
func waitsOf(ctx context.Context, t *hazard.Table, previous bool) *waits {
	o, second := t.Replays()
	w := &waits{t: t, n: int32(t.Len()), second: second, place: make([]int32, o.Nodes), first: make([]int32, o.Nodes+1), end: make([]int32, o.Nodes)}
	nodes := int32(o.Nodes)
	// A join is kept if an edge leads to it from a kept node, and a kept node waits for it.
	// INVARIANT: an edge between joins leads to the one that was made later.
	kept := make([]bool, nodes)
	for i := range w.n {
		kept[i], kept[w.n+i] = true, previous
	}
	source := func(i int32) bool { return kept[i] && !w.again(i) }
	for i := range nodes {
		if w.isJoin(i) && i < second {
			kept[i] = true
		}
		for _, to := range o.Successors(i) {
			if w.isJoin(to) && source(i) {
				kept[to] = true
			}
		}
	}
	for i := nodes - 1; i >= 2*w.n; i-- {
		w.place[i] = math.MaxInt32
		waited := false
		for _, to := range o.Successors(i) {
			if !kept[to] {
				continue
			}
			waited = true
			switch {
			case to < w.n:
				w.place[i] = min(w.place[i], to)
			case w.isJoin(to):
				w.place[i] = min(w.place[i], w.place[to])
			}
		}
		kept[i] = kept[i] && waited
	}
	for i := range nodes {
		interrupt.Poll(ctx)
		for _, to := range o.Successors(i) {
			if source(i) && kept[to] {
				w.first[to+1]++
			}
		}
	}
	for i := range nodes {
		w.first[i+1] += w.first[i]
		w.end[i] = w.first[i]
	}
	w.from = make([]int32, w.first[nodes])
	for i := range nodes {
		for _, to := range o.Successors(i) {
			if source(i) && kept[to] {
				w.from[w.end[to]] = i
				w.end[to]++
			}
		}
	}
	w.skip(o, kept)
	for i := 2 * w.n; i < nodes; i++ {
		if kept[i] {
			w.joins = append(w.joins, i)
		}
	}
	slices.SortStableFunc(w.joins, func(a, b int32) int { return int(w.place[a]) - int(w.place[b]) })
	w.number()
	return w
}

// skip removes joins that wait for only one node, or for which only one node waits. Edges around
// the join replace it.
func (w *waits) skip(o *hazard.Order, kept []bool) {
	nodes := int32(len(kept))
	thin := make([]bool, nodes)
	for i := 2 * w.n; i < nodes; i++ {
		if !kept[i] {
			continue
		}
		// A join for which one node waits may itself wait for many nodes. If that one node is a
		// join that waits for nothing else, it is removed too, and then all those edges would lead
		// to each node behind it. So such a join counts as if several nodes waited for it.
		waiting := 0
		for _, to := range o.Successors(i) {
			if kept[to] {
				waiting++
				if w.isJoin(to) && len(w.into(to)) == 1 {
					waiting++
				}
			}
		}
		thin[i] = waiting == 1 || len(w.into(i)) == 1
	}
	first, from := make([]int32, nodes+1), make([]int32, 0, len(w.from))
	var stack []int32
	for i := range nodes {
		if !thin[i] {
			stack = append(stack[:0], w.into(i)...)
		}
		for len(stack) > 0 {
			k := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if thin[k] {
				stack = append(stack, w.into(k)...)
			} else {
				from = append(from, k)
			}
		}
		first[i+1] = int32(len(from))
		kept[i] = kept[i] && !thin[i]
	}
	w.first, w.from = first, from
	copy(w.end, first[1:])
}

// number puts the nodes in the order of the list.
func (w *waits) number() {
	w.list = make([]int32, 0, int(w.n)+len(w.joins))
	joins := w.joins
	for i := range w.n {
		for ; len(joins) > 0 && w.place[joins[0]] <= i; joins = joins[1:] {
			w.list = append(w.list, joins[0])
		}
		w.list = append(w.list, i)
	}
	w.list = append(w.list, joins...)
	w.rank = make([]int32, len(w.place))
	for r, i := range w.list {
		w.rank[i] = int32(r)
	}
	for i := range w.n {
		w.rank[w.n+i] = int32(len(w.list)) + w.rank[i]
	}
}

// fewEdges is how many edges on either side are searched for a path of two edges that makes a third
// edge superfluous. Longer paths are searched only if at most shortRow edges lead into a command,
// and only along the edges that lead from each command to the latest one for which it waits. The
// proof has to find each path again, and finds these two kinds of path fast
// (internal/analysis/reach).
const (
	fewEdges = 32
	shortRow = 8
)

// reduce drops an edge if a path of other edges leads from its start to its end.
func (w *waits) reduce(ctx context.Context) {
	latest := newTree(2 * len(w.list))
	again := int32(len(w.list)) // rank of the first node of the second replay
	for r, i := range w.list {
		interrupt.Poll(ctx)
		row := w.sorted(i)
		short := len(row) <= shortRow
		if !w.isJoin(i) {
			left := row[:0]
			for _, a := range row { // the latest first, because a path from a leads through later nodes only
				if !w.through(left, a) && !(short && latest.over(w.rank[a], left, w.rank, 0)) {
					left = append(left, a)
				}
			}
			row = left
		}
		w.end[i] = w.first[i] + int32(len(row))
		latest.add(int32(r), row, w.rank, 0)
	}
	for r, i := range w.list {
		interrupt.Poll(ctx)
		same := w.into(i)
		latest.add(again+int32(r), same, w.rank, again)
		if w.isJoin(i) {
			continue
		}
		row := w.sorted(w.n + i)
		short := len(row)+len(same) <= shortRow
		left := row[:0]
		for _, a := range row {
			if !w.through(left, a) && !w.throughSecond(i, a) && !(short && (latest.over(w.rank[a], left, w.rank, 0) || latest.over(w.rank[a], same, w.rank, again))) {
				left = append(left, a)
			}
		}
		w.end[w.n+i] = w.first[w.n+i] + int32(len(left))
		if len(same) == 0 {
			latest.add(again+int32(r), left, w.rank, 0)
		}
	}
}

// sorted returns the nodes for which a node waits, each once, the latest of the list first.
func (w *waits) sorted(node int32) []int32 {
	row := w.into(node)
	slices.SortFunc(row, func(a, b int32) int { return int(w.rank[b]) - int(w.rank[a]) })
	return slices.Compact(row)
}

// through reports whether an edge leads from a to one of the nodes in list.
func (w *waits) through(list []int32, a int32) bool {
	for _, b := range list[:min(len(list), fewEdges)] {
		if row := w.into(b); w.rank[b] > w.rank[a] && len(row) <= fewEdges && slices.Contains(row, a) {
			return true
		}
	}
	return false
}

// throughSecond is through for the commands of the second replay for which command i of that replay
// waits.
func (w *waits) throughSecond(i, a int32) bool {
	list := w.into(i)
	for _, b := range list[:min(len(list), fewEdges)] {
		if w.isJoin(b) {
			continue
		}
		if row := w.into(w.n + b); len(row) <= fewEdges && slices.Contains(row, a) {
			return true
		}
	}
	return false
}

// tree holds the nodes by rank. The parent of each is the latest node for which it waits, and a
// jump leads further up, so that finding whether one node is above another takes time logarithmic
// in its depth (skew-binary jump pointers, Myers 1983).
type tree struct{ parent, jump, depth []int32 }

func newTree(nodes int) *tree {
	t := &tree{parent: make([]int32, nodes), jump: make([]int32, nodes), depth: make([]int32, nodes)}
	for i := range t.parent {
		t.parent[i], t.jump[i] = -1, int32(i)
	}
	return t
}

// add puts node below row[0], the latest node for which it waits. Ranks in row count from from.
func (t *tree) add(node int32, row, rank []int32, from int32) {
	if len(row) == 0 {
		return
	}
	p := from + rank[row[0]]
	t.parent[node], t.depth[node], t.jump[node] = p, t.depth[p]+1, p
	if j := t.jump[p]; t.depth[p]-t.depth[j] == t.depth[j]-t.depth[t.jump[j]] {
		t.jump[node] = t.jump[j]
	}
}

// over reports whether the node of rank a is a node of row, or lies above one. Ranks in row count
// from from.
func (t *tree) over(a int32, row, rank []int32, from int32) bool {
	for _, b := range row {
		v := from + rank[b]
		for t.depth[v] > t.depth[a] {
			if j := t.jump[v]; t.depth[j] >= t.depth[a] && j != v {
				v = j
			} else {
				v = t.parent[v]
			}
		}
		if v == a {
			return true
		}
	}
	return false
}

// ids returns the ID of each command, and new IDs for the kept joins.
func (w *waits) ids() []ir.ID {
	ids := make([]ir.ID, len(w.place))
	used := make(map[ir.ID]bool, w.n)
	next := ir.ID(0)
	for i := range w.n {
		ids[i] = w.t.Node(int(i)).Num()
		used[ids[i]] = true
		if ids[i] >= next && ids[i] < math.MaxUint32 {
			next = ids[i] + 1
		}
	}
	for _, j := range w.joins {
		for used[next] { // only if a command has the max ID
			next++
		}
		ids[j] = next
		next++
	}
	return ids
}
