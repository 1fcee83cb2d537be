package ir

import (
	"slices"

	"github.com/mlxc/mlxc/internal/collections/bump"
)

// Clone returns a deep copy of m. Only immutable parts are shared: blobs and affine expressions.
func (m *Module) Clone() *Module {
	out := &Module{Data: slices.Clone(m.Data)}
	for _, g := range m.Graphs {
		out.Graphs = append(out.Graphs, g.Clone())
	}
	return out
}

// Clone returns a deep copy of g; see [Module.Clone].
func (g *Graph) Clone() *Graph {
	out := &Graph{
		Name:        g.Name,
		Params:      slices.Clone(g.Params),
		Constraints: slices.Clone(g.Constraints),
		Memories:    slices.Clone(g.Memories),
		Kernels:     slices.Clone(g.Kernels),
		Nodes:       slices.Clone(g.Nodes),
		Ordering:    g.Ordering,
		Edges:       slices.Clone(g.Edges),
		NextHost:    g.NextHost,
	}
	for i := range out.Memories {
		m := &out.Memories[i]
		m.Shape, m.Init.Values = slices.Clone(m.Shape), slices.Clone(m.Init.Values)
		for j := range m.Init.Values {
			m.Init.Values[j].Bytes = slices.Clone(m.Init.Values[j].Bytes)
		}
	}
	for i := range out.Kernels {
		k := &out.Kernels[i]
		k.Constants, k.Args = slices.Clone(k.Constants), slices.Clone(k.Args)
	}
	var c cloner
	for i, n := range g.Nodes {
		out.Nodes[i] = c.node(n)
	}
	if g.Source != nil {
		out.Source = &Source{File: g.Source.File, Memories: slices.Clone(g.Source.Memories), Nodes: slices.Clone(g.Source.Nodes)}
	}
	return out
}

// Own gives each command lists of its own where commands may share lists ([Source]). Call it before
// you change commands in place. A clone owns its lists already.
func (g *Graph) Own() {
	if g.Source == nil || !g.Source.Shared {
		return
	}
	var c cloner
	for i, n := range g.Nodes {
		g.Nodes[i] = c.node(n)
	}
	owned := *g.Source
	owned.Shared = false
	g.Source = &owned
}

// CloneNode returns a deep copy of n.
func CloneNode(n Node) Node {
	var c cloner
	return c.node(n)
}

// Clone returns a deep copy of e.
func (e *Effects) Clone() *Effects {
	var c cloner
	return c.effectsOf(e)
}

// cloner copies nodes. It allocates many copies at once.
type cloner struct {
	dispatches  bump.Allocator[Dispatch]
	bindings    bump.Allocator[Binding]
	bytes       bump.Allocator[byte]
	threadgroup bump.Allocator[ThreadgroupMemory]
	effects     bump.Allocator[Effects]
	reads       bump.Allocator[Region]
	writes      bump.Allocator[Write]
	dims        bump.Allocator[Dim]
	ids         bump.Allocator[ID]
}

func (c *cloner) node(n Node) Node {
	switch n := n.(type) {
	case *Dispatch:
		d := c.dispatches.One()
		*d = *n
		d.Bindings = c.bindings.Clone(n.Bindings)
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Bytes != nil {
				b.Bytes = c.bytes.Clone(b.Bytes)
			}
		}
		d.ThreadgroupMemory = c.threadgroup.Clone(n.ThreadgroupMemory)
		d.Effects = c.effectsOf(n.Effects)
		d.Indirect = n.Indirect.clone()
		d.From = c.ids.Clone(n.From)
		return d
	case *Copy:
		x := *n
		x.From = c.ids.Clone(n.From)
		return &x
	case *Fill:
		x := *n
		x.From = c.ids.Clone(n.From)
		return &x
	case *Join:
		x := *n
		return &x
	case *Carry:
		x := *n
		x.From = c.ids.Clone(n.From)
		return &x
	case *Commit:
		x := *n
		return &x
	case *GroupBegin:
		x := *n
		return &x
	}
	return n // Barrier and GroupEnd have no fields
}

func (c *cloner) effectsOf(e *Effects) *Effects {
	if e == nil {
		return nil
	}
	out := c.effects.One()
	*out = Effects{Complete: e.Complete, Reads: c.reads.Clone(e.Reads), Writes: c.writes.Clone(e.Writes)}
	for i := range out.Reads {
		if r := &out.Reads[i]; r.Dims != nil {
			r.Dims = c.dims.Clone(r.Dims)
		}
	}
	for i := range out.Writes {
		if r := &out.Writes[i]; r.Dims != nil {
			r.Dims = c.dims.Clone(r.Dims)
		}
	}
	return out
}
