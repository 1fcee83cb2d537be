package ir

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// maxDefects bounds what one Check reports.
const maxDefects = 20

// Metal's limits that hold on every device.
const (
	maxInlineBytes    = 4096 // setBytes
	maxBufferSlots    = 31
	maxThreads        = 1024 // of one threadgroup
	maxThreadgroupMem = 32 << 10
	maxSize           = 1 << 47 // of a memory, and of every offset and length: keeps sums far from 64 bits
)

// Limits of our own, so that checking a hostile file takes time in proportion
// to its size; recordings have two or three of either.
const (
	maxParams      = 64
	maxConstraints = 64
)

// Check reports everything that is wrong with the form of a module: names,
// references, bounds for every value of the params, argument tables, marks. It
// says nothing about races. The error is an [Errors].
func (m *Module) Check() error { return m.CheckContext(context.Background()) }

// CheckContext is Check that ends with the cause of ctx once that is done.
func (m *Module) CheckContext(ctx context.Context) (err error) {
	defer interrupt.Catch(&err)
	c := &checker{ctx: ctx}
	names := map[string]bool{}
	if len(m.Graphs) == 0 {
		c.add("module", Pos{}, "has no graph", "")
	}
	states := map[string]*Memory{}
	for _, g := range m.Graphs {
		if names[g.Name] {
			c.add("graph "+QuoteName(g.Name), Pos{}, "another graph has this name", "rename one")
		}
		names[g.Name] = true
		c.graph(g)
		for i := range g.Memories {
			mem := &g.Memories[i]
			if mem.Kind != State || mem.Alias != NoMem {
				continue
			}
			switch other := states[mem.Name]; {
			case other == nil:
				states[mem.Name] = mem
			case other.Size != mem.Size:
				c.memory(g, i, fmt.Sprintf("state has %d bytes here and %d bytes in another graph", mem.Size, other.Size), "states of one name are one memory: give them one size")
			case !mem.SameContents(other):
				c.memory(g, i, "state has other initial contents in another graph", "states of one name are one memory: give them the same contents")
			}
		}
	}
	data := map[string]bool{}
	for _, d := range m.Data {
		at := "data " + QuoteName(d.Name)
		switch {
		case !validName(d.Name):
			c.add(at, Pos{}, "name is empty, too long or not printable", "")
		case data[d.Name]:
			c.add(at, Pos{}, "another data blob has this name", "rename one")
		case d.Blob == nil:
			c.add(at, Pos{}, "has no contents", "")
		case d.Blob.Offset < 0 || d.Blob.Offset > maxSize || d.Blob.Length < 0 || d.Blob.Length > maxSize:
			c.add(at, Pos{}, fmt.Sprintf("contents are %d bytes from byte %d of %q on", d.Blob.Length, d.Blob.Offset, d.Blob.Path), "")
		}
		data[d.Name] = true
	}
	return c.err()
}

// Check reports everything that is wrong with the form of one graph; see
// [Module.Check].
func (g *Graph) Check() error { return g.CheckContext(context.Background()) }

// CheckContext is Check that ends with the cause of ctx once that is done.
func (g *Graph) CheckContext(ctx context.Context) (err error) {
	defer interrupt.Catch(&err)
	c := &checker{ctx: ctx}
	c.graph(g)
	return c.err()
}

// CheckList is the part of Check that is about the list: ids, marks and groups.
// It says enough of a graph that passed Check and of which commands were since
// moved or dropped, and marks set.
func (g *Graph) CheckList(ctx context.Context) (err error) {
	defer interrupt.Catch(&err)
	c := &checker{ctx: ctx, list: true}
	c.begin(g)
	c.nodes(g)
	return c.err()
}

// EffectsCheck is the part of Check that is about effects. It says enough of a graph
// that passed Check and of which nothing but effects has changed since. Who gives
// effects to one command after another has each looked at while it is at hand.
type EffectsCheck struct {
	nc    nodeChecker
	next  int // node
	polls interrupt.Every
}

// NewEffectsCheck begins a check of g.
func NewEffectsCheck(g *Graph) *EffectsCheck {
	x := &EffectsCheck{nc: nodeChecker{c: &checker{}, g: g}}
	x.nc.c.begin(g)
	x.nc.prepare()
	return x
}

// To checks the nodes up to number n that were not yet. Their effects must stay.
func (x *EffectsCheck) To(ctx context.Context, n int) {
	for ; x.next < n; x.next++ {
		x.polls.Poll(ctx, 64)
		if d, ok := x.nc.g.Nodes[x.next].(*Dispatch); ok && len(x.nc.c.defects) < maxDefects {
			x.nc.i = x.next
			if x.nc.effects(d); len(x.nc.c.defects) == 0 {
				x.nc.promises(d, d.alwaysRuns())
			}
		}
	}
}

// Finish checks all other nodes and returns what was found.
func (x *EffectsCheck) Finish(ctx context.Context) (err error) {
	defer interrupt.Catch(&err)
	x.To(ctx, len(x.nc.g.Nodes))
	return x.nc.c.err()
}

type checker struct {
	ctx     context.Context
	list    bool // commands are not looked into
	tables  bool // those of the kernels of this graph are right
	file    string
	prefix  string
	defects Errors
}

func (c *checker) err() error {
	if len(c.defects) == 0 {
		return nil
	}
	return c.defects
}

