// The place of the greatest element: by one threadgroup a row, or, of a long row, in two steps, of which many
// threadgroups do the first. The product of a model's head does it on its way (norm_products.metal).

#include "common.h"

constexpr constant uint READS = 4;  // neighbouring elements that a thread takes at a time
constexpr constant uint PIECES = 4; // such, that it asks for at once
constexpr constant uint LANES = 32;

// place returns the offset, in elements, of row `row` of an array without its reduced axis, which has one
// dimension at most. Rows past the shape, of a grid that is too large, are taken as its last.
inline long place(ulong row, constant int* shape, constant long* strides, ulong ndim) {
  return ndim == 0 ? 0 : long(min(row, ulong(shape[0]) - 1)) * strides[0];
}

// look finds the first of the greatest elements among those that a thread takes: `value` and its `index`, 0 if
// none is above −inf.
template <typename T>
inline void look(const device T* in, long stride, ulong size, uint thread_id, uint threads, thread float& value, thread uint& index) {
  value = -INFINITY;
  index = 0;
  // A thread's elements come in the order of their indices, so that the first of equal ones stays.
  ulong first = ulong(thread_id) * READS;
  const ulong step = ulong(threads) * READS;
  if (stride == 1 && (ulong(in) & (READS * sizeof(T) - 1)) == 0) {
    typedef vec<T, READS> All;
    for (; first + (PIECES - 1) * step + READS <= size; first += PIECES * step) {
      All all[PIECES];
#pragma unroll
      for (uint p = 0; p < PIECES; p++) {
        all[p] = *(const device All*)(in + first + p * step);
      }
#pragma unroll
      for (uint p = 0; p < PIECES; p++) {
#pragma unroll
        for (uint i = 0; i < READS; i++) {
          const float v = float(all[p][i]);
          const bool greater = v > value;
          value = greater ? v : value;
          index = greater ? uint(first + p * step) + i : index;
        }
      }
    }
    for (; first + READS <= size; first += step) {
      const All all = *(const device All*)(in + first);
#pragma unroll
      for (uint i = 0; i < READS; i++) {
        const float v = float(all[i]);
        const bool greater = v > value;
        value = greater ? v : value;
        index = greater ? uint(first) + i : index;
      }
    }
  }
  for (; first < size; first += step) {
    const ulong last = first + READS;
    const uint end = uint(last < size ? last : size);
    for (uint i = uint(first); i < end; i++) {
      const float v = float(in[long(i) * stride]);
      if (v > value) {
        value = v;
        index = i;
      }
    }
  }
}

// first_of is the index of the greatest value that any thread has found, the least of equal ones. The first
// simdgroup is told.
inline uint first_of(float value, uint index, threadgroup float* values, threadgroup uint* indices, uint threads, uint lane, uint simdgroup) {
  float top = simd_max(value);
  index = simd_min(value == top ? index : 0xffffffffu);
  if (lane == 0) {
    values[simdgroup] = top;
    indices[simdgroup] = index;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup != 0) {
    return 0;
  }
  const bool filled = lane < (threads + LANES - 1) / LANES;
  value = filled ? values[lane] : -INFINITY;
  top = simd_max(value);
  return simd_min(filled && value == top ? indices[lane] : 0xffffffffu);
}

