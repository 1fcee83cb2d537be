package dataflow

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// A constant strided write with few runs is entered run by run, which is exact, until such runs of
// the graph are too many. After that, the write counts as a region that may miss bytes of its hull.
const (
	maxRuns       = 256     // of one write
	freeRuns      = 1 << 18 // of a whole graph
	runsPerAccess = 8       // and for each of its accesses
)

// builder goes through the list of commands. Its [bytestate.State] knows which def
// wrote each byte last. A command that meets k of n defs costs O((k+1) log n).
type builder struct {
	ctx      context.Context
	g        *ir.Graph
	f        *Flow
	state    *bytestate.State
	accesses []bytestate.Access  // by def; root None: it touches no byte
	allowed  int                 // how many defs reads and writes may still meet
	runs     int                 // how many runs of strided writes may still be entered
	listed   int                 // how many writes may still be listed for reads that meet too many
	widened  map[int32]ir.Region // by write of the current command that is wide: the bytes that it counts as writing
	bottom   int32               // what untouched memory holds: the def of the last command of unknown effects, or −1

	command []int32 // by def: its command
	slab    []Source
	found   []int32
	stamp   []int32 // by def: the last unknown command whose sources contain it; allocated for the first such command
}

// Build computes the flow of g from the effects that it stores. It looks at one replay,
// at whose beginning scratch memory and outputs are undefined. ctx is polled
// ([interrupt.Poll]).
func Build(ctx context.Context, g *ir.Graph) *Flow {
	facts := bytestate.NewFacts(g)
	b := &builder{ctx: ctx, g: g, f: &Flow{Graph: g, facts: facts}, state: bytestate.NewState(ctx, facts, -1), bottom: -1}
	b.count()
	var polls interrupt.Every
	for i := range b.f.Commands {
		polls.Poll(ctx, 64)
		b.add(int32(i))
	}
	b.finish()
	return b.f
}

// count lists the commands, and allocates the tables.
func (b *builder) count() {
	f := b.f
	n, uses, defs := 0, 0, 0
	for _, x := range b.g.Nodes {
		if _, ok := x.(ir.Command); !ok {
			continue
		}
		n++
		switch x := x.(type) {
		case *ir.Dispatch:
			if x.Effects.Known() {
				uses += len(x.Effects.Reads)
				defs += len(x.Effects.Writes)
			} else {
				uses, defs = uses+1, defs+1
			}
		case *ir.Copy:
			uses, defs = uses+1, defs+1
		case *ir.Fill:
			defs++
		case *ir.Carry:
			uses, defs = uses+2, defs+1
		}
	}
	f.Commands = make([]ir.Command, 0, n)
	f.spans = make([]span, n)
	f.pillar, f.live = make([]bool, n), make([]bool, n)
	b.allowed = bytestate.Bound().Looks(uses + defs)
	b.listed = b.allowed / 4
	b.runs = freeRuns + runsPerAccess*(uses+defs)
	f.uses, f.defs = make([]Use, 0, uses), make([]Def, 0, defs)
	b.command, b.accesses = make([]int32, 0, defs), make([]bytestate.Access, 0, defs)
	b.slab = make([]Source, 0, uses)
	for _, x := range b.g.Nodes {
		if x, ok := x.(ir.Command); ok {
			f.Commands = append(f.Commands, x)
		}
	}
}

func (b *builder) add(i int32) {
	f := b.f
	clear(b.widened)
	if b.state.Looked() > b.allowed && b.crowded(i) {
		f.crowd = append(f.crowd, i)
	}
	s := &f.spans[i]
	s.use, s.def = int32(len(f.uses)), int32(len(f.defs))
	b.effects(i)
	s.useEnd, s.defEnd = int32(len(f.uses)), int32(len(f.defs))
}

