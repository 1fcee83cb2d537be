// A KV cache of 8 bits: what writes keys and values to it, and attention to what is in it. Each 32 neighbouring elements of a
// head have a scale, an f16, and codes from -127 to 127, as in a block of GGML's q8_0, but codes and scales lie apart:
// codes as elements do in a cache of another type, and a 32nd as many scales the same way.

#include "common.h"
#include "sdpa_rows.h"

// A group is quantized as ggml quantizes one for q8_0: the scale is the greatest magnitude over 127, and a code the nearest to the element
// times 1 over that scale, before the scale is rounded; between two codes it is the one farther from 0. A group of less than
// 2^-60 has codes of 0, which changes no value, for its scale is 0 as an f16; one with an infinity or a NaN has them as well, and a
// scale of infinity, so that all its values are NaN.
//
// Codes are in order of their magnitude, the greatest first, so that of two equally near ones the first is taken. Place 0 is 0 as
// well: it is that of the max if no code is near, for what is not finite.
//
// @text  code(place) = (127 - ({place} - 1)/2) % 128 * (1 - 2*({place} % 2))
// @lines written(x; codes; scales)
// @where {x}_top[l,g] = max(e < 32, select({x}[l,32*g+e] == {x}[l,32*g+e], abs({x}[l,32*g+e]), inf))
// @where {x}_inverse[l,g] = select({x}_top[l,g] >= 8.673617379884035e-19, 1.0 / ({x}_top[l,g] / 127.0), 0.0)
// @where {x}_place[l,i] = argmax(c < 256, select(c > 0, -abs({x}[l,i] * {x}_inverse[l,i/32] - f32({code(c)})), -inf))
// @term  {codes}[l,i] = i8({code({x}_place[l,i])})
// @term  {scales}[l,g] = round(f16, {x}_top[l,g] / 127.0)
// @end
//
// A thread has an element, and a simdgroup a group.
//
// @kernel   kv_write_q8_0_{T:{floats()}}
// @arg 0 new_keys      device {T}[L, n] read
// @arg 1 new_values    device {T}[L, n] read
// @arg 2 keys          device i8[L, n] write
// @arg 3 key_scales    device f16[L, n/32] write
// @arg 4 values        device i8[L, n] write
// @arg 5 value_scales  device f16[L, n/32] write
// @threads  n, L, 2
// @group    threads, 1, 1
// @require  n % 32 == 0 && threads % 32 == 0
// @use      written(new_keys; keys; key_scales)
// @use      written(new_values; values; value_scales)
inline void write_code(float x, device char* codes, device half* scales, size_t at, uint lane) {
  // Magnitudes are in the order of their bits, and NaN is above infinity.
  const float top = as_type<float>(min(simd_max(as_type<uint>(x) & 0x7fffffffu), 0x7f800000u));
  const float scale = top / 127.0f;
  const bool none = top < 0x1p-60f || as_type<uint>(top) == 0x7f800000u;
  codes[at] = char(none ? 0 : int(round(x * (1.0f / scale))));
  if (lane == 0) {
    scales[at / 32] = half(scale);
  }
}

