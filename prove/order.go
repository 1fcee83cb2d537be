package prove

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// pending is an access that is not yet ordered before the commands that follow. nr is its number
// among the model's reads or writes.
type pending struct {
	op, nr int32
	write  bool
}

// unordered holds the accesses of the commands that the next command may run
// concurrently with.
type unordered struct {
	m *model
	// By memory. Reads and writes are kept apart because reads conflict with writes
	// only: commands that all read the same bytes do not look at one another.
	reads, writes []interval.Tree[pending]
	touched       []ir.MemID
	// last is a command of known effects whose accesses have not been put into the
	// trees yet, or −1. In an epoch of one command they never are.
	last   int32
	pillar int32 // a pillar among the commands, or −1
	any    int32 // one of the commands, or −1
	polls  interrupt.Every
}

func newUnordered(m *model) *unordered {
	return &unordered{m: m, reads: make([]interval.Tree[pending], len(m.g.Memories)), writes: make([]interval.Tree[pending], len(m.g.Memories)), last: -1, pillar: -1, any: -1}
}

func (u *unordered) reset() {
	for _, m := range u.touched {
		u.reads[m].Reset()
		u.writes[m].Reset()
	}
	u.touched, u.last, u.pillar, u.any = u.touched[:0], -1, -1, -1
}

func (u *unordered) add(i int32) {
	u.insertLast()
	u.any = i
	if u.m.ops[i].known {
		u.last = i
	} else {
		u.pillar = i
	}
}

func (u *unordered) insertLast() {
	i := u.last
	if i < 0 {
		return
	}
	u.last = -1
	o := &u.m.ops[i]
	for k := o.rlo; k < o.rhi; k++ {
		u.insert(&u.m.reads[k], pending{i, k, false})
	}
	for k := o.wlo; k < o.whi; k++ {
		u.insert(&u.m.writes[k].access, pending{i, k, true})
	}
}

func (u *unordered) insert(a *access, p pending) {
	if u.m.readOnly(a.mem) || u.m.void(a) {
		return
	}
	if u.reads[a.mem].Len()+u.writes[a.mem].Len() == 0 {
		u.touched = append(u.touched, a.mem)
	}
	if p.write {
		u.writes[a.mem].Insert(a.lo, a.end, p)
	} else {
		u.reads[a.mem].Insert(a.lo, a.end, p)
	}
}

func (u *unordered) access(p pending) *access {
	if p.write {
		return &u.m.writes[p.nr].access
	}
	return &u.m.reads[p.nr]
}

// within finds a command of the same replay that op i conflicts with. Both have known
// effects. ok is false if there is none.
func (u *unordered) within(i int32) (r race, ok bool) { return u.conflict(i, false) }

// around finds a command of the replay before that op i conflicts with. ok is false if
// there is none.
func (u *unordered) around(i int32) (r race, ok bool) {
	switch {
	case u.pillar >= 0:
		return race{op: i, with: u.pillar, sure: true}, true
	case !u.m.ops[i].known:
		return race{op: i, with: u.any, sure: true}, true
	}
	return u.conflict(i, true)
}

// conflict compares the accesses of op i with the held accesses. always says that they belong to
// different replays. It prefers a race that certainly happens for some values of the params.
func (u *unordered) conflict(i int32, always bool) (r race, ok bool) {
	u.insertLast()
	r.op = i
	o := &u.m.ops[i]
	for k := o.rlo; k < o.rhi && !r.sure; k++ {
		ok = u.look(&u.m.reads[k], false, always, &r) || ok
	}
	for k := o.wlo; k < o.whi && !r.sure; k++ {
		ok = u.look(&u.m.writes[k].access, true, always, &r) || ok
	}
	return r, ok
}

