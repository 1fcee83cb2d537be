package report

import (
	"slices"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
)

// needless returns the indices of the barriers of the list without which every conflict between its
// commands is still ordered: each is left out unless a command behind it conflicts with one since the
// last that stays. inner leaves the first and the last barrier in, which may order one replay and the next.
func (b *builder) needless(inner bool) (out []int) {
	latest := hazard.NewTable(b.ctx, b.g).Latest(nil)
	var barriers []int // of the list, between two commands
	at := -1
	for i, n := range b.g.Nodes {
		switch n.(type) {
		case *ir.Barrier:
			barriers = append(barriers, i)
		case ir.Command:
			at++
		}
	}
	if at < 0 || b.g.Ordering != ir.ByBarriers {
		return nil
	}
	total := at + 1
	run := 0 // the first command since the last barrier that stays, or commit
	at = 0
	seen, before := 0, -1
	pending := -1   // a barrier that stands before the next commands
	var again []int // barriers right behind another one
	for i, n := range b.g.Nodes {
		switch n.(type) {
		case *ir.Barrier:
			seen++
			twice := before == at
			before = at
			switch {
			case twice:
				again = append(again, i)
			case at == run || at == total:
				// Nothing stands between it and what ends an epoch: it may order replays only.
			case inner && (seen == 1 || seen == len(barriers)):
				run, pending = at, -1
			case pending < 0:
				pending = i
				out = append(out, i)
			}
		case *ir.Commit:
			run, pending, before = at, -1, -1
		case ir.Command:
			if latest[at] >= int32(run) && pending >= 0 {
				// A command of this epoch conflicts with the run: the barrier before it stays.
				out = out[:len(out)-1]
				run, pending = b.begin(at), -1
			}
			at++
			if at < total && pending >= 0 && b.begin(at) == at {
				pending = -1 // the whole epoch was looked at
			}
		}
	}
	out = append(out, again...)
	slices.Sort(out)
	return out
}

// begin returns the first command of the epoch that a command of the list is in. Graphs ordered by
// barriers have no joins, so that numbers are those of the list.
func (b *builder) begin(at int) int { return int(b.first[b.epoch[at]]) }

// barriers finds barriers that nothing needs. The graph without them is proved to compute the same.
func (b *builder) barriers(g *ir.Graph, o prove.Options) error {
	for _, inner := range []bool{false, true} {
		drop := b.needless(inner)
		if len(drop) == 0 {
			return nil
		}
		fewer := g.Clone()
		fewer.Nodes = make([]ir.Node, 0, len(g.Nodes))
		k := 0
		for i, n := range g.Nodes {
			if k < len(drop) && drop[k] == i {
				k++
				continue
			}
			fewer.Nodes = append(fewer.Nodes, n)
		}
		r := prove.Check(b.ctx, g, fewer, o)
		if r.Err != nil {
			return r.Err
		}
		if r.Verdict == prove.Proved {
			b.dropped(drop)
			return nil
		}
	}
	return nil
}

// dropped adds the barriers, with what the model saves if the epochs on both of its sides become one.
func (b *builder) dropped(drop []int) {
	var open, next cost.Epoch
	var polls interrupt.Every
	k, at, before := 0, 0, -1
	var last ir.Command
	add := func(e cost.Epoch, from int) cost.Epoch {
		for i := from; i < int(b.first[b.epoch[from]+1]); i++ {
			e.Add(b.estimate.Work(b.commands[i]))
		}
		return e
	}
	for i, n := range b.g.Nodes {
		polls.Poll(b.ctx, 64)
		switch n := n.(type) {
		case *ir.Barrier:
			if k < len(drop) && drop[k] == i {
				k++
				if at >= len(b.commands) || before == at {
					b.add(Barrier, "two barriers in a row", b.model.Barrier, last)
					continue
				}
				before = at
				next = add(cost.Epoch{}, at)
				both := add(open, at)
				saves := b.model.Barrier + b.model.Of(open) + b.model.Of(next) - b.model.Of(both)
				b.add(Barrier, "no conflict asks for the barrier between these", max(0, saves), last, b.commands[at])
				continue
			}
			open, before = cost.Epoch{}, at
		case *ir.Commit:
			open = cost.Epoch{}
		case ir.Command:
			open.Add(b.estimate.Work(n))
			last = n
			at++
		}
	}
}
