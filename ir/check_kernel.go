package ir

import (
	"fmt"
	"unicode/utf8"

	"github.com/mlxc/mlxc/internal/interrupt"
)

func (c *checker) kernels(g *Graph) {
	seen := map[string]bool{}
	var polls interrupt.Every
	for i := range g.Kernels {
		polls.Poll(c.ctx, 64)
		k := &g.Kernels[i]
		at := c.prefix + "kernel @" + QuoteName(k.Name)
		switch {
		case k.Library.Kind == Generated && !validTerm(k.Function):
			c.add(at, Pos{}, fmt.Sprintf("the term of a generated kernel is printable ASCII of 1 to %d bytes", MaxFunction), "")
		case !validName(k.Name) || k.Library.Kind != Generated && !validName(k.Function):
			c.add(at, Pos{}, "name or function is empty, too long or not printable", "")
		}
		if seen[k.Name] {
			c.add(at, Pos{}, "another kernel has this name", "rename one")
		}
		seen[k.Name] = true
		if k.Library.Kind > Generated || k.Library.Declared() != (k.Library.Path == "") {
			c.add(at, Pos{}, "library is of no known sort, or has no path, or is builtin or generated and has one", "")
		} else if !utf8.ValidString(k.Library.Path) {
			c.add(at, Pos{}, "path of its library is no UTF-8", "")
		} else if k.Library.Declared() && k.Library.Digest != (Digest{}) {
			c.add(at, Pos{}, "library is "+k.Library.Kind.String()+" and has a digest", "")
		}
		if k.Library.Kind == Generated && len(k.Constants) > 0 {
			c.add(at, Pos{}, "kernel is generated and has function constants", "write them into its term")
		}
		for j, fc := range k.Constants {
			if j > 0 && fc.Index <= k.Constants[j-1].Index {
				c.add(at, Pos{}, "function constants do not stand in ascending order of their indices", "")
			}
			if s := fc.Type.Size(); s == 0 || s < 8 && fc.Bits>>(8*s) != 0 {
				c.add(at, Pos{}, fmt.Sprintf("function constant %d: bits %#x are no %s", fc.Index, fc.Bits, fc.Type), "")
			}
			if fc.Name != "" && !validName(fc.Name) {
				c.add(at, Pos{}, fmt.Sprintf("function constant %d has an unprintable name", fc.Index), "")
			}
		}
		names := map[string]bool{}
		for j, a := range k.Args {
			switch {
			case a.Kind > ThreadgroupArg || a.Access > ReadWriteArg || !a.Type.Valid() || a.Count < 0:
				c.add(at, Pos{}, fmt.Sprintf("argument %d is of no known sort", a.Slot), "")
			case a.Slot >= maxBufferSlots:
				c.add(at, Pos{}, fmt.Sprintf("argument slot %d is past Metal's last one, %d", a.Slot, maxBufferSlots-1), "")
			case !validName(a.Name) || names[a.Name]:
				c.add(at, Pos{}, fmt.Sprintf("argument %d has no name of its own", a.Slot), "")
			case j > 0 && !argBefore(k.Args[j-1], a):
				c.add(at, Pos{}, fmt.Sprintf("argument %d is out of order", a.Slot), "buffers ascending, then threadgroup arguments ascending")
			}
			names[a.Name] = true
		}
	}
}

func argBefore(a, b Arg) bool {
	ta, tb := a.Kind == ThreadgroupArg, b.Kind == ThreadgroupArg
	if ta != tb {
		return tb
	}
	return a.Slot < b.Slot
}
