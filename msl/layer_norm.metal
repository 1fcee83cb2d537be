// Layer normalisation of rows, and its gradient.

#include "common.h"

// A threadgroup holds a row of so many elements at most, or walks it with any number of simdgroups.
//
// @lines   rows(most)
// @if      C == layer_norm
// @group   32*ceil(axis_size/256), 1, 1
// @require axis_size >= 1 && axis_size <= {most}
// @else
// @group   threads, 1, 1
// @require axis_size >= 1
// @require threads % 32 == 0 && threads >= 32 && threads <= 1024
// @end
// @end

// Whether the gradient of the weight is wanted, row by row; MLX's constant.
constant bool has_w [[function_constant(20)]];

constexpr constant int HELD = 8;  // elements that a thread adds up where the threadgroup holds a row
constexpr constant int READS = 4; // elements that a thread takes at a time
constexpr constant uint LANES = 32;

// take reads `count` elements, at most READS, and makes zeros of the others; put writes
// as many. Both move all at once where the elements lie so. One by one they go backwards:
// else clang makes one access to the last element here and the last one above, for both.
template <typename T>
inline void take(const device T* p, int count, thread T* v) {
  typedef vec<T, READS> All;
  if (count == READS && (ulong(p) & (READS * sizeof(T) - 1)) == 0) {
    const All all = *(const device All*)p;
    v[0] = all.x;
    v[1] = all.y;
    v[2] = all.z;
    v[3] = all.w;
    return;
  }
#pragma unroll
  for (int i = READS - 1; i >= 0; i--) {
    v[i] = i < count ? p[i] : T(0);
  }
}
template <typename T>
inline void put(device T* p, int count, const thread T* v) {
  typedef vec<T, READS> All;
  if (count == READS && (ulong(p) & (READS * sizeof(T) - 1)) == 0) {
    All all;
    all.x = v[0];
    all.y = v[1];
    all.z = v[2];
    all.w = v[3];
    *(device All*)p = all;
    return;
  }
#pragma unroll
  for (int i = READS - 1; i >= 0; i--) {
    if (i < count) {
      p[i] = v[i];
    }
  }
}

// take_weights is take for weights of a stride, 0 or 1 mostly.
template <typename T>
inline void take_weights(const device T* w, size_t stride, uint first, int count, thread T* v) {
  if (stride == 1) {
    take(w + first, count, v);
    return;
  }
#pragma unroll
  for (int i = READS - 1; i >= 0; i--) {
    v[i] = i < count ? w[stride * (first + i)] : T(0);
  }
}

// In memory a thread of a threadgroup that holds a row moves other elements than it
// adds up: of the 16 that it and its neighbour add up, 8 each, it takes 4 of the first 8
// and 4 of the last. So the two fill 32 bytes at a time, which memory moves at once, where
// each by itself would move half of them twice. held_at is the first of its first four;
// the others are 8 further on. count_at is how many of four a row has there.
inline uint held_at(uint thread_id) { return thread_id / 2 * (2 * HELD) + thread_id % 2 * READS; }
inline int count_at(uint first, uint axis_size) { return first < axis_size ? min(READS, int(axis_size - first)) : 0; }

// exchange makes what a thread adds up of what it and its neighbour have taken.
inline void exchange(const thread float* taken, uint thread_id, thread float* v) {
  const bool second = thread_id % 2 != 0;
#pragma unroll
  for (int i = 0; i < READS; i++) {
    const float other = simd_shuffle_xor(second ? taken[i] : taken[READS + i], 1);
    v[i] = second ? other : taken[i];
    v[READS + i] = second ? taken[READS + i] : other;
  }
}

