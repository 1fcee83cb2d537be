package mslc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
)

func TestSpaces(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"accesses", `define void @k(ptr addrspace(1) %0, ptr addrspace(2) %1) {
  %3 = addrspacecast ptr addrspace(1) %0 to ptr
  %4 = addrspacecast ptr addrspace(2) %1 to ptr
  %5 = load i32, ptr %4, align 4, !tbaa !3
  %6 = getelementptr inbounds nuw { float, [2 x i8] }, ptr %3, i64 %5
  %7 = load <4 x float>, ptr %6, align 16
  store <4 x float> %7, ptr %3, align 16
  ret void
}`, `define void @k(ptr addrspace(1) %0, ptr addrspace(2) %1) {
  %3 = addrspacecast ptr addrspace(1) %0 to ptr
  %4 = addrspacecast ptr addrspace(2) %1 to ptr
  %5 = load i32, ptr addrspace(2) %1, align 4, !tbaa !3
  %6 = getelementptr inbounds nuw { float, [2 x i8] }, ptr addrspace(1) %0, i64 %5
  %7 = load <4 x float>, ptr addrspace(1) %6, align 16
  store <4 x float> %7, ptr addrspace(1) %0, align 16
  ret void
}`},
		{"a loop of pointers", `define void @k(ptr addrspace(1) %0) {
  %2 = addrspacecast ptr addrspace(1) %0 to ptr
  br label %3

3:
  %4 = phi ptr [ %2, %1 ], [ %5, %3 ]
  %5 = getelementptr i8, ptr %4, i64 4
  %6 = icmp eq ptr %5, null
  %7 = select i1 %6, ptr %4, ptr %5
  %8 = load float, ptr %7, align 4
  br i1 %6, label %3, label %9
}`, `define void @k(ptr addrspace(1) %0) {
  %2 = addrspacecast ptr addrspace(1) %0 to ptr
  br label %3

3:
  %4 = phi ptr addrspace(1) [ %0, %1 ], [ %5, %3 ]
  %5 = getelementptr i8, ptr addrspace(1) %4, i64 4
  %6 = icmp eq ptr addrspace(1) %5, null
  %7 = select i1 %6, ptr addrspace(1) %4, ptr addrspace(1) %5
  %8 = load float, ptr addrspace(1) %7, align 4
  br i1 %6, label %3, label %9
}`},
		{"pointers into two spaces stay generic", `define void @k(ptr addrspace(1) %0, ptr addrspace(3) %1) {
  %3 = addrspacecast ptr addrspace(1) %0 to ptr
  %4 = addrspacecast ptr addrspace(3) %1 to ptr
  %5 = getelementptr i8, ptr %4, i64 4
  br label %6

6:
  %7 = phi ptr [ %3, %2 ], [ %5, %6 ]
  %8 = phi ptr [ %5, %2 ], [ %5, %6 ]
  %9 = load float, ptr %7, align 4
  store ptr %8, ptr %8, align 8
  %10 = call i32 @f(ptr noundef %8)
  %11 = icmp eq ptr %7, %8
  br label %6
}`, `define void @k(ptr addrspace(1) %0, ptr addrspace(3) %1) {
  %3 = addrspacecast ptr addrspace(1) %0 to ptr
  %4 = addrspacecast ptr addrspace(3) %1 to ptr
  %5 = getelementptr i8, ptr addrspace(3) %1, i64 4
  %generic.5 = addrspacecast ptr addrspace(3) %5 to ptr
  br label %6

6:
  %7 = phi ptr [ %3, %2 ], [ %generic.5, %6 ]
  %8 = phi ptr addrspace(3) [ %5, %2 ], [ %5, %6 ]
  %generic.8 = addrspacecast ptr addrspace(3) %8 to ptr
  %9 = load float, ptr %7, align 4
  store ptr %generic.8, ptr addrspace(3) %8, align 8
  %10 = call i32 @f(ptr noundef %generic.8)
  %11 = icmp eq ptr %7, %generic.8
  br label %6
}`},
		{"constant expressions", `define void @k() {
  store i8 1, ptr addrspacecast (ptr addrspace(3) @a to ptr), align 1
  store i8 1, ptr getelementptr inbounds nuw (i8, ptr addrspacecast (ptr addrspace(3) @"b c" to ptr), i64 4), align 1
  %1 = getelementptr [4 x i8], ptr addrspacecast (ptr addrspace(3) @a to ptr), i64 0, i64 2
  %2 = load i8, ptr %1, align 1
  store i8 %2, ptr @private, align 1
  ret void
}`, `define void @k() {
  store i8 1, ptr addrspace(3) @a, align 1
  store i8 1, ptr addrspace(3) getelementptr inbounds nuw (i8, ptr addrspace(3) @"b c", i64 4), align 1
  %1 = getelementptr [4 x i8], ptr addrspace(3) @a, i64 0, i64 2
  %2 = load i8, ptr addrspace(3) %1, align 1
  store i8 %2, ptr @private, align 1
  ret void
}`},
		{"functions named by the space", `define void @k(ptr addrspace(1) %0) {
  %2 = alloca i32, align 4
  %3 = addrspacecast ptr addrspace(1) %0 to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr nonnull align 4 dereferenceable(8) %2, ptr noundef nonnull align 4 captures(none) %3, i64 8, i1 false)
  call void @llvm.memset.p0.i64(ptr align 4 %2, i8 0, i64 8, i1 false)
  %4 = tail call i32 @air.atomic.generic.add.s.i32(ptr noundef %3, i32 1, i32 0, i32 2, i1 true) #3
  %5 = call i32 @air.atomic.generic.cmpxchg.weak.i32(ptr %3, ptr nonnull %2, i32 1, i32 0, i32 0, i32 2, i1 true)
  %6 = call <64 x float> @air.simdgroup_matrix_8x8_load.v64f32.p0f32(ptr addrspacecast (ptr addrspace(3) @t to ptr), i64 8, <2 x i64> zeroinitializer, i1 false)
  ret void
}`, `define void @k(ptr addrspace(1) %0) {
  %2 = alloca i32, align 4
  %3 = addrspacecast ptr addrspace(1) %0 to ptr
  call void @llvm.memcpy.p0.p1.i64(ptr nonnull align 4 dereferenceable(8) %2, ptr addrspace(1) noundef nonnull align 4 captures(none) %0, i64 8, i1 false)
  call void @llvm.memset.p0.i64(ptr align 4 %2, i8 0, i64 8, i1 false)
  %4 = tail call i32 @air.atomic.global.add.s.i32(ptr addrspace(1) noundef %0, i32 1, i32 0, i32 2, i1 true) #3
  %5 = call i32 @air.atomic.global.cmpxchg.weak.i32(ptr addrspace(1) %0, ptr nonnull %2, i32 1, i32 0, i32 0, i32 2, i1 true)
  %6 = call <64 x float> @air.simdgroup_matrix_8x8_load.v64f32.p3f32(ptr addrspace(3) @t, i64 8, <2 x i64> zeroinitializer, i1 false)
  ret void
}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Empty(t, cmp.Diff(c.want, inferSpaces(c.in, func(string, string, []int) {})))
		})
	}
}

func TestDeclarationsForSpaces(t *testing.T) {
	for _, c := range []struct {
		old, oldName, name string
		spaces             []int
		want               string
	}{
		{"declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly, i64, i1 immarg) #4",
			"llvm.memcpy.p0.p0.i64", "llvm.memcpy.p1.p0.i64", []int{1, 0},
			"declare void @llvm.memcpy.p1.p0.i64(ptr addrspace(1) noalias writeonly captures(none), ptr noalias readonly, i64, i1 immarg) #4"},
		{"declare i32 @air.atomic.generic.cmpxchg.weak.i32(ptr noundef, ptr noundef, i32 noundef, i32, i32, i32, i1 zeroext) #1",
			"air.atomic.generic.cmpxchg.weak.i32", "air.atomic.local.cmpxchg.weak.i32", []int{3, 0},
			"declare i32 @air.atomic.local.cmpxchg.weak.i32(ptr addrspace(3) noundef, ptr noundef, i32 noundef, i32, i32, i32, i1 zeroext) #1"},
	} {
		assert.Equal(t, c.want, declaration(c.old, c.oldName, c.name, c.spaces))
	}
}

// Any text comes out without a panic, in linear time.
func FuzzSpaces(f *testing.F) {
	f.Add("define void @k(ptr addrspace(1) %0) {\n  %2 = addrspacecast ptr addrspace(1) %0 to ptr\n  %3 = phi ptr [ %2, %1 ]\n}")
	for _, s := range []string{"phi ptr [ ", "select i1 1, ptr , ptr ", "getelementptr i8, ptr ", "load i8, ptr getelementptr (", "icmp eq ptr %2, ", "call void @llvm.memcpy.p0.p0.i64(ptr ", "store ptr align ", "addrspacecast ptr addrspace(1)", "call @\"", "load \""} {
		f.Add(fmt.Sprintf("  %%2 = addrspacecast ptr addrspace(1) %%0 to ptr\n  %%3 = %s%%2\n%s", s, s))
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := inferSpaces(text, func(string, string, []int) {})
		assert.GreaterOrEqual(t, strings.Count(out, "\n"), strings.Count(text, "\n"))
	})
}