template <typename T>
[[kernel]] void kv_write_q8_0(
    const device T* new_keys [[buffer(0)]],
    const device T* new_values [[buffer(1)]],
    device char* keys [[buffer(2)]],
    device half* key_scales [[buffer(3)]],
    device char* values [[buffer(4)]],
    device half* value_scales [[buffer(5)]],
    uint3 place [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const size_t at = size_t(place.y) * grid.x + place.x;
  if (place.z == 0) {
    write_code(float(new_keys[at]), keys, key_scales, at, lane);
  } else {
    write_code(float(new_values[at]), values, value_scales, at, lane);
  }
}

#define INSTANTIATE_WRITE(name, T) \
  template [[host_name("kv_write_q8_0_" #name)]] [[kernel]] decltype(kv_write_q8_0<T>) kv_write_q8_0<T>;

EACH_FLOAT(INSTANTIATE_WRITE)

// A value is its code times its scale, which is exact in f32, and attention is that of sdpa_rows.
//
// @text     coded(x) = (f32({x}s[h/gqa_factor,j,d]) * {x}_scales[h/gqa_factor,j,d/32])
// @kernel   sdpa_rows_{T:{types()}}_q8_0_{D:{heads()}}
// @constant 22 do_causal bool
// @arg queries        device {T}[L, heads, D] read
// @use      keys_and_values(i8)
// @arg out            device {T}[L, heads, D] write
// @use      heads_apart()
// @arg key_scales     device f16[ceil(heads/gqa_factor), N, D/32 : k_head_stride/32, k_seq_stride/32, 1] read
// @arg value_scales   device f16[ceil(heads/gqa_factor), N, D/32 : v_head_stride/32, v_seq_stride/32, 1] read
// @group    256, 1, 1
// @require  k_head_stride % 32 == 0 && k_seq_stride % 32 == 0 && v_head_stride % 32 == 0 && v_seq_stride % 32 == 0
// @use      attention(sdpa_team; sdpa_rows; q,h; q,h; {coded(key)}; {coded(value)})
template <typename T, int D>
[[kernel]] void sdpa_rows_q8_0(
    const device T* queries [[buffer(0)]],
    const device char* keys [[buffer(1)]],
    const device char* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant int& gqa_factor [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant ulong& k_head_stride [[buffer(6)]],
    constant ulong& k_seq_stride [[buffer(7)]],
    constant ulong& v_head_stride [[buffer(8)]],
    constant ulong& v_seq_stride [[buffer(9)]],
    constant float& scale [[buffer(10)]],
    const device half* key_scales [[buffer(11)]],
    const device half* value_scales [[buffer(12)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float outputs[PARTS * D];
  threadgroup float tops[PARTS];
  threadgroup float sums[PARTS];

  const size_t row = group.y * groups.x + group.x;
  const size_t kv_head = group.x / uint(gqa_factor);
  attend_row<T, char, D, false>(
      queries + row * D, Coded{keys, key_scales} + kv_head * k_head_stride, Coded{values, value_scales} + kv_head * v_head_stride, out + row * D,
      visible_keys(N, groups.y, group.y), k_seq_stride, v_seq_stride, scale, Plain(), 0, lane % TEAM * 4, int(lane) / TEAM, outputs, tops, sums,
      simdgroup, lane);
}

#define INSTANTIATE_CODED(name, T, D)                                 \
  template [[host_name("sdpa_rows_" #name "_q8_0_" #D "_" #D)]] \
  [[kernel]] decltype(sdpa_rows_q8_0<T, D>) sdpa_rows_q8_0<T, D>;
#define INSTANTIATE_CODED_OF(name, T)                                   \
  INSTANTIATE_CODED(name, T, 64) INSTANTIATE_CODED(name, T, 96)         \
  INSTANTIATE_CODED(name, T, 128) INSTANTIATE_CODED(name, T, 256)

INSTANTIATE_CODED_OF(float, float)
INSTANTIATE_CODED_OF(float16_t, half)
INSTANTIATE_CODED_OF(bfloat16_t, bfloat)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness kv_write_q8_0_* ; ; threads 512 1 2 / 256 1 1 ; ok
// @witness kv_write_q8_0_* ; ; threads 96 5 2 / 96 1 1 ; ok
// @witness kv_write_q8_0_* ; ; threads 96 5 1 / 96 1 1 ; refused
// @witness kv_write_q8_0_* ; ; threads 96 4 2 / 96 2 1 ; refused
// @witness kv_write_q8_0_* ; ; threads 96 4 2 / 96 1 2 ; refused
// @witness kv_write_q8_0_* ; ; threads 48 1 2 / 32 1 1 ; refused
// @witness kv_write_q8_0_* ; ; threads 96 1 2 / 48 1 1 ; refused
// @witness sdpa_rows_* ; do_causal@22=1 gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_* ; do_causal@22=1 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 20 1 / 256 1 1 ; ok
// @witness sdpa_rows_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_* ; do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 256 1 1 ; ok
// @witness sdpa_rows_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_* ; do_causal@22=0 gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_* ; do_causal@22=0 gqa_factor=0 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent kv_write_q8_0_* ; inplace: allow *_scales new_* ; these have as many elements where there are none
// @equivalent kv_write_q8_0_* ; constant: *_place: 256 -> 257 ; behind the last code there is 0 once more
// @equivalent kv_write_q8_0_* ; bound: *_place: * -> argmax(c < 256 + 1, * ; likewise
// @equivalent kv_write_q8_0_* ; constant: *_place: 128 -> 129 ; the remainder is another than the number for place 0 alone, of which no code is asked
// @equivalent kv_write_q8_0_* ; constant: *_place: inf -> 1.0 ; if any code is near, one is within 1
// @equivalent kv_write_q8_0_* ; constant: *_inverse: 0.0 -> 1.0 ; what is less than 2^-60 has 0 nearest
// @equivalent sdpa_rows_* ; require: gqa_factor >= 1 && N >= 1 -> N >= 1 ; gqa_factor = 0 divides by zero in the shape of the keys
// @equivalent sdpa_rows_* ; inplace: allow out queries ; a threadgroup reads its own row of the queries before it writes this row
// @equivalent sdpa_rows_* ; inplace: allow out *_scales ; a row has 32 times as many elements
