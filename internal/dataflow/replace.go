package dataflow

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/slab"
	"github.com/mlxc/mlxc/ir"
)

// Replacement is one command in the place of several.
type Replacement struct {
	Members []int32 // ascending indices in [Flow.Commands]
	At      int32   // the member where Command stands
	Command ir.Node
}

// Replace returns the flow of the list in which commands were replaced, without
// looking at the bytes again; nil if that cannot be told from f. Each replacement
// must have known effects: must-writes of regions that members wrote, reads of
// regions that members read from outside; nothing that it does not write may be
// seen outside the group; and nothing that its accesses conflict with stands
// between a member and the place of it.
//
// Only Use.Certain may differ from what [Build] finds: it may be false where no
// command covers the use any longer.
//
// f is spent: its arrays become those of the flow returned.
func (f *Flow) Replace(rs []Replacement) *Flow {
	n := len(f.Commands)
	r := replacer{old: *f, in: make([]int32, n), def: make([]int32, len(f.defs)), owner: make([]int32, 0, len(f.defs)), pieces: make([]piece, len(rs))}
	for i := range r.in {
		r.in[i] = -1
	}
	dropped := 0
	for k := range rs {
		for _, m := range rs[k].Members {
			r.in[m] = int32(k)
		}
		dropped += len(rs[k].Members) - 1
	}
	r.f = &Flow{Graph: f.Graph, hulls: f.hulls, Commands: f.Commands[:0], pillar: f.pillar[:0], live: f.live[:0], uses: f.uses[:0], defs: f.defs[:0],
		useAt: make([]int32, 0, n-dropped+1), defAt: make([]int32, 0, n-dropped+1)}
	if r.inPlace = r.fits(rs, 0, 0); !r.inPlace {
		uses, defs := cap(f.uses)-len(f.uses), cap(f.defs)-len(f.defs)
		if r.fits(rs, int32(uses), int32(defs)) {
			// What is to be read moves to the end first.
			r.old.uses, r.old.defs = f.uses[uses:cap(f.uses)], f.defs[defs:cap(f.defs)]
			copy(r.old.uses, f.uses)
			copy(r.old.defs, f.defs)
		} else {
			r.f.uses, r.f.defs = make([]Use, 0, len(f.uses)), make([]Def, 0, len(f.defs))
		}
	}
	for i := range int32(n) {
		k := r.in[i]
		if k < 0 {
			r.keep(i)
			continue
		}
		// What the members had is read before anything moves to its place.
		if rs[k].Members[0] == i && !r.replace(&rs[k], &r.pieces[k]) {
			return nil
		}
		if rs[k].At == i {
			r.put(rs[k].Command, &r.pieces[k])
		}
	}
	r.f.useAt, r.f.defAt = append(r.f.useAt, int32(len(r.f.uses))), append(r.f.defAt, int32(len(r.f.defs)))
	clear(r.old.Commands[len(r.f.Commands):])
	if !r.sources() {
		return nil
	}
	return r.f
}

// replacer makes f out of old, whose arrays f takes over from the front.
type replacer struct {
	old    Flow
	f      *Flow
	in     []int32 // of each old command: its replacement, or −1
	def    []int32 // of each old def: its number in f, or −1
	owner  []int32 // of each def of f: its command
	pieces []piece // of each replacement
	// inPlace: uses and defs before the first replacement stay where they are.
	inPlace bool

	uses  slab.Slab[Use]
	defs  slab.Slab[Def]
	froms slab.Slab[int32]
	found slab.Slab[Source]
}

// piece is the flow of one replacement.
type piece struct {
	uses []Use
	defs []Def
	from []int32 // the old def that each is
	live bool
}

// fits reports whether nothing that is still to be read is written over, if it
// stands so many uses and defs behind where it is.
func (r *replacer) fits(rs []Replacement, moreUses, moreDefs int32) bool {
	uses, defs := -moreUses, -moreDefs
	for i, k := range r.in {
		if k < 0 {
			uses += r.old.useAt[i+1] - r.old.useAt[i]
			defs += r.old.defAt[i+1] - r.old.defAt[i]
		} else if x := &rs[k]; x.At == int32(i) {
			if e := ir.NodeEffects(x.Command); e != nil {
				uses += int32(len(e.Reads))
				defs += int32(len(e.Writes))
			}
		}
		if uses > r.old.useAt[i+1] || defs > r.old.defAt[i+1] {
			return false
		}
	}
	return true
}

