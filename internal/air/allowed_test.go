package air

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// innocent is a module like those of Apple's compiler and ours, of which attacks are made: HEAD stands where
// globals and declarations do, ATTRS behind the kernel's parameters, and BODY at the beginning of the kernel.
const innocent = `source_filename = "k"
target datalayout = "e-p:64:64"
target triple = "air64-apple-macosx14.0.0"
%struct.s = type { i32, [4 x float] }
@table = internal addrspace(2) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], align 4
@text = internal constant [4 x i8] c"abc\00"
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @_GLOBAL__sub_I_k.metal, ptr null }]
@llvm.compiler.used = appending global [1 x ptr] [ptr @text], section "llvm.metadata"
@flag = internal addrspace(2) global i8 0
HEAD
declare float @air.fabs.f32(float) local_unnamed_addr #1
declare void @llvm.assume(i1 noundef)
define internal void @_GLOBAL__sub_I_k.metal() section "air.static_init" {
  store i8 1, ptr addrspace(2) @flag
  ret void
}
define internal fastcc float @helper(float %x) unnamed_addr #0 {
  %y = tail call fast float @air.fabs.f32(float %x) #1
  ret float %y
}
define void @k(ptr addrspace(1) nocapture noundef writeonly "air-buffer-no-alias" %p, i32 noundef %i) local_unnamed_addr #0 ATTRS {
  BODY
  switch i32 %i, label %b [
    i32 1, label %a
    i32 2, label %b
  ]

a:                                                ; preds = %0
  %y = tail call float @helper(float 1.000000e+00), !dbg !9
  store float %y, ptr addrspace(1) %p, align 4, !tbaa !5
  br label %b

b:
  ret void
}
attributes #0 = { mustprogress nofree nounwind memory(argmem: readwrite) "frame-pointer"="all" "no-trapping-math"="true" }
attributes #1 = { convergent nounwind willreturn memory(none) }
!llvm.module.flags = !{!0, !1, !2}
!llvm.dbg.cu = !{!3}
!0 = !{i32 7, !"Debug Info Version", i32 3}
!1 = !{i32 1, !"wchar_size", i32 4}
!2 = !{i32 2, !"stack-protector-guard-symbol", !"system"}
!3 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !4, emissionKind: LineTablesOnly)
!4 = !DIFile(filename: "k.metal", directory: "/")
!5 = !{i32 0}
!6 = distinct !DISubprogram(name: "k", scope: !4, file: !4, line: 7, unit: !3)
!9 = !DILocation(line: 42, column: 3, scope: !6)
`

func attacked(head, attrs, body string) string {
	return strings.NewReplacer("HEAD", head, "ATTRS", attrs, "BODY", body).Replace(innocent)
}

