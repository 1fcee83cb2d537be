package values

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// DefaultAlign is the alignment in bytes of a memory that states none: the one that Metal requires of the offset of
// any buffer argument.
const DefaultAlign = 256

// Web is a value in scratch memory that can move as a whole; see the package comment.
type Web struct {
	Accesses    []Access // in list order, those of a command reads first
	First, Last int32    // commands, as numbered by the flow
	Mem         ir.MemID // root
	Lo, End     int64    // extent, bytes of the root
	// Before and After are the overhang in bytes: how far views reach before Lo and after End. Accesses of kernels
	// with a declaration begin where their views do; those of other kernels may lie anywhere in their views.
	Before, After int64
	// Align is a power of two, in bytes. If the web moves by a multiple of it, its views keep the alignment that
	// kernels may rely on, given the alignment of the memory and the size of the value.
	Align int64

	pin pin
	// carried is what else moves with the accesses, for dispatches of kernels without declaration.
	carried []carried
}

// Pinned reports whether the web cannot move; [Set.Why] says why.
func (w *Web) Pinned() bool { return w.pin.why != free }

// pin is the reason why a web cannot move, and the command that causes it. It becomes a text only when Why is
// called, because a graph may have very many pinned webs.
type pin struct {
	why     reason
	command int32
}

type reason uint8

const (
	free      reason = iota
	unwritten        // a command may read bytes of it that nothing wrote
	astray           // a command touches it outside of its views
	misfit           // a command binds it under views that do not fit its effects
	unbounded        // a view's range does not fit 64 bits
	unlisted         // a command binds bytes of it that its effects do not touch
	crowded          // a command sees too many writes there to tell them apart
)

// Why says why a web cannot move; "" if it can.
func (s *Set) Why(w *Web) string { return s.why(w.pin) }

// Held returns why a root memory must keep its name, its size and the views that bind it, even if the webs in it
// move; "" if it need not. Such a memory is bound by a view that belongs to no web: a kernel gets its address,
// but by its effects touches no byte of the view. Values may stay in that memory, but none should move there: see
// [Space.Hold].
func (s *Set) Held(m ir.MemID) string {
	if s.held == nil {
		return ""
	}
	return s.why(s.held[m])
}

func (s *Set) why(p pin) string {
	if p.why == free {
		return ""
	}
	by := s.Graph.Describe(s.Flow.Commands[p.command])
	switch p.why {
	case unwritten:
		return by + " may read bytes of it that nothing wrote"
	case astray:
		return by + " touches it outside of its views, and its kernel has no declaration"
	case misfit:
		return by + " binds it under views that do not fit its effects"
	case crowded:
		return by + " meets too many ranges of it: of many that read what many wrote, or that params move over one another"
	case unlisted:
		return by + " binds bytes of it that its effects leave out"
	}
	return by + " binds it under a view whose range leaves 64 bits"
}

// Size is the extent in bytes.
func (w *Web) Size() int64 { return w.End - w.Lo }

// Access is a region of one command.
type Access struct {
	Command int32
	Index   int32 // in the effects' reads or writes; 0 for a copy or fill
	Binding int16 // index of the binding, for a kernel with declaration; −1 otherwise
	Write   bool
}

// Set holds the webs of a graph.
type Set struct {
	Graph *ir.Graph
	Flow  *dataflow.Flow
	Webs  []Web // by first command

	ofUse, ofDef []int32 // the web of each use and def of the flow, −1 if none
	held         []pin   // by root memory; nil if no memory is held
}

// OfRead returns the web that read k of command i belongs to; −1 if the read is not of scratch memory, or of no bytes.
// For a may-write, the read of the old bytes belongs to the web of the write.
func (s *Set) OfRead(i, k int) int32 { return s.ofUse[int(s.Flow.FirstUse(i))+k] }

// OfWrite is OfRead for writes.
func (s *Set) OfWrite(i, k int) int32 { return s.ofDef[int(s.Flow.FirstDef(i))+k] }

// builder joins defs and the uses that see them into webs, by union-find.
type builder struct {
	*Set
	scratch []bool  // by root: it is scratch memory
	parent  []int32 // of the union-find over defs, followed by reads without a def
	pins    []pin   // by index in parent, for representatives; nil if there are none
	count   []int32 // accesses of each web
	roots   []root  // by memory
	slots   [][]access
	buffer  []int16
	foreign foreign
}

type root struct {
	mem ir.MemID
	off int64
}

// access is what a kernel does to the buffer at a slot.
type access uint8