// look compares one access. It puts the race found into r, and reports whether there
// was one.
func (u *unordered) look(a *access, write, always bool, r *race) (found bool) {
	if u.reads[a.mem].Len()+u.writes[a.mem].Len() == 0 || u.m.void(a) {
		return false
	}
	apart := u.m.apart
	if always {
		apart = u.m.apartAlways
	}
	each := func(p pending) bool {
		u.polls.Poll(u.m.ctx, 64)
		if !u.m.afford(1) {
			panic(crowd{u.m, a})
		}
		if apart(a, u.access(p)) {
			return true
		}
		found = true
		r.sure = u.m.meet(a, u.access(p), always)
		if r.sure || r.where == nil {
			r.with, r.where = p.op, a
		}
		// If certain races cannot be found any more, one possible race is enough.
		return !r.sure && u.m.meetings < mostMeetings
	}
	u.writes[a.mem].Overlapping(a.lo, a.end, each)
	if write && !(found && (r.sure || u.m.meetings >= mostMeetings)) {
		u.reads[a.mem].Overlapping(a.lo, a.end, each)
	}
	return found
}

// race is a conflicting pair of commands that nothing orders.
type race struct {
	op, with int32
	where    *access // nil if one of the two may touch anything
	sure     bool    // for some values of the params they certainly share a byte
}

// verdict returns what a race means for the proof, and how to say in the message that
// the two commands touch the same bytes.
func (r *race) verdict() (v Verdict, touch string) {
	if r.sure {
		return Refused, "both touch"
	}
	return CannotTell, "may both touch"
}

// schedule lists the pairs of commands that conflict although the order of the graph does not order
// them.
type schedule struct {
	races    []race         // within a replay, between commands of known effects
	around   []race         // between a command and one of the replay before
	barriers int            // barriers that end an epoch
	places   []listPosition // by command, unless the graph is ordered by edges
	paths    *paths         // if the graph is ordered by edges
	open     []beside       // with paths: pairs of one replay without a path, of which one command is a pillar
	// undecided says that the search for a path ended at its bound; doubt is the first
	// such pair.
	undecided bool
	doubt     beside
}

// unordered reports whether commands i and j of one replay may run concurrently.
func (s *schedule) unordered(i, j int32) bool {
	if s.paths != nil {
		return !s.paths.ordered(min(i, j), max(i, j))
	}
	return s.places[i].unordered(s.places[j])
}

// listPosition counts what came before a command: barriers that end epochs, command
// buffers, and spans between two ordered commits. A new span is also a new buffer, and
// a new buffer is also a new epoch.
type listPosition struct{ epoch, buffer, span int32 }

// unordered reports whether commands at p and q of one replay may run concurrently.
func (p listPosition) unordered(q listPosition) bool {
	return p.span == q.span && (p.buffer != q.buffer || p.epoch == q.epoch)
}

// order finds the conflicting pairs that a graph does not order. A barrier orders the
// commands of its own command buffer only. A commit that orders nothing lets everything
// before it go on running. The end of the list is neither: the next replay may begin
// while this one still runs.
//
// In a serial graph nothing is unordered. Where the host waits between two replays,
// nothing is unordered between them.
func order(m *model) *schedule {
	if m.g.Ordering == ir.ByEdges {
		return orderByEdges(m)
	}
	s := &schedule{places: make([]listPosition, len(m.ops))}
	if m.g.Ordering == ir.Serial {
		for i := range s.places {
			s.places[i] = listPosition{int32(i), int32(i), int32(i)}
		}
		return s
	}
	var at listPosition
	epoch, open := newUnordered(m), newUnordered(m)
	var buffer []int32 // the commands of the current command buffer
	commits := false
	mark := func(n ir.Node) {
		switch n := n.(type) {
		case *ir.Barrier:
			at.epoch++
			epoch.reset()
		case *ir.Commit:
			commits = true
			at.epoch++
			at.buffer++
			epoch.reset()
			if n.Order != ir.OrderNone {
				at.span++
				open.reset()
			} else {
				for _, i := range buffer {
					open.add(i)
				}
			}
			buffer = buffer[:0]
		}
	}
	for k, n := range m.g.Nodes {
		i := m.at[k]
		if i < 0 {
			if _, ok := n.(*ir.Barrier); ok && epoch.any >= 0 {
				s.barriers++
			}
			mark(n)
			continue
		}
		s.places[i] = at
		if m.ops[i].known {
			s.races = appendRace(s.races, i, epoch, (*unordered).within)
			s.races = appendRace(s.races, i, open, (*unordered).within)
		}
		epoch.add(i)
		buffer = append(buffer, i)
	}
	if m.g.NextHost {
		return s
	}
	// Now the commands of the next replay, against what this one leaves unordered. The
	// params may have other values there.
	for k, n := range m.g.Nodes {
		// A barrier orders the commands of a buffer only before the rest of the same
		// buffer. If the buffer ends in a commit that orders nothing, they are
		// unordered again.
		if epoch.any < 0 && open.any < 0 && (len(buffer) == 0 || !commits) {
			break
		}
		if i := m.at[k]; i >= 0 {
			s.around = appendRace(s.around, i, epoch, (*unordered).around)
			s.around = appendRace(s.around, i, open, (*unordered).around)
		} else {
			mark(n)
		}
	}
	return s
}

