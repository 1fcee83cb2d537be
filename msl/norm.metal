// Root-mean-square normalisation of rows.

#include "common.h"

// A threadgroup holds a row, or walks it with any number of simdgroups.
//
// @lines   rows()
// @if      C == rms
// @group   32*ceil(axis_size/128), 1, 1
// @require axis_size >= 1 && axis_size <= 4096
// @else
// @group   threads, 1, 1
// @require axis_size >= 1
// @require threads % 32 == 0 && threads >= 32 && threads <= 1024
// @end
// @end

constexpr constant int READS = 4; // consecutive elements of a row that a thread takes at a time
constexpr constant uint LANES = 32;

// take reads `count` elements, at most READS, and makes zeros of the others. put
// writes as many. Both do it at once where the elements lie so. One by one they go
// backwards: else clang makes one access to the last element here and the last one above,
// for both.
template <typename T>
inline void take(const device T* p, int count, thread T* v) {
  typedef vec<T, READS> All;
  if (count == READS && (ulong(p) & (READS * sizeof(T) - 1)) == 0) {
    const All all = *(const device All*)p;
#pragma unroll
    for (int i = 0; i < READS; i++) {
      v[i] = all[i];
    }
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

// take_weights is take for weights of a stride, 0 or 1 mostly. One for all is read once.
template <typename T>
inline void take_weights(const device T* w, size_t stride, uint first, int count, thread T* v) {
  if (stride == 1) {
    take(w + first, count, v);
    return;
  }
  if (stride == 0) {
    const T one = count > 0 ? w[0] : T(0);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      v[i] = one;
    }
    return;
  }
#pragma unroll
  for (int i = READS - 1; i >= 0; i--) {
    v[i] = i < count ? w[stride * (first + i)] : T(0);
  }
}

// sum_of_group adds acc over all threads of the threadgroup, for all of them: within
// each simdgroup first, then the simdgroups' sums, absent ones as zero. partial has
// LANES elements, so a threadgroup has at most 32 simdgroups. Each simdgroup adds the
// sums up itself: one that did it for all would have all wait for it once more.
inline float sum_of_group(float acc, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
  acc = simd_sum(acc);
  if (lane == 0) {
    partial[simdgroup] = acc;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(lane < simdgroups ? partial[lane] : 0.0f);
}

// One threadgroup a row, the whole row in the registers of its threads: each
// takes READS elements, so 32·⌈axis_size/128⌉ threads cover the row.
//
// @kernel  {C:rms|rms_looped}{T:{floats()}}
// @mlx
// @arg     x          device {T}[rows, axis_size] read
// @arg     w          device {T}[axis_size : w_stride] read
// @arg     out        device {T}[rows, axis_size] write
// @arg     eps        constant f32
// @arg     axis_size  constant u32
// @arg     w_stride   constant u32
// @groups  rows, 1, 1
// @use     rows()
// @inplace out x
// @inplace out w  -- one row: each weight is read by the thread that overwrites it
// @where   inv[r] = rsqrt(sum[{C}](k < axis_size, x[r,k] * x[r,k]) / f32(axis_size) + eps)
// @term    out[r,i] = round({T}, w[i] * round({T}, x[r,i] * inv[r]))
template <typename T>
[[kernel]] void rms(
    const device T* x [[buffer(0)]],
    const device T* w [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant float& eps [[buffer(3)]],
    constant uint& axis_size [[buffer(4)]],
    constant uint& w_stride [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[LANES];

  const uint first = thread_id * READS;
  const int count = first < axis_size ? min(READS, int(axis_size - first)) : 0;
  const size_t at = size_t(row) * axis_size + first;

  T weights[READS];
  take_weights(w, w_stride, first, count, weights);
  wait_for_dispatches();
  T v[READS];
  take(x + at, count, v);
  float acc = 0;
#pragma unroll
  for (int i = 0; i < READS; i++) {
    acc += float(v[i]) * float(v[i]);
  }
  acc = sum_of_group(acc, partial, lane, simdgroup, simdgroups);
  const float inv = precise::rsqrt(acc / float(axis_size) + eps);
#pragma unroll
  for (int i = 0; i < READS; i++) {
    v[i] = stored(weights[i] * T(float(v[i]) * inv));
  }
  put(out + at, count, v);
}

// The same for rows of any length: the threadgroup walks the row twice.
template <typename T>
[[kernel]] void rms_looped(
    const device T* x [[buffer(0)]],
    const device T* w [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant float& eps [[buffer(3)]],
    constant uint& axis_size [[buffer(4)]],
    constant uint& w_stride [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[LANES];

  x += size_t(row) * axis_size;
  out += size_t(row) * axis_size;

  float acc = 0;
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    take(x + first, count, v);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      acc += float(v[i]) * float(v[i]);
    }
  }
  acc = sum_of_group(acc, partial, lane, simdgroup, threads / LANES);
  const float inv = precise::rsqrt(acc / float(axis_size) + eps);
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    T weights[READS];
    take(x + first, count, v);
    take_weights(w, w_stride, first, count, weights);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      v[i] = stored(weights[i] * T(float(v[i]) * inv));
    }
    put(out + first, count, v);
  }
}

// The sum of two arrays and its norm: what begins a transformer block. A thread
// has its elements of both in registers before it stores any.
//
// @kernel  add_{C:rms|rms_looped}{T:{floats()}}
// @arg     a          device {T}[rows, axis_size] read
// @arg     b          device {T}[rows, axis_size] read
// @arg     w          device {T}[axis_size : w_stride] read
// @arg     residual   device {T}[rows, axis_size] write
// @arg     out        device {T}[rows, axis_size] write
// @arg     eps        constant f32
// @arg     axis_size  constant u32
// @arg     w_stride   constant u32
// @groups  rows, 1, 1
// @use     rows()
// @inplace residual a
// @inplace residual b
// @inplace out a
// @inplace out b
// @where   s[r,i] = round({T}, a[r,i] + b[r,i])
// @where   inv[r] = rsqrt(sum[{C}](k < axis_size, s[r,k] * s[r,k]) / f32(axis_size) + eps)
// @term    residual[r,i] = round({T}, s[r,i])
// @term    out[r,i] = round({T}, w[i] * round({T}, s[r,i] * inv[r]))
template <typename T>
[[kernel]] void add_rms(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    const device T* w [[buffer(2)]],
    device T* residual [[buffer(3)]],
    device T* out [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    constant uint& axis_size [[buffer(6)]],
    constant uint& w_stride [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float partial[LANES];

  const uint first = thread_id * READS;
  const int count = first < axis_size ? min(READS, int(axis_size - first)) : 0;
  const size_t at = size_t(row) * axis_size + first;

  T weights[READS];
  take_weights(w, w_stride, first, count, weights);
  wait_for_dispatches();
  T v[READS];
  T other[READS];
  take(a + at, count, v);
  take(b + at, count, other);
  float acc = 0;
#pragma unroll
  for (int i = 0; i < READS; i++) {
    v[i] = v[i] + other[i];
    acc += float(v[i]) * float(v[i]);
    other[i] = stored(v[i]);
  }
  put(residual + at, count, other);
  acc = sum_of_group(acc, partial, lane, simdgroup, simdgroups);
  const float inv = precise::rsqrt(acc / float(axis_size) + eps);
#pragma unroll
  for (int i = 0; i < READS; i++) {
    v[i] = stored(weights[i] * T(float(v[i]) * inv));
  }
  put(out + at, count, v);
}

// The same for rows of any length; the second walk reads the sums that the same
// thread stored in the first.
template <typename T>
[[kernel]] void add_rms_looped(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    const device T* w [[buffer(2)]],
    device T* residual [[buffer(3)]],
    device T* out [[buffer(4)]],
    constant float& eps [[buffer(5)]],
    constant uint& axis_size [[buffer(6)]],
    constant uint& w_stride [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[LANES];

  a += size_t(row) * axis_size;
  b += size_t(row) * axis_size;
  residual += size_t(row) * axis_size;
  out += size_t(row) * axis_size;

  float acc = 0;
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    T other[READS];
    take(a + first, count, v);
    take(b + first, count, other);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      v[i] = v[i] + other[i];
      acc += float(v[i]) * float(v[i]);
      other[i] = stored(v[i]);
    }
    put(residual + first, count, other);
  }
  acc = sum_of_group(acc, partial, lane, simdgroup, threads / LANES);
  const float inv = precise::rsqrt(acc / float(axis_size) + eps);
  for (uint first = thread_id * READS; first < axis_size; first += threads * READS) {
    const int count = min(READS, int(axis_size - first));
    T v[READS];
    T weights[READS];
    take(residual + first, count, v);
    take_weights(w, w_stride, first, count, weights);
#pragma unroll
    for (int i = 0; i < READS; i++) {
      v[i] = stored(weights[i] * T(float(v[i]) * inv));
    }
    put(out + first, count, v);
  }
}

#define INSTANTIATE_RMS(name, T)                                                                     \
  template [[host_name("rms" #name)]] [[kernel]] decltype(rms<T>) rms<T>;                               \
  template [[host_name("rms_looped" #name)]] [[kernel]] decltype(rms_looped<T>) rms_looped<T>;           \
  template [[host_name("add_rms" #name)]] [[kernel]] decltype(add_rms<T>) add_rms<T>;                    \
  template [[host_name("add_rms_looped" #name)]] [[kernel]] decltype(add_rms_looped<T>) add_rms_looped<T>;

EACH_FLOAT(INSTANTIATE_RMS)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Norms: one threadgroup a row, 4 elements a thread.
//
// @witness {|add_}rms{|b}float* ; axis_size=576 w_stride=1 ; groups 5 1 1 / 160 1 1 ; ok
// @witness {|add_}rms{|b}float* ; axis_size=576 w_stride=1 ; threads 800 1 1 / 160 1 1 ; ok
// @witness rms{|b}float* ; axis_size=576 w_stride=1 inplace=out,x ; groups 5 1 1 / 160 1 1 ; ok
// @witness {|add_}rms{|b}float* ; axis_size=129 w_stride=1 ; groups 5 1 1 / 64 1 1 ; ok
// @witness {|add_}rms{|b}float* ; axis_size=1 w_stride=0 ; groups 1 1 1 / 32 1 1 ; ok
// @witness {|add_}rms{|b}float* ; axis_size=4096 w_stride=1 ; groups 3 1 1 / 1024 1 1 ; ok
// @witness {|add_}rms{|b}float* ; axis_size=4097 w_stride=1 ; groups 3 1 1 / 1056 1 1 ; refused
// @witness {|add_}rms{|b}float* ; axis_size=0 w_stride=1 ; groups 3 1 1 / 0 1 1 ; refused
// @witness {|add_}rms{|b}float* ; axis_size=576 w_stride=1 ; groups 5 1 1 / 192 1 1 ; refused
// @witness rms{|b}float* ; axis_size=576 w_stride=1 ; threads 700 1 1 / 160 1 1 ; refused
// @witness {|add_}rms_looped{|b}float* ; axis_size=5000 w_stride=1 ; groups 2 1 1 / 1024 1 1 ; ok
// @witness rms_looped{|b}float* ; axis_size=5000 w_stride=1 inplace=out,x ; groups 2 1 1 / 1024 1 1 ; ok
// @witness {|add_}rms_looped{|b}float* ; axis_size=1 w_stride=1 ; groups 2 1 1 / 32 1 1 ; ok
// @witness {|add_}rms_looped{|b}float* ; axis_size=0 w_stride=1 ; groups 2 1 1 / 32 1 1 ; refused
// @witness {|add_}rms_looped{|b}float* ; axis_size=64 w_stride=1 ; groups 2 1 1 / {0|48|1056} 1 1 ; refused
// @witness rms{|b}float* ; axis_size=576 w_stride=1 inplace=out,w ; groups 1 1 1 / 160 1 1 ; ok
// @witness rms{|b}float* ; axis_size=576 w_stride=1 inplace=out,w ; groups 2 1 1 / 160 1 1 ; refused
// @witness rms{|b}float* ; axis_size=576 w_stride=2 inplace=out,w ; groups 1 1 1 / 160 1 1 ; refused
// @witness rms_looped{|b}float* ; axis_size=5000 w_stride=1 inplace=out,w ; groups 1 1 1 / 1024 1 1 ; ok
// @witness rms_looped{|b}float* ; axis_size=5000 w_stride=1 inplace=out,w ; groups 2 1 1 / 1024 1 1 ; refused
// @witness add_rms{|b}float* ; axis_size=576 w_stride=1 inplace={residual|out},{a|b} ; groups 5 1 1 / 160 1 1 ; ok
// @witness add_rms{|b}float* ; axis_size=576 w_stride=1 inplace=residual,w ; groups 1 1 1 / 160 1 1 ; refused
// @witness add_rms_looped{|b}float* ; axis_size=5000 w_stride=1 inplace={residual|out},{a|b} ; groups 2 1 1 / 1024 1 1 ; ok
//
// Corruptions of these declarations that are no lies.
//
// @equivalent add_rms* ; slot: a exchanged with b ; a + b = b + a, to the bit
// @equivalent add_rms* ; round: residual: round(*, s[r, i]) -> s[r, i] ; s is rounded to the type already
// @equivalent *rms_looped* ; require: 1024 -> 1025 ; threads is a multiple of 32
