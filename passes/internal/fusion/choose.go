package fusion

import (
	"slices"

	"github.com/mlxc/mlxc/cost"
)

// The reasons why choose chose a group.
const (
	notChosen int8 = iota
	byGain         // it has the highest gain of the groups still possible
	together       // with others, it gains more than the group that blocked them
)

// choose selects the groups that are fused first. The groups are sorted by gain.
//
// Taking the group with the highest gain again and again is not optimal where groups overlap: of a product, a sum, a
// norm and its weight, {sum, norm, weight} gains more than {product, sum} or {norm, weight}, and less than these two
// together. So a chosen group is replaced by the groups that it alone blocks, if their gains add up to more. The
// total gain is never lower than that of the greedy choice. A group that replaced another is not replaced again, so
// that the groups of each command are examined only once.
//
// Elementwise groups are taken greedily: they grow further in the next rounds, so their gain in this round
// says little.
func (r *round) choose() {
	if r.m.Generate {
		return
	}
	r.owner = take(&r.room.owner, len(r.cmds)) // by command: 1 + the chosen group that it belongs to
	r.chosen = take(&r.room.chosen, len(r.groups))
	overlap := false
	for k := range r.groups {
		if r.claim(k, 0) {
			r.own(k, byGain)
		} else {
			overlap = true
		}
	}
	if !overlap {
		return
	}

	// The groups not chosen, by command: those of command i are rivals[from[i]:from[i+1]].
	from := take(&r.room.rivalsAt, len(r.cmds)+1)
	for k := range r.groups {
		if r.chosen[k] == notChosen {
			for _, i := range r.groups[k].members() {
				from[i+1]++
			}
		}
	}
	for i := range r.cmds {
		from[i+1] += from[i]
	}
	rivals, next := take(&r.room.rivals, int(from[len(r.cmds)])), append(r.room.next[:0], from...)
	r.room.next = next
	for k := range r.groups {
		if r.chosen[k] == notChosen {
			for _, i := range r.groups[k].members() {
				rivals[next[i]] = int32(k)
				next[i]++
			}
		}
	}

	near, taken := r.room.nearby[:0], r.room.taken[:0]
	for k := range r.groups {
		if r.chosen[k] != byGain {
			continue
		}
		near, taken = near[:0], taken[:0]
		for _, i := range r.groups[k].members() {
			for _, h := range rivals[from[i]:from[i+1]] {
				if r.chosen[h] == notChosen && r.claim(int(h), k+1) {
					near = append(near, h)
				}
			}
		}
		slices.Sort(near)
		near = slices.Compact(near)
		r.disown(k)
		gain := cost.Seconds(0)
		for _, h := range near {
			if r.claim(int(h), 0) {
				r.own(int(h), together)
				gain += r.groups[h].v.gain
				taken = append(taken, h)
			}
		}
		if gain > r.groups[k].v.gain {
			continue
		}
		for _, h := range taken {
			r.disown(int(h))
		}
		r.own(k, byGain)
	}
	r.room.nearby, r.room.taken = near, taken

	out := slices.Grow(r.sorted[:0], len(r.groups))
	for _, first := range []bool{true, false} {
		for k := range r.groups {
			if (r.chosen[k] != notChosen) == first {
				out = append(out, r.groups[k])
			}
		}
	}
	r.groups, r.sorted = out, r.groups[:0]
}

// claim reports whether no command of group k belongs to a chosen group other than number but−1; 0 excepts none.
func (r *round) claim(k, but int) bool {
	for _, i := range r.groups[k].members() {
		if o := r.owner[i]; o != 0 && o != int32(but) {
			return false
		}
	}
	return true
}

func (r *round) own(k int, why int8) {
	r.chosen[k] = why
	for _, i := range r.groups[k].members() {
		r.owner[i] = int32(k + 1)
	}
}

func (r *round) disown(k int) {
	r.chosen[k] = notChosen
	for _, i := range r.groups[k].members() {
		r.owner[i] = 0
	}
}
