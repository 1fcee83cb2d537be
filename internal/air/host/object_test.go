package host

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// What the list of what is allowed would let pass, the object shows.
func TestWhatAnObjectMayNot(t *testing.T) {
	compiler, err := clang.Find(t.Context())
	require.NoError(t, err)
	for _, c := range []struct{ name, text, want string }{
		{"a function of the C library", "declare i32 @getpid()\ndefine i32 @f() {\n  %r = call i32 @getpid()\n  ret i32 %r\n}\n", "calls or reads getpid"},
		{"a variable of the C library", "@environ = external global ptr\ndefine ptr @f() {\n  %r = load ptr, ptr @environ\n  ret ptr %r\n}\n", "calls or reads environ"},
		{"an operation that is a call", "define float @f(float %a, float %b) {\n  %r = frem float %a, %b\n  ret float %r\n}\n", "calls or reads fmodf"},
		{"a constructor", "@x = global i32 0\n@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }]\n" +
			"define void @f() {\n  store volatile i32 1, ptr @x\n  ret void\n}\n", "run when it is loaded"},
		{"an ifunc", "@f = ifunc void (), ptr @g\ndefine ptr @g() {\n  ret ptr null\n}\n", "chosen when it is loaded"},
		{"a variable of each thread", "@x = thread_local global i32 0\ndefine ptr @f() {\n  ret ptr @x\n}\n", "of each thread"},
	} {
		for machine, of := range map[string]string{"x86-64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu", "a Mac": "arm64-apple-macosx14.0.0"} {
			if machine == "a Mac" && strings.Contains(c.text, "ifunc") || strings.Contains(c.text, "thread_local") && machine == "a Mac" {
				continue // there the format has none, or calls a function for it
			}
			t.Run(c.name+" on "+machine, func(t *testing.T) {
				b, err := air.NewBuilder(t.Context(), compiler, &air.Input{}, []string{"--target=" + of})
				require.NoError(t, err)
				defer b.Close()
				object, err := b.Clang(c.text, "f.ll", "-O2", "-fPIC", "-c")
				require.NoError(t, err)
				assert.ErrorContains(t, standsAlone(object, true), c.want)
			})
		}
	}
}
