package ir

import (
	"bytes"
	"slices"
)

// Clone returns a deep copy: nothing that may change is shared. Blobs and
// affine expressions are immutable and stay shared.
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
	}
	for i := range out.Memories {
		out.Memories[i].Shape = slices.Clone(out.Memories[i].Shape)
	}
	for i := range out.Kernels {
		k := &out.Kernels[i]
		k.Constants, k.Args = slices.Clone(k.Constants), slices.Clone(k.Args)
	}
	for i, n := range g.Nodes {
		out.Nodes[i] = CloneNode(n)
	}
	if g.Source != nil {
		out.Source = &Source{g.Source.File, slices.Clone(g.Source.Memories), slices.Clone(g.Source.Nodes)}
	}
	return out
}

// CloneNode returns a deep copy of n.
func CloneNode(n Node) Node {
	switch n := n.(type) {
	case *Dispatch:
		d := *n
		d.Bindings = slices.Clone(n.Bindings)
		for i := range d.Bindings {
			d.Bindings[i].Bytes = bytes.Clone(d.Bindings[i].Bytes)
		}
		d.ThreadgroupMemory = slices.Clone(n.ThreadgroupMemory)
		d.Effects = n.Effects.Clone()
		d.From = slices.Clone(n.From)
		return &d
	case *Copy:
		c := *n
		c.From = slices.Clone(n.From)
		return &c
	case *Fill:
		c := *n
		c.From = slices.Clone(n.From)
		return &c
	case *Commit:
		c := *n
		return &c
	case *GroupBegin:
		c := *n
		return &c
	}
	return n // Barrier and GroupEnd have no fields
}

// Clone returns a deep copy of e.
func (e *Effects) Clone() *Effects {
	if e == nil {
		return nil
	}
	out := &Effects{Complete: e.Complete, Reads: slices.Clone(e.Reads), Writes: slices.Clone(e.Writes)}
	for i := range out.Reads {
		out.Reads[i].Dims = slices.Clone(out.Reads[i].Dims)
	}
	for i := range out.Writes {
		out.Writes[i].Dims = slices.Clone(out.Writes[i].Dims)
	}
	return out
}