const (
	never access = iota // no access through this slot, or not a device argument
	read
	write
)

// Build finds the webs of the graph of f, which must have no command of unknown effects: such a command
// reads and writes all scratch memory.
func Build(ctx context.Context, f *dataflow.Flow) *Set {
	if f.Pillar() >= 0 {
		panic("values.Build: the graph has a command of unknown effects")
	}
	g := f.Graph
	b := &builder{Set: &Set{Graph: g, Flow: f, ofUse: make([]int32, f.Uses()), ofDef: make([]int32, f.Defs())},
		scratch: make([]bool, len(g.Memories)), roots: make([]root, len(g.Memories)), slots: make([][]access, len(g.Kernels))}
	for i := range g.Memories {
		b.scratch[i] = g.Memories[i].Kind == ir.Scratch
		b.roots[i].mem, b.roots[i].off = g.Root(ir.MemID(i))
	}
	b.join()
	b.number()
	b.collect()
	return b.Set
}

func (b *builder) isScratch(r *ir.Region) bool { return b.scratch[r.Mem] && !bytestate.Empty(r) }

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
	if b.pins != nil && b.pins[x].why == free {
		b.pins[x] = b.pins[y]
	}
}

func (b *builder) pinned(x int32, p pin) {
	if b.pins == nil {
		b.pins = make([]pin, len(b.parent))
	}
	if x = b.find(x); b.pins[x].why == free {
		b.pins[x] = p
	}
}

// join unites the defs that one use sees. It stores in ofUse one of the defs that the use sees, and in ofDef the def
// itself; −1 for a region that is not in scratch memory.
func (b *builder) join() {
	f := b.Flow
	b.parent = make([]int32, f.Defs(), f.Defs()+f.Defs()/8)
	for x := range b.parent {
		b.parent[x] = int32(x)
	}
	for i := range f.Commands {
		us, ds := f.Reads(i), f.Writes(i)
		firstUse, firstDef := f.FirstUse(i), f.FirstDef(i)
		for k := range us {
			u := &us[k]
			of := &b.ofUse[int(firstUse)+k]
			*of = -1
			if !b.isScratch(&u.Region) {
				continue
			}
			if len(u.Sources) == 0 {
				*of = int32(len(b.parent))
				b.parent = append(b.parent, *of)
				if b.pins != nil {
					b.pins = append(b.pins, pin{})
				}
			} else {
				*of = f.FirstDef(int(u.Sources[0].Command)) + u.Sources[0].Write
				for j := range u.Sources[1:] {
					s := &u.Sources[j+1]
					b.union(*of, f.FirstDef(int(s.Command))+s.Write)
				}
			}
			if u.Update >= 0 {
				b.union(*of, firstDef+u.Update)
			}
			if u.Update >= 0 && ds[u.Update].Wide {
				b.pinned(*of, pin{crowded, int32(i)})
			}
			if u.Initial {
				b.pinned(*of, pin{unwritten, int32(i)})
			}
		}
		for k := range ds {
			of := firstDef + int32(k)
			if !b.isScratch(&ds[k].Region) {
				of = -1
			}
			b.ofDef[int(firstDef)+k] = of
		}
		if d, ok := b.foreignDispatch(f.Commands[i]); ok {
			b.joinViews(int32(i), d, us, ds, b.ofUse[firstUse:], b.ofDef[firstDef:])
		}
	}
}

// number turns what join found into webs, by first command, and counts their
// accesses.
func (b *builder) number() {
	f := b.Flow
	number := make([]int32, len(b.parent)) // 1 + the web of each representative
	b.count = make([]int32, 0, f.Defs())
	of := func(x int32) int32 {
		x = b.find(x)
		if number[x] == 0 {
			b.count = append(b.count, 0)
			number[x] = int32(len(b.count))
		}
		b.count[number[x]-1]++
		return number[x] - 1
	}
	for i := range f.Commands {
		us := f.Reads(i)
		first := f.FirstUse(i)
		for k := range us {
			switch w := &b.ofUse[int(first)+k]; {
			case us[k].Update >= 0: // the old bytes of a may-write move with the write
				*w = -1
			case *w >= 0:
				*w = of(*w)
			}
		}
		first = f.FirstDef(i)
		for k := range f.Writes(i) {
			if w := &b.ofDef[int(first)+k]; *w >= 0 {
				*w = of(*w)
			}
		}
	}
	b.Webs = make([]Web, len(b.count))
	for w := range b.Webs {
		b.Webs[w].First, b.Webs[w].Before = -1, math.MaxInt64
	}
	b.carry(number)
	if b.pins != nil {
		for x, w := range number {
			if w > 0 {
				b.Webs[w-1].pin = b.pins[x]
			}
		}
	}
}

