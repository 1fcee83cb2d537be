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
  template [[host_name("v_Sigmoid" #name #name)]] [[kernel]] decltype(unary_v<T, Sigmoid>) unary_v<T, Sigmoid>; \
  template [[host_name("v_Silu" #name #name)]] [[kernel]] decltype(unary_v<T, Silu>) unary_v<T, Silu>;

EACH_FLOAT(INSTANTIATE_ELEMENTWISE)

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
// @witness v_{Sigmoid|Silu}* ;  ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_{Sigmoid|Silu}* ; inplace=out,in ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_Sigmoid* ;  ; threads 3072 2 1 / 1024 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent vv_{Add|Multiply}* ; slot: a exchanged with b ; a + b = b + a and a · b = b · a, to the bit
