package dataflow

import (
	"cmp"
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// maxRuns is how many runs of a constant strided write are entered one by one,
// which is exact; one of more runs counts as a hull whose bytes it may miss.
const maxRuns = 32

// builder goes through the list. Per root memory it knows what every byte holds:
// a partition says exactly which def wrote the constant runs; defs that params
// move, or of many runs, lie over it in an interval tree until something covers
// them. Each def enters and leaves once, so that a command costs
// O((k+1) log n) for k defs met.
type builder struct {
	looked  int // writes that reads met, and that params move and writes met, so far
	allowed int // how many may be
	ctx     context.Context
	g       *ir.Graph
	f       *Flow
	mems    []memory // by root
	// Roots touched since the last command of unknown effects.
	touched []ir.MemID
	pillars int32 // number of them so far
	bottom  int32 // the def of the last one, or −1: what untouched memory holds

	command []int32 // of each def
	slab    []Source
	found   []int32
	met     []sighting
	stamp   []int32 // of each def: the unknown command that found it last; made for the first
	roots   []root  // of each memory
}

// root is where a memory lies.
type root struct {
	mem      ir.MemID
	off      int64
	readOnly bool
}

// memory is the state of one root.
type memory struct {
	runs  interval.Partition[int32] // def
	over  interval.Tree[int32]      // place in parts
	parts []part
	gone  int
	era   int32 // 1 + pillars at the time of its last reset
}

// part is a def over the runs.
type part struct {
	def  int32
	gone bool
}

// Build computes the flow of g, by the effects that it stores. The list is one
// replay: scratch and outputs begin undefined.
func Build(ctx context.Context, g *ir.Graph) *Flow {
	b := &builder{ctx: ctx, g: g, f: &Flow{Graph: g, facts: newFacts(g)}, mems: make([]memory, len(g.Memories)), bottom: -1, roots: make([]root, len(g.Memories))}
	b.f.fixed = g.Fixed()
	for i := range g.Memories {
		m, off := g.Root(ir.MemID(i))
		b.roots[i] = root{m, off, b.f.fixed[i]}
	}
	b.count()
	var polls interrupt.Every
	for i := range b.f.Commands {
		polls.Poll(ctx, 64)
		b.add(int32(i))
	}
	b.finish()
	return b.f
}

// count lists the commands and makes room.
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
	b.allowed = lookFree + lookPerAccess*(uses+defs)
	f.uses, f.defs = make([]Use, 0, uses), make([]Def, 0, defs)
	b.command = make([]int32, 0, defs)
	b.slab = make([]Source, 0, uses)
	for _, x := range b.g.Nodes {
		if x, ok := x.(ir.Command); ok {
			f.Commands = append(f.Commands, x)
		}
	}
}

func (b *builder) add(i int32) {
	f := b.f
	if b.looked > b.allowed && b.crowded(i) {
		f.crowd = append(f.crowd, i)
	}
	s := &f.spans[i]
	s.use, s.def = int32(len(f.uses)), int32(len(f.defs))
	b.effects(i)
	s.useEnd, s.defEnd = int32(len(f.uses)), int32(len(f.defs))
}

// The writes that a read may see are listed, and those that params move compared one
// by one, as long as they are no more than what follows; recordings need a few for
// each access. Beyond it a command that meets more than maxCrowd of them, as one of
// many that read what many wrote, counts as one of unknown effects, which reads and
// may write everything: less is known, nothing false.
var (
	lookFree      = 1 << 16 // of a whole graph
	lookPerAccess = 32      // and of each access
	maxCrowd      = 16
)

// crowded reports whether command i meets too many writes.
func (b *builder) crowded(i int32) bool {
	meets := func(r *ir.Region, reads bool) bool {
		at := &b.roots[r.Mem]
		x := *r
		x.Mem, x.Off = at.mem, r.Off.AddConst(at.off)
		if at.readOnly || Empty(&x) {
			return false
		}
		m := b.at(x.Mem)
		n := 0
		lo, end := b.f.facts.hull(&x)
		if m.over.Len()-m.gone > maxCrowd {
			m.over.Overlapping(lo, end, func(k int32) bool {
				n++
				return n <= maxCrowd
			})
		}
		if reads && n <= maxCrowd { // a write takes the place of the runs that it meets
			m.runs.Each(lo, end, func(int64, int64, int32) bool {
				n++
				return n <= maxCrowd
			})
		}
		return n > maxCrowd
	}
	e := b.f.Commands[i].Touches()
	if !e.Known() {
		return false
	}
	for k := range e.Reads {
		if meets(&e.Reads[k], true) {
			return true
		}
	}
	for k := range e.Writes {
		if w := &e.Writes[k]; meets(&w.Region, !w.Must || w.Atomic) {
			return true
		}
	}
	given := false
	if d, ok := b.f.Commands[i].(*ir.Dispatch); ok {
		hazard.Given(b.g, d, func(r ir.Region) { given = given || meets(&r, true) })
	}
	return given
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
			if w := &x.Effects.Writes[k]; !w.Must || w.Atomic {
				b.use(&w.Region, int32(k))
			}
		}
		hazard.Given(b.g, x, func(r ir.Region) { b.use(&r, -1) })
		for k := range x.Effects.Writes {
			w := &x.Effects.Writes[k]
			b.def(i, &w.Region, w.Must && !w.Atomic)
		}
	}
}

