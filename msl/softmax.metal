// Softmax of rows: exp(x − max) over its sum.

#include "common.h"

constexpr constant int READS = 4; // consecutive elements of a row that a thread takes at a time
constexpr constant uint LANES = 32;

// max_of_group and sum_of_group reduce v over all threads of the threadgroup:
// within each simdgroup first, then over the simdgroups' results; every thread
// gets the result. partial has LANES elements, so a threadgroup has at most 32
// simdgroups, and may be used again after a barrier.
inline float max_of_group(float v, threadgroup float* partial, uint lane, uint simdgroup) {
  v = simd_max(v);
  if (simdgroup == 0) {
    partial[lane] = -INFINITY;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    partial[simdgroup] = v;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_max(partial[lane]);
}

inline float sum_of_group(float v, threadgroup float* partial, uint lane, uint simdgroup) {
  v = simd_sum(v);
  if (simdgroup == 0) {
    partial[lane] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    partial[simdgroup] = v;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(partial[lane]);
}

// One threadgroup a row, the whole row in the registers of its threads: each
// takes READS elements, so 32·⌈axis_size/128⌉ threads cover the row. MLX's kernel
// takes fast::exp here, which has no bound worth the name (docs/terms.md).
//
// @kernel   block_softmax_{T:float32=f32|precise_float16=f16|precise_bfloat16=bf16}
// @mlx
// @arg 0 in         device {T}[rows, axis_size] read
// @arg 1 out        device {T}[rows, axis_size] write
// @arg 2 axis_size  constant i32
// @groups   rows, 1, 1
// @group    32*ceil(axis_size/128), 1, 1
// @require  axis_size >= 1 && axis_size <= 4096
// @inplace  out in
// @where    top[r] = max[softmax](j < axis_size, in[r,j])
// @where    norm[r] = 1.0 / sum[softmax](j < axis_size, exp(in[r,j] - top[r]))
// @term     out[r,i] = round({T}, exp(in[r,i] - top[r]) * norm[r])
template <typename T>
[[kernel]] void block_softmax(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant int& axis_size [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tops[LANES];
  threadgroup float sums[LANES];

  const int first = int(thread_id) * READS;
  const int count = clamp(axis_size - first, 0, READS);
  const size_t at = size_t(row) * axis_size + first;

  float v[READS];
  float top = -INFINITY;
  for (int i = 0; i < count; i++) {
    v[i] = float(in[at + i]);
    top = max(top, v[i]);
  }
  top = max_of_group(top, tops, lane, simdgroup);
  float sum = 0;
  for (int i = 0; i < count; i++) {
    v[i] = precise::exp(v[i] - top);
    sum += v[i];
  }
  const float norm = 1.0f / sum_of_group(sum, sums, lane, simdgroup);
  for (int i = 0; i < count; i++) {
    out[at + i] = stored(T(v[i] * norm));
  }
}

// The same for rows of any length: the threadgroup walks the row three times,
// for the maximum, the sum and the results. MLX's walks it twice and corrects
// its sums as the maximum rises, which is another order of roundings.
//
// @kernel   looped_softmax_{T:float32=f32|precise_float16=f16|precise_bfloat16=bf16}
// @mlx
// @arg 0 in         device {T}[rows, axis_size] read
// @arg 1 out        device {T}[rows, axis_size] write
// @arg 2 axis_size  constant i32
// @groups   rows, 1, 1
// @group    threads, 1, 1
// @require  axis_size >= 1
// @require  threads % 32 == 0 && threads >= 32 && threads <= 1024
// @inplace  out in
// @where    top[r] = max[softmax_looped](j < axis_size, in[r,j])
// @where    norm[r] = 1.0 / sum[softmax_looped](j < axis_size, exp(in[r,j] - top[r]))
// @term     out[r,i] = round({T}, exp(in[r,i] - top[r]) * norm[r])
template <typename T>
[[kernel]] void looped_softmax(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant int& axis_size [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tops[LANES];
  threadgroup float sums[LANES];

  in += size_t(row) * axis_size;
  out += size_t(row) * axis_size;
  const int step = int(threads) * READS;

  float top = -INFINITY;
  for (int first = int(thread_id) * READS; first < axis_size; first += step) {
    const int count = min(READS, axis_size - first);
    for (int i = 0; i < count; i++) {
      top = max(top, float(in[first + i]));
    }
  }
  top = max_of_group(top, tops, lane, simdgroup);
  float sum = 0;
  for (int first = int(thread_id) * READS; first < axis_size; first += step) {
    const int count = min(READS, axis_size - first);
    for (int i = 0; i < count; i++) {
      sum += precise::exp(float(in[first + i]) - top);
    }
  }
  const float norm = 1.0f / sum_of_group(sum, sums, lane, simdgroup);
  for (int first = int(thread_id) * READS; first < axis_size; first += step) {
    const int count = min(READS, axis_size - first);
    for (int i = 0; i < count; i++) {
      out[first + i] = stored(T(precise::exp(float(in[first + i]) - top) * norm));
    }
  }
}

#define INSTANTIATE_SOFTMAX(name, T)                                                                       \
  template [[host_name("block_softmax_" #name)]] [[kernel]] decltype(block_softmax<T>) block_softmax<T>;    \
  template [[host_name("looped_softmax_" #name)]] [[kernel]] decltype(looped_softmax<T>) looped_softmax<T>;

INSTANTIATE_SOFTMAX(float32, float)
INSTANTIATE_SOFTMAX(precise_float16, half)
INSTANTIATE_SOFTMAX(precise_bfloat16, bfloat)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Softmax: one threadgroup a row, 4 elements a thread.
//
// @witness block_softmax_* ; axis_size=576 ; groups 5 1 1 / 160 1 1 ; ok
// @witness block_softmax_* ; axis_size=576 ; threads 800 1 1 / 160 1 1 ; ok
// @witness block_softmax_* ; axis_size=576 inplace=out,in ; groups 5 1 1 / 160 1 1 ; ok
// @witness block_softmax_* ; axis_size=129 ; groups 5 1 1 / 64 1 1 ; ok
// @witness block_softmax_* ; axis_size=1 ; groups 1 1 1 / 32 1 1 ; ok
// @witness block_softmax_* ; axis_size=4096 ; groups 3 1 1 / 1024 1 1 ; ok
// @witness block_softmax_* ; axis_size=4097 ; groups 3 1 1 / 1056 1 1 ; refused
// @witness block_softmax_* ; axis_size=0 ; groups 3 1 1 / 0 1 1 ; refused
// @witness block_softmax_* ; axis_size=576 ; groups 5 1 1 / 192 1 1 ; refused
// @witness block_softmax_* ; axis_size=576 ; threads 700 1 1 / 160 1 1 ; refused
// @witness looped_softmax_* ; axis_size=5000 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness looped_softmax_* ; axis_size=5000 inplace=out,in ; groups 2 1 1 / 1024 1 1 ; ok
// @witness looped_softmax_* ; axis_size=1 ; groups 2 1 1 / 32 1 1 ; ok
// @witness looped_softmax_* ; axis_size=0 ; groups 2 1 1 / 32 1 1 ; refused
// @witness looped_softmax_* ; axis_size=64 ; groups 2 1 1 / {0|48|1056} 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent looped_softmax_* ; require: 1024 -> 1025 ; threads is a multiple of 32
// @equivalent *_softmax_* ; operation: top: max[* ; exp(x - c) / Σ exp(x - c) is one number for every c; where it overflows or underflows, nothing is said of it
