package kernelcode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/kernelcode"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/toolchain/cage"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/ir"
)

// TestHostileLibraries: a compiled library of somebody else may hold any module. What is in those here beside the
// kernel would have run, as the user, when the kernel was loaded or called.
func TestHostileLibraries(t *testing.T) {
	const kernel = "vv_Addfloat32"
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	defer cache.Close()
	function := metallibs.Functions(t, kernel)[0]
	text, err := air.Disassemble(t.Context(), c, function.Bitcode)
	require.NoError(t, err)
	for _, a := range []struct{ name, head, body, want string }{
		{"as it is", "", "", ""},
		{"system", "declare i32 @system(ptr)", "call i32 @system(ptr null)", "calls @system"},
		{"getpid", "declare i32 @getpid()", "call i32 @getpid()", "calls @getpid"},
		{"threads", "declare i32 @pthread_create(ptr, ptr, ptr, ptr)", "call i32 @pthread_create(ptr null, ptr null, ptr null, ptr null)", "calls @pthread_create"},
		{"environ", "@environ = external global ptr", "load ptr, ptr @environ", "@environ is not the module's own"},
		{"a stored pointer", "@f = internal global ptr @g\ndefine internal void @g() noinline {\n  ret void\n}", "load ptr, ptr @f", "holds the address of the function @g"},
		{"a pointer", "", "load ptr, ptr null\n  call void %attack()", "it calls what %attack points to"},
		{"a constructor", "declare void @abort()\ndefine internal void @now() {\n  call void @abort()\n  ret void\n}\n@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @now, ptr null }]", "add i32 1, 2", "calls @abort"},
		{"a constructor of its own", "@count = internal global i32 0\ndefine internal void @now() {\n  store volatile i32 1, ptr @count\n  ret void\n}\n@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @now, ptr null }]", "load volatile i32, ptr @count", "run when it is loaded"},
		{"assembly", "", `call i32 asm sideeffect "mov $$60, %eax; syscall", "={ax}"()`, `says "asm"`},
		{"assembly of the module", `module asm ".globl evil"`, "add i32 1, 2", "assembly of its own"},
	} {
		t.Run(a.name, func(t *testing.T) {
			hostile := string(text)
			if a.name != "as it is" {
				if strings.Contains(a.head, "@llvm.global_ctors") {
					var kept []string
					for _, l := range strings.Split(hostile, "\n") {
						if !strings.HasPrefix(l, "@llvm.global_ctors") {
							kept = append(kept, l)
						}
					}
					hostile = strings.Join(kept, "\n")
				}
				at := strings.Index(hostile, "define ")
				hostile = hostile[:at] + a.head + "\n" + hostile[at:]
				at = strings.Index(hostile, "@"+kernel+"(")
				at += strings.Index(hostile[at:], "{\n") + 2
				hostile = hostile[:at] + "  %attack = " + a.body + "\n" + hostile[at:]
			}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "k.ll"), []byte(hostile), 0o600))
			_, err := c.Run(t.Context(), clang.Job{Args: []string{"-x", "ir", "-c", "-emit-llvm", "-Wno-override-module", "-O0", "k.ll", "-o", "k.bc"}, Folder: dir})
			require.NoError(t, err)
			f := function
			f.Bitcode, err = os.ReadFile(filepath.Join(dir, "k.bc"))
			require.NoError(t, err)
			path := filepath.Join(dir, "k.metallib")
			require.NoError(t, os.WriteFile(path, metallibs.Write([]metallibs.Function{f}), 0o600))

			k := &ir.Kernel{Function: kernel, Library: ir.Library{Kind: ir.Metallib, Path: path}}
			in, err := kernelcode.New(c, cache, "").Find(t.Context(), k)
			require.NoError(t, err)
			for _, checked := range []bool{false, true} {
				in.Checked = checked
				if _, err = host.Build(t.Context(), c, in); a.want == "" {
					require.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, a.want)
				}
			}
			// On a GPU, a constructor is a kernel that nobody launches.
			if _, err = nvptx.Compile(t.Context(), c, in, nvptx.Launch{}); a.want != "" && a.want != "run when it is loaded" {
				assert.Error(t, err)
			}
		})
	}
}

// TestConsent: without a cage kernels of others are not compiled, unless somebody has said so; ours are, by what they
// are and not by where they lie.
func TestConsent(t *testing.T) {
	defer cage.Pretend(cage.None)()
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	defer cache.Close()
	dir := t.TempDir()
	const text = "kernel void k(device float *y [[buffer(0)]], uint i [[thread_position_in_grid]]) { y[i] = 1; }\n"
	theirs := filepath.Join(dir, "user.metal")
	require.NoError(t, os.WriteFile(theirs, []byte(text), 0o600))
	library := filepath.Join(dir, "k.metallib")
	require.NoError(t, os.WriteFile(library, metallibs.Small(t, "vv_Addfloat32"), 0o600))
	trusting := c
	trusting.Trust = true
	for _, x := range []struct {
		name     string
		compiler clang.Compiler
		kernel   ir.Kernel
		refused  bool
	}{
		{"a source", c, ir.Kernel{Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: theirs}}, true},
		{"a library", c, ir.Kernel{Function: "vv_Addfloat32", Library: ir.Library{Kind: ir.Metallib, Path: library}}, true},
		{"a source that is trusted", trusting, ir.Kernel{Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: theirs}}, false},
		{"our own", c, ir.Kernel{Function: "vv_Addfloat32"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			in, err := kernelcode.New(x.compiler, cache, "").Find(t.Context(), &x.kernel)
			if err == nil {
				_, err = host.Build(t.Context(), c, in)
			}
			if x.refused {
				require.ErrorIs(t, err, cage.ErrNone)
				assert.ErrorContains(t, err, "--trust-kernels")
			} else {
				require.NoError(t, err)
			}
		})
	}
}
