// One element a thread: arithmetic of two arrays, functions of one.

#include "common.h"
#include "activation.h"

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct Subtract {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};

struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

struct Sigmoid {
  template <typename T>
  T operator()(T x) const {
    return sigmoid(x);
  }
};

struct Silu {
  template <typename T>
  T operator()(T x) const {
    return silu(x);
  }
};

// @kernel   vv_Add{T:{floats()}}
// @mlx
// @arg 0 a     device {T}[n] read
// @arg 1 b     device {T}[n] read
// @arg 2 c     device {T}[n] write
// @arg 3 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @term     c[i] = round({T}, a[i] + b[i])
//
// @kernel   vv_Subtract{T:float16=f16|bfloat16=bf16}
// @mlx
// @arg 0 a     device {T}[n] read
// @arg 1 b     device {T}[n] read
// @arg 2 c     device {T}[n] write
// @arg 3 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @term     c[i] = round({T}, a[i] - b[i])
//
// @kernel   vv_Multiply{T:{floats()}}
// @mlx
// @arg 0 a     device {T}[n] read
// @arg 1 b     device {T}[n] read
// @arg 2 c     device {T}[n] write
// @arg 3 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @term     c[i] = round({T}, a[i] * b[i])
template <typename T, typename Op>
[[kernel]] void binary_vv(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    device T* c [[buffer(2)]],
    constant uint& size [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  c[i] = stored(Op()(a[i], b[i]));
}

// Strided operands; the result is row-contiguous.
//
// @kernel   g2_Add{T:{floats()}}
// @mlx
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @term     c[i,j] = round({T}, a[i,j] + b[i,j])
//
// @kernel   g2_Subtract{T:float16=f16|bfloat16=bf16}
// @mlx
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @term     c[i,j] = round({T}, a[i,j] - b[i,j])
//
// @kernel   g2_Multiply{T:{floats()}}
// @mlx
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @term     c[i,j] = round({T}, a[i,j] * b[i,j])
template <typename T, typename Op>
[[kernel]] void binary_g2(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    device T* c [[buffer(2)]],
    constant long a_strides[2] [[buffer(3)]],
    constant long b_strides[2] [[buffer(4)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = at.y;
  const long j = at.x;
  c[i * long(grid.x) + j] = stored(Op()(a[i * a_strides[0] + j * a_strides[1]], b[i * b_strides[0] + j * b_strides[1]]));
}

// Three dimensions.
//
// @text     at3(x) = {x}_strides[0], {x}_strides[1], {x}_strides[2]
// @text     at4(x) = {at3({x})}, {x}_strides[3]
// @text     four() = shape[0], shape[1], shape[2], shape[3]
//
// @kernel   g3_{op:Add|Multiply}{T:{floats()}}
// @mlx
// @arg 0 a          device {T}[d0, d1, d2 : {at3(a)}] read
// @arg 1 b          device {T}[d0, d1, d2 : {at3(b)}] read
// @arg 2 c          device {T}[d0, d1, d2] write
// @arg 3 a_strides  constant i64[3]
// @arg 4 b_strides  constant i64[3]
// @threads  d2, d1, d0
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @if       op == Add
// @term     c[i,j,k] = round({T}, a[i,j,k] + b[i,j,k])
// @else
// @term     c[i,j,k] = round({T}, a[i,j,k] * b[i,j,k])
// @end
template <typename T, typename Op>
[[kernel]] void binary_g3(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    device T* c [[buffer(2)]],
    constant long a_strides[3] [[buffer(3)]],
    constant long b_strides[3] [[buffer(4)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const long i = long(at.z) * a_strides[0] + long(at.y) * a_strides[1] + long(at.x) * a_strides[2];
  const long j = long(at.z) * b_strides[0] + long(at.y) * b_strides[1] + long(at.x) * b_strides[2];
  c[(long(at.z) * long(grid.y) + long(at.y)) * long(grid.x) + long(at.x)] = stored(Op()(a[i], b[j]));
}

// PAIR is how many elements of the last dimension a thread takes where there are more than three. Declarations have four.
constexpr constant int PAIR = 2;

// place returns where an element of several dimensions lies, all but the last two of them in one index.
inline long place(long outer, long j, long k, constant int* shape, constant long* strides, int ndim) {
  long at = j * strides[ndim - 2] + k * strides[ndim - 1];
  for (int d = ndim - 3; d >= 0; d--) {
    at += outer % shape[d] * strides[d];
    outer /= shape[d];
  }
  return at;
}

// @kernel   gn2_{op:Add|Multiply}{T:{floats()}}
// @mlx
// @arg 0 a          device {T}[{four()} : {at4(a)}] read
// @arg 1 b          device {T}[{four()} : {at4(b)}] read
// @arg 2 c          device {T}[{four()}] write
// @arg 3 shape      constant i32[4]
// @arg 4 a_strides  constant i64[4]
// @arg 5 b_strides  constant i64[4]
// @arg 6 ndim       constant i32
// @threads  ceil(shape[3]/2), shape[2], shape[0]*shape[1]
// @group    _, _, _
// @require  ndim == 4
// @inplace  c a
// @inplace  c b
// @if       op == Add
// @term     c[h,i,j,k] = round({T}, a[h,i,j,k] + b[h,i,j,k])
// @else
// @term     c[h,i,j,k] = round({T}, a[h,i,j,k] * b[h,i,j,k])
// @end
template <typename T, typename Op>
[[kernel]] void binary_gn(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    device T* c [[buffer(2)]],
    constant int* shape [[buffer(3)]],
    constant long* a_strides [[buffer(4)]],
    constant long* b_strides [[buffer(5)]],
    constant int& ndim [[buffer(6)]],
    uint3 at [[thread_position_in_grid]]) {
  const long row = (long(at.z) * shape[ndim - 2] + long(at.y)) * shape[ndim - 1];
  const int end = min(int(at.x + 1) * PAIR, shape[ndim - 1]);
  for (int k = int(at.x) * PAIR; k < end; k++) {
    c[row + k] = stored(Op()(a[place(at.z, at.y, k, shape, a_strides, ndim)], b[place(at.z, at.y, k, shape, b_strides, ndim)]));
  }
}

// @kernel   g2_GreaterEqualint32
// @mlx
// @arg 0 a          device i32[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device i32[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device bool[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @term     c[i,j] = bool(max(0, a[i,j] - b[i,j] + 1))
template <typename T>
[[kernel]] void greater_equal_g2(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    device bool* c [[buffer(2)]],
    constant long a_strides[2] [[buffer(3)]],
    constant long b_strides[2] [[buffer(4)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = at.y;
  const long j = at.x;
  c[i * long(grid.x) + j] = a[i * a_strides[0] + j * a_strides[1]] >= b[i * b_strides[0] + j * b_strides[1]];
}

// What a condition selects.
//
// @kernel   g2_Select{T:{floats()}}
// @mlx
// @arg 0 a          device bool[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1 : c_strides[0], c_strides[1]] read
// @arg 3 d          device {T}[d0, d1] write
// @arg 4 a_strides  constant i64[2]
// @arg 5 b_strides  constant i64[2]
// @arg 6 c_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  d b
// @inplace  d c
// @term     d[i,j] = round({T}, select(a[i,j] != 0, b[i,j], c[i,j]))
template <typename T>
[[kernel]] void select_g2(
    const device bool* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    const device T* c [[buffer(2)]],
    device T* d [[buffer(3)]],
    constant long a_strides[2] [[buffer(4)]],
    constant long b_strides[2] [[buffer(5)]],
    constant long c_strides[2] [[buffer(6)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = at.y;
  const long j = at.x;
  const bool first = a[i * a_strides[0] + j * a_strides[1]];
  d[i * long(grid.x) + j] = stored(first ? b[i * b_strides[0] + j * b_strides[1]] : c[i * c_strides[0] + j * c_strides[1]]);
}

// @kernel   g3_Select{T:{floats()}}
// @mlx
// @arg 0 a          device bool[d0, d1, d2 : {at3(a)}] read
// @arg 1 b          device {T}[d0, d1, d2 : {at3(b)}] read
// @arg 2 c          device {T}[d0, d1, d2 : {at3(c)}] read
// @arg 3 d          device {T}[d0, d1, d2] write
// @arg 4 a_strides  constant i64[3]
// @arg 5 b_strides  constant i64[3]
// @arg 6 c_strides  constant i64[3]
// @threads  d2, d1, d0
// @group    _, _, _
// @inplace  d b
// @inplace  d c
// @term     d[i,j,k] = round({T}, select(a[i,j,k] != 0, b[i,j,k], c[i,j,k]))
template <typename T>
[[kernel]] void select_g3(
    const device bool* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    const device T* c [[buffer(2)]],
    device T* d [[buffer(3)]],
    constant long a_strides[3] [[buffer(4)]],
    constant long b_strides[3] [[buffer(5)]],
    constant long c_strides[3] [[buffer(6)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const bool first = a[long(at.z) * a_strides[0] + long(at.y) * a_strides[1] + long(at.x) * a_strides[2]];
  const long i = long(at.z) * b_strides[0] + long(at.y) * b_strides[1] + long(at.x) * b_strides[2];
  const long j = long(at.z) * c_strides[0] + long(at.y) * c_strides[1] + long(at.x) * c_strides[2];
  d[(long(at.z) * long(grid.y) + long(at.y)) * long(grid.x) + long(at.x)] = stored(first ? b[i] : c[j]);
}

// @kernel   gn2_Select{T:{floats()}}
// @mlx
// @arg 0 a          device bool[{four()} : {at4(a)}] read
// @arg 1 b          device {T}[{four()} : {at4(b)}] read
// @arg 2 c          device {T}[{four()} : {at4(c)}] read
// @arg 3 d          device {T}[{four()}] write
// @arg 4 shape      constant i32[4]
// @arg 5 a_strides  constant i64[4]
// @arg 6 b_strides  constant i64[4]
// @arg 7 c_strides  constant i64[4]
// @arg 8 ndim       constant i32
// @threads  ceil(shape[3]/2), shape[2], shape[0]*shape[1]
// @group    _, _, _
// @require  ndim == 4
// @inplace  d b
// @inplace  d c
// @term     d[h,i,j,k] = round({T}, select(a[h,i,j,k] != 0, b[h,i,j,k], c[h,i,j,k]))
template <typename T>
[[kernel]] void select_gn(
    const device bool* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    const device T* c [[buffer(2)]],
    device T* d [[buffer(3)]],
    constant int* shape [[buffer(4)]],
    constant long* a_strides [[buffer(5)]],
    constant long* b_strides [[buffer(6)]],
    constant long* c_strides [[buffer(7)]],
    constant int& ndim [[buffer(8)]],
    uint3 at [[thread_position_in_grid]]) {
  const long row = (long(at.z) * shape[ndim - 2] + long(at.y)) * shape[ndim - 1];
  const int end = min(int(at.x + 1) * PAIR, shape[ndim - 1]);
  for (int k = int(at.x) * PAIR; k < end; k++) {
    const bool first = a[place(at.z, at.y, k, shape, a_strides, ndim)];
    d[row + k] = stored(first ? b[place(at.z, at.y, k, shape, b_strides, ndim)] : c[place(at.z, at.y, k, shape, c_strides, ndim)]);
  }
}

// @kernel   v_Sigmoid{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16}
// @mlx
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @if       T == bf16
// @where    part[i] = {part_bf16(in[i])}
// @else
// @where    part[i] = {part_f16(in[i])}
// @end
// @term     out[i] = round({T}, {sigmoid(in[i]; part[i])})
//
// @kernel   v_Silu{T:float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @where    part[i] = {part_{T}(in[i])}
// @term     out[i] = round({T}, {silu_{T}(in[i]; part[i])})
template <typename T, typename Op>
[[kernel]] void unary_v(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = stored(Op()(in[i]));
}

#define INSTANTIATE_ELEMENTWISE(name, T)                                                             \
  template [[host_name("vv_Add" #name)]] [[kernel]] decltype(binary_vv<T, Add>) binary_vv<T, Add>;      \
  template [[host_name("vv_Multiply" #name)]] [[kernel]] decltype(binary_vv<T, Multiply>) binary_vv<T, Multiply>; \
  template [[host_name("g2_Add" #name)]] [[kernel]] decltype(binary_g2<T, Add>) binary_g2<T, Add>;      \
  template [[host_name("g2_Multiply" #name)]] [[kernel]] decltype(binary_g2<T, Multiply>) binary_g2<T, Multiply>; \
  template [[host_name("g3_Add" #name)]] [[kernel]] decltype(binary_g3<T, Add>) binary_g3<T, Add>;      \
  template [[host_name("g3_Multiply" #name)]] [[kernel]] decltype(binary_g3<T, Multiply>) binary_g3<T, Multiply>; \
  template [[host_name("gn2_Add" #name)]] [[kernel]] decltype(binary_gn<T, Add>) binary_gn<T, Add>;     \
  template [[host_name("gn2_Multiply" #name)]] [[kernel]] decltype(binary_gn<T, Multiply>) binary_gn<T, Multiply>; \
  template [[host_name("g2_Select" #name)]] [[kernel]] decltype(select_g2<T>) select_g2<T>;             \
  template [[host_name("g3_Select" #name)]] [[kernel]] decltype(select_g3<T>) select_g3<T>;             \
  template [[host_name("gn2_Select" #name)]] [[kernel]] decltype(select_gn<T>) select_gn<T>;            \
  template [[host_name("v_Sigmoid" #name #name)]] [[kernel]] decltype(unary_v<T, Sigmoid>) unary_v<T, Sigmoid>; \
  template [[host_name("v_Silu" #name #name)]] [[kernel]] decltype(unary_v<T, Silu>) unary_v<T, Silu>;

EACH_FLOAT(INSTANTIATE_ELEMENTWISE)

template [[host_name("g2_GreaterEqualint32")]] [[kernel]] decltype(greater_equal_g2<int>) greater_equal_g2<int>;

// Of f32 a generated kernel subtracts.
#define INSTANTIATE_SUBTRACT(name, T)                                                                             \
  template [[host_name("vv_Subtract" #name)]] [[kernel]] decltype(binary_vv<T, Subtract>) binary_vv<T, Subtract>; \
  template [[host_name("g2_Subtract" #name)]] [[kernel]] decltype(binary_g2<T, Subtract>) binary_g2<T, Subtract>;

INSTANTIATE_SUBTRACT(float16, half)
INSTANTIATE_SUBTRACT(bfloat16, bfloat)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Elementwise: one thread an element, the innermost dimension along x.
//
// @witness vv_* ;  ; threads 1000 1 1 / 256 1 1 ; ok
// @witness vv_* ;  ; groups 4 1 1 / 250 1 1 ; ok
// @witness vv_* ; inplace=c,{a|b} ; threads 1000 1 1 / 256 1 1 ; ok
// @witness vv_* ;  ; threads 1000 2 1 / 256 1 1 ; refused
// @witness vv_* ;  ; threads 1000 1 2 / 256 1 1 ; refused
// @witness g2_{Add|Subtract|Multiply}* ; a_strides=576,1 b_strides=0,1 ; threads 576 5 1 / 256 1 1 ; ok
// @witness g2_{Add|Subtract|Multiply}* ; a_strides=576,1 b_strides=0,1 inplace=c,a ; threads 576 5 1 / 256 1 1 ; ok
// @witness g2_{Add|Subtract|Multiply}* ; a_strides=0,1 b_strides=576,1 inplace=c,b ; threads 576 5 1 / 256 1 1 ; ok
// @witness g2_Add* ; a_strides=1,5 b_strides=0,1 inplace=c,a ; threads 576 5 1 / 256 1 1 ; refused
// @witness g3_{Add|Multiply}* ; a_strides=64,576,1 b_strides=0,0,1 ; threads 64 20 9 / 64 4 4 ; ok
// @witness g3_{Add|Multiply}* ; a_strides=1280,64,1 b_strides=0,0,1 inplace=c,a ; threads 64 20 9 / 64 4 4 ; ok
// @witness g3_{Add|Multiply}* ; a_strides=0,0,1 b_strides=1280,64,1 inplace=c,b ; threads 64 20 9 / 64 4 4 ; ok
// @witness gn2_{Add|Multiply}* ; ndim=4 shape=2,3,5,7 a_strides=105,7,21,1 b_strides=0,0,0,1 ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_{Add|Multiply}* ; ndim=4 shape=2,3,5,7 a_strides=105,35,7,1 b_strides=0,0,0,1 inplace=c,a ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_{Add|Multiply}* ; ndim=4 shape=2,3,5,7 a_strides=0,0,0,1 b_strides=105,35,7,1 inplace=c,b ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_{Add|Multiply}* ; ndim={3|5} shape=2,3,5,7 a_strides=105,7,21,1 b_strides=0,0,0,1 ; threads 4 5 6 / 4 5 6 ; refused
// @witness gn2_{Add|Multiply}* ; ndim=4 shape=2,3,5,7 a_strides=105,7,21,1 b_strides=0,0,0,1 ; threads 3 5 6 / 4 5 6 ; refused
// @witness g2_GreaterEqualint32 ; a_strides=1,0 b_strides=0,1 ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_GreaterEqualint32 ; a_strides=1,0 b_strides=0,1 ; threads 40 33 2 / 32 32 1 ; refused
// @witness g2_Select* ; a_strides=40,1 b_strides=40,1 c_strides=0,0 ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_Select* ; a_strides=0,1 b_strides=40,1 c_strides=0,0 inplace=d,b ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_Select* ; a_strides=0,1 b_strides=0,0 c_strides=40,1 inplace=d,c ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_Select* ; a_strides=40,1 b_strides=40,1 c_strides=0,0 ; threads 40 33 2 / 32 32 1 ; refused
// @witness g3_Select* ; a_strides=0,40,1 b_strides=1320,40,1 c_strides=0,0,0 ; threads 40 33 4 / 32 32 1 ; ok
// @witness g3_Select* ; a_strides=0,40,1 b_strides=1320,40,1 c_strides=0,0,0 inplace=d,b ; threads 40 33 4 / 32 32 1 ; ok
// @witness g3_Select* ; a_strides=0,40,1 b_strides=0,0,0 c_strides=1320,40,1 inplace=d,c ; threads 40 33 4 / 32 32 1 ; ok
// @witness gn2_Select* ; ndim=4 shape=2,3,5,7 a_strides=0,35,7,1 b_strides=105,35,7,1 c_strides=0,0,0,0 ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_Select* ; ndim=4 shape=2,3,5,7 a_strides=0,35,7,1 b_strides=105,35,7,1 c_strides=0,0,0,0 inplace=d,b ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_Select* ; ndim=4 shape=2,3,5,7 a_strides=0,35,7,1 b_strides=0,0,0,0 c_strides=105,35,7,1 inplace=d,c ; threads 4 5 6 / 4 5 6 ; ok
// @witness gn2_Select* ; ndim={3|5} shape=2,3,5,7 a_strides=0,35,7,1 b_strides=105,35,7,1 c_strides=0,0,0,0 ; threads 4 5 6 / 4 5 6 ; refused
// @witness gn2_Select* ; ndim=4 shape=2,3,5,7 a_strides=0,35,7,1 b_strides=105,35,7,1 c_strides=0,0,0,0 ; threads 3 5 6 / 4 5 6 ; refused
// @witness v_{Sigmoid|Silu}* ;  ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_{Sigmoid|Silu}* ; inplace=out,in ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_Sigmoid* ;  ; threads 3072 2 1 / 1024 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent *_Select* ; round: * ; what is selected is of the type
// @equivalent vv_{Add|Multiply}* ; slot: a exchanged with b ; a + b = b + a and a · b = b · a, to the bit
