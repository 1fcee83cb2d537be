package plan

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Arguments returns an error if a dispatch leaves out an argument of its kernel's table, or binds one
// at an address, for some value of the params, that is no multiple of its elements' size, and of
// [ConstantAlign] in constant space.
func Arguments(g *ir.Graph, d *ir.Dispatch) error {
	k := &g.Kernels[d.Kernel]
	for i := range k.Args {
		a := &k.Args[i]
		if a.Kind == ir.ThreadgroupArg {
			continue
		}
		b := d.Binding(a.Slot)
		if b == nil {
			return fmt.Errorf("argument %d (%s) is not bound", a.Slot, a.Name)
		}
		if b.Kind != ir.BindView {
			continue
		}
		_, at := g.Root(b.View.Mem)
		size := max(a.Type.Size(), 1)
		if a.Kind == ir.ConstantArg {
			size = max(size, ConstantAlign)
		}
		ok := (at+b.View.Off.Const)%size == 0
		for _, t := range b.View.Off.Terms() {
			ok = ok && t.Coeff%size == 0
		}
		if !ok {
			return fmt.Errorf("argument %d (%s): %s begins at an address that is no multiple of %d bytes, as it has to", a.Slot, a.Name, g.FormatView(b.View), size)
		}
	}
	return nil
}
