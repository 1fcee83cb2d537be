package judge

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// run is the bytes [lo, hi) of root memory mem.
type run struct {
	mem    ir.MemID
	lo, hi int64
	// bytes are the contents of the run if mem is argument memory. What the host wrote
	// there for these params is all that matters.
	bytes string
}

// area is the runs of one region, in the order of its dimensions.
type area struct {
	runs         []run
	must, atomic bool
	base         byteAt // where the view begins that the region belongs to
	slot         int    // the slot of that view; −1 if no binding holds it
}

// byteAt is a byte of a root memory.
type byteAt struct {
	mem ir.MemID
	off int64
}

// command is a node of a graph for given values of the params.
type command struct {
	id   ir.ID
	node ir.Command
	text string // what it computes, but not where
	what string // the part of the text that says nothing of effects
	pins []pin  // the views that its effects leave out
	// constants is how many of the reads, at the end, are of arguments in memory.
	constants int
	code      value // a hash of the text
	reads     []area
	writes    []area
	// unknown: its effects are not complete, so it may touch every memory.
	unknown bool
	bound   []ir.MemID // the root memories that it binds or names
	overlap string     // how what it writes overlaps what it binds, if no declaration allows that
	lie     string     // how the effects that it stores are narrower than its declaration's
	boast   string     // how they are wider

	declaredBy *declared
	grid       [3]int64
	given      map[uint8][]byte // by slot: inline bytes, scalars and views of argument memory
}

// lowerer turns the nodes of one graph into commands.
type lowerer struct {
	g        *ir.Graph
	params   []uint32
	names    []string // of the memories; scratch memory has the names of before's
	recorded *lowerer // if g is a rewrite: of the graph that it is a rewrite of
	declared map[*ir.Dispatch]*declared
	lowered  map[string][]*command // by the values of the params
	bare     bool                  // commands get no text, because nobody asks what they compute
	contents map[ir.MemID][]byte   // of argument memory, for the current params
}

// declared is what the declaration of a builtin kernel says about a dispatch.
type declared struct {
	in       *decl.Instance
	reads    []slotRegion
	writes   []slotRegion
	aliasing error
}

type slotRegion struct {
	ir.Region
	slot         int
	must, atomic bool
}

func newLowerer(g *ir.Graph) *lowerer {
	l := &lowerer{g: g, names: namesOf(g, g), declared: map[*ir.Dispatch]*declared{}, lowered: map[string][]*command{}}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || !msl.Declared(&g.Kernels[d.Kernel]) {
			continue
		}
		if in, err := msl.Bind(g, d); err == nil {
			l.declared[d] = declaredEffects(in)
		}
	}
	return l
}

// newBareLowerer returns a lowerer for callers that only ask what commands touch.
func newBareLowerer(g *ir.Graph) *lowerer {
	l := newLowerer(g)
	l.bare = true
	return l
}

func declaredEffects(in *decl.Instance) *declared {
	out := &declared{in: in, aliasing: in.CheckAliasing()}
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || in.Views[i].Mem == ir.NoMem {
			continue
		}
		r, err := in.Region(i)
		if err != nil {
			return nil
		}
		s := slotRegion{Region: r, slot: int(a.Slot), must: a.Mode == decl.Write, atomic: a.Mode == decl.Atomic}
		if a.Mode == decl.Read {
			out.reads = append(out.reads, s)
		} else {
			out.writes = append(out.writes, s)
		}
	}
	return out
}

