package hazard

import (
	"github.com/mlxc/mlxc/internal/analysis/reach"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Bounds on the work for one graph. Beyond any of them races may be missed, and the
// judgement says so.
const (
	mostBeside = 1 << 20 // pairs of commands that are compared once a path is missing
	mostInputs = 1 << 22 // edges that are followed to find predecessors behind joins
	moreInputs = 64      // and so many more for each command
)

// racesByEdges finds conflicting pairs that no path of edges orders. First it looks only at
// the order that conflicts demand ([Table.Order]), which has few edges. If there is a path
// for each of them, no command runs concurrently with one that it conflicts with. If a path
// is missing, that order does not suffice, because it leaves out conflicts with commands
// before the last write. Then every command is compared with all commands with which it may
// run concurrently.
func (j *judge) racesByEdges() {
	t := j.t
	x := reach.New(t.g, 1)
	places := make([]int32, 0, t.Len())
	for i, n := range t.g.Nodes {
		if _, ok := n.(ir.Command); ok {
			places = append(places, int32(i))
		}
	}
	commands := make([]int32, len(t.g.Nodes))
	for i, p := range places {
		commands[p] = int32(i)
	}
	nodes := make([]int32, 0, 8)
	// without returns those commands of list that have no path to command i.
	without := func(list []int32, i int32) []int32 {
		nodes = nodes[:0]
		for _, k := range list {
			nodes = append(nodes, places[k])
		}
		missing, decided := x.Missing(nodes, places[i])
		if !decided {
			j.MoreUnsure++
		}
		for k, p := range missing {
			missing[k] = commands[p]
		}
		return missing
	}
	var later []int32
	var beside [][]int32 // by command in later: the commands without a path to it
	inputs := newInputs(t.Order(), t.Len())
	for i := range int32(t.Len()) {
		interrupt.Poll(t.ctx)
		list, all := inputs.of(i)
		if !all {
			j.MoreUnsure++
			break
		}
		if missing := without(list, i); len(missing) > 0 {
			later, beside = append(later, i), append(beside, append([]int32(nil), missing...))
		}
	}
	if len(later) == 0 {
		return
	}
	if n := t.Len(); n*(n-1)/2 <= mostBeside {
		later, beside = later[:0], beside[:0]
		for i := range int32(n) {
			list := make([]int32, i)
			for k := range list {
				list[k] = int32(k)
			}
			later, beside = append(later, i), append(beside, append([]int32(nil), without(list, i)...))
		}
	} else {
		j.MoreUnsure++
	}
	reads, writes := newConcurrent(t), newConcurrent(t)
	for n, i := range later {
		interrupt.Poll(t.ctx)
		if j.compare(i, beside[n], reads, writes); len(j.Races) >= maxJudged {
			return
		}
	}
}

// compare looks for races between command i and the commands beside.
func (j *judge) compare(i int32, beside []int32, reads, writes *concurrent) {
	reads.reset()
	writes.reset()
	with := none // the latest of beside, if one of the two commands is a pillar
	for _, k := range beside {
		if j.t.commands[i].pillar || j.t.commands[k].pillar {
			with = max(with, k)
		}
		j.open(k, reads, writes)
	}
	if with != none {
		j.unknown(Pair{with, i})
	}
	if j.t.commands[i].pillar {
		return
	}
	as, at := j.relevant(i, nil, nil)
	reads.s.Begin()
	j.meet(reads.s, i, as, at)
	writes.s.Begin()
	j.meet(writes.s, i, as, at)
}

// inputs finds the commands that a command waits for in an order, directly or behind
// joins.
type inputs struct {
	first, from []int32
	commands    int32
	seen        []int32 // by node: 1 + the last command whose search visited it
	list, stack []int32
	left        int
}

func newInputs(o *Order, commands int) *inputs {
	in := &inputs{first: make([]int32, o.Nodes+1), from: make([]int32, len(o.Next)), commands: int32(commands), seen: make([]int32, o.Nodes), left: mostInputs + moreInputs*commands}
	for i, n := range o.Waits {
		in.first[i+1] = in.first[i] + n
	}
	at := make([]int32, o.Nodes)
	copy(at, in.first)
	for i := range int32(o.Nodes) {
		for _, to := range o.Successors(i) {
			in.from[at[to]] = i
			at[to]++
		}
	}
	return in
}

// of returns the commands that command i waits for. all is false if there are too many
// to list.
func (in *inputs) of(i int32) (list []int32, all bool) {
	in.list, in.stack = in.list[:0], append(in.stack[:0], i)
	for len(in.stack) > 0 {
		n := in.stack[len(in.stack)-1]
		in.stack = in.stack[:len(in.stack)-1]
		for _, k := range in.from[in.first[n]:in.first[n+1]] {
			if in.left--; in.left < 0 {
				return nil, false
			}
			if in.seen[k] == i+1 {
				continue
			}
			in.seen[k] = i + 1
			if k < in.commands {
				in.list = append(in.list, k)
			} else {
				in.stack = append(in.stack, k)
			}
		}
	}
	return in.list, true
}
