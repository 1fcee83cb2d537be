package air

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
		f := function{head: "define void @k()", lines: []string{c.line}}
		f.plain(false, false)
		assert.Equal(t, []string{c.want}, f.lines)
	}
}