// commands returns all commands for given params, in written order.
func (l *lowerer) commands(params []uint32) []*command {
	l.params = params
	buf := make([]byte, 0, 32)
	for _, p := range params {
		buf = binary.LittleEndian.AppendUint32(buf, p)
	}
	key := string(buf)
	l.contents = map[ir.MemID][]byte{}
	if out, ok := l.lowered[key]; ok {
		return out
	}
	var out []*command
	for _, n := range l.g.Nodes {
		var c *command
		switch n := n.(type) {
		case *ir.Copy:
			c = &command{id: n.ID, text: "copy", reads: []area{l.view(n.Src, 0)}, writes: []area{l.view(n.Dst, 1)}}
			c.writes[0].must = true
		case *ir.Carry:
			c = &command{id: n.ID, text: "carry", reads: []area{l.view(n.Src, 0)}, writes: []area{l.view(n.Dst, 1)}}
		case *ir.Fill:
			c = &command{id: n.ID, text: fmt.Sprintf("fill %d", n.Value), writes: []area{l.view(n.Dst, 0)}}
			c.writes[0].must = true
		case *ir.Dispatch:
			c = l.dispatch(n)
		default:
			continue
		}
		c.node, c.code = n.(ir.Command), ofText(c.text)
		for _, x := range slices.Concat(c.reads, c.writes) {
			for _, r := range x.runs {
				c.bind(r.mem)
			}
		}
		out = append(out, c)
	}
	l.lowered[key] = out
	return out
}

func (c *command) bind(m ir.MemID) {
	if !slices.Contains(c.bound, m) {
		c.bound = append(c.bound, m)
	}
}

func (l *lowerer) place(v ir.View) byteAt {
	root, off := l.g.Root(v.Mem)
	return byteAt{root, off + v.Off.Eval(l.params)}
}

func (l *lowerer) view(v ir.View, slot int) area {
	p := l.place(v)
	return area{runs: l.runs(v.Contiguous()), base: p, slot: slot}
}

func (l *lowerer) runs(r ir.Region) (out []run) {
	root, off := l.g.Root(r.Mem)
	r.Runs(l.params, func(lo, hi int64) bool {
		out = append(out, l.run(root, lo+off, hi+off))
		return true
	})
	return out
}

func (l *lowerer) run(root ir.MemID, lo, hi int64) run {
	r := run{mem: root, lo: lo, hi: hi}
	if root >= 0 && l.g.Memories[root].Kind == ir.Argument {
		r.bytes = string(l.argument(root)[lo:hi])
	}
	return r
}

// argument returns the contents of an argument memory.
func (l *lowerer) argument(root ir.MemID) []byte {
	all, ok := l.contents[root]
	if !ok {
		all = make([]byte, l.g.Memories[root].Size)
		l.g.Memories[root].WriteValues(all, l.params)
		l.contents[root] = all
	}
	return all
}

func (l *lowerer) dispatch(d *ir.Dispatch) *command {
	k := &l.g.Kernels[d.Kernel]
	c := &command{id: d.ID, declaredBy: l.declared[d]}
	for i := range d.Grid {
		c.grid[i] = d.Grid[i].Eval(l.params)
	}
	if x := l.declared[d]; x != nil {
		for _, r := range x.reads {
			c.reads = append(c.reads, l.area(r, d))
		}
		for _, w := range x.writes {
			c.writes = append(c.writes, l.area(w, d))
		}
		if x.aliasing != nil {
			c.overlap = x.aliasing.Error()
		}
		l.compareClaim(c, d.Effects)
	} else {
		c.unknown = !d.Effects.Known()
		if d.Effects != nil {
			for _, r := range d.Effects.Reads {
				// The bytes of a view of argument memory are part of the text, whatever
				// the effects say of them.
				if root, _ := l.g.Root(r.Mem); l.g.Memories[root].Kind == ir.Argument && (len(l.runs(r)) == 0 || l.holder(d, r, false) >= 0) {
					continue
				}
				c.reads = append(c.reads, l.area(slotRegion{Region: r, slot: l.holder(d, r, false)}, d))
			}
			for _, w := range d.Effects.Writes {
				c.writes = append(c.writes, l.area(slotRegion{Region: w.Region, slot: l.holder(d, w.Region, true), must: w.Must, atomic: w.Atomic}, d))
			}
		}
		l.constants(k, d, c)
		c.overlap = selfOverlap(c)
	}
	for i := range d.Bindings {
		if x := l.g.Resolve(d.Bindings[i]); x.Kind == ir.BindView {
			if root, _ := l.g.Root(x.View.Mem); l.g.Memories[root].Kind != ir.Argument {
				c.bind(root)
			}
		}
	}
	if !l.bare {
		c.text = l.text(k, d, c)
	}
	if l.recorded != nil && c.declaredBy == nil {
		for _, b := range l.recorded.commands(translate(l.g, l.recorded.g, l.params)) {
			if l.moved(b, c, d) {
				c.text = b.text
				break
			}
		}
	}
	return c
}