// sum_of_group adds each of N numbers over all threads of the threadgroup, for
// all of them: within each simdgroup first, then the simdgroups' sums, absent
// ones as zero. partial has N·LANES elements, so a threadgroup has at most 32
// simdgroups; it is not used again, so nobody waits before it is written.
template <int N>
inline void sum_of_group(thread float* acc, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    acc[i] = simd_sum(acc[i]);
  }
  if (lane == 0) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      partial[N * simdgroup + i] = acc[i];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int i = 0; i < N; i++) {
    acc[i] = simd_sum(lane < simdgroups ? partial[N * lane + i] : 0.0f);
  }
}

// mean_of_row adds up what the threads hold, zero where a row ended.
inline float mean_of_row(const thread float* v, uint axis_size, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
  float acc[1] = {0};
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    acc[0] += v[i];
  }
  sum_of_group<1>(acc, partial, lane, simdgroup, simdgroups);
  return acc[0] / float(axis_size);
}

// mean_of_walk is the mean of a row in memory.
template <typename T>
inline float mean_of_walk(
    const device T* x, uint axis_size, uint thread_id, uint threads, threadgroup float* partial, uint lane, uint simdgroup) {
  float acc[1] = {0};
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    take(x + first, count, v);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      acc[0] += float(v[i]);
    }
  }
  sum_of_group<1>(acc, partial, lane, simdgroup, threads / LANES);
  return acc[0] / float(axis_size);
}

// One threadgroup a row, the whole row in the registers of its threads: each
// holds 8 elements, so 32·⌈axis_size/256⌉ threads cover the row. w and b of
// stride 0 are one element for all: MLX binds a one and a zero where there is
// no weight or bias.
//
// @kernel  {C:layer_norm|layer_norm_looped}{T:float32=f32|float16=f16|bfloat16=bf16}
// @mlx
// @arg     x          device {T}[rows, axis_size] read
// @arg     w          device {T}[axis_size : w_stride] read
// @arg     b          device {T}[axis_size : b_stride] read
// @arg     out        device {T}[rows, axis_size] write
// @arg     eps        constant f32
// @arg     axis_size  constant u32
// @arg     w_stride   constant u32
// @arg     b_stride   constant u32
// @groups  rows, 1, 1
// @use     rows(6656)
// @inplace out x
// @where   mean[r] = sum[{C}](k < axis_size, x[r,k]) / f32(axis_size)
// @where   c[r,i] = x[r,i] - mean[r]
// @where   inv[r] = rsqrt(sum[{C}](k < axis_size, c[r,k] * c[r,k]) / f32(axis_size) + eps)
// @term    out[r,i] = round({T}, round({T}, w[i] * round({T}, c[r,i] * inv[r])) + b[i])
template <typename T>
[[kernel]] void layer_norm(
    const device T* x [[buffer(0)]],
    const device T* w [[buffer(1)]],
    const device T* b [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant float& eps [[buffer(4)]],
    constant uint& axis_size [[buffer(5)]],
    constant uint& w_stride [[buffer(6)]],
    constant uint& b_stride [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[LANES];
  threadgroup float squares[LANES];

  const uint first = held_at(thread_id);
  const size_t begin = size_t(row) * axis_size;
  T taken[HELD];
  float raw[HELD];
  float v[HELD];
#pragma unroll
  for (int j = 0; j < HELD; j += READS) {
    const uint at = first + 2 * j;
    take(x + begin + at, count_at(at, axis_size), taken + j);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      raw[j + i] = float(taken[j + i]);
    }
  }
  exchange(raw, thread_id, v);
  const float mean = mean_of_row(v, axis_size, sums, lane, simdgroup, simdgroups);
  float acc[1] = {0};
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    const float c = thread_id * HELD + i < axis_size ? v[i] - mean : 0.0f;
    acc[0] += c * c;
  }
  sum_of_group<1>(acc, squares, lane, simdgroup, simdgroups);
  const float inv = precise::rsqrt(acc[0] / float(axis_size) + eps);
#pragma unroll
  for (int j = 0; j < HELD; j += READS) {
    const uint at = first + 2 * j;
    const int count = count_at(at, axis_size);
    T weights[READS];
    T biases[READS];
    take_weights(w, w_stride, at, count, weights);
    take_weights(b, b_stride, at, count, biases);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      const T scaled = weights[i] * T((raw[j + i] - mean) * inv);
      taken[j + i] = stored(scaled + biases[i]);
    }
    put(out + begin + at, count, taken + j);
  }
}

