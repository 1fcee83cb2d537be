package mslc

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/msltree"
)

// Rewriting moves no line, so a message of clang names the right line of the source.
func TestRewritingKeepsLines(t *testing.T) {
	paths, err := filepath.Glob("../../../msl/*.metal")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		src, err := os.ReadFile(path)
		require.NoError(t, err)
		code := regexp.MustCompile(`(?m)//.*$|^#(define|include)(.*\\\n)*.*$`).ReplaceAllStringFunc(string(src), func(s string) string {
			return strings.Repeat("\n", strings.Count(s, "\n"))
		})
		s, err := msltree.NewStream(code)
		require.NoError(t, err, path)
		u := msltree.Parse(s)
		out, _, err := rewrite(u, nil)
		require.NoError(t, err, path)
		_, out, _ = strings.Cut(out, "#include \"metal.h\"\n")
		got := strings.Split(out, "\n")
		for _, f := range u.Functions {
			l := u.Tok[f.Tok].Line - 1
			assert.Contains(t, got[l], f.Name, "%s:%d", path, l+1)
		}
	}
}

// The rewriter reads and writes any source without a panic.
func FuzzRewrite(f *testing.F) {
	paths, err := filepath.Glob("../../../msl/*.metal")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, s := range []string{
		"kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup float a[4], b; x[i] = a.xy; }",
		"constant bool c [[function_constant(1 + 2)]];", "constant [[function_constant(1)]];", "kernel", "kernel(", "[[kernel]]", "kernel void k(); threadgroup",
		"struct a { a() thread {} a() device {} };", "template<> struct a<device T*> {}; template<> struct a<threadgroup T*> {};", "f() constant {} f() constant {}",
		"kernel void k() { threadgroup ; threadgroup x; alignas(4) threadgroup a<b,c> d[2] = {1}, e; }", "#pragma unroll (N)\nx", "static_cast<a>(b)", "coherent(", "is_function_constant_defined(x)",
		"template [[host_name(\"a\")]] [[kernel]] decltype(k<1>) k<1>; template <int N> [[kernel, max_total_threads_per_threadgroup(N)]] void k() {}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		s, err := msltree.NewStream(src)
		if err != nil {
			return
		}
		u := msltree.Parse(s)
		_, _, _ = rewrite(u, u.Entries())
	})
}

// The splitter of modules reads any text without a panic.
func FuzzModule(f *testing.F) {
	for _, s := range []string{"define void @k(ptr addrspace(1) %0) {\n  %2 = addrspacecast ptr addrspace(1) %0 to ptr\n}\n", "declare void @f()\n", "@a = global i8 0\n", "!0 = !{}\n!x = !{!0}\n", "attributes #0 = { a }\n", "define \"", "@\"", "!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseModule(text)
		if err != nil {
			return
		}
		for name := range m.byName {
			m.closure(name)
		}
	})
}
