//go:build darwin || linux

package objc

import (
	"fmt"

	"github.com/ebitengine/purego"

	"github.com/mlxc/mlxc/internal/dynlib"
)

// Setenv sets a variable in C's environment, which Go's os.Setenv does not change. Metal reads its
// variables when it is loaded, so set them before [Load].
func Setenv(name, value string) error {
	f, err := dynlib.Symbol(purego.RTLD_DEFAULT, "setenv")
	if err != nil {
		return fmt.Errorf("the system's C library has no setenv: %w", err)
	}
	failed := uintptr(0)
	withCString(name, func(n uintptr) uintptr {
		return withCString(value, func(v uintptr) uintptr {
			r, _, _ := purego.SyscallN(f, n, v, 1)
			failed = r & 0xffffffff // an int
			return 0
		})
	})
	if failed != 0 {
		return fmt.Errorf("%s=%s cannot be put into the environment", name, value)
	}
	return nil
}