// The same for rows of any length: the threadgroup walks the row three times.
template <typename T>
[[kernel]] void layer_norm_looped(
    const device T* x [[buffer(0)]],
    const device T* w [[buffer(1)]],
    const device T* b [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant float& eps [[buffer(4)]],
    constant uint& axis_size [[buffer(5)]],
    constant uint& w_stride [[buffer(6)]],
    constant uint& b_stride [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[LANES];
  threadgroup float squares[LANES];

  x += size_t(row) * axis_size;
  out += size_t(row) * axis_size;

  const float mean = mean_of_walk(x, axis_size, thread_id, threads, sums, lane, simdgroup);
  float acc[1] = {0};
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    take(x + first, count, v);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      const float c = i < count ? float(v[i]) - mean : 0.0f;
      acc[0] += c * c;
    }
  }
  sum_of_group<1>(acc, squares, lane, simdgroup, threads / LANES);
  const float inv = precise::rsqrt(acc[0] / float(axis_size) + eps);
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    T weights[READS];
    T biases[READS];
    take(x + first, count, v);
    take_weights(w, w_stride, first, count, weights);
    take_weights(b, b_stride, first, count, biases);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      const T scaled = weights[i] * T((float(v[i]) - mean) * inv);
      v[i] = stored(scaled + biases[i]);
    }
    put(out + first, count, v);
  }
}

// The gradient, for the gradient g of the result: gx that of x, and gw, with
// has_w, row by row what is to be added up for that of w; without, gw is not
// touched, whatever is bound (MLX binds w). The gradient of b is the sum of the
// rows of g. A thread has its elements of x and g before it stores any.
//
// @kernel  vjp_{C:layer_norm|layer_norm_looped}{T:float32=f32|float16=f16|bfloat16=bf16}
// @mlx
// @constant 20 has_w bool
// @arg     x          device {T}[rows, axis_size] read
// @arg     w          device {T}[axis_size : w_stride] read
// @arg     g          device {T}[rows, axis_size] read
// @arg     gx         device {T}[rows, axis_size] write
// @arg     gw         device {T}[has_w*rows, axis_size] write
// @arg     eps        constant f32
// @arg     axis_size  constant u32
// @arg     w_stride   constant u32
// @groups  rows, 1, 1
// @use     rows(8192)
// @inplace gx x
// @inplace gx g
// @inplace gw x
// @inplace gw g
// @where   mean[r] = sum[{C}](k < axis_size, x[r,k]) / f32(axis_size)
// @where   c[r,i] = x[r,i] - mean[r]
// @where   wg[r,i] = w[i] * g[r,i]
// @where   mean_wg[r] = sum[{C}](k < axis_size, wg[r,k]) / f32(axis_size)
// @where   mean_wgc[r] = sum[{C}](k < axis_size, wg[r,k] * c[r,k]) / f32(axis_size)
// @where   inv2[r] = 1.0 / (sum[{C}](k < axis_size, c[r,k] * c[r,k]) / f32(axis_size) + eps)
// @where   norm[r,i] = c[r,i] * sqrt(inv2[r])
// @term    gx[r,i] = round({T}, sqrt(inv2[r]) * (wg[r,i] - mean_wg[r]) - norm[r,i] * mean_wgc[r] * inv2[r])
// @term    gw[r,i] = round({T}, g[r,i] * norm[r,i])
template <typename T>
[[kernel]] void vjp_layer_norm(
    const device T* x [[buffer(0)]],
    const device T* w [[buffer(1)]],
    const device T* g [[buffer(2)]],
    device T* gx [[buffer(3)]],
    device T* gw [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    constant uint& axis_size [[buffer(6)]],
    constant uint& w_stride [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[LANES];
  threadgroup float products[3 * LANES];

  const uint first = held_at(thread_id);
  const size_t begin = size_t(row) * axis_size;
  float raw[HELD];
  float gs[HELD];
  float wgs[HELD];
#pragma unroll
  for (int j = 0; j < HELD; j += READS) {
    const uint at = first + 2 * j;
    const int count = count_at(at, axis_size);
    T taken[READS];
    T weights[READS];
    take(x + begin + at, count, taken);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      raw[j + i] = float(taken[i]);
    }
    take(g + begin + at, count, taken);
    take_weights(w, w_stride, at, count, weights);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      gs[j + i] = float(taken[i]);
      wgs[j + i] = i < count ? float(weights[i]) * gs[j + i] : 0.0f;
    }
  }
  float v[HELD];
  float wg[HELD];
  exchange(raw, thread_id, v);
  exchange(wgs, thread_id, wg);
  const float mean = mean_of_row(v, axis_size, sums, lane, simdgroup, simdgroups);
  float acc[3] = {0};
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    const float c = thread_id * HELD + i < axis_size ? v[i] - mean : 0.0f;
    acc[0] += wg[i];
    acc[1] += wg[i] * c;
    acc[2] += c * c;
  }
  sum_of_group<3>(acc, products, lane, simdgroup, simdgroups);
  const float mean_wg = acc[0] / float(axis_size);
  const float mean_wgc = acc[1] / float(axis_size);
  const float inv2 = 1.0f / (acc[2] / float(axis_size) + eps);
  const float inv = precise::sqrt(inv2);