// constants adds to the reads of c what a kernel without declaration is given as
// constants in memory. These are arguments, which its effects may leave out.
func (l *lowerer) constants(k *ir.Kernel, d *ir.Dispatch, c *command) {
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if arg, ok := k.Arg(b.Slot); !ok || arg.Kind != ir.ConstantArg || b.Kind != ir.BindView {
			continue
		}
		if root, _ := l.g.Root(b.View.Mem); l.g.Memories[root].Kind != ir.Argument { // the bytes of argument memory are part of the text
			c.reads = append(c.reads, l.view(b.View, int(b.Slot)))
			c.constants++
		}
	}
}

func (l *lowerer) area(r slotRegion, d *ir.Dispatch) area {
	a := area{runs: l.runs(r.Region), must: r.must, atomic: r.atomic, slot: r.slot}
	if r.slot >= 0 {
		a.base = l.place(d.Binding(uint8(r.slot)).View)
	}
	return a
}

// holder finds the binding that a region of recorded effects belongs to: one whose view
// contains it or, if none does, its first byte; preferably one with a fitting access, and
// the shortest view.
func (l *lowerer) holder(d *ir.Dispatch, r ir.Region, write bool) int {
	rs := l.runs(r)
	if len(rs) == 0 {
		return -1
	}
	best, most, least := -1, 0, int64(0)
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Kind != ir.BindView {
			continue
		}
		p := l.place(b.View)
		end := p.off + b.View.Len.Eval(l.params)
		if p.mem != rs[0].mem || rs[0].lo < p.off || rs[0].lo >= end {
			continue
		}
		fit := 1
		arg, _ := l.g.Kernels[d.Kernel].Arg(b.Slot)
		if write && arg.Access != ir.ReadArg || !write && arg.Access != ir.WriteArg {
			fit += 2
		}
		if !slices.ContainsFunc(rs, func(x run) bool { return x.lo < p.off || x.hi > end }) {
			fit++
		}
		if n := end - p.off; fit > most || fit == most && n < least {
			best, most, least = int(b.Slot), fit, n
		}
	}
	return best
}

// selfOverlap lists the bytes that a command of recorded effects both reads and writes.
// A kernel without declaration promises nothing about overlaps, so the same overlap
// must occur in both graphs. The list is part of the command's text.
func selfOverlap(c *command) string {
	var out []byte
	all := slices.Concat(c.reads, c.writes)
	for i, w := range c.writes {
		for j, r := range all {
			if j >= len(c.reads)+i {
				break
			}
			for x, p := range w.runs {
				for y, q := range r.runs {
					if p.mem == q.mem && p.lo < q.hi && q.lo < p.hi {
						out = fmt.Appendf(out, " w%d.%d meets %d.%d at %+d", i, x, j, y, q.lo-p.lo)
					}
				}
			}
		}
	}
	return string(out)
}