// at returns the state of a root, emptied if a command of unknown effects has
// written over it.
func (b *builder) at(m ir.MemID) *memory {
	x := &b.mems[m]
	if x.era != b.pillars+1 {
		x.runs.Reset()
		x.over.Reset()
		x.parts, x.gone, x.era = x.parts[:0], 0, b.pillars+1
		b.touched = append(b.touched, m)
	}
	return x
}

// use enters a read of r and finds its sources.
func (b *builder) use(r *ir.Region, update int32) {
	f, at := b.f, &b.roots[r.Mem]
	f.uses = append(f.uses, Use{Region: *r, Update: update})
	u := &f.uses[len(f.uses)-1]
	u.Region.Mem, u.Region.Off = at.mem, r.Off.AddConst(at.off)
	switch {
	case Empty(r):
	case at.readOnly:
		u.Initial, u.Certain = true, true
	default:
		first := len(b.slab)
		u.Initial, u.Certain = b.sources(&u.Region)
		u.Sources = b.slab[first:len(b.slab):len(b.slab)]
	}
}

// sighting is a def met within the hull of a use: under [lo, end) of the runs, or
// lying over them (end 0).
type sighting struct {
	def     int32
	lo, end int64
}

// sources appends the defs that r may see to the slab. It looks at them from the
// last on: most uses are of one def that covers them, and nothing before it need
// be compared.
func (b *builder) sources(r *ir.Region) (initial, certain bool) {
	m := b.at(r.Mem)
	facts := b.f.facts
	lo, end := facts.hull(r)
	exact := contiguous(r)
	if exact && m.over.Len() == m.gone {
		// The usual case: one def, and nothing else, holds all of it.
		if _, z, def, ok := m.runs.At(lo); ok && z >= end {
			b.source(def, facts.covers(&b.f.defs[def].Region, r))
			return false, false
		}
	}
	b.met = b.met[:0]
	over := false
	m.runs.Each(lo, end, func(a, z int64, def int32) bool {
		b.met = append(b.met, sighting{def, a, z})
		return true
	})
	runs := len(b.met)
	b.looked += runs
	if m.over.Len() > m.gone {
		m.over.Overlapping(lo, end, func(k int32) bool {
			b.looked++
			if p := &m.parts[k]; !p.gone {
				b.met = append(b.met, sighting{def: p.def})
			}
			return true
		})
	}
	if len(b.met) > 1 {
		slices.SortFunc(b.met, func(x, y sighting) int {
			if c := cmp.Compare(x.def, y.def); c != 0 {
				return c
			}
			return cmp.Compare(x.lo, y.lo)
		})
	}
	first := len(b.slab)
	covered := false
	for k := len(b.met) - 1; k >= 0 && !covered; {
		def := b.met[k].def
		d := &b.f.defs[def]
		covered = facts.covers(&d.Region, r)
		seen, lies := false, false
		for ; k >= 0 && b.met[k].def == def; k-- {
			x := &b.met[k]
			lies = lies || x.end == 0
			if seen || exact && x.end > 0 {
				seen = true
			} else if x.end > 0 {
				seen = !disjoint(facts.bounds, *r, ir.ViewOf(r.Mem, x.lo, x.end-x.lo).Contiguous())
			} else {
				seen = d.Region.Equal(*r) || !facts.disjoint(&d.Region, r)
			}
		}
		if seen {
			over = over || lies
			b.source(def, covered)
		}
	}
	if !covered {
		if b.hole(m, r, lo, end, runs, exact) {
			if b.bottom >= 0 {
				b.source(b.bottom, true)
			} else {
				initial, certain = true, exact && !over
			}
		}
	}
	slices.Reverse(b.slab[first:])
	return initial, certain
}

// source appends a def to the slab.
func (b *builder) source(def int32, whole bool) {
	c := b.command[def]
	b.slab = append(b.slab, Source{Command: c, Write: def - b.f.spans[c].def, Must: b.f.defs[def].Must, Whole: whole})
}

// hole reports whether r, of the given hull, may have a byte outside all runs.
func (b *builder) hole(m *memory, r *ir.Region, lo, end int64, runs int, exact bool) bool {
	if runs == 0 && exact {
		return lo < end
	}
	found := false
	check := func(a, z int64) {
		if a < z && !found {
			found = exact || !disjoint(b.f.facts.bounds, *r, ir.ViewOf(r.Mem, a, z-a).Contiguous())
		}
	}
	at := lo
	m.runs.Each(lo, end, func(a, z int64, _ int32) bool {
		check(at, a)
		at = z
		return !found
	})
	check(at, end)
	return found
}