#pragma unroll
  for (int j = 0; j < HELD; j += READS) {
    const uint at = first + 2 * j;
    const int count = count_at(at, axis_size);
    T results[READS];
    T each[READS];
#pragma unroll
    for (int i = 0; i < READS; i++) {
      const float norm = (raw[j + i] - mean) * inv;
      results[i] = stored(T(inv * (wgs[j + i] - mean_wg) - norm * mean_wgc * inv2));
      each[i] = stored(T(gs[j + i] * norm));
    }
    put(gx + begin + at, count, results);
    if (has_w) {
      put(gw + begin + at, count, each);
    }
  }
}

// The same for rows of any length. In the last walk a thread reads its element of
// x and g before it stores that of gx and gw.
template <typename T>
[[kernel]] void vjp_layer_norm_looped(
    const device T* x [[buffer(0)]],
    const device T* w [[buffer(1)]],
    const device T* g [[buffer(2)]],
    device T* gx [[buffer(3)]],
    device T* gw [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    constant uint& axis_size [[buffer(6)]],
    constant uint& w_stride [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[LANES];
  threadgroup float products[3 * LANES];

  x += size_t(row) * axis_size;
  g += size_t(row) * axis_size;
  gx += size_t(row) * axis_size;

  const float mean = mean_of_walk(x, axis_size, thread_id, threads, sums, lane, simdgroup);
  float acc[3] = {0};
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    T gs[READS];
    T weights[READS];
    take(x + first, count, v);
    take(g + first, count, gs);
    take_weights(w, w_stride, first, count, weights);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      if (i < count) {
        const float c = float(v[i]) - mean;
        const float wg = float(weights[i]) * float(gs[i]);
        acc[0] += wg;
        acc[1] += wg * c;
        acc[2] += c * c;
      }
    }
  }
  sum_of_group<3>(acc, products, lane, simdgroup, threads / LANES);
  const float mean_wg = acc[0] / float(axis_size);
  const float mean_wgc = acc[1] / float(axis_size);
  const float inv2 = 1.0f / (acc[2] / float(axis_size) + eps);
  const float inv = precise::sqrt(inv2);
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    T gs[READS];
    T weights[READS];
    take(x + first, count, v);
    take(g + first, count, gs);
    take_weights(w, w_stride, first, count, weights);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      const float gi = float(gs[i]);
      const float norm = (float(v[i]) - mean) * inv;
      const float wg = float(weights[i]) * gi;
      v[i] = stored(T(inv * (wg - mean_wg) - norm * mean_wgc * inv2));
      gs[i] = stored(T(gi * norm));
    }
    put(gx + first, count, v);
    if (has_w) {
      put(gw + size_t(row) * axis_size + first, count, gs);
    }
  }
}

