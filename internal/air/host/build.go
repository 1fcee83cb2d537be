package host

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

//go:embed *.go abi.h
var hostOwn embed.FS

var hostDigest = sync.OnceValue(func() []byte { return air.Digest(hostOwn) })

// Key is the key of what [Build] makes.
func Key(c clang.Compiler, in air.Input) air.Key {
	return in.Key(c, MachineFlags(in.Machine), hostDigest())
}

// Build compiles a kernel to a shared object for its machine, which exports mlxc_kernel
// (abi.h).
func Build(ctx context.Context, c clang.Compiler, in air.Input) ([]byte, error) {
	return build(ctx, c, in, func(b *air.Builder, object []byte) ([]byte, error) {
		from := b.Path("kernel.o")
		if err := os.WriteFile(from, object, 0o600); err != nil {
			return nil, err
		}
		return b.Run("linking", "kernel.so", clang.Job{Args: []string{from}, Link: true})
	})
}

// BuildObject compiles a kernel to the object file that [Build] links.
func BuildObject(ctx context.Context, c clang.Compiler, in air.Input) ([]byte, error) {
	return build(ctx, c, in, func(_ *air.Builder, object []byte) ([]byte, error) { return object, nil })
}

// hostModule is a module that becomes code of this machine.
type hostModule struct{ *air.Module }

// build compiles a kernel to an object file, of which finish makes the result.
func build(ctx context.Context, c clang.Compiler, in air.Input, finish func(b *air.Builder, object []byte) ([]byte, error)) (_ []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: kernel %s: %w", in.Name, in.Kernel.Name, err)
		}
	}()
	m, err := in.Open(bodiesOf(in.Machine))
	if err != nil {
		return nil, err
	}
	if err := m.Prepare(in.Kernel.Name, in.Constants, in.Checked); err != nil {
		return nil, err
	}
	b, err := air.NewBuilder(ctx, c, &in, MachineFlags(in.Machine))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	// A checked kernel keeps every access that it has, so nothing but inlining is done to it.
	first, second := []string{"-O2", "-fno-vectorize", "-fno-slp-vectorize"}, "-O2"
	if in.Checked {
		first, second = []string{"-O0"}, "-O1"
	}
	optimized, err := b.Clang(m.String(), "plain.ll", append(first, "-S", "-emit-llvm")...)
	if err != nil {
		return nil, err
	}
	if m, err = air.ReadModule("plain.ll", optimized); err != nil {
		return nil, err
	}
	host := hostModule{m}
	text, err := host.executable(in.Kernel, b.Compiler.Version, in.Checked)
	if err != nil {
		return nil, err
	}
	object, err := b.Clang(text, "executable.ll", second, "-fPIC", "-c")
	if err != nil {
		return nil, err
	}
	if err := standsAlone(object, in.Checked); err != nil {
		return nil, err
	}
	return finish(b, object)
}

// executable is the text of a module, whose helper functions have been inlined, with what the
// executor calls.
func (m *hostModule) executable(k *air.Kernel, version int, checked bool) (string, error) {
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
	var sites []air.Site
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
		list[i] = fmt.Sprintf("%s { i8 %d, i8 %d, i8 %d, i8 %d, i32 %d, i32 %d, i32 %d }", siteType, s.Operation, s.Element, s.Count, s.Width, s.Flags, s.Line, s.Stride)
	}
	t.Line("@mlxc_sites = internal constant [%d x %s] [%s]", len(list), siteType, strings.Join(list, ", "))
	list = make([]string, len(places))
	for i, a := range places {
		list[i] = fmt.Sprintf("%s { i8 %d, i8 %d, i8 %d, i8 %d, i32 %d, i32 %d, i32 %d }", accessType, a.kind, a.space, a.origin.kind, min(a.origin.index, 255), a.bytes, a.line, a.align)
	}
	t.Line("@mlxc_accesses = internal constant [%d x %s] [%s]", len(list), accessType, strings.Join(list, ", "))
	list = make([]string, variables)
	for i := range list {
		at := func(field string) string {
			return fmt.Sprintf("i32 ptrtoint (ptr getelementptr (%s, ptr null, i32 0, i32 %d, i32 %s) to i32)", memoryType, i, field)
		}
		// The size is the distance from the variable to what stands behind it.
		list[i] = fmt.Sprintf("%s { %s, i32 sub (%s, %s) }", variableType, at("1"), at("2"), at("1"))
	}
	t.Line("@mlxc_variables = internal constant [%d x %s] [%s]", len(list), variableType, strings.Join(list, ", "))
	t.Line("@mlxc_kernel = constant { ptr, ptr, ptr, i32, i32, ptr, ptr, i32, i32 } { ptr %s, ptr %s, ptr @mlxc_sites, i32 %d, i32 ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i32), ptr @mlxc_accesses, ptr @mlxc_variables, i32 %d, i32 %d }",
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
