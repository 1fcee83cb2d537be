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

// argumentMemory picks a memory of arguments and one of its values. If there is none, the
// inline arguments of some dispatches are moved into one.
func argumentMemory(rng *rand.Rand, g *ir.Graph) (*ir.Memory, int, bool) {
	m, ok := pickMemory(rng, g, func(m *ir.Memory) bool { return m.Init.Kind == ir.InitValues && len(m.Init.Values) > 0 })
	if !ok {
		if m, _ = moveArguments(rng, g); m == nil {
			return nil, 0, false
		}
	}
	m.Init.Values = slices.Clone(m.Init.Values) // clones of graphs share them
	i := rng.IntN(len(m.Init.Values))
	m.Init.Values[i].Bytes = slices.Clone(m.Init.Values[i].Bytes)
	return m, i, true
}

// arguments lists the bindings that are arguments: inline, or views of argument memory.
func arguments(g *ir.Graph, inMemory bool) (out []*ir.Binding) {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			for i := range d.Bindings {
				b := &d.Bindings[i]
				if b.Kind == ir.BindView && g.Memories[b.View.Mem].Kind == ir.Argument || b.Kind != ir.BindView && !inMemory {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

// changeArgumentMemory changes a byte or a scalar of argument memory, moves or drops one
// of its values, or adds a value at its end, which has no effect.
func changeArgumentMemory(rng *rand.Rand, g *ir.Graph) bool {
	m, i, ok := argumentMemory(rng, g)
	if !ok {
		return false
	}
	switch v := &m.Init.Values[i]; rng.IntN(5) {
	case 0:
		m.Init.Values = append(m.Init.Values, ir.Value{Type: ir.U8, Off: m.Size, Bytes: []byte{1, 2, 3, 4}})
		m.Size += 4
	case 1:
		m.Init.Values = slices.Delete(m.Init.Values, i, i+1)
	case 2:
		v.Off += word * (1 - 2*rng.Int64N(2))
	default:
		if v.Bytes == nil {
			v.Expr = v.Expr.AddConst(1)
			break
		}
		v.Bytes[rng.IntN(len(v.Bytes))] ^= 1 << rng.IntN(8)
	}
	return true
}

// moveArgument moves or resizes a view of argument memory.
func moveArgument(rng *rand.Rand, g *ir.Graph) bool {
	moveArguments(rng, g)
	i, ok := pick(rng, indices(g, is[*ir.Dispatch]))
	if !ok {
		return false
	}
	d := g.Nodes[i].(*ir.Dispatch)
	b, ok := pick(rng, arguments(&ir.Graph{Memories: g.Memories, Nodes: []ir.Node{d}}, true))
	if !ok {
		return false
	}
	by := []int64{1, 2, word, -word, 2 * word}[rng.IntN(5)]
	if rng.IntN(4) == 0 {
		b.View.Len = b.View.Len.AddConst(by)
		return true
	}
	follow(d, b.View, func(r *ir.Region) { r.Off = r.Off.AddConst(by) })
	b.View.Off = b.View.Off.AddConst(by)
	return true
}

// shiftArguments moves all values of an argument memory, and all views of them, by the
// same distance, which is harmless.
func shiftArguments(rng *rand.Rand, g *ir.Graph) bool {
	m, _, ok := argumentMemory(rng, g)
	if !ok {
		return false
	}
	by := word * (1 + rng.Int64N(3))
	id, _ := g.MemoryNamed(m.Name)
	m.Size += by
	for i := range m.Init.Values {
		m.Init.Values[i].Off += by
	}
	for i := range g.Memories {
		if g.Memories[i].Alias == id {
			g.Memories[i].AliasOff += by
		}
	}
	for _, n := range g.Nodes {
		eachPlace(n, func(m *ir.MemID, off *ir.Affine) {
			if *m == id {
				*off = off.AddConst(by)
			}
		})
	}
	return true
}

// inlineArgument binds inline what argument memory holds, which is harmless.
func inlineArgument(rng *rand.Rand, g *ir.Graph) bool {
	moveArguments(rng, g)
	b, ok := pick(rng, arguments(g, true))
	if !ok {
		return false
	}
	inline := g.Resolve(*b)
	if inline.Kind == ir.BindView {
		return false
	}
	inline.Bytes = slices.Clone(inline.Bytes)
	*b = inline
	return true
}

// borrowArgument gives a dispatch an argument of another one.
func borrowArgument(rng *rand.Rand, g *ir.Graph) bool {
	p, ok := pick(rng, arguments(g, false))
	q, _ := pick(rng, arguments(g, false))
	if !ok || p == q {
		return false
	}
	slot := p.Slot
	*p = *q
	p.Slot, p.Bytes = slot, slices.Clone(q.Bytes)
	return true
}

// replaceParam exchanges two params, or puts a number in place of one, in a view, a
// scalar, a grid or a value of argument memory.
func replaceParam(rng *rand.Rand, g *ir.Graph) bool {
	if len(g.Params) < 2 {
		return false
	}
	a, b := ir.ParamID(0), ir.ParamID(1)
	var places []*ir.Affine
	place := func(x *ir.Affine) {
		if x.Coeff(a) != x.Coeff(b) {
			places = append(places, x)
		}
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		m.Init.Values = slices.Clone(m.Init.Values)
		for k := range m.Init.Values {
			place(&m.Init.Values[k].Expr)
		}
	}
	for _, n := range g.Nodes {
		for _, v := range views(n) {
			place(&v.Off)
		}
		if d, ok := n.(*ir.Dispatch); ok {
			place(&d.Grid[0].Num)
			for i := range d.Bindings {
				if d.Bindings[i].Kind == ir.BindScalar {
					place(&d.Bindings[i].Expr)
				}
			}
		}
	}
	x, ok := pick(rng, places)
	if !ok {
		return false
	}
	if rng.IntN(2) == 0 {
		*x = x.Add(ir.Linear(0, ir.Term{Param: a, Coeff: x.Coeff(b) - x.Coeff(a)}, ir.Term{Param: b, Coeff: x.Coeff(a) - x.Coeff(b)}))
	} else {
		*x = ir.Const(x.Const + x.Coeff(a)*rng.Int64N(3))
	}
	return true
}
