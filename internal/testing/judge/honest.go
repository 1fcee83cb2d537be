package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// This file rewrites graphs as an honest optimizer does, based only on the judge's own
// lowering. What it makes should be harmless, and is judged like everything else.

// honest returns a mutation that makes a rewrite which keeps the meaning.
func honest(name string, edit func(*rand.Rand, *ir.Graph) bool) Mutation {
	m := mutation(name, edit)
	m.Honest = true
	return m
}

// world is a graph with its commands for every valuation of the params.
type world struct {
	g     *ir.Graph
	at    []int        // the positions of the commands in g.Nodes
	by    [][]*command // by valuation, then by command
	whole bool         // `by` holds every valuation that there is
	unit  int64        // divides every boundary
}

// mostValuations bounds what a world looks at. If there are more, ranges that depend on
// params are taken to conflict.
const mostValuations = 12

func newWorld(g *ir.Graph) *world {
	x := &world{g: g, at: indices(g, isCommand)}
	vs := valuations(g, mostValuations+1, rand.New(rand.NewPCG(1, 1)))
	x.whole = len(vs) > 0 && len(vs) <= mostValuations
	if len(vs) == 0 { // no values are admitted, so any will do
		vs = [][]uint32{make([]uint32, len(g.Params))}
	}
	l := newBareLowerer(g)
	u := unitFinder{}
	for _, v := range vs {
		x.by = append(x.by, l.commands(v))
		u.add(l.commands(v))
	}
	x.unit = max(u.unit, 1)
	return x
}

// conflict reports whether two commands conflict for some values of the params: the
// same values for both or, with across, any values for each.
func (x *world) conflict(i, j int, across bool) bool {
	if !x.whole && (moves(x.g.Nodes[x.at[i]]) || moves(x.g.Nodes[x.at[j]])) {
		return true
	}
	for v := range x.by {
		for w := range x.by {
			if (across || v == w) && conflict(x.by[v][i], x.by[w][j]) {
				return true
			}
		}
	}
	return false
}

// moves reports whether what a command touches depends on params.
func moves(n ir.Node) bool {
	for _, v := range views(n) {
		if !v.Off.IsConst() || !v.Len.IsConst() {
			return true
		}
	}
	if d, ok := n.(*ir.Dispatch); ok {
		for _, r := range regions(d.Effects) {
			if !r.IsConst() {
				return true
			}
		}
		for _, e := range d.Grid {
			if !e.IsConst() {
				return true
			}
		}
	}
	return false
}

// closed reports that no command of a replay conflicts with one of the next replay,
// other than what the graph's own order keeps apart. Within a replay everything must be
// ordered.
func (x *world) closed() bool {
	rel := happensBefore(x.g, 3, Options{})
	n := len(x.at)
	for later := 1; later < 3; later++ {
		for i := range n {
			for j := range n {
				if !rel.after[i][later*n+j] && x.conflict(i, j, true) {
					return false
				}
			}
		}
	}
	return true
}

// PlaceBarriers drops every barrier, makes every commit an event, and places a barrier
// wherever a command conflicts with one since the last mark, and one more at the end if
// the next replay needs it.
func PlaceBarriers(g *ir.Graph) {
	g.SetOrdering(ir.ByBarriers)
	x := newWorld(g)
	var out []ir.Node
	var epoch []int
	k := 0
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			continue
		case *ir.Commit:
			if n.Order == ir.OrderNone {
				n.Order = ir.OrderEvent
			}
			epoch = epoch[:0]
		default:
			if !isCommand(n) {
				break
			}
			if slices.ContainsFunc(epoch, func(i int) bool { return x.conflict(i, k, false) }) {
				out = append(out, &ir.Barrier{})
				epoch = epoch[:0]
			}
			epoch = append(epoch, k)
			k++
		}
		out = append(out, n)
	}
	g.Nodes = out
	if !newWorld(g).closed() {
		g.Nodes = append(g.Nodes, &ir.Barrier{})
	}
}

func honestBarriers(rng *rand.Rand, g *ir.Graph) bool {
	PlaceBarriers(g)
	if rng.IntN(3) == 0 {
		insert(g, rng.IntN(len(g.Nodes)+1), &ir.Barrier{})
	}
	return true
}

