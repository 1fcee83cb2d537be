package air

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/internal/llvm"
)

// A vector may lie where its elements may, and so may what is copied.
func TestAlignment(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"  %1 = load <4 x float>, ptr addrspace(1) %0, align 16, !dbg !3", "  %1 = load <4 x float>, ptr addrspace(1) %0, align 4, !dbg !3"},
		{"  %1 = load volatile <2 x half>, ptr addrspace(3) %0, align 4", "  %1 = load volatile <2 x half>, ptr addrspace(3) %0, align 2"},
		{"  store <4 x i8> <i8 1, i8 2, i8 3, i8 4>, ptr addrspace(1) %0, align 4", "  store <4 x i8> <i8 1, i8 2, i8 3, i8 4>, ptr addrspace(1) %0, align 1"},
		{"  store <3 x i64> %1, ptr %0, align 32", "  store <3 x i64> %1, ptr %0, align 8"},
		{"  %1 = load float, ptr addrspace(1) %0, align 4", "  %1 = load float, ptr addrspace(1) %0, align 4"},
		{"  call void @llvm.memcpy.p1.p3.i64(ptr addrspace(1) align 16 %0, ptr addrspace(3) nonnull align 16 %1, i64 16, i1 false)", "  call void @llvm.memcpy.p1.p3.i64(ptr addrspace(1) %0, ptr addrspace(3) nonnull %1, i64 16, i1 false)"},
	} {
		f := llvm.Function{Head: "define void @k()", Lines: []string{c.line}}
		(&Module{}).plain(&f, false)
		assert.Equal(t, []string{c.want}, f.Lines)
		if !strings.Contains(c.line, "memcpy") {
			f = llvm.Function{Head: "define void @k()", Lines: []string{c.line}}
			(&Module{aligned: true}).plain(&f, false)
			assert.Equal(t, []string{c.line}, f.Lines, "of a kernel that has looked")
		}
	}
}

// A kernel that has looked where its vectors lie copies one by one load and one store.
func TestAlignedCopies(t *testing.T) {
	const some = "  tail call void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) noundef nonnull align 16 dereferenceable(16) %11, ptr addrspace(1) noundef nonnull align 16 dereferenceable(16) %13, i64 16, i1 false), !dbg !26"
	for line, want := range map[string][]string{
		some: {
			"  %mlxc.copied0 = load <4 x i32>, ptr addrspace(1) %13, align 16, !dbg !26",
			"  store <4 x i32> %mlxc.copied0, ptr addrspace(1) %11, align 16, !dbg !26",
		},
		"  call void @llvm.memcpy.p0.p3.i64(ptr align 16 %0, ptr addrspace(3) nonnull align 16 @t, i64 16, i1 false) #4": {
			"  %mlxc.copied0 = load <4 x i32>, ptr addrspace(3) @t, align 16",
			"  store <4 x i32> %mlxc.copied0, ptr %0, align 16",
		},
		strings.Replace(some, "i1 false", "i1 true", 1):                                                 nil,
		strings.Replace(some, "i64 16, i1", "i64 32, i1", 1):                                            nil,
		strings.Replace(some, "align 16 dereferenceable(16) %13", "align 4 dereferenceable(16) %13", 1): nil,
		strings.Replace(some, "memcpy", "memmove", 1):                                                   nil,
	} {
		if want == nil {
			want = []string{line}
		}
		f := llvm.Function{Head: "define void @k()", Lines: []string{line}}
		(&Module{aligned: true}).plain(&f, false)
		assert.Equal(t, want, f.Lines)
	}
}
