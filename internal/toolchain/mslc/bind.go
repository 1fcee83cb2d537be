package mslc

import (
	"fmt"
	"strconv"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// binding is what a kernel's parameter receives.
type binding struct {
	kind      string // "device", "constant" or "threadgroup"; "value" for a position
	attribute string
	index     int    // −1 until it has one
	condition string // the function constant without which it does not exist
}

// maxIndex is the greatest index of buffers and of threadgroup arguments (Metal feature set
// tables: 31 entries in a table of arguments).
const maxIndex = 30

// bind reads the attributes of a kernel's parameters. Memory without an attribute gets the lowest
// index that is free.
func bind(u *msltree.Unit, f *msltree.Function) ([]binding, error) {
	out := make([]binding, len(f.Params))
	used := map[string]bool{}
	for i, p := range f.Params {
		b, err := bindParameter(u, f, p)
		if err != nil {
			return nil, err
		}
		if b.kind != "value" && b.index >= 0 {
			used[table(b)+strconv.Itoa(b.index)] = true
		}
		out[i] = b
	}
	for i := range out {
		b := &out[i]
		for n := 0; b.kind != "value" && b.index < 0; n++ {
			if key := table(*b) + strconv.Itoa(n); !used[key] {
				used[key] = true
				b.index = n
			}
		}
		if b.index > maxIndex {
			t := u.Tok[f.Tok]
			return nil, fmt.Errorf("%s:%d: error: kernel %s has more than %d arguments in memory", t.File, t.Line, f.Name, maxIndex+1)
		}
	}
	return out, nil
}

// table names the index space of an argument.
func table(b binding) string {
	if b.kind == "threadgroup" {
		return "threadgroup"
	}
	return "buffer"
}

func bindParameter(u *msltree.Unit, f *msltree.Function, p msltree.Parameter) (binding, error) {
	fail := func(format string, args ...any) (binding, error) {
		t := u.Tok[p.First]
		return binding{}, fmt.Errorf("%s:%d: error: parameter %s of kernel %s %s", t.File, t.Line, p.Name, f.Name, fmt.Sprintf(format, args...))
	}
	b := binding{index: -1}
	found := false
	for _, a := range p.Attrs {
		switch a.Name {
		case "maybe_unused":
		case "function_constant":
			b.condition = a.Arg
		case "buffer", "threadgroup":
			n, err := strconv.Atoi(a.Arg)
			if err != nil || n < 0 || n > maxIndex {
				return fail("has the attribute [[%s(%s)]], whose index is not one of 0 to %d", a.Name, a.Arg, maxIndex)
			}
			if found {
				return fail("has more than one attribute")
			}
			if p.Shape == msltree.ByValue {
				return fail("is [[%s(%s)]], but no pointer, reference or array", a.Name, a.Arg)
			}
			if (p.Space == "threadgroup") != (a.Name == "threadgroup") {
				return fail("is [[%s(%s)]], but in the address space %q", a.Name, a.Arg, p.Space)
			}
			b.index = n
			found = true
		default:
			if found {
				return fail("has more than one attribute")
			}
			b.kind, b.attribute = "value", a.Name
			found = true
		}
	}
	if b.kind != "" {
		return b, nil
	}
	if p.Shape == msltree.ByValue {
		return fail("has no attribute ([[buffer(n)]], [[threadgroup(n)]] or the position of a thread)")
	}
	if p.Space != "device" && p.Space != "constant" && p.Space != "threadgroup" {
		return fail("is in the address space %q, not device, constant or threadgroup", p.Space)
	}
	b.kind = p.Space
	return b, nil
}
