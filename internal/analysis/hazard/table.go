package hazard

import (
	"context"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// none is no command, no level, no list.
const none int32 = -1

// access is one region that a command touches, in a root memory.
type access struct {
	lo, end int64 // hull over all params, in the root memory
	root    int32
	region  int32 // of Table.regions; 0: every byte of the hull
	write   bool
	must    bool // of a write: the old bytes do not matter
}

// command is one command of the table.
type command struct {
	first, end int32 // its accesses are accesses[first:end]
	pillar     bool  // unknown effects: conflicts with everything
}

// Table is what the commands of a graph touch, resolved once: aliases followed,
// hulls computed, read-only memories left out. Commands count from 0 in the
// order of the list. The table does not follow later changes of the graph, but it
// can be put into another order ([Table.Reorder]).
type Table struct {
	ctx      context.Context
	g        *ir.Graph
	nodes    []ir.Command // the commands
	commands []command
	accesses []access
	regions  regions
	roots    []rootOf
	ops      int64
	stated   func(*ir.Dispatch) *ir.Effects // nil: those of the dispatch
}

// rootOf is the root of a memory and where the memory begins there.
type rootOf struct {
	off      int64
	mem      int32
	readOnly bool
}

// NewTable reads the effects of g's commands. It panics if g has 2^31 nodes or
// accesses, more than a process can hold.
func NewTable(ctx context.Context, g *ir.Graph) *Table { return NewTableOf(ctx, g, nil) }

// NewTableOf is NewTable with the effects of dispatches that effects returns, which
// need not outlive the next call; nil are unknown ones.
func NewTableOf(ctx context.Context, g *ir.Graph, effects func(*ir.Dispatch) *ir.Effects) *Table {
	t := &Table{ctx: ctx, g: g, stated: effects, regions: newRegions(twice(g)), roots: rootsOf(g)}
	if len(g.Nodes) > math.MaxInt32 {
		panic(fmt.Sprintf("hazard: %d nodes", len(g.Nodes)))
	}
	n := 0
	for _, x := range g.Nodes {
		if _, ok := x.(ir.Command); ok {
			n++
		}
	}
	t.nodes, t.commands = make([]ir.Command, 0, n), make([]command, 0, n)
	t.accesses = make([]access, 0, 3*n)
	for _, x := range g.Nodes {
		if x, ok := x.(ir.Command); ok {
			c := command{first: int32(len(t.accesses)), pillar: !t.touch(x)}
			c.end = int32(len(t.accesses))
			t.nodes, t.commands = append(t.nodes, x), append(t.commands, c)
		}
	}
	if len(t.accesses) > math.MaxInt32 {
		panic(fmt.Sprintf("hazard: %d accesses", len(t.accesses)))
	}
	return t
}

// Under makes ctx the context that ends what the table is asked from now on, by
// [interrupt.Poll].
func (t *Table) Under(ctx context.Context) { t.ctx = ctx }

// Reorder puts the commands into another order: command i is what was order[i].
func (t *Table) Reorder(order []int32) {
	nodes, commands := make([]ir.Command, len(order)), make([]command, len(order))
	for i, j := range order {
		nodes[i], commands[i] = t.nodes[j], t.commands[j]
	}
	t.nodes, t.commands = nodes, commands
}

// rootsOf follows every chain of aliases once: a hostile file has long ones.
// Parents stand before their aliases.
func rootsOf(g *ir.Graph) []rootOf {
	out, fixed := make([]rootOf, len(g.Memories)), g.Fixed()
	for i := range g.Memories {
		out[i] = rootOf{0, int32(i), fixed[i]}
		if p := g.Memories[i].Alias; p != ir.NoMem {
			if int(p) < i {
				out[i] = rootOf{out[p].off + g.Memories[i].AliasOff, out[p].mem, out[p].readOnly}
			} else {
				m, off := g.Root(ir.MemID(i))
				out[i] = rootOf{off, int32(m), fixed[m]}
			}
		}
	}
	return out
}

// touch appends the accesses of a command; false: its effects are unknown.
func (t *Table) touch(x ir.Command) (known bool) {
	switch x := x.(type) {
	case *ir.Dispatch:
		e := x.Effects
		if t.stated != nil {
			e = t.stated(x)
		}
		if !e.Known() {
			return false
		}
		t.effects(e)
		Given(t.g, x, func(r ir.Region) { t.add(&r, false, false) })
	case *ir.Copy:
		r, w := x.Src.Contiguous(), x.Dst.Contiguous()
		t.add(&r, false, false)
		t.add(&w, true, true)
	case *ir.Fill:
		w := x.Dst.Contiguous()
		t.add(&w, true, true)
	case *ir.Carry:
		r, w := x.Src.Contiguous(), x.Dst.Contiguous()
		t.add(&r, false, false)
		t.add(&w, true, false)
	}
	return true
}

func (t *Table) effects(e *ir.Effects) {
	for i := range e.Reads {
		t.add(&e.Reads[i], false, false)
	}
	for i := range e.Writes {
		w := &e.Writes[i]
		t.add(&w.Region, true, w.Must && !w.Atomic)
	}
}

func (t *Table) add(r *ir.Region, write, must bool) {
	a, ok := t.resolve(r)
	if !ok {
		return
	}
	a.write, a.must = write, must
	t.accesses = append(t.accesses, a)
}

// resolve returns where r lies; false when nothing can conflict there.
func (t *Table) resolve(r *ir.Region) (access, bool) {
	root := &t.roots[r.Mem]
	if root.readOnly {
		return access{}, false
	}
	if !r.Off.IsConst() || !r.Run.IsConst() {
		return t.loose(root, r)
	}
	lo, run := r.Off.Const+root.off, r.Run.Const
	// Dimensions that leave no hole make a longer run.
	for i := len(r.Dims) - 1; i >= 0; i-- {
		d := &r.Dims[i]
		if !d.Count.IsConst() || d.Count.Const > 1 && d.Stride > run {
			return t.loose(root, r)
		}
		if d.Count.Const <= 0 {
			return access{}, false
		}
		run += (d.Count.Const - 1) * d.Stride
	}
	return access{lo: lo, end: lo + run, root: root.mem}, run > 0
}

func (t *Table) loose(root *rootOf, r *ir.Region) (access, bool) {
	if empty(*r) {
		return access{}, false
	}
	n := t.regions.intern(ir.MemID(root.mem), root.off, r)
	x := &t.regions.all[n]
	return access{lo: x.lo, end: x.end, root: root.mem, region: n}, x.lo < x.end
}

// Len returns the number of commands.
func (t *Table) Len() int { return len(t.commands) }

// Node returns command i.
func (t *Table) Node(i int) ir.Command { return t.nodes[i] }

// Pillar reports whether the effects of command i are unknown, so that it
// conflicts with everything.
func (t *Table) Pillar(i int) bool { return t.commands[i].pillar }

// Operations returns the number of nodes of interval trees that were visited
// for this table so far: a measure of work that no clock disturbs.
func (t *Table) Operations() int64 { return t.ops }

func (t *Table) of(i int) []access {
	return t.accesses[t.commands[i].first:t.commands[i].end]
}

// meet reports whether two accesses may share a byte, under the same params.
func (t *Table) meet(a, b *access) bool {
	switch {
	case a.root != b.root || a.lo >= b.end || b.lo >= a.end:
		return false
	case a.region == 0 && b.region == 0:
		return true
	case a.region == 0:
		return !t.regions.apart(b.region, a.lo, a.end)
	case b.region == 0:
		return !t.regions.apart(a.region, b.lo, b.end)
	}
	return !t.regions.disjoint(a.region, b.region)
}

// Between returns the first kind of hazard found between commands i and j > i
// of one replay.
func (t *Table) Between(i, j int) Kind { return t.between(i, j, (*Table).meet) }

// BetweenReplays returns the same for command i of one replay and j of the
// next, whose params may have other values.
func (t *Table) BetweenReplays(i, j int) Kind { return t.between(i, j, (*Table).meetLater) }

func (t *Table) between(i, j int, meet func(*Table, *access, *access) bool) Kind {
	if t.commands[i].pillar || t.commands[j].pillar {
		return Unknown
	}
	for y := range t.of(j) {
		for x := range t.of(i) {
			a, b := &t.of(i)[x], &t.of(j)[y]
			if (a.write || b.write) && meet(t, a, b) {
				switch {
				case !b.write:
					return RAW
				case a.write:
					return WAW
				}
				return WAR
			}
		}
	}
	return None
}

// meetLater is meet where b is of a later replay, with params of its own.
func (t *Table) meetLater(a, b *access) bool {
	if a.root != b.root || a.lo >= b.end || b.lo >= a.end {
		return false
	}
	if a.region == 0 || b.region == 0 {
		return t.meet(a, b) // one of them has no params
	}
	x, y := &t.regions.all[a.region], &t.regions.all[b.region]
	if !x.params || !y.params {
		return t.meet(a, b)
	}
	return !t.regions.disjoint(a.region, t.later(b.region))
}