// collect lists the accesses of each web.
func (b *builder) collect() {
	all := int32(0)
	for _, n := range b.count {
		all += n
	}
	accesses := make([]Access, all)
	for w, n := range b.count {
		b.Webs[w].Accesses, accesses = accesses[0:0:n], accesses[n:]
	}
	for i := range b.Flow.Commands {
		b.enter(int32(i))
	}
	for w := range b.Webs {
		b.finish(&b.Webs[w])
	}
}

// enter adds the accesses of command i to their webs.
func (b *builder) enter(i int32) {
	f := b.Flow
	us, ds := f.Reads(int(i)), f.Writes(int(i))
	firstUse, firstDef := f.FirstUse(int(i)), f.FirstDef(int(i))
	ofUse, ofDef := b.ofUse[firstUse:int(firstUse)+len(us)], b.ofDef[firstDef:int(firstDef)+len(ds)]
	_, foreign := b.foreignDispatch(f.Commands[i])
	touched := touches(ofUse) || touches(ofDef)
	var reads, writes []int16 // bindings
	why, all := free, false
	if d, ok := f.Commands[i].(*ir.Dispatch); ok && touched && !foreign {
		if reads, writes, all, ok = b.bindings(d); !ok {
			why = misfit
		}
	}
	if !foreign && !(all && why == free && b.moves(us, ofUse, ds, ofDef)) {
		b.hold(i, ofUse, ofDef, why == free)
	}
	if !touched {
		return
	}
	add := func(w int32, k int, write bool, at []int16, r *ir.Region) {
		x := &b.Webs[w]
		a := Access{Command: i, Index: int32(k), Binding: -1, Write: write}
		if why != free && (x.pin.why == free || x.pin.why == unbounded) {
			x.pin = pin{why, i}
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
		if !x.Pinned() && !foreign {
			b.bound(x, i, b.view(a))
		}
	}
	for k, w := range ofUse {
		if w >= 0 {
			add(w, k, false, reads, &us[k].Region)
		}
	}
	for k, w := range ofDef {
		if w >= 0 {
			add(w, k, true, writes, &ds[k].Region)
		}
	}
}

// touches reports whether an access belongs to a web.
func touches(of []int32) bool {
	return slices.ContainsFunc(of, func(w int32) bool { return w >= 0 })
}

// moves reports whether all regions of a command that lie in scratch belong to webs.
func (b *builder) moves(us []dataflow.Use, ofUse []int32, ds []dataflow.Def, ofDef []int32) bool {
	for k, w := range ofUse {
		if w < 0 && b.scratch[us[k].Region.Mem] {
			return false
		}
	}
	for k, w := range ofDef {
		if w < 0 && b.scratch[ds[k].Region.Mem] {
			return false
		}
	}
	return true
}

// bindings finds the binding of each region of the effects: declarations list regions in the order of arguments, each
// beginning where its view does. ok is false if the effects are not of that form, or if an argument's view has no
// region, because the view would not move along. all is false if a view is bound that is no argument's.
func (b *builder) bindings(d *ir.Dispatch) (reads, writes []int16, all, ok bool) {
	slots := b.accesses(d.Kernel)
	n := len(d.Effects.Reads)
	b.buffer = slices.Grow(b.buffer[:0], n+len(d.Effects.Writes))
	reads, writes, all = b.buffer[:0:n], b.buffer[n:n:n+len(d.Effects.Writes)], true
	for j := range d.Bindings {
		x := &d.Bindings[j]
		if x.Kind != ir.BindView {
			continue
		}
		if int(x.Slot) >= len(slots) || slots[x.Slot] == never {
			all = false
			continue
		}
		var r *ir.Region
		switch slots[x.Slot] {
		case read:
			if len(reads) == cap(reads) {
				return nil, nil, false, false
			}
			r = &d.Effects.Reads[len(reads)]
			reads = append(reads, int16(j))
		case write:
			if len(writes) == cap(writes) {
				return nil, nil, false, false
			}
			r = &d.Effects.Writes[len(writes)].Region
			writes = append(writes, int16(j))
		}
		if x.View.Mem != r.Mem || !x.View.Off.Equal(r.Off) {
			return nil, nil, false, false
		}
	}
	if len(reads) < cap(reads) || len(writes) < cap(writes) {
		return nil, nil, false, false // the effects have regions of more than the arguments
	}
	return reads, writes, all, true
}

func (b *builder) accesses(k ir.KernelID) []access {
	if b.slots[k] == nil {
		b.slots[k] = accesses(&b.Graph.Kernels[k])
	}
	return b.slots[k]
}

// accesses returns what a kernel does to each slot.
func accesses(k *ir.Kernel) []access {
	out := []access{}
	for i := range k.Args {
		a, ok := k.Arg(k.Args[i].Slot)
		if !ok || a.Kind != ir.DeviceArg {
			continue
		}
		for len(out) <= int(a.Slot) {
			out = append(out, never)
		}
		out[a.Slot] = write
		if a.Access == ir.ReadArg {
			out[a.Slot] = read
		}
	}
	return out
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

// bound records how far a view that moves with w reaches, and its alignment. Until finish is called, Before and After
// hold the outermost offsets of the views, and Align the max of the alignments.
func (b *builder) bound(w *Web, command int32, v *ir.View) {
	at := v.Off.AddConst(b.roots[v.Mem].off)
	lo, _, ok1 := b.Graph.Range(at)
	_, end, ok2 := b.Graph.Range(at.Add(v.Len))
	if !ok1 || !ok2 {
		w.pin = pin{unbounded, command}
		return
	}
	w.Before, w.After = min(w.Before, lo), max(w.After, end)
	w.Align = max(w.Align, alignment(at))
}

// finish computes overhang and alignment.
func (b *builder) finish(w *Web) {
	counted := int64(1) // the alignment that kernels without declaration may count on
	for _, c := range w.carried {
		if w.Pinned() {
			break
		}
		if c.what == aView {
			v := &b.Flow.Commands[c.command].(*ir.Dispatch).Bindings[c.index].View
			b.bound(w, c.command, v)
			counted = max(counted, min(c.align, alignment(v.Off.AddConst(b.roots[v.Mem].off))))
		}
	}
	if w.Pinned() {
		w.Before, w.After, w.Align = 0, 0, 0
		return
	}
	limit := b.Graph.Memories[w.Mem].Align
	if limit == 0 {
		limit = DefaultAlign
	}
	if n := w.Size(); n < limit {
		limit = min(limit, int64(1)<<bits.Len64(uint64(max(n, 1)-1)))
	}
	w.Align = max(1, min(limit, w.Align), counted)
	w.Before, w.After = max(0, w.Lo-w.Before), max(0, w.After-w.End)
}

// alignment returns the largest power of two that divides a for all values of the params.
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

// Inplace reports whether command i is the last of web u and the first of web v, and writes v to exactly the bytes from
// which it reads u.
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

// Move shifts all accesses of a web in the commands of the graph: its byte Lo becomes
// byte lo of the root memory mem. The regions of the Set and its flow stay as they were.
func (s *Set) Move(w *Web, mem ir.MemID, lo int64) {
	g, delta := s.Graph, lo-w.Lo
	for _, a := range w.Accesses {
		if v := s.view(a); v != nil {
			s.shift(v, mem, delta)
		}
		if d, ok := s.Flow.Commands[a.Command].(*ir.Dispatch); ok {
			r := s.Region(a)
			r.Mem, r.Off = mem, r.Off.AddConst(delta)
			if a.Write {
				d.Effects.Writes[a.Index].Region = r
			} else {
				d.Effects.Reads[a.Index] = r
			}
		}
	}
	for _, c := range w.carried {
		d := s.Flow.Commands[c.command].(*ir.Dispatch)
		switch c.what {
		case aView:
			s.shift(&d.Bindings[c.index].View, mem, delta)
		case aRead:
			shift(g, &d.Effects.Reads[c.index], mem, delta)
		case aWrite:
			shift(g, &d.Effects.Writes[c.index].Region, mem, delta)
		}
	}
}

// shift moves a view by delta bytes, from its root memory to root memory mem.
func (s *Set) shift(v *ir.View, mem ir.MemID, delta int64) {
	_, off := s.Graph.Root(v.Mem)
	v.Mem, v.Off = mem, v.Off.AddConst(off+delta)
}

// shift does the same with a region.
func shift(g *ir.Graph, r *ir.Region, mem ir.MemID, delta int64) {
	_, off := g.Root(r.Mem)
	r.Mem, r.Off = mem, r.Off.AddConst(off+delta)
}
