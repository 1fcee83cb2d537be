package judge

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// fusion is a norm with one repeated weight and a product of its result with a scale:
// norm < mul are nodes of a graph, and scale says which operand of the product is the
// scale.
type fusion struct {
	norm, mul int
	scale     uint8
}

// fusions lists the norms and products that look fusible, whether or not the side
// conditions hold.
func fusions(g *ir.Graph) (out []fusion) {
	function := func(n ir.Node) (*ir.Dispatch, string) {
		if d, ok := n.(*ir.Dispatch); ok && g.Kernels[d.Kernel].Library.Kind == ir.Builtin {
			return d, g.Kernels[d.Kernel].Function
		}
		return nil, ""
	}
	same := func(a, b ir.View) bool {
		ra, oa := g.Root(a.Mem)
		rb, ob := g.Root(b.Mem)
		return ra == rb && a.Off.AddConst(oa).Equal(b.Off.AddConst(ob)) && a.Len.Equal(b.Len)
	}
	for i, n := range g.Nodes {
		norm, f := function(n)
		if f != "rmsfloat32" || !slices.Equal(norm.Binding(5).Bytes, make([]byte, 4)) {
			continue
		}
		for j := i + 1; j < len(g.Nodes); j++ {
			mul, f := function(g.Nodes[j])
			if f != "vv_Multiplyfloat32" && f != "g2_Multiplyfloat32" {
				continue
			}
			for k := range uint8(2) {
				if same(mul.Binding(k).View, norm.Binding(2).View) {
					out = append(out, fusion{i, j, 1 - k})
					break
				}
			}
		}
	}
	return out
}

// fits reports whether the side conditions of a fusion hold, as far as the judge's
// ranges tell: the product reads the whole unchanged result of the norm, and no scale
// from it; nobody else reads it; and, at the position of the norm (early) or else of the product, operands
// and results are those of the other position.
func fits(g *ir.Graph, f fusion, early bool) bool {
	x := newWorld(g)
	if !x.whole {
		return false
	}
	norm := g.Nodes[f.norm].(*ir.Dispatch)
	one := &g.Memories[norm.Binding(1).View.Mem]
	if one.Init.Kind != ir.InitFill || one.Init.Pattern != ir.FillU32(0x3f800000).Pattern {
		return false
	}
	p, q := slices.Index(x.at, f.norm), slices.Index(x.at, f.mul)
	for _, cs := range x.by {
		a, b := cs[p], cs[q]
		if a.declaredBy == nil || b.declaredBy == nil {
			return false
		}
		middle := a.writes[0].runs
		if len(middle) != 1 || g.Memories[middle[0].mem].Kind != ir.Scratch {
			return false
		}
		u := scratchValue{root: middle[0].mem, lo: middle[0].lo, hi: middle[0].hi}
		if touches(b.reads[f.scale:f.scale+1], u) {
			return false
		}
		for k := p + 1; k < q; k++ {
			c := cs[k]
			if c.unknown || touches(c.reads, u) || touches(c.writes, u) {
				return false
			}
			if early && (meet(c.writes, b.reads) || meet(c.writes, b.writes) || meet(c.reads, b.writes)) || !early && meet(c.writes, a.reads) {
				return false
			}
		}
		// If the product does not overwrite the norm's output, that output must be
		// dead.
		if !covers(b.writes, u) {
			for k := q + 1; k < len(cs); k++ {
				if cs[k].unknown || touches(cs[k].reads, u) {
					return false
				}
				if covers(cs[k].writes, u) {
					break
				}
				if touches(cs[k].writes, u) {
					return false
				}
			}
		}
	}
	return true
}

// fuse replaces the two by a norm whose weight is the product's scale.
func fuse(rng *rand.Rand, g *ir.Graph, f fusion, early bool) *ir.Dispatch {
	norm, mul := g.Nodes[f.norm].(*ir.Dispatch), g.Nodes[f.mul].(*ir.Dispatch)
	out := ir.CloneNode(norm).(*ir.Dispatch)
	out.Binding(1).View = mul.Binding(f.scale).View
	out.Binding(2).View = mul.Binding(2).View
	out.Binding(5).Bytes = ir.ValueBytes(uint32(1))
	out.From = slices.Sorted(slices.Values([]ir.ID{norm.ID, mul.ID}))
	if rng.IntN(2) == 0 {
		out.ID = mul.ID
	}
	out.Effects = nil
	put, drop := f.mul, f.norm
	if early {
		put, drop = drop, put
	}
	g.Nodes[put] = out
	g.Nodes = slices.Delete(g.Nodes, drop, drop+1)
	return out
}