// compareClaim compares the effects that a dispatch of a declared kernel stores with
// the declaration. Effects that are too narrow are a lie that a scheduler would
// believe.
func (l *lowerer) compareClaim(c *command, e *ir.Effects) {
	if !e.Known() {
		return
	}
	bytesOf := func(areas []area, which func(area) bool) map[byteAt]bool {
		out := map[byteAt]bool{}
		for _, a := range areas {
			for _, r := range a.runs {
				for b := r.lo; b < r.hi && which(a); b++ {
					out[byteAt{r.mem, b}] = true
				}
			}
		}
		return out
	}
	claim := func(rs []ir.Region) (out []area) {
		for _, r := range rs {
			out = append(out, area{runs: l.runs(r), must: true})
		}
		return out
	}
	var musts, mays []ir.Region
	for _, w := range e.Writes {
		if w.Must {
			musts = append(musts, w.Region)
		} else {
			mays = append(mays, w.Region)
		}
	}
	if slices.EqualFunc(append(claim(e.Reads), claim(slices.Concat(musts, mays))...), append(slices.Clone(c.reads), c.writes...), func(a, b area) bool { return slices.Equal(a.runs, b.runs) }) && !slices.ContainsFunc(c.writes, func(a area) bool { return !a.must }) && len(mays) == 0 {
		return // the usual case, in which no map of bytes is needed
	}
	all := func(area) bool { return true }
	within := func(a, b map[byteAt]bool) bool {
		for p := range a {
			if !b[p] {
				return false
			}
		}
		return true
	}
	reads, claimedReads := bytesOf(c.reads, all), bytesOf(claim(e.Reads), all)
	writes, claimedWrites := bytesOf(c.writes, all), bytesOf(claim(slices.Concat(musts, mays)), all)
	sure, claimedSure := bytesOf(c.writes, func(a area) bool { return a.must }), bytesOf(claim(musts), all)
	switch {
	case !within(reads, claimedReads):
		c.lie = "stored effects leave out bytes that the kernel reads"
	case !within(writes, claimedWrites):
		c.lie = "stored effects leave out bytes that the kernel writes"
	case !within(claimedSure, sure):
		c.lie = "stored effects call a must-write what the kernel may leave alone"
	case len(claimedReads) != len(reads) || len(claimedWrites) != len(writes) || len(claimedSure) != len(sure):
		c.boast = "stored effects are wider than those of the kernel's declaration"
	}
}

// text returns what a dispatch computes: its code, constants, grid and arguments, and
// where its effects lie relative to the views that contain them.
func (l *lowerer) text(k *ir.Kernel, d *ir.Dispatch, c *command) string {
	b := make([]byte, 0, 512)
	ints := func(sign string, vs ...int64) {
		b = append(b, sign...)
		for _, v := range vs {
			b = append(strconv.AppendInt(b, v, 10), ',')
		}
	}
	data := func(v []byte) { b = hex.AppendEncode(append(b, " bytes "...), v) }
	ints("", int64(k.Library.Kind))
	b = strconv.AppendQuote(b, k.Library.Path)
	b = hex.AppendEncode(b, k.Library.Digest[:])
	b = strconv.AppendQuote(b, k.Function)
	for _, f := range k.Constants {
		ints(" c", int64(f.Index), int64(f.Type), int64(f.Bits))
	}
	for _, a := range k.Args {
		ints(" a", int64(a.Slot), int64(a.Kind), int64(a.Access), int64(a.Type), int64(a.Count))
	}
	ints(" grid ", int64(d.GridKind))
	for i := range d.Grid {
		ints(" ", d.Grid[i].Eval(l.params), int64(d.Threadgroup[i]))
	}
	for _, t := range d.ThreadgroupMemory {
		ints(" tg", int64(t.Slot), int64(t.Bytes))
	}
	c.given = map[uint8][]byte{}
	for i := range d.Bindings {
		x := &d.Bindings[i]
		ints(" b", int64(x.Slot))
		switch x.Kind {
		case ir.BindView:
			// Argument memory holds what would otherwise be inline.
			if at := l.place(x.View); l.g.Memories[at.mem].Kind == ir.Argument {
				c.given[x.Slot] = l.argument(at.mem)[at.off : at.off+x.View.Len.Eval(l.params)]
				break
			}
			ints(" view ", x.View.Len.Eval(l.params))
			at, n := l.place(x.View), x.View.Len.Eval(l.params)
			if arg, _ := k.Arg(x.Slot); c.declaredBy == nil && arg.Kind == ir.DeviceArg && n > 0 && (c.unknown || !c.touches(run{mem: at.mem, lo: at.off, hi: at.off + n})) {
				c.pins = append(c.pins, pin{x.Slot, l.names[at.mem], at.off})
			}
			continue
		case ir.BindBytes:
			c.given[x.Slot] = x.Bytes
		case ir.BindScalar:
			// A scalar and inline bytes of the same value are the same argument.
			c.given[x.Slot] = scalarBytes(x, l.params)
		}
		data(c.given[x.Slot])
	}
	if c.unknown {
		b = append(b, " unknown"...)
	}
	c.what = string(b)
	for _, p := range c.pins {
		b = strconv.AppendQuote(append(b, " at "...), p.name)
		ints("", int64(p.slot), p.off)
	}
	flag := map[bool]int64{true: 1}
	for i, areas := range [][]area{c.reads, c.writes} {
		for _, a := range areas {
			ints([]string{" r", " w"}[i], int64(a.slot), flag[a.must], flag[a.atomic])
			for _, r := range a.runs {
				switch {
				case a.slot < 0 && r.bytes != "":
					b = hex.AppendEncode(append(b, ' '), []byte(r.bytes))
					continue
				case a.slot < 0:
					b = strconv.AppendQuote(append(b, ' '), l.names[r.mem])
				}
				ints(" ", r.lo-a.base.off, r.hi-a.base.off)
			}
		}
	}
	return string(append(b, c.overlap...))
}