func TestWhatAModuleMayNot(t *testing.T) {
	for _, c := range []struct{ name, head, attrs, body, want string }{
		{"a function of the C library", "declare i32 @system(ptr)", "", `%r = call i32 @system(ptr @text), !dbg !9`, "calls @system, which it has not and which is no function of Metal's: the function @k, line 42 of its source"},
		{"in quotes", `declare i32 @"system"(ptr)`, "", `%r = call i32 @"system"(ptr @text)`, "calls @system"},
		{"another", "declare i32 @getpid()", "", "%r = call i32 @getpid()", "calls @getpid"},
		{"a declaration that nobody calls", "declare i32 @pthread_create(ptr, ptr, ptr, ptr)", "", "", "calls @pthread_create"},
		{"a variable of the C library", "@environ = external global ptr", "", "%r = load ptr, ptr @environ", "the variable @environ is not the module's own"},
		{"a weak one", "@environ = extern_weak global ptr", "", "", "the variable @environ is not the module's own"},
		{"one of each thread", "@x = internal thread_local global i32 0", "", "", `@x says "thread_local"`},
		{"assembly of the module", `module asm "syscall"`, "", "", "the module has assembly of its own"},
		{"assembly of a function", "", "", `call void asm sideeffect "syscall", ""()`, `says "asm"`},
		{"a constructor elsewhere", "@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @helper, ptr null }]", "", "", "llvm.global_dtors"},
		{"a stored pointer of a function", "@f = internal global ptr @helper", "", "", "the variable @f holds the address of the function @helper"},
		{"a pointer of a function in memory", "", "", "store ptr @helper, ptr addrspace(1) %p", "takes the address of the function @helper"},
		{"its address as a number", "", "", "%r = ptrtoint ptr @helper to i64", "takes the address of the function @helper"},
		{"a call of what was loaded", "", "", "%f = load ptr, ptr addrspace(1) %p\n  call void %f()", "it calls what %f points to"},
		{"with room before the bracket", "", "", "%f = load ptr, ptr addrspace(1) %p\n  call void %f  (i32 0)", "it calls what %f points to"},
		{"a call of a number", "", "", "call void inttoptr (i64 4096 to ptr)()", "it calls no function by its name"},
		{"a call of a constant expression", "", "", "call void getelementptr (i8, ptr @helper, i64 3)()", "takes the address of the function @helper"},
		{"an alias", "@f = internal alias i32 (ptr), ptr @helper", "", "", `says "alias"`},
		{"an ifunc", "@f = internal ifunc void (), ptr @helper", "", "", `says "ifunc"`},
		{"machine code before a function", "", "prologue <{ i8, i8 }> <{ i8 15, i8 5 }>", "", "which no kernel needs"},
		{"machine code of one word", "", "prologue i32 1", "", `says "prologue"`},
		{"data before a function", "", "prefix i32 1", "", `says "prefix"`},
		{"a function without its beginning", "", "naked", "", `says "naked"`},
		{"a garbage collector", "", `gc "shadow-stack"`, "", "which no kernel needs"},
		{"a personality", "", "personality ptr @helper", "", `says "personality"`},
		{"a symbol of a stack probe in a group", `attributes #7 = { nounwind"probe-stack"="system" }`, "", "", "not understood"},
		{"an attribute", "attributes #7 = { nounwind sspreq }", "", "", `says "sspreq"`},
		{"a register", "declare i64 @llvm.read_register.i64(metadata)", "", "", "@llvm.read_register.i64"},
		{"its return address", "declare ptr @llvm.returnaddress(i32 immarg)", "", "", "@llvm.returnaddress"},
		{"the stack", "declare ptr @llvm.stacksave.p0()", "", "", "@llvm.stacksave.p0"},
		{"a longjmp", "declare void @llvm.eh.sjlj.longjmp(ptr)", "", "", "@llvm.eh.sjlj.longjmp"},
		{"the C library by an intrinsic", "declare float @llvm.pow.f32(float, float)", "", "", "@llvm.pow.f32"},
		{"the C library by an instruction", "", "", "%r = frem float 1.0, 2.0", `"frem" is no instruction`},
		{"an intrinsic of a processor", "declare void @llvm.x86.xsave(ptr, i32, i32)", "", "", "@llvm.x86.xsave"},
		{"clear_cache", "declare void @llvm.clear_cache(ptr, ptr)", "", "", "@llvm.clear_cache"},
		{"a trampoline", "declare void @llvm.init.trampoline(ptr, ptr, ptr)", "", "", "@llvm.init.trampoline"},
		{"a jump to what was stored", "", "", "indirectbr ptr null, [label %a]", `"indirectbr" is no instruction`},
		{"the address of a block", "", "", "store ptr blockaddress(@k, %a), ptr addrspace(1) %p", `says "blockaddress"`},
		{"in a variable", "@b = internal global ptr blockaddress(@k, %a)", "", "", `says "blockaddress"`},
		{"a call that must be a jump", "", "", "musttail call float @helper(float 1.0)", `"musttail" is no instruction`},
		{"an exception", "", "", "resume { ptr, i32 } undef", `"resume" is no instruction`},
		{"another module within a line", "", "", "ret void } declare i32 @system(ptr) define void @z() {", `says "declare"`},
		{"a declaration behind metadata", "!99 = !{} declare i32 @system(ptr)", "", "", `says "declare"`},
		{"a declaration behind an attribute", "attributes #9 = { nounwind } declare i32 @system(ptr)", "", "", "not understood"},
		{"a bundle", "", "", `call float @helper(float 1.0) [ "ptrauth"(i32 0, i64 1) ]`, `says "ptrauth"`},
		{"a type of a target", "%t = type { target(\"spirv.Image\") }", "", "", `says "target"`},
		{"the object of an emulated thread", "@x = internal global i32 0, !associated !5", "", "", "has the metadata !associated"},
		{"a function of the executor", "declare void @mlxc_touch(ptr)", "", "", "calls @mlxc_touch"},
		{"two instructions in a line", "", "", "%f = load ptr, ptr addrspace(1) %p call void %f()", "it calls within another instruction"},
		{"an instruction behind a debug record", "", "", "#dbg_value(i32 %i, !5, !5, !9) call void %i()", "a debug record says"},
		{"a string that two read in two ways", `@q = internal constant [2 x i8] c"a\", align 1 ; ", align 1`, "", "", "a string ends in a backslash"},
		{"a segment of the processor", "", "", "%r = load i64, ptr addrspace(257) null", "the address space 257"},
		{"a pointer of 32 bits", "@z = internal addrspace(270) global i32 0", "", "", "the address space 270"},
		{"a definition of LLVM's", "define void @llvm.trap() {\n  ret void\n}", "", "", "defines @llvm.trap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ReadModule("k.ll", []byte(attacked(c.head, c.attrs, c.body)))
			require.NoError(t, err)
			assert.ErrorContains(t, m.allowed(), c.want)
		})
	}
	m, err := ReadModule("k.ll", []byte(attacked("", "", `call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %p, i64 16) ]`)))
	require.NoError(t, err)
	require.NoError(t, m.allowed(), "the module that attacks are made of is refused itself")
	assert.Equal(t, "!llvm.module.flags = !{!0, !1}", m.Named[0], "a flag of the module that names a symbol is left out")
}