func (c *checker) add(at string, pos Pos, what, hint string) {
	if len(c.defects) < maxDefects {
		c.defects = append(c.defects, &Error{File: c.file, Pos: pos, At: at, What: what, Hint: hint})
	}
}

func (c *checker) memory(g *Graph, i int, what, hint string) {
	var pos Pos
	if g.Source != nil && i < len(g.Source.Memories) {
		pos = g.Source.Memories[i]
	}
	c.add(c.prefix+g.memName(MemID(i)), pos, what, hint)
}

// begin says where defects are from now on.
func (c *checker) begin(g *Graph) {
	c.file = ""
	if g.Source != nil {
		c.file = g.Source.File
	}
	c.prefix = "graph " + QuoteName(g.Name) + ": "
}

func (c *checker) graph(g *Graph) {
	c.begin(g)
	if !validName(g.Name) {
		c.add("graph "+QuoteName(g.Name), Pos{}, "name is empty, too long or not printable", "")
	}
	if c.params(g); len(c.defects) > 0 {
		return // bounds of everything else hang on the params
	}
	if c.memories(g); len(c.defects) > 0 {
		return
	}
	before := len(c.defects)
	c.kernels(g)
	c.tables = len(c.defects) == before
	c.ordering(g)
	c.nodes(g)
}

func (c *checker) params(g *Graph) {
	if len(g.Params) > maxParams || len(g.Constraints) > maxConstraints {
		c.add("graph "+QuoteName(g.Name), Pos{}, fmt.Sprintf("has %d params and %d constraints", len(g.Params), len(g.Constraints)), fmt.Sprintf("at most %d and %d", maxParams, maxConstraints))
		return
	}
	seen := map[string]bool{}
	for _, p := range g.Params {
		at := c.prefix + "param $" + QuoteName(p.Name)
		switch {
		case !validName(p.Name):
			c.add(at, Pos{}, "name is empty, too long or not printable", "")
		case seen[p.Name]:
			c.add(at, Pos{}, "another param has this name", "rename one")
		case p.Type != U32 && p.Type != F32:
			c.add(at, Pos{}, fmt.Sprintf("type is %s", p.Type), "params are u32 or f32")
		case !(p.Min <= p.Max):
			c.add(at, Pos{}, fmt.Sprintf("bound [%v, %v] is empty", p.Min, p.Max), "")
		case p.Type == U32 && (p.Min < 0 || p.Max > math.MaxUint32 || p.Min != math.Trunc(p.Min) || p.Max != math.Trunc(p.Max)):
			c.add(at, Pos{}, fmt.Sprintf("bound [%v, %v] is no range of u32", p.Min, p.Max), "")
		case p.Type == F32 && (float64(float32(p.Min)) != p.Min || float64(float32(p.Max)) != p.Max):
			c.add(at, Pos{}, fmt.Sprintf("bound [%v, %v] is not made of f32 values", p.Min, p.Max), "")
		case p.Advance != 0 && p.Type != U32:
			c.add(at, Pos{}, fmt.Sprintf("is of type %s and advances", p.Type), "u32 params advance")
		case p.Advance > math.MaxUint32 || p.Advance < -math.MaxUint32:
			c.add(at, Pos{}, fmt.Sprintf("advances by %d, out of any u32", p.Advance), "")
		}
		seen[p.Name] = true
	}
	for i, k := range g.Constraints {
		at := fmt.Sprintf("%sconstraint %d", c.prefix, i)
		if k.LHS.IsConst() || k.LHS.Const != 0 {
			c.add(at, Pos{}, "left side must name params and have no constant", "")
			continue
		}
		if !c.intParams(g, k.LHS) {
			c.add(at, Pos{}, "names a param that does not exist or is f32", "")
			continue
		}
		b := Bounds{g: g}
		if _, ok := b.box(k.LHS.Terms()); !ok {
			c.add(at, Pos{}, "left side leaves 64 bits", "use smaller bounds")
			continue
		}
		if low, ok := b.box(k.LHS.Scale(-1).Terms()); ok && -low > k.Max {
			c.add(at, Pos{}, fmt.Sprintf("no value of the params satisfies %s <= %d", g.FormatAffine(k.LHS), k.Max), "")
		}
	}
	if len(c.defects) == 0 {
		c.satisfiable(g)
	}
}

// satisfiable reports constraints that no values satisfy together.
func (c *checker) satisfiable(g *Graph) {
	found := g.contradiction()
	if len(found) == 0 {
		return
	}
	text := ""
	for i, k := range found {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s <= %d", g.FormatAffine(g.Constraints[k].LHS), g.Constraints[k].Max)
	}
	last := found[len(found)-1]
	c.add(fmt.Sprintf("%sconstraint %d", c.prefix, last), Pos{}, "no values of the params satisfy together "+text, "no replay could run: drop one, or widen the bounds")
}

// intParams reports whether every param of a exists and is a u32.
func (c *checker) intParams(g *Graph, a Affine) bool {
	for _, t := range a.Terms() {
		if t.Param < 0 || int(t.Param) >= len(g.Params) || g.Params[t.Param].Type != U32 {
			return false
		}
	}
	return true
}