// crowded reports whether the reads of command i meet too many writes, and notes in b.widened which
// of its writes do. Within [bytestate.Limits] the writes that a read may see are listed, and writes
// that params move are compared one by one. Beyond the limits, a command whose reads meet too many
// writes counts as one of unknown effects: it reads everything and may write everything. A write
// that meets too many others counts as a may-write to every byte of the range that it and those
// others span ([Def.Wide]). That is less precise, and still sound.
func (b *builder) crowded(i int32) bool {
	most := bytestate.Bound().Crowd
	meets := func(r *ir.Region, must bool) bool {
		a, ok := b.f.facts.Resolve(r)
		a.Must = must
		return ok && b.state.Crowded(&a, most)
	}
	// A few reads may see many writes each, such as reads of a matrix whose columns were written by
	// one command each.
	sees := func(r *ir.Region) bool {
		a, ok := b.f.facts.Resolve(r)
		if !ok || !b.state.Crowded(&a, most) {
			return false
		}
		before := b.state.Looked()
		if b.listed <= most || b.state.Crowded(&a, b.listed) {
			return true
		}
		b.state.Begin()
		b.state.Look(&a)
		b.listed -= b.state.Looked() - before
		return false
	}
	e := b.f.Commands[i].Touches()
	if !e.Known() {
		return false
	}
	for k := range e.Reads {
		if sees(&e.Reads[k]) {
			return true
		}
	}
	for k := range e.Writes {
		if w := &e.Writes[k]; meets(&w.Region, w.Must && !w.Atomic) {
			if b.widened == nil {
				b.widened = map[int32]ir.Region{}
			}
			b.widened[int32(k)] = ir.Region{}
		}
	}
	given := false
	if d, ok := b.f.Commands[i].(*ir.Dispatch); ok {
		hazard.Given(b.g, d, func(r ir.Region) { given = given || sees(&r) })
	}
	return given
}

// wide returns the range from the first to the last byte of r and of all writes that it meets.
func (b *builder) wide(r *ir.Region) ir.Region {
	a, _ := b.f.facts.Resolve(r)
	a.Region = 0 // the gaps are included, so that one cell replaces all others
	lo, end := a.Lo, a.End
	b.state.Begin()
	for _, h := range b.state.Look(&a) {
		c := b.state.Cell(h)
		lo, end = min(lo, c.Lo), max(end, c.End)
	}
	return ir.ViewOf(ir.MemID(a.Root), lo, end-lo).Contiguous()
}

// effects enters the accesses of command i.
func (b *builder) effects(i int32) {
	if n := len(b.f.crowd); n > 0 && b.f.crowd[n-1] == i {
		b.unknown(i)
		return
	}
	switch x := b.f.Commands[i].(type) {
	case *ir.Copy:
		src, dst := x.Src.Contiguous(), x.Dst.Contiguous()
		b.use(&src, -1)
		b.def(i, &dst, true)
	case *ir.Fill:
		dst := x.Dst.Contiguous()
		b.def(i, &dst, true)
	case *ir.Carry:
		src, dst := x.Src.Contiguous(), x.Dst.Contiguous()
		b.use(&src, -1)
		b.use(&dst, 0)
		b.def(i, &dst, false)
	case *ir.Dispatch:
		if !x.Effects.Known() {
			b.unknown(i)
			return
		}
		for k := range x.Effects.Reads {
			b.use(&x.Effects.Reads[k], -1)
		}
		for k := range x.Effects.Writes {
			w := &x.Effects.Writes[k]
			if _, ok := b.widened[int32(k)]; ok {
				// The def has the bytes of this use, whatever the command's other writes leave there by then.
				r := b.wide(&w.Region)
				b.widened[int32(k)] = r
				b.use(&r, int32(k))
			} else if !w.Must || w.Atomic {
				b.use(&w.Region, int32(k))
			}
		}
		hazard.Given(b.g, x, func(r ir.Region) { b.use(&r, -1) })
		for k := range x.Effects.Writes {
			w := &x.Effects.Writes[k]
			if r, ok := b.widened[int32(k)]; ok {
				b.def(i, &r, false)
				b.f.defs[len(b.f.defs)-1].Wide, b.f.widened = true, true
				continue
			}
			b.def(i, &w.Region, w.Must && !w.Atomic)
		}
	}
}

