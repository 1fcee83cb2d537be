package mslcheck_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslcheck"
)

// good is a source without a mistake; each planted mistake is an edit of it.
const good = `#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

constant bool reversed [[function_constant(4)]];
constexpr constant int WIDTH = 8;

inline float total(threadgroup float* tile, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) {
    sum += tile[i];
  }
  return sum;
}

inline void swap_values(thread float& a, thread float& b) {
  const float c = a;
  a = b;
  b = c;
}

template <typename T, int N>
[[kernel]] void scale_rows(
    const device T* x [[buffer(0)]],
    device T* y [[buffer(1)]],
    constant float& factor [[buffer(2)]],
    constant uint strides[2] [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[N * WIDTH];
  const device T* row = x + at.y * strides[0];
  tile[lane] = float(row[at.x]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float a = total(tile, N);
  float b = precise::exp(max(a, 1.0f));
  if (reversed) {
    swap_values(a, b);
  }
  const float4 v = float4(a, b, float2(a));
  y[at.y * grid.x + at.x] = T(factor * simd_sum(v.x + v.w));
}

kernel void plain(const device float4* x, device float4* y [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  const device float* one = (const device float*)(x + i);
  y[i] = x[i].wzyx * one[0];
}

template [[host_name("scale_rows_float")]] [[kernel]] decltype(scale_rows<float, 4>) scale_rows<float, 4>;
template [[host_name("scale_rows_half")]] [[kernel]] decltype(scale_rows<half, 4>) scale_rows<half, 4>;
`

func TestCheckDescribesKernels(t *testing.T) {
	lib, err := mslcheck.Check(context.Background(), "dir/good.metal", good)
	require.NoError(t, err)
	params := func(typ string) []mslcheck.Param {
		return []mslcheck.Param{
			{Name: "x", Space: "device", Slot: 0, Type: typ, Const: true, Used: true},
			{Name: "y", Space: "device", Slot: 1, Type: typ, Used: true},
			{Name: "factor", Space: "constant", Slot: 2, Type: "float", Const: true, Count: 1, Used: true},
			{Name: "strides", Space: "constant", Slot: 3, Type: "uint", Const: true, Count: 2, Used: true},
		}
	}
	assert.Equal(t, &mslcheck.Library{
		Kernels: []mslcheck.Kernel{
			{Host: "plain", Function: "plain", Line: 44, Params: []mslcheck.Param{
				{Name: "x", Space: "device", Slot: 1, Type: "float4", Const: true, Used: true},
				{Name: "y", Space: "device", Slot: 0, Type: "float4", Used: true},
			}},
			{Host: "scale_rows_float", Function: "scale_rows", Line: 23, Params: params("float"), ThreadgroupBytes: 128},
			{Host: "scale_rows_half", Function: "scale_rows", Line: 23, Params: params("half"), ThreadgroupBytes: 128},
		},
		Constants: []mslcheck.FunctionConstant{{Index: 4, Name: "reversed", Type: "bool"}},
	}, lib)
}