func (c *checker) memories(g *Graph) {
	seen := map[string]bool{}
	var polls interrupt.Every
	for i := range g.Memories {
		polls.Poll(c.ctx, 64)
		m := &g.Memories[i]
		if !validName(m.Name) {
			c.memory(g, i, "name is empty, too long or not printable", "")
		}
		if seen[m.Name] {
			c.memory(g, i, "another memory has this name", "rename one")
		}
		seen[m.Name] = true
		if m.Size <= 0 || m.Size > maxSize {
			c.memory(g, i, fmt.Sprintf("size of %d bytes is outside [1, %d]", m.Size, int64(maxSize)), "")
		}
		if m.Align < 0 || m.Align&(m.Align-1) != 0 || m.Align > 1<<20 {
			c.memory(g, i, fmt.Sprintf("alignment %d is no power of two up to 1 MiB", m.Align), "")
		}
		if int(m.Kind) >= len(memKinds) || m.Storage > Private || m.Init.Kind > InitValues {
			c.memory(g, i, "kind, storage or initial contents are of no known sort", "")
			continue
		}
		if m.Every && (m.Kind != Output || m.Alias != NoMem) {
			c.memory(g, i, "is no output and keeps every replay's contents", "only outputs are kept of every replay of a submission")
		}
		c.shape(g, i, m)
		c.init(g, i, m)
		c.alias(g, i, m)
	}
}

func (c *checker) shape(g *Graph, i int, m *Memory) {
	if m.DType == Invalid && m.Shape == nil {
		return
	}
	if !m.DType.Valid() {
		c.memory(g, i, "has a shape but no element type", "")
		return
	}
	bits := int64(m.DType.Bits())
	for _, d := range m.Shape {
		p, ok := mulOK(bits, d)
		if d <= 0 || !ok || p > maxSize*8 {
			c.memory(g, i, fmt.Sprintf("shape %v is not positive or too large", m.Shape), "")
			return
		}
		bits = p
	}
	if (bits+7)/8 > m.Size {
		c.memory(g, i, fmt.Sprintf("shape %s%v needs %d bytes, memory has %d", m.DType, m.Shape, (bits+7)/8, m.Size), "")
	}
}

func (c *checker) init(g *Graph, i int, m *Memory) {
	in := m.Init
	switch {
	case m.Alias != NoMem && in.Kind != InitNone:
		c.memory(g, i, "an alias has no initial contents of its own", "give them to the memory that it lies in")
	case (in.Kind == InitBlob) != (in.Blob != nil):
		c.memory(g, i, "blob contents without a blob, or a blob without blob contents", "")
	case in.Blob != nil && in.Blob.Length != m.Size:
		c.memory(g, i, fmt.Sprintf("initial contents have %d bytes, memory has %d", in.Blob.Length, m.Size), "")
	case in.Blob != nil && (in.Blob.Offset < 0 || in.Blob.Offset > maxSize):
		c.memory(g, i, fmt.Sprintf("initial contents begin at byte %d of %q", in.Blob.Offset, in.Blob.Path), "")
	case (in.Kind == InitValues) != (in.Values != nil):
		c.memory(g, i, "value contents without values, or values without value contents", "")
	case m.Alias == NoMem && (m.Kind == Argument) != (in.Kind == InitValues):
		c.memory(g, i, "argument memory has values, and nothing else does", "list what the replay writes")
	case in.Kind == InitValues:
		c.values(g, i, m)
	case m.Kind == Weight && m.Alias == NoMem && in.Kind == InitNone:
		c.memory(g, i, "a weight needs initial contents", "give it a blob, a file, a fill or a random seed")
	case (m.Kind == Input || m.Kind == Output || m.Kind == Scratch) && in.Kind != InitNone:
		c.memory(g, i, fmt.Sprintf("%s memory has initial contents", m.Kind), "only weights and states keep bytes between replays")
	}
}

// values checks the recipe of argument memory.
func (c *checker) values(g *Graph, i int, m *Memory) {
	if m.Storage != Shared {
		c.memory(g, i, "argument memory is private", "the host writes it: make it shared")
	}
	end := int64(0)
	for j := range m.Init.Values {
		v := &m.Init.Values[j]
		if len(c.defects) >= maxDefects {
			return
		}
		if v.Type != Invalid && !v.Type.Valid() {
			c.memory(g, i, fmt.Sprintf("value %d is of no known type", j), "")
			return
		}
		// INVARIANT: sizes of memories keep these sums far from 64 bits.
		if v.Size() == 0 || v.Off < end || v.Off > m.Size || v.Size() > m.Size-v.Off {
			c.memory(g, i, fmt.Sprintf("value %d, %d bytes at %d, is empty, overlaps the one before or leaves the memory (%d bytes)", j, v.Size(), v.Off, m.Size), "values stand in ascending order, apart")
			return
		}
		end = v.Off + v.Size()
		if v.Bytes == nil {
			if what, hint := scalarDefect(c, g, v.Type, v.Expr); what != "" {
				c.memory(g, i, fmt.Sprintf("value %d%s", j, what), hint)
			}
		}
	}
}

