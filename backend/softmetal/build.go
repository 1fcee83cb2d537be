//go:build unix

package softmetal

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// machine is the target that kernels are compiled for and run on. The zero value is this machine.
type machine struct {
	triple   string   // LLVM's target triple
	emulator []string // a command line that runs programs of the target, to which the program is added
}

// elsewhere is the machine of devices whose options name none; only tests set it.
var elsewhere machine

//go:embed host/*.c host/*.h
var hostSource embed.FS

// executor returns the path of the executor program, compiling it unless the cache has it.
func executor(ctx context.Context, c clang.Compiler, cache *air.Cache, on machine) (string, error) {
	files, err := hostSource.ReadDir("host")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "executor %s %d %q\n%s\n", c.Path, c.Version, host.MachineFlags(on.triple), host.ABI)
	texts := map[string][]byte{"abi.h": []byte(host.ABI)}
	for _, f := range files {
		if texts[f.Name()], err = hostSource.ReadFile("host/" + f.Name()); err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", f.Name(), len(texts[f.Name()]), texts[f.Name()])
	}
	return cache.File(ctx, air.Key(h.Sum(nil)), "executor", func() (_ []byte, err error) {
		dir, err := os.MkdirTemp("", "mlxc-executor-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		out := filepath.Join(dir, "executor.out")
		args := []string{"-std=c11", "-D_GNU_SOURCE", "-O2", "-fno-sanitize=undefined", "-o", out}
		args = append(args, host.MachineFlags(on.triple)...)
		for name, text := range texts {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return nil, err
			}
			if filepath.Ext(name) == ".c" {
				args = append(args, path)
			}
		}
		if text, err := c.Program(ctx, append(args, "-lpthread")...).CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("the executor does not compile: %w\n%s", err, text)
		}
		return os.ReadFile(out)
	})
}