// A run takes one in four of the mistakes, each of which starts clang.
func TestMistakesAreNoticed(t *testing.T) {
	for i, c := range []struct {
		name     string
		old, new string // an edit of good; old "" adds at the end
		want     string // part of the message
		pass     string // the clang pass that has to notice; "" for a rule
	}{
		// Names and types.
		{"undeclared name", "tile[lane] =", "tile[lne] =", "undeclared identifier 'lne'", "flat"},
		{"unknown function", "precise::exp", "precise::expo", "no member named 'expo'", "flat"},
		{"function that Metal lacks", "precise::exp(max(a, 1.0f))", "erf(a)", "undeclared identifier 'erf'", "flat"},
		{"half beside float", "max(a, 1.0f)", "max(a, 1.0h)", "ambiguous", "flat"},
		{"integer beside float", "max(a, 1.0f)", "max(a, 1u)", "ambiguous", "flat"},
		{"bfloat to half", "float sum = 0;", "float sum = 0; bfloat z = bfloat(sum); half h = z; sum = h;", "cannot initialize", "flat"},
		{"vectors of different types", "x[i].wzyx * one[0]", "half4(x[i])", "assigning to", "flat"},
		{"vector of too many parts", "float2(a));", "float3(a));", "as many components", "flat"},
		{"wrong number of arguments", "total(tile, N)", "total(tile)", "no matching function", "flat"},
		{"64-bit simd_sum", "simd_sum(v.x + v.w)", "simd_sum(long(v.x))", "ambiguous", "flat"},
		{"missing semicolon", "float sum = 0;", "float sum = 0", "expected ';'", "flat"},
		{"unused variable", "float sum = 0;", "float sum = 0; float other = 1;", "unused variable", "flat"},
		{"no value returned", "  return sum;\n", "", "non-void function", "flat"},
		{"swizzle of a missing component", "x[i].wzyx", "x[i].wzyq", "illegal vector component name", "flat"},
		{"instance of another type", "decltype(scale_rows<half, 4>)", "decltype(scale_rows<half*, 4>)", "another type than its function", "flat"},

		// Address spaces.
		{"device for threadgroup", "swap_values(a, b);", "device float* d = (device float*)y; b = total(d, N);", "no matching function", "spaces"},
		{"thread for threadgroup", "float a = total(tile, N);", "float local[4]; float a = total(local, N);", "no matching function", "spaces"},
		{"threadgroup for thread", "swap_values(a, b);", "swap_values(tile[0], tile[1]);", "no matching function", "spaces"},
		{"device pointer as threadgroup pointer", "const device T* row = x", "const threadgroup T* row = x", "cannot initialize", "spaces"},
		{"cast to another space", "(const device float*)(x + i)", "(const threadgroup float*)(x + i)", "cast", "spaces"},
		{"cast that drops const", "(const device float*)(x + i)", "(device float*)(x + i)", "casts away qualifiers", "flat"},
		{"write to constant memory", "tile[lane] =", "factor = 1; tile[lane] =", "const-qualified type", "flat"},
		{"write to const device memory", "y[i] = x[i]", "x[i] = x[i]", "assign", "flat"},
		{"write to a function constant", "if (reversed) {", "reversed = true; if (reversed) {", "const-qualified type", "flat"},
		{"C++17 in MSL 3.1", "if (reversed) {", "if constexpr (N > 4) {", "C++17 extension", "spaces"},

		// Rules of MSL that C++ does not have.
		{"pointer without address space", "const device T* row = x", "const T* row = x", "needs an address space", ""},
		{"reference parameter without address space", "thread float& a,", "float& a,", "needs an address space", ""},
		{"cast without address space", "(const device float*)(x + i)", "(const float*)(x + i)", "needs an address space", ""},
		{"buffer without address space", "device T* y [[buffer(1)]]", "T* y [[buffer(1)]]", "needs an address space", ""},
		{"parameter without attribute", "uint lane [[thread_index_in_simdgroup]]", "uint lane", "parameter lane of kernel scale_rows has 0 attributes", ""},
		{"value without attribute", "constant float& factor [[buffer(2)]]", "float factor", "parameter factor of kernel scale_rows has 0 attributes", ""},
		{"thread memory without attribute", "constant float& factor [[buffer(2)]]", "thread float& factor", "parameter factor of kernel scale_rows has 0 attributes", ""},
		{"two arguments in one slot", "[[buffer(2)]]", "[[buffer(1)]]", "y and factor of kernel scale_rows are both [[buffer(1)]]", ""},
		{"slot out of range", "[[buffer(2)]]", "[[buffer(31)]]", "not one of 0 to 30", ""},
		{"misspelled attribute", "uint2 at [[thread_position_in_grid]]", "uint2 at [[thread_position_on_grid]]", "unknown attribute [[thread_position_on_grid]]", ""},
		{"attribute of the wrong type", "uint lane [[", "float lane [[", "lane cannot be a float", ""},
		{"vector where a scalar belongs", "uint lane [[", "uint2 lane [[", "lane cannot be a uint2", ""},
		{"positions of different sizes", "uint2 grid [[", "uint3 grid [[", "grid has 3 components, at has 2", ""},
		{"attribute twice", "[[threads_per_grid]]", "[[thread_position_in_grid]]", "stands twice", ""},
		{"scalar by value in a buffer slot", "constant float& factor", "float factor", "no pointer, reference or array", ""},
		{"threadgroup argument in device memory", "device T* y [[buffer(1)]]", "device T* y [[threadgroup(1)]]", "device address space, needs threadgroup", ""},
		{"attribute outside a kernel", "threadgroup float* tile, int n", "threadgroup float* tile [[buffer(0)]], int n", "total is no kernel", ""},
		{"kernel that returns a value", "kernel void plain", "kernel int plain", "returns int, not void", ""},
		{"threadgroup variable outside a kernel", "float sum = 0;", "threadgroup float sum;", "which is no kernel", ""},
		{"threadgroup variable with a value", "threadgroup float tile[N * WIDTH];", "threadgroup float tile[N * WIDTH] = {};", "no initial value", ""},
		{"threadgroup variable in a block", "if (reversed) {", "if (reversed) { threadgroup float z[2]; z[0] = a; a = z[0];", "outermost level", ""},
		{"program-scope variable in no space", "constexpr constant int WIDTH", "constexpr int WIDTH", "has to be in the constant address space", ""},
		{"function constants with one index", "constexpr constant int WIDTH", "constant int other [[function_constant(4)]];\nconstexpr constant int WIDTH", "reversed and other both have index 4", ""},
		{"template kernel without instance", "", "template <typename T>\n[[kernel]] void unused_kernel(device T* x [[buffer(0)]]) {\n  x[0] = 0;\n}\n", "has no instance", ""},
		{"host name twice", `host_name("scale_rows_half")`, `host_name("scale_rows_float")`, `host name "scale_rows_float" is taken`, ""},
		{"instance of no kernel", "decltype(scale_rows<half, 4>) scale_rows<half, 4>", "decltype(scale_row<half, 4>) scale_row<half, 4>", "there is no kernel scale_row", ""},
		{"double", "float sum = 0;", "double sum = 0;", "MSL has no double", ""},
		{"goto", "  return sum;\n", "  goto end;\nend:\n  return sum;\n", "MSL has no goto", ""},
		{"lambda", "float sum = 0;", "float sum = 0; auto f = [](float z) { return z; }; sum = f(sum);", "no lambda", ""},
		{"bracket not closed", "int n) {\n", "int n) {{\n", "is never closed", ""},
	} {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edited, line := good+c.new, strings.Count(good, "\n")+1
			if c.old != "" {
				require.Equal(t, 1, strings.Count(good, c.old), "the edit is not of one place")
				edited = strings.Replace(good, c.old, c.new, 1)
				line = strings.Count(good[:strings.Index(good, c.old)], "\n") + 1
			}
			_, err := mslcheck.Check(context.Background(), "planted.metal", edited)
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
			if c.pass != "" {
				assert.Contains(t, err.Error(), "(pass "+c.pass+")")
			}
			// The message names the line, or one close to it: a missing bracket
			// or an instance shows elsewhere.
			near := false
			for l := line - 2; l <= line+4; l++ {
				near = near || strings.Contains(err.Error(), fmt.Sprintf("planted.metal:%d:", l))
			}
			assert.True(t, near, "no message about line %d:\n%v", line, err)
		})
	}
}

func TestWithoutClang(t *testing.T) {
	t.Setenv(clang.Env, filepath.Join(t.TempDir(), "nothing"))
	_, err := mslcheck.Check(context.Background(), "good.metal", good)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, clang.Env)
}