// use enters a read of r and finds its sources.
func (b *builder) use(r *ir.Region, update int32) {
	f := b.f
	f.uses = append(f.uses, Use{Region: f.facts.Rooted(r), Update: update})
	u := &f.uses[len(f.uses)-1]
	if f.facts.Fixed(r.Mem) {
		u.Initial, u.Certain = !bytestate.Empty(r), !bytestate.Empty(r)
		return
	}
	a, ok := f.facts.Resolve(r)
	if !ok {
		return
	}
	first := len(b.slab)
	u.Initial, u.Certain = b.sources(&a)
	u.Sources = b.slab[first:len(b.slab):len(b.slab)]
}

// sources appends to the slab the defs that a may see, oldest first.
func (b *builder) sources(a *bytestate.Access) (initial, certain bool) {
	s := b.state
	s.Begin()
	met := s.Look(a)
	if len(met) == 1 {
		// The usual case: one def covers all of it.
		if c := s.Cell(met[0]); c.Region == 0 && s.Holds(c, a) {
			b.source(c.W, b.f.facts.Within(&b.accesses[c.W], a))
			return false, false
		}
	}
	b.found = b.found[:0]
	over := false
	for _, h := range s.Seen(a, met) {
		c := s.Cell(h)
		over = over || c.Region != 0
		b.found = append(b.found, c.W)
	}
	slices.Sort(b.found)
	b.found = slices.Compact(b.found)
	// Whatever was written before a def that covers all of a cannot be seen.
	covered, last := false, 0
	for k := len(b.found) - 1; k >= 0 && !covered; k-- {
		covered, last = b.f.facts.Within(&b.accesses[b.found[k]], a), k
	}
	if !covered && s.Hole(a) && !b.together(a) {
		if b.bottom >= 0 {
			b.source(b.bottom, true)
		} else {
			initial, certain = true, a.Region == 0 && !over
		}
	}
	for k, def := range b.found[last:] {
		b.source(def, covered && k == 0)
	}
	return initial, certain
}

// together reports whether the must-writes that were found for a leave no byte of it to
// older contents.
func (b *builder) together(a *bytestate.Access) bool {
	if len(b.found) > 64 {
		return false
	}
	var list []bytestate.Access
	for _, def := range b.found {
		if b.f.defs[def].Must {
			list = append(list, b.accesses[def])
		}
	}
	return b.f.facts.Together(a, list)
}

// source appends a def to the slab.
func (b *builder) source(def int32, whole bool) {
	c := b.command[def]
	b.slab = append(b.slab, Source{Command: c, Write: def - b.f.spans[c].def, Must: b.f.defs[def].Must, Whole: whole})
}

// def enters a write of r.
func (b *builder) def(i int32, r *ir.Region, must bool) {
	f := b.f
	n := int32(len(f.defs))
	a, ok := f.facts.Resolve(r)
	f.defs = append(f.defs, Def{Region: f.facts.Rooted(r), Must: must})
	b.command, b.accesses = append(b.command, i), append(b.accesses, a)
	if !ok {
		return
	}
	s := b.state
	s.Begin()
	if a.Region == 0 {
		s.AddWrite(0, &a, n)
		return
	}
	part := a
	part.Region = 0
	if x := b.f.facts.At(a.Region); b.runs > 0 && x.HasRuns(maxRuns) {
		x.Runs(nil, func(lo, end int64) bool {
			part.Lo, part.End = lo, end
			s.AddWrite(0, &part, n)
			b.runs--
			b.allowed++ // it meets itself
			return true
		})
		return
	} else if s.AddWrite(0, &a, n); x.CoreLo < x.CoreEnd {
		// It covers its core for every value of the params, so it hides all older bytes
		// there.
		part.Lo, part.End = x.CoreLo, x.CoreEnd
		s.AddWrite(0, &part, n)
	}
}

