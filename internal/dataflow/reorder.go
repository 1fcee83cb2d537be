package dataflow

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Reorder makes f the flow of the list in another order, in place: command i is
// what was order[i]. Commands that conflict must be as they were to one another,
// so that every read sees the writes that it saw.
func (f *Flow) Reorder(order []int32) {
	at := make([]int32, len(order)) // the new place of each
	moved := false
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
	for i := range f.uses {
		ss := f.uses[i].Sources
		for k := range ss {
			ss[k].Command = at[ss[k].Command]
		}
		if len(ss) > 1 {
			slices.SortFunc(ss, func(a, b Source) int {
				return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Write, b.Write))
			})
		}
	}
	for i := range f.defs {
		rs := f.defs[i].Readers
		for k := range rs {
			rs[k].Command = at[rs[k].Command]
		}
		if len(rs) > 1 {
			slices.SortFunc(rs, func(a, b Reader) int {
				return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Read, b.Read))
			})
		}
	}
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
	f.facts.forget()
}
