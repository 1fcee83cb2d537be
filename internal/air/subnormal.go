package air

import (
	"fmt"
	"slices"
	"strings"
)

// subnormalsKnown is a function of a source that asks whether arithmetic takes subnormal numbers of f32 for what
// they are, and as fast as others (docs/kernels.md, "Subnormal numbers"). GPUs of NVIDIA do. Apple's take them for
// zero, and a processor does too or needs a hundred cycles.
const subnormalsKnown = "air.subnormals_known"

// subnormals answers the question in a module.
func (m *module) subnormals(known bool) error {
	is := func(d declaration) bool { return strings.Trim(d.name, `"`) == subnormalsKnown }
	at := slices.IndexFunc(m.declares, is)
	if at < 0 {
		return nil
	}
	d := m.declares[at]
	if d.result != "i1" || len(d.params) != 0 {
		return fmt.Errorf("%s has another type", subnormalsKnown)
	}
	declared := map[string]declaration{subnormalsKnown: d}
	for _, f := range m.funcs {
		for i, l := range f.lines {
			if c, _, ok := callOf(l, declared); ok && c.result != "" {
				f.lines[i] = fmt.Sprintf("  %s = or i1 %t, false%s", c.result, known, c.dbg)
			}
		}
	}
	m.declares = slices.DeleteFunc(m.declares, is)
	return nil
}