// appendRace appends a race of op i with the commands in u, if there is one. It stops
// at maxFindings, because one race refuses a proof.
func appendRace(list []race, i int32, u *unordered, find func(*unordered, int32) (race, bool)) []race {
	if len(list) >= maxFindings || u.any < 0 {
		return list
	}
	if r, ok := find(u, i); ok {
		list = append(list, r)
	}
	return list
}

// checkOrder refuses races of A, within a replay and between two replays.
func (p *proof) checkOrder() {
	found := order(p.a)
	p.Barriers, p.Edges = found.barriers, len(p.a.g.Edges)
	if len(found.races) == 0 && len(found.around) == 0 && p.a.pillars == 0 && !found.undecided {
		return // nothing is left to compare with the recording
	}
	recorded := order(p.b)
	if found.undecided {
		w, o := p.a.ops[found.doubt.earlier].node, p.a.ops[found.doubt.later].node
		p.add(CannotTell, Order, nil, []ir.ID{w.Num(), o.Num()}, "whether a path of edges leads from %s to %s was not found within the bound", p.a.g.Describe(w), p.a.g.Describe(o))
	}
	for _, x := range found.races {
		o, w := &p.a.ops[x.op], &p.a.ops[x.with]
		v, touch := x.verdict()
		p.add(v, Order, nil, []ir.ID{w.id, o.id}, "%s and %s %s %s and nothing orders them", p.a.g.Describe(w.node), p.a.g.Describe(o.node), touch, p.a.format(x.where))
	}
	p.checkPillarOrder(recorded, found)
	if len(found.around) == 0 {
		return
	}
	single := submittedAlone(p.b.g)
	if len(recorded.around) > 0 && single {
		p.assume(Order, nil, "a replay begins after the one before it has ended")
		return
	}
	x := found.around[max(0, slices.IndexFunc(found.around, func(r race) bool { return r.sure }))]
	o, w := &p.a.ops[x.op], &p.a.ops[x.with]
	v, touch := x.verdict()
	where := "the same bytes"
	if x.where != nil {
		where = p.a.format(x.where)
	}
	why := "as the recording does"
	if !single {
		why = "and no host is between the replays of a burst"
	}
	p.add(v, Order, nil, []ir.ID{w.id, o.id}, "%s and %s of the next replay %s %s and nothing orders them, %s", p.a.g.Describe(w.node), p.a.g.Describe(o.node), touch, where, why)
}

// submittedAlone reports whether each replay of a graph is a submission of its own, so
// that the host may wait in between. A graph whose params advance, or which carries
// something, may be submitted as a burst, which is several
// replays in one submission.
func submittedAlone(g *ir.Graph) bool {
	for i := range g.Params {
		if g.Params[i].Advance != 0 {
			return false
		}
	}
	for _, n := range g.Nodes {
		if _, ok := n.(*ir.Carry); ok {
			return false
		}
	}
	return true
}

// maxPairs bounds the pairs that besidePillars and paths.pillar report.
const maxPairs = 1 << 22

