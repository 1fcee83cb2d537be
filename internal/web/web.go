package web

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/mlxc/mlxc/internal/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// DefaultAlign is the alignment in bytes of a memory that gives none: Metal's
// for buffer offsets of any argument.
const DefaultAlign = 256

// Web is a value of scratch.
type Web struct {
	Accesses    []Access // in list order, those of a command reads first
	First, Last int32    // commands, as numbered by the flow
	Mem         ir.MemID // root
	Lo, End     int64    // extent, bytes of the root
	// After is the overhang in bytes: how far views reach behind End. None begins
	// before Lo, since accesses begin where their views do.
	After int64
	// Align: a distance that is a multiple of it keeps every alignment that the
	// recording gave, up to the memory's and the value's size.
	Align int64
	// Pinned says why the web cannot move; empty if it can.
	Pinned string
}

// Size is the extent in bytes.
func (w *Web) Size() int64 { return w.End - w.Lo }

// Access is a region of one command.
type Access struct {
	Command int32
	Index   int32 // in the effects' reads or writes; 0 for a copy or fill
	Binding int16 // of a dispatch; −1 for a copy or fill
	Write   bool
}

// Set holds the webs of a graph.
type Set struct {
	Graph *ir.Graph
	Flow  *dataflow.Flow
	Webs  []Web // by first command

	reads, writes [][]int32 // web of each effect of each command, −1 if none
}

// OfRead returns the web that read k of command i belongs to, or −1: its bytes
// are no scratch, or none.
func (s *Set) OfRead(i, k int) int32 { return s.reads[i][k] }

// OfWrite is OfRead for writes.
func (s *Set) OfWrite(i, k int) int32 { return s.writes[i][k] }

// builder joins defs into webs.
type builder struct {
	g      *ir.Graph
	f      *dataflow.Flow
	defAt  []int32 // number of the first def of each command
	parent []int32 // of defs, and after them of reads without a def
	why    []string
}

// Build finds the webs of the graph of f, which must have no command of unknown
// effects: such a command reads and writes all scratch.
func Build(f *dataflow.Flow) *Set {
	b := &builder{g: f.Graph, f: f}
	n, stray := int32(0), 0
	b.defAt = make([]int32, len(f.Commands)+1)
	for i := range f.Commands {
		if f.Unknown(i) {
			panic("web.Build: a command of unknown effects")
		}
		b.defAt[i] = n
		n += int32(len(f.Writes(i)))
		for _, u := range f.Reads(i) {
			if len(u.Sources) == 0 && b.scratch(u.Region) {
				stray++
			}
		}
	}
	b.defAt[len(f.Commands)] = n
	b.parent = make([]int32, int(n)+stray)
	b.why = make([]string, len(b.parent))
	for i := range b.parent {
		b.parent[i] = int32(i)
	}
	return b.collect(b.join(n))
}

func (b *builder) scratch(r ir.Region) bool {
	return !dataflow.Empty(r) && b.g.Memories[r.Mem].Kind == ir.Scratch
}

func (b *builder) find(x int32) int32 {
	for b.parent[x] != x {
		b.parent[x] = b.parent[b.parent[x]]
		x = b.parent[x]
	}
	return x
}

func (b *builder) union(x, y int32) {
	x, y = b.find(x), b.find(y)
	if x == y {
		return
	}
	if y < x {
		x, y = y, x
	}
	b.parent[y] = x
	if b.why[x] == "" {
		b.why[x] = b.why[y]
	}
}

func (b *builder) pin(x int32, format string, args ...any) {
	if x = b.find(x); b.why[x] == "" {
		b.why[x] = fmt.Sprintf(format, args...)
	}
}

// join unites the defs that one use sees; owner is the def that stands for each
// use of each command, −1 where it is no scratch.
func (b *builder) join(next int32) (owner [][]int32) {
	f := b.f
	owner = make([][]int32, len(f.Commands))
	slab := make([]int32, 0, len(b.parent)*2)
	for i := range f.Commands {
		us := f.Reads(i)
		first := len(slab)
		for k := range us {
			u := &us[k]
			if !b.scratch(u.Region) {
				slab = append(slab, -1)
				continue
			}
			x := next
			if len(u.Sources) == 0 {
				next++
			} else {
				x = b.defAt[u.Sources[0].Command] + u.Sources[0].Write
			}
			for _, s := range u.Sources {
				b.union(x, b.defAt[s.Command]+s.Write)
			}
			if u.Update >= 0 {
				b.union(x, b.defAt[i]+u.Update)
			}
			if u.Initial {
				b.pin(x, "%s may read bytes of it that nothing wrote", b.g.Describe(f.Commands[i]))
			}
			slab = append(slab, x)
		}
		owner[i] = slab[first:len(slab):len(slab)]
	}
	return owner
}

