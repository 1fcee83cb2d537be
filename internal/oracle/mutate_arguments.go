package oracle

import (
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
)

// argumentsIntoMemory puts the inline arguments of some foreign dispatches into argument
// memory, cut into several values at times; half the time one byte is another, or a
// view begins elsewhere.
func argumentsIntoMemory(rng *rand.Rand, g *ir.Graph) bool {
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
		if !ok || rng.IntN(3) == 0 || g.Kernels[d.Kernel].Library.Declared() { // what the kernels of the judge's terms are given is inline
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
		return false
	}
	g.Memories = append(g.Memories, m)
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
