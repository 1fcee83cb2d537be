package ir

import "strings"

// Graph is the commands of one replay, and the params, memories and kernels that they name.
type Graph struct {
	Name        string
	Params      []Param
	Constraints []Constraint
	Memories    []Memory
	Kernels     []Kernel
	Nodes       []Node

	// Ordering says what orders the commands: barriers and commits, the list itself, or Edges.
	Ordering Ordering
	// Edges order a graph whose Ordering is ByEdges. They stand in their canonical order
	// ([Graph.SortEdges]).
	Edges []Edge
	// NextHost says that the host waits for the end of each replay before it starts the next one,
	// whatever the Ordering is.
	NextHost bool

	// Source is where the graph was read from, for errors. It may be nil.
	Source *Source
}

// Module is the contents of one file.
type Module struct {
	// Graphs have distinct names. States that have the same name in several graphs are one memory:
	// so a prefill graph and a decode graph share their KV cache.
	Graphs []*Graph
	// Data are named blobs beside the graphs: a tokenizer, a model card.
	Data []Data
}

// Blobs lists the contents of the module's memories and data in order, each once.
func (m *Module) Blobs() (out []*Blob) {
	seen := map[*Blob]bool{}
	add := func(b *Blob) {
		if b != nil && !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	for _, g := range m.Graphs {
		for i := range g.Memories {
			add(g.Memories[i].Init.Blob)
		}
	}
	for _, d := range m.Data {
		add(d.Blob)
	}
	return out
}

// Data is a named blob that no graph binds.
type Data struct {
	Name string
	Blob *Blob
}

// Graph returns the graph called name, or nil.
func (m *Module) Graph(name string) *Graph {
	for _, g := range m.Graphs {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Lookup returns the data blob called name, or nil.
func (m *Module) Lookup(name string) *Blob {
	for _, d := range m.Data {
		if d.Name == name {
			return d.Blob
		}
	}
	return nil
}

// ParamNamed returns the param called name.
func (g *Graph) ParamNamed(name string) (ParamID, bool) {
	for i := range g.Params {
		if g.Params[i].Name == name {
			return ParamID(i), true
		}
	}
	return 0, false
}

// MemoryNamed returns the memory called name. It searches the list from its start: build a map for
// more than a few look-ups.
func (g *Graph) MemoryNamed(name string) (MemID, bool) {
	for i := range g.Memories {
		if g.Memories[i].Name == name {
			return MemID(i), true
		}
	}
	return NoMem, false
}

// FormatAffine writes a with the names of g's params.
func (g *Graph) FormatAffine(a Affine) string {
	return a.Format(func(p ParamID) string {
		if p < 0 || int(p) >= len(g.Params) {
			return "?" + itoa(int64(p))
		}
		return QuoteName(g.Params[p].Name)
	})
}

// FormatView writes v as %name[off:end].
func (g *Graph) FormatView(v View) string {
	return g.memName(v.Mem) + "[" + g.FormatAffine(v.Off) + ":" + g.FormatAffine(v.End()) + "]"
}

// FormatRegion writes r as %name[off:end; count x stride; …].
func (g *Graph) FormatRegion(r Region) string {
	var b strings.Builder
	b.WriteString(g.memName(r.Mem) + "[" + g.FormatAffine(r.Off) + ":" + g.FormatAffine(r.Off.Add(r.Run)))
	for _, d := range r.Dims {
		b.WriteString("; " + g.FormatAffine(d.Count) + " x " + itoa(d.Stride))
	}
	b.WriteByte(']')
	return b.String()
}

func (g *Graph) memName(m MemID) string {
	if m < 0 || int(m) >= len(g.Memories) {
		return "%?" + itoa(int64(m))
	}
	return "%" + QuoteName(g.Memories[m].Name)
}
