package bind

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// presence says whether an argument exists under the function constants that a graph gives.
type presence uint8

const (
	absent presence = iota
	perhaps
	present
)

// maxSlots is the number of slots that a graph can bind.
const maxSlots = 31

// slot is an argument of a compiled kernel.
type slot struct {
	arg    *air.Arg // nil: there is none
	exists presence
}

// used reports whether the kernel may touch what is bound to the slot.
func (s *slot) used() bool { return s.arg != nil && s.exists != absent && !s.arg.Unused }

// written reports whether the kernel may write what is bound to the slot.
func (s *slot) written() bool { return s.used() && s.arg.Access != air.Read }

// kernel is a kernel of a graph with its compiled description.
type kernel struct {
	*ir.Kernel
	compiled *air.Kernel
	buffers  [maxSlots]slot
	groups   [maxSlots]slot
	// Bits of the slots in the table that a dispatch must bind, or give a length.
	required, requiredGroups uint32
	fixed                    int64 // bytes of the kernel's own threadgroup variables
}

// presenceOf decides whether an argument exists. Perhaps it does, if that depends on a constant which the kernel
// computes from its function constants, whose value is not known here.
func presenceOf(a *air.Arg, compiled *air.Kernel, k *ir.Kernel) presence {
	if a.If == "" {
		return present
	}
	for _, c := range compiled.Constants {
		if c.Name != a.If {
			continue
		}
		for _, given := range k.Constants {
			if int(given.Index) != c.Index {
				continue
			}
			if given.Bits != 0 {
				return present
			}
			return absent
		}
	}
	return perhaps
}

func newKernel(k *ir.Kernel, compiled *air.Kernel) *kernel {
	out := &kernel{Kernel: k, compiled: compiled}
	for i := range compiled.Args {
		a := &compiled.Args[i]
		if a.Attribute != "" || a.Index < 0 || a.Index >= maxSlots {
			continue
		}
		s := slot{a, presenceOf(a, compiled, k)}
		if a.Space == air.Threadgroup {
			out.groups[a.Index] = s
		} else {
			out.buffers[a.Index] = s
		}
	}
	for i := range k.Args {
		a := &k.Args[i]
		if a.Slot >= maxSlots {
			continue
		}
		if a.Kind == ir.ThreadgroupArg {
			if s := &out.groups[a.Slot]; s.used() && s.exists == present {
				out.requiredGroups |= 1 << a.Slot
			}
		} else if s := &out.buffers[a.Slot]; s.used() && s.exists == present {
			out.required |= 1 << a.Slot
		}
	}
	for _, m := range compiled.Threadgroup {
		out.fixed += m.Size
	}
	return out
}

// check compares the graph's table of arguments and constants with the compiled kernel.
func (k *kernel) check(fault, doubt func(slot int, name, format string, args ...any)) {
	k.checkConstants(fault, doubt)
	listed := [2][maxSlots]bool{}
	for i := range k.Args {
		a := &k.Args[i]
		n := int(a.Slot)
		if n >= maxSlots {
			continue
		}
		if a.Kind == ir.ThreadgroupArg {
			if listed[1][n] = true; k.groups[n].arg == nil {
				fault(n, a.Name, "the compiled kernel has no threadgroup argument of this number")
			}
			continue
		}
		listed[0][n] = true
		k.checkArg(a, &k.buffers[n], fault, doubt)
	}
	for i := range k.compiled.Args {
		a := &k.compiled.Args[i]
		if a.Attribute != "" {
			continue
		}
		if a.Index >= maxSlots {
			fault(a.Index, a.Name, "a graph can bind slots 0 to %d", maxSlots-1)
			continue
		}
		class, s := 0, &k.buffers[a.Index]
		if a.Space == air.Threadgroup {
			class, s = 1, &k.groups[a.Index]
		}
		if s.arg != a {
			fault(a.Index, a.Name, "the compiled kernel has another argument at this slot, %s", s.arg.Name)
		} else if s.exists == present && s.used() && !listed[class][a.Index] {
			fault(a.Index, a.Name, "the compiled kernel takes %s %s here, and the graph's table has no such argument: nothing can be bound to it", a.Space, a.Type)
		}
	}
}

// checkArg compares a row of the graph's table with the compiled argument of its slot.
func (k *kernel) checkArg(a *ir.Arg, s *slot, fault, doubt func(slot int, name, format string, args ...any)) {
	n := int(a.Slot)
	if s.arg == nil {
		fault(n, a.Name, "the compiled kernel has no buffer argument of this number")
		return
	}
	if !s.used() {
		return
	}
	c := s.arg
	says := a.Kind.String()
	if a.Kind == ir.DeviceArg {
		says += " " + a.Access.String()
	}
	switch writes := s.written(); {
	case writes && (a.Kind == ir.ConstantArg || a.Access == ir.ReadArg):
		fault(n, c.Name, "the graph's table says %s, the compiled kernel writes it (%s %s)", says, c.Space, c.Access)
	case !writes && a.Kind == ir.DeviceArg && a.Access != ir.ReadArg:
		fault(n, c.Name, "the graph's table says %s, the compiled kernel only reads it (%s %s)", says, c.Space, c.Access)
	}
	if t, ok := scalarOf(c.Type); ok && a.Type.Size() > 0 && !sameBits(t, a.Type) {
		if c.Size > 0 {
			fault(n, c.Name, "the graph's table says %s, the compiled kernel takes %s", a.Type, c.Type)
		} else {
			doubt(n, c.Name, "the graph's table says %s, the compiled kernel takes a pointer to %s", a.Type, c.Type)
		}
	}
}

// checkConstants compares function constants, by their indices.
func (k *kernel) checkConstants(fault, doubt func(slot int, name, format string, args ...any)) {
	given := map[int]*ir.FunctionConstant{}
	for i := range k.Constants {
		given[int(k.Constants[i].Index)] = &k.Constants[i]
	}
	for _, c := range k.compiled.Constants {
		g := given[c.Index]
		delete(given, c.Index)
		t, known := metalTypes[c.Type]
		switch {
		case g == nil:
			fault(-1, "", "function constant %d (%s, %s) has no value", c.Index, c.Name, c.Type)
		case !known:
			fault(-1, "", "function constant %d (%s) is of type %s, which a graph cannot give", c.Index, c.Name, c.Type)
		case g.Type != t:
			fault(-1, "", "function constant %d (%s) is of type %s, the graph gives %s", c.Index, c.Name, c.Type, g.Type)
		case g.Name != "" && g.Name != c.Name:
			fault(-1, "", "function constant %d is %s, the graph calls it %s", c.Index, c.Name, ir.QuoteName(g.Name))
		}
	}
	for i := range k.Constants {
		if c := &k.Constants[i]; given[int(c.Index)] != nil {
			name := ""
			if c.Name != "" {
				name = fmt.Sprintf(" (%s)", ir.QuoteName(c.Name))
			}
			doubt(-1, "", "the compiled kernel has no function constant %d%s", c.Index, name)
		}
	}
}
