package mslc

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/files/sources"
	"github.com/mlxc/mlxc/internal/llvm"
	"github.com/mlxc/mlxc/internal/toolchain/cage"
	"github.com/mlxc/mlxc/internal/toolchain/mslshim"
	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// Options choose how to compile. The zero value is how MLX compiles its library: without fast
// math.
type Options struct {
	Include []string // folders of headers
	Define  []string // macros, NAME or NAME=VALUE
	// Kernels are the host names of the only kernels to compile; none means all. Compiling a
	// large family of templates takes minutes.
	Kernels []string
	// FastMath makes exp, exp2, log, sin and cos the fast ones.
	FastMath bool
	// Lines keeps the lines of the source, as debug information.
	Lines bool
	// Trust compiles the source where the compiler cannot be confined ([clang.Compiler.Run]).
	Trust bool
	// Limits are what a run of the compiler may take; zeros are what no known source comes near.
	Limits cage.Limits
	// Unset marks variables that nothing has set, for the checker: they have the value of constants
	// that are defined nowhere (air.UndefinedGlobal).
	Unset bool
}

//go:embed *.go
var own embed.FS

// Digest is that of this package and all that it compiles with, but clang: what is compiled
// depends on it, the source and the options.
var Digest = sync.OnceValue(func() []byte {
	h := sha256.New()
	sources.Add(h, own, llvm.Own, mslshim.Own, msltree.Own)
	return h.Sum(nil)
})

// Unit is a compiled source.
type Unit struct {
	// Kernels are in the order of the source: kernels that are no templates, then the instances.
	Kernels []air.Kernel

	module *module
}

// target are the flags that make clang's IR one that fits any GPU-like machine with 64-bit pointers.
var target = []string{
	"--target=nvptx64-nvidia-cuda", "-march=sm_90", "--cuda-feature=+ptx83", "-nostdinc", "-nostdinc++", "-ffreestanding",
	"-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fsigned-char",
}

// language are the flags for rewritten source.
var language = []string{
	"-x", "c++", "-std=c++17", "-I", "shim", "-fdeclspec", "-w", "-fno-show-column", "-Wno-c++11-narrowing", "-fno-strict-aliasing", "-ffp-contract=on",
	"-fno-strict-float-cast-overflow", "-fconvergent-functions", "-fno-gnu-inline-asm", "-fno-finite-loops",
	"-Xclang", "-cl-single-precision-constant", "-Xclang", "-ffloat16-excess-precision=none", "-Xclang", "-fbfloat16-excess-precision=none",
}

// optimization are the flags that keep the IR close to what was written: whoever goes on from here
// unrolls and vectorises for a machine. All functions are inlined, so that every pointer shows the space
// that it comes from.
var optimization = []string{"-O2", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", "-mllvm", "-inline-threshold=10000000"}

// Compile compiles a source. name stands for the file in messages. The error has one line for each
// mistake, NAME:LINE: error: TEXT, perhaps with notes.
func Compile(ctx context.Context, name, source string, o Options) (*Unit, error) {
	dir, err := mslshim.New(ctx, name, source)
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	dir.Clang.Trust, dir.Limits = dir.Clang.Trust || o.Trust, o.Limits
	text, err := dir.Preprocess(ctx, o.Include, append([]string{"__MLXC__=1"}, o.Define...))
	if err != nil {
		return nil, err
	}
	s, err := msltree.NewStream(text)
	if err != nil {
		return nil, err
	}
	tree := msltree.Parse(s)
	entries, err := choose(tree, dir.Name, o.Kernels)
	if err != nil {
		return nil, err
	}
	cpp, constants, err := rewrite(tree, entries)
	if err != nil {
		return nil, err
	}
	if err := dir.Write(dir.Name+".cpp", cpp); err != nil {
		return nil, err
	}
	args := append(append(append([]string(nil), target...), language...), optimization...)
	if o.FastMath {
		args = append(args, "-DMSL_FAST_MATH")
	}
	if o.Lines {
		// Without the name of this run's folder, so that the same source gives the same text, which caches are keyed by.
		args = append(args, "-gline-tables-only", "-fdebug-compilation-dir=.")
	}
	out := dir.Name + ".ll"
	if o.Unset {
		err = marked(ctx, dir, args, dir.Name+".cpp", out)
	} else {
		_, err = dir.Run(ctx, append(args, "-S", "-emit-llvm", "-o", out, dir.Name+".cpp")...)
	}
	if err != nil {
		return nil, err
	}
	ir, err := os.ReadFile(filepath.Join(dir.Dir, out))
	if err != nil {
		return nil, err
	}
	m, err := parseModule(string(ir))
	if err != nil {
		return nil, fmt.Errorf("%s: the compiled module: %w", dir.Name, err)
	}
	m.options = compileOptions(o)
	m.constants = constants
	u := &Unit{module: m}
	for n, e := range entries {
		k, err := m.describe(tree, n, e)
		if err != nil {
			return nil, fmt.Errorf("%s: kernel %s: %w", dir.Name, e.Host, err)
		}
		u.Kernels = append(u.Kernels, *k)
	}
	return u, nil
}

// Names returns the names of a source's kernels, in order, without compiling it.
func Names(ctx context.Context, name, source string, o Options) ([]string, error) {
	dir, err := mslshim.New(ctx, name, source)
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	dir.Clang.Trust, dir.Limits = dir.Clang.Trust || o.Trust, o.Limits
	text, err := dir.Preprocess(ctx, o.Include, append([]string{"__MLXC__=1"}, o.Define...))
	if err != nil {
		return nil, err
	}
	s, err := msltree.NewStream(text)
	if err != nil {
		return nil, err
	}
	entries, err := choose(msltree.Parse(s), dir.Name, nil)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Host
	}
	return names, nil
}

// choose returns the kernels to compile, in the order of the source.
func choose(tree *msltree.Unit, file string, kernels []string) ([]msltree.Entry, error) {
	all := tree.Entries()
	lines := map[string]int{}
	for _, e := range all {
		if e.Host == "" || strings.ContainsAny(e.Host, "\x00\n\"\\") {
			return nil, fmt.Errorf("%s:%d: error: a kernel cannot be called %q", e.File, e.Line, e.Host)
		}
		if first, ok := lines[e.Host]; ok {
			return nil, fmt.Errorf("%s:%d: error: host name %q is taken by line %d", e.File, e.Line, e.Host, first)
		}
		lines[e.Host] = e.Line
	}
	if len(kernels) == 0 {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, k := range kernels {
		if _, ok := lines[k]; !ok {
			return nil, fmt.Errorf("%s: there is no kernel %q among %d", file, k, len(all))
		}
		wanted[k] = true
	}
	return slices.DeleteFunc(all, func(e msltree.Entry) bool { return !wanted[e.Host] }), nil
}

func compileOptions(o Options) []string {
	math := "fast_math_disable"
	if o.FastMath {
		math = "fast_math_enable"
	}
	return []string{"denorms_disable", math, "framebuffer_fetch_enable"}
}