// One threadgroup a row. Ties go to the least index. NaN is never greater than
// anything: a row without a number above −inf gives 0.
//
// @kernel   argmax_{T:{floats()}}
// @mlx      unlisted
// @arg 0 in           device {T}[rows, axis_size] read
// @arg 1 out          device u32[rows] write
// @arg 2 shape        constant i32[1]
// @arg 3 in_strides   constant i64[1]
// @arg 4 out_strides  constant i64[1]
// @arg 5 ndim         constant u64
// @arg 6 axis_stride  constant i64
// @arg 7 axis_size    constant u64
// @threads  lanes, rows, 1
// @group    lanes, 1, 1
// @require  lanes % 32 == 0 && lanes >= 32 && lanes <= 1024
// @require  axis_stride == 1 && axis_size >= 1 && axis_size < 4294967296
// @require  ndim == 0 && rows == 1 || \
//             ndim == 1 && shape[0] == rows && in_strides[0] == axis_size && out_strides[0] == 1
// @term     out[r] = u32(argmax(i < axis_size, in[r,i]))
template <typename T>
[[kernel]] void argmax(
    const device T* in [[buffer(0)]],
    device uint* out [[buffer(1)]],
    constant int* shape [[buffer(2)]],
    constant long* in_strides [[buffer(3)]],
    constant long* out_strides [[buffer(4)]],
    constant ulong& ndim [[buffer(5)]],
    constant long& axis_stride [[buffer(6)]],
    constant ulong& axis_size [[buffer(7)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint3 thread_id [[thread_position_in_threadgroup]],
    uint3 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float values[LANES];
  threadgroup uint indices[LANES];

  const ulong row = ulong(at.y) + ulong(at.z) * ulong(grid.y);
  in += place(row, shape, in_strides, ndim);
  out += place(row, shape, out_strides, ndim);
  wait_for_dispatches();

  float value;
  uint index;
  look(in, axis_stride, axis_size, thread_id.x, threads.x, value, index);
  index = first_of(value, index, values, indices, threads.x, lane, simdgroup);
  if (simdgroup == 0 && lane == 0) {
    *out = index;
  }
}

#define INSTANTIATE_ARGMAX(name, T) template [[host_name("argmax_" #name)]] [[kernel]] decltype(argmax<T>) argmax<T>;
EACH_FLOAT(INSTANTIATE_ARGMAX)

constexpr constant uint PART = 16; // neighbours in a row of which the first step keeps the greatest
constexpr constant uint SHARE = 4; // threads that have READS of them each

// The first step: the greatest of each 16 elements that follow one another. A maximum without NaN, so that a part
// with one is as great as its numbers: the second step must find what argmax would.
//
// @kernel   max_parts_{T:{floats()}}
// @arg 0 x      device {T}[rows, 16*parts] read
// @arg 1 top    device {T}[rows, parts] write
// @arg 2 parts  constant u32
// @groups   ceil(parts/64), rows, 1
// @group    256, 1, 1
// @require  parts >= 1
// @term     top[r,p] = round({T}, max(k < 16, x[r,16*p + k]))
template <typename T>
[[kernel]] void max_parts(
    const device T* x [[buffer(0)]],
    device T* top [[buffer(1)]],
    constant uint& parts [[buffer(2)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 thread_id [[thread_position_in_threadgroup]]) {
  const uint part = group.x * (256 / SHARE) + thread_id.x / SHARE;
  const size_t at = size_t(group.y) * parts + part;
  T v[READS];
  const device T* mine = x + at * PART + thread_id.x % SHARE * READS;
  wait_for_dispatches();
  if (part < parts && (ulong(mine) & (READS * sizeof(T) - 1)) == 0) {
    typedef vec<T, READS> All;
    const All all = *(const device All*)mine;
    v[0] = all.x;
    v[1] = all.y;
    v[2] = all.z;
    v[3] = all.w;
  } else {
#pragma unroll
    for (uint i = 0; i < READS; i++) {
      v[i] = part < parts ? mine[i] : T(0);
    }
  }
  float best = -INFINITY;
#pragma unroll
  for (uint i = 0; i < READS; i++) {
    best = greater(best, v[i]);
  }
  best = greater(best, simd_shuffle_xor(best, ushort(1)));
  best = greater(best, simd_shuffle_xor(best, ushort(2)));
  if (part < parts && thread_id.x % SHARE == 0) {
    top[at] = T(best);
  }
}

#define INSTANTIATE_MAX_PARTS(name, T) template [[host_name("max_parts_" #name)]] [[kernel]] decltype(max_parts<T>) max_parts<T>;
EACH_FLOAT(INSTANTIATE_MAX_PARTS)

// The second step: the first of the parts with the greatest maximum, and in it the first of the greatest
// elements. If `top` is what max_parts_float32 makes of x, that is argmax(i < 16*parts, x[r,i]).
//
// @kernel   argmax_parts_{T:{floats()}}
// @arg 0 x      device {T}[rows, 16*parts] read
// @arg 1 top    device {T}[rows, parts] read
// @arg 2 out    device u32[rows] write
// @arg 3 parts  constant u32
// @groups   rows, 1, 1
// @group    lanes, 1, 1
// @require  lanes % 32 == 0 && lanes >= 32 && lanes <= 1024
// @require  parts >= 1 && parts < 268435456
// @where    part[r] = argmax(p < parts, top[r,p])
// @term     out[r] = u32(16*part[r] + argmax(k < 16, x[r,16*part[r] + k]))
template <typename T>
[[kernel]] void argmax_parts(
    const device T* x [[buffer(0)]],
    const device T* top [[buffer(1)]],
    device uint* out [[buffer(2)]],
    constant uint& parts [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 thread_id [[thread_position_in_threadgroup]],
    uint3 threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float values[LANES];
  threadgroup uint indices[LANES];

  const size_t first = size_t(group.x) * parts;
  wait_for_dispatches();
  float value;
  uint index;
  look(top + first, 1, parts, thread_id.x, threads.x, value, index);
  const uint part = first_of(value, index, values, indices, threads.x, lane, simdgroup);
  if (simdgroup != 0) {
    return;
  }
  const float v = x[(first + part) * PART + lane % PART]; // the second half of the lanes has the same again
  value = v > -INFINITY ? v : -INFINITY; // NaN is not greater
  index = simd_min(value == simd_max(value) ? lane : LANES);
  if (lane == 0) {
    out[group.x] = part * PART + index;
  }
}

#define INSTANTIATE_ARGMAX_PARTS(name, T) template [[host_name("argmax_parts_" #name)]] [[kernel]] decltype(argmax_parts<T>) argmax_parts<T>;
EACH_FLOAT(INSTANTIATE_ARGMAX_PARTS)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Argmax: one threadgroup a row.
//
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=49152 ; threads 1024 1 1 / 1024 1 1 ; ok
// @witness argmax_{|b}float* ; ndim=1 shape=5 in_strides=100 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; ok
// @witness argmax_{|b}float* ; ndim=1 shape=5 in_strides=1 out_strides=1 axis_stride=1 axis_size=1 ; threads 32 5 1 / 32 1 1 ; ok
// @witness argmax_{|b}float* ; ndim=1 shape=4 in_strides=100 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=1 shape=5 in_strides=101 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=1 shape=5 in_strides=100 out_strides=2 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=2 shape=5 in_strides=100 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=2 axis_size=100 ; threads 32 1 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size={0|4294967296} ; threads 32 1 1 / 32 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=4294967295 ; threads 32 1 1 / 32 1 1 ; ok
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=100 ; threads 48 1 1 / 48 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=100 ; threads 0 1 1 / 0 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=100 ; threads 1056 1 1 / 1056 1 1 ; refused
// @witness argmax_{|b}float* ; ndim=0 axis_stride=1 axis_size=100 ; threads 64 1 1 / 32 1 1 ; refused
//
// The two steps of long rows.
//
// @witness max_parts_* ; parts=3072 ; groups 48 1 1 / 256 1 1 ; ok
// @witness max_parts_* ; parts=65 ; groups 2 3 1 / 256 1 1 ; ok
// @witness max_parts_* ; parts=1 ; groups 1 3 1 / 256 1 1 ; ok
// @witness max_parts_* ; parts=65 ; groups 1 3 1 / 256 1 1 ; refused
// @witness max_parts_* ; parts=64 ; groups 1 1 1 / 128 1 1 ; refused
// @witness max_parts_* ; parts=0 ; groups 0 1 1 / 256 1 1 ; refused
// @witness argmax_parts_* ; parts=3072 ; groups 1 1 1 / 768 1 1 ; ok
// @witness argmax_parts_* ; parts=1 ; groups 3 1 1 / 32 1 1 ; ok
// @witness argmax_parts_* ; parts=268435455 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness argmax_parts_* ; parts=268435456 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness argmax_parts_* ; parts=0 ; groups 1 1 1 / 32 1 1 ; refused
// @witness argmax_parts_* ; parts=100 ; groups 1 1 1 / {48|1056} 1 1 ; refused
// @witness argmax_parts_* ; parts=100 ; groups 1 2 1 / 32 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent argmax_* ; require: 1024 -> 1025 ; lanes is a multiple of 32
// @equivalent argmax_* ; require: lanes % 32 == 0 && lanes >= 32 -> lanes % 32 == 0 ; no lanes are an empty grid, which binding refuses where something must be written
// @equivalent max_parts_* ; inplace: allow top x ; a row of x has 16 times as many elements
// @equivalent max_parts_* ; round: * ; the greatest of elements of a type is of that type
