package dataflow

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Replacement is one command that takes the place of several.
type Replacement struct {
	Members []int32 // indices in [Flow.Commands], ascending
	At      int32   // the member at whose position Command stands
	Command ir.Command
}

// Replace returns the flow of the list in which commands were replaced, without looking
// at bytes again. It returns nil if f does not suffice for that. The command of each
// replacement must have known effects: it must-writes regions that members wrote, and
// reads regions that members read from outside. What members wrote and it does not
// write must not be seen outside the group. No command that conflicts with its accesses
// may stand between a member and its own position.
//
// The result may differ from that of [Build] only in Use.Certain, which may be false
// where no command covers the use any longer.
//
// spare is a flow that is not needed any more, whose memory is reused, or nil.
func (f *Flow) Replace(rs []Replacement, spare *Flow) *Flow {
	if f.widened {
		return nil
	}
	r := replacer{old: f, in: make([]int32, len(f.Commands)), def: make([]int32, len(f.defs))}
	dropped := 0
	for i := range r.in {
		r.in[i] = -1
	}
	for k := range rs {
		for _, m := range rs[k].Members {
			r.in[m] = int32(k)
		}
		dropped += len(rs[k].Members) - 1
	}
	if spare == nil {
		spare = &Flow{}
	}
	n := len(f.Commands) - dropped
	r.f = &Flow{Graph: f.Graph, facts: f.facts, Commands: room(spare.Commands, n), spans: room(spare.spans, n),
		uses: room(spare.uses, len(f.uses)), defs: room(spare.defs, len(f.defs)), pillar: room(spare.pillar, n), live: room(spare.live, n),
		sources: spare.sources, readers: spare.readers}
	for i := range f.Commands {
		k := r.in[i]
		switch {
		case k < 0:
			r.keep(i)
		case rs[k].At == int32(i):
			if !r.replace(&rs[k]) {
				return nil
			}
		}
	}
	if !r.sources() {
		return nil
	}
	return r.f
}

// room returns an empty slice with capacity n, in the memory of s if that suffices.
func room[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, 0, n)
	}
	return s[:0]
}

// replacer computes f from old.
type replacer struct {
	old, f *Flow
	in     []int32 // by old command: its replacement, or −1
	def    []int32 // by old def: its number in f, or −1
	owner  []int32 // by def of f: its command
}

func (r *replacer) begin(n ir.Command, pillar, live bool) {
	f := r.f
	f.spans = append(f.spans, span{use: int32(len(f.uses)), def: int32(len(f.defs))})
	f.Commands, f.pillar, f.live = append(f.Commands, n), append(f.pillar, pillar), append(f.live, live)
}

// end closes the command that begin opened.
func (r *replacer) end() {
	s := &r.f.spans[len(r.f.spans)-1]
	s.useEnd, s.defEnd = int32(len(r.f.uses)), int32(len(r.f.defs))
}

func (r *replacer) keep(i int) {
	r.begin(r.old.Commands[i], r.old.pillar[i], r.old.live[i])
	f := r.f
	for d := r.old.spans[i].def; d < r.old.spans[i].defEnd; d++ {
		r.def[d] = int32(len(f.defs))
		r.owner = append(r.owner, int32(len(f.Commands)-1))
		f.defs = append(f.defs, r.old.defs[d])
	}
	f.uses = append(f.uses, r.old.Reads(i)...)
	r.end()
}

// replace enters the command of a replacement.
func (r *replacer) replace(x *Replacement) bool {
	e := x.Command.Touches()
	if !e.Known() {
		return false
	}
	old, f := r.old, r.f
	live := old.live[x.Members[0]]
	for _, m := range x.Members {
		if old.live[m] != live {
			return false
		}
		for d := old.spans[m].def; d < old.spans[m].defEnd; d++ {
			r.def[d] = -1
		}
	}
	r.begin(x.Command, false, live)
	for k := range e.Reads {
		region := f.facts.Rooted(&e.Reads[k])
		var use *Use
		for _, m := range x.Members {
			us := old.Reads(int(m))
			for j := range us {
				u := &us[j]
				if !same(&u.Region, &region) || u.Update >= 0 || r.inside(u, x) {
					continue
				}
				if use != nil && (use.Initial != u.Initial || !slices.Equal(use.Sources, u.Sources)) {
					return false
				}
				use = u
			}
		}
		if use == nil {
			return false
		}
		f.uses = append(f.uses, *use)
	}
	for k := range e.Writes {
		w := &e.Writes[k]
		region := f.facts.Rooted(&w.Region)
		from, seen := int32(-1), false
		for _, m := range x.Members {
			for d := old.spans[m].def; d < old.spans[m].defEnd; d++ {
				def := &old.defs[d]
				if !def.Must || !same(&def.Region, &region) {
					continue
				}
				if now := def.Final || r.seen(def, x); now || !seen {
					if now && seen {
						return false
					}
					from, seen = d, now
				}
			}
		}
		if from < 0 || !w.Must || w.Atomic {
			return false
		}
		r.def[from] = int32(len(f.defs))
		r.owner = append(r.owner, int32(len(f.Commands)-1))
		f.defs = append(f.defs, old.defs[from])
	}
	r.end()
	return true
}

// same is [ir.Region.Equal]. Few of the pairs compared here are equal, and two
// comparisons of words rule out most of the others.
func same(a, b *ir.Region) bool {
	return a.Mem == b.Mem && a.Off.Const == b.Off.Const && a.Equal(*b)
}

// inside reports whether a use sees a write of a member.
func (r *replacer) inside(u *Use, x *Replacement) bool {
	for _, s := range u.Sources {
		if slices.Contains(x.Members, s.Command) {
			return true
		}
	}
	return false
}

// seen reports whether a command that is no member reads a def.
func (r *replacer) seen(d *Def, x *Replacement) bool {
	for _, u := range d.Readers {
		if !slices.Contains(x.Members, u.Command) {
			return true
		}
	}
	return false
}

// sources renumbers the sources of all uses, and turns them into readers.
func (r *replacer) sources() bool {
	f := r.f
	n := 0
	for i := range f.uses {
		n += len(f.uses[i].Sources)
	}
	slab := room(f.sources, n)
	for i := range f.uses {
		from := len(slab)
		for _, s := range f.uses[i].Sources {
			d := r.def[r.old.def(&s)]
			if d < 0 {
				return false
			}
			s.Command = r.owner[d]
			s.Write = d - f.spans[s.Command].def
			slab = append(slab, s)
		}
		ss := slab[from:len(slab):len(slab)]
		if len(ss) > 1 {
			slices.SortFunc(ss, earlierWrite)
		}
		f.uses[i].Sources = ss
	}
	f.sources = slab
	f.read(n)
	return true
}