// collect lists the accesses of each web.
func (b *builder) collect(owner [][]int32) *Set {
	f := b.f
	s := &Set{Graph: b.g, Flow: f, reads: make([][]int32, len(f.Commands)), writes: make([][]int32, len(f.Commands))}
	number := make([]int32, len(b.parent)) // of a web, by its root, plus one
	count := []int32{}
	of := func(x int32) int32 {
		x = b.find(x)
		if number[x] == 0 {
			s.Webs = append(s.Webs, Web{First: -1, Pinned: b.why[x]})
			count = append(count, 0)
			number[x] = int32(len(s.Webs))
		}
		count[number[x]-1]++
		return number[x] - 1
	}
	slab := make([]int32, 0, len(b.parent)+total(f))
	for i := range f.Commands {
		us, ds := f.Reads(i), f.Writes(i)
		first := len(slab)
		for k := range us {
			switch {
			case us[k].Update >= 0: // with its write
			case owner[i][k] < 0:
				slab = append(slab, -1)
			default:
				slab = append(slab, of(owner[i][k]))
			}
		}
		n := len(slab)
		for k := range ds {
			if b.scratch(ds[k].Region) {
				slab = append(slab, of(b.defAt[i]+int32(k)))
			} else {
				slab = append(slab, -1)
			}
		}
		s.reads[i], s.writes[i] = slab[first:n:n], slab[n:len(slab):len(slab)]
	}
	all := int32(0)
	for _, n := range count {
		all += n
	}
	accesses := make([]Access, all)
	for w, n := range count {
		s.Webs[w].Accesses, accesses = accesses[0:0:n], accesses[n:]
	}
	var buffer []int16
	for i := range f.Commands {
		buffer = s.enter(int32(i), buffer)
	}
	for w := range s.Webs {
		s.finish(&s.Webs[w])
	}
	return s
}

// total counts uses.
func total(f *dataflow.Flow) (n int) {
	for i := range f.Commands {
		n += len(f.Reads(i))
	}
	return n
}

// enter adds the accesses of command i to their webs. It returns the buffer that
// it was given, or a longer one.
func (s *Set) enter(i int32, buffer []int16) []int16 {
	f := s.Flow
	n := f.Commands[i]
	var reads, writes []int16
	foreign := ""
	if d, ok := n.(*ir.Dispatch); ok && s.touches(i) {
		k := &s.Graph.Kernels[d.Kernel]
		if kind := k.Library.Kind; kind == ir.SourceFile || kind == ir.Metallib {
			foreign = fmt.Sprintf("%s binds it, whose kernel has no declaration", s.Graph.Describe(n))
		} else if reads, writes, ok = bindings(k, d, &buffer); !ok {
			foreign = fmt.Sprintf("%s binds it under views that do not fit its effects", s.Graph.Describe(n))
		}
	}
	add := func(w int32, k int, write bool, at []int16, r ir.Region) {
		if w < 0 {
			return
		}
		x := &s.Webs[w]
		a := Access{Command: i, Index: int32(k), Binding: -1, Write: write}
		if foreign != "" && x.Pinned == "" {
			x.Pinned = foreign
		}
		if at != nil {
			a.Binding = at[k]
		}
		lo, end := f.Hull(r)
		if x.First < 0 {
			x.First, x.Mem, x.Lo, x.End = i, r.Mem, lo, end
		}
		x.Last = i
		x.Lo, x.End = min(x.Lo, lo), max(x.End, end)
		x.Accesses = append(x.Accesses, a)
	}
	us, ds := f.Reads(int(i)), f.Writes(int(i))
	for k, w := range s.reads[i] {
		add(w, k, false, reads, us[k].Region)
	}
	for k, w := range s.writes[i] {
		add(w, k, true, writes, ds[k].Region)
	}
	return buffer
}

func (s *Set) touches(i int32) bool {
	for _, w := range s.reads[i] {
		if w >= 0 {
			return true
		}
	}
	for _, w := range s.writes[i] {
		if w >= 0 {
			return true
		}
	}
	return false
}

