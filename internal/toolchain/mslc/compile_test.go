package mslc_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

const head = "#include <metal_stdlib>\nusing namespace metal;\n"

// compile compiles a source with one kernel and returns its module.
func compile(t *testing.T, source string, o mslc.Options) (air.Kernel, string) {
	t.Helper()
	u, err := mslc.Compile(context.Background(), "k.metal", head+source, o)
	require.NoError(t, err)
	require.Len(t, u.Kernels, 1)
	text, err := u.Module(u.Kernels[0].Name)
	require.NoError(t, err)
	clangAccepts(t, text)
	return u.Kernels[0], text
}

// attributesOf returns the attributes of a declared function.
func attributesOf(t *testing.T, module, function string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^declare .*@` + regexp.QuoteMeta(function) + `\(.*(#\d+)$`).FindStringSubmatch(module)
	require.NotNil(t, m, "%s is not declared in\n%s", function, module)
	a := regexp.MustCompile(`(?m)^attributes ` + m[1] + ` = \{(.*)\}$`).FindStringSubmatch(module)
	require.NotNil(t, a)
	return a[1]
}

// What a kernel calls has AIR's names and types, and only exchange between threads is convergent.
func TestCallsOfAIR(t *testing.T) {
	_, m := compile(t, `
kernel void k(
    device float* x [[buffer(0)]],
    device half4* h [[buffer(1)]],
    device atomic_int* counter [[buffer(2)]],
    device int* n [[buffer(3)]],
    uint i [[thread_position_in_grid]],
    ushort lane [[thread_index_in_simdgroup]]) {
  threadgroup atomic_uint votes;
  threadgroup float tile[64];
  simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  tile[lane] = exp(x[i]) + fast::exp(x[i + 1]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(a, tile);
  simdgroup_load(b, x, 8, ulong2(0, 1), true);
  simdgroup_multiply_accumulate(c, a, b, c);
  simdgroup_store(c, tile, 16);
  simdgroup_barrier(mem_flags::mem_none);
  float s = simd_sum(tile[lane]) + simd_shuffle_xor(x[i], ushort(4)) + simd_shuffle_and_fill_up(x[i], 1.0f, ushort(2));
  h[i] = exp(h[i]) * half(s);
  n[i] = max(clamp(n[i], 1, 9), min(n[i + 1], 7)) + int(simd_any(s > 1)) + int(x[i + 2]);
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  atomic_fetch_max_explicit(&votes, uint(lane), memory_order_relaxed);
  int expected = 3;
  if (atomic_compare_exchange_weak_explicit(counter, &expected, 4, memory_order_relaxed, memory_order_relaxed)) {
    n[0] = expected;
  }
}
`, mslc.Options{})
	declared := map[string]string{}
	for _, d := range regexp.MustCompile(`(?m)^declare (?:dso_local )?(.*?) @(air\.[\w.]+)\((.*)\)`).FindAllStringSubmatch(m, -1) {
		plain := regexp.MustCompile(` (noundef|signext|zeroext|local_unnamed_addr)`).ReplaceAllString(d[1]+" ("+d[3]+")", "")
		declared[d[2]] = regexp.MustCompile(`^(noundef|zeroext|signext) `).ReplaceAllString(plain, "")
	}
	f := "<64 x float>"
	assert.Equal(t, map[string]string{
		"air.exp.f32":                                     "float (float)",
		"air.fast_exp.f32":                                "float (float)",
		"air.exp.f16":                                     "half (half)",
		"air.wg.barrier":                                  "void (i32, i32)",
		"air.simdgroup.barrier":                           "void (i32, i32)",
		"air.simd_sum.f32":                                "float (float)",
		"air.simd_any":                                    "i1 (i1)",
		"air.simd_shuffle_xor.f32":                        "float (float, i16)",
		"air.simd_shuffle_and_fill_up.f32":                "float (float, float, i16, i16)",
		"air.get_simdgroup_size.i16":                      "i16 ()",
		"air.clamp.s.i32":                                 "i32 (i32, i32, i32)",
		"air.max.s.i32":                                   "i32 (i32, i32)",
		"air.min.s.i32":                                   "i32 (i32, i32)",
		"air.atomic.global.add.s.i32":                     "i32 (ptr addrspace(1), i32, i32, i32, i1)",
		"air.atomic.local.max.u.i32":                      "i32 (ptr addrspace(3), i32, i32, i32, i1)",
		"air.atomic.global.cmpxchg.weak.i32":              "i32 (ptr addrspace(1), ptr, i32, i32, i32, i32, i1)",
		"air.simdgroup_matrix_8x8_init_filled.v64f32.f32": f + " (float)",
		"air.simdgroup_matrix_8x8_load.v64f32.p3f32":      f + " (ptr addrspace(3), i64, <2 x i64>, i1)",
		"air.simdgroup_matrix_8x8_load.v64f32.p1f32":      f + " (ptr addrspace(1), i64, <2 x i64>, i1)",
		"air.simdgroup_matrix_8x8_store.v64f32.p3f32":     "void (" + f + ", ptr addrspace(3), i64, <2 x i64>, i1)",
		"air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32": f + " (" + f + ", " + f + ", " + f + ")",
	}, declared)
	for name := range declared {
		exchanges := regexp.MustCompile(`barrier|simd_|simdgroup_matrix`).MatchString(name)
		if strings.Contains(name, "atomic") || strings.Contains(name, "simdgroup_size") {
			continue // clang cannot be told that an atomic is not convergent, which does no harm
		}
		a := attributesOf(t, m, name)
		assert.Equal(t, exchanges, strings.Contains(a, "convergent"), "%s: %s", name, a)
		assert.Equal(t, !exchanges, strings.Contains(a, "memory(none)"), "%s: %s", name, a)
	}
	assert.Contains(t, m, "call void @air.wg.barrier(i32 noundef 2, i32 noundef 1)")
	assert.Contains(t, m, "i32 noundef 0, i32 noundef 2, i1 noundef zeroext true", "relaxed, scope device, volatile")
	assert.Contains(t, m, "@llvm.fptosi.sat.i32.f32")
	assert.NotContains(t, m, "target-cpu")
}

// Each operation is rounded to its type; a product and a sum become one where the source lets them.
func TestArithmetic(t *testing.T) {
	const body = `(device bfloat* b [[buffer(0)]], device float* x [[buffer(1)]], device half* h [[buffer(2)]]) {
  b[0] = b[1] * b[2];
  h[0] = h[1] * h[2] + 0.5h;
  x[0] = x[1] * x[2] + 0.1;
}
`
	_, on := compile(t, "kernel void k"+body, mslc.Options{})
	assert.Contains(t, on, "fmul bfloat")
	assert.Contains(t, on, "@llvm.fmuladd.f32")
	assert.Contains(t, on, "@llvm.fmuladd.f16")
	assert.NotContains(t, on, "double")
	_, off := compile(t, "#pragma clang fp contract(off)\nkernel void k"+body, mslc.Options{})
	assert.NotContains(t, off, "fmuladd")
	assert.Contains(t, off, "fmul half")
	// A literal in a template is a float as well.
	_, tmpl := compile(t, "template <typename T> void f(device T* x) { x[0] = x[1] / 3 + 0.1; }\nkernel void k(device float* x [[buffer(0)]]) { f(x); }\n", mslc.Options{})
	assert.NotContains(t, tmpl, "double")
	_, fast := compile(t, "kernel void k(device float* x [[buffer(0)]]) { x[0] = exp(x[1]) + precise::exp(x[2]) + tanh(x[3]); }\n", mslc.Options{FastMath: true})
	for _, want := range []string{"@air.fast_exp.f32", "@air.exp.f32", "@air.tanh.f32", `!"air.compile.fast_math_enable"`} {
		assert.Contains(t, fast, want)
	}
}

func TestVectors(t *testing.T) {
	_, m := compile(t, `
kernel void k(device float4* x [[buffer(0)]], device int4* n [[buffer(1)]], device bool4* b [[buffer(2)]], device packed_float3* p [[buffer(3)]], uint3 at [[thread_position_in_grid]]) {
  float4 v = x[at.x];
  v.xy += v.zw;
  v.wzyx = float4(v.xyz, 1);
  v[at.y & 3] += dot(v, x[1]);
  x[2] = max(v, 0.0f) * 2 + float4(n[0]);
  n[1] = int4(v) % 3;
  b[0] = v < x[3];
  p[1] = packed_float3(float3(p[0]) + v.rgb);
  if (any(b[1]) && all(n[2] == 4)) {
    n[3] = select(n[4], n[5], b[2]);
  }
}
`, mslc.Options{})
	assert.Contains(t, m, "<3 x i32> noundef %4)")
	assert.Contains(t, m, "load <4 x float>, ptr addrspace(1)")
	assert.Contains(t, m, "@air.dot.v4f32(<4 x float>")
	assert.Contains(t, m, "load <4 x i8>", "bool4 is four bytes")
}

func TestDescription(t *testing.T) {
	k, m := compile(t, `
constant bool wide [[function_constant(7)]];
constant int unused [[function_constant(8)]];
constant float scale [[function_constant(3)]];
struct Shape { int rows; long stride; };
template <typename T, int N, int M = 4>
[[kernel, max_total_threads_per_threadgroup(N * M)]] void k(
    const device T* x,
    device bfloat4* y [[buffer(5)]],
    constant Shape& shape,
    constant int sizes[3] [[buffer(9)]],
    device float* extra [[buffer(2), function_constant(wide)]],
    threadgroup T* scratch [[threadgroup(1)]],
    const device int* never,
    ushort2 at [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup half tile[N][2];
  threadgroup uint count;
  tile[lane][at.x] = half(x[at.y]) * half(scale);
  if (lane == 0) count = uint(shape.rows + sizes[2]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[lane] = bfloat4(bfloat(float(tile[at.x][1])));
  scratch[lane] = T(count);
  if (wide) extra[0] = scratch[0];
}
template [[host_name("k_float_32")]] [[kernel]] decltype(k<float, 32>) k<float, 32>;
`, mslc.Options{})
	assert.Equal(t, []air.Arg{
		{Name: "x", Type: "float", Index: 0, Space: air.Device, Access: air.Read, TypeSize: 4, TypeAlign: 4},
		{Name: "y", Type: "bfloat4", Index: 5, Space: air.Device, Access: air.ReadWrite, TypeSize: 8, TypeAlign: 8},
		{Name: "shape", Type: "Shape", Index: 1, Space: air.Constant, Access: air.Read, Size: 16, TypeSize: 16, TypeAlign: 8},
		{Name: "sizes", Type: "int", Index: 9, Space: air.Constant, Access: air.Read, Size: 12, TypeSize: 4, TypeAlign: 4},
		{Name: "extra", Type: "float", Index: 2, Space: air.Device, Access: air.ReadWrite, TypeSize: 4, TypeAlign: 4, If: "wide"},
		{Name: "scratch", Type: "float", Index: 1, Space: air.Threadgroup, Access: air.ReadWrite, TypeSize: 4, TypeAlign: 4},
		{Name: "never", Type: "int", Index: 3, Space: air.Device, Access: air.Read, TypeSize: 4, TypeAlign: 4, Unused: true},
		{Name: "at", Type: "ushort2", Attribute: "thread_position_in_grid"},
		{Name: "lane", Type: "uint", Attribute: "thread_index_in_simdgroup"},
	}, k.Args)
	assert.Equal(t, []air.FunctionConstant{{Name: "wide", Index: 7, Type: "bool"}, {Name: "scale", Index: 3, Type: "float"}}, k.Constants)
	assert.Equal(t, 128, k.MaxThreadgroup)
	var bytes []int64
	for _, v := range k.Threadgroup {
		bytes = append(bytes, v.Size)
	}
	assert.ElementsMatch(t, []int64{128, 4}, bytes)
	assert.Contains(t, m, "define dso_local void @k_float_32(ptr addrspace(1)")
	assert.Contains(t, m, `@_Z4wide.MTL_FC_INIT_7_b = internal addrspace(2) externally_initialized constant i8 undef, section "air.fc_initializer", align 1`)
	assert.Contains(t, m, `@_Z5scale.MTL_FC_INIT_3_f = internal addrspace(2) externally_initialized constant float undef`)
	assert.NotContains(t, m, "unused.MTL")
}

// A function constant on which only the presence of an argument depends is in the module too.
func TestConditionAlone(t *testing.T) {
	k, m := compile(t, `
constant bool wide [[function_constant(1)]];
kernel void k(device float* x [[buffer(0)]], device float* y [[buffer(1), function_constant(wide)]]) { x[0] = 1; }
`, mslc.Options{})
	assert.Equal(t, []air.FunctionConstant{{Name: "wide", Index: 1, Type: "bool"}}, k.Constants)
	assert.Contains(t, m, "@_Z4wide.MTL_FC_INIT_1_b = internal addrspace(2)")
}

// Constants that depend on function constants are computed where they are used.
func TestComputedConstants(t *testing.T) {
	k, m := compile(t, `
constant bool a [[function_constant(1)]];
constant short n [[function_constant(2)]];
constant bool both = a && n > 3;
constant int twice =
    both ? n * 2 : 0;
kernel void k(device int* x [[buffer(0)]]) { x[0] = both ? twice : -1; }
`, mslc.Options{})
	assert.Equal(t, []air.FunctionConstant{{Name: "a", Index: 1, Type: "bool"}, {Name: "n", Index: 2, Type: "short"}}, k.Constants)
	assert.NotContains(t, m, "twice")
}

func TestOneKernelOfMany(t *testing.T) {
	const source = head + "kernel void a(device float* x [[buffer(0)]]) { x[0] = exp(x[1]); }\nkernel void b(device float* x [[buffer(0)]]) { x[0] = sin(x[1]); }\n"
	u, err := mslc.Compile(context.Background(), "k.metal", source, mslc.Options{})
	require.NoError(t, err)
	require.Len(t, u.Kernels, 2)
	b, err := u.Module("b")
	require.NoError(t, err)
	assert.NotContains(t, b, "@air.exp.f32")
	assert.NotContains(t, b, "@a(")
	again, err := u.Module("b")
	require.NoError(t, err)
	assert.Equal(t, b, again)
	one, err := mslc.Compile(context.Background(), "k.metal", source, mslc.Options{Kernels: []string{"b"}})
	require.NoError(t, err)
	require.Len(t, one.Kernels, 1)
	alone, err := one.Module("b")
	require.NoError(t, err)
	assert.Contains(t, alone, "@air.sin.f32")
	_, err = u.Module("c")
	assert.EqualError(t, err, `there is no kernel "c" among 2`)
	both, err := mslc.Compile(context.Background(), "k.metal", source, mslc.Options{Kernels: []string{"b", "a"}})
	require.NoError(t, err)
	require.Len(t, both.Kernels, 2)
	assert.Equal(t, "a", both.Kernels[0].Name, "kernels are in the order of the source")
	_, err = mslc.Compile(context.Background(), "k.metal", source, mslc.Options{Kernels: []string{"b", "c"}})
	assert.EqualError(t, err, `k.metal: there is no kernel "c" among 2`)
}

// TestSameText: a source gives the same module each time, also with lines, for caches of compiled kernels are keyed by it.
func TestSameText(t *testing.T) {
	sample.Seldom(t)
	const source = "kernel void k(device float* x [[buffer(0)]]) {\n  x[0] = exp(x[1]);\n}\n"
	for _, o := range []mslc.Options{{}, {Lines: true}, {Lines: true, Unset: true}} {
		_, first := compile(t, source, o)
		_, again := compile(t, source, o)
		assert.Equal(t, first, again, "%+v", o)
	}
}

func TestLines(t *testing.T) {
	_, m := compile(t, "kernel void k(device float* x [[buffer(0)]]) {\n  x[0] = exp(x[1]);\n}\n", mslc.Options{Lines: true})
	assert.Regexp(t, `@air\.exp\.f32\(.*!dbg`, m)
	assert.Contains(t, m, `DILocation(line: 4,`)
	assert.Contains(t, m, `filename: "k.metal"`)
}

// Metal tells functions, methods and specialisations apart by address spaces.
func TestTwins(t *testing.T) {
	k, m := compile(t, `
struct Pair {
  float a, b;
  Pair(float x) thread : a(x), b(x) {}
  Pair(float x) threadgroup : a(x), b(x) {}
  float sum() const thread { return a + b; }
  float sum() const device { return a + b; }
  float sum() constant { return a + b; }
};
template <typename T> struct element {};
template <typename T> struct element<device T*> { typedef T type; };
template <typename T> struct element<threadgroup T*> { typedef T type; };
float first(const device float* p) { return p[0]; }
float first(const threadgroup float* p) { return p[0]; }
kernel void k(device float* x [[buffer(0)]], constant Pair& p [[buffer(1)]]) {
  threadgroup float t[1];
  t[0] = 2;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  element<device float*>::type y = first(x) + first(t) + p.sum();
  x[1] = Pair(y).sum();
}
`, mslc.Options{})
	assert.Equal(t, "Pair", k.Args[1].Type)
	assert.Contains(t, m, "load float, ptr addrspace(2)")
}

// Wrong sources give an error with file and line, as far as something stands there.
func TestErrors(t *testing.T) {
	const k = "kernel void k(device float* x [[buffer(0)]])"
	for _, c := range []struct{ name, source, want string }{
		{"undeclared name", k + " { x[0] = y; }", "k.metal:3: error: use of undeclared identifier 'y'"},
		{"types", k + " { x[0] = float4(1); }", "k.metal:3: error: "},
		{"unpaired brackets", k + " { (; }", `k.metal:3: error: "}" closes nothing`},
		{"endless literal", k + " { \"", "k.metal:3: a literal does not end"},
		{"parameter without attribute", "\nkernel void k(\n  device float* x [[buffer(0)]],\n  uint i) { x[i] = 1; }", "k.metal:6: error: parameter i of kernel k has no attribute"},
		{"index too high", "kernel void k(device float* x [[buffer(31)]]) {}", "k.metal:3: error: parameter x of kernel k has the attribute [[buffer(31)]], whose index is not one of 0 to 30"},
		{"memory by value", "kernel void k(float x [[buffer(0)]]) {}", "k.metal:3: error: parameter x of kernel k is [[buffer(0)]], but no pointer, reference or array"},
		{"no address space", "kernel void k(float* x [[buffer(0)]]) {}", `k.metal:3: error: parameter x of kernel k is in the address space ""`},
		{"threadgroup memory as a buffer", "kernel void k(threadgroup float* x [[buffer(0)]]) {}", "but in the address space \"threadgroup\""},
		{"two kernels of one name", k + " {}\n[[kernel, host_name(\"k\")]] void l(device float* x [[buffer(0)]]) {}", `k.metal:4: error: host name "k" is taken by line 3`},
		{"function constant of no scalar", "constant float4 c [[function_constant(1)]];\n" + k + " {}", "k.metal:3: error: function constant c has the index \"1\" and the type \"\""},
		{"missing condition", "kernel void k(device float* x [[buffer(0), function_constant(c)]]) {}", "there is no function constant c"},
		{"twins that differ", "float f(const device float* p) { return 1; }\nfloat f(const threadgroup float* p) { return 2; }\n" + k + " { x[0] = f(x); }", "k.metal:4: error: f differs by address spaces alone from the one in line 3, and does something else"},
		{"missing header", "#include \"nothing.h\"\n" + k + " {}", "k.metal:3:10: fatal error: 'nothing.h' file not found"},
		{"newline in a name", "[[kernel, host_name(\"a\\nb\")]] void l(device float* x [[buffer(0)]]) {}", `a kernel cannot be called "a\nb"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := mslc.Compile(context.Background(), "dir/k.metal", head+c.source, mslc.Options{})
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// What compiles as C++ and is no kernel of Metal is refused when its module is asked for.
func TestRefusals(t *testing.T) {
	const k = "kernel void k(device float* x [[buffer(0)]], device int* n [[buffer(1)]])"
	for _, c := range []struct{ name, source, want string }{
		{"recursion", "__attribute__((noinline)) int f(int n, device int* p) { p[n] = n; return n < 2 ? n : f(n - 1, p) + f(n - 2, p); }\n" + k + " { n[0] = f(n[1], n); }", "is recursive"},
		{"a function that nobody defines", "float f(float);\n" + k + " { x[0] = f(x[1]); }", "which nothing defines"},
		{"a variable", "static int count = 3;\n" + k + " { n[0] = count++; }", "the value of _ZL5count is computed when a program starts, or changed"},
		{"a value that is computed at the start", "int f(int n) { return n < 2 ? 1 : n * 3; }\nint g(int n) { return f(n) / 0x7; }\nstruct S { int n; S(int m) { n = g(m); asm volatile(\"\"); } };\nconstant S s(4);\n" + k + " { n[0] = s.n; }", "is computed when a program starts"},
		{"double", k + " { x[0] = float(double(x[1]) * x[2] * x[3]); }", "computes with double"},
		{"a pointer to a function", "typedef float F(float);\n" + k + " { F* f = *(thread F**)&n[0]; x[0] = f(1); }", "through a pointer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := mslc.Compile(context.Background(), "k.metal", head+c.source, mslc.Options{})
			require.NoError(t, err)
			_, err = u.Module("k")
			assert.ErrorContains(t, err, c.want)
		})
	}
}
