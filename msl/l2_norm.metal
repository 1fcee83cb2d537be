// L2 normalization of rows: x over its length, as ggml's l2_norm has it.

#include "common.h"

// One threadgroup a row, which its threads walk twice: for the sum and for the results.
//
// @kernel   l2_norm_{T:float32=f32}
// @arg 0 x          device {T}[rows, axis_size] read
// @arg 1 out        device {T}[rows, axis_size] write
// @arg 2 eps        constant f32
// @arg 3 axis_size  constant u32
// @groups   rows, 1, 1
// @group    threads, 1, 1
// @require  axis_size >= 1
// @require  threads % 32 == 0 && threads >= 32 && threads <= 1024
// @inplace  out x
// @where    inv[r] = 1.0 / max(sqrt(sum[l2_norm](k < axis_size, x[r,k] * x[r,k])), eps)
// @term     out[r,i] = round({T}, x[r,i] * inv[r])
template <typename T>
[[kernel]] void l2_norm(
    const device T* x [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant float& eps [[buffer(2)]],
    constant uint& axis_size [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[32];

  x += size_t(row) * axis_size;
  out += size_t(row) * axis_size;
  float sum = 0;
  for (uint i = thread_id; i < axis_size; i += threads) {
    const float v = float(x[i]);
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
    out[i] = T(stored(float(x[i]) * inv));
  }
}

template [[host_name("l2_norm_float32")]] [[kernel]] decltype(l2_norm<float>) l2_norm<float>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness l2_norm_float32 ; axis_size=576 ; groups 5 1 1 / 160 1 1 ; ok
// @witness l2_norm_float32 ; axis_size=576 inplace=out,x ; groups 5 1 1 / 160 1 1 ; ok
// @witness l2_norm_float32 ; axis_size=5000 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness l2_norm_float32 ; axis_size=1 ; groups 1 1 1 / 32 1 1 ; ok
// @witness l2_norm_float32 ; axis_size=0 ; groups 1 1 1 / 32 1 1 ; refused
// @witness l2_norm_float32 ; axis_size=64 ; groups 1 1 1 / {0|48|1056} 1 1 ; refused
//
// @equivalent l2_norm_* ; require: 1024 -> 1025 ; threads is a multiple of 32
