package dataflow

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Flow is the result of [Build]. Its slices are shared: do not change them.
type Flow struct {
	Graph    *ir.Graph
	Commands []ir.Command // in list order, without barriers, commits and groups

	byID    []named // ascending; made when it is first needed
	spans   []span  // by command
	uses    []Use
	defs    []Def
	pillar  []bool
	live    []bool
	crowd   []int32 // commands whose effects are known but count as unknown
	widened bool    // some def is wide
	facts   *bytestate.Facts
	// The slabs that Use.Sources and Def.Readers are parts of.
	sources []Source
	readers []Reader
}

// span says where the uses and defs of a command are.
type span struct{ use, useEnd, def, defEnd int32 }

// Bounds returns the bounds of expressions over the graph's params.
func (f *Flow) Bounds() *ir.Bounds { return f.facts.Bounds() }

// Facts returns the facts of the graph's regions. The flow uses them too, so they are
// not for concurrent use.
func (f *Flow) Facts() *bytestate.Facts { return f.facts }

// Hull returns the hull [lo, end) of a region in its root memory, over all values of
// the params. Not for concurrent use.
func (f *Flow) Hull(r *ir.Region) (lo, end int64) {
	a, _ := f.facts.Place(r)
	return a.Lo, a.End
}

// Use is a region that a command reads.
type Use struct {
	Region  ir.Region // in its root memory; of memory NoMem for a command of unknown effects
	Sources []Source  // the defs that it may see, oldest first
	// Initial says that it may see bytes that no command of this replay wrote.
	Initial bool
	// Certain says that it does see such bytes, whatever the params.
	Certain bool
	// Update is the number of the may-write whose old bytes this use stands for; −1 for
	// the reads that the effects list, and for constants.
	Update int32
}

// Source is one def that a use may see.
type Source struct {
	Command int32 // its command, as an index in [Flow.Commands]
	Write   int32 // its number among [Flow.Writes] of that command
	Must    bool  // a must-write
	Whole   bool  // it covers the region of the use, whatever the params
}

// Single returns the must-write from which all bytes of the use come. ok is false if
// there may be others.
func (u *Use) Single() (Source, bool) {
	if len(u.Sources) != 1 || u.Initial {
		return Source{}, false
	}
	s := u.Sources[0]
	return s, s.Must && s.Whole
}

// Def is a region that a command writes.
type Def struct {
	Region  ir.Region // in its root memory; of memory NoMem for a command of unknown effects
	Must    bool
	Readers []Reader // the uses that may see it, in list order
	Final   bool     // an output or state may hold its bytes at the end
	// Wide says that the command writes only some bytes of Region. The def stands for this write
	// and for all writes that it meets, because these are too many to list. It is a may-write, and
	// its command neither moves nor becomes part of another.
	Wide bool
}

// Reader is a use: number Read among [Flow.Reads] of command Command.
type Reader struct{ Command, Read int32 }

// named is the index in Commands of the command with an ID.
type named struct {
	id ir.ID
	at int32
}

// Index returns the index in Commands of the command with an ID.
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

// Reads returns the uses of command i: first the reads of its effects in their order,
// then the old bytes of each may-write, then what it reads as constants from memory
// that commands write ([hazard.Given]).
func (f *Flow) Reads(i int) []Use {
	s := &f.spans[i]
	return f.uses[s.use:s.useEnd:s.useEnd]
}

// Writes returns the defs of command i: the writes of its effects in their order.
func (f *Flow) Writes(i int) []Def {
	s := &f.spans[i]
	return f.defs[s.def:s.defEnd:s.defEnd]
}

// Uses returns the number of uses in the graph. Read k of command i is use
// FirstUse(i)+k, for callers that keep tables of uses; writes and defs are numbered
// likewise.
func (f *Flow) Uses() int { return len(f.uses) }

// Defs returns the number of defs in the graph; see Uses.
func (f *Flow) Defs() int { return len(f.defs) }

// FirstUse returns the number of the first read of command i; see Uses.
func (f *Flow) FirstUse(i int) int32 { return f.spans[i].use }

// FirstDef returns the number of the first write of command i; see Uses.
func (f *Flow) FirstDef(i int) int32 { return f.spans[i].def }

// def returns the number of the def that a source refers to.
func (f *Flow) def(s *Source) int32 { return f.spans[s.Command].def + s.Write }

// Unknown reports whether the effects of command i are unknown or count as unknown;
// [Flow.Why] says why.
func (f *Flow) Unknown(i int) bool { return f.pillar[i] }

// Crowded reports whether the effects of some command count as unknown although they
// are known, because the writes that it may see are too many to list.
func (f *Flow) Crowded() bool { return len(f.crowd) > 0 }

// Widened reports whether some def is wide ([Def.Wide]). What is known of the order of
// wide defs holds for the present list only.
func (f *Flow) Widened() bool { return f.widened }

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

// Live reports whether what command i writes may reach an output, a state or a command
// of unknown effects. A command of unknown effects is live.
func (f *Flow) Live(i int) bool { return f.live[i] }

// Fixed reports whether no command writes memory m.
func (f *Flow) Fixed(m ir.MemID) bool { return f.facts.Fixed(m) }

// Levels returns, by command, the length of the longest chain of values that ends in it, itself
// included. depth is the max of these lengths. Docs and reports call it depth∞: no renaming of
// memory and no reordering brings the graph below this number of epochs. No chain crosses a command
// of unknown effects.
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

// Undefined is a read of bytes of scratch memory or an output that no command wrote, by
// a command whose results may reach an output or state.
type Undefined struct {
	Command int32
	Use     *Use
}

// Undefined lists these reads in list order. If Use.Certain of one is set, the
// recording is faulty; otherwise it may be.
func (f *Flow) Undefined() []Undefined {
	var out []Undefined
	for i := range f.Commands {
		if !f.live[i] || f.pillar[i] {
			continue
		}
		us := f.Reads(i)
		for k := range us {
			if !us[k].Initial || us[k].Update >= 0 && f.Writes(i)[us[k].Update].Wide {
				continue
			}
			if kind := f.Graph.Memories[us[k].Region.Mem].Kind; kind == ir.Scratch || kind == ir.Output {
				out = append(out, Undefined{int32(i), &us[k]})
			}
		}
	}
	return out
}