func (c *checker) alias(g *Graph, i int, m *Memory) {
	if m.Alias == NoMem {
		if m.AliasOff != 0 {
			c.memory(g, i, "has an alias offset but is no alias", "")
		}
		return
	}
	// A parent stands before its aliases: no cycle can be written down.
	if m.Alias < 0 || int(m.Alias) >= i {
		c.memory(g, i, "aliases a memory that is not declared before it", "declare the memory that holds it first")
		return
	}
	p := &g.Memories[m.Alias]
	if m.Kind != p.Kind || m.Storage != p.Storage {
		c.memory(g, i, fmt.Sprintf("is %s %s but lies in %s %s memory", m.Storage, m.Kind, p.Storage, p.Kind), "an alias takes its parent's kind")
	}
	if end, ok := addOK(m.AliasOff, m.Size); m.AliasOff < 0 || !ok || end > p.Size {
		c.memory(g, i, fmt.Sprintf("alias [%d:%d] ends past %s (%d bytes)", m.AliasOff, m.AliasOff+m.Size, g.memName(m.Alias), p.Size), "shorten the alias or grow the memory")
	}
}

func (c *checker) kernels(g *Graph) {
	seen := map[string]bool{}
	var polls interrupt.Every
	for i := range g.Kernels {
		polls.Poll(c.ctx, 64)
		k := &g.Kernels[i]
		at := c.prefix + "kernel @" + QuoteName(k.Name)
		switch {
		case k.Library.Kind == Generated && !validTerm(k.Function):
			c.add(at, Pos{}, fmt.Sprintf("the term of a generated kernel is printable ASCII of 1 to %d bytes", MaxFunction), "")
		case !validName(k.Name) || k.Library.Kind != Generated && !validName(k.Function):
			c.add(at, Pos{}, "name or function is empty, too long or not printable", "")
		}
		if seen[k.Name] {
			c.add(at, Pos{}, "another kernel has this name", "rename one")
		}
		seen[k.Name] = true
		if k.Library.Kind > Generated || k.Library.Declared() != (k.Library.Path == "") {
			c.add(at, Pos{}, "library is of no known sort, or has no path, or is builtin or generated and has one", "")
		} else if !utf8.ValidString(k.Library.Path) {
			c.add(at, Pos{}, "path of its library is no UTF-8", "")
		} else if k.Library.Declared() && k.Library.Digest != (Digest{}) {
			c.add(at, Pos{}, "library is "+k.Library.Kind.String()+" and has a digest", "")
		}
		if k.Library.Kind == Generated && len(k.Constants) > 0 {
			c.add(at, Pos{}, "kernel is generated and has function constants", "write them into its term")
		}
		for j, fc := range k.Constants {
			if j > 0 && fc.Index <= k.Constants[j-1].Index {
				c.add(at, Pos{}, "function constants do not stand in ascending order of their indices", "")
			}
			if s := fc.Type.Size(); s == 0 || s < 8 && fc.Bits>>(8*s) != 0 {
				c.add(at, Pos{}, fmt.Sprintf("function constant %d: bits %#x are no %s", fc.Index, fc.Bits, fc.Type), "")
			}
			if fc.Name != "" && !validName(fc.Name) {
				c.add(at, Pos{}, fmt.Sprintf("function constant %d has an unprintable name", fc.Index), "")
			}
		}
		names := map[string]bool{}
		for j, a := range k.Args {
			switch {
			case a.Kind > ThreadgroupArg || a.Access > ReadWriteArg || !a.Type.Valid() || a.Count < 0:
				c.add(at, Pos{}, fmt.Sprintf("argument %d is of no known sort", a.Slot), "")
			case a.Slot >= maxBufferSlots:
				c.add(at, Pos{}, fmt.Sprintf("argument slot %d is past Metal's last one, %d", a.Slot, maxBufferSlots-1), "")
			case !validName(a.Name) || names[a.Name]:
				c.add(at, Pos{}, fmt.Sprintf("argument %d has no name of its own", a.Slot), "")
			case j > 0 && !argBefore(k.Args[j-1], a):
				c.add(at, Pos{}, fmt.Sprintf("argument %d is out of order", a.Slot), "buffers ascending, then threadgroup arguments ascending")
			}
			names[a.Name] = true
		}
	}
}

func argBefore(a, b Arg) bool {
	ta, tb := a.Kind == ThreadgroupArg, b.Kind == ThreadgroupArg
	if ta != tb {
		return tb
	}
	return a.Slot < b.Slot
}

