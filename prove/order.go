package prove

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// pending is an access that nothing orders yet before what follows: a read or a
// write of the model, by number.
type pending struct {
	op, nr int32
	write  bool
}

// unordered holds the accesses that the next command would run concurrently
// with.
type unordered struct {
	m *model
	// By memory. Reads conflict with writes only: what many commands read is not looked
	// at again by each of them.
	reads, writes []interval.Tree[pending]
	touched       []ir.MemID
	// last is a command of known effects whose accesses are not in the trees yet, or
	// −1: that of an epoch of one command need never be.
	last   int32
	pillar int32 // an unknown command among them, or −1
	any    int32 // some command among them, or −1
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

// within finds a command of known effects that op i, of known effects too,
// conflicts with in one replay; ok is false if there is none.
func (u *unordered) within(i int32) (r race, ok bool) { return u.conflict(i, false) }

// around finds a command of the replay before that op i conflicts with; ok is false
// if there is none.
func (u *unordered) around(i int32) (r race, ok bool) {
	switch {
	case u.pillar >= 0:
		return race{op: i, with: u.pillar, sure: true}, true
	case !u.m.ops[i].known:
		return race{op: i, with: u.any, sure: true}, true
	}
	return u.conflict(i, true)
}

// conflict looks at accesses, of one replay or of two. A race that is sure is found
// first, if there is one.
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

// look puts what access a races with into r, and reports whether there is anything.
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
		// Where nothing is sure any more, one is enough.
		return !r.sure && u.m.meetings < mostMeetings
	}
	u.writes[a.mem].Overlapping(a.lo, a.end, each)
	if write && !(found && (r.sure || u.m.meetings >= mostMeetings)) {
		u.reads[a.mem].Overlapping(a.lo, a.end, each)
	}
	return found
}

// race is a conflicting pair that nothing orders: the command and the one it
// conflicts with.
type race struct {
	op, with int32
	where    *access // nil where one of them may touch anything
	sure     bool    // for some values of the params they touch one byte
}

// verdict is what a race says about a proof, as words for what the two do.
func (r *race) verdict() (v Verdict, touch string) {
	if r.sure {
		return Refused, "both touch"
	}
	return CannotTell, "may both touch"
}

// schedule is what the barriers and commits of a graph leave unordered.
type schedule struct {
	races    []race         // within a replay, of commands of known effects
	around   []race         // between a command and one of the replay before
	barriers int            // that end an epoch
	places   []listPosition // by command, of a graph ordered by barriers or by its list
	paths    *paths         // of a graph ordered by edges
	open     []beside       // then: pairs of one replay that no path orders, one of them of unknown effects
	// undecided: whether there is a path was not found within the bound, first of doubt.
	undecided bool
	doubt     beside
}

// unordered reports whether two commands of one replay may run concurrently.
func (s *schedule) unordered(i, j int32) bool {
	if s.paths != nil {
		return !s.paths.ordered(min(i, j), max(i, j))
	}
	return s.places[i].unordered(s.places[j])
}

// listPosition is where a command stands among the barriers and commits, counted: its
// epoch, its command buffer, and its span between two ordered commits. Where a span
// begins a buffer does, and where a buffer begins an epoch.
type listPosition struct{ epoch, buffer, span int32 }

// unordered reports whether commands at p and q of one replay may run
// concurrently.
func (p listPosition) unordered(q listPosition) bool {
	return p.span == q.span && (p.buffer != q.buffer || p.epoch == q.epoch)
}

// order finds the conflicting pairs of a graph's written order that its
// barriers and commits do not order. A barrier orders its own command buffer
// only; a commit that orders nothing lets everything before it run on. The end
// of the list is neither: the next replay goes on where this one ended.
//
// The list of a serial graph is its order: nothing is left. Where the host waits
// between two replays, nothing is left between them.
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
	var buffer []int32 // commands of this command buffer
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
	// The next replay, against what this one leaves unordered: the params may be
	// others.
	for k, n := range m.g.Nodes {
		// A barrier ordered the buffer's commands before the rest of the buffer only:
		// they are open again once it ends in a bare commit.
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

// appendRace appends what op i races with in u. A few races are enough: one
// refuses a proof.
func appendRace(list []race, i int32, u *unordered, find func(*unordered, int32) (race, bool)) []race {
	if len(list) >= maxFindings || u.any < 0 {
		return list
	}
	if r, ok := find(u, i); ok {
		list = append(list, r)
	}
	return list
}

// checkOrder refuses races of the graph after, within a replay and around its
// end.
func (p *proof) checkOrder() {
	found := order(p.a)
	p.Barriers, p.Edges = found.barriers, len(p.a.g.Edges)
	if len(found.races) == 0 && len(found.around) == 0 && p.a.pillars == 0 && !found.undecided {
		return // whatever the recording leaves open
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
		why = "and no host is between replays in a row"
	}
	p.add(v, Order, nil, []ir.ID{w.id, o.id}, "%s and %s of the next replay %s %s and nothing orders them, %s", p.a.g.Describe(w.node), p.a.g.Describe(o.node), touch, where, why)
}

// submittedAlone reports whether each replay of a graph is a submission of its own. Of a
// graph whose params advance, or which carries something, several replays may be one, and
// nobody waits between them.
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

// maxPairs bounds the pairs that checkPillarOrder looks at.
const maxPairs = 1 << 22

// checkPillarOrder refuses pairs of commands, one of them of unknown effects,
// that the graph after leaves unordered. Where the recording does so too, its
// relation is kept: the proof then assumes that the recording is free of races
// there. Every such pair counts: that a command was recorded beside the last one
// of an epoch says nothing about the others.
func (p *proof) checkPillarOrder(before, after *schedule) {
	kept := func(i, j int32) bool {
		// A command that reaches nobody need be nobody's image (findDead).
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
		with := int32(-1) // the last one, a pillar if there is one
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

// besidePillars calls yield with each command and with those before it in the list that
// it may run beside, as far as one of the two is of unknown effects, until it returns
// false.
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
	// Where the current span, command buffer and epoch begin, among all commands
	// and among pillars.
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

// assume records what a proof takes for granted; a strict one takes nothing.
func (p *proof) assume(point Point, ids []ir.ID, text string) {
	if p.opts.Strict {
		p.add(CannotTell, point, nil, ids, "only given that %s", text)
		return
	}
	p.Assumptions = append(p.Assumptions, text)
}
