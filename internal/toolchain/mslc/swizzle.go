package mslc

import (
	"fmt"
	"sort"
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// lane returns the lanes that a swizzle names, or nil if name is none.
func swizzle(name string) []int {
	if len(name) < 2 || len(name) > 4 {
		return nil
	}
	for _, set := range []string{"xyzw", "rgba"} {
		var lanes []int
		for _, c := range name {
			if i := strings.IndexRune(set, c); i >= 0 {
				lanes = append(lanes, i)
			}
		}
		if len(lanes) == len(name) {
			return lanes
		}
	}
	return nil
}

// swizzles defines the macros that declare, in the classes of vectors, the swizzles that the
// source mentions. All there are would be 680 for each type.
func (r *rewriter) swizzles() string {
	seen := map[string]bool{}
	for i, t := range r.Tok {
		if t.Kind == msltree.Ident && (r.At(i-1) == "." || r.At(i-1) == "->") && swizzle(t.Text) != nil {
			seen[t.Text] = true
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	for n := 2; n <= 4; n++ {
		fmt.Fprintf(&b, "#define MSL_SWIZZLES%d", n)
		for _, name := range names {
			b.WriteString(property(name, n))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// property declares one swizzle of a vector of n lanes; it is empty if the vector has too few.
func property(name string, n int) string {
	lanes := swizzle(name)
	used := map[int]bool{}
	var get, put strings.Builder
	for i, l := range lanes {
		if l >= n {
			return ""
		}
		used[l] = true
		fmt.Fprintf(&get, ", %d", l)
		fmt.Fprintf(&put, " v[%d] = s.v[%d];", l, i)
	}
	t := fmt.Sprintf("vec<T, %d>", len(lanes))
	out := fmt.Sprintf(" MSL_MEMBER %s msl_get_%s() const { return %[1]s::msl_of(__builtin_shufflevector(v, v%[3]s)); }", t, name, get.String())
	access := "get = msl_get_" + name
	if len(used) == len(lanes) { // a lane that stands twice cannot be written
		out += fmt.Sprintf(" MSL_MEMBER void msl_put_%s(%s s) {%s }", name, t, put.String())
		access += ", put = msl_put_" + name
	}
	return out + fmt.Sprintf(" __declspec(property(%s)) %s %s;", access, t, name)
}
