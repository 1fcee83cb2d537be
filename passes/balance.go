package passes

import (
	"github.com/mlxc/mlxc/cost"
)

// balance moves commands that may run in several epochs between these, as long as the modelled time
// decreases.
type balance struct {
	s         *scheduler
	first     int32
	load      []cost.Epoch
	members   [][]int32 // by epoch
	at        []int32   // by command: its index among its epoch's members
	unsettled bool      // some commands were not tried again since the last move
}

const (
	// balanceRounds is how often each command is tried at most. The first round finds nearly all
	// moves. After a round without a move, running the pass again changes nothing.
	balanceRounds = 32
	// balanceReach is how many epochs before and after a command's own are tried. Moving a result
	// further would keep its memory in use too long.
	balanceReach = 8
	// balanceWork bounds the commands that are summed again after a move, as a multiple of all
	// commands. When a command leaves a wide epoch, the time of the whole epoch is summed again.
	balanceWork = 64
)

func (s *scheduler) balance(first, end, depth int32, home []int32) *balance {
	b := &balance{s: s, first: first, load: make([]cost.Epoch, depth), members: make([][]int32, depth), at: make([]int32, end-first)}
	count := make([]int32, depth)
	for i := first; i < end; i++ {
		count[s.epoch[i]]++
	}
	all := make([]int32, 0, end-first)
	for e, n := range count {
		b.members[e] = all[len(all) : len(all) : len(all)+int(n)]
		all = all[:len(all)+int(n)]
	}
	for i := first; i < end; i++ {
		b.enter(i, s.epoch[i])
	}
	work := balanceWork * int(end-first)
	for round := 0; ; round++ {
		moved := false
		if round == balanceRounds || work <= 0 {
			b.unsettled = true
			break
		}
		for i := first; i < end && work > 0; i++ {
			lo, hi, ok := b.room(i, end, depth)
			if !ok || lo == hi {
				continue
			}
			work -= int(hi-lo) + len(b.members[s.epoch[i]])
			if b.move(i, lo, hi, home[i-first]) {
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	return b
}

// room returns the epochs to which command i can move while all others stay. ok is false for a
// command next to a join, which is never moved, because all neighbours of the join would have to be
// looked at.
func (b *balance) room(i, end, depth int32) (lo, hi int32, ok bool) {
	s := b.s
	lo, hi = 0, depth-1
	for _, j := range s.priors(i) {
		if s.isJoin(j) {
			return 0, 0, false
		}
		if j >= b.first {
			lo = max(lo, s.epoch[j]+1)
		}
	}
	for _, j := range s.order.Successors(i) {
		if s.isJoin(j) {
			return 0, 0, false
		}
		if j < end {
			hi = min(hi, s.epoch[j]-1)
		}
	}
	return max(lo, s.epoch[i]-balanceReach), min(hi, s.epoch[i]+balanceReach), true
}

// move moves command i to the epoch with the smallest total time. Of epochs with equal times it
// takes the one nearest to home.
func (b *balance) move(i, lo, hi, home int32) bool {
	s := b.s
	from := s.epoch[i]
	w := s.work[i]
	without := b.without(i)
	gain := s.model.Of(b.load[from]) - s.model.Of(without)
	best, least, distance := from, gain, abs(from-home)
	for e := lo; e <= hi; e++ {
		if e == from {
			continue
		}
		with := b.load[e]
		with.Add(w)
		price := s.model.Of(with) - s.model.Of(b.load[e])
		// The new time must be smaller by more than rounding, or equal with the epoch nearer to
		// home.
		margin := 1e-9 * (gain + price)
		if price < least-margin || price <= least+margin && abs(e-home) < distance {
			best, least, distance = e, price, abs(e-home)
		}
	}
	if best == from {
		return false
	}
	b.leave(i, without)
	s.epoch[i] = best
	b.enter(i, best)
	return true
}

func abs(x int32) int32 { return max(x, -x) }

func (b *balance) enter(i, e int32) {
	b.at[i-b.first] = int32(len(b.members[e]))
	b.members[e] = append(b.members[e], i)
	b.load[e].Add(b.s.work[i])
}

// without returns the sum of the epoch of command i without command i.
func (b *balance) without(i int32) (p cost.Epoch) {
	for _, j := range b.members[b.s.epoch[i]] {
		if j != i {
			p.Add(b.s.work[j])
		}
	}
	return p
}

func (b *balance) leave(i int32, without cost.Epoch) {
	e := b.s.epoch[i]
	ms := b.members[e]
	last := ms[len(ms)-1]
	k := b.at[i-b.first]
	ms[k], b.at[last-b.first] = last, k
	b.members[e] = ms[:len(ms)-1]
	b.load[e] = without
}