func (c *checker) nodes(g *Graph) {
	ids := newIDSet(len(g.Nodes))
	nc := nodeChecker{c: c, g: g}
	if !c.list {
		nc.prepare()
	}
	edges := newEdgeChecker(&nc)
	open := 0
	var polls interrupt.Every
	for i, n := range g.Nodes {
		polls.Poll(c.ctx, 64)
		if len(c.defects) >= maxDefects {
			return
		}
		nc.i = i
		if command, ok := n.(Command); ok {
			if !ids.add(command.Num()) {
				nc.add("another command has this id", "ids are unique in a graph")
			}
			if _, join := n.(*Join); join || len(edges.left) > 0 {
				edges.command(command)
			}
			if c.list {
				continue
			}
		}
		switch n := n.(type) {
		case *Dispatch:
			nc.dispatch(n)
		case *Copy:
			nc.view("source", "", n.Src, false)
			nc.view("destination", "", n.Dst, true)
			if !n.Src.Len.Equal(n.Dst.Len) {
				nc.add(fmt.Sprintf("copies %s bytes to %s bytes", g.FormatAffine(n.Src.Len), g.FormatAffine(n.Dst.Len)), "")
			} else {
				nc.disjoint(n)
			}
			nc.label(n.Label)
		case *Fill:
			nc.view("destination", "", n.Dst, true)
			nc.label(n.Label)
		case *Carry:
			nc.carry(n)
			continue
		case *Commit:
			if int(n.Order) >= len(commitOrders) {
				nc.add("order is of no known sort", "")
			} else if g.Ordering == ByEdges && n.Order != OrderNone {
				nc.add(fmt.Sprintf("orders by %s, and the graph is ordered by edges", n.Order), "a commit of such a graph orders nothing")
			}
			nc.label(n.Label)
		case *GroupBegin:
			open++
			nc.label(n.Label)
		case *GroupEnd:
			if open--; open < 0 {
				nc.add("closes a group that is not open", "")
				open = 0
			}
		case *Barrier:
			if g.Ordering == ByEdges {
				nc.add("orders, and the graph is ordered by edges", "write an edge instead")
			}
		case *Join:
		default:
			nc.add(fmt.Sprintf("is of no known sort (%T)", n), "")
		}
		if c, ok := n.(Command); ok && len(nc.carries) > 0 {
			nc.behind(c)
		}
	}
	edges.end()
	if open > 0 {
		c.add(c.prefix+"end", Pos{}, fmt.Sprintf("%d group(s) are still open", open), "close them")
	}
}

// nodeChecker checks one node after another; it formats its place only when
// something is wrong, for a graph may have a million nodes.
type nodeChecker struct {
	c       *checker
	bounds  *Bounds
	g       *Graph
	i       int
	roots   []root
	memo    *memo
	extents []extent
	slots   []slots
	needs   []needs  // by kernel
	carries []*Carry // before the node
	ops     []string // by kernel: the last op kind of it that was accepted
}

// extent is what a view must keep to: the little of a memory that every view of a
// million commands asks for.
type extent struct {
	size     int64
	readOnly bool
}

// slots says what a kernel takes at each slot, of its buffers.
type slots [maxBufferSlots]slot

type slot struct {
	taken, written, inlineable bool
	want                       int32 // inline bytes; 0: any number of them
}

func (nc *nodeChecker) prepare() {
	g := nc.g
	nc.roots, nc.memo, nc.bounds = rootsOf(g), newMemo(len(g.Nodes)), NewBounds(g, -1)
	nc.extents = make([]extent, len(g.Memories))
	for i := range g.Memories {
		nc.extents[i] = extent{g.Memories[i].Size, g.Memories[i].Kind.ReadOnly()}
	}
	nc.slots, nc.ops = make([]slots, len(g.Kernels)), make([]string, len(g.Kernels))
	nc.needs = make([]needs, len(g.Kernels))
	for i := range g.Kernels {
		for j := range g.Kernels[i].Args {
			// Where a hostile file gives a slot two arguments, [Kernel.index] takes the
			// first, and so does this.
			if a := &g.Kernels[i].Args[j]; a.Kind != ThreadgroupArg && a.Slot < maxBufferSlots && !nc.slots[i][a.Slot].taken {
				want := int64(a.Count) * a.Type.Size()
				if want > maxInlineBytes {
					want = -1 // no number of bytes will do
				}
				nc.slots[i][a.Slot] = slot{true, writes(a), inlineable(a), int32(max(want, -1))}
			}
		}
		nc.needs[i] = needsOf(&g.Kernels[i], &nc.slots[i])
	}
}

// writes reports whether what is bound to a may be written.
func writes(a *Arg) bool { return a.Kind == DeviceArg && a.Access != ReadArg }

// plain reports whether binding b of slot s is right beyond doubt: a constant view
// within its memory, or inline bytes. Nearly all are.
func (nc *nodeChecker) plain(s *slot, b *Binding) bool {
	switch b.Kind {
	case BindView:
		v := &b.View
		return b.Bytes == nil && v.Off.lin == nil && v.Len.lin == nil && nc.inside(v.Mem, v.Off.Const, v.Len.Const, s.written)
	case BindBytes:
		n := len(b.Bytes)
		return s.inlineable && n > 0 && n <= maxInlineBytes && (s.want == 0 || int(s.want) == n)
	}
	return false
}

// inside reports whether n bytes from off on lie in memory m, which may be written
// if write is set.
func (nc *nodeChecker) inside(m MemID, off, n int64, write bool) bool {
	if uint(m) >= uint(len(nc.extents)) {
		return false
	}
	x := &nc.extents[m]
	return off >= 0 && n >= 0 && n <= x.size && off <= x.size-n && !(write && x.readOnly)
}

// root is what [Graph.Root] returns; a hostile file has long chains of aliases,
// to be walked once and not once a copy.
type root struct {
	mem MemID
	off int64
}

func rootsOf(g *Graph) []root {
	out := make([]root, len(g.Memories))
	for i, m := range g.Memories {
		out[i] = root{MemID(i), 0}
		if m.Alias != NoMem { // stands before i: [checker.alias]
			p := out[m.Alias]
			out[i] = root{p.mem, p.off + m.AliasOff}
		}
	}
	return out
}

func (nc *nodeChecker) add(what, hint string) {
	var pos Pos
	if s := nc.g.Source; s != nil && nc.i < len(s.Nodes) {
		pos = s.Nodes[nc.i]
	}
	nc.c.add(nc.c.prefix+nc.g.DescribeNode(nc.i), pos, what, hint)
}