template [[host_name("layer_normfloat32")]] [[kernel]] decltype(layer_norm<float>) layer_norm<float>;
template [[host_name("layer_normfloat16")]] [[kernel]] decltype(layer_norm<half>) layer_norm<half>;
template [[host_name("layer_normbfloat16")]] [[kernel]] decltype(layer_norm<bfloat>) layer_norm<bfloat>;
template [[host_name("layer_norm_loopedfloat32")]] [[kernel]] decltype(layer_norm_looped<float>) layer_norm_looped<float>;
template [[host_name("layer_norm_loopedfloat16")]] [[kernel]] decltype(layer_norm_looped<half>) layer_norm_looped<half>;
template [[host_name("layer_norm_loopedbfloat16")]] [[kernel]] decltype(layer_norm_looped<bfloat>) layer_norm_looped<bfloat>;
template [[host_name("vjp_layer_normfloat32")]] [[kernel]] decltype(vjp_layer_norm<float>) vjp_layer_norm<float>;
template [[host_name("vjp_layer_normfloat16")]] [[kernel]] decltype(vjp_layer_norm<half>) vjp_layer_norm<half>;
template [[host_name("vjp_layer_normbfloat16")]] [[kernel]] decltype(vjp_layer_norm<bfloat>) vjp_layer_norm<bfloat>;
template [[host_name("vjp_layer_norm_loopedfloat32")]] [[kernel]] decltype(vjp_layer_norm_looped<float>) vjp_layer_norm_looped<float>;
template [[host_name("vjp_layer_norm_loopedfloat16")]] [[kernel]] decltype(vjp_layer_norm_looped<half>) vjp_layer_norm_looped<half>;
template [[host_name("vjp_layer_norm_loopedbfloat16")]] [[kernel]] decltype(vjp_layer_norm_looped<bfloat>) vjp_layer_norm_looped<bfloat>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Layer norms: one threadgroup a row, 8 elements a thread, or 1024 threads that walk it.
//
// @witness layer_norm[bf]*loat?? ; axis_size=576 w_stride=1 b_stride=1 ; threads 480 1 1 / 96 1 1 ; ok
// @witness layer_norm[bf]*loat?? ; axis_size=576 w_stride=1 b_stride=0 ; groups 5 1 1 / 96 1 1 ; ok
// @witness layer_norm[bf]*loat?? ; axis_size=576 w_stride=0 b_stride=1 inplace=out,x ; groups 5 1 1 / 96 1 1 ; ok
// @witness layer_norm[bf]*loat?? ; axis_size=257 w_stride=1 b_stride=2 ; groups 5 1 1 / 64 1 1 ; ok
// @witness layer_norm[bf]*loat?? ; axis_size=1 w_stride=0 b_stride=0 ; groups 1 1 1 / 32 1 1 ; ok
// @witness layer_norm[bf]*loat?? ; axis_size=6656 w_stride=1 b_stride=1 ; groups 3 1 1 / 832 1 1 ; ok
// @witness layer_norm[bf]*loat?? ; axis_size=6657 w_stride=1 b_stride=1 ; groups 3 1 1 / 864 1 1 ; refused
// @witness layer_norm[bf]*loat?? ; axis_size=0 w_stride=1 b_stride=1 ; groups 3 1 1 / 0 1 1 ; refused
// @witness layer_norm[bf]*loat?? ; axis_size=576 w_stride=1 b_stride=1 ; groups 5 1 1 / 160 1 1 ; refused
// @witness layer_norm[bf]*loat?? ; axis_size=576 w_stride=1 b_stride=1 ; threads 470 1 1 / 96 1 1 ; refused
// @witness layer_norm[bf]*loat?? ; axis_size=576 w_stride=1 b_stride=1 inplace=out,{w|b} ; groups 1 1 1 / 96 1 1 ; refused
// @witness layer_norm_looped*float?? ; axis_size=7000 w_stride=1 b_stride=1 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness layer_norm_looped*float?? ; axis_size=7000 w_stride=1 b_stride=1 inplace=out,x ; groups 2 1 1 / 1024 1 1 ; ok
// @witness layer_norm_looped*float?? ; axis_size=1 w_stride=1 b_stride=0 ; groups 2 1 1 / 32 1 1 ; ok
// @witness layer_norm_looped*float?? ; axis_size=0 w_stride=1 b_stride=1 ; groups 2 1 1 / 32 1 1 ; refused
// @witness layer_norm_looped*float?? ; axis_size=64 w_stride=1 b_stride=1 ; groups 2 1 1 / {0|48|1056} 1 1 ; refused
// @witness layer_norm_looped*float?? ; axis_size=7000 w_stride=1 b_stride=1 inplace=out,w ; groups 1 1 1 / 1024 1 1 ; refused
//
// Their gradients; the memory of x or g may become that of gx and, without sharing, of gw.
//
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20=1 axis_size=576 w_stride=1 ; threads 480 1 1 / 96 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20=0 axis_size=576 w_stride=0 ; groups 5 1 1 / 96 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=576 w_stride=1 inplace=gx,{x|g} ; groups 5 1 1 / 96 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20=1 axis_size=576 w_stride=1 inplace=gw,{x|g} ; groups 5 1 1 / 96 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20=1 axis_size=576 w_stride=1 inplace=gx,gw ; groups 5 1 1 / 96 1 1 ; refused
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=1 w_stride=1 ; groups 1 1 1 / 32 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=257 w_stride=1 ; groups 5 1 1 / 64 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=8192 w_stride=1 ; groups 3 1 1 / 1024 1 1 ; ok
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=8193 w_stride=1 ; groups 3 1 1 / 1056 1 1 ; refused
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=0 w_stride=1 ; groups 3 1 1 / 0 1 1 ; refused
// @witness vjp_layer_norm[bf]*loat?? ; has_w@20={1|0} axis_size=576 w_stride=1 ; groups 5 1 1 / 160 1 1 ; refused
// @witness vjp_layer_norm_looped*float?? ; has_w@20=1 axis_size=8200 w_stride=1 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness vjp_layer_norm_looped*float?? ; has_w@20=0 axis_size=8200 w_stride=0 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness vjp_layer_norm_looped*float?? ; has_w@20={1|0} axis_size=8200 w_stride=1 inplace=gx,{x|g} ; groups 2 1 1 / 1024 1 1 ; ok
// @witness vjp_layer_norm_looped*float?? ; has_w@20=1 axis_size=8200 w_stride=1 inplace=gw,{x|g} ; groups 2 1 1 / 1024 1 1 ; ok
// @witness vjp_layer_norm_looped*float?? ; has_w@20={1|0} axis_size=1 w_stride=1 ; groups 2 1 1 / 32 1 1 ; ok
// @witness vjp_layer_norm_looped*float?? ; has_w@20={1|0} axis_size=0 w_stride=1 ; groups 2 1 1 / 32 1 1 ; refused
// @witness vjp_layer_norm_looped*float?? ; has_w@20={1|0} axis_size=64 w_stride=1 ; groups 2 1 1 / {0|48|1056} 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent *layer_norm_looped* ; require: 1024 -> 1025 ; threads is a multiple of 32
