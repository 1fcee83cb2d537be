package cuda

import (
	"github.com/ebitengine/purego"

	"github.com/mlxc/mlxc/internal/dynlib"
)

var libraryNames = []string{"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"}

func open(name string) (uintptr, error) {
	return dynlib.Open(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// openTool opens the library of a tool, and keeps its symbols invisible to other libraries.
func openTool(name string) (uintptr, error) {
	return dynlib.Open(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
}

func symbol(lib uintptr, name string) (uintptr, error) { return dynlib.Symbol(lib, name) }
