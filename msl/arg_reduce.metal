// The place of the greatest element.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

#ifndef __MLXC__ // docs/kernels.md, "Weights before the wait"
inline void wait_for_dispatches() {}
#endif

constexpr constant uint READS = 4;  // neighbouring elements that a thread takes at a time
constexpr constant uint PIECES = 4; // such, that it asks for at once
constexpr constant uint LANES = 32;

// place returns the offset, in elements, of row `row` of an array without its reduced axis, which has one
// dimension at most. Rows past the shape, of a grid that is too large, are taken as its last.
inline long place(ulong row, constant int* shape, constant long* strides, ulong ndim) {
  return ndim == 0 ? 0 : long(min(row, ulong(shape[0]) - 1)) * strides[0];
}

// One threadgroup a row. Ties go to the least index. NaN is never greater than
// anything: a row without a number above −inf gives 0.
//
// @kernel   argmax_{T:float32=f32}
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

  float value = -INFINITY;
  uint index = 0;
  // A thread's elements come in the order of their indices, so that the first of equal ones stays.
  ulong first = ulong(thread_id.x) * READS;
  const ulong step = ulong(threads.x) * READS;
  if (axis_stride == 1 && (ulong(in) & (READS * sizeof(T) - 1)) == 0) {
    typedef vec<T, READS> All;
    for (; first + (PIECES - 1) * step + READS <= axis_size; first += PIECES * step) {
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
  }
  for (; first < axis_size; first += step) {
    const ulong last = first + READS;
    const uint end = uint(last < axis_size ? last : axis_size);
    for (uint i = uint(first); i < end; i++) {
      const float v = float(in[long(i) * axis_stride]);
      if (v > value) {
        value = v;
        index = i;
      }
    }
  }
  float top = simd_max(value);
  index = simd_min(value == top ? index : 0xffffffffu);
  if (lane == 0) {
    values[simdgroup] = top;
    indices[simdgroup] = index;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup != 0) {
    return;
  }
  const bool filled = lane < (threads.x + LANES - 1) / LANES;
  value = filled ? values[lane] : -INFINITY;
  top = simd_max(value);
  index = simd_min(filled && value == top ? indices[lane] : 0xffffffffu);
  if (lane == 0) {
    *out = index;
  }
}

template [[host_name("argmax_float32")]] [[kernel]] decltype(argmax<float>) argmax<float>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Argmax: one threadgroup a row.
//
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=49152 ; threads 1024 1 1 / 1024 1 1 ; ok
// @witness argmax_float32 ; ndim=1 shape=5 in_strides=100 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; ok
// @witness argmax_float32 ; ndim=1 shape=5 in_strides=1 out_strides=1 axis_stride=1 axis_size=1 ; threads 32 5 1 / 32 1 1 ; ok
// @witness argmax_float32 ; ndim=1 shape=4 in_strides=100 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=1 shape=5 in_strides=101 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=1 shape=5 in_strides=100 out_strides=2 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=2 shape=5 in_strides=100 out_strides=1 axis_stride=1 axis_size=100 ; threads 32 5 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=2 axis_size=100 ; threads 32 1 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=0 ; threads 32 1 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=4294967295 ; threads 32 1 1 / 32 1 1 ; ok
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=4294967296 ; threads 32 1 1 / 32 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=100 ; threads 48 1 1 / 48 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=100 ; threads 0 1 1 / 0 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=100 ; threads 1056 1 1 / 1056 1 1 ; refused
// @witness argmax_float32 ; ndim=0 axis_stride=1 axis_size=100 ; threads 64 1 1 / 32 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent argmax_* ; require: 1024 -> 1025 ; lanes is a multiple of 32
// @equivalent argmax_* ; require: lanes % 32 == 0 && lanes >= 32 -> lanes % 32 == 0 ; no lanes are an empty grid, which binding refuses where something must be written
