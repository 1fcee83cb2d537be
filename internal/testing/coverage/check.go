package main

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// checker compiles kernels in one of several ways.
type checker struct {
	compiler clang.Compiler
	target   string // an LLVM target triple; empty for this machine
	checked  bool   // with the checker's code
	ptx      bool   // to PTX
}

// check returns why the kernel does not compile.
func (c *checker) check(ctx context.Context, lib *metallib.Library, name string) error {
	bitcode, err := lib.Bitcode(name)
	if err != nil {
		return err
	}
	k, err := lib.Describe(name)
	if err != nil {
		return err
	}
	text, err := air.Disassemble(ctx, c.compiler, bitcode)
	if err != nil {
		return err
	}
	in := air.Input{Name: "kernel", IR: text, Kernel: k, Machine: c.target, Checked: c.checked}
	if err := c.compile(ctx, in); err != nil {
		return err
	}
	if len(k.Constants) == 0 {
		return nil
	}
	for _, f := range k.Constants {
		in.Constants = append(in.Constants, air.ConstantValue{Index: f.Index, Bits: 1})
	}
	if err := c.compile(ctx, in); err != nil {
		return fmt.Errorf("function constants 1: %w", err)
	}
	return nil
}

func (c *checker) compile(ctx context.Context, in air.Input) error {
	if c.ptx {
		text, err := nvptx.Compile(ctx, c.compiler, in, nvptx.Launch{})
		if err != nil {
			return err
		}
		return wholePTX(text)
	}
	if c.target != "" {
		object, err := host.BuildObject(ctx, c.compiler, in)
		if err != nil {
			return err
		}
		return selfContained(object, c.checked, (*elf.File).Symbols)
	}
	object, err := host.Build(ctx, c.compiler, in)
	if err != nil {
		return err
	}
	return selfContained(object, c.checked, (*elf.File).DynamicSymbols)
}

// wholePTX returns an error if a PTX text calls a function that it does not define.
func wholePTX(text []byte) error {
	if m := externFunction.FindSubmatch(text); m != nil {
		return fmt.Errorf("the text needs %s", m[1])
	}
	return nil
}

var externFunction = regexp.MustCompile(`(?s)\.extern \.func[^;]*?([\w$]+)\s*\(`)

// selfContained returns an error unless an object exports mlxc_kernel, and imports only functions that C compilers
// expect everywhere or, if it is a checked one, that the executor has.
func selfContained(object []byte, checked bool, symbols func(*elf.File) ([]elf.Symbol, error)) error {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("the object: %w", err)
	}
	list, err := symbols(f)
	if err != nil {
		return fmt.Errorf("the object: %w", err)
	}
	exported := false
	var missing []string
	for _, s := range list {
		switch s.Name {
		case "", "memcpy", "memmove", "memset":
			continue
		case "mlxc_touch", "mlxc_private": // of the executor
			if checked {
				continue
			}
		case "mlxc_kernel":
			exported = s.Section != elf.SHN_UNDEF
		}
		if s.Section == elf.SHN_UNDEF {
			missing = append(missing, s.Name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("the object needs %s", strings.Join(missing, ", "))
	}
	if !exported {
		return fmt.Errorf("the object has no mlxc_kernel")
	}
	return nil
}