// def enters a write of r.
func (b *builder) def(i int32, r *ir.Region, must bool) {
	f, at := b.f, &b.roots[r.Mem]
	n := int32(len(f.defs))
	f.defs = append(f.defs, Def{Region: *r, Must: must})
	b.command = append(b.command, i)
	r = &f.defs[n].Region
	r.Mem, r.Off = at.mem, r.Off.AddConst(at.off)
	if Empty(r) {
		return
	}
	m := b.at(r.Mem)
	lo, end := f.facts.hull(r)
	if m.over.Len() > m.gone {
		m.over.Overlapping(lo, end, func(k int32) bool {
			b.looked++
			if p := &m.parts[k]; !p.gone && f.facts.covers(r, &f.defs[p.def].Region) {
				p.gone = true
				m.gone++
			}
			return true
		})
		if m.gone > 32 && 2*m.gone > m.over.Len() {
			b.compact(m)
		}
	}
	switch {
	case contiguous(r):
		m.runs.Set(lo, end, n)
		return
	case r.HasRuns(maxRuns):
		r.Runs(nil, func(lo, end int64) bool {
			m.runs.Set(lo, end, n)
			return true
		})
		return
	case len(r.Dims) == 0:
		// What it covers whatever the params, it covers exactly.
		_, first, ok1 := f.facts.bounds.Range(r.Off)
		last, _, ok2 := f.facts.bounds.Range(r.Off.Add(r.Run))
		if ok1 && ok2 {
			m.runs.Set(first, last, n)
		}
	}
	m.parts = append(m.parts, part{def: n})
	m.over.Insert(lo, end, int32(len(m.parts)-1))
}

// compact rebuilds the tree without what is gone.
func (b *builder) compact(m *memory) {
	kept := m.parts[:0]
	for _, p := range m.parts {
		if !p.gone {
			kept = append(kept, p)
		}
	}
	m.parts, m.gone = kept, 0
	m.over.Reset()
	for k, p := range m.parts {
		lo, end := b.f.facts.hull(&b.f.defs[p.def].Region)
		m.over.Insert(lo, end, int32(k))
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
	for _, r := range b.touched {
		b.visible(r, see)
	}
	slices.Sort(b.found)
	for _, def := range b.found {
		c := b.command[def]
		b.slab = append(b.slab, Source{Command: c, Write: def - b.f.spans[c].def, Must: b.f.defs[def].Must})
	}
	b.f.uses = append(b.f.uses, Use{Region: ir.Region{Mem: ir.NoMem}, Sources: b.slab[first:len(b.slab):len(b.slab)], Initial: true, Update: 0})
	b.bottom = int32(len(b.f.defs))
	b.f.defs = append(b.f.defs, Def{Region: ir.Region{Mem: ir.NoMem}, Final: true})
	b.command = append(b.command, i)
	b.pillars++
	b.touched = b.touched[:0]
}

// visible calls see with every def that a root may hold bytes of.
func (b *builder) visible(r ir.MemID, see func(def int32)) {
	m := &b.mems[r]
	m.runs.Each(-1<<62, 1<<62, func(_, _ int64, def int32) bool {
		see(def)
		return true
	})
	for _, p := range m.parts {
		if !p.gone {
			see(p.def)
		}
	}
}

// outlives reports whether what is written to memory of kind k is seen after the
// replay: by the host, or, of an input that is carried to, by the next replay.
func outlives(k ir.MemKind) bool { return k == ir.Output || k == ir.State || k == ir.Input }

// finish turns sources into readers, and marks what is final and live.
func (b *builder) finish() {
	f := b.f
	for _, r := range b.touched {
		if outlives(b.g.Memories[r].Kind) {
			b.visible(r, func(def int32) { f.defs[def].Final = true })
		}
	}
	f.sources = b.slab
	f.read(len(b.slab))
	for i := len(f.Commands) - 1; i >= 0; i-- {
		live := f.pillar[i]
		ds := f.Writes(i)
		beneath(f.facts.bounds, ds)
		for k := range ds {
			live = live || ds[k].Final
			for _, r := range ds[k].Readers {
				live = live || f.live[r.Command]
			}
		}
		f.live[i] = live
		us := f.Reads(i)
		for k := range us {
			// What a final may-write left alone is final too.
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

// beneath marks as final what a final may-write of the same command may leave
// alone: the writes of one command have no order but that of the list.
func beneath(b *ir.Bounds, ds []Def) {
	for k := len(ds) - 1; k > 0; k-- {
		if ds[k].Must || !ds[k].Final {
			continue
		}
		for j := range k {
			ds[j].Final = ds[j].Final || len(ds) > 64 || !disjoint(b, ds[j].Region, ds[k].Region)
		}
	}
}

// read fills Def.Readers, in one slab for that many sources.
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