// unknown enters a command that reads and may-writes everything.
func (b *builder) unknown(i int32) {
	b.f.pillar[i] = true
	first := len(b.slab)
	b.found = b.found[:0]
	b.stamp = append(b.stamp, make([]int32, len(b.f.defs)-len(b.stamp))...)
	serial := int32(len(b.f.uses)) + 1
	see := func(def int32) {
		if b.stamp[def] != serial {
			b.stamp[def] = serial
			b.found = append(b.found, def)
		}
	}
	if b.bottom >= 0 {
		see(b.bottom)
	}
	b.state.Each(func(_ ir.MemID, c *bytestate.Cell) { see(c.W) })
	slices.Sort(b.found)
	for _, def := range b.found {
		c := b.command[def]
		b.slab = append(b.slab, Source{Command: c, Write: def - b.f.spans[c].def, Must: b.f.defs[def].Must})
	}
	b.f.uses = append(b.f.uses, Use{Region: ir.Region{Mem: ir.NoMem}, Sources: b.slab[first:len(b.slab):len(b.slab)], Initial: true, Update: 0})
	b.bottom = int32(len(b.f.defs))
	b.f.defs = append(b.f.defs, Def{Region: ir.Region{Mem: ir.NoMem}, Final: true})
	b.command, b.accesses = append(b.command, i), append(b.accesses, bytestate.Access{Root: bytestate.None})
	b.state.Reset()
}

// outlives reports whether the contents of a memory of kind k are seen after the
// replay: by the host or, if something is carried to an input, by the next replay.
func outlives(k ir.MemKind) bool { return k == ir.Output || k == ir.State || k == ir.Input }

// finish turns sources into readers, and marks the defs that are final and the commands
// that are live.
func (b *builder) finish() {
	f := b.f
	b.state.Each(func(root ir.MemID, c *bytestate.Cell) {
		if outlives(b.g.Memories[root].Kind) {
			f.defs[c.W].Final = true
		}
	})
	f.sources = b.slab
	f.read(len(b.slab))
	for i := len(f.Commands) - 1; i >= 0; i-- {
		live := f.pillar[i]
		ds := f.Writes(i)
		beneath(f.facts.Bounds(), ds)
		for k := range ds {
			live = live || ds[k].Final
			for _, r := range ds[k].Readers {
				live = live || f.live[r.Command]
			}
		}
		f.live[i] = live
		us := f.Reads(i)
		for k := range us {
			// The bytes beneath a final may-write are final too.
			if us[k].Update < 0 || !ds[us[k].Update].Final {
				continue
			}
			for _, s := range us[k].Sources {
				if d := &f.defs[f.def(&s)]; d.Region.Mem != ir.NoMem {
					d.Final = d.Final || outlives(b.g.Memories[d.Region.Mem].Kind)
				}
			}
		}
	}
}

// beneath marks earlier writes of the same command as final if a final may-write may
// leave their bytes alone: the writes of one command are ordered only by the list of
// its effects.
func beneath(b *ir.Bounds, ds []Def) {
	for k := len(ds) - 1; k > 0; k-- {
		if ds[k].Must || !ds[k].Final {
			continue
		}
		for j := range k {
			ds[j].Final = ds[j].Final || len(ds) > 64 || !bytestate.DisjointIn(b, ds[j].Region, ds[k].Region)
		}
	}
}

// read fills Def.Readers. sources is the number of all sources, which is the size of
// the slab of readers.
func (f *Flow) read(sources int) {
	count := make([]int32, len(f.defs)+1)
	for i := range f.uses {
		for _, s := range f.uses[i].Sources {
			count[f.def(&s)+1]++
		}
	}
	for i := 1; i < len(count); i++ {
		count[i] += count[i-1]
	}
	f.readers = room(f.readers, sources)
	slab := f.readers[:sources]
	for i := range f.defs {
		f.defs[i].Readers = slab[count[i]:count[i]:count[i+1]]
	}
	for i := range f.Commands {
		us := f.Reads(i)
		for k := range us {
			for _, s := range us[k].Sources {
				d := &f.defs[f.def(&s)]
				d.Readers = append(d.Readers, Reader{int32(i), int32(k)})
			}
		}
	}
}