// checkPillarOrder refuses pairs of commands, one of them a pillar, that A leaves
// unordered. If B leaves the images of the pair unordered too, the proof assumes
// instead that the recording has no race there. Every such pair is looked at: that B
// leaves one pair of an epoch unordered says nothing about the others.
func (p *proof) checkPillarOrder(before, after *schedule) {
	kept := func(i, j int32) bool {
		// A dead command need not have an image (findDead).
		return !p.dead[i] && !p.dead[j] && len(p.sets.of(i)) == 1 && len(p.sets.of(j)) == 1 &&
			before.unordered(p.sets.of(i)[0], p.sets.of(j)[0])
	}
	pairs, more := 0, 0
	after.besidePillars(p.a, func(i int32, lists [2][]int32) bool {
		o := &p.a.ops[i]
		if pairs += len(lists[0]) + len(lists[1]); pairs > maxPairs {
			p.add(CannotTell, Order, nil, []ir.ID{o.id}, "more than %d pairs of commands, one of them of unknown effects, are not ordered", maxPairs)
			return false
		}
		with := int32(-1) // the last command of the two lists, preferably a pillar
		refused := false
		for _, list := range lists {
			for _, j := range list {
				w := &p.a.ops[j]
				if !refused && !kept(i, j) {
					refused = true
					v := Refused
					if before.undecided {
						v = CannotTell
					}
					p.add(v, Order, nil, []ir.ID{w.id, o.id}, "%s and %s are not ordered, and the effects of one of them are unknown", p.a.g.Describe(w.node), p.a.g.Describe(o.node))
				}
				if with < 0 || !w.known || p.a.ops[with].known {
					with = j
				}
			}
		}
		switch {
		case with < 0 || refused:
		case len(p.Assumptions) < maxFindings:
			w := &p.a.ops[with]
			p.assume(Order, []ir.ID{w.id, o.id}, "the recording is race-free at "+w.id.String()+","+o.id.String())
		default:
			more++
		}
		return true
	})
	if more > 0 {
		p.assume(Order, nil, fmt.Sprintf("the recording is race-free at %d other places", more))
	}
}

// besidePillars calls yield with each command and with the earlier commands that it may
// run concurrently with, in two lists, as far as one of the two is a pillar. It ends
// when yield returns false.
func (s *schedule) besidePillars(m *model, yield func(i int32, lists [2][]int32) bool) {
	if s.paths != nil {
		for k := 0; k < len(s.open); {
			i, list := s.open[k].later, []int32(nil)
			for ; k < len(s.open) && s.open[k].later == i; k++ {
				list = append(list, s.open[k].earlier)
			}
			if !yield(i, [2][]int32{list, nil}) {
				return
			}
		}
		return
	}
	var pillars, all []int32
	// Where the current span, command buffer and epoch begin: as positions in all and
	// in pillars.
	type begin struct{ all, pillars int }
	var span, buffer, epoch begin
	at := s.places
	for i := range m.ops {
		if i > 0 {
			here := begin{i, len(pillars)}
			if at[i].epoch != at[i-1].epoch {
				epoch = here
			}
			if at[i].buffer != at[i-1].buffer {
				buffer = here
			}
			if at[i].span != at[i-1].span {
				span = here
			}
		}
		all = append(all, int32(i))
		lists := [2][]int32{pillars[span.pillars:buffer.pillars], pillars[epoch.pillars:]}
		if !m.ops[i].known {
			lists = [2][]int32{all[span.all:buffer.all], all[epoch.all:i]}
			pillars = append(pillars, int32(i))
		}
		if !yield(int32(i), lists) {
			return
		}
	}
}

// assume adds an assumption to the proof. A strict proof cannot tell instead.
func (p *proof) assume(point Point, ids []ir.ID, text string) {
	if p.opts.Strict {
		p.add(CannotTell, point, nil, ids, "only given that %s", text)
		return
	}
	p.Assumptions = append(p.Assumptions, text)
}