func (r *replacer) begin(n ir.Node, pillar, live bool) {
	f := r.f
	f.useAt, f.defAt = append(f.useAt, int32(len(f.uses))), append(f.defAt, int32(len(f.defs)))
	f.Commands, f.pillar, f.live = append(f.Commands, n), append(f.pillar, pillar), append(f.live, live)
}

func (r *replacer) keep(i int32) {
	old, f := &r.old, r.f
	r.begin(old.Commands[i], old.pillar[i], old.live[i])
	for d := old.defAt[i]; d < old.defAt[i+1]; d++ {
		r.def[d] = int32(len(r.owner))
		r.owner = append(r.owner, int32(len(f.Commands)-1))
	}
	if r.inPlace && int(old.useAt[i]) == len(f.uses) && int(old.defAt[i]) == len(f.defs) {
		f.uses, f.defs = old.uses[:old.useAt[i+1]], old.defs[:old.defAt[i+1]] // they are there
		return
	}
	f.defs = append(f.defs, old.defs[old.defAt[i]:old.defAt[i+1]]...)
	f.uses = append(f.uses, old.uses[old.useAt[i]:old.useAt[i+1]]...)
}

// put enters the command of a replacement.
func (r *replacer) put(n ir.Node, p *piece) {
	r.begin(n, false, p.live)
	for _, d := range p.from {
		r.def[d] = int32(len(r.owner))
		r.owner = append(r.owner, int32(len(r.f.Commands)-1))
	}
	r.f.uses, r.f.defs = append(r.f.uses, p.uses...), append(r.f.defs, p.defs...)
}

// replace finds the flow of the command of a replacement.
func (r *replacer) replace(x *Replacement, p *piece) bool {
	e := ir.NodeEffects(x.Command)
	if !e.Known() {
		return false
	}
	old := &r.old
	p.live = old.live[x.Members[0]]
	for _, m := range x.Members {
		if old.live[m] != p.live {
			return false
		}
		for d := old.defAt[m]; d < old.defAt[m+1]; d++ {
			r.def[d] = -1
		}
	}
	p.uses, p.defs, p.from = r.uses.Take(len(e.Reads)), r.defs.Take(len(e.Writes)), r.froms.Take(len(e.Writes))
	for k := range e.Reads {
		region := Rooted(old.Graph, e.Reads[k])
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
		p.uses[k] = *use
		p.uses[k].Sources = r.found.Clone(use.Sources) // two may be the same use
	}
	for k := range e.Writes {
		w := &e.Writes[k]
		region := Rooted(old.Graph, w.Region)
		from, seen := int32(-1), false
		for _, m := range x.Members {
			for d := old.defAt[m]; d < old.defAt[m+1]; d++ {
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
		p.from[k], p.defs[k] = from, old.defs[from]
	}
	return true
}

// same is [ir.Region.Equal], which is seldom needed.
func same(a, b *ir.Region) bool {
	return a.Mem == b.Mem && a.Off.Const == b.Off.Const && a.Equal(*b)
}

// inside reports whether a use sees a member.
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

// sources renumbers the sources of all uses and turns them into readers.
func (r *replacer) sources() bool {
	f := r.f
	n := 0
	for i := range f.uses {
		ss := f.uses[i].Sources
		n += len(ss)
		for k := range ss {
			s := &ss[k]
			d := r.def[r.old.defAt[s.Command]+s.Write]
			if d < 0 {
				return false
			}
			s.Command = r.owner[d]
			s.Write = d - f.defAt[s.Command]
		}
		if len(ss) > 1 {
			slices.SortFunc(ss, func(a, b Source) int {
				return cmp.Or(cmp.Compare(a.Command, b.Command), cmp.Compare(a.Write, b.Write))
			})
		}
	}
	f.readers(n)
	return true
}
