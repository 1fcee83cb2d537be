package air

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// subnormalsKnown is a function of a source that asks whether arithmetic takes subnormal numbers of f32 for what
// they are, and as fast as others (docs/kernels.md, "Subnormal numbers"). GPUs of NVIDIA do. Apple's take them for
// zero, and a processor does too or needs a hundred cycles.
const subnormalsKnown = "air.subnormals_known"

// Subnormals answers the question in a module.
func (m *Module) Subnormals(known bool) error {
	is := func(d llvm.Declaration) bool { return strings.Trim(d.Name, `"`) == subnormalsKnown }
	at := slices.IndexFunc(m.Declares, is)
	if at < 0 {
		return nil
	}
	d := m.Declares[at]
	if d.Result != "i1" || len(d.Params) != 0 {
		return fmt.Errorf("%s has another type", subnormalsKnown)
	}
	declared := map[string]llvm.Declaration{subnormalsKnown: d}
	for _, f := range m.Funcs {
		for i, l := range f.Lines {
			if c, _, ok := llvm.CallOf(l, declared); ok && c.Result != "" {
				f.Lines[i] = fmt.Sprintf("  %s = or i1 %t, false%s", c.Result, known, c.Place)
			}
		}
	}
	m.Declares = slices.DeleteFunc(m.Declares, is)
	return nil
}
