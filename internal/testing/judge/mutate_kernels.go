package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

func changeGrid(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	e := &d.Grid[rng.IntN(3)]
	switch rng.IntN(5) {
	case 4: // the same number, written in another way
		e.Num, e.Div = e.Num.Scale(2), 2*e.Div
	case 0:
		e.Num = e.Num.AddConst(1)
	case 1:
		e.Num = e.Num.AddConst(-1)
	case 2:
		e.Div++
	default:
		d.GridKind = 1 - d.GridKind
	}
	return true
}

func changeThreadgroup(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	t := &d.Threadgroup[rng.IntN(3)]
	if rng.IntN(2) == 0 {
		*t *= 2
	} else {
		*t++
	}
	return true
}

func changeThreadgroupMemory(rng *rand.Rand, g *ir.Graph) bool {
	shared := func(a ir.Arg) bool { return a.Kind == ir.ThreadgroupArg && a.Slot == 0 }
	d, ok := pickNode(rng, g, func(d *ir.Dispatch) bool { return slices.ContainsFunc(g.Kernels[d.Kernel].Args, shared) })
	if !ok {
		return false
	}
	if len(d.ThreadgroupMemory) > 0 {
		d.ThreadgroupMemory[rng.IntN(len(d.ThreadgroupMemory))].Bytes += 16
	} else {
		d.ThreadgroupMemory = []ir.ThreadgroupMemory{{Slot: 0, Bytes: 16}}
	}
	return true
}

// changeConstant changes a function constant, for one dispatch or for all dispatches of
// its kernel.
func changeConstant(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, func(d *ir.Dispatch) bool { return len(g.Kernels[d.Kernel].Constants) > 0 })
	if !ok {
		return false
	}
	k := &g.Kernels[d.Kernel]
	if rng.IntN(2) == 0 {
		k = ownKernel(g, d)
	}
	c := &k.Constants[rng.IntN(len(k.Constants))]
	c.Bits ^= 1
	return true
}

// ownKernel gives a dispatch a copy of its kernel for itself.
func ownKernel(g *ir.Graph, d *ir.Dispatch) *ir.Kernel {
	k := g.Kernels[d.Kernel]
	k.Name = fmt.Sprintf("%s.%d", k.Name, len(g.Kernels))
	k.Constants, k.Args = slices.Clone(k.Constants), slices.Clone(k.Args)
	g.Kernels = append(g.Kernels, k)
	d.Kernel = ir.KernelID(len(g.Kernels) - 1)
	return &g.Kernels[d.Kernel]
}

func changeInlineByte(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	var inline []*ir.Binding
	for i := range d.Bindings {
		if d.Bindings[i].Kind == ir.BindBytes {
			inline = append(inline, &d.Bindings[i])
		}
	}
	b, ok := pick(rng, inline)
	if ok {
		b.Bytes[rng.IntN(len(b.Bytes))] ^= 1 << rng.IntN(8)
	}
	return ok
}

func changeScalar(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	for i := range d.Bindings {
		if b := &d.Bindings[i]; b.Kind == ir.BindScalar {
			b.Expr = b.Expr.AddConst(1)
			return true
		}
	}
	return false
}

func changeFill(rng *rand.Rand, g *ir.Graph) bool {
	f, ok := pickNode[*ir.Fill](rng, g, nil)
	if ok {
		f.Value ^= 1 << rng.IntN(8)
	}
	return ok
}

// changeKernel makes a dispatch run another function: another kernel of the graph that
// takes the same bindings, or a kernel with the same arguments and another name.
func changeKernel(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if !ok {
		return false
	}
	if to := ir.KernelID(rng.IntN(len(g.Kernels))); rng.IntN(2) == 0 {
		same := d.Kernel == to
		d.Kernel = to
		return !same
	}
	k := ownKernel(g, d)
	k.Function += "_other"
	return true
}

func changeDigest(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode(rng, g, func(d *ir.Dispatch) bool { return !g.Kernels[d.Kernel].Library.Declared() })
	if !ok {
		return false
	}
	k := &g.Kernels[d.Kernel]
	if rng.IntN(2) == 0 {
		k = ownKernel(g, d)
	}
	k.Library.Digest[rng.IntN(32)] ^= 1
	return true
}
