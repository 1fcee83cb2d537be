package fusion

import (
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// No list of patterns says which sets of elementwise commands can become a generated kernel, so sets are grown
// greedily. From each command backwards, the latest producer that fits is added, up to maxMembers, and each set on
// the way is a candidate. The next round goes on with the results, so that a chain grows fivefold per round, until
// the kernel is full: its text has decl.MaxElementwiseText bytes, or it has no more slots or results. Then the chain
// is cut and the next kernel begins. At most maxTries sets per round are tried around a command, however much it
// reads.

// These bound the sets that are tried around one command in a round: sets of elementwise commands, and sets that a
// library kernel may compute.
const (
	maxTries        = 12
	maxLibraryTries = 64
)

// elementwiseOnly reports whether a generated kernel may compute command i.
func (r *round) elementwiseOnly(i int32) bool {
	c := r.cmds[i]
	return c.shape != nil && r.m.Elementwise(c.in.Decl)
}

// greedy tries command i with its producers, theirs, and so on.
func (r *round) greedy(i int32) {
	if !r.elementwiseOnly(i) {
		return
	}
	interrupt.Poll(r.ctx)
	list := [maxMembers]int32{i}
	n := 1
	front := r.stack[:0]
	join := func(i int32) {
		for _, l := range r.linksOf(i) {
			p := l.command
			if p >= 0 && r.within(p, i) && r.elementwiseOnly(p) && !slices.Contains(front, p) && !slices.Contains(list[:n], p) && r.at[list[0]]-r.at[p] <= maxSpan {
				front = append(front, p)
			}
		}
	}
	join(i)
	for range maxTries {
		if len(front) == 0 || n == maxMembers {
			break
		}
		at := 0
		for k := range front {
			if front[k] > front[at] {
				at = k
			}
		}
		p := front[at]
		front = slices.Delete(front, at, at+1)
		list[n] = p
		if r.tryGenerated(list, n+1) {
			n++
			join(p)
		}
	}
	r.stack = front[:0]
}

// tryGenerated keeps a set of elementwise commands as a candidate if it gains and
// has a place, and reports whether it does.
func (r *round) tryGenerated(list [maxMembers]int32, n int) bool {
	members := list[:n]
	slices.Sort(members)
	r.tried++
	if !r.first && !slices.ContainsFunc(members, func(i int32) bool { return r.cmds[i].fresh }) {
		return false // it was tried before
	}
	var ok bool
	if r.key, ok = r.sketch(r.key[:0], members); !ok {
		return false
	}
	r.consider(group{list: list, n: int32(n)}, isel.Prefilter{Match: true}, nil)
	return r.finding.found[len(r.finding.found)-1].can()
}
