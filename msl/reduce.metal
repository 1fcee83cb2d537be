// Sums of columns.

#include "common.h"

constexpr constant int READS = 4; // neighbouring columns of a thread
constexpr constant int TILE = 32; // rows and columns of a step
constexpr constant uint LANES = 32;

// Rows of a thread that are read together: a threadgroup has a processor to itself where
// columns are few, and memory is far away. Apple's GPUs have fewer registers.
#ifdef __MLXC__
constexpr constant int AHEAD = 16;
#else
constexpr constant int AHEAD = 4;
#endif

// Sums are added up as A: in f32, or in the type of the elements, rounded after each addition. The latter is done in
// f32, which has more than twice as many bits and two, so that the sum is rounded as if once.
template <typename A>
inline A sum_of(A a, A b) {
  return A(float(a) + float(b));
}

// sum_of_lanes adds one number of each lane. MLX adds bf16 in f32 here, and f16 in its type, whose order is written out
// so that it is one on all devices.
inline float sum_of_lanes(float v) { return simd_sum(v); }
inline bfloat sum_of_lanes(bfloat v) { return bfloat(simd_sum(float(v))); }
inline half sum_of_lanes(half v) {
#pragma unroll
  for (ushort d = LANES / 2; d > 0; d /= 2) {
    v = sum_of(v, half(simd_shuffle_xor(float(v), d)));
  }
  return v;
}

// take reads `count` elements, at most READS, and makes zeros of the others: all at once if they
// lie so.
template <typename T, typename A>
inline void take(const device T* p, int count, bool together, thread A* v) {
  if (together) {
    typedef vec<T, READS> All;
    const All all = *(const device All*)p;
    v[0] = A(all.x);
    v[1] = A(all.y);
    v[2] = A(all.z);
    v[3] = A(all.w);
    return;
  }
#pragma unroll
  for (int i = 0; i < READS; i++) {
    v[i] = i < count ? A(p[i]) : A(0.0f);
  }
}

// add_some adds rows r, r + step, … to acc, in this order, as long as there are N of them.
template <int N, typename T, typename A>
inline ulong add_some(
    const device T* in, long stride, ulong r, ulong step, ulong rows, int count, bool together, thread A* acc) {
  for (; r + (N - 1) * step < rows; r += N * step) {
    A v[N][READS];
#pragma unroll
    for (int d = 0; d < N; d++) {
      take(in + long(r + d * step) * stride, count, together, v[d]);
    }
#pragma unroll
    for (int d = 0; d < N; d++) {
#pragma unroll
      for (int i = 0; i < READS; i++) {
        acc[i] = sum_of(acc[i], v[d][i]);
      }
    }
  }
  return r;
}

// add_rows adds rows first, first + step, … to acc, in this order.
template <typename T, typename A>
inline void add_rows(const device T* in, long stride, ulong first, ulong step, ulong rows, int count, thread A* acc) {
  if (count == READS && ((ulong(in) | ulong(stride) * sizeof(T)) & (READS * sizeof(T) - 1)) == 0) {
    first = add_some<AHEAD>(in, stride, first, step, rows, count, true, acc);
    first = add_some<4>(in, stride, first, step, rows, count, true, acc);
    add_some<1>(in, stride, first, step, rows, count, true, acc);
    return;
  }
  first = add_some<4>(in, stride, first, step, rows, count, false, acc);
  add_some<1>(in, stride, first, step, rows, count, false, acc);
}

// place returns the offset, in elements, of row `row` of an array without its
// reduced dimensions.
inline long place(ulong row, constant int* shape, constant long* strides, int ndim) {
  long at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    at += long(row % ulong(shape[d])) * strides[d];
    row /= ulong(shape[d]);
  }
  return at;
}

