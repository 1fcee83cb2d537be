package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Builder makes a graph. Only [Builder.Graph] checks it.
type Builder struct {
	g    *Graph
	next ID
}

// NewBuilder starts a graph called name.
func NewBuilder(name string) *Builder { return &Builder{g: &Graph{Name: name}} }

// Graph returns the finished graph, or all of its defects as an error. The builder must not be used
// afterwards.
func (b *Builder) Graph() (*Graph, error) {
	b.g.SortEdges()
	if err := b.g.Check(); err != nil {
		return nil, err
	}
	return b.g, nil
}

// Unfinished returns the graph as far as it is built. A recorder uses it to ask about ranges. The
// caller must not change it.
func (b *Builder) Unfinished() *Graph { return b.g }

// Param adds a u32 param in [min, max].
func (b *Builder) Param(name string, min, max uint32) ParamID {
	b.g.Params = append(b.g.Params, Param{Name: name, Type: U32, Min: float64(min), Max: float64(max)})
	return ParamID(len(b.g.Params) - 1)
}

// ParamF32 adds an f32 param in [min, max].
func (b *Builder) ParamF32(name string, min, max float32) ParamID {
	b.g.Params = append(b.g.Params, Param{Name: name, Type: F32, Min: float64(min), Max: float64(max)})
	return ParamID(len(b.g.Params) - 1)
}

// Require adds the constraint lhs ≤ max. The constant of lhs is moved to the right side.
func (b *Builder) Require(lhs Affine, max int64) {
	b.g.Constraints = append(b.g.Constraints, Constraint{lhs.AddConst(-lhs.Const), max - lhs.Const})
}

// Memory adds a root memory; m.Alias is ignored.
func (b *Builder) Memory(m Memory) MemID {
	m.Alias, m.AliasOff = NoMem, 0
	b.g.Memories = append(b.g.Memories, m)
	return MemID(len(b.g.Memories) - 1)
}

// Alias adds a memory of size bytes that lies in parent from byte off on.
func (b *Builder) Alias(name string, parent MemID, off, size int64) MemID {
	p := b.g.Memories[parent]
	b.g.Memories = append(b.g.Memories, Memory{Name: name, Kind: p.Kind, Storage: p.Storage, Size: size, Alias: parent, AliasOff: off})
	return MemID(len(b.g.Memories) - 1)
}

// SetSize changes the size of a memory. An arena knows its own size only at the end.
func (b *Builder) SetSize(m MemID, size int64) { b.g.Memories[m].Size = size }

// Kernel adds a kernel.
func (b *Builder) Kernel(k Kernel) KernelID {
	b.g.Kernels = append(b.g.Kernels, k)
	return KernelID(len(b.g.Kernels) - 1)
}

// KernelAt returns the kernel called id.
func (b *Builder) KernelAt(id KernelID) *Kernel { return &b.g.Kernels[id] }

// Dispatch appends d with a new ID and its bindings sorted by slot. It returns the appended
// dispatch, to which the caller may add more.
func (b *Builder) Dispatch(d Dispatch) *Dispatch {
	d.ID = b.id()
	slices.SortStableFunc(d.Bindings, func(x, y Binding) int { return int(x.Slot) - int(y.Slot) })
	b.g.Nodes = append(b.g.Nodes, &d)
	return &d
}

// Copy appends a copy of src to dst.
func (b *Builder) Copy(dst, src View, label string) *Copy {
	c := &Copy{ID: b.id(), Dst: dst, Src: src, Label: label}
	b.g.Nodes = append(b.g.Nodes, c)
	return c
}

// Fill appends a fill of dst with value.
func (b *Builder) Fill(dst View, value byte, label string) *Fill {
	f := &Fill{ID: b.id(), Dst: dst, Value: value, Label: label}
	b.g.Nodes = append(b.g.Nodes, f)
	return f
}

// Carry appends a copy of src to dst for the next replay; see [Carry].
func (b *Builder) Carry(dst, src View, label string) *Carry {
	c := &Carry{ID: b.id(), Dst: dst, Src: src, Label: label}
	b.g.Nodes = append(b.g.Nodes, c)
	return c
}

// Join appends a join; see [Builder.After].
func (b *Builder) Join() *Join {
	j := &Join{ID: b.id()}
	b.g.Nodes = append(b.g.Nodes, j)
	return j
}

// After makes c begin only when the given commands have ended. The graph becomes one that is
// ordered by edges.
func (b *Builder) After(c Command, before ...Command) {
	b.g.Ordering = ByEdges
	for _, x := range before {
		b.g.Edges = append(b.g.Edges, Edge{From: x.Num(), To: c.Num()})
	}
}

// AfterPrevious makes c begin only when the given commands of the previous replay have ended.
func (b *Builder) AfterPrevious(c Command, before ...Command) {
	b.g.Ordering = ByEdges
	for _, x := range before {
		b.g.Edges = append(b.g.Edges, Edge{From: x.Num(), To: c.Num(), Previous: true})
	}
}

// Barrier appends a barrier.
func (b *Builder) Barrier() { b.g.Nodes = append(b.g.Nodes, &Barrier{}) }

// Commit appends the end of a command buffer.
func (b *Builder) Commit(order CommitOrder, label string) {
	b.g.Nodes = append(b.g.Nodes, &Commit{order, label})
}

// Group appends the start of a group, which EndGroup closes.
func (b *Builder) Group(label string) { b.g.Nodes = append(b.g.Nodes, &GroupBegin{label}) }

// EndGroup closes the innermost open group.
func (b *Builder) EndGroup() { b.g.Nodes = append(b.g.Nodes, &GroupEnd{}) }

func (b *Builder) id() ID {
	b.next++
	return b.next - 1
}

// BufferArg binds a view at slot.
func BufferArg(slot uint8, v View) Binding { return Binding{Slot: slot, Kind: BindView, View: v} }

// BytesArg binds inline bytes at slot.
func BytesArg(slot uint8, data []byte) Binding {
	return Binding{Slot: slot, Kind: BindBytes, Bytes: data}
}

// ScalarArg binds an expression of params at slot.
func ScalarArg(slot uint8, t DType, e Affine) Binding {
	return Binding{Slot: slot, Kind: BindScalar, Type: t, Expr: e}
}

// ValueBytes returns values as the little-endian bytes that an inline argument
// holds; each is a bool, an int32, uint32, int64, uint64 or float32, or a
// slice of these.
func ValueBytes(values ...any) []byte {
	var out []byte
	for _, v := range values {
		switch v := v.(type) {
		case float32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		default:
			var err error
			if out, err = binary.Append(out, binary.LittleEndian, v); err != nil {
				panic(fmt.Sprintf("ir.ValueBytes: %T has no fixed size", v))
			}
		}
	}
	return out
}
