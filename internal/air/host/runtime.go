package host

import (
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
)

// runtime adds the functions that LLVM calls where a machine lacks an instruction, if the
// module computes with floats of any kind. They are in the kernel's own object: a shared object
// is linked without any library.
func (m *hostModule) runtime() {
	if text := m.String(); !strings.Contains(text, "half") && !strings.Contains(text, "float") {
		return
	}
	known := map[string]bool{}
	for _, d := range m.Declares {
		known[strings.Trim(d.Name, `"`)] = true
	}
	m.Add(calls.Runtime(), known)
}
