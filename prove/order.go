package prove

import (
	"github.com/mlxc/mlxc/internal/interval"
	"github.com/mlxc/mlxc/ir"
)

// pendingAccess is an access that nothing orders yet before what follows.
type pendingAccess struct {
	op     int
	write  bool
	region ir.Region
}

// unordered holds the accesses that the next command would run concurrently
// with.
type unordered struct {
	g       *ir.Graph
	trees   map[ir.MemID]*interval.Tree[pendingAccess]
	touched []ir.MemID
	pillar  int // an unknown command among them, or −1
	any     int // some command among them, or −1
}

func newUnordered(g *ir.Graph) *unordered {
	return &unordered{g: g, trees: map[ir.MemID]*interval.Tree[pendingAccess]{}, pillar: -1, any: -1}
}

func (u *unordered) reset() {
	for _, m := range u.touched {
		u.trees[m].Reset()
	}
	u.touched, u.pillar, u.any = u.touched[:0], -1, -1
}

func (u *unordered) add(i int, o *op) {
	u.any = i
	if !o.known {
		u.pillar = i
	}
	for _, a := range o.reads {
		u.insert(pendingAccess{i, false, a.region})
	}
	for _, a := range o.writes {
		u.insert(pendingAccess{i, true, a.region})
	}
}

func (u *unordered) insert(p pendingAccess) {
	m := p.region.Mem
	if void(p.region) || u.g.Memories[m].Kind.ReadOnly() {
		return
	}
	t := u.trees[m]
	if t == nil {
		t = &interval.Tree[pendingAccess]{}
		u.trees[m] = t
	}
	if t.Len() == 0 {
		u.touched = append(u.touched, m)
	}
	lo, end := hull(u.g, p.region)
	t.Insert(lo, end, p)
}

// conflict finds a command that o conflicts with, or −1.
func (u *unordered) conflict(o *op) (with int, where ir.Region) {
	if u.any < 0 {
		return -1, where
	}
	if u.pillar >= 0 {
		return u.pillar, where
	}
	if !o.known {
		return u.any, where
	}
	with = -1
	look := func(r ir.Region, write bool) {
		t := u.trees[r.Mem]
		if t == nil || with >= 0 || void(r) {
			return
		}
		lo, end := hull(u.g, r)
		t.Overlapping(lo, end, func(p pendingAccess) bool {
			if (write || p.write) && !apart(u.g, r, p.region) {
				with, where = p.op, r
				return false
			}
			return true
		})
	}
	for _, a := range o.reads {
		look(a.region, false)
	}
	for _, a := range o.writes {
		look(a.region, true)
	}
	return with, where
}

// race is a conflicting pair that nothing orders: the command and the one it
// conflicts with.
type race struct {
	op, with int
	where    ir.Region
}

// races returns the conflicting pairs of a graph's written order that its
// barriers and commits do not order, and the number of barriers that end an
// epoch. A barrier orders its own command buffer
// only; a commit that orders nothing lets everything before it run on.
func races(m *model) (out []race, ordered int) {
	epoch, open := newUnordered(m.g), newUnordered(m.g)
	var buffer []int
	for k, n := range m.list {
		switch n := n.(type) {
		case *ir.Barrier:
			if epoch.any >= 0 {
				ordered++
			}
			epoch.reset()
		case *ir.Commit:
			epoch.reset()
			if n.Order != ir.OrderNone {
				open.reset()
			} else {
				for _, i := range buffer {
					open.add(i, &m.ops[i])
				}
			}
			buffer = buffer[:0]
		}
		i := m.at[k]
		if i < 0 {
			continue
		}
		o := &m.ops[i]
		for _, u := range []*unordered{epoch, open} {
			if with, where := u.conflict(o); with >= 0 && len(out) < maxFindings {
				out = append(out, race{i, with, where})
			}
		}
		epoch.add(i, o)
		buffer = append(buffer, i)
	}
	return out, ordered
}

// checkOrder refuses races of the graph after. A race between an unknown
// command and another one that the recording had put in one epoch as well
// keeps the recorded relation: the proof then assumes that the recording is
// free of races there.
func checkOrder(b, a *model, img []int, strict bool, r *Result) {
	together := map[[2]int]bool{}
	var recorded []race
	recorded, _ = races(b)
	for _, x := range recorded {
		together[[2]int{x.op, x.with}] = true
	}
	found, ordered := races(a)
	r.Barriers = ordered
	for _, x := range found {
		o, w := &a.ops[x.op], &a.ops[x.with]
		ids := []ir.ID{w.id, o.id}
		if (!o.known || !w.known) && img[x.op] >= 0 && img[x.with] >= 0 && together[[2]int{img[x.op], img[x.with]}] {
			text := "the recording is race-free at " + w.id.String() + "," + o.id.String()
			if strict {
				r.add(CannotTell, Order, nil, ids, "only given that %s", text)
			} else {
				r.Assumptions = append(r.Assumptions, text)
			}
			continue
		}
		if !o.known || !w.known {
			r.add(Refused, Order, nil, ids, "%s and %s are not ordered, and the effects of one of them are unknown", a.g.Describe(w.node), a.g.Describe(o.node))
			continue
		}
		r.add(Refused, Order, nil, ids, "%s and %s both touch %s and nothing orders them", a.g.Describe(w.node), a.g.Describe(o.node), a.g.FormatRegion(x.where))
	}
}
