package prove

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// arguments calls yield with each argument of a declared dispatch that appears in its
// effects, in the order of the effects (see decl.Instance.Effects).
func arguments(in *decl.Instance, yield func(arg int, mode decl.Mode)) {
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || in.Views[i].Mem == ir.NoMem {
			continue
		}
		if r, err := in.Region(i); err != nil || r.Run.IsConst() && r.Run.Const == 0 {
			continue
		}
		yield(i, a.Mode)
	}
}

// writtenArg returns the kernel argument that the k-th write of o belongs to.
func (o *op) writtenArg(k int) int {
	found := -1
	arguments(o.inst, func(arg int, mode decl.Mode) {
		if mode != decl.Read {
			if k == 0 {
				found = arg
			}
			k--
		}
	})
	return found
}

// readOf returns the number, within the reads of o, of the read that gives argument arg
// its old contents. ok is false if the kernel only writes that argument.
func (o *op) readOf(arg int) (k int, ok bool) {
	reads, updates := 0, int(o.maybe-o.rlo)
	arguments(o.inst, func(i int, mode decl.Mode) {
		at := &reads
		if mode != decl.Read {
			at = &updates
		}
		if i == arg && mode != decl.Write {
			k, ok = *at, true
		}
		if mode != decl.Write {
			*at++
		}
	})
	return k, ok
}
