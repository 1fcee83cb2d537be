package mslcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// candidates are the compilers that are looked for, in this order, unless the
// environment variable MLXC_CLANG names one.
var candidates = []string{"clang++-19", "clang++-22", "clang++-21", "clang++-20", "clang++-23", "clang++"}

// Clang returns the C++ compiler that checks are made with.
func Clang() (string, error) {
	if c := os.Getenv("MLXC_CLANG"); c != "" {
		p, err := exec.LookPath(c)
		if err != nil {
			return "", fmt.Errorf("MLXC_CLANG: %w", err)
		}
		return p, nil
	}
	for _, c := range candidates {
		if p, err := exec.LookPath(c); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no clang found (looked for %s): install clang 19 or later (Debian: clang-19 and libclang-common-19-dev), or name one in MLXC_CLANG",
		strings.Join(candidates, ", "))
}

// common are the flags of every run: freestanding C++ for one target, whatever
// the host, so that types have Metal's sizes and the object is ELF.
var common = []string{
	"--target=x86_64-unknown-linux-gnu", "-nostdinc", "-nostdinc++", "-ffreestanding", "-fno-exceptions", "-fno-rtti",
	"-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=20",
}

// language are the flags of a run on rewritten source.
var language = []string{
	"-x", "c++", "-I", "shim", "-Xclang", "-cl-single-precision-constant", "-fno-strict-aliasing",
	"-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-const-variable", "-Wno-duplicate-decl-specifier", "-Wno-sign-compare",
}

// run starts the compiler in dir; the error is what it says.
func run(ctx context.Context, clang, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, clang, append(append([]string(nil), common...), args...)...)
	cmd.Dir = dir
	// A C locale: messages are compared and shown as clang wrote them.
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(messages.String()); text != "" {
			return nil, errors.New(text)
		}
		return nil, fmt.Errorf("%s: %w", clang, err)
	}
	return out.Bytes(), nil
}
