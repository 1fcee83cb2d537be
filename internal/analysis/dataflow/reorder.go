package dataflow

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Reorder turns f, in place, into the flow of the list in another order, in which
// command i is the former command order[i]. Commands that conflict must keep their
// order, so that every read sees the writes that it saw before. Commands that are not
// live ([Flow.Live]) may be left out, but only all of them together.
func (f *Flow) Reorder(order []int32) {
	const gone = -1
	at := make([]int32, len(f.Commands)) // the new index of each
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
			ss := us[k].Sources // all of live commands, if any was left out
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

// Renumber follows a change of the numbers of memories: memory m becomes to[m]. No
// command may touch a memory that is removed.
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
	f.facts = bytestate.NewFacts(f.Graph) // the old facts have regions with old numbers
}
