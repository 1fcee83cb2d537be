// Rotary position embedding by a table: pair i turns by position · (1 / freqs[i]). The rest is as in rope.metal.

#include "common.h"
#include "rotation.h"

// One position for all heads.
//
// @kernel  rope_single_freqs_{T:{floats()}}
// @mlx
// @constant 1 forward bool
// @constant 2 traditional bool
// @use     one_position({T})
// @arg 10  freqs        device f32[pairs : freq_stride] read
// @arg     freq_stride  constant i64
// @threads pairs, heads, 1
// @group   _, _, _
// @require heads == 1 || stride >= 2*pairs
// @inplace out in
// @where   theta[i] = (scale * f32(offset)) * (1.0 / freqs[i])
// @use     turned_either(; h; {T}; f32(2*forward - 1) * )
template <typename T>
[[kernel]] void rope_single_freqs(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant int& offset [[buffer(2)]],
    constant float& scale [[buffer(3)]],
    constant long& stride [[buffer(4)]],
    const device float* freqs [[buffer(10)]],
    constant long& freq_stride [[buffer(11)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long head = long(at.y) * stride;
  const float theta = scale * float(offset) * (1.0f / freqs[long(at.x) * freq_stride]);
  rotate_head(in + head, out + head, theta, at.x, grid.x);
}

// Batches of sequences, each with positions of its own; in may have the heads of a position together, as hs_transpose says.
//
// @kernel  rope_freqs_{T:{floats()}}
// @mlx
// @constant 1 forward bool
// @constant 2 traditional bool
// @constant 3 hs_transpose bool
// @use     positions({T})
// @arg 10  freqs        device f32[pairs : freq_stride] read
// @arg     freq_stride  constant i64
// @use     batches()
// @where   theta[b,t,i] = (scale * f32(t + offset[b])) * (1.0 / freqs[i])
// @use     turned_either(b,t,; b,h,t; {T}; f32(2*forward - 1) * )
template <typename T>
[[kernel]] void rope_freqs(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    const device int* offset [[buffer(2)]],
    constant float& scale [[buffer(3)]],
    constant long strides[3] [[buffer(4)]],
    constant long out_strides[3] [[buffer(5)]],
    constant long& offset_stride [[buffer(6)]],
    constant int& n_head [[buffer(7)]],
    const device float* freqs [[buffer(10)]],
    constant long& freq_stride [[buffer(11)]],
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  const int groups = head_groups(n_head);
  const int batch = int(at.z) / groups;
  const int head = int(at.z) % groups * HEADS;
  const float position = scale * float(int(at.y) + offset[batch * offset_stride]);
  const float theta = position * (1.0f / freqs[long(at.x) * freq_stride]);
  rotate_heads(
      in + first_of(batch, strides, n_head, grid) + long(at.y) * strides[1], out + batch * n_head * out_strides[0] + long(at.y) * out_strides[1],
      strides[0], strides[2], out_strides[0], out_strides[2], head, n_head, theta, at.x, grid.x);
}

#define INSTANTIATE_FREQS(name, T)                                                                                         \
  template [[host_name("rope_single_freqs_" #name)]] [[kernel]] decltype(rope_single_freqs<T>) rope_single_freqs<T>; \
  template [[host_name("rope_freqs_" #name)]] [[kernel]] decltype(rope_freqs<T>) rope_freqs<T>;

EACH_FLOAT(INSTANTIATE_FREQS)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness rope_single_freqs_* ; forward@1={0|1} traditional@2={0|1} freq_stride=1 offset=17 stride=64 ; threads 32 9 1 / 32 1 1 ; ok
// @witness rope_single_freqs_* ; forward@1={0|1} traditional@2={0|1} freq_stride=1 offset=17 stride=64 inplace=out,in ; threads 32 9 1 / 32 1 1 ; ok
// @witness rope_single_freqs_* ; forward@1={0|1} traditional@2={0|1} freq_stride=1 stride=0 ; threads 32 1 1 / 32 1 1 ; ok
// @witness rope_single_freqs_* ; forward@1={0|1} traditional@2={0|1} freq_stride=1 stride=63 ; threads 32 2 1 / 32 1 1 ; refused
// @witness rope_single_freqs_* ; forward@1={0|1} traditional@2={0|1} freq_stride=1 stride=64 ; threads 32 9 2 / 32 1 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1280,64,1 offset_stride=1 n_head=9 ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1280,64,1 n_head=9 inplace=out,in ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1280,64,1 n_head=5 ; threads 32 20 4 / 32 4 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1280,64,1 n_head=1 ; threads 32 20 2 / 32 4 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=64,64,1 out_strides=64,0,1 n_head=9 ; threads 32 1 6 / 32 1 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=64,1152,1 out_strides=64,1152,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=1 freq_stride=1 strides=64,576,1 out_strides=1280,64,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; ok
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1280,64,1 n_head=9 ; threads 32 20 5 / 32 4 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=64,64,1 out_strides=63,0,1 n_head=9 ; threads 32 1 6 / 32 1 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=64,1152,1 out_strides=64,1151,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1279,64,1 n_head=9 ; threads 32 20 6 / 32 4 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=2560,64,2 n_head=9 ; threads 32 20 6 / 32 4 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=1280,63,1 n_head=1 ; threads 32 20 1 / 32 4 1 ; refused
// @witness rope_freqs_* ; forward@1={0|1} traditional@2=0 hs_transpose@3=0 freq_stride=1 strides=1280,64,1 out_strides=0,64,1 n_head=1 ; threads 32 20 1 / 32 4 1 ; ok
