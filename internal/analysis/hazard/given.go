package hazard

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Given calls yield with the views of writable memory that d binds to the constant
// address space, if its effects are known and its kernel has no declaration. What is
// bound there is an argument: the kernel reads it, whatever the recording's effects
// say.
func Given(g *ir.Graph, d *ir.Dispatch, yield func(ir.Region)) {
	if len(d.Bindings) == 0 {
		return
	}
	k := &g.Kernels[d.Kernel]
	if msl.Declared(k) {
		return
	}
	for i := range k.Args {
		a := &k.Args[i]
		if a.Kind != ir.ConstantArg {
			continue
		}
		b := d.Binding(a.Slot)
		if b == nil || b.Kind != ir.BindView {
			continue
		}
		if kind := g.Memories[b.View.Mem].Kind; !kind.ReadOnly() || kind == ir.Input { // something may be carried to an input
			yield(b.View.Contiguous())
		}
	}
}
