package bind

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// Kernel returns a graph's kernel for a compiled one, with a table of its arguments and its function constants, whose
// values are zero until the caller sets them. Arguments that the compiled kernel does not use are left out, so that
// nothing need be bound to them; those that depend on function constants are in the table. Elements that have no type
// in a graph, such as structs, are bytes.
func Kernel(compiled *air.Kernel, library ir.Library) (ir.Kernel, error) {
	k := ir.Kernel{Name: compiled.Name, Library: library, Function: compiled.Name}
	names := map[string]bool{}
	for i := range compiled.Args {
		a := &compiled.Args[i]
		if a.Attribute != "" || a.Unused {
			continue
		}
		if a.Index >= maxSlots {
			return k, fmt.Errorf("argument %d (%s) is at slot %d, a graph can bind slots 0 to %d", i, a.Name, a.Index, maxSlots-1)
		}
		arg := row(a)
		if arg.Name == "" || names[arg.Name] {
			arg.Name = fmt.Sprintf("%s%d", arg.Kind, a.Index)
		}
		names[arg.Name] = true
		k.Args = append(k.Args, arg)
	}
	group := func(a ir.Arg) int {
		if a.Kind == ir.ThreadgroupArg {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(k.Args, func(a, b ir.Arg) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(a.Slot, b.Slot))
	})
	for i := 1; i < len(k.Args); i++ {
		if a, b := k.Args[i-1], k.Args[i]; group(a) == group(b) && a.Slot == b.Slot {
			return k, fmt.Errorf("arguments %s and %s are at one slot, %d", a.Name, b.Name, a.Slot)
		}
	}
	for _, c := range compiled.Constants {
		t, ok := metalTypes[c.Type]
		if !ok {
			return k, fmt.Errorf("function constant %d (%s) is of type %s, which a graph cannot give", c.Index, c.Name, c.Type)
		}
		k.Constants = append(k.Constants, ir.FunctionConstant{Index: uint16(c.Index), Name: c.Name, Type: t})
	}
	slices.SortFunc(k.Constants, func(a, b ir.FunctionConstant) int { return cmp.Compare(a.Index, b.Index) })
	return k, nil
}

// words returns the type of numbers as which a struct of numbers is best written: that of its fields if they have one, else
// words of 32 bits. Structs of smaller fields, or of others, are bytes.
func words(fields []air.Field) ir.DType {
	common := ir.Invalid
	for _, f := range fields {
		t, ok := scalarOf(f.Type)
		switch {
		case !ok || t.Size() < 4:
			return ir.U8
		case common == ir.Invalid:
			common = t
		case common != t:
			common = ir.U32
		}
	}
	if common == ir.Invalid { // nothing is known of its fields, but that all that matters is in words
		return ir.U32
	}
	return common
}

// row returns an argument's row of a kernel's table.
func row(a *air.Arg) ir.Arg {
	out := ir.Arg{Slot: uint8(a.Index), Name: a.Name, Type: ir.U8}
	if t, ok := scalarOf(a.Type); ok {
		out.Type = t
	} else if a.Space == air.Constant && a.Size%4 == 0 && a.TypeAlign >= 4 {
		out.Type = words(a.Fields)
	}
	switch a.Space {
	case air.Threadgroup:
		out.Kind, out.Access = ir.ThreadgroupArg, ir.ReadWriteArg
	case air.Constant:
		out.Kind, out.Count = ir.ConstantArg, int32(min(a.Size/out.Type.Size(), math.MaxInt32))
	default:
		out.Kind = ir.DeviceArg
		switch a.Access {
		case air.Write:
			out.Access = ir.WriteArg
		case air.ReadWrite:
			out.Access = ir.ReadWriteArg
		}
	}
	return out
}
