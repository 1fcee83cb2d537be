package air

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/ptx"
	"github.com/mlxc/mlxc/internal/toolchain/clang"

	"github.com/mlxc/mlxc/internal/llvm"
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

// compiler is the one that compiles the kernel.
func (in *Input) compiler(c clang.Compiler) clang.Compiler {
	c.Trust = c.Trust || in.Trusted
	return c
}

// BuildHost compiles a kernel to a shared object for its machine, which exports mlxc_kernel
// (abi.h).
func BuildHost(ctx context.Context, c clang.Compiler, in Input) ([]byte, error) {
	b := builder{ctx: ctx, compiler: in.compiler(c), flags: MachineFlags(in.Machine)}
	return b.build(in, b.link)
}

// BuildObject compiles a kernel to the object file that [BuildHost] links.
func BuildObject(ctx context.Context, c clang.Compiler, in Input) ([]byte, error) {
	b := builder{ctx: ctx, compiler: in.compiler(c), flags: MachineFlags(in.Machine)}
	return b.build(in, func(object []byte) ([]byte, error) { return object, nil })
}

//go:embed *.go abi.h
var ownSource embed.FS

// generator is the digest of this package and of packages calls, llvm and ptx: what is made depends on all of them.
var generator = sync.OnceValue(func() []byte {
	h := sha256.New()
	for _, files := range []embed.FS{ownSource, llvm.Own, ptx.Own} {
		entries, err := files.ReadDir(".")
		if err != nil {
			panic(err) // INVARIANT: the files are part of the program.
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			text, err := files.ReadFile(e.Name())
			if err != nil {
				panic(err) // INVARIANT: as above.
			}
			fmt.Fprintf(h, "%s %d\n%s", e.Name(), len(text), text)
		}
	}
	bodies := calls.Digest()
	h.Write(bodies[:])
	return h.Sum(nil)
})

// Generator is the digest of what makes code of kernels here, but for the compiler.
func Generator() []byte { return generator() }

// HostKey is the key of what [BuildHost] makes.
func HostKey(c clang.Compiler, in Input) Key {
	h := sha256.New()
	fmt.Fprintf(h, "%x %s %d %q %v %v\n%q\n", generator(), c.Path, c.Version, MachineFlags(in.Machine), in.Checked, in.Aligned, in.Kernel.Name)
	for _, v := range in.Constants {
		fmt.Fprintf(h, "%d=%d ", v.Index, v.Bits)
	}
	fmt.Fprintf(h, "\n%+v\n", in.Kernel.Args)
	h.Write(in.IR)
	return h.Sum(nil)
}

// builder compiles one kernel in a folder of its own.
type builder struct {
	ctx      context.Context
	compiler clang.Compiler
	flags    []string // that say for which machine
	dir      string
}

// build compiles a kernel to an object file, of which finish makes the result.
func (b *builder) build(in Input, finish func(object []byte) ([]byte, error)) (_ []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: kernel %s: %w", in.Name, in.Kernel.Name, err)
		}
	}()
	m, err := readModule(in.Name, in.IR)
	if err != nil {
		return nil, err
	}
	if err := m.allowed(); err != nil {
		return nil, err
	}
	if f := m.Function(in.Kernel.Name); f != nil && len(f.Params) != len(in.Kernel.Args) {
		return nil, fmt.Errorf("the function has %d parameters, its description %d", len(f.Params), len(in.Kernel.Args))
	}
	m.target = bodiesOf(in.Machine)
	m.aligned = in.Aligned
	if err := m.prepare(in.Kernel.Name, in.Constants, in.Checked); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "mlxc-air-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	// A checked kernel keeps every access that it has, so nothing but inlining is done to it.
	first, second := []string{"-O2", "-fno-vectorize", "-fno-slp-vectorize"}, "-O2"
	if in.Checked {
		first, second = []string{"-O0"}, "-O1"
	}
	optimized, err := b.clang(m.String(), "plain.ll", append(first, "-S", "-emit-llvm")...)
	if err != nil {
		return nil, err
	}
	if m, err = readModule("plain.ll", optimized); err != nil {
		return nil, err
	}
	text, err := m.executable(in.Kernel, b.compiler.Version, in.Checked)
	if err != nil {
		return nil, err
	}
	object, err := b.clang(text, "executable.ll", second, "-fPIC", "-c")
	if err != nil {
		return nil, err
	}
	if err := standsAlone(object, in.Checked); err != nil {
		return nil, err
	}
	return finish(object)
}

