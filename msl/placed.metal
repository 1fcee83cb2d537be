// Slices that begin where memory says: start[axis[d]] along dimension d, kept within 0 and limit[d], so that nothing outside
// is read or written. Dimensions along which a slice begins at 0 have the limit 0. MLX's kernels for this do not know what
// they are a slice of.

#include "common.h"

// @text     extents() = shape[0], shape[1], shape[2], shape[3]
// @text     sizes() = limit[0] + shape[0], limit[1] + shape[1], limit[2] + shape[2], limit[3] + shape[3]
// @text     steps(x) = {x}_strides[0], {x}_strides[1], {x}_strides[2], {x}_strides[3]
// @text     first(d) = max(0, min(limit[{d}], start[max(0, min(axes - 1, axis[{d}]))]))

// place is where a slice begins in an array of these strides.
inline long placed(const device int* start, constant int* limit, constant int* axis, int axes, constant long* strides) {
  long at = 0;
  for (int d = 0; d < 4; d++) {
    at += long(clamp(start[clamp(axis[d], 0, axes - 1)], 0, limit[d])) * strides[d];
  }
  return at;
}

// @kernel   slice_at_{T:uint32=u32|float16=f16}
// @arg 0 src          device {T}[{sizes()} : {steps(src)}] read
// @arg 1 start        device i32[axes] read
// @arg 2 dst          device {T}[{extents()}] write
// @arg 3 shape        constant i32[4]
// @arg 4 limit        constant i32[4]
// @arg 5 axis         constant i32[4]
// @arg 6 src_strides  constant i64[4]
// @arg 7 axes         constant i32
// @threads  shape[3], shape[2], shape[0]*shape[1]
// @group    _, _, _
// @require  axes >= 1
// @require  min(limit[0], limit[1]) >= 0 && min(limit[2], limit[3]) >= 0
// @term     dst[h,i,j,k] = src[h + {first(0)}, i + {first(1)}, j + {first(2)}, k + {first(3)}]
template <typename T>
[[kernel]] void slice_at(
    const device T* src [[buffer(0)]],
    const device int* start [[buffer(1)]],
    device T* dst [[buffer(2)]],
    constant int* shape [[buffer(3)]],
    constant int* limit [[buffer(4)]],
    constant int* axis [[buffer(5)]],
    constant long* src_strides [[buffer(6)]],
    constant int& axes [[buffer(7)]],
    uint3 at [[thread_position_in_grid]]) {
  const long h = at.z / shape[1];
  const long i = at.z % shape[1];
  const long from = placed(start, limit, axis, axes, src_strides) + h * src_strides[0] + i * src_strides[1] +
      long(at.y) * src_strides[2] + long(at.x) * src_strides[3];
  dst[(long(at.z) * shape[2] + long(at.y)) * shape[3] + long(at.x)] = src[from];
}

// @kernel   update_at_{T:uint32=u32|float16=f16}
// @effects  terms cannot say what stays; testdata/kernels/placed.txtar has NumPy's results
// @arg 0 src          device {T}[{extents()} : {steps(src)}] read
// @arg 1 start        device i32[axes] read
// @arg 2 dst          device {T}[{sizes()} : {steps(dst)}] update
// @arg 3 shape        constant i32[4]
// @arg 4 limit        constant i32[4]
// @arg 5 axis         constant i32[4]
// @arg 6 src_strides  constant i64[4]
// @arg 7 dst_strides  constant i64[4]
// @arg 8 axes         constant i32
// @threads  shape[3], shape[2], shape[0]*shape[1]
// @group    _, _, _
// @require  axes >= 1
// @require  min(limit[0], limit[1]) >= 0 && min(limit[2], limit[3]) >= 0
// @require  dst_strides[3] >= 1
// @require  dst_strides[2] >= (limit[3] + shape[3]) * dst_strides[3]
// @require  dst_strides[1] >= (limit[2] + shape[2]) * dst_strides[2]
// @require  dst_strides[0] >= (limit[1] + shape[1]) * dst_strides[1]
template <typename T>
[[kernel]] void update_at(
    const device T* src [[buffer(0)]],
    const device int* start [[buffer(1)]],
    device T* dst [[buffer(2)]],
    constant int* shape [[buffer(3)]],
    constant int* limit [[buffer(4)]],
    constant int* axis [[buffer(5)]],
    constant long* src_strides [[buffer(6)]],
    constant long* dst_strides [[buffer(7)]],
    constant int& axes [[buffer(8)]],
    uint3 at [[thread_position_in_grid]]) {
  const long h = at.z / shape[1];
  const long i = at.z % shape[1];
  const long from = h * src_strides[0] + i * src_strides[1] + long(at.y) * src_strides[2] + long(at.x) * src_strides[3];
  const long to = placed(start, limit, axis, axes, dst_strides) + h * dst_strides[0] + i * dst_strides[1] +
      long(at.y) * dst_strides[2] + long(at.x) * dst_strides[3];
  dst[to] = src[from];
}

#define INSTANTIATE_PLACED(name, T)                                                             \
  template [[host_name("slice_at_" #name)]] [[kernel]] decltype(slice_at<T>) slice_at<T>;        \
  template [[host_name("update_at_" #name)]] [[kernel]] decltype(update_at<T>) update_at<T>;

INSTANTIATE_PLACED(uint32, uint)
INSTANTIATE_PLACED(float16, half)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness slice_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; ok
// @witness slice_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=189,63,7,1 axes=1 ; threads 7 5 5 / 7 5 5 ; refused
// @witness slice_at_* ; shape=2,3,5,7 limit=0,0,-1,0 axis=0,0,0,0 src_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; ok
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,62,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=188,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,6,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,0 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=1 ; threads 7 5 5 / 7 5 5 ; refused
// @witness slice_at_* ; shape=2,3,5,7 limit=-1,0,4,0 axis=0,0,0,0 src_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness slice_at_* ; shape=2,3,5,7 limit=0,-1,4,0 axis=0,0,0,0 src_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness slice_at_* ; shape=2,3,5,7 limit=0,0,4,-1 axis=0,0,0,0 src_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness slice_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=189,63,7,1 axes=0 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=-1,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,-1,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,-1,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,-1 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=1 ; threads 7 5 6 / 7 5 6 ; refused
// @witness update_at_* ; shape=2,3,1,1 limit=0,0,0,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,0 axes=1 ; threads 1 1 6 / 1 1 6 ; refused
// @witness update_at_* ; shape=2,3,5,7 limit=0,0,4,0 axis=0,0,0,0 src_strides=105,35,7,1 dst_strides=189,63,7,1 axes=0 ; threads 7 5 6 / 7 5 6 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent slice_at_* ; inplace: allow dst src ; all of an array, copied onto itself
// @equivalent update_at_* ; shape: dst* -> one more ; what may be written need not be