// pin is where a view lies of which the effects list no byte. What a kernel makes of such
// an address nobody knows.
type pin struct {
	slot uint8
	name string // of the memory
	off  int64
}

// moved reports whether dispatch d, which is command c, is command b of the recording with
// other views: the same in all but effects, and those lie where b's do in the views. So
// it does not matter to which of two views that overlap an effect belongs.
func (l *lowerer) moved(b, c *command, d *ir.Dispatch) bool {
	if b.what != c.what || b.overlap != c.overlap || len(b.reads) != len(c.reads) || len(b.writes) != len(c.writes) {
		return false
	}
	was, now := slices.Concat(b.reads, b.writes), slices.Concat(c.reads, c.writes)
	for i, x := range was {
		by, y := byteAt{}, now[i]
		if x.must != y.must || x.atomic != y.atomic || len(x.runs) != len(y.runs) || len(x.runs) == 0 && x.slot != y.slot {
			return false
		}
		if x.slot >= 0 {
			at := l.place(d.Binding(uint8(x.slot)).View)
			by = byteAt{at.mem, at.off - x.base.off}
		}
		for k, r := range x.runs {
			if x.slot < 0 {
				by.mem, _ = l.g.MemoryNamed(l.recorded.g.Memories[r.mem].Name)
			}
			if y.runs[k] != (run{by.mem, r.lo + by.off, r.hi + by.off, r.bytes}) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(b.pins, func(p pin) bool {
		at := l.place(d.Binding(p.slot).View)
		return l.names[at.mem] != p.name || at.off != p.off
	})
}

// touches reports whether an effect of c lies in some bytes; what it is given as constants
// in memory does not count.
func (c *command) touches(r run) bool {
	view := []area{{runs: []run{r}}}
	return meet(c.reads[:len(c.reads)-c.constants], view) || meet(c.writes, view)
}

func scalarBytes(b *ir.Binding, params []uint32) []byte {
	if b.Type == ir.F32 {
		return binary.LittleEndian.AppendUint32(nil, params[b.Expr.Terms()[0].Param])
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(b.Expr.Eval(params)))[:b.Type.Size()]
}
