package air

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// A kernel may take factors in f32 apart itself, once for all simdgroups of a threadgroup (docs/kernels.md,
// "Factors in parts"). It asks whether the three functions mean anything, and has another way where not: they
// do on GPUs where tensor cores make products of f32 of such parts, and there in that order, so that sums are
// those of simdgroup matrices, bit for bit.
const (
	partsKnown    = "air.simdgroup_parts_known"
	PartsTaken    = "air.simdgroup_parts_of.f32"
	PartsMultiply = "air.simdgroup_parts_multiply.f32"
)

// partsTypes are the types of these functions.
var partsTypes = map[string]llvm.Declaration{
	partsKnown:    {Result: "i1"},
	PartsTaken:    {Result: "<4 x i32>", Params: []string{"float", "float"}},
	PartsMultiply: {Result: "<4 x float>", Params: slices.Repeat([]string{"i32"}, 18)},
}

// InParts reports whether a function is one of these.
func InParts(d llvm.Declaration) bool { return partsTypes[strings.Trim(d.Name, `"`)].Result != "" }

// Parts says to a module whether the functions mean anything. Where they do not, nothing is left of them.
func (m *Module) Parts(known bool) error {
	declared := map[string]llvm.Declaration{}
	for _, d := range m.Declares {
		if !InParts(d) {
			continue
		}
		name := strings.Trim(d.Name, `"`)
		if t := partsTypes[name]; d.Result != t.Result || !slices.Equal(d.Params, t.Params) {
			return fmt.Errorf("%s has another type", name)
		}
		declared[name] = d
	}
	if len(declared) == 0 {
		return nil
	}
	for _, f := range m.Funcs {
		for i, l := range f.Lines {
			c, d, ok := llvm.CallOf(l, declared)
			if !ok || c.Result == "" {
				continue
			}
			switch {
			case strings.Trim(d.Name, `"`) == partsKnown:
				f.Lines[i] = fmt.Sprintf("  %s = or i1 %t, false%s", c.Result, known, c.Place)
			case !known:
				f.Lines[i] = fmt.Sprintf("  %s = select i1 true, %s zeroinitializer, %[2]s zeroinitializer%s", c.Result, d.Result, c.Place)
			}
		}
	}
	m.Declares = slices.DeleteFunc(m.Declares, func(d llvm.Declaration) bool {
		return InParts(d) && (!known || strings.Trim(d.Name, `"`) == partsKnown)
	})
	return nil
}