// honestOrder draws an order of the commands in which conflicting commands keep their
// order, cuts it into command buffers at random, and places barriers.
func honestOrder(rng *rand.Rand, g *ir.Graph) bool {
	g.SetOrdering(ir.ByBarriers)
	x := newWorld(g)
	n := len(x.at)
	waits := make([]int, n)
	next := make([][]int, n)
	for i := range n {
		for j := i + 1; j < n; j++ {
			if x.conflict(i, j, false) {
				waits[j]++
				next[i] = append(next[i], j)
			}
		}
	}
	old := g.Nodes
	var ready []int
	for i := range n {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	g.Nodes = nil
	moved := false
	for len(ready) > 0 {
		k := rng.IntN(len(ready))
		i := ready[k]
		ready = slices.Delete(ready, k, k+1)
		moved = moved || i != len(g.Nodes)
		g.Nodes = append(g.Nodes, old[x.at[i]])
		for _, j := range next[i] {
			if waits[j]--; waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	for range rng.IntN(3) {
		insert(g, 1+rng.IntN(len(g.Nodes)), &ir.Commit{Order: ir.OrderFence + ir.CommitOrder(rng.IntN(2))})
	}
	PlaceBarriers(g)
	return n > 1
}

// cellsOf calls yield with each cell, of unit bytes, of the areas, except for cells of
// weights, which nothing changes.
func (x *world) cellsOf(areas []area, yield func(byteAt)) {
	for _, a := range areas {
		for _, r := range a.runs {
			if x.g.Memories[r.mem].Kind == ir.Weight {
				break
			}
			for b := r.lo; b < r.hi; b += x.unit {
				yield(byteAt{r.mem, b})
			}
		}
	}
}

// dead lists the commands whose bytes are never seen by an output, a state or a live
// command, for any value of the params.
func (x *world) dead() (out []int) {
	needed := make([]bool, len(x.at))
	for _, cs := range x.by {
		live := map[byteAt]bool{}
		everything := false // a command of unknown effects follows
		for i := len(cs) - 1; i >= 0; i-- {
			c := cs[i]
			lives := everything || c.unknown
			x.cellsOf(c.writes, func(p byteAt) {
				switch x.g.Memories[p.mem].Kind {
				case ir.Output, ir.State, ir.Input: // what is carried to an input is seen by the next replay
					v, known := live[p]
					lives = lives || v || !known
				default:
					lives = lives || live[p]
				}
			})
			if !lives {
				continue
			}
			needed[i] = true
			everything = everything || c.unknown
			for _, w := range c.writes {
				x.cellsOf([]area{w}, func(p byteAt) { live[p] = !w.must || w.atomic })
			}
			x.cellsOf(c.reads, func(p byteAt) { live[p] = true })
		}
	}
	for i, ok := range needed {
		if !ok {
			out = append(out, i)
		}
	}
	return out
}

func honestDead(rng *rand.Rand, g *ir.Graph) bool {
	x := newWorld(g)
	if !x.whole {
		return false
	}
	dead := x.dead()
	if len(dead) == 0 {
		return false
	}
	if rng.IntN(2) == 0 { // drop only some, the last ones first, because an earlier command may feed a later one
		dead = dead[rng.IntN(len(dead)):]
	}
	for _, i := range slices.Backward(dead) {
		g.Nodes = slices.Delete(g.Nodes, x.at[i], x.at[i]+1)
	}
	if rng.IntN(2) == 0 {
		PlaceBarriers(g)
	}
	return true
}

// scratchValue is a constant range of scratch memory that a command writes as a whole, with
// the commands that touch it until it is written as a whole again.
type scratchValue struct {
	root   ir.MemID
	lo, hi int64
	users  []int // the commands, ascending, the writer first
	last   int   // the command before which other contents may take the place
}

// values lists those values in scratch memory of which commands name the whole or parts
// only.
func (x *world) values() (out []scratchValue) {
	for i, at := range x.at {
		v, ok := writtenScratch(x.g, x.g.Nodes[at])
		if !ok || !v.Off.IsConst() || !v.Len.IsConst() || x.by[0][i].unknown {
			continue
		}
		root, off := x.g.Root(v.Mem)
		u := scratchValue{root: root, lo: off + v.Off.Const, hi: off + v.Off.Const + v.Len.Const, last: len(x.at)}
		if !covers(x.by[0][i].writes, u) || touches(x.by[0][i].reads, u) {
			continue
		}
		good := true
	scan:
		for k := i; k < len(x.at); k++ {
			if k > i && covers(x.by[0][k].writes, u) && !touches(x.by[0][k].reads, u) {
				u.last = k
				break scan
			}
			used := false
			for _, w := range views(x.g.Nodes[x.at[k]]) {
				r, o := x.g.Root(w.Mem)
				lo, hi, ok := x.g.Range(w.Off.AddConst(o))
				_, end, ok2 := x.g.Range(w.End().AddConst(o))
				if r != u.root || ok && lo >= u.hi || ok2 && end <= u.lo {
					continue
				}
				used = true
				// A view that effects leave out stays where it is.
				good = good && x.by[0][k].touches(run{mem: r, lo: lo, hi: lo + w.Len.Const})
				good = good && ok && ok2 && lo == hi && w.Len.IsConst() && lo >= u.lo && end <= u.hi
			}
			if used {
				u.users = append(u.users, k)
				for v := range x.by { // what is touched must lie in a view that moves along
					good = good && !x.by[v][k].unknown && inViews(x.g.Nodes[x.at[k]], x.by[v][k], u)
				}
			} else {
				good = good && !x.by[0][k].unknown && !touches(x.by[0][k].reads, u) && !touches(x.by[0][k].writes, u)
			}
		}
		if good {
			out = append(out, u)
		}
	}
	return out
}

func touches(areas []area, u scratchValue) bool {
	for _, a := range areas {
		for _, r := range a.runs {
			if r.mem == u.root && r.lo < u.hi && u.lo < r.hi {
				return true
			}
		}
	}
	return false
}

// covers reports whether there is a must-write of all of u in one run.
func covers(areas []area, u scratchValue) bool {
	for _, a := range areas {
		for _, r := range a.runs {
			if a.must && !a.atomic && r.mem == u.root && r.lo <= u.lo && r.hi >= u.hi {
				return true
			}
		}
	}
	return false
}

// inViews reports whether everything that a command touches of u lies in one of its
// views.
func inViews(n ir.Node, c *command, u scratchValue) bool {
	for _, as := range [2][]area{c.reads, c.writes} {
		for _, a := range as {
			if touches([]area{a}, u) && is[*ir.Dispatch](n) && a.slot < 0 {
				return false
			}
		}
	}
	return true
}

// busy reports whether bytes [lo, hi) of root are touched by a command during the life
// of u, or hold something that is read after u has lain there.
func (x *world) busy(u scratchValue, root ir.MemID, lo, hi int64) bool {
	there := scratchValue{root: root, lo: lo, hi: hi}
	last := u.users[len(u.users)-1]
	for _, cs := range x.by {
		gone := false // the old contents are written anew, as a whole, before they are read
		for k := u.users[0]; k < len(cs); k++ {
			if cs[k].unknown {
				return true
			}
			if k <= last {
				if touches(cs[k].reads, there) || touches(cs[k].writes, there) {
					return true
				}
				continue
			}
			if !gone && touches(cs[k].reads, there) || !gone && touches(cs[k].writes, there) && !covers(cs[k].writes, there) {
				return true
			}
			gone = gone || covers(cs[k].writes, there)
		}
	}
	return false
}

// moveValue moves u to byte off of memory `to`.
func (x *world) moveValue(u scratchValue, to ir.MemID, off int64) {
	for _, k := range u.users {
		eachPlace(x.g.Nodes[x.at[k]], func(m *ir.MemID, at *ir.Affine) {
			r, o := x.g.Root(*m)
			if lo := at.AddConst(o); r == u.root && lo.IsConst() && lo.Const >= u.lo && lo.Const < u.hi {
				*m, *at = to, ir.Const(off+lo.Const-u.lo)
			}
		})
	}
}

// honestRename moves values of scratch memory into new memory or to where nothing
// lives, and places barriers anew.
func honestRename(rng *rand.Rand, g *ir.Graph) bool {
	done := false
	for range 1 + rng.IntN(3) {
		x := newWorld(g)
		if !x.whole {
			return false
		}
		u, ok := pick(rng, x.values())
		if !ok {
			break
		}
		if rng.IntN(2) == 0 {
			g.Memories = append(g.Memories, ir.Memory{Name: fmt.Sprintf("fresh%d", len(g.Memories)), Kind: ir.Scratch, Size: u.hi - u.lo, Alias: ir.NoMem})
			x.moveValue(u, ir.MemID(len(g.Memories)-1), 0)
			done = true
			continue
		}
		if to, off, ok := x.placeFor(rng, u, false); ok {
			x.moveValue(u, to, off)
			done = true
		}
	}
	if done {
		PlaceBarriers(g)
	}
	return done
}

// placeFor draws a place in scratch memory for u which is free while u lives or, with
// live, one that is not.
func (x *world) placeFor(rng *rand.Rand, u scratchValue, live bool) (ir.MemID, int64, bool) {
	type spot struct {
		m   ir.MemID
		off int64
	}
	var spots []spot
	unit := unitOf(x.g)
	for i := range x.g.Memories {
		m := &x.g.Memories[i]
		if m.Kind != ir.Scratch || m.Alias != ir.NoMem {
			continue
		}
		step := max(unit, m.Size/64/unit*unit)
		for off := int64(0); off+u.hi-u.lo <= m.Size; off += step {
			if (ir.MemID(i) != u.root || off != u.lo) && x.busy(u, ir.MemID(i), off, off+u.hi-u.lo) == live {
				spots = append(spots, spot{ir.MemID(i), off})
			}
		}
	}
	s, ok := pick(rng, spots)
	return s.m, s.off, ok
}

// renameLive moves a value to where another value lives, and places barriers correctly
// for that.
func renameLive(rng *rand.Rand, g *ir.Graph) bool {
	x := newWorld(g)
	u, ok := pick(rng, x.values())
	if !ok || len(u.users) < 2 {
		return false
	}
	to, off, ok := x.placeFor(rng, u, true)
	if !ok {
		return false
	}
	x.moveValue(u, to, off)
	if rng.IntN(2) == 0 {
		PlaceBarriers(g)
	}
	return true
}

// honestAll applies all honest rewrites, one after another.
func honestAll(rng *rand.Rand, g *ir.Graph) bool {
	done := false
	if rng.IntN(2) == 0 {
		done = honestDead(rng, g)
	}
	if rng.IntN(2) == 0 {
		done = honestRename(rng, g) || done
	}
	if rng.IntN(2) == 0 {
		done = honestOrder(rng, g) || done
	}
	if !done {
		PlaceBarriers(g)
	}
	return true
}
