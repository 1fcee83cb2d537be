package ir

import (
	"context"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// maxDefects bounds the defects that one Check reports.
const maxDefects = 20

// These are the limits of Metal that hold on every device.
const (
	maxInlineBytes    = 4096 // setBytes
	maxBufferSlots    = 31
	maxThreads        = 1024 // of one threadgroup
	maxThreadgroupMem = 32 << 10
	maxSize           = 1 << 47 // of a memory, an offset or a length, so that sums are far below 2^63
)

// These limits are mlxc's own. With them, checking a hostile file takes time in proportion to
// its size. Recordings have two or three params and constraints.
const (
	maxParams      = 64
	maxConstraints = 64
)

// Check reports everything that is wrong with the form of a module: names,
// references, bounds for every value of the params, argument tables, marks. It
// says nothing about races. The error is an [Errors].
func (m *Module) Check() error { return m.CheckContext(context.Background()) }

// CheckContext is Check, but it returns the cause of ctx once ctx is done.
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

// CheckContext is Check, but it returns the cause of ctx once ctx is done.
func (g *Graph) CheckContext(ctx context.Context) (err error) {
	defer interrupt.Catch(&err)
	c := &checker{ctx: ctx}
	c.graph(g)
	return c.err()
}

// Changes says which parts of a graph were changed.
type Changes uint8

// The changes that [Graph.Recheck] tells apart.
const (
	AnyChange     Changes = iota
	ListChange            // commands were moved or dropped, marks were set
	EffectsChange         // dispatches got other effects
	NoChange              // nothing was changed
)

// Recheck is CheckContext for a graph that passed CheckContext before and was changed since only as
// c says. It checks only what such changes can make wrong.
func (g *Graph) Recheck(ctx context.Context, c Changes) (err error) {
	switch c {
	case AnyChange:
		return g.CheckContext(ctx)
	case NoChange:
		return nil
	}
	defer interrupt.Catch(&err)
	k := &checker{ctx: ctx, list: c == ListChange}
	k.begin(g)
	if c == EffectsChange {
		k.effects(g)
	} else {
		k.nodes(g)
	}
	return k.err()
}

// checker collects defects. The rules about params are in this file, the others in check_memory.go
// and check_kernel.go, and those about the list in check_node.go, check_dispatch.go,
// check_effects.go and check_order.go.
type checker struct {
	ctx     context.Context
	list    bool // the insides of commands are not checked
	tables  bool // the argument tables of this graph's kernels are right
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

// begin sets the graph that the following defects belong to.
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
		return // all bounds below depend on the params
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

// satisfiable reports constraints that no values of the params satisfy together.
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
