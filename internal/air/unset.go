package air

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// Names of what stands for what nothing has set, up to a number: functions that give a value, and memory from which
// large variables are copied where they begin.
const (
	UnsetValue  = "air.mlxc.unset."
	UnsetMemory = "mlxc.unset.memory."
	UnsetCall   = "unset.mlxc." // the function's name here, where others called air.* get bodies
)

// renameUnset gives the functions of unset values their name here. Of a kernel that is not checked the values
// are some.
func (m *Module) renameUnset(checked bool) {
	found := false
	for i := range m.Declares {
		if n, ok := strings.CutPrefix(m.Declares[i].Name, UnsetValue); ok {
			m.Declares[i].Name, found = UnsetCall+n, true
		}
	}
	for _, f := range m.Funcs {
		for i := 0; found && i < len(f.Lines); i++ {
			f.Lines[i] = strings.ReplaceAll(f.Lines[i], "@"+UnsetValue, "@"+UnsetCall)
			if in := llvm.Read(f.Lines[i]); in != nil && strings.HasPrefix(in.Callee, UnsetCall) && !checked {
				f.Lines[i] = SomeValue(in.Result, in.Type, in.Place)
			}
		}
	}
	if !checked {
		m.DefinedUnset()
	}
}

// SomeValue is a line that makes a value which nothing has set: the same in every run.
func SomeValue(result, typ, dbg string) string {
	return fmt.Sprintf("  %s = freeze %s zeroinitializer%s", result, typ, dbg)
}

// IsUndefined reports whether an address is of what nothing has set.
func IsUndefined(operand string) bool { return strings.Contains(operand, "@"+UnsetMemory) }

// DefinedUnset gives what nothing has set, and stands in expressions of addresses still, some memory.
func (m *Module) DefinedUnset() {
	m.Declares = slices.DeleteFunc(m.Declares, func(d llvm.Declaration) bool { return strings.HasPrefix(d.Name, UnsetCall) })
	for i, g := range m.Globals {
		if strings.HasPrefix(strings.Trim(g.Name, `"`), UnsetMemory) {
			m.Globals[i].Text = unsetText.ReplaceAllString(g.Text, "internal constant $1 zeroinitializer")
		}
	}
}

var unsetText = regexp.MustCompile(`^external .*?constant (\[[0-9]+ x i8\])`)
