package mslcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// common are the flags of every run. They compile freestanding C++ for one target,
// whatever the host is, so that types have Metal's sizes and the object is ELF.
var common = []string{
	"--target=x86_64-unknown-linux-gnu", "-nostdinc", "-nostdinc++", "-ffreestanding", "-fno-exceptions", "-fno-rtti",
	"-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=20",
}

// language are the flags for compiling rewritten source.
var language = []string{
	"-x", "c++", "-I", "shim", "-Xclang", "-cl-single-precision-constant", "-fno-strict-aliasing",
	"-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-const-variable", "-Wno-duplicate-decl-specifier", "-Wno-sign-compare",
}

// run runs the compiler in dir. The error contains the compiler's messages.
func run(ctx context.Context, c clang.Compiler, dir string, args ...string) ([]byte, error) {
	cmd := c.Command(ctx, append(append([]string(nil), common...), args...)...)
	cmd.Dir = dir
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(messages.String()); text != "" {
			return nil, errors.New(text)
		}
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return out.Bytes(), nil
}
