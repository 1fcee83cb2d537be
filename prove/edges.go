package prove

import (
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/reach"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Order by edges: every conflict must lie on a path of edges. An access conflicts with
// the last write of each byte that it touches and, if it writes, also with the reads
// since then. Everything older is ordered before those already. So a path is required
// for each piece of memory that an access meets. The list is then gone through a second
// time, as the next replay.
//
// If many commands write what many others read as a whole, or the other way round, the
// edges pass through a join. Once the join is known to wait for all commands of one
// side, a path from the join is required in place of a path from each of them.

// paths goes through the commands of a graph, once for each replay. Each replay is
// called a run here; command i of run r is turn r·len(ops) + i.
type paths struct {
	*schedule
	m      *model
	index  *reach.Index
	places []int32 // by op: its position in the list of nodes
	ops    int32

	cells   []interval.Partition[cell] // by memory: the flat accesses
	readers []reader
	shaped  []interval.Tree[int32] // by memory: the other accesses, as positions in held
	held    []held
	latest  map[int32]int32 // by shape: the position in held of the last read of it in this run
	changes []int32         // by memory: how many writes were noted so far
	wide    map[wideKey]*wideRead

	asked []asked
	nodes []int32
	looks int // pieces of memory that were compared so far

	// A pillar is a command whose effects are not known, so that it must be ordered with
	// every other command. pillars lists the latest ones, back to the last pillar that is
	// ordered after everything before it, and since lists all turns from that one on. pairs
	// counts the pairs that were compared because one of the two is a pillar.
	pillars, since []int32
	pairs          int
}

// cell says who wrote some bytes last, and who has read them since.
type cell struct {
	write int32 // 1 + the turn; 0: nobody
	reads int32 // 1 + the first of a list in paths.readers; 0: nobody
}

// reader is an element of a linked list. The lists of several cells may share their
// ends.
type reader struct{ turn, next int32 }

// held is an access that is not kept in cells: one that is not flat, or a flat read of
// many pieces.
type held struct {
	access
	turn  int32
	write bool
	gone  bool // overwritten or replaced: later commands need not look at it
	// readers, if not nil, are all commands that read a flat range of many pieces; turn
	// means nothing then.
	readers *readers
}

// wideKey is a flat range that consists of many pieces.
type wideKey struct {
	mem     ir.MemID
	lo, end int64
}

// manyPieces is the number of pieces from which on the readers of a range are kept
// together.
const manyPieces = 64

// wideRead is what is known of a range that was read as a whole.
type wideRead struct {
	// Whoever waits for the gates waits for all writers of the range. This holds only
	// if known is set and the memory was written `changes` times, and for readers of
	// the same run only.
	gates   []int32
	known   bool
	changes int32
	// held is the position in paths.held of the readers since the last write that
	// covered the whole range; −1: there are none.
	held int32
}

// readers is a group of commands that read the same range; older are the groups before
// it.
type readers struct {
	turns []int32
	gates []int32 // whoever waits for these waits for this group and all older ones; nil: not known
	older *readers
}

// last returns the latest command of the group, or of the older groups if it is empty.
func (r *readers) last() int32 {
	if n := len(r.turns); n > 0 {
		return r.turns[n-1]
	}
	return r.older.last()
}

// asked is a conflict with an earlier turn. A path must lead from that turn to the current one.
type asked struct {
	turn int32
	a    *access // the access of the later command; nil if one of the two commands is a pillar
	with access
}

// beside is a pair of commands that no known path orders.
type beside struct{ earlier, later int32 }

// orderByEdges finds the conflicting pairs of commands that the edges of a graph do not
// order.
func orderByEdges(m *model) *schedule {
	runs := 2
	if m.g.NextHost {
		runs = 1
	}
	n := len(m.g.Memories)
	p := &paths{
		schedule: &schedule{}, m: m, index: reach.New(m.g, runs), places: make([]int32, len(m.ops)), ops: int32(len(m.ops)),
		cells: make([]interval.Partition[cell], n), shaped: make([]interval.Tree[int32], n), latest: map[int32]int32{},
		changes: make([]int32, n), wide: map[wideKey]*wideRead{},
	}
	p.schedule.paths = p
	for k, i := range m.at {
		if i >= 0 {
			p.places[i] = int32(k)
		}
	}
	for r := range runs {
		clear(p.latest)
		for _, w := range p.wide { // in another run the params may have other values
			w.known = false
		}
		for i := range p.ops {
			interrupt.Poll(m.ctx)
			if len(p.races) >= maxFindings || p.undecided {
				return p.schedule // more findings would change nothing
			}
			p.step(int32(r)*p.ops + i)
		}
	}
	return p.schedule
}

func (p *paths) op(turn int32) *op { return &p.m.ops[turn%p.ops] }

// node returns the node of a turn in the reachability index.
func (p *paths) node(turn int32) int32 {
	return turn/p.ops*int32(len(p.m.g.Nodes)) + p.places[turn%p.ops]
}

// sameRun reports whether two turns belong to one replay.
func (p *paths) sameRun(t, u int32) bool { return t/p.ops == u/p.ops }

// ordered reports whether a path leads from command i to command j, which is later in
// the same replay.
func (p *paths) ordered(i, j int32) bool {
	path, decided := p.index.Path(p.places[i], p.places[j])
	p.undecided = p.undecided || !decided
	return path
}

// step requires paths for all conflicts of turn t with earlier turns, and then notes its
// accesses.
func (p *paths) step(t int32) {
	o := p.op(t)
	p.asked = p.asked[:0]
	if o.known {
		for k := o.rlo; k < o.rhi; k++ {
			p.look(t, &p.m.reads[k], false)
		}
		for k := o.wlo; k < o.whi; k++ {
			p.look(t, &p.m.writes[k].access, true)
		}
		p.ask(t)
		for k := o.rlo; k < o.rhi; k++ {
			p.read(t, &p.m.reads[k])
		}
		for k := o.wlo; k < o.whi; k++ {
			p.write(t, &p.m.writes[k].access)
		}
	}
	p.pillar(t)
}

// look collects in asked the conflicts of access a, which turn t makes.
func (p *paths) look(t int32, a *access, write bool) {
	m := p.m
	if m.readOnly(a.mem) || m.void(a) {
		return
	}
	meet := func(turn int32, with *access) {
		if turn == t || turn >= p.ops && p.sameRun(turn, t) {
			return // two commands of the second run were compared in the first
		}
		p.asked = append(p.asked, asked{turn, a, *with})
	}
	apart := func(with *access, turn int32) bool {
		if p.looked(t, turn); a.flat() && with.flat() {
			return false
		}
		if turn >= 0 && p.sameRun(turn, t) {
			return m.apart(a, with)
		}
		return m.apartAlways(a, with)
	}
	first := len(p.asked)
	w := p.wide[wideKey{a.mem, a.lo, a.end}]
	if w != nil && (write || !a.flat()) {
		w = nil
	}
	if w != nil && w.known && w.changes == p.changes[a.mem] && p.behind(w.gates, t) {
		return
	}
	reader := int32(-1) // the last reader of a range that contains all of a
	p.shaped[a.mem].Overlapping(a.lo, a.end, func(k int32) bool {
		h := &p.held[k]
		switch {
		case h.gone || !write && !h.write:
		case h.readers != nil:
			if apart(&h.access, -1) {
				break
			}
			p.lookReaders(t, a, h)
			if last := h.readers.last(); a.flat() && h.lo <= a.lo && a.end <= h.end {
				reader = max(reader, last)
			}
		case !apart(&h.access, h.turn):
			meet(h.turn, &h.access)
		}
		return !p.undecided
	})
	p.cells[a.mem].Each(a.lo, a.end, func(lo, end int64, c cell) bool {
		if p.undecided {
			return false
		}
		with := access{lo: lo, end: end, mem: a.mem}
		// The last writer comes before those who read its result, and they come before
		// this write.
		if write && a.flat() && (c.reads > 0 || c.write-1 < reader) {
			c.write = 0
		}
		if c.write > 0 && !apart(&with, c.write-1) {
			meet(c.write-1, &with)
		}
		for k := c.reads; write && k > 0; k = p.readers[k-1].next {
			if turn := p.readers[k-1].turn; !apart(&with, turn) {
				meet(turn, &with)
			}
		}
		return true
	})
	if n := len(p.asked) - first; w != nil && (n == 0 || n >= manyPieces) {
		w.changes = p.changes[a.mem]
		if w.gates, w.known = p.gates(t, p.asked[first:], nil); w.known {
			p.asked = p.asked[:first]
		}
	}
}

// looked counts a piece of memory that turn t and another turn touch. All turns together share the
// bound on the steps of comparisons ([model.afford]). Beyond it the proof is undecided.
func (p *paths) looked(t, other int32) {
	if p.looks++; !p.m.afford(1) && !p.undecided {
		p.undecided, p.doubt = true, beside{max(other, 0) % p.ops, t % p.ops}
	}
}

// behind reports whether turn t is known to be ordered after all the nodes.
func (p *paths) behind(nodes []int32, t int32) bool {
	missing, decided := p.index.Missing(nodes, p.node(t))
	return decided && len(missing) == 0
}

// gates returns joins that turn t waits for and which together wait for all of list and
// of the nodes in also. found is false if there are no such joins.
func (p *paths) gates(t int32, list []asked, also []int32) (gates []int32, found bool) {
	left := slices.Clone(also)
	for i := range list {
		left = append(left, p.node(list[i].turn))
	}
	const tries = 4
	into, n := p.index.Into(p.node(t)), 0
	for k := len(into) - 1; k >= 0 && n < tries && len(left) > 0; k-- {
		g := into[k]
		if _, join := p.m.g.Nodes[int(g)%len(p.m.g.Nodes)].(*ir.Join); !join {
			continue
		}
		n++
		before := slices.DeleteFunc(slices.Clone(left), func(x int32) bool { return x >= g }) // a path leads forward only
		missing, decided := p.index.Missing(before, g)
		if !decided || len(missing) == len(before) {
			continue
		}
		gates = append(gates, g)
		still := map[int32]bool{}
		for _, x := range missing {
			still[x] = true
		}
		left = slices.DeleteFunc(left, func(x int32) bool { return x == g || x < g && !still[x] })
	}
	return gates, len(left) == 0
}

// lookReaders collects in asked the conflicts of write a of turn t with those who read
// a range as a whole.
func (p *paths) lookReaders(t int32, a *access, h *held) {
	first := len(p.asked)
	c, older := h.readers, []int32(nil)
	for ; c != nil; c = c.older {
		if c.gates != nil && p.behind(c.gates, t) {
			older = c.gates
			break
		}
		for _, u := range c.turns {
			if u == t || u >= p.ops && p.sameRun(u, t) {
				continue // two commands of the second run were compared in the first
			}
			if p.looked(t, u); p.undecided {
				return
			}
			p.asked = append(p.asked, asked{u, a, h.access})
		}
	}
	if len(p.asked)-first < manyPieces || h.readers.gates != nil {
		return
	}
	if gates, found := p.gates(t, p.asked[first:], older); found {
		h.readers.gates = gates
		p.asked = p.asked[:first]
	}
}

// ask requires a path for each collected conflict of turn t. Conflicts without a path are noted as
// races.
func (p *paths) ask(t int32) {
	missing := p.missing(t)
	if len(missing) == 0 {
		return
	}
	var worst [2]*race // the worst race within the replay, and the worst around its end
	for k := range p.asked {
		q := &p.asked[k]
		around := !p.sameRun(q.turn, t)
		w := &worst[0]
		if around {
			w = &worst[1]
		}
		if !p.isMissing(missing, q.turn) || *w != nil && ((*w).sure || p.m.meetings >= mostMeetings) {
			continue
		}
		if sure := p.m.meet(q.a, &q.with, around); *w == nil || sure {
			*w = &race{op: t % p.ops, with: q.turn % p.ops, where: q.a, sure: sure}
		}
	}
	for k, list := range []*[]race{&p.races, &p.around} {
		if worst[k] != nil && len(*list) < maxFindings {
			*list = append(*list, *worst[k])
		}
	}
}

// missing returns, in ascending order, the nodes among the collected conflicts from
// which no path leads to turn t.
func (p *paths) missing(t int32) []int32 {
	p.nodes = p.nodes[:0]
	for k := range p.asked {
		p.nodes = append(p.nodes, p.node(p.asked[k].turn))
	}
	if len(p.nodes) == 0 {
		return nil
	}
	missing, decided := p.index.Missing(p.nodes, p.node(t))
	if !decided && !p.undecided {
		p.undecided = true
		p.doubt = beside{p.asked[0].turn % p.ops, t % p.ops}
	}
	if !decided {
		return nil
	}
	slices.Sort(missing)
	return missing
}

// isMissing reports whether turn u is among the nodes that [paths.missing] found.
func (p *paths) isMissing(missing []int32, u int32) bool {
	_, found := slices.BinarySearch(missing, p.node(u))
	return found
}

// read notes a read whose order has been checked.
func (p *paths) read(t int32, a *access) {
	if p.m.readOnly(a.mem) || p.m.void(a) {
		return
	}
	if a.flat() && p.readWide(t, a) {
		return
	}
	if a.flat() {
		p.cells[a.mem].Update(a.lo, a.end, func(c cell) cell {
			if c.reads > 0 && p.readers[c.reads-1].turn == t {
				return c
			}
			p.readers = append(p.readers, reader{t, c.reads})
			c.reads = int32(len(p.readers))
			return c
		})
		return
	}
	// An earlier read of the same region with a path to this one is covered by this
	// one.
	if k, ok := p.latest[a.shape]; ok && p.held[k].turn != t {
		if path, _ := p.index.Path(p.node(p.held[k].turn), p.node(t)); path {
			p.held[k].gone = true
		}
	}
	p.latest[a.shape] = p.hold(t, a, false)
}

// readWide notes a flat read of many pieces. It returns false, and does nothing, if the
// read has few.
func (p *paths) readWide(t int32, a *access) bool {
	key := wideKey{a.mem, a.lo, a.end}
	w := p.wide[key]
	if w == nil {
		n := 0
		p.cells[a.mem].Each(a.lo, a.end, func(int64, int64, cell) bool {
			n++
			return n < manyPieces
		})
		if n < manyPieces {
			return false
		}
		w = &wideRead{held: -1}
		p.wide[key] = w
	}
	if w.held < 0 || p.held[w.held].gone {
		w.held = p.hold(t, a, false)
		p.held[w.held].readers = &readers{}
	}
	h := &p.held[w.held]
	if h.readers.gates != nil {
		h.readers = &readers{older: h.readers}
	}
	h.readers.turns = append(h.readers.turns, t)
	return true
}

// write notes a write whose order has been checked, and forgets the accesses that it
// covers.
func (p *paths) write(t int32, a *access) {
	if p.m.readOnly(a.mem) || p.m.void(a) {
		return
	}
	p.changes[a.mem]++
	p.shaped[a.mem].Overlapping(a.lo, a.end, func(k int32) bool {
		h := &p.held[k]
		if !h.gone && (h.turn != t || h.readers != nil) {
			p.looked(t, h.turn)
			// in another run the params may have other values
			h.gone = (a.flat() || p.sameRun(h.turn, t)) && p.m.covers(a, &h.access)
		}
		return true
	})
	if a.flat() {
		p.cells[a.mem].Set(a.lo, a.end, cell{write: t + 1})
		return
	}
	p.hold(t, a, true)
}

// hold keeps an access in held and returns its position.
func (p *paths) hold(t int32, a *access, write bool) int32 {
	k := int32(len(p.held))
	p.held = append(p.held, held{access: *a, turn: t, write: write})
	tree := &p.shaped[a.mem]
	if n := tree.Len(); n >= 64 && n&(n-1) == 0 { // at each doubling, drop those that are gone
		var left []int32
		tree.Overlapping(-1<<62, 1<<62, func(k int32) bool {
			if !p.held[k].gone {
				left = append(left, k)
			}
			return true
		})
		tree.Reset()
		for _, k := range left {
			tree.Insert(p.held[k].lo, p.held[k].end, k)
		}
	}
	tree.Insert(a.lo, a.end, k)
	return k
}

// pillar requires paths between turn t and earlier turns if one of the two is a pillar. If a pillar
// is ordered after everything before it, commands before it need no path of their own.
func (p *paths) pillar(t int32) {
	o := p.op(t)
	with := p.pillars
	if !o.known {
		with = p.since
	}
	p.asked = p.asked[:0]
	for _, u := range with {
		p.asked = append(p.asked, asked{turn: u})
	}
	p.since = append(p.since, t)
	if p.pairs += len(with); p.pairs > maxPairs {
		p.pillars, p.since = nil, nil
		if !p.undecided {
			p.undecided, p.doubt = true, beside{with[0] % p.ops, t % p.ops}
		}
		return
	}
	missing := p.missing(t)
	if len(missing) > 0 {
		for k := range p.asked {
			u := p.asked[k].turn
			switch {
			case !p.isMissing(missing, u):
			case !p.sameRun(u, t):
				if len(p.around) < maxFindings {
					p.around = append(p.around, race{op: t % p.ops, with: u % p.ops, sure: true})
				}
			case t < p.ops:
				p.open = append(p.open, beside{u, t})
			}
		}
	}
	if o.known {
		return
	}
	if len(missing) == 0 && !p.undecided {
		p.pillars, p.since = p.pillars[:0], p.since[:0]
		p.since = append(p.since, t)
	}
	p.pillars = append(p.pillars, t)
}
