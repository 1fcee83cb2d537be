package air

import (
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/files/sources"
	"github.com/mlxc/mlxc/internal/llvm"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// Input is a kernel to compile.
type Input struct {
	// Name is that of the file which the kernel comes from, for errors.
	Name string
	// IR is the text of its module.
	IR []byte
	// Kernel describes it. Args are in the order of the function's parameters.
	Kernel *Kernel
	// Constants are the values of its function constants; those left out are 0.
	Constants []ConstantValue
	// Machine is LLVM's triple of the machine that the code is for; "" is this one.
	Machine string
	// Checked asks for code that reports what it must not do (host/check.c of
	// backend/softmetal).
	Checked bool
	// Aligned says that every vector which the kernel reads or writes lies at a multiple of its size, as
	// Metal asks. It is not believed of kernels in general.
	Aligned bool
	// Trusted says that the module is our own, or that the user has said that it may be compiled where the compiler
	// cannot be confined.
	Trusted bool `json:"-"`
}

// Open reads the module of a kernel that becomes code of a machine.
func (in *Input) Open(target calls.Target) (*Module, error) {
	m, err := ReadModule(in.Name, in.IR)
	if err != nil {
		return nil, err
	}
	if err := m.allowed(); err != nil {
		return nil, err
	}
	if f := m.Function(in.Kernel.Name); f != nil && len(f.Params) != len(in.Kernel.Args) {
		return nil, fmt.Errorf("the function has %d parameters, its description %d", len(f.Params), len(in.Kernel.Args))
	}
	m.Target, m.aligned = target, in.Aligned
	return m, nil
}

//go:embed *.go
var own embed.FS

// Digest is that of this package and of packages calls and llvm, and of further files: what is made depends on all of them.
func Digest(more ...fs.FS) []byte {
	h := sha256.New()
	sources.Add(h, own, llvm.Own)
	sources.Add(h, more...)
	bodies := calls.Digest()
	h.Write(bodies[:])
	return h.Sum(nil)
}

// Key is that of what a compiler makes of the kernel with some flags, by code of which there is a digest.
func (in *Input) Key(c clang.Compiler, flags []string, code []byte) Key {
	h := sha256.New()
	fmt.Fprintf(h, "%x %s %d %q %v %v\n%q %d\n", code, c.Path, c.Version, flags, in.Checked, in.Aligned, in.Kernel.Name, in.Kernel.MaxThreadgroup)
	for _, v := range in.Constants {
		fmt.Fprintf(h, "%d=%d ", v.Index, v.Bits)
	}
	fmt.Fprintf(h, "\n%+v\n", in.Kernel.Args)
	h.Write(in.IR)
	return h.Sum(nil)
}

// Builder compiles one kernel in a folder of its own.
type Builder struct {
	ctx      context.Context
	Compiler clang.Compiler
	flags    []string // that say for which machine
	dir      string
}

// NewBuilder returns one, which is to be closed.
func NewBuilder(ctx context.Context, c clang.Compiler, in *Input, flags []string) (*Builder, error) {
	c.Trust = c.Trust || in.Trusted
	dir, err := os.MkdirTemp("", "mlxc-air-")
	return &Builder{ctx, c, flags, dir}, err
}

// Close removes the folder.
func (b *Builder) Close() error { return os.RemoveAll(b.dir) }

// Clang runs the compiler on text, which it takes for a file of the given name.
func (b *Builder) Clang(text, name string, args ...string) ([]byte, error) {
	in := b.Path(name)
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		return nil, err
	}
	args = append(append(args, b.flags...), "-Wno-override-module", "-x", "ir", in)
	return b.Run("clang", name+".out", clang.Job{Args: args})
}

// Path is where a file of the folder lies.
func (b *Builder) Path(name string) string { return filepath.Join(b.dir, name) }

// Run runs the compiler and returns the file that it has made. what says in errors what it was run for.
func (b *Builder) Run(what, name string, job clang.Job) ([]byte, error) {
	out := b.Path(name)
	job.Args, job.Folder = append(job.Args, "-o", out), b.dir
	_, err := b.Compiler.Run(b.ctx, job)
	if text := clang.Messages(err); text != "" {
		return nil, fmt.Errorf("%s: %s", what, firstLines(text, 12))
	} else if err != nil && b.ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	} else if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// firstLines are at most n lines of s.
func firstLines(s string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(s), "\n", n+1)
	if len(lines) > n {
		lines[n] = "…"
	}
	return strings.Join(lines, "\n")
}