// Few rows: a threadgroup takes 128 columns, a thread 4 of them in every eighth
// row; the threads' sums are added in the order of the rows that they began with.
// MLX's kernel; the conditions say that there is one reduced dimension and no
// other, or one outside.
//
// @kernel   col_reduce_small_1_reduce_sum{T:float32=f32}
// @mlx
// @arg 0 in                   device {T}[reduction_size, reduction_stride : reduce_strides[0], 1] read
// @arg 1 out                  device {T}[reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @groups   ceil(reduction_stride/128), 1, 1
// @group    min(ceil(reduction_stride/4), 32), min(reduction_size, 8), 1
// @require  reduction_size >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 0
// @term     out[i] = round({T}, sum[col_small](r < reduction_size, in[r,i]))
//
// The same of 16-bit types, added in f32 and rounded once: MLX adds them in their own type.
//
// @kernel   col_sum_small_{T:float16=f16|bfloat16=bf16}
// @arg 0 in                   device {T}[reduction_size, reduction_stride : reduce_strides[0], 1] read
// @arg 1 out                  device {T}[reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @groups   ceil(reduction_stride/128), 1, 1
// @group    min(ceil(reduction_stride/4), 32), min(reduction_size, 8), 1
// @require  reduction_size >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 0
// @term     out[i] = round({T}, sum[col_small](r < reduction_size, in[r,i]))
//
// The same of 16-bit types as MLX adds them: in their type, each sum rounded. Terms add in f32.
//
// @kernel   col_reduce_small_1_reduce_sum{T:float16=f16|bfloat16=bf16}
// @mlx
// @effects  sums are rounded to the type, which terms do not do; backend/softmetal/mlx_sums_test.go compares with MLX
// @arg 0 in                   device {T}[reduction_size, reduction_stride : reduce_strides[0], 1] read
// @arg 1 out                  device {T}[reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @groups   ceil(reduction_stride/128), 1, 1
// @group    min(ceil(reduction_stride/4), 32), min(reduction_size, 8), 1
// @require  reduction_size >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 0
//
// With another dimension outside of the columns.
//
// @kernel   col_reduce_small_1_reduce_sum{T:float32=f32}
// @mlx
// @arg 0 in                   device {T}[shape[0], reduction_size, reduction_stride : strides[0], reduce_strides[0], 1] read
// @arg 1 out                  device {T}[shape[0], reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @groups   ceil(reduction_stride/128), shape[0], 1
// @group    min(ceil(reduction_stride/4), 32), min(reduction_size, 8), 1
// @require  reduction_size >= 1 && shape[0] >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 1
// @term     out[b,i] = round({T}, sum[col_small](r < reduction_size, in[b,r,i]))
//
// @kernel   col_reduce_small_1_reduce_sum{T:float16=f16|bfloat16=bf16}
// @mlx
// @effects  sums are rounded to the type, which terms do not do; backend/softmetal/mlx_sums_test.go compares with MLX
// @arg 0 in                   device {T}[shape[0], reduction_size, reduction_stride : strides[0], reduce_strides[0], 1] read
// @arg 1 out                  device {T}[shape[0], reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @groups   ceil(reduction_stride/128), shape[0], 1
// @group    min(ceil(reduction_stride/4), 32), min(reduction_size, 8), 1
// @require  reduction_size >= 1 && shape[0] >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 1
template <typename T, typename A>
[[kernel]] void col_reduce_small(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant ulong& reduction_size [[buffer(2)]],
    constant long& reduction_stride [[buffer(3)]],
    constant int* shape [[buffer(4)]],
    constant long* strides [[buffer(5)]],
    constant int& ndim [[buffer(6)]],
    constant int* reduce_shape [[buffer(7)]],
    constant long* reduce_strides [[buffer(8)]],
    constant int& reduce_ndim [[buffer(9)]],
    constant ulong& non_col_reductions [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint3 at [[thread_position_in_threadgroup]],
    uint3 threads [[threads_per_threadgroup]]) {
  threadgroup A partial[LANES * 8 * READS];

  const ulong result = ulong(group.y) + ulong(groups.y) * ulong(group.z);
  in += place(result, shape, strides, ndim);
  out += long(result) * reduction_stride;
  const ulong rows = reduction_size * non_col_reductions;
  const long column = (long(group.x) * threads.x + at.x) * READS;
  const int count = column < reduction_stride ? int(min(long(READS), reduction_stride - column)) : 0;
  A acc[READS] = {A(0.0f), A(0.0f), A(0.0f), A(0.0f)};
  add_rows(in + column, reduce_strides[0], ulong(at.y), ulong(threads.y), rows, count, acc);
#pragma unroll
  for (int i = 0; i < READS; i++) {
    partial[(at.y * threads.x + at.x) * READS + i] = acc[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (at.y != 0) {
    return;
  }
  for (uint j = 1; j < threads.y; j++) {
#pragma unroll
    for (int i = 0; i < READS; i++) {
      acc[i] = sum_of(acc[i], partial[(j * threads.x + at.x) * READS + i]);
    }
  }
#pragma unroll
  for (int i = 0; i < READS; i++) {
    if (i < count) {
      out[column + i] = stored(T(acc[i]));
    }
  }
}

// Any number of rows: a threadgroup of 256 threads takes 32 columns, a thread 4
// of them in every 32nd row; then a simdgroup adds 4 columns of the threads' sums.
//
// @kernel   col_reduce_looped_1_32_32_reduce_sum{T:float32=f32}
// @mlx
// @arg 0 in                   device {T}[reduction_size, reduction_stride : reduce_strides[0], 1] read
// @arg 1 out                  device {T}[reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @arg 11 column_offset       constant i64
// @groups   ceil(reduction_stride/32), 1, 1
// @group    256, 1, 1
// @require  reduction_size >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 0 && column_offset == 0
// @term     out[i] = round({T}, sum[col_looped](r < reduction_size, in[r,i]))
//
// The same of 16-bit types.
//
// @kernel   col_sum_looped_{T:float16=f16|bfloat16=bf16}
// @arg 0 in                   device {T}[reduction_size, reduction_stride : reduce_strides[0], 1] read
// @arg 1 out                  device {T}[reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @arg 11 column_offset       constant i64
// @groups   ceil(reduction_stride/32), 1, 1
// @group    256, 1, 1
// @require  reduction_size >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 0 && column_offset == 0
// @term     out[i] = round({T}, sum[col_looped](r < reduction_size, in[r,i]))
//
// The same of 16-bit types as MLX adds them: in their type, each sum rounded. Terms add in f32.
//
// @kernel   col_reduce_looped_1_32_32_reduce_sum{T:float16=f16|bfloat16=bf16}
// @mlx
// @effects  sums are rounded to the type, which terms do not do; backend/softmetal/mlx_sums_test.go compares with MLX
// @arg 0 in                   device {T}[reduction_size, reduction_stride : reduce_strides[0], 1] read
// @arg 1 out                  device {T}[reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @arg 11 column_offset       constant i64
// @groups   ceil(reduction_stride/32), 1, 1
// @group    256, 1, 1
// @require  reduction_size >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 0 && column_offset == 0
//
// With another dimension outside of the columns.
//
// @kernel   col_reduce_looped_1_32_32_reduce_sum{T:float32=f32}
// @mlx
// @arg 0 in                   device {T}[shape[0], reduction_size, reduction_stride : strides[0], reduce_strides[0], 1] read
// @arg 1 out                  device {T}[shape[0], reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @arg 11 column_offset       constant i64
// @groups   ceil(reduction_stride/32), shape[0], 1
// @group    256, 1, 1
// @require  reduction_size >= 1 && shape[0] >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 1 && column_offset == 0
// @term     out[b,i] = round({T}, sum[col_looped](r < reduction_size, in[b,r,i]))
//
// @kernel   col_reduce_looped_1_32_32_reduce_sum{T:float16=f16|bfloat16=bf16}
// @mlx
// @effects  sums are rounded to the type, which terms do not do; backend/softmetal/mlx_sums_test.go compares with MLX
// @arg 0 in                   device {T}[shape[0], reduction_size, reduction_stride : strides[0], reduce_strides[0], 1] read
// @arg 1 out                  device {T}[shape[0], reduction_stride] write
// @arg 2 reduction_size       constant u64
// @arg 3 reduction_stride     constant i64
// @arg 4 shape                constant i32[1]
// @arg 5 strides              constant i64[1]
// @arg 6 ndim                 constant i32
// @arg 7 reduce_shape         constant i32[1] unused
// @arg 8 reduce_strides       constant i64[1]
// @arg 9 reduce_ndim          constant i32 unused
// @arg 10 non_col_reductions  constant u64
// @arg 11 column_offset       constant i64
// @groups   ceil(reduction_stride/32), shape[0], 1
// @group    256, 1, 1
// @require  reduction_size >= 1 && shape[0] >= 1 && reduction_stride >= 1 && non_col_reductions == 1 && ndim == 1 && column_offset == 0
template <typename T, typename A>
[[kernel]] void col_reduce_looped(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant ulong& reduction_size [[buffer(2)]],
    constant long& reduction_stride [[buffer(3)]],
    constant int* shape [[buffer(4)]],
    constant long* strides [[buffer(5)]],
    constant int& ndim [[buffer(6)]],
    constant int* reduce_shape [[buffer(7)]],
    constant long* reduce_strides [[buffer(8)]],
    constant int& reduce_ndim [[buffer(9)]],
    constant ulong& non_col_reductions [[buffer(10)]],
    constant long& column_offset [[buffer(11)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup A partial[TILE * TILE];

  const ulong result = ulong(group.y) + ulong(groups.y) * ulong(group.z);
  in += place(result, shape, strides, ndim);
  out += long(result) * reduction_stride;
  const ulong rows = reduction_size * non_col_reductions;
  const int thread_id = int(simdgroup * LANES + lane);
  const int first = thread_id % (TILE / READS) * READS; // of the tile's columns
  const int begin = thread_id / (TILE / READS);         // of the tile's rows
  const long tile = column_offset + long(group.x) * TILE;
  const long column = tile + first;
  const int count = column < reduction_stride ? int(min(long(READS), reduction_stride - column)) : 0;
  A acc[READS] = {A(0.0f), A(0.0f), A(0.0f), A(0.0f)};
  add_rows(in + column, reduce_strides[0], ulong(begin), ulong(TILE), rows, count, acc);
#pragma unroll
  for (int i = 0; i < READS; i++) {
    partial[begin * TILE + first + i] = acc[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int i = 0; i < READS; i++) {
    const int own = int(simdgroup) * READS + i;
    const A sum = sum_of_lanes(partial[int(lane) * TILE + own]);
    if (lane == 0 && tile + own < reduction_stride) {
      out[tile + own] = stored(T(sum));
    }
  }
}

template [[host_name("col_reduce_small_1_reduce_sumfloat32")]] [[kernel]] decltype(col_reduce_small<float, float>) col_reduce_small<float, float>;
template [[host_name("col_sum_small_float16")]] [[kernel]] decltype(col_reduce_small<half, float>) col_reduce_small<half, float>;
template [[host_name("col_sum_small_bfloat16")]] [[kernel]] decltype(col_reduce_small<bfloat, float>) col_reduce_small<bfloat, float>;
template [[host_name("col_reduce_small_1_reduce_sumfloat16")]] [[kernel]] decltype(col_reduce_small<half, half>) col_reduce_small<half, half>;
template [[host_name("col_reduce_small_1_reduce_sumbfloat16")]] [[kernel]] decltype(col_reduce_small<bfloat, bfloat>) col_reduce_small<bfloat, bfloat>;
template [[host_name("col_reduce_looped_1_32_32_reduce_sumfloat32")]] [[kernel]] decltype(col_reduce_looped<float, float>) col_reduce_looped<float, float>;
template [[host_name("col_sum_looped_float16")]] [[kernel]] decltype(col_reduce_looped<half, float>) col_reduce_looped<half, float>;
template [[host_name("col_sum_looped_bfloat16")]] [[kernel]] decltype(col_reduce_looped<bfloat, float>) col_reduce_looped<bfloat, float>;
template [[host_name("col_reduce_looped_1_32_32_reduce_sumfloat16")]] [[kernel]] decltype(col_reduce_looped<half, half>) col_reduce_looped<half, half>;
template [[host_name("col_reduce_looped_1_32_32_reduce_sumbfloat16")]] [[kernel]] decltype(col_reduce_looped<bfloat, bfloat>) col_reduce_looped<bfloat, bfloat>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Sums of columns: 128 columns a threadgroup for few rows, else 32. MLX binds what says
// that there is no other dimension.
//
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=5 reduction_stride=576 reduce_strides=576 non_col_reductions=1 ; groups 5 1 1 / 32 5 1 ; ok
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=31 reduction_stride=10 reduce_strides=10 non_col_reductions=1 ; groups 1 1 1 / 3 8 1 ; ok
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=9 reduction_stride=128 reduce_strides=200 non_col_reductions=1 ; groups 1 1 1 / 32 8 1 ; ok
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=9 reduction_stride=129 reduce_strides=129 non_col_reductions=1 ; groups 2 1 1 / 32 8 1 ; ok
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=1 reduction_stride=1 reduce_strides=1 non_col_reductions=1 ; groups 1 1 1 / 1 1 1 ; ok
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 1 1 / 33 8 1 ; refused
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 1 1 / 32 9 1 ; refused
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=0 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 1 1 / 32 0 1 ; refused
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=9 reduction_stride=0 reduce_strides=0 non_col_reductions=1 ; groups 0 1 1 / 0 8 1 ; refused
// @witness col_{reduce_small_*|sum_small_*float16} ; reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=2 ; groups 2 1 1 / 32 8 1 ; refused
// @witness col_sum_small_*float16 ; ndim=1 shape=1 reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 1 1 / 32 8 1 ; refused
// @witness col_reduce_small_* ; ndim=2 shape=1 reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 1 1 / 32 8 1 ; refused
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=100 reduction_stride=576 reduce_strides=576 non_col_reductions=1 ; threads 4608 1 1 / 256 1 1 ; ok
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=32 reduction_stride=33 reduce_strides=40 non_col_reductions=1 ; threads 512 1 1 / 256 1 1 ; ok
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=1 reduction_stride=1 reduce_strides=1 non_col_reductions=1 ; groups 1 1 1 / 256 1 1 ; ok
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=0 reduction_stride=33 reduce_strides=33 non_col_reductions=1 ; groups 2 1 1 / 256 1 1 ; refused
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=9 reduction_stride=0 reduce_strides=0 non_col_reductions=1 ; groups 0 1 1 / 256 1 1 ; refused
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=9 reduction_stride=33 reduce_strides=33 non_col_reductions=2 ; groups 2 1 1 / 256 1 1 ; refused
// @witness col_{reduce_looped_*|sum_looped_*float16} ; column_offset=32 reduction_size=9 reduction_stride=33 reduce_strides=33 non_col_reductions=1 ; groups 2 1 1 / 256 1 1 ; refused
// @witness col_sum_looped_*float16 ; ndim=1 shape=1 reduction_size=9 reduction_stride=33 reduce_strides=33 non_col_reductions=1 ; groups 2 1 1 / 256 1 1 ; refused
// @witness col_reduce_looped_* ; ndim=2 shape=1 reduction_size=9 reduction_stride=33 reduce_strides=33 non_col_reductions=1 ; groups 2 1 1 / 256 1 1 ; refused
// @witness col_{reduce_looped_*|sum_looped_*float16} ; reduction_size=9 reduction_stride=33 reduce_strides=33 non_col_reductions=1 ; groups 2 1 1 / 128 1 1 ; refused
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=1000 reduction_size=8 reduction_stride=129 reduce_strides=129 non_col_reductions=1 ; groups 2 3 1 / 32 8 1 ; ok
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=1 reduction_size=1 reduction_stride=1 reduce_strides=1 non_col_reductions=1 ; groups 1 3 1 / 1 1 1 ; ok
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=1000 reduction_size=8 reduction_stride=128 reduce_strides=129 non_col_reductions=1 ; groups 1 3 1 / 32 8 1 ; ok
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=1000 reduction_size=8 reduction_stride=129 reduce_strides=129 non_col_reductions=1 ; groups 2 3 2 / 32 8 1 ; refused
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=2000 reduction_size=9 reduction_stride=129 reduce_strides=129 non_col_reductions=1 ; groups 2 3 1 / 32 9 1 ; refused
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=2000 reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 3 1 / {32|33} {8|9} 2 ; refused
// @witness col_reduce_small_* ; ndim=1 shape=3 strides=2000 reduction_size=9 reduction_stride=132 reduce_strides=132 non_col_reductions=1 ; groups 2 3 1 / 33 8 1 ; refused
// @witness col_reduce_{small|looped}_* ; ndim=1 shape=1 strides=744 reduction_size=24 reduction_stride=31 reduce_strides=31 non_col_reductions=2 ; groups 1 1 1 / {8 8 1|256 1 1} ; refused
// @witness col_reduce_{small|looped}_* ; ndim=1 shape=1 strides=744 reduction_size=0 reduction_stride=31 reduce_strides=31 non_col_reductions=1 ; groups 1 1 1 / {8 0 1|256 1 1} ; refused
// @witness col_reduce_{small|looped}_* ; ndim=1 shape=1 strides=744 reduction_size=24 reduction_stride=0 reduce_strides=31 non_col_reductions=1 ; groups 0 1 1 / {0 8 1|256 1 1} ; refused
// @witness col_reduce_{small|looped}_* ; ndim=1 shape=0 strides=744 reduction_size=24 reduction_stride=31 reduce_strides=31 non_col_reductions=1 ; groups 1 0 1 / {8 8 1|256 1 1} ; refused
// @witness col_reduce_small_* ; ndim=1 shape=1 strides=744 reduction_size=24 reduction_stride=31 reduce_strides=31 non_col_reductions=1 ; groups 1 1 1 / 8 8 1 ; ok
// @witness col_reduce_small_* ; ndim=1 shape=1 strides=3 reduction_size=1 reduction_stride=1 reduce_strides=1 non_col_reductions=1 ; groups 1 1 1 / 1 1 1 ; ok
// @witness col_reduce_looped_* ; ndim=1 shape=1 strides=35 reduction_size=1 reduction_stride=1 reduce_strides=35 non_col_reductions=1 ; groups 1 1 1 / 256 1 1 ; ok
// @witness col_reduce_looped_* ; column_offset=32 ndim=1 shape=1 strides=35 reduction_size=1 reduction_stride=35 reduce_strides=35 non_col_reductions=1 ; groups 2 1 1 / 256 1 1 ; refused
// @witness col_reduce_looped_* ; ndim=1 shape=1 strides=35 reduction_size=1 reduction_stride=35 reduce_strides=35 non_col_reductions=1 ; groups 2 1 1 / 128 1 1 ; refused
// @witness col_reduce_looped_* ; ndim=1 shape=3 strides=9000 reduction_size=32 reduction_stride=129 reduce_strides=129 non_col_reductions=1 ; groups 5 3 1 / 256 1 1 ; ok
// @witness col_reduce_looped_* ; ndim=1 shape=3 strides=1 reduction_size=1 reduction_stride=1 reduce_strides=1 non_col_reductions=1 ; groups 1 3 1 / 256 1 1 ; ok
// @witness col_reduce_looped_* ; ndim=1 shape=3 strides=9000 reduction_size=32 reduction_stride=128 reduce_strides=129 non_col_reductions=1 ; groups 4 3 1 / 256 1 1 ; ok
// @witness col_reduce_looped_* ; ndim=1 shape=3 strides=9000 reduction_size=32 reduction_stride=129 reduce_strides=129 non_col_reductions=1 ; groups 5 3 2 / 256 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent col_reduce_*float16#1 ; shape: out[1] exchanged with the one before ; all of out is written either way
// @equivalent col_reduce_* ; slot: reduction_size exchanged with non_col_reductions ; the number of rows is their product
// @equivalent col_sum_* ; slot: reduction_size exchanged with non_col_reductions ; the number of rows is their product
