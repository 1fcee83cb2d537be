// Rotary position embedding: pairs of elements of a head are rotated by angles
// that grow with the position. Pair i of `pairs` turns by
// position · 2^(−base·i/pairs), base being log2 of the usual θ base. A pair is
// (2i, 2i+1) when traditional, (i, i+pairs) otherwise.

#include "common.h"
#include "rope.h"
#include "rotation.h"

// Pairs that are turned, of v, and their results in out; theta has the indices t and i.
//
// @lines   order()
// @if      order == pairs
// @require forward == 1 && traditional == 1
// @else
// @require forward == 1 && traditional == 0
// @end
// @end
// @lines   turned(s; v; out; t; row)
// @if      order == pairs
// @where   first{s}[{row},i] = {first({v}; {row},2*i; {row},2*i + 1; {t}i)}
// @where   second{s}[{row},i] = {second({v}; {row},2*i; {row},2*i + 1; {t}i)}
// @term    {out}[{row},j] = round({T}, select(j % 2 == 0, first{s}[{row},j/2], second{s}[{row},j/2]))
// @else
// @where   first{s}[{row},i] = {first({v}; {row},i; {row},i + pairs; {t}i)}
// @where   second{s}[{row},i] = {second({v}; {row},i; {row},i + pairs; {t}i)}
// @term    {out}[{row},j] = round({T}, select(j < pairs, first{s}[{row},j % pairs], second{s}[{row},j % pairs]))
// @end
// @end