// finish adjusts what depends on the fused dispatch: its effects, if the graph stores
// any, and the barriers.
func finish(rng *rand.Rand, g *ir.Graph, d *ir.Dispatch) bool {
	stored := slices.ContainsFunc(g.Nodes, func(n ir.Node) bool {
		x, ok := n.(*ir.Dispatch)
		return ok && x.Effects != nil && g.Kernels[x.Kernel].Library.Kind == ir.Builtin
	})
	e, err := msl.Describe(g, d)
	if err != nil {
		return false
	}
	if stored {
		d.Effects = e
	}
	if rng.IntN(4) > 0 {
		honestOrder(rng, g)
	} else {
		PlaceBarriers(g)
	}
	return true
}

// fused returns a mutation that fuses. which picks among those that look fusible, and
// spoil changes the fused dispatch; either may be nil.
func fused(name string, which func(g *ir.Graph, f fusion, early bool) bool, spoil func(*rand.Rand, *ir.Graph, *ir.Dispatch) bool) Mutation {
	m := mutation(name, func(rng *rand.Rand, g *ir.Graph) bool {
		f, ok := pick(rng, fusions(g))
		early := rng.IntN(2) == 0
		if !ok || which != nil && !which(g, f, early) {
			return false
		}
		d := fuse(rng, g, f, early)
		return (spoil == nil || spoil(rng, g, d)) && finish(rng, g, d)
	})
	m.Fuses = true
	return m
}

func unfit(g *ir.Graph, f fusion, early bool) bool { return !fits(g, f, early) }

// otherView draws a view of the same length as v.
func otherView(rng *rand.Rand, g *ir.Graph, v ir.View) (ir.View, bool) {
	m := ir.MemID(rng.IntN(len(g.Memories)))
	size := g.Memories[m].Size
	if !v.Len.IsConst() || v.Len.Const > size {
		return v, false
	}
	w := ir.ViewOf(m, word*rng.Int64N((size-v.Len.Const)/word+1), v.Len.Const)
	return w, !w.Equal(v)
}

// wrongView binds another view of the same length.
func wrongView(slot uint8) func(*rand.Rand, *ir.Graph, *ir.Dispatch) bool {
	return func(rng *rand.Rand, g *ir.Graph, d *ir.Dispatch) (ok bool) {
		d.Binding(slot).View, ok = otherView(rng, g, d.Binding(slot).View)
		return ok
	}
}

func wrongArgument(rng *rand.Rand, g *ir.Graph, d *ir.Dispatch) bool {
	switch rng.IntN(3) {
	case 0:
		d.Binding(3).Bytes = ir.ValueBytes(float32(rng.IntN(50)+1) * 1e-6)
	case 1: // the same weight for all elements
		d.Binding(5).Bytes = ir.ValueBytes(uint32(0))
		d.Binding(1).View.Len = ir.Const(word)
	default:
		d.Binding(3).Bytes[rng.IntN(4)] ^= 1 << rng.IntN(8)
	}
	return true
}

// wrongExtent takes other rows, or rows of another length.
func wrongExtent(rng *rand.Rand, g *ir.Graph, d *ir.Dispatch) bool {
	x, w, out := d.Binding(0), d.Binding(1), d.Binding(2)
	grow := func(b *ir.Binding, k int64) { b.View.Len = ir.Const(k) }
	n, axis := x.View.Len.Const, w.View.Len.Const
	switch rng.IntN(3) {
	case 0: // one row more or fewer
		if rng.IntN(2) == 0 {
			axis = -axis
		}
		grow(x, n+axis)
		grow(out, n+axis)
		d.Grid[0] = ir.Ext((n + axis) / w.View.Len.Const * 32)
	case 1: // all rows as one
		grow(w, n)
		d.Binding(4).Bytes = ir.ValueBytes(uint32(n / word))
		d.Grid[0] = ir.Ext(32)
	default: // rows half as long
		grow(w, axis/2)
		d.Binding(4).Bytes = ir.ValueBytes(uint32(axis / 2 / word))
		d.Grid[0] = ir.Ext(32 * n / max(axis/2, 1))
	}
	return true
}
