package metallib_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/metallib/bitcode"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// kernelText is LLVM IR of a kernel with one of everything that Describe reads.
const kernelText = `
%inner = type { i32, i32 }
@fc.MTL_FC_INIT_7_i = internal addrspace(2) externally_initialized constant i32 undef
@tile = internal addrspace(3) global [10 x <3 x float>] undef, align 16
@other = internal addrspace(2) constant i32 5
@use = global [3 x ptr] [ptr addrspacecast (ptr addrspace(2) @fc.MTL_FC_INIT_7_i to ptr), ptr addrspacecast (ptr addrspace(3) @tile to ptr), ptr addrspacecast (ptr addrspace(2) @other to ptr)]

define void @k(ptr addrspace(1) %x, ptr addrspace(2) %p, ptr addrspace(3) %m, i32 %i) {
  ret void
}
define void @f() { ret void }

!air.kernel = !{!0}
!air.function_constants = !{!8}
!air.version = !{!9}
!air.language_version = !{!10}
!air.compile_options = !{!11}
!0 = !{ptr @k, !1, !2, !12}
!1 = !{}
!2 = !{!3, !4, !5, !6}
!3 = !{i32 0, !"air.buffer", !"air.location_index", i32 4, i32 1, !"air.write", !"air.address_space", i32 1, !"air.arg_type_size", i32 4, !"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"float", !"air.arg_name", !"x"}
!4 = !{i32 1, !"air.function_constant", !7, !"air.buffer", !"air.buffer_size", i32 12, !"air.location_index", i32 5, i32 1, !"air.read", !"air.address_space", i32 2, !"air.struct_type_info", !13, !"air.arg_type_size", i32 12, !"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"P", !"air.arg_name", !"p", !"air.arg_unused"}
!5 = !{i32 2, !"air.buffer", !"air.location_index", i32 0, i32 1, !"air.read_write", !"air.address_space", i32 3, !"air.arg_type_size", i32 2, !"air.arg_type_align_size", i32 2, !"air.arg_type_name", !"half", !"air.arg_name", !"m"}
!6 = !{i32 3, !"air.thread_index_in_simdgroup", !"air.arg_type_name", !"uint", !"air.arg_name", !"lane"}
!7 = !{ptr addrspace(2) @other, !"bool", !"wanted"}
!8 = !{ptr addrspace(2) @fc.MTL_FC_INIT_7_i, !"int", !"fc", i32 7, i1 true}
!9 = !{i32 2, i32 6, i32 1}
!10 = !{!"Metal", i32 3, i32 1, i32 0}
!11 = !{!"air.compile.denorms_disable"}
!12 = !{!"air.max_work_group_size", i32 256}
!13 = !{!"air.struct_type_info", !14, i32 0, i32 8, i32 0, !"I", !"inner", i32 8, i32 4, i32 2, !"short", !"pair"}
!14 = !{i32 0, i32 4, i32 0, !"int", !"a", i32 4, i32 4, i32 0, !"int", !"b"}
`

// assemble assembles LLVM IR to a module.
func assemble(t *testing.T, text string) *bitcode.Module {
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	cmd := c.Command(context.Background(), "--target=x86_64-unknown-linux-gnu", "-Wno-override-module", "-c", "-emit-llvm", "-x", "ir", "-", "-o", "-")
	cmd.Stdin = strings.NewReader(text)
	var out, message bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &message
	require.NoError(t, cmd.Run(), message.String())
	m, err := bitcode.Read(out.Bytes())
	require.NoError(t, err)
	return m
}

// Describe finds everything that a kernel may have.
func TestDescribe(t *testing.T) {
	k, err := metallib.Describe(assemble(t, kernelText))
	require.NoError(t, err)
	assert.Equal(t, &air.Kernel{
		Name: "k",
		Args: []air.Arg{
			{Name: "x", Type: "float", Index: 4, Space: air.Device, Access: air.Write, TypeSize: 4, TypeAlign: 4},
			{Name: "p", Type: "P", Index: 5, Space: air.Constant, Access: air.Read, Size: 12, TypeSize: 12, TypeAlign: 4, Unused: true, If: "wanted", Fields: []air.Field{
				{Offset: 0, Size: 8, Type: "I", Name: "inner", Fields: []air.Field{{Size: 4, Type: "int", Name: "a"}, {Offset: 4, Size: 4, Type: "int", Name: "b"}}},
				{Offset: 8, Size: 4, Array: 2, Type: "short", Name: "pair"},
			}},
			{Name: "m", Type: "half", Index: 0, Space: air.Threadgroup, Access: air.ReadWrite, TypeSize: 2, TypeAlign: 2},
			{Name: "lane", Type: "uint", Attribute: "thread_index_in_simdgroup"},
		},
		Constants:      []air.FunctionConstant{{Name: "fc", Index: 7, Type: "int"}},
		Threadgroup:    []air.ThreadgroupMemory{{Name: "tile", Size: 160, Align: 16}},
		MaxThreadgroup: 256,
		AIR:            air.Version{Major: 2, Minor: 6, Patch: 1},
		Metal:          air.Version{Major: 3, Minor: 1},
		Options:        []string{"denorms_disable"},
	}, k)
}

