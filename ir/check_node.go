package ir

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/interrupt"
)

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
				nc.moved(command)
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

// moved checks the rules about a command's place in the list: a command after a carry must not
// touch what the carry copies.
func (nc *nodeChecker) moved(command Command) {
	if c, ok := command.(*Carry); ok {
		if nc.roots == nil {
			nc.prepare()
		}
		nc.carry(c)
	} else if len(nc.carries) > 0 {
		nc.behind(command)
	}
}

// nodeChecker checks one node after another. A graph may have a million nodes, so it formats the
// name of a node only when something is wrong with it.
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
	carries []*Carry // that stand before the node
	ops     []string // by kernel: the op kind that was accepted last
}

// extent is the size of a memory and whether it may be written. It repeats two fields of [Memory],
// so that checking a million views reads little.
type extent struct {
	size     int64
	readOnly bool
}

// slots says what a kernel takes at each of its buffer slots.
type slots [maxBufferSlots]slot

type slot struct {
	taken, written, inlineable bool
	want                       int32 // size of inline bytes; 0 if any number is right
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
			// A hostile file may give a slot two arguments. [Kernel.index] takes the first, and so
			// does this.
			if a := &g.Kernels[i].Args[j]; a.Kind != ThreadgroupArg && a.Slot < maxBufferSlots && !nc.slots[i][a.Slot].taken {
				want := int64(a.Count) * a.Type.Size()
				if want > maxInlineBytes {
					want = -1 // the size is more than a command can hold, so no number of inline bytes is right
				}
				nc.slots[i][a.Slot] = slot{true, writes(a), inlineable(a), int32(max(want, -1))}
			}
		}
		nc.needs[i] = needsOf(&g.Kernels[i], &nc.slots[i])
	}
}

// writes reports whether the kernel may write the buffer that is bound to a.
func writes(a *Arg) bool { return a.Kind == DeviceArg && a.Access != ReadArg }

// plain reports whether a quick test accepts binding b of slot s: it is a constant view inside its
// memory, or inline bytes. Nearly all bindings are.
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

// inside reports whether n bytes from off on lie in memory m, and whether m may be written if write
// is set.
func (nc *nodeChecker) inside(m MemID, off, n int64, write bool) bool {
	if uint(m) >= uint(len(nc.extents)) {
		return false
	}
	x := &nc.extents[m]
	return off >= 0 && n >= 0 && n <= x.size && off <= x.size-n && !(write && x.readOnly)
}

// root is a result of [Graph.Root]. All are computed once, because a hostile file may have long
// chains of aliases.
type root struct {
	mem MemID
	off int64
}

func rootsOf(g *Graph) []root {
	out := make([]root, len(g.Memories))
	for i, m := range g.Memories {
		out[i] = root{MemID(i), 0}
		if m.Alias != NoMem { // m.Alias stands before i, see [checker.alias]
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

// Describe names a node for people: "#12 rms_norm". The names of marks have no number.
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

// view checks that v lies in its memory for all values of the params. Messages call it what+name,
// which are joined only when something is wrong.
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
	// INVARIANT: offset and length lie between −maxSize and maxSize, so that their sum did not
	// overflow although nothing checked for that.
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
