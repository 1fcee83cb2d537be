package mlxc

import (
	"encoding/hex"

	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir"
)

// The JSON form is for scripts that look into a graph. It has names instead of indices,
// and expressions as text. Nothing reads it back.

type jsonGraph struct {
	Name   string `json:"name"`
	Serial bool   `json:"serial,omitempty"` // the list is the order
	Edges  bool   `json:"edges,omitempty"`  // commands wait for those that they list
	Next   string `json:"next,omitempty"`   // "host": the host waits between replays
	// Faults say why the graph has no meaning. Most graphs have none.
	Faults      []meaning.Fault `json:"faults,omitempty"`
	Params      []jsonParam     `json:"params"`
	Constraints []string        `json:"constraints"`
	Memories    []jsonMemory    `json:"memories"`
	Kernels     []jsonKernel    `json:"kernels"`
	Nodes       []jsonNode      `json:"nodes"`
}

type jsonParam struct {
	Name string  `json:"name"`
	Type string  `json:"type"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	// Advance is added to the param from one replay of a submission to the next.
	Advance int64 `json:"advance,omitempty"`
}

type jsonMemory struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	Size    int64   `json:"size"`
	DType   string  `json:"dtype,omitempty"`
	Shape   []int64 `json:"shape,omitempty"`
	AliasOf string  `json:"alias_of,omitempty"`
	Offset  int64   `json:"alias_offset,omitempty"`
	SHA256  string  `json:"sha256,omitempty"`
	File    string  `json:"file,omitempty"`
	Every   bool    `json:"every,omitempty"` // kept from every replay of a submission
	// Values are the contents of argument memory, which the host computes before each
	// replay.
	Values []jsonValue `json:"values,omitempty"`
}

type jsonValue struct {
	Offset int64  `json:"offset"`
	Type   string `json:"type,omitempty"`
	Value  string `json:"value"` // bytes in hexadecimal, or an expression
}

type jsonKernel struct {
	Name      string            `json:"name"`
	Library   string            `json:"library"`
	Function  string            `json:"function"`
	Constants map[string]uint64 `json:"constants,omitempty"`
}

type jsonNode struct {
	Kind        string            `json:"kind"`
	ID          *ir.ID            `json:"id,omitempty"`
	Kernel      string            `json:"kernel,omitempty"`
	Op          string            `json:"op,omitempty"`
	Label       string            `json:"label,omitempty"`
	Bindings    map[string]string `json:"bindings,omitempty"`
	Grid        []string          `json:"grid,omitempty"`
	GridUnit    string            `json:"grid_unit,omitempty"`
	GridAt      string            `json:"grid_at,omitempty"`    // where in memory the grid is read from; then "grid" is its greatest value
	OffsetsAt   map[string]string `json:"offsets_at,omitempty"` // by binding: where in memory its offset is read from
	Threadgroup []uint32          `json:"threadgroup,omitempty"`
	Complete    *bool             `json:"effects_complete,omitempty"`
	Reads       []string          `json:"reads,omitempty"`
	MustWrites  []string          `json:"must_writes,omitempty"`
	MayWrites   []string          `json:"may_writes,omitempty"`
	From        []ir.ID           `json:"from,omitempty"`
	Order       string            `json:"order,omitempty"`
	After       []ir.ID           `json:"after,omitempty"`
	Previous    []ir.ID           `json:"after_previous,omitempty"`
}

func jsonModule(m *ir.Module, found map[*ir.Graph]*meaning.Report) any {
	type data struct {
		Name   string `json:"name"`
		Bytes  int64  `json:"bytes"`
		SHA256 string `json:"sha256"`
	}
	out := struct {
		Data   []data      `json:"data"`
		Graphs []jsonGraph `json:"graphs"`
	}{Data: []data{}}
	for _, d := range m.Data {
		out.Data = append(out.Data, data{d.Name, d.Blob.Length, d.Blob.Digest.String()})
	}
	for _, g := range m.Graphs {
		x := toJSON(g)
		if r := found[g]; r != nil {
			x.Faults = r.Faults
		}
		out.Graphs = append(out.Graphs, x)
	}
	return out
}

func toJSON(g *ir.Graph) jsonGraph {
	out := jsonGraph{Name: g.Name, Serial: g.Ordering == ir.Serial, Edges: g.Ordering == ir.ByEdges, Params: []jsonParam{}, Constraints: []string{}, Nodes: []jsonNode{}}
	if g.NextHost {
		out.Next = "host"
	}
	for _, p := range g.Params {
		out.Params = append(out.Params, jsonParam{p.Name, p.Type.String(), p.Min, p.Max, p.Advance})
	}
	for _, c := range g.Constraints {
		out.Constraints = append(out.Constraints, g.FormatAffine(c.LHS.Sub(ir.Const(c.Max)))+" <= 0")
	}
	for _, m := range g.Memories {
		j := jsonMemory{Name: m.Name, Kind: m.Kind.String(), Size: m.Size, Shape: m.Shape, Every: m.Every}
		if m.DType.Valid() {
			j.DType = m.DType.String()
		}
		if m.Alias != ir.NoMem {
			j.AliasOf, j.Offset = g.Memories[m.Alias].Name, m.AliasOff
		}
		if b := m.Init.Blob; b != nil {
			j.SHA256, j.File = b.Digest.String(), b.Path
		}
		for i := range m.Init.Values {
			v := &m.Init.Values[i]
			x := jsonValue{Offset: v.Off, Value: "0x" + hex.EncodeToString(v.Bytes)}
			if v.Bytes == nil {
				x.Value = g.FormatAffine(v.Expr)
			}
			if v.Type.Valid() {
				x.Type = v.Type.String()
			}
			j.Values = append(j.Values, x)
		}
		out.Memories = append(out.Memories, j)
	}
	for _, k := range g.Kernels {
		j := jsonKernel{Name: k.Name, Library: k.Library.Kind.String(), Function: k.Function}
		if !k.Library.Declared() {
			j.Library += ":" + k.Library.Path + ":" + hex.EncodeToString(k.Library.Digest[:])
		}
		for _, c := range k.Constants {
			if j.Constants == nil {
				j.Constants = map[string]uint64{}
			}
			j.Constants[c.Name] = c.Bits
		}
		out.Kernels = append(out.Kernels, j)
	}
	edges := g.Edges
	for _, n := range g.Nodes {
		j := nodeJSON(g, n)
		for ; j.ID != nil && len(edges) > 0 && edges[0].To == *j.ID; edges = edges[1:] {
			if edges[0].Previous {
				j.Previous = append(j.Previous, edges[0].From)
			} else {
				j.After = append(j.After, edges[0].From)
			}
		}
		out.Nodes = append(out.Nodes, j)
	}
	return out
}

func nodeJSON(g *ir.Graph, n ir.Node) jsonNode {
	var j jsonNode
	if c, ok := n.(ir.Command); ok {
		id := c.Num()
		j.ID = &id
	}
	switch n := n.(type) {
	case *ir.Barrier:
		j.Kind = "barrier"
	case *ir.Commit:
		j.Kind, j.Order, j.Label = "commit", n.Order.String(), n.Label
	case *ir.GroupBegin:
		j.Kind, j.Label = "group_begin", n.Label
	case *ir.GroupEnd:
		j.Kind = "group_end"
	case *ir.Join:
		j.Kind = "join"
	case *ir.Copy:
		j.Kind, j.Label, j.From = "copy", n.Label, n.From
		j.Bindings = map[string]string{"dst": g.FormatView(n.Dst), "src": g.FormatView(n.Src)}
	case *ir.Carry:
		j.Kind, j.Label, j.From = "carry", n.Label, n.From
		j.Bindings = map[string]string{"dst": g.FormatView(n.Dst), "src": g.FormatView(n.Src)}
	case *ir.Fill:
		j.Kind, j.Label, j.From = "fill", n.Label, n.From
		j.Bindings = map[string]string{"dst": g.FormatView(n.Dst), "value": hex.EncodeToString([]byte{n.Value})}
	case *ir.Dispatch:
		dispatchJSON(g, n, &j)
	}
	return j
}

func dispatchJSON(g *ir.Graph, d *ir.Dispatch, j *jsonNode) {
	k := &g.Kernels[d.Kernel]
	j.Kind, j.Kernel, j.Op, j.Label, j.From = "dispatch", k.Name, d.Op, d.Label, d.From
	j.GridUnit, j.Threadgroup = d.GridKind.String(), d.Threadgroup[:]
	for _, e := range d.Grid {
		s := g.FormatAffine(e.Num)
		if e.Div != 1 {
			s = "ceil((" + s + ") / " + g.FormatAffine(ir.Const(e.Div)) + ")"
		}
		j.Grid = append(j.Grid, s)
	}
	if v := d.Counts(); v != nil {
		j.GridAt = g.FormatView(*v)
	}
	j.Bindings = map[string]string{}
	for _, b := range d.Bindings {
		a, _ := k.Arg(b.Slot)
		if v := d.OffsetAt(b.Slot); v != nil {
			if j.OffsetsAt == nil {
				j.OffsetsAt = map[string]string{}
			}
			j.OffsetsAt[a.Name] = g.FormatView(*v)
		}
		switch b.Kind {
		case ir.BindView:
			j.Bindings[a.Name] = g.FormatView(b.View)
		case ir.BindBytes:
			j.Bindings[a.Name] = "0x" + hex.EncodeToString(b.Bytes)
		case ir.BindScalar:
			j.Bindings[a.Name] = g.FormatAffine(b.Expr)
		}
	}
	if d.Effects == nil {
		return
	}
	j.Complete = &d.Effects.Complete
	for _, r := range d.Effects.Reads {
		j.Reads = append(j.Reads, g.FormatRegion(r))
	}
	for _, w := range d.Effects.Writes {
		if w.Must {
			j.MustWrites = append(j.MustWrites, g.FormatRegion(w.Region))
		} else {
			j.MayWrites = append(j.MayWrites, g.FormatRegion(w.Region))
		}
	}
}
