package fusion

import (
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// What elementwise commands may become is not on a list, so no list says which sets
// of them are worth a look: all are. They are taken greedily. From each command
// backwards, the latest producer that may join does, up to maxMembers, and each set
// on the way is a candidate; the next round goes on with what became of them. So a
// chain grows fivefold in a round, until a text of decl.MaxElementwiseText bytes,
// the slots of a kernel or its results are full; there it is cut, and the next begins.
// A command is tried with at most maxTries sets a round, whatever it reads.

// maxTries bounds the sets that are tried around one command in a round: of
// elementwise ones, and of those that a kernel of the library may compute.
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
	r.consider(group{list: list, n: int32(n)}, isel.Outlook{Match: true}, nil)
	f := &r.finding.found[len(r.finding.found)-1].group
	return f.v.hit != nil && !f.v.none && f.at >= 0
}
