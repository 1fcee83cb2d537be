package mslc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/cage"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// kernelBehind is a kernel behind the text of an attack.
const kernelBehind = `
#include <metal_stdlib>
using namespace metal;
kernel void k(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = 1; }
`

// What a source reads of its user's files is an error that names the line, in a cage, and without one too.
func TestSourcesReadNothingElse(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("int leaked = 12345;\n"), 0o600))
	headers := filepath.Join(dir, "headers")
	require.NoError(t, os.Mkdir(headers, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(headers, "fine.h"), []byte("// nothing\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(headers, "embeds.h"), []byte("// nothing\nconstant char d[] = {\n#embed \""+secret+"\"\n};\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(headers, "leads.h"), []byte("\n#include \"../secret\"\n"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(headers, "link.h")))
	for _, c := range []struct{ name, source, want string }{
		{"an absolute path", "\n#include \"SECRET\"", "k.metal:2:"},
		{"a path in a macro", "#define S \"SECRET\"\n#include S", "k.metal:2:"},
		{"import", "#import \"SECRET\"", "k.metal:1:"},
		{"a path up from a header", "#include <leads.h>", "leads.h:2:"},
		{"a link in a folder of headers", "\n\n#include <link.h>", "k.metal:3:"},
		{"embed", "constant char d[] = {\n#embed \"SECRET\"\n};", "k.metal:2: error: #embed"},
		{"embed behind a comment", "constant char d[] = {\n/* */ # /*\n*/ embed \"SECRET\"\n};", "k.metal:2: error: #embed"},
		{"embed over two lines", "constant char d[] = {\n#em\\\nbed \"SECRET\"\n};", "k.metal:2: error: #embed"},
		{"embed by another spelling", "constant char d[] = {\n%:embed \"SECRET\"\n};", "k.metal:2: error: #embed"},
		{"embed behind a string that looks like a comment", "constant char d[] = \"/*\"; constant char e[] = {\n#embed \"SECRET\"\n};", "k.metal:2: error: #embed"},
		{"embed behind a raw string", "constant char d[] = R\"(\"/*)\"; constant char e[] = {\n#embed \"SECRET\"\n};", "SECRET"},
		{"embed in a header", "#include <embeds.h>", "SECRET"},
		{"asking for an embedded file", "#if __has_embed(\"SECRET\")\n#endif", "k.metal:1: error: __has_embed"},
		{"asking for a file", "#if __has_include(\"SECRET\")\n#error it is there\n#endif", "k.metal:1: error: __has_include"},
		{"asking for a file above", "#if __has_include(<a/../../secret>)\n#endif", "k.metal:1: error: __has_include"},
		{"asking by a macro", "#define S \"SECRET\"\n#if __has_include(S)\n#endif", "k.metal:2: error: __has_include"},
		{"a terminal", "#include \"/dev/tty\"", "k.metal:1:"},
		{"an endless file", "#include \"/dev/zero\"", "k.metal:1:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range []cage.Kind{cage.Best, cage.None} {
				if kind == cage.None && strings.Contains(c.source, "/dev/") {
					continue // who trusts a source waits for what it waits for
				}
				func() {
					defer cage.Pretend(kind)()
					source := strings.ReplaceAll(c.source, "SECRET", secret) + kernelBehind
					_, err := mslc.Compile(t.Context(), "k.metal", source, mslc.Options{Include: []string{headers}, Trust: true, Limits: cage.Limits{Time: 20 * time.Second}})
					want := strings.ReplaceAll(c.want, "SECRET", secret)
					if kind == cage.Best && c.want == "SECRET" {
						want = "error" // the compiler says that it may not read it
					}
					assert.ErrorContains(t, err, want, "cage %v", kind)
					if err != nil {
						assert.NotContains(t, err.Error(), "12345")
					}
				}()
			}
		})
	}
	_, err := mslc.Compile(t.Context(), "k.metal", "#include <fine.h>\n#ifdef __has_include\n#if __has_include(<metal_stdlib>)\n#endif\n#endif\n"+kernelBehind, mslc.Options{Include: []string{headers}})
	require.NoError(t, err)
}

func TestNoAssembly(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"in a function", "static void f() {\n asm volatile(\"syscall\"); }", "k.metal:2: error: GNU-style inline assembly is disabled"},
		{"by another name", "static void f() {\n __asm__(\"nop\"); }", "k.metal:2: error: GNU-style inline assembly is disabled"},
		{"of the file", "\n\nasm(\"nop\");", "k.metal:3: error: GNU-style inline assembly is disabled"},
		{"of Microsoft", "static void f() {\n __asm { nop } }", "k.metal:2: error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := mslc.Compile(t.Context(), "k.metal", c.source+kernelBehind, mslc.Options{})
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// Sources that grow without end are given up, in time and in memory.
func TestBombs(t *testing.T) {
	sample.Long(t)
	twice := "#define A0 x,x\n"
	for n := 1; n < 10; n++ {
		twice += strings.ReplaceAll(strings.ReplaceAll("#define AN AM,AM,AM,AM,AM,AM,AM,AM\n", "AN", "A"+string(rune('0'+n))), "AM", "A"+string(rune('0'+n-1)))
	}
	for _, c := range []struct{ name, source string }{
		{"of macros", twice + "constant int q[] = {A9};"},
		{"of templates", "template<int A, int B> struct T { using L = T<A-1,B*2>; using R = T<A-1,B*2+1>; static constexpr constant int v = L::v + R::v; };\n" +
			"template<int B> struct T<0,B> { static constexpr constant int v = 1; };\nconstant int q = T<22,1>::v;"},
		{"of constants", "constexpr long f(long n) { long s=0; for (long a=0;a<n;a++) s+=a^n; return s; }\nconstant long q = f(1L<<40);\nstatic_assert(f(1L<<40) == 3, \"\");"},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			_, err := mslc.Compile(t.Context(), "k.metal", c.source+kernelBehind, mslc.Options{Limits: cage.Limits{CPU: time.Second, Time: time.Second, Memory: 512 << 20, Output: 1 << 20}})
			require.Error(t, err)
			if c.name != "of constants" { // which clang counts itself
				assert.ErrorIs(t, err, cage.ErrLimit)
			}
			assert.Less(t, time.Since(began), 15*time.Second)
		})
	}
}

// A source of somebody else is not compiled without a cage, unless it is trusted.
func TestWithoutACage(t *testing.T) {
	defer cage.Pretend(cage.None)()
	_, err := mslc.Compile(t.Context(), "k.metal", kernelBehind, mslc.Options{})
	require.ErrorIs(t, err, cage.ErrNone)
	assert.ErrorContains(t, err, "--trust-kernels")
	_, err = mslc.Compile(t.Context(), "k.metal", kernelBehind, mslc.Options{Trust: true})
	require.NoError(t, err)
}

// Namespaces do as well as Landlock.
func TestInNamespaces(t *testing.T) {
	if err := cage.Has(cage.Namespaces); err != nil {
		t.Skip(err)
	}
	defer cage.Pretend(cage.Namespaces)()
	_, err := mslc.Compile(t.Context(), "k.metal", kernelBehind, mslc.Options{})
	require.NoError(t, err)
	_, err = mslc.Compile(t.Context(), "k.metal", "#include \"/etc/passwd\"\n"+kernelBehind, mslc.Options{})
	require.ErrorContains(t, err, "k.metal:1:")
}
