// A residual and the L2 norm of it, as one kernel.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

// What a store leaves of a result: of a NaN, the one NaN, whichever operation
// made it (docs/terms.md, "Stores"). Bits are compared, which fast-math leaves alone.
inline float stored(float v) {
  return (as_type<uint>(v) & 0x7fffffffu) > 0x7f800000u ? as_type<float>(0x7fc00000u) : v;
}

// One threadgroup a row. Its sum is that of l2_norm, element by element: the two share
// a class, so that this kernel may stand for an addition and an l2_norm.
//
// @kernel   add_l2_norm_float32
// @arg 0 a          device f32[rows, axis_size] read
// @arg 1 b          device f32[rows, axis_size] read
// @arg 2 residual   device f32[rows, axis_size] write
// @arg 3 out        device f32[rows, axis_size] write
// @arg 4 eps        constant f32
// @arg 5 axis_size  constant u32
// @groups   rows, 1, 1
// @group    threads, 1, 1
// @require  axis_size >= 1
// @require  threads % 32 == 0 && threads >= 32 && threads <= 1024
// @inplace  residual a
// @inplace  residual b
// @inplace  out a
// @inplace  out b
// @where    x[r,i] = a[r,i] + b[r,i]
// @where    inv[r] = 1.0 / max(sqrt(sum[l2_norm](k < axis_size, x[r,k] * x[r,k])), eps)
// @term     residual[r,i] = round(f32, x[r,i])
// @term     out[r,i] = round(f32, x[r,i] * inv[r])
[[host_name("add_l2_norm_float32")]] [[kernel]] void add_l2_norm(
    const device float* a [[buffer(0)]],
    const device float* b [[buffer(1)]],
    device float* residual [[buffer(2)]],
    device float* out [[buffer(3)]],
    constant float& eps [[buffer(4)]],
    constant uint& axis_size [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[32];

  const size_t first = size_t(row) * axis_size;
  float sum = 0;
  for (uint i = thread_id; i < axis_size; i += threads) {
    const float v = a[first + i] + b[first + i];
    residual[first + i] = stored(v);
    sum += v * v;
  }
  sum = simd_sum(sum);
  if (simdgroup == 0) {
    partial[lane] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    partial[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float inv = 1.0f / fmax(precise::sqrt(simd_sum(partial[lane])), eps);
  for (uint i = thread_id; i < axis_size; i += threads) {
    out[first + i] = stored(residual[first + i] * inv);
  }
}

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness add_l2_norm_float32 ; axis_size=576 ; groups 5 1 1 / 160 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=576 inplace=residual,a ; groups 5 1 1 / 160 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=576 inplace=residual,b ; groups 5 1 1 / 160 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=576 inplace=out,a ; groups 5 1 1 / 160 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=576 inplace=out,b ; groups 5 1 1 / 160 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=5000 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=1 ; groups 1 1 1 / 32 1 1 ; ok
// @witness add_l2_norm_float32 ; axis_size=0 ; groups 1 1 1 / 32 1 1 ; refused
// @witness add_l2_norm_float32 ; axis_size=64 ; groups 1 1 1 / 0 1 1 ; refused
// @witness add_l2_norm_float32 ; axis_size=64 ; groups 1 1 1 / 48 1 1 ; refused
// @witness add_l2_norm_float32 ; axis_size=64 ; groups 1 1 1 / 1056 1 1 ; refused
//
// @equivalent add_l2_norm_* ; require: 1024 -> 1025 ; threads is a multiple of 32
// @equivalent add_l2_norm_* ; slot: a exchanged with b ; a + b = b + a, to the bit
