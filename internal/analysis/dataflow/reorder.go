package dataflow

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Reorder makes f the flow of the list in another order, in place: command i is
// what was order[i]. Commands that conflict must be as they were to one another,
// so that every read sees the writes that it saw. The commands that are not live
// ([Flow.Live]) may be left out, all of them.
func (f *Flow) Reorder(order []int32) {
	const gone = -1
	at := make([]int32, len(f.Commands)) // the new place of each
	for i := range at {
		at[i] = gone
	}
	moved := len(order) < len(at)
	for i, j := range order {
		at[j] = int32(i)
		moved = moved || int(j) != i
	}
	if !moved {
		return
	}
	f.byID = nil
	f.Commands, f.spans = permuted(f.Commands, order), permuted(f.spans, order)
	f.pillar, f.live = permuted(f.pillar, order), permuted(f.live, order)
	for i := range f.Commands {
		us, ds := f.Reads(i), f.Writes(i)
		for k := range us {
			ss := us[k].Sources // of live commands, if any was left out
			for j := range ss {
				ss[j].Command = at[ss[j].Command]
			}
			if len(ss) > 1 && !slices.IsSortedFunc(ss, earlierWrite) {
				slices.SortFunc(ss, earlierWrite)
			}
		}
		for k := range ds {
			rs := ds[k].Readers[:0]
			for _, r := range ds[k].Readers {
				if r.Command = at[r.Command]; r.Command != gone {
					rs = append(rs, r)
				}
			}
			if len(rs) > 1 && !slices.IsSortedFunc(rs, earlierRead) {
				slices.SortFunc(rs, earlierRead)
			}
			ds[k].Readers = rs
		}
	}
}

func earlierWrite(a, b Source) int {
	return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Write, b.Write))
}

func earlierRead(a, b Reader) int {
	return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Read, b.Read))
}

func permuted[T any](x []T, order []int32) []T {
	out := make([]T, len(order))
	for i, j := range order {
		out[i] = x[j]
	}
	return out
}

// Renumber follows a change of the numbers of memories: m is now to[m]. No command
// touches what is gone.
func (f *Flow) Renumber(to []ir.MemID) {
	number := func(r *ir.Region) {
		if r.Mem != ir.NoMem {
			r.Mem = to[r.Mem]
		}
	}
	for i := range f.uses {
		number(&f.uses[i].Region)
	}
	for i := range f.defs {
		number(&f.defs[i].Region)
	}
	f.facts = bytestate.NewFacts(f.Graph) // its regions are of the old numbers
}
