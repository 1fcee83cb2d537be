// Rotary position embedding: pairs of elements of a head are rotated by angles
// that grow with the position. Pair i of `pairs` turns by
// position · 2^(−base·i/pairs), base being log2 of the usual θ base. A pair is
// (2i, 2i+1) when traditional, (i, i+pairs) otherwise.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

constant bool forward [[function_constant(1)]];
constant bool traditional [[function_constant(2)]];
constant bool hs_transpose [[function_constant(3)]];

inline float angle(float position, uint pair, uint pairs, float base) {
  return position * precise::exp2(-(float(pair) / float(pairs)) * base);
}

// turn rotates the pair (a, b), back if not forward.
inline void turn(float a, float b, float theta, thread float& ra, thread float& rb) {
  const float c = precise::cos(theta);
  const float s = forward ? precise::sin(theta) : -precise::sin(theta);
  ra = a * c - b * s;
  rb = a * s + b * c;
}

// One position for all heads.
//
// @kernel   rope_single_{T:float32=f32}
// @constant 1 forward bool
// @constant 2 traditional bool
// @arg 0 in      device {T}[heads, 2*pairs : stride, 1] read
// @arg 1 out     device {T}[heads, 2*pairs : stride, 1] write
// @arg 2 offset  constant i32
// @arg 3 scale   constant f32
// @arg 4 stride  constant i64
// @arg 10 base   constant f32
// @threads  pairs, heads, 1
// @group    _, _, _
// @require  forward == 1 && traditional == 1
// @require  heads == 1 || stride >= 2*pairs
// @inplace  out in
// @where    theta[i] = (scale * f32(offset)) * exp2(-(f32(i) / f32(pairs)) * base)
// @where    first[h,i] = in[h,2*i] * cos(theta[i]) - in[h,2*i + 1] * sin(theta[i])
// @where    second[h,i] = in[h,2*i] * sin(theta[i]) + in[h,2*i + 1] * cos(theta[i])
// @term     out[h,j] = round({T}, select(j % 2 == 0, first[h,j/2], second[h,j/2]))
//
// @kernel   rope_single_{T:float32=f32}
// @constant 1 forward bool
// @constant 2 traditional bool
// @arg 0 in      device {T}[heads, 2*pairs : stride, 1] read
// @arg 1 out     device {T}[heads, 2*pairs : stride, 1] write
// @arg 2 offset  constant i32
// @arg 3 scale   constant f32
// @arg 4 stride  constant i64
// @arg 10 base   constant f32
// @threads  pairs, heads, 1
// @group    _, _, _
// @require  forward == 1 && traditional == 0
// @require  heads == 1 || stride >= 2*pairs
// @inplace  out in
// @where    theta[i] = (scale * f32(offset)) * exp2(-(f32(i) / f32(pairs)) * base)
// @where    first[h,i] = in[h,i] * cos(theta[i]) - in[h,i + pairs] * sin(theta[i])
// @where    second[h,i] = in[h,i] * sin(theta[i]) + in[h,i + pairs] * cos(theta[i])
// @term     out[h,j] = round({T}, select(j < pairs, first[h,j % pairs], second[h,j % pairs]))
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
  const long i = head + (traditional ? 2 * long(at.x) : long(at.x));
  const long j = i + (traditional ? 1 : long(grid.x));
  const float theta = angle(scale * float(offset), at.x, grid.x, base);
  float a;
  float b;
  turn(float(in[i]), float(in[j]), theta, a, b);
  out[i] = T(a);
  out[j] = T(b);
}

constexpr constant int HEADS = 4; // heads that a thread rotates by its angle

