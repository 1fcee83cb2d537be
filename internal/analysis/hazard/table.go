package hazard

import (
	"context"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// none stands for no command, no level or no list.
const none = bytestate.None

// command is one command of the table.
type command struct {
	first, end int32 // its accesses are accesses[first:end]
	pillar     bool  // its effects are unknown: it conflicts with everything
}

// Table is what the commands of a graph touch, resolved once: aliases are followed,
// hulls computed, and memories that nothing writes left out. Commands are numbered from
// 0 in list order. The table does not follow later changes of the graph, but its
// commands can be put into another order ([Table.Reorder]).
type Table struct {
	ctx      context.Context
	g        *ir.Graph
	nodes    []ir.Command // the commands
	commands []command
	accesses []bytestate.Access
	facts    *bytestate.Facts
	ops      int64
	stated   func(*ir.Dispatch) *ir.Effects // returns the effects of a dispatch; nil: those that it stores
}

// NewTable reads the effects that g's commands store. It panics if g has more than 2^31
// nodes or accesses, which no process can hold.
func NewTable(ctx context.Context, g *ir.Graph) *Table { return NewTableOf(ctx, g, nil) }

// NewTableOf is NewTable with effects in place of those that dispatches store. What
// effects returns need not outlive its next call; nil means unknown effects.
func NewTableOf(ctx context.Context, g *ir.Graph, effects func(*ir.Dispatch) *ir.Effects) *Table {
	t := &Table{ctx: ctx, g: g, stated: effects, facts: bytestate.NewFactsOfReplays(g)}
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
	t.accesses = make([]bytestate.Access, 0, 3*n)
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

// Under sets the context whose end stops later calls, by [interrupt.Poll].
func (t *Table) Under(ctx context.Context) { t.ctx = ctx }

// Reorder puts the commands into another order, in which command i is the former
// command order[i].
func (t *Table) Reorder(order []int32) {
	nodes, commands := make([]ir.Command, len(order)), make([]command, len(order))
	for i, j := range order {
		nodes[i], commands[i] = t.nodes[j], t.commands[j]
	}
	t.nodes, t.commands = nodes, commands
}

// touch appends the accesses of a command. It returns false if the effects are unknown.
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
	a, ok := t.facts.Resolve(r)
	if !ok {
		return
	}
	a.Write, a.Must = write, must
	t.accesses = append(t.accesses, a)
}

// sweep returns an empty state for the accesses of the table.
func (t *Table) sweep() *bytestate.State { return bytestate.NewState(t.ctx, t.facts, len(t.accesses)) }

// done adds the work of a sweep to that of the table.
func (t *Table) done(s *bytestate.State) { t.ops += s.Operations() }

// Len returns the number of commands.
func (t *Table) Len() int { return len(t.commands) }

// Node returns command i.
func (t *Table) Node(i int) ir.Command { return t.nodes[i] }

// Pillar reports whether the effects of command i are unknown, so that it
// conflicts with everything.
func (t *Table) Pillar(i int) bool { return t.commands[i].pillar }

// Operations returns how many nodes of interval trees were visited for this table so
// far: a measure of work that does not depend on a clock.
func (t *Table) Operations() int64 { return t.ops }

func (t *Table) of(i int) []bytestate.Access {
	return t.accesses[t.commands[i].first:t.commands[i].end]
}

// Between returns the kind of the first hazard found between commands i and j > i of
// one replay, or None.
func (t *Table) Between(i, j int) Kind { return t.between(i, j, t.facts.Meet) }

// BetweenReplays is Between for command i of one replay and command j of the next,
// whose params are independent.
func (t *Table) BetweenReplays(i, j int) Kind { return t.between(i, j, t.meetLater) }

func (t *Table) between(i, j int, meet func(a, b *bytestate.Access) bool) Kind {
	if t.commands[i].pillar || t.commands[j].pillar {
		return Unknown
	}
	for y := range t.of(j) {
		for x := range t.of(i) {
			a, b := &t.of(i)[x], &t.of(j)[y]
			if (a.Write || b.Write) && meet(a, b) {
				switch {
				case !b.Write:
					return RAW
				case a.Write:
					return WAW
				}
				return WAR
			}
		}
	}
	return None
}

// meetLater reports whether two accesses may share a byte if b belongs to a later
// replay, with params of its own.
func (t *Table) meetLater(a, b *bytestate.Access) bool {
	later := *b
	later.Region = t.facts.Later(b.Region)
	return t.facts.Meet(a, &later)
}
