package prove

import (
	"github.com/mlxc/mlxc/internal/interval"
	"github.com/mlxc/mlxc/ir"
)

// pending is an access that nothing orders yet before what follows.
type pending struct {
	op    int32
	write bool
	*access
}

// unordered holds the accesses that the next command would run concurrently
// with.
type unordered struct {
	m       *model
	trees   []*interval.Tree[pending]
	touched []ir.MemID
	pillar  int32 // an unknown command among them, or −1
	any     int32 // some command among them, or −1
}

func newUnordered(m *model) *unordered {
	return &unordered{m: m, trees: make([]*interval.Tree[pending], len(m.g.Memories)), pillar: -1, any: -1}
}

func (u *unordered) reset() {
	for _, m := range u.touched {
		u.trees[m].Reset()
	}
	u.touched, u.pillar, u.any = u.touched[:0], -1, -1
}

func (u *unordered) add(i int32) {
	o := &u.m.ops[i]
	u.any = i
	if !o.known {
		u.pillar = i
		return
	}
	for k := range o.reads {
		u.insert(pending{i, false, &o.reads[k]})
	}
	for k := o.wlo; k < o.whi; k++ {
		u.insert(pending{i, true, &u.m.writes[k].access})
	}
}

func (u *unordered) insert(p pending) {
	mem := p.region.Mem
	if u.m.readOnly(mem) || void(&p.region) {
		return
	}
	t := u.trees[mem]
	if t == nil {
		t = &interval.Tree[pending]{}
		u.trees[mem] = t
	}
	if t.Len() == 0 {
		u.touched = append(u.touched, mem)
	}
	t.Insert(p.lo, p.end, p)
}

// conflict finds a command that op i conflicts with, or −1. apart proves that
// two accesses share no byte.
func (u *unordered) conflict(i int32, apart func(*ir.Graph, *access, *access) bool) (with int32, where *ir.Region) {
	switch {
	case u.any < 0:
		return -1, nil
	case u.pillar >= 0:
		return u.pillar, nil
	case !u.m.ops[i].known:
		return u.any, nil
	}
	o := &u.m.ops[i]
	for k := range o.reads {
		if with, where = u.look(&o.reads[k], false, apart); with >= 0 {
			return with, where
		}
	}
	for k := o.wlo; k < o.whi; k++ {
		if with, where = u.look(&u.m.writes[k].access, true, apart); with >= 0 {
			return with, where
		}
	}
	return -1, nil
}

func (u *unordered) look(a *access, write bool, apart func(*ir.Graph, *access, *access) bool) (with int32, where *ir.Region) {
	t := u.trees[a.region.Mem]
	if t == nil || void(&a.region) {
		return -1, nil
	}
	with = -1
	t.Overlapping(a.lo, a.end, func(p pending) bool {
		if !write && !p.write || apart(u.m.g, a, p.access) {
			return true
		}
		with, where = p.op, &a.region
		return false
	})
	return with, where
}

// race is a conflicting pair that nothing orders: the command and the one it
// conflicts with.
type race struct {
	op, with int32
	where    *ir.Region // nil where one of them may touch anything
}

// schedule is what the barriers and commits of a graph leave unordered.
type schedule struct {
	races    []race // within a replay
	around   []race // between a command and one of the replay before
	barriers int    // that end an epoch
}

// order finds the conflicting pairs of a graph's written order that its
// barriers and commits do not order. A barrier orders its own command buffer
// only; a commit that orders nothing lets everything before it run on. The end
// of the list is neither: the next replay goes on where this one ended.
func order(m *model) schedule {
	var s schedule
	epoch, open := newUnordered(m), newUnordered(m)
	var buffer []int32 // commands of this command buffer
	commits := false
	mark := func(n ir.Node) {
		switch n := n.(type) {
		case *ir.Barrier:
			epoch.reset()
		case *ir.Commit:
			commits = true
			epoch.reset()
			if n.Order != ir.OrderNone {
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
		s.races = open.races(i, apart, epoch.races(i, apart, s.races))
		epoch.add(i)
		buffer = append(buffer, i)
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
			s.around = open.races(i, apartAlways, epoch.races(i, apartAlways, s.around))
		} else {
			mark(n)
		}
	}
	return s
}

// races appends what op i races with.
func (u *unordered) races(i int32, apart func(*ir.Graph, *access, *access) bool, list []race) []race {
	if len(list) >= maxFindings {
		return list
	}
	if with, where := u.conflict(i, apart); with >= 0 {
		list = append(list, race{i, with, where})
	}
	return list
}

// checkOrder refuses races of the graph after. A race between an unknown
// command and another one that the recording had put in one epoch as well
// keeps the recorded relation: the proof then assumes that the recording is
// free of races there. Likewise around the end of a replay.
func (p *proof) checkOrder() {
	found := order(p.a)
	p.Barriers = found.barriers
	if len(found.races) == 0 && len(found.around) == 0 {
		return // whatever the recording leaves open
	}
	recorded := order(p.b)
	together := map[[2]int32]bool{}
	for _, x := range recorded.races {
		together[[2]int32{x.op, x.with}] = true
	}
	for _, x := range found.races {
		o, w := &p.a.ops[x.op], &p.a.ops[x.with]
		ids := []ir.ID{w.id, o.id}
		if x.where != nil {
			p.add(Refused, Order, nil, ids, "%s and %s both touch %s and nothing orders them", p.a.g.Describe(w.node), p.a.g.Describe(o.node), p.a.g.FormatRegion(*x.where))
			continue
		}
		if len(p.sets[x.op]) == 1 && len(p.sets[x.with]) == 1 && together[[2]int32{p.sets[x.op][0], p.sets[x.with][0]}] {
			p.assume(Order, ids, "the recording is race-free at "+w.id.String()+","+o.id.String())
			continue
		}
		p.add(Refused, Order, nil, ids, "%s and %s are not ordered, and the effects of one of them are unknown", p.a.g.Describe(w.node), p.a.g.Describe(o.node))
	}
	if len(found.around) == 0 {
		return
	}
	if len(recorded.around) > 0 {
		p.assume(Order, nil, "a replay begins after the one before it has ended")
		return
	}
	x := found.around[0]
	o, w := &p.a.ops[x.op], &p.a.ops[x.with]
	p.add(Refused, Order, nil, []ir.ID{w.id, o.id}, "%s and %s of the next replay conflict and nothing orders them, as the recording does", p.a.g.Describe(w.node), p.a.g.Describe(o.node))
}

// assume records what a proof takes for granted; a strict one takes nothing.
func (p *proof) assume(point Point, ids []ir.ID, text string) {
	if p.opts.Strict {
		p.add(CannotTell, point, nil, ids, "only given that %s", text)
		return
	}
	p.Assumptions = append(p.Assumptions, text)
}
