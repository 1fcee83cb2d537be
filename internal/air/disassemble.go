package air

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// Disassemble returns the text of LLVM bitcode, for [Input]. What it has as its target is
// this machine: [Module.Prepare] drops that.
func Disassemble(ctx context.Context, c clang.Compiler, bitcode []byte) (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "mlxc-air-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in := filepath.Join(dir, "kernel.bc")
	if err := os.WriteFile(in, bitcode, 0o600); err != nil {
		return nil, err
	}
	out, err := c.Run(ctx, clang.Job{Args: []string{"-S", "-emit-llvm", "-Wno-override-module", in, "-o", "-"}, Folder: dir})
	if text := clang.Messages(err); text != "" {
		return nil, fmt.Errorf("clang reads no such bitcode: %s", firstLines(text, 12))
	}
	return out, err
}
