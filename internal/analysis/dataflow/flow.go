package dataflow

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Flow is what [Build] found. Its slices are shared: do not change them.
type Flow struct {
	Graph    *ir.Graph
	Commands []ir.Command // without barriers, commits and groups, in list order

	byID   []named // ascending; made when first asked
	spans  []span  // of each command
	uses   []Use
	defs   []Def
	pillar []bool
	live   []bool
	crowd  []int32 // commands whose known effects count as unknown
	facts  *bytestate.Facts
	// Where the sources of uses and the readers of defs lie.
	sources []Source
	readers []Reader
}

// span is where the uses and defs of a command are.
type span struct{ use, useEnd, def, defEnd int32 }

// Bounds returns the bounds of expressions over the graph's params.
func (f *Flow) Bounds() *ir.Bounds { return f.facts.Bounds() }

// Facts are those of the graph's regions, which the flow uses too: not for concurrent
// use.
func (f *Flow) Facts() *bytestate.Facts { return f.facts }

// Hull returns bounds [lo, end) of the bytes of a region, in its root memory, over all
// values of the params: not for concurrent use.
func (f *Flow) Hull(r *ir.Region) (lo, end int64) {
	a, _ := f.facts.Place(r)
	return a.Lo, a.End
}

// Use is a region that a command reads.
type Use struct {
	Region  ir.Region // rooted; of memory NoMem for a command of unknown effects
	Sources []Source  // the defs that it may see, oldest first
	// Initial: it may see bytes that no command of this replay wrote.
	Initial bool
	// Certain: it does see such bytes, whatever the params.
	Certain bool
	// Update is −1 for what the effects list as a read, and for constants; for the old
	// bytes of a may-write, the number of that write.
	Update int32
}

// Source is one def that a use may see.
type Source struct {
	Command int32 // index in [Flow.Commands]
	Write   int32 // number of the def among [Flow.Writes] of that command
	Must    bool  // a must-write
	Whole   bool  // it covers the use's region, whatever the params
}

// Single returns the must-write whose bytes the use sees, all of them and no
// others.
func (u *Use) Single() (Source, bool) {
	if len(u.Sources) != 1 || u.Initial {
		return Source{}, false
	}
	s := u.Sources[0]
	return s, s.Must && s.Whole
}

// Def is a region that a command writes.
type Def struct {
	Region  ir.Region // rooted; of memory NoMem for a command of unknown effects
	Must    bool
	Readers []Reader // the uses that may see it, in list order
	Final   bool     // an output or state may end with its bytes
}

// Reader is a use: number Read among [Flow.Reads] of a command.
type Reader struct{ Command, Read int32 }

// named is the place of a command in Commands, by its ID.
type named struct {
	id ir.ID
	at int32
}

// Index returns the place of a command in Commands.
func (f *Flow) Index(id ir.ID) (int, bool) {
	if f.byID == nil {
		sorted := true
		f.byID = make([]named, len(f.Commands))
		for i, n := range f.Commands {
			x := n.Num()
			f.byID[i] = named{x, int32(i)}
			sorted = sorted && (i == 0 || f.byID[i-1].id <= x)
		}
		if !sorted {
			slices.SortFunc(f.byID, func(x, y named) int { return cmp.Compare(x.id, y.id) })
		}
	}
	k, ok := slices.BinarySearchFunc(f.byID, id, func(x named, id ir.ID) int { return cmp.Compare(x.id, id) })
	if !ok {
		return 0, false
	}
	return int(f.byID[k].at), true
}

// Reads returns the uses of command i: the reads of its effects in their order,
// then the old bytes of each may-write, then what it is given as a constant in
// memory that commands write ([hazard.Given]).
func (f *Flow) Reads(i int) []Use {
	s := &f.spans[i]
	return f.uses[s.use:s.useEnd:s.useEnd]
}

// Writes returns the defs of command i: the writes of its effects in their
// order.
func (f *Flow) Writes(i int) []Def {
	s := &f.spans[i]
	return f.defs[s.def:s.defEnd:s.defEnd]
}

// Uses and Defs return how many there are in the whole graph. FirstUse and
// FirstDef number them, for tables: read k of command i is use FirstUse(i)+k.
func (f *Flow) Uses() int { return len(f.uses) }

// Defs: see Uses.
func (f *Flow) Defs() int { return len(f.defs) }

// FirstUse returns the number of the first read of command i; see Uses.
func (f *Flow) FirstUse(i int) int32 { return f.spans[i].use }

// FirstDef returns the number of the first write of command i; see Uses.
func (f *Flow) FirstDef(i int) int32 { return f.spans[i].def }

// def returns the number of the def of a source.
func (f *Flow) def(s *Source) int32 { return f.spans[s.Command].def + s.Write }

// Unknown reports whether the effects of command i are unknown, or count as such:
// see [Flow.Why].
func (f *Flow) Unknown(i int) bool { return f.pillar[i] }

// Crowded reports whether commands whose effects are known count as unknown, because
// the writes that they may see, or that params move, are too many to be listed.
func (f *Flow) Crowded() bool { return len(f.crowd) > 0 }

// Why says why command i is [Flow.Unknown].
func (f *Flow) Why(i int) string {
	if d, ok := f.Commands[i].(*ir.Dispatch); ok && !d.Effects.Known() {
		return "its effects are unknown"
	}
	return "it meets too many ranges: of many that read what many wrote, or that params move over one another"
}

// Pillar returns the first command of unknown effects, or −1.
func (f *Flow) Pillar() int {
	for i, p := range f.pillar {
		if p {
			return i
		}
	}
	return -1
}

// Live reports whether what command i writes may reach an output or state, or a
// command of unknown effects; such a command itself is live.
func (f *Flow) Live(i int) bool { return f.live[i] }

// Fixed reports whether no command writes memory m.
func (f *Flow) Fixed(m ir.MemID) bool { return f.facts.Fixed(m) }

// Levels returns for each command the length of the longest chain of values that
// ends in it, itself included, and the greatest of them: depth∞, the number of
// epochs below which no renaming and no order brings the graph. Nothing crosses a
// command of unknown effects.
func (f *Flow) Levels() (levels []int32, depth int32) {
	levels = make([]int32, len(f.Commands))
	floor := int32(0)
	for i := range f.Commands {
		l := floor
		for _, u := range f.Reads(i) {
			for _, s := range u.Sources {
				l = max(l, levels[s.Command])
			}
		}
		if f.pillar[i] {
			l = depth
			floor = l + 1
		}
		levels[i] = l + 1
		depth = max(depth, l+1)
	}
	return levels, depth
}

// Undefined is a read of scratch or output bytes that no command wrote, by a
// command whose results may reach an output or state.
type Undefined struct {
	Command int32
	Use     *Use
}

// Undefined lists them in list order. A recording that has one with Use.Certain
// set is faulty; without it, it may be.
func (f *Flow) Undefined() []Undefined {
	var out []Undefined
	for i := range f.Commands {
		if !f.live[i] || f.pillar[i] {
			continue
		}
		us := f.Reads(i)
		for k := range us {
			if !us[k].Initial {
				continue
			}
			if kind := f.Graph.Memories[us[k].Region.Mem].Kind; kind == ir.Scratch || kind == ir.Output {
				out = append(out, Undefined{int32(i), &us[k]})
			}
		}
	}
	return out
}