func (nc *nodeChecker) label(s string) {
	if !validLabel(s) {
		nc.add("label is longer than 4096 bytes or no UTF-8", "")
	}
}

// DescribeNode names the node at index i for people: "#12 rms_norm".
func (g *Graph) DescribeNode(i int) string {
	if _, ok := g.Nodes[i].(Command); ok {
		return g.Describe(g.Nodes[i])
	}
	return fmt.Sprintf("node %d%s", i, g.Describe(g.Nodes[i]))
}

// Describe names a command for people: "#12 rms_norm"; marks have no number.
func (g *Graph) Describe(n Node) string {
	switch n := n.(type) {
	case *Dispatch:
		op := n.Op
		if op == "" && n.Kernel >= 0 && int(n.Kernel) < len(g.Kernels) {
			op = g.Kernels[n.Kernel].Function
		}
		if op == "" {
			return n.ID.String()
		}
		if !validName(op) {
			op = QuoteName(op)
		}
		return n.ID.String() + " " + Shorten(op)
	case *Copy:
		return n.ID.String() + " copy"
	case *Fill:
		return n.ID.String() + " fill"
	case *Join:
		return n.ID.String() + " join"
	case *Carry:
		return n.ID.String() + " carry"
	case *Barrier:
		return " (barrier)"
	case *Commit:
		return " (commit)"
	}
	return ""
}

// view checks that v lies in its memory for every value of the params.
// What it is called is what+name, joined only when something is wrong.
func (nc *nodeChecker) view(what, name string, v View, write bool) {
	g := nc.g
	if v.Mem < 0 || int(v.Mem) >= len(g.Memories) {
		nc.add(fmt.Sprintf("%s is in memory %d of %d", what+name, v.Mem, len(g.Memories)), "")
		return
	}
	m := &g.Memories[v.Mem]
	if v.Off.IsConst() && v.Len.IsConst() {
		// The common case allocates nothing.
		if v.Off.Const < 0 || v.Len.Const < 0 || v.Off.Const > m.Size || v.Len.Const > m.Size-v.Off.Const {
			nc.add(fmt.Sprintf("%s %s leaves the memory (%d bytes)", what+name, g.FormatView(v), m.Size), "shorten the view or grow the memory")
		}
	} else if place, accepted := nc.memo.view(v); !accepted {
		if nc.within(what, name, v.Off, v.End(), v.Len, m, func() string { return g.FormatView(v) }) {
			*place = acceptedView{v, true}
		}
	}
	if write && m.Kind.ReadOnly() {
		nc.add(fmt.Sprintf("%s %s writes %s memory", what+name, g.FormatView(v), m.Kind), "weights and inputs are read-only to a graph")
	}
}

func (nc *nodeChecker) within(what, name string, lo, end, length Affine, m *Memory, format func() string) bool {
	g := nc.g
	if !nc.c.intParams(g, lo) || !nc.c.intParams(g, length) || !nc.c.intParams(g, end) {
		nc.add(fmt.Sprintf("%s %s names a param that does not exist or is f32", what+name, format()), "")
		return false
	}
	if nc.bounds.boxed(lo, end, length, m.Size) {
		return true
	}
	min, latest, ok1 := nc.bounds.Range(lo)
	_, max, ok2 := nc.bounds.Range(end)
	least, longest, ok3 := nc.bounds.Range(length)
	switch {
	// INVARIANT: offset and length stay within ±maxSize each, so that their sum,
	// which was formed without a look at overflow, is their true sum.
	case !ok1 || !ok2 || !ok3 || max > maxSize || min < -maxSize || latest > maxSize || longest > maxSize || least < -maxSize:
		nc.add(fmt.Sprintf("%s %s leaves 64 bits", what+name, format()), "use smaller bounds")
	case min < 0 || max > m.Size:
		nc.add(fmt.Sprintf("%s %s reaches [%d:%d], memory has %d bytes", what+name, format(), min, max, m.Size), "bound the params, add a constraint, or grow the memory")
	case least < 0:
		nc.add(fmt.Sprintf("%s %s can have the length %d", what+name, format(), least), "")
	default:
		return true
	}
	return false
}

func (nc *nodeChecker) disjoint(n *Copy) {
	g := nc.g
	for _, v := range []View{n.Src, n.Dst} {
		if v.Mem < 0 || int(v.Mem) >= len(g.Memories) {
			return
		}
	}
	s, d := nc.roots[n.Src.Mem], nc.roots[n.Dst.Mem]
	if s.mem != d.mem {
		return
	}
	src, dst := n.Src.Off.AddConst(s.off), n.Dst.Off.AddConst(d.off)
	if !nc.apart(src, src.Add(n.Src.Len), dst, dst.Add(n.Dst.Len)) {
		nc.add(fmt.Sprintf("source %s and destination %s overlap", g.FormatView(n.Src), g.FormatView(n.Dst)), "copy by way of another memory")
	}
}

