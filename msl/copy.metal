// Copies between layouts, one element a thread: v both contiguous, g the source
// strided, gg both strided. Strides are in elements, outermost first.

#include "common.h"

// @kernel   v_copy{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16|uint32uint32=u32}
// @mlx
// @arg 0 src   device {T}[n] read
// @arg 1 dst   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  dst src
// @term     dst[i] = src[i]
template <typename T, typename U>
[[kernel]] void copy_v(
    const device T* src [[buffer(0)]],
    device U* dst [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  dst[i] = U(src[i]);
}

// @kernel   g2_copy{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16|uint32uint32=u32}
// @mlx
// @arg 0 src          device {T}[d0, d1 : src_strides[0], src_strides[1]] read
// @arg 1 dst          device {T}[d0, d1] write
// @arg 3 src_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @term     dst[i,j] = src[i,j]
template <typename T, typename U>
[[kernel]] void copy_g2(
    const device T* src [[buffer(0)]],
    device U* dst [[buffer(1)]],
    constant long* src_strides [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long from = long(at.y) * src_strides[0] + long(at.x) * src_strides[1];
  dst[long(at.y) * long(grid.x) + long(at.x)] = U(src[from]);
}

// @kernel   g3_copy{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16|uint32uint32=u32}
// @mlx
// @arg 0 src          device {T}[d0, d1, d2 : src_strides[0], src_strides[1], src_strides[2]] read
// @arg 1 dst          device {T}[d0, d1, d2] write
// @arg 3 src_strides  constant i64[3]
// @threads  d2, d1, d0
// @group    _, _, _
// @term     dst[i,j,k] = src[i,j,k]
template <typename T, typename U>
[[kernel]] void copy_g3(
    const device T* src [[buffer(0)]],
    device U* dst [[buffer(1)]],
    constant long* src_strides [[buffer(3)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const long from = long(at.z) * src_strides[0] + long(at.y) * src_strides[1] + long(at.x) * src_strides[2];
  const long to = (long(at.z) * long(grid.y) + long(at.y)) * long(grid.x) + long(at.x);
  dst[to] = U(src[from]);
}

// More dimensions, of which the declaration has four. A thread takes two elements of the last one.
//
// @kernel   gn2_copy{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16|uint32uint32=u32}
// @mlx
// @arg 0 src          device {T}[src_shape[0], src_shape[1], src_shape[2], src_shape[3] : src_strides[0], src_strides[1], src_strides[2], src_strides[3]] read
// @arg 1 dst          device {T}[src_shape[0], src_shape[1], src_shape[2], src_shape[3]] write
// @arg 2 src_shape    constant i32[4]
// @arg 3 src_strides  constant i64[4]
// @arg 5 ndim         constant i32
// @threads  ceil(src_shape[3]/2), src_shape[2], src_shape[0]*src_shape[1]
// @group    _, _, _
// @require  ndim == 4
// @term     dst[h,i,j,k] = src[h,i,j,k]
template <typename T, typename U>
[[kernel]] void copy_gn2(
    const device T* src [[buffer(0)]],
    device U* dst [[buffer(1)]],
    constant int* src_shape [[buffer(2)]],
    constant long* src_strides [[buffer(3)]],
    constant int& ndim [[buffer(5)]],
    uint3 at [[thread_position_in_grid]]) {
  long outer = at.z;
  const int last = src_shape[ndim - 1];
  const long to = (outer * src_shape[ndim - 2] + long(at.y)) * last;
  long from = long(at.y) * src_strides[ndim - 2];
  for (int d = ndim - 3; d >= 0; d--) {
    from += outer % src_shape[d] * src_strides[d];
    outer /= src_shape[d];
  }
  const int end = min(int(at.x + 1) * 2, last);
  for (int k = int(at.x) * 2; k < end; k++) {
    dst[to + k] = U(src[from + k * src_strides[ndim - 1]]);
  }
}

// The destination's elements are distinct: each dimension steps over all that
// the dimensions inside it span.
//
// @kernel   gg2_copy{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16|uint32uint32=u32}
// @mlx
// @arg 0 src          device {T}[d0, d1 : src_strides[0], src_strides[1]] read
// @arg 1 dst          device {T}[d0, d1 : dst_strides[0], dst_strides[1]] write
// @arg 3 src_strides  constant i64[2]
// @arg 4 dst_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @require  d1 == 1 || dst_strides[1] >= 1
// @require  d0 == 1 || dst_strides[0] > (d1 - 1) * dst_strides[1]
// @term     dst[i,j] = src[i,j]
template <typename T, typename U>
[[kernel]] void copy_gg2(
    const device T* src [[buffer(0)]],
    device U* dst [[buffer(1)]],
    constant long* src_strides [[buffer(3)]],
    constant long* dst_strides [[buffer(4)]],
    uint2 at [[thread_position_in_grid]]) {
  const long from = long(at.y) * src_strides[0] + long(at.x) * src_strides[1];
  const long to = long(at.y) * dst_strides[0] + long(at.x) * dst_strides[1];
  dst[to] = U(src[from]);
}

// @kernel   gg3_copy{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16|uint32uint32=u32}
// @mlx
// @arg 0 src          device {T}[d0, d1, d2 : src_strides[0], src_strides[1], src_strides[2]] read
// @arg 1 dst          device {T}[d0, d1, d2 : dst_strides[0], dst_strides[1], dst_strides[2]] write
// @arg 3 src_strides  constant i64[3]
// @arg 4 dst_strides  constant i64[3]
// @threads  d2, d1, d0
// @group    _, _, _
// @require  d2 == 1 || dst_strides[2] >= 1
// @require  d1 == 1 || dst_strides[1] > (d2 - 1) * dst_strides[2]
// @require  d0 == 1 || dst_strides[0] > (d1 - 1) * dst_strides[1] + (d2 - 1) * dst_strides[2]
// @term     dst[i,j,k] = src[i,j,k]
template <typename T, typename U>
[[kernel]] void copy_gg3(
    const device T* src [[buffer(0)]],
    device U* dst [[buffer(1)]],
    constant long* src_strides [[buffer(3)]],
    constant long* dst_strides [[buffer(4)]],
    uint3 at [[thread_position_in_grid]]) {
  const long from = long(at.z) * src_strides[0] + long(at.y) * src_strides[1] + long(at.x) * src_strides[2];
  const long to = long(at.z) * dst_strides[0] + long(at.y) * dst_strides[1] + long(at.x) * dst_strides[2];
  dst[to] = U(src[from]);
}

#define INSTANTIATE_COPY(shape, name, type)          \
  template [[host_name(#shape "_copy" #name #name)]]   \
  [[kernel]] decltype(copy_##shape<type, type>) copy_##shape<type, type>;
#define INSTANTIATE_COPIES(shape)           \
  INSTANTIATE_COPY(shape, float32, float)    \
  INSTANTIATE_COPY(shape, float16, half)     \
  INSTANTIATE_COPY(shape, bfloat16, bfloat)  \
  INSTANTIATE_COPY(shape, uint32, uint)

INSTANTIATE_COPIES(v)
INSTANTIATE_COPIES(g2)
INSTANTIATE_COPIES(g3)
INSTANTIATE_COPIES(gn2)
INSTANTIATE_COPIES(gg2)
INSTANTIATE_COPIES(gg3)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Copies.
//
// @witness v_copy* ;  ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_copy* ; inplace=dst,src ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness g2_copy* ; src_strides=1,64 ; threads 9 64 1 / 9 64 1 ; ok
// @witness g3_copy* ; src_strides=64,576,1 ; threads 64 20 9 / 64 4 4 ; ok
// @witness gn2_copy* ; ndim=4 src_shape=2,3,5,7 src_strides=105,7,21,1 ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_copy* ; ndim={3|5} src_shape=2,3,5,7 src_strides=105,7,21,1 ; threads 4 5 6 / 4 5 6 ; refused
// @witness gn2_copy* ; ndim=4 src_shape=2,3,5,7 src_strides=105,7,21,1 ; threads 3 5 6 / 4 5 6 ; refused
// @witness gg2_copy* ; src_strides=64,1 dst_strides=4096,1 ; threads 64 9 1 / 64 9 1 ; ok
// @witness gg2_copy* ; src_strides=64,1 dst_strides=0,1 ; threads 64 1 1 / 64 1 1 ; ok
// @witness gg2_copy* ; src_strides=64,1 dst_strides=1,0 ; threads 1 9 1 / 1 9 1 ; ok
// @witness gg2_copy* ; src_strides=64,1 dst_strides=127,2 ; threads 64 9 1 / 64 9 1 ; ok
// @witness gg2_copy* ; src_strides=64,1 dst_strides=126,2 ; threads 64 9 1 / 64 9 1 ; refused
// @witness gg2_copy* ; src_strides=64,1 dst_strides=9,0 ; threads 64 9 1 / 64 9 1 ; refused
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=8192,64,1 ; threads 64 20 9 / 64 4 4 ; ok
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=0,64,1 ; threads 64 20 1 / 64 4 1 ; ok
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=64,0,1 ; threads 64 1 9 / 64 1 4 ; ok
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=20,1,0 ; threads 1 20 9 / 1 4 4 ; ok
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=1339,64,2 ; threads 62 20 9 / 64 4 4 ; refused
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=2464,123,2 ; threads 62 20 9 / 64 4 4 ; ok
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=2459,123,2 ; threads 62 20 9 / 64 4 4 ; refused
// @witness gg3_copy* ; src_strides=64,576,1 dst_strides=9999,122,2 ; threads 62 20 9 / 64 4 4 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent g*_copy* ; inplace: allow dst src ; a copy onto itself
// @equivalent gg?_copy* ; require: drop d? == 1 || dst_strides* >= 1 ; a written dimension of stride 0 is refused in any case