// One position for all heads.
//
// @kernel  rope_single_{T:{floats()}}{order:=pairs|=halves}
// @mlx
// @constant 1 forward bool
// @constant 2 traditional bool
// @arg     in      device {T}[heads, 2*pairs : stride, 1] read
// @arg     out     device {T}[heads, 2*pairs : stride, 1] write
// @arg     offset  constant i32
// @arg     scale   constant f32
// @arg     stride  constant i64
// @arg 10  base    constant f32
// @threads pairs, heads, 1
// @group   _, _, _
// @use     order()
// @require heads == 1 || stride >= 2*pairs
// @inplace out in
// @where   theta[i] = (scale * f32(offset)) * exp2(-(f32(i) / f32(pairs)) * base)
// @use     turned(; in; out; ; h)
//
// The same, back, in either pairing.
//
// @kernel  rope_single_{T:{floats()}}
// @mlx
// @constant 1 forward bool
// @constant 2 traditional bool
// @use     one_position({T})
// @arg 10  base    constant f32
// @threads pairs, heads, 1
// @group   _, _, _
// @require forward == 0
// @require heads == 1 || stride >= 2*pairs
// @inplace out in
// @where   theta[i] = (scale * f32(offset)) * exp2(-(f32(i) / f32(pairs)) * base)
// @use     turned_either(; h; {T}; -)
template <typename T>
[[kernel]] void rope_single(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant int& offset [[buffer(2)]],
    constant float& scale [[buffer(3)]],
    constant long& stride [[buffer(4)]],
    constant float& base [[buffer(10)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long head = long(at.y) * stride;
  rotate_head(in + head, out + head, angle(scale * float(offset), at.x, grid.x, base), at.x, grid.x);
}

// Queries and keys in one dispatch; the keys may go where a cache wants them.
//
// @kernel  rope_single_x2_{T:{floats()}}{order:=pairs|=halves}
// @constant 1 forward bool
// @constant 2 traditional bool
// @each    s = q k
// @arg     {s}             device {T}[{s}_heads, 2*pairs : {s}_stride, 1] read
// @end
// @each    s = q k
// @arg     {s}_out         device {T}[{s}_heads, 2*pairs : {s}_out_stride, 1] write
// @end
// @arg     offset        constant i32
// @arg     scale         constant f32
// @arg     q_stride      constant i64
// @arg     k_stride      constant i64
// @arg     q_out_stride  constant i64
// @arg     k_out_stride  constant i64
// @arg     base          constant f32
// @arg     q_heads       constant i32
// @arg     k_heads       constant i32
// @threads pairs, q_heads + k_heads, 1
// @group   _, _, _
// @use     order()
// @require q_heads >= 1 && k_heads >= 1
// @where   theta[i] = (scale * f32(offset)) * exp2(-(f32(i) / f32(pairs)) * base)
// @each    s = q k
// @require {s}_heads == 1 || {s}_out_stride >= 2*pairs
// @inplace {s}_out {s}
// @use     turned(_{s}; {s}; {s}_out; ; h)
// @end
template <typename T>
[[kernel]] void rope_single_x2(
    const device T* q [[buffer(0)]],
    const device T* k [[buffer(1)]],
    device T* q_out [[buffer(2)]],
    device T* k_out [[buffer(3)]],
    constant int& offset [[buffer(4)]],
    constant float& scale [[buffer(5)]],
    constant long& q_stride [[buffer(6)]],
    constant long& k_stride [[buffer(7)]],
    constant long& q_out_stride [[buffer(8)]],
    constant long& k_out_stride [[buffer(9)]],
    constant float& base [[buffer(10)]],
    constant int& q_heads [[buffer(11)]],
    constant int& k_heads [[buffer(12)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const float position = scale * float(offset);
  const int head = int(at.y);
  if (head < q_heads) {
    rotate_head(q + head * q_stride, q_out + head * q_out_stride, angle(position, at.x, grid.x, base), at.x, grid.x);
  } else if (head < q_heads + k_heads) {
    rotate_head(
        k + (head - q_heads) * k_stride, k_out + (head - q_heads) * k_out_stride, angle(position, at.x, grid.x, base), at.x, grid.x);
  }
}

// A sequence of T positions from offset[0] on.
//
// @kernel  rope_{T:{floats()}}{order:=pairs|=halves}
// @mlx
// @constant 1 forward bool
// @constant 2 traditional bool
// @constant 3 hs_transpose bool
// @arg     in             device {T}[n_head, length, 2*pairs : strides[0], strides[1], strides[2]] read
// @arg     out            device {T}[n_head, length, 2*pairs : out_strides[0], out_strides[1], 1] write
// @arg     offset         device i32[1] read
// @arg     scale          constant f32
// @arg     strides        constant i64[3]
// @arg     out_strides    constant i64[3]
// @arg     offset_stride  constant i64
// @arg     n_head         constant i32
// @arg 10  base           constant f32
// @threads pairs, length, ceil(n_head/4)
// @group   _, _, _
// @if      order == pairs
// @require forward == 1 && traditional == 1 && hs_transpose == 0
// @else
// @require forward == 1 && traditional == 0 && hs_transpose == 0
// @end
// @use     apart(n_head; out_strides)
// @inplace out in
// @where   theta[t,i] = (scale * f32(t + offset[0])) * exp2(-(f32(i) / f32(pairs)) * base)
// @use     turned(; in; out; t,; h,t)
//
// Batches, each with positions of its own; heads of a position together, as hs_transpose says, and out not; forward or
// back, in either pairing.
//
// @kernel  rope_{T:{floats()}}
// @mlx
// @constant 1 forward bool
// @constant 2 traditional bool
// @constant 3 hs_transpose bool
// @use     positions({T})
// @arg 10  base           constant f32
// @use     batches()
// @require forward == 0 || hs_transpose == 1 || batch > 1
// @where   theta[b,t,i] = (scale * f32(t + offset[b])) * exp2(-(f32(i) / f32(pairs)) * base)
// @use     turned_either(b,t,; b,h,t; {T}; f32(2*forward - 1) * )
template <typename T>
[[kernel]] void rope(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    const device int* offset [[buffer(2)]],
    constant float& scale [[buffer(3)]],
    constant long strides[3] [[buffer(4)]],
    constant long out_strides[3] [[buffer(5)]],
    constant long& offset_stride [[buffer(6)]],
    constant int& n_head [[buffer(7)]],
    constant float& base [[buffer(10)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const int groups = head_groups(n_head);
  const int batch = int(at.z) / groups;
  const int head = int(at.z) % groups * HEADS;
  const float position = scale * float(int(at.y) + offset[batch * offset_stride]);
  rotate_heads(
      in + first_of(batch, strides, n_head, grid) + long(at.y) * strides[1], out + batch * n_head * out_strides[0] + long(at.y) * out_strides[1],
      strides[0], strides[2], out_strides[0], out_strides[2], head, n_head, angle(position, at.x, grid.x, base), at.x, grid.x);
}

// Queries and keys in one dispatch: the groups of key heads follow those of
// query heads along z.
//
// @kernel  rope_x2_{T:{floats()}}{order:=pairs|=halves}
// @constant 1 forward bool
// @constant 2 traditional bool
// @each    s = q k
// @arg     {s}              device {T}[{s}_heads, length, 2*pairs : {s}_strides[0], {s}_strides[1], {s}_strides[2]] read
// @end
// @each    s = q k
// @arg     {s}_out          device {T}[{s}_heads, length, 2*pairs : {s}_out_strides[0], {s}_out_strides[1], 1] write
// @end
// @arg     offset         device i32[1] read
// @arg     scale          constant f32
// @arg     q_strides      constant i64[3]
// @arg     k_strides      constant i64[3]
// @arg     q_out_strides  constant i64[3]
// @arg     k_out_strides  constant i64[3]
// @arg     base           constant f32
// @arg     q_heads        constant i32
// @arg     k_heads        constant i32
// @threads pairs, length, ceil(q_heads/4) + ceil(k_heads/4)
// @group   _, _, _
// @use     order()
// @require q_heads >= 1 && k_heads >= 1
// @where   theta[t,i] = (scale * f32(t + offset[0])) * exp2(-(f32(i) / f32(pairs)) * base)
// @each    s = q k
// @use     apart({s}_heads; {s}_out_strides)
// @inplace {s}_out {s}
// @use     turned(_{s}; {s}; {s}_out; t,; h,t)
// @end
template <typename T>
[[kernel]] void rope_x2(
    const device T* q [[buffer(0)]],
    const device T* k [[buffer(1)]],
    device T* q_out [[buffer(2)]],
    device T* k_out [[buffer(3)]],
    const device int* offset [[buffer(4)]],
    constant float& scale [[buffer(5)]],
    constant long q_strides[3] [[buffer(6)]],
    constant long k_strides[3] [[buffer(7)]],
    constant long q_out_strides[3] [[buffer(8)]],
    constant long k_out_strides[3] [[buffer(9)]],
    constant float& base [[buffer(10)]],
    constant int& q_heads [[buffer(11)]],
    constant int& k_heads [[buffer(12)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const float position = scale * float(int(at.y) + offset[0]);
  const int q_groups = head_groups(q_heads);
  const long t = long(at.y);
  if (int(at.z) < q_groups) {
    rotate_heads(
        q + t * q_strides[1], q_out + t * q_out_strides[1], q_strides[0], q_strides[2], q_out_strides[0], q_out_strides[2], int(at.z) * HEADS, q_heads,
        angle(position, at.x, grid.x, base), at.x, grid.x);
  } else {
    rotate_heads(
        k + t * k_strides[1], k_out + t * k_out_strides[1], k_strides[0], k_strides[2], k_out_strides[0], k_out_strides[2], (int(at.z) - q_groups) * HEADS,
        k_heads, angle(position, at.x, grid.x, base), at.x, grid.x);
  }
}

#define INSTANTIATE_ROPE(name, T)                                                                            \
  template [[host_name("rope_single_" #name)]] [[kernel]] decltype(rope_single<T>) rope_single<T>;           \
  template [[host_name("rope_" #name)]] [[kernel]] decltype(rope<T>) rope<T>;                                \
  template [[host_name("rope_single_x2_" #name)]] [[kernel]] decltype(rope_single_x2<T>) rope_single_x2<T>;  \
  template [[host_name("rope_x2_" #name)]] [[kernel]] decltype(rope_x2<T>) rope_x2<T>;

EACH_FLOAT(INSTANTIATE_ROPE)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Rope: a thread a pair, and 4 heads of a position in the second form.
//
// @witness rope_single_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 stride=64 ; threads 32 9 1 / 32 1 1 ; ok
// @witness rope_single_{|b}float* ; forward@1=1 traditional@2={0|1} stride=64 inplace=out,in ; threads 32 9 1 / 32 1 1 ; ok
// @witness rope_single_{|b}float* ; forward@1=1 traditional@2={0|1} stride=0 ; threads 32 1 1 / 32 1 1 ; ok
// @witness rope_single_{|b}float* ; forward@1=1 traditional@2={0|1} stride=63 ; threads 32 2 1 / 32 1 1 ; refused
// @witness rope_single_{|b}float* ; forward@1=0 traditional@2={0|1} stride=64 ; threads 32 9 1 / 32 1 1 ; ok
// @witness rope_single_{|b}float* ; forward@1=1 traditional@2=0 stride=64 ; threads 32 9 2 / 32 1 1 ; refused
// @witness rope_single_{|b}float* ; forward@1=0 traditional@2={0|1} stride=64 inplace=out,in ; threads 32 9 1 / 32 1 1 ; ok
// @witness rope_single_{|b}float* ; forward@1=0 traditional@2={0|1} stride=63 ; threads 32 2 1 / 32 1 1 ; refused
// @witness rope_single_{|b}float* ; forward@1=0 traditional@2={0|1} stride=0 ; threads 32 1 1 / 32 1 1 ; ok
// @witness rope_single_{|b}float* ; forward@1=0 traditional@2=0 stride=64 ; threads 32 9 2 / 32 1 1 ; refused
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} hs_transpose@3=0 strides=64,576,1 out_strides=64,576,1 n_head=9 ; threads 32 20 3 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=64,576,1 n_head=9 inplace=out,in ; threads 32 20 3 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=1280,64,1 n_head=8 ; threads 32 20 2 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=64,0,1 n_head=8 ; threads 32 1 2 / 32 1 1 ; ok
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=0,64,1 n_head=1 ; threads 32 20 1 / 32 1 1 ; ok
// @witness rope_{|b}float* ; forward@1=0 traditional@2={0|1} strides=64,576,1 out_strides=64,576,1 n_head=9 ; threads 32 20 3 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} hs_transpose@3=1 strides=64,576,1 out_strides=64,576,1 n_head=9 ; threads 32 20 3 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=128,1152,2 n_head=9 ; threads 32 20 3 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=64,63,1 n_head=1 ; threads 32 20 1 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=63,576,1 n_head=9 ; threads 32 1 3 / 32 1 1 ; refused
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=64,575,1 n_head=9 ; threads 32 20 3 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} strides=64,576,1 out_strides=1279,64,1 n_head=9 ; threads 32 20 3 / 32 4 1 ; refused
//
// Batches.
//
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1280,64,1 offset_stride=1 n_head=9 ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1280,64,1 n_head=9 inplace=out,in ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1280,64,1 n_head=5 ; threads 32 20 4 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1280,64,1 n_head=1 ; threads 32 20 2 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=64,64,1 out_strides=64,0,1 n_head=9 ; threads 32 1 6 / 32 1 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=64,1152,1 out_strides=64,1152,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=1 strides=64,576,1 out_strides=1280,64,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1280,64,1 n_head=9 ; threads 32 20 5 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=64,64,1 out_strides=63,0,1 n_head=9 ; threads 32 1 6 / 32 1 1 ; refused
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=64,1152,1 out_strides=64,1151,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1279,64,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=2560,64,2 n_head=9 ; threads 32 20 6 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=1280,63,1 n_head=1 ; threads 32 20 1 / 32 4 1 ; refused
// @witness rope_{|b}float* ; forward@1=0 traditional@2=0 hs_transpose@3=0 strides=64,64,1 out_strides=65,64,1 n_head=1 ; threads 32 20 1 / 32 4 1 ; ok
// @witness rope_{|b}float* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 strides=1280,64,1 out_strides=0,64,1 n_head=1 ; threads 32 20 1 / 32 4 1 ; ok
//
// @witness rope_{|b}float* ; forward@1=1 traditional@2={0|1} hs_transpose@103=1 strides=64,576,1 out_strides=64,576,1 n_head=9 ; threads 32 20 3 / 32 4 1 ; refused
//
// @equivalent rope_bfloat16#? ; require: * -> forward == 1 && traditional == ? ; with one batch hs_transpose says nothing
// @equivalent rope_bfloat16#2 ; require: batch > 1 -> batch >= 1 ; the declarations above describe one batch that is turned forward
// @equivalent rope_bfloat16#2 ; require: drop forward == 0 || hs_transpose == 1 || batch > 1 ; likewise
//
// Queries and keys at once.
//
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=9 k_heads=3 ; threads 32 12 1 / 32 1 1 ; ok
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=9 k_heads=3 inplace=q_out,q ; threads 32 12 1 / 32 1 1 ; ok
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=9 k_heads=3 inplace=k_out,k ; threads 32 12 1 / 32 1 1 ; ok
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=3 k_heads=3 inplace=q_out,k ; threads 32 6 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=3 k_heads=3 inplace=k_out,q ; threads 32 6 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=9 k_heads=3 ; threads 32 13 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=9 k_heads=3 ; threads 32 12 2 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=0 k_out_stride=0 q_heads=1 k_heads=1 ; threads 32 2 1 / 32 1 1 ; ok
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=63 k_out_stride=64 q_heads=2 k_heads=2 ; threads 32 4 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=63 q_heads=2 k_heads=2 ; threads 32 4 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=0 k_heads=2 ; threads 32 2 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=1 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=2 k_heads=0 ; threads 32 2 1 / 32 1 1 ; refused
// @witness rope_single_x2_{|b}float* ; forward@1=0 traditional@2={0|1} offset=17 q_stride=64 k_stride=64 q_out_stride=64 k_out_stride=64 q_heads=9 k_heads=3 ; threads 32 12 1 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; ok
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 inplace=q_out,q ; threads 32 20 4 / 32 4 1 ; ok
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 inplace=k_out,k ; threads 32 20 4 / 32 4 1 ; ok
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,192,1 k_strides=64,192,1 q_out_strides=64,192,1 k_out_strides=64,192,1 q_heads=3 k_heads=3 inplace=q_out,k ; threads 32 20 2 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,192,1 k_strides=64,192,1 q_out_strides=64,192,1 k_out_strides=64,192,1 q_heads=3 k_heads=3 inplace=k_out,q ; threads 32 20 2 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 20 5 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=1280,64,1 k_out_strides=1280,64,1 q_heads=26 k_heads=9 ; threads 32 20 10 / 32 4 1 ; ok
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,0,1 k_out_strides=64,0,1 q_heads=9 k_heads=3 ; threads 32 1 4 / 32 1 1 ; ok
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=0,64,1 k_out_strides=0,64,1 q_heads=1 k_heads=1 ; threads 32 20 2 / 32 1 1 ; ok
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=0 k_heads=3 ; threads 32 20 1 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=0 ; threads 32 20 3 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=0 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=128,1152,2 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,63,1 k_out_strides=64,192,1 q_heads=1 k_heads=1 ; threads 32 20 2 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=63,576,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 1 4 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,575,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=1279,64,1 k_out_strides=64,192,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=128,1152,2 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,63,1 q_heads=1 k_heads=1 ; threads 32 20 2 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=63,576,1 q_heads=9 k_heads=3 ; threads 32 1 4 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=64,191,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,192,1 q_out_strides=64,576,1 k_out_strides=1279,64,1 q_heads=9 k_heads=3 ; threads 32 20 4 / 32 4 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,576,1 q_out_strides=64,64,1 k_out_strides=64,640,1 q_heads=9 k_heads=9 ; threads 32 2 6 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,576,1 q_out_strides=64,64,1 k_out_strides=64,640,1 q_heads=2 k_heads=9 ; threads 32 20 4 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,576,1 q_out_strides=64,640,1 k_out_strides=64,64,1 q_heads=9 k_heads=9 ; threads 32 2 6 / 32 1 1 ; refused
// @witness rope_x2_{|b}float* ; forward@1=1 traditional@2={0|1} q_strides=64,576,1 k_strides=64,576,1 q_out_strides=64,640,1 k_out_strides=64,64,1 q_heads=9 k_heads=2 ; threads 32 20 4 / 32 1 1 ; refused