// executable is the text of a module, whose helper functions have been inlined, with what the
// executor calls.
func (m *module) executable(k *Kernel, version int, checked bool) (string, error) {
	f := m.Function(k.Name)
	if f == nil {
		return "", errors.New("clang has taken the kernel away")
	}
	for _, x := range m.Funcs {
		switch {
		case x == f:
		case strings.HasPrefix(strings.Trim(x.Name, `"`), "air."):
			// LLVM inlines no function that is called as if it had another type.
			return "", fmt.Errorf("@%s is called with other types than it has", x.Name)
		case exchanges(x):
			return "", fmt.Errorf("threads exchange in @%s, which is not inlined", x.Name)
		}
	}
	var sites []site
	start, row := "null", "null"
	var places []access
	variables := 0
	if exchanges(f) || checked {
		end := "void"
		if version < 22 { // the first whose llvm.coro.end returns nothing
			end = "i1"
		}
		var err error
		if sites, places, variables, err = m.coroutine(f, k, end, checked); err != nil {
			return "", err
		}
		start = "@mlxc_start"
	} else {
		if err := m.row(f, k); err != nil {
			return "", err
		}
		row = "@mlxc_row"
	}
	const siteType, accessType, variableType = "{ i8, i8, i8, i8, i32, i32, i32 }", "{ i8, i8, i8, i8, i32, i32, i32 }", "{ i32, i32 }"
	var t text
	list := make([]string, len(sites))
	for i, s := range sites {
		list[i] = fmt.Sprintf("%s { i8 %d, i8 %d, i8 %d, i8 %d, i32 %d, i32 %d, i32 %d }", siteType, s.operation, s.element, s.count, s.width, s.flags, s.line, s.stride)
	}
	t.line("@mlxc_sites = internal constant [%d x %s] [%s]", len(list), siteType, strings.Join(list, ", "))
	list = make([]string, len(places))
	for i, a := range places {
		list[i] = fmt.Sprintf("%s { i8 %d, i8 %d, i8 %d, i8 %d, i32 %d, i32 %d, i32 %d }", accessType, a.kind, a.space, a.origin.kind, min(a.origin.index, 255), a.bytes, a.line, a.align)
	}
	t.line("@mlxc_accesses = internal constant [%d x %s] [%s]", len(list), accessType, strings.Join(list, ", "))
	list = make([]string, variables)
	for i := range list {
		at := func(field string) string {
			return fmt.Sprintf("i32 ptrtoint (ptr getelementptr (%s, ptr null, i32 0, i32 %d, i32 %s) to i32)", memoryType, i, field)
		}
		// The size is the distance from the variable to what stands behind it.
		list[i] = fmt.Sprintf("%s { %s, i32 sub (%s, %s) }", variableType, at("1"), at("2"), at("1"))
	}
	t.line("@mlxc_variables = internal constant [%d x %s] [%s]", len(list), variableType, strings.Join(list, ", "))
	t.line("@mlxc_kernel = constant { ptr, ptr, ptr, i32, i32, ptr, ptr, i32, i32 } { ptr %s, ptr %s, ptr @mlxc_sites, i32 %d, i32 ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i32), ptr @mlxc_accesses, ptr @mlxc_variables, i32 %d, i32 %d }",
		start, row, len(sites), memoryType, len(places), variables)
	m.Bodies = append(m.Bodies, t.String())
	m.WithoutPlaces()
	m.runtime()
	return m.String(), nil
}

// exchanges reports whether a function calls one in which threads exchange.
func exchanges(f *llvm.Function) bool {
	for _, l := range f.Lines {
		if strings.Contains(l, "@air.") || strings.Contains(l, `@"air.`) {
			return true
		}
	}
	return false
}

// clang runs the compiler on text, which it takes for a file of the given name.
func (b *builder) clang(text, name string, args ...string) ([]byte, error) {
	in, out := filepath.Join(b.dir, name), filepath.Join(b.dir, name+".out")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		return nil, err
	}
	args = append(args, b.flags...)
	args = append(args, "-Wno-override-module", "-x", "ir", in, "-o", out)
	if err := b.run(args); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

func (b *builder) run(args []string) error {
	_, err := b.compiler.Run(b.ctx, clang.Job{Args: args, Folder: b.dir})
	if text := clang.Messages(err); text != "" {
		return fmt.Errorf("clang: %s", firstLines(text, 12))
	} else if err != nil && b.ctx.Err() == nil {
		return fmt.Errorf("clang: %w", err)
	}
	return err
}

// link makes a shared object.
func (b *builder) link(object []byte) ([]byte, error) {
	in, out := filepath.Join(b.dir, "kernel.o"), filepath.Join(b.dir, "kernel.so")
	if err := os.WriteFile(in, object, 0o600); err != nil {
		return nil, err
	}
	_, err := b.compiler.Run(b.ctx, clang.Job{Args: []string{"-o", out, in}, Folder: b.dir, Link: true})
	if text := clang.Messages(err); text != "" {
		return nil, fmt.Errorf("linking: %s", firstLines(text, 12))
	} else if err != nil && b.ctx.Err() == nil {
		return nil, fmt.Errorf("linking: %w", err)
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