// bindings finds the binding of each region of the effects: declarations list
// regions in the order of arguments, each from the start of its view, and leave
// out empty ones. ok is false if that does not hold.
func bindings(k *ir.Kernel, d *ir.Dispatch, buffer *[]int16) (reads, writes []int16, ok bool) {
	both := (*buffer)[:0]
	find := func(read bool, r ir.Region, from int) int {
		for j := from; j < len(d.Bindings); j++ {
			b := &d.Bindings[j]
			if b.Kind != ir.BindView {
				continue
			}
			if a, ok := k.Arg(b.Slot); ok && a.Kind == ir.DeviceArg && (a.Access == ir.ReadArg) == read {
				if b.View.Mem == r.Mem && b.View.Off.Equal(r.Off) {
					return j
				}
				return -1
			}
		}
		return -1
	}
	for pass := range 2 {
		j, n := 0, 0
		if pass == 0 {
			n = len(d.Effects.Reads)
		} else {
			n = len(d.Effects.Writes)
		}
		for i := range n {
			var r ir.Region
			if pass == 0 {
				r = d.Effects.Reads[i]
			} else {
				r = d.Effects.Writes[i].Region
			}
			if j = find(pass == 0, r, j); j < 0 {
				return nil, nil, false
			}
			both = append(both, int16(j))
			j++
		}
		// A view that no region uses would stay behind.
		for ; j < len(d.Bindings); j++ {
			b := &d.Bindings[j]
			if a, ok := k.Arg(b.Slot); ok && b.Kind == ir.BindView && a.Kind == ir.DeviceArg && (a.Access == ir.ReadArg) == (pass == 0) {
				return nil, nil, false
			}
		}
	}
	*buffer = both
	n := len(d.Effects.Reads)
	return both[:n:n], both[n:], true
}

// view returns the view of an access; nil for a pinned one.
func (s *Set) view(a Access) *ir.View {
	switch n := s.Flow.Commands[a.Command].(type) {
	case *ir.Copy:
		if a.Write {
			return &n.Dst
		}
		return &n.Src
	case *ir.Fill:
		return &n.Dst
	case *ir.Dispatch:
		if a.Binding >= 0 {
			return &n.Bindings[a.Binding].View
		}
	}
	return nil
}

// finish computes overhang and alignment.
func (s *Set) finish(w *Web) {
	if w.Pinned != "" {
		return
	}
	g := s.Graph
	limit := g.Memories[w.Mem].Align
	if limit == 0 {
		limit = DefaultAlign
	}
	if n := w.Size(); n < limit {
		limit = min(limit, int64(1)<<bits.Len64(uint64(max(n, 1)-1)))
	}
	w.Align = 1
	end := w.End
	for _, a := range w.Accesses {
		v := s.view(a)
		_, off := g.Root(v.Mem)
		at := v.Off.AddConst(off)
		_, y, ok := g.Range(at.Add(v.Len))
		if !ok {
			w.Pinned = "the range of a view leaves 64 bits"
			return
		}
		end = max(end, y)
		w.Align = max(w.Align, min(limit, alignment(at)))
	}
	w.After = end - w.End
}

// alignment is the greatest power of two that divides a for all values.
func alignment(a ir.Affine) int64 {
	all := uint64(a.Const)
	for _, t := range a.Terms() {
		all |= uint64(t.Coeff)
	}
	if all == 0 {
		return 1 << 62
	}
	return int64(1) << bits.TrailingZeros64(all)
}

// Region returns the bytes of an access in the root memory.
func (s *Set) Region(a Access) ir.Region {
	if a.Write {
		return s.Flow.Writes(int(a.Command))[a.Index].Region
	}
	return s.Flow.Reads(int(a.Command))[a.Index].Region
}

// Inplace reports whether command i, the last of web u and the first of web v,
// writes v exactly where it reads u: the recording has them share their bytes.
func (s *Set) Inplace(u, v int32, i int32) bool {
	x, y := &s.Webs[u], &s.Webs[v]
	if u == v || x.Last != i || y.First != i || x.Mem != y.Mem || x.Lo != y.Lo || x.End != y.End {
		return false
	}
	for _, a := range slices.Backward(x.Accesses) {
		if a.Command != i {
			return false
		}
		r := s.Region(a)
		for _, b := range y.Accesses {
			if b.Command != i {
				break
			}
			if b.Write && r.Equal(s.Region(b)) {
				return true
			}
		}
	}
	return false
}

// Move shifts all accesses of a web, in place: its byte Lo becomes byte lo of the
// root memory mem. The Set's regions stay those of before.
func (s *Set) Move(w *Web, mem ir.MemID, lo int64) {
	g, delta := s.Graph, lo-w.Lo
	for _, a := range w.Accesses {
		v := s.view(a)
		_, off := g.Root(v.Mem)
		v.Mem, v.Off = mem, v.Off.AddConst(off+delta)
		d, ok := s.Flow.Commands[a.Command].(*ir.Dispatch)
		if !ok {
			continue
		}
		r := s.Region(a)
		r.Mem, r.Off = mem, r.Off.AddConst(delta)
		if a.Write {
			d.Effects.Writes[a.Index].Region = r
		} else {
			d.Effects.Reads[a.Index] = r
		}
	}
}
