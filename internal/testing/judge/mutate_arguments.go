package judge

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// argumentsIntoMemory moves the inline arguments of some dispatches into argument
// memory, sometimes cut into several values. In half of the cases it also changes a
// byte, or moves a view.
func argumentsIntoMemory(rng *rand.Rand, g *ir.Graph) bool {
	m, moved := moveArguments(rng, g)
	if len(moved) == 0 {
		return false
	}
	switch b := moved[rng.IntN(len(moved))]; rng.IntN(4) {
	case 0:
		if v := &m.Init.Values[rng.IntN(len(m.Init.Values))]; v.Bytes != nil {
			v.Bytes[rng.IntN(len(v.Bytes))] ^= 1 << rng.IntN(8)
		}
	case 1:
		b.View.Off = b.View.Off.AddConst(4 * int64(1-2*rng.IntN(2)))
	}
	return true
}

// moveArguments does so without harm. It returns the new memory and the bindings that
// lie in it.
func moveArguments(rng *rand.Rand, g *ir.Graph) (*ir.Memory, []*ir.Binding) {
	id := ir.MemID(len(g.Memories))
	m := ir.Memory{Name: "moved arguments", Kind: ir.Argument, Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitValues}}
	var moved []*ir.Binding
	add := func(v ir.Value) {
		v.Off = m.Size
		m.Size += v.Size()
		m.Init.Values = append(m.Init.Values, v)
	}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || rng.IntN(3) == 0 {
			continue
		}
		for i := range d.Bindings {
			b := &d.Bindings[i]
			off := m.Size
			switch b.Kind {
			case ir.BindView:
				continue
			case ir.BindScalar:
				add(ir.Value{Type: b.Type, Expr: b.Expr})
			default:
				bytes := append([]byte(nil), b.Bytes...)
				if k := len(bytes) / 2; k > 0 && rng.IntN(2) == 0 {
					add(ir.Value{Type: ir.U8, Bytes: bytes[:k:k]})
					bytes = bytes[k:]
				}
				add(ir.Value{Type: ir.U8, Bytes: bytes})
			}
			*b = ir.BufferArg(b.Slot, ir.ViewOf(id, off, m.Size-off))
			moved = append(moved, b)
		}
	}
	if len(moved) == 0 {
		return nil, nil
	}
	g.Memories = append(g.Memories, m)
	return &g.Memories[id], moved
}

// giveArguments moves arguments of a drawn graph into memory: inline ones into argument
// memory, which effects may mention, and constants into memory that commands write. It
// reports whether the graph still has a meaning.
func giveArguments(rng *rand.Rand, g *ir.Graph, o Options) bool {
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || g.Kernels[d.Kernel].Library.Declared() || rng.IntN(3) > 0 {
			continue
		}
		for i := range d.Bindings {
			b := &d.Bindings[i]
			if arg, ok := g.Kernels[d.Kernel].Arg(b.Slot); !ok || arg.Kind != ir.ConstantArg || b.Kind == ir.BindView {
				continue
			}
			old, listed := *b, d.Effects
			m, ok := pick(rng, writable(g))
			if !ok {
				continue
			}
			*b = ir.BufferArg(b.Slot, ir.ViewOf(m, word*rng.Int64N(g.Memories[m].Size/word), word))
			if listed.Known() && rng.IntN(2) == 0 {
				e := *listed
				e.Reads = append(slices.Clone(e.Reads), b.View.Contiguous())
				d.Effects = &e
			}
			if g.Check() != nil || Undefined(g, o) != "" || overlaps(d, b) {
				*b, d.Effects = old, listed
			}
		}
	}
	_, moved := moveArguments(rng, g)
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok || !d.Effects.Known() || g.Kernels[d.Kernel].Library.Declared() {
			continue
		}
		for i := range d.Bindings {
			if b := &d.Bindings[i]; slices.Contains(moved, b) && rng.IntN(2) == 0 {
				e := *d.Effects
				e.Reads = append(slices.Clone(e.Reads), b.View.Contiguous())
				d.Effects = &e
			}
		}
	}
	return g.Check() == nil && Undefined(g, o) == ""
}

// writable lists the memories that commands may write.
func writable(g *ir.Graph) (out []ir.MemID) {
	for i := range g.Memories {
		if !g.Memories[i].Kind.ReadOnly() {
			out = append(out, ir.MemID(i))
		}
	}
	return out
}

// overlaps reports whether d writes to the memory that b is bound in. Nobody knows what
// a kernel makes of a constant that it changes.
func overlaps(d *ir.Dispatch, b *ir.Binding) bool {
	return slices.ContainsFunc(d.Bindings, func(c ir.Binding) bool { return c.Kind == ir.BindView && c.Slot != b.Slot && c.View.Mem == b.View.Mem })
}

// changeArgumentMemory changes a byte or a scalar of argument memory, moves a view of
// it, or adds a value at its end, which has no effect.
func changeArgumentMemory(rng *rand.Rand, g *ir.Graph) bool {
	given := func(m *ir.Memory) bool { return m.Init.Kind == ir.InitValues && len(m.Init.Values) > 0 }
	m, ok := pickMemory(rng, g, given)
	if !ok {
		if m, _ = moveArguments(rng, g); m == nil {
			return false
		}
	}
	switch v := &m.Init.Values[rng.IntN(len(m.Init.Values))]; rng.IntN(3) {
	case 0:
		m.Init.Values = append(m.Init.Values, ir.Value{Type: ir.U8, Off: m.Size, Bytes: []byte{1, 2, 3, 4}})
		m.Size += 4
	case 1:
		d, ok := pickNode(rng, g, func(d *ir.Dispatch) bool {
			return slices.ContainsFunc(d.Bindings, func(b ir.Binding) bool { return b.Kind == ir.BindView && g.Memories[b.View.Mem].Kind == ir.Argument })
		})
		if !ok {
			return false
		}
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind == ir.BindView && g.Memories[b.View.Mem].Kind == ir.Argument && rng.IntN(2) == 0 {
				was, by := b.View, 4*int64(1-2*rng.IntN(2))
				follow(d, was, func(r *ir.Region) { r.Off = r.Off.AddConst(by) })
				b.View.Off = b.View.Off.AddConst(by)
				return true
			}
		}
		return false
	case 2:
		if v.Bytes == nil {
			v.Expr = v.Expr.AddConst(1)
			break
		}
		v.Bytes[rng.IntN(len(v.Bytes))] ^= 1 << rng.IntN(8)
	}
	return true
}
