package air

import (
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
)

// runtime adds the functions that LLVM calls where a machine lacks an instruction, if the
// module computes with floats of any kind. They are in the kernel's own object: a shared object
// is linked without any library.
func (m *module) runtime() {
	if text := m.String(); !strings.Contains(text, "half") && !strings.Contains(text, "float") {
		return
	}
	known := map[string]bool{}
	for _, d := range m.declares {
		known[strings.Trim(d.name, `"`)] = true
	}
	m.add(calls.Runtime(), known)
}

// add adds text to the module, but for declarations of what is known.
func (m *module) add(text string, known map[string]bool) {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if d := declare.FindStringSubmatch(l); d != nil && known[strings.Trim(d[2], `"`)] {
			continue
		}
		b.WriteString(l)
	}
	m.bodies = append(m.bodies, b.String())
}