// A sequence of T positions from offset[0] on.
//
// @kernel   rope_{T:float32=f32}
// @constant 1 forward bool
// @constant 2 traditional bool
// @constant 3 hs_transpose bool
// @arg 0 in             device {T}[n_head, length, 2*pairs : strides[0], strides[1], strides[2]] read
// @arg 1 out            device {T}[n_head, length, 2*pairs : out_strides[0], out_strides[1], 1] write
// @arg 2 offset         device i32[1] read
// @arg 3 scale          constant f32
// @arg 4 strides        constant i64[3]
// @arg 5 out_strides    constant i64[3]
// @arg 6 offset_stride  constant i64
// @arg 7 n_head         constant i32
// @arg 10 base          constant f32
// @threads  pairs, length, ceil(n_head/4)
// @group    _, _, _
// @require  forward == 1 && traditional == 1 && hs_transpose == 0
// @require  out_strides[2] == 1
// @require  length == 1 || out_strides[1] >= 2*pairs
// @require  n_head == 1 || out_strides[0] >= 2*pairs
// @require  n_head == 1 || length == 1 || out_strides[0] >= length*out_strides[1] || out_strides[1] >= n_head*out_strides[0]
// @inplace  out in
// @where    theta[t,i] = (scale * f32(t + offset[0])) * exp2(-(f32(i) / f32(pairs)) * base)
// @where    first[h,t,i] = in[h,t,2*i] * cos(theta[t,i]) - in[h,t,2*i + 1] * sin(theta[t,i])
// @where    second[h,t,i] = in[h,t,2*i] * sin(theta[t,i]) + in[h,t,2*i + 1] * cos(theta[t,i])
// @term     out[h,t,j] = round({T}, select(j % 2 == 0, first[h,t,j/2], second[h,t,j/2]))
//
// @kernel   rope_{T:float32=f32}
// @constant 1 forward bool
// @constant 2 traditional bool
// @constant 3 hs_transpose bool
// @arg 0 in             device {T}[n_head, length, 2*pairs : strides[0], strides[1], strides[2]] read
// @arg 1 out            device {T}[n_head, length, 2*pairs : out_strides[0], out_strides[1], 1] write
// @arg 2 offset         device i32[1] read
// @arg 3 scale          constant f32
// @arg 4 strides        constant i64[3]
// @arg 5 out_strides    constant i64[3]
// @arg 6 offset_stride  constant i64
// @arg 7 n_head         constant i32
// @arg 10 base          constant f32
// @threads  pairs, length, ceil(n_head/4)
// @group    _, _, _
// @require  forward == 1 && traditional == 0 && hs_transpose == 0
// @require  out_strides[2] == 1
// @require  length == 1 || out_strides[1] >= 2*pairs
// @require  n_head == 1 || out_strides[0] >= 2*pairs
// @require  n_head == 1 || length == 1 || out_strides[0] >= length*out_strides[1] || out_strides[1] >= n_head*out_strides[0]
// @inplace  out in
// @where    theta[t,i] = (scale * f32(t + offset[0])) * exp2(-(f32(i) / f32(pairs)) * base)
// @where    first[h,t,i] = in[h,t,i] * cos(theta[t,i]) - in[h,t,i + pairs] * sin(theta[t,i])
// @where    second[h,t,i] = in[h,t,i] * sin(theta[t,i]) + in[h,t,i + pairs] * cos(theta[t,i])
// @term     out[h,t,j] = round({T}, select(j < pairs, first[h,t,j % pairs], second[h,t,j % pairs]))
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
  // The grid's z counts groups of HEADS heads, batch by batch. The declarations
  // cover one batch.
  const int groups = (n_head + HEADS - 1) / HEADS;
  const int batch = int(at.z) / groups;
  const int head = int(at.z) % groups * HEADS;
  const int matrix = batch * n_head + head;
  const int position = int(at.y) + offset[batch * offset_stride];
  const float theta = angle(scale * float(position), at.x, grid.x, base);
  const long first = traditional ? 2 * long(at.x) : long(at.x);
  const long apart = traditional ? 1 : long(grid.x);
  long from = matrix * strides[0] + long(at.y) * strides[1] + first * strides[2];
  long to = matrix * out_strides[0] + long(at.y) * out_strides[1] + first * out_strides[2];
  for (int h = head; h < min(head + HEADS, n_head); h++) {
    float a;
    float b;
    turn(float(in[from]), float(in[from + apart * strides[2]]), theta, a, b);
    out[to] = T(a);
    out[to + apart * out_strides[2]] = T(b);
    from += strides[0];
    to += out_strides[0];
  }
}

template [[host_name("rope_single_float32")]] [[kernel]] decltype(rope_single<float>) rope_single<float>;
template [[host_name("rope_float32")]] [[kernel]] decltype(rope<float>) rope<float>;