// Describe refuses metadata that it does not understand completely.
func TestDescribeRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"!air.kernel = !{!0}", "!air.kernel = !{!0, !0}", "lists 2 kernels, one is expected"},
		{"!air.kernel = !{!0}", "", "lists 0 kernels, one is expected"},
		{"!{ptr @k, !1, !2, !12}", "!{i32 5, !1, !2}", "names no function"},
		{"!{ptr @k, !1, !2, !12}", "!{ptr @k, !1}", "has no arguments"},
		{"!{ptr @k, !1, !2, !12}", "!{ptr @f, !1, !2}", "has 4 arguments, the function has 0"},
		{`!{!"air.max_work_group_size", i32 256}`, `!{!"air.max_work_group_size", i32 0}`, "has no number of threads"},
		{`!{!"air.max_work_group_size", i32 256}`, `!{!"air.max_work_group_size"}`, "has no number of threads"},
		{"!2 = !{!3, !4", "!2 = !{!3, null", "argument 1: its metadata is no node"},
		{"!3 = !{i32 0", "!3 = !{i32 1", "argument 0: the metadata is that of argument 1"},
		{"!3 = !{i32 0", `!3 = !{!"air.buffer"`, "argument 0: the argument has no number"},
		{`i32 1, !"air.function_constant", !7`, `i32 1, !"air.function_constant", !1`, "argument 1: air.function_constant has no name"},
		{`i32 4, i32 1, !"air.write"`, `i32 4, i32 2, !"air.write"`, "argument 0: it takes 2 slots"},
		{`i32 4, i32 1, !"air.write"`, `i32 65536, i32 1, !"air.write"`, "argument 0: slot 65536, the last one is 65535"},
		{`i32 4, i32 1, !"air.write"`, `i32 -4, i32 1, !"air.write"`, "argument 0: air.location_index has no number"},
		{`i32 4, i32 1, !"air.write"`, `i32 4, i32 1`, "a buffer has no slot, address space or access"},
		{`!"air.address_space", i32 1`, `!"air.address_space", i32 257`, "address space 257 is none"},
		{`!"air.address_space", i32 1, `, ``, "a buffer has no slot, address space or access"},
		{`!"air.arg_name", !"x"}`, `!"air.arg_name", !"a\0Ab"}`, "argument 0: air.arg_name has no text"},
		{`!"air.arg_name", !"x"}`, `!"air.arg_name"}`, "argument 0: air.arg_name has no text"},
		{`!"air.arg_name", !"x"}`, `!"air.arg_name", !"x", !"air.raster_order_group", i32 0}`, `argument 0: its metadata has the unknown key "air.raster_order_group"`},
		{`!"air.buffer", !"air.location_index", i32 4`, `!"air.texture", !"air.location_index", i32 4`, `"texture" is neither a buffer nor the position of a thread`},
		{`!6 = !{i32 3, !"air.thread_index_in_simdgroup", `, `!6 = !{i32 3, `, `argument 3: "" is neither a buffer`},
		{`!"air.thread_index_in_simdgroup"`, `!"thread"`, `argument 3: its metadata has the unknown key "thread"`},
		{`!"air.struct_type_info", !13`, `!"air.struct_type_info", !"no"`, "a struct has no list of its fields"},
		{`!13 = !{!"air.struct_type_info", !14`, `!13 = distinct !{!"air.struct_type_info", !13`, "structs lie in structs more than 16 deep"},
		{`!13 = !{!"air.struct_type_info", !14`, `!13 = !{!"air.other", !14`, `a field has the unknown key "air.other"`},
		{`!"short", !"pair"}`, `!"short"}`, "a field has no text"},
		{`!14 = !{i32 0`, `!14 = !{` + strings.Repeat(`i32 0, i32 4, i32 0, !"int", !"a", `, 4100) + `i32 0`, "structs have more than 4096 fields"},
		{`!"int", !"fc", i32 7, i1 true`, `!"int", !"f\1Bc", i32 7, i1 true`, "function constant 0 of metadata air.function_constants has no variable, type, name or index"},
		{`!"int", !"fc", i32 7, i1 true`, `!"int", !"fc"`, "function constant 0 of metadata air.function_constants has no variable, type, name or index"},
		{"!air.function_constants = !{!8}", "!air.function_constants = !{!8, !8}", "two function constants have index 7"},
		{"@tile = internal addrspace(3) global [10 x <3 x float>] undef", "@tile = internal addrspace(3) global [1000000000 x [1000000000 x <3 x float>]] undef", `threadgroup variable "tile" has no size`},
	} {
		t.Run(c.want, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(kernelText, c.old), c.old)
			_, err := metallib.Describe(assemble(t, strings.Replace(kernelText, c.old, c.new, 1)))
			assert.ErrorContains(t, err, c.want)
		})
	}
}