func (nc *nodeChecker) dispatch(d *Dispatch) {
	g := nc.g
	if d.Kernel < 0 || int(d.Kernel) >= len(g.Kernels) {
		nc.add(fmt.Sprintf("runs kernel %d of %d", d.Kernel, len(g.Kernels)), "")
		return
	}
	takes, before := &nc.slots[d.Kernel], len(nc.c.defects)
	last := -1
	bound := uint32(0)
	for j := range d.Bindings {
		b := &d.Bindings[j]
		at := int(b.Slot)
		bound |= 1 << (at & 31)
		if at <= last || at >= len(takes) || !takes[at].taken || !nc.plain(&takes[at], b) {
			nc.binding(&g.Kernels[d.Kernel], d, j)
		}
		last = at
	}
	runs := nc.grid(d)
	total := int64(0)
	for j, t := range d.ThreadgroupMemory {
		if j > 0 && t.Slot <= d.ThreadgroupMemory[j-1].Slot || t.Slot >= maxBufferSlots {
			nc.add(fmt.Sprintf("threadgroup memory %d is out of order or past slot %d", t.Slot, maxBufferSlots-1), "")
		}
		if t.Bytes == 0 || t.Bytes%16 != 0 {
			nc.add(fmt.Sprintf("threadgroup memory %d has %d bytes", t.Slot, t.Bytes), "Metal wants a positive multiple of 16")
		}
		total += int64(t.Bytes)
	}
	if total > maxThreadgroupMem {
		nc.add(fmt.Sprintf("threadgroup memory of %d bytes is more than %d", total, maxThreadgroupMem), "")
	}
	if d.Op != "" && d.Op != nc.ops[d.Kernel] {
		if validName(d.Op) {
			nc.ops[d.Kernel] = d.Op
		} else {
			nc.add("op kind is too long or not printable", "")
		}
	}
	nc.label(d.Label)
	nc.effects(d)
	if len(nc.c.defects) > before {
		return // which may be why what follows is wrong
	}
	if d.Indirect != nil {
		nc.indirect(d)
	}
	nc.promises(d, runs)
	if n := &nc.needs[d.Kernel]; nc.c.tables && (n.buffers&^bound != 0 || len(d.ThreadgroupMemory) > 0) {
		nc.given(d, bound)
	}
}

func (nc *nodeChecker) effects(d *Dispatch) {
	e := d.Effects
	if e == nil {
		return
	}
	for i := range e.Reads {
		nc.region("read", &e.Reads[i], false)
	}
	for i := range e.Writes {
		nc.region("write", &e.Writes[i].Region, true)
	}
}

// binding checks binding j of d.
func (nc *nodeChecker) binding(k *Kernel, d *Dispatch, j int) {
	b := &d.Bindings[j]
	at := k.index(b.Slot)
	if j > 0 && b.Slot <= d.Bindings[j-1].Slot {
		nc.add(fmt.Sprintf("binding %d stands after binding %d", b.Slot, d.Bindings[j-1].Slot), "bindings stand in ascending order of their slots")
	}
	if at < 0 {
		nc.add(fmt.Sprintf("binds slot %d, which kernel @%s does not have", b.Slot, QuoteName(k.Name)), "")
		return
	}
	arg := &k.Args[at]
	switch b.Kind {
	case BindView:
		if b.Bytes != nil {
			nc.add(fmt.Sprintf("binding %s is a view and has inline bytes", arg.Name), "")
		}
		nc.view("binding ", arg.Name, b.View, writes(arg))
	case BindBytes:
		n := int64(len(b.Bytes))
		if !inlineable(arg) {
			nc.add(fmt.Sprintf("binding %s has inline bytes, the argument is %s %s memory", arg.Name, arg.Kind, arg.Access), "only constants and device memory that is read can be inline")
		}
		if n == 0 || n > maxInlineBytes {
			nc.add(fmt.Sprintf("binding %s has %d inline bytes", arg.Name, n), "Metal's setBytes takes 1 to 4096")
		}
		if want := int64(arg.Count) * arg.Type.Size(); want > 0 && n != want {
			nc.add(fmt.Sprintf("binding %s has %d inline bytes, the argument has %d", arg.Name, n, want), "")
		}
	case BindScalar:
		nc.scalar(arg, b)
	default:
		nc.add(fmt.Sprintf("binding %s is of no known sort", arg.Name), "")
	}
}

// inlineable: Metal's setBytes fills a buffer slot, whatever the address space,
// with memory that the kernel must not write.
func inlineable(a *Arg) bool {
	return a.Kind == ConstantArg || a.Kind == DeviceArg && a.Access == ReadArg
}

func (nc *nodeChecker) scalar(arg *Arg, b *Binding) {
	g := nc.g
	if !inlineable(arg) || arg.Kind == ConstantArg && arg.Count != 1 || b.Type != arg.Type {
		nc.add(fmt.Sprintf("binding %s is a param expression of type %s, the argument is %s %s[%d]", arg.Name, b.Type, arg.Kind, arg.Type, arg.Count), "")
		return
	}
	place, accepted := nc.memo.extent(Extent{b.Expr, 1}, b.Type)
	if accepted {
		return
	}
	if what, hint := scalarDefect(nc.c, g, b.Type, b.Expr); what != "" {
		nc.add(fmt.Sprintf("binding %s%s", arg.Name, what), hint)
		return
	}
	*place = acceptedExtent{Extent{b.Expr, 1}, b.Type, true}
}

