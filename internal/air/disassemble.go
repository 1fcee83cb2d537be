package air

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// Disassemble returns the text of LLVM bitcode, for [Input]. What it has as its target is
// this machine: prepare.go drops that.
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
	var stdout, stderr bytes.Buffer
	cmd := c.Command(ctx, "-S", "-emit-llvm", "-Wno-override-module", in, "-o", "-")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("clang reads no such bitcode: %w\n%s", err, firstLines(stderr.String(), 12))
	}
	return stdout.Bytes(), nil
}