// scalarDefect says what is wrong with e as a scalar of type t, or "".
func scalarDefect(c *checker, g *Graph, t DType, e Affine) (what, hint string) {
	if t == F32 {
		ts := e.Terms()
		if e.Const != 0 || len(ts) != 1 || ts[0].Coeff != 1 || ts[0].Param < 0 || int(ts[0].Param) >= len(g.Params) || g.Params[ts[0].Param].Type != F32 {
			return ": an f32 expression is one f32 param", ""
		}
		return "", ""
	}
	if !c.intParams(g, e) {
		return " names a param that does not exist or is f32", ""
	}
	lo, hi, ok := g.Range(e)
	min, max := int64(0), int64(math.MaxInt64)
	switch t {
	case U32:
		max = math.MaxUint32
	case I32:
		min, max = math.MinInt32, math.MaxInt32
	case I64:
		min = math.MinInt64
	case U64:
	default:
		return fmt.Sprintf(" is a param expression of type %s", t), "expressions are i32, u32, i64, u64 or f32"
	}
	if !ok || lo < min || hi > max {
		return fmt.Sprintf(" = %s can be %d…%d, which is no %s", g.FormatAffine(e), lo, hi, t), "bound the params or add a constraint"
	}
	return "", ""
}

// grid checks the grid and the threadgroups of d, and reports whether the grid is a
// constant and not empty.
func (nc *nodeChecker) grid(d *Dispatch) (runs bool) {
	g := nc.g
	runs = true
	if d.GridKind > Threads {
		nc.add("grid is of no known sort", "")
	}
	for i, e := range d.Grid {
		if e.Div == 1 && e.IsConst() && e.Num.Const > 0 && e.Num.Const <= math.MaxUint32 {
			continue
		}
		runs = runs && e.IsConst() && e.Num.Const > 0
		place, accepted := nc.memo.extent(e, Invalid)
		if accepted {
			continue
		}
		if e.Div < 1 {
			nc.add(fmt.Sprintf("grid dimension %d is divided by %d", i, e.Div), "")
			continue
		}
		if !nc.c.intParams(g, e.Num) {
			nc.add(fmt.Sprintf("grid dimension %d names a param that does not exist or is f32", i), "")
			continue
		}
		lo, hi, ok := nc.bounds.Range(e.Num)
		if !ok || lo < 0 || ceilDiv(hi, e.Div) > math.MaxUint32 {
			nc.add(fmt.Sprintf("grid dimension %d can be %d…%d", i, ceilDiv(lo, e.Div), ceilDiv(hi, e.Div)), "a grid is between 0 and 2^32-1; bound the params or add a constraint")
			continue
		}
		*place = acceptedExtent{e, Invalid, true}
	}
	threads := int64(1)
	for _, t := range d.Threadgroup {
		if t == 0 || t > maxThreads {
			threads = maxThreads + 1
			break
		}
		threads *= int64(t)
	}
	if threads > maxThreads {
		nc.add(fmt.Sprintf("threadgroup %v is empty or has more than %d threads", d.Threadgroup, maxThreads), "")
	}
	return runs
}

func (nc *nodeChecker) region(what string, at *Region, write bool) {
	// The common case.
	if len(at.Dims) == 0 && at.Off.lin == nil && at.Run.lin == nil && nc.inside(at.Mem, at.Off.Const, at.Run.Const, write) {
		return
	}
	g, r := nc.g, *at
	if r.Mem < 0 || int(r.Mem) >= len(g.Memories) {
		nc.add(fmt.Sprintf("%s is of memory %d of %d", what, r.Mem, len(g.Memories)), "")
		return
	}
	m := &g.Memories[r.Mem]
	if len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() {
		if r.Off.Const < 0 || r.Run.Const < 0 || r.Off.Const > m.Size || r.Run.Const > m.Size-r.Off.Const {
			nc.add(fmt.Sprintf("%s %s leaves the memory (%d bytes)", what, g.FormatRegion(r), m.Size), "")
		}
	} else if place, accepted := nc.memo.region(r); !accepted {
		if nc.strided(what, r, m) {
			*place = acceptedRegion{r, true}
		}
	}
	if write && m.Kind.ReadOnly() {
		nc.add(fmt.Sprintf("%s %s is of %s memory", what, g.FormatRegion(r), m.Kind), "weights and inputs are read-only to a graph")
	}
}

// strided checks a region that repeats, or depends on params.
func (nc *nodeChecker) strided(what string, r Region, m *Memory) bool {
	g := nc.g
	if len(r.Dims) > 4 {
		nc.add(fmt.Sprintf("%s of %s has %d dimensions", what, g.memName(r.Mem), len(r.Dims)), "at most 4")
		return false
	}
	for _, dim := range r.Dims {
		lo, hi, ok := nc.bounds.Range(dim.Count)
		if !nc.c.intParams(g, dim.Count) || !ok || lo < 0 || dim.Stride < 0 || dim.Stride > maxSize {
			nc.add(fmt.Sprintf("%s %s has a dimension of negative count or stride", what, g.FormatRegion(r)), "")
			return false
		}
		// INVARIANT: four of these and an offset add up inside 64 bits.
		if reach, ok := mulOK(hi, dim.Stride); !ok || reach > 1<<60 {
			nc.add(fmt.Sprintf("%s %s leaves 64 bits", what, g.FormatRegion(r)), "use smaller bounds")
			return false
		}
	}
	lo, end := r.Hull()
	return nc.within(what, "", lo, end, r.Run, m, func() string { return g.FormatRegion(r) })
}
