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
// @kernel   sdpa_rows_{T:{types()}}_q8_0_{D:{heads()}}
// @constant 22 do_causal bool
// @arg queries        device {T}[L, heads, D] read
// @use      keys_and_values(i8)
// @arg out            device {T}[L, heads, D] write
// @use      heads_apart()
// @use      coded_scales()
// @group    256, 1, 1
// @use      attention(sdpa_team; sdpa_rows; q,h; q,h; coded)
#define CODED(form, last, first, bend, extra, score, MORE)                                                            \
  template <typename T, int D>                                                                                        \
  [[kernel]] void form##_q8_0(                                                                                        \
      const device T* queries, const device char* keys, const device char* values, device T* out,                     \
      constant int& gqa_factor, constant int& N, constant ulong& k_head_stride, constant ulong& k_seq_stride,         \
      constant ulong& v_head_stride, constant ulong& v_seq_stride, constant float& scale, MORE                        \
      const device half* key_scales, const device half* value_scales, uint3 group [[threadgroup_position_in_grid]],   \
      uint3 groups [[threadgroups_per_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],                      \
      uint lane [[thread_index_in_simdgroup]]) {                                                                      \
    threadgroup float outputs[PARTS * D];                                                                             \
    threadgroup float tops[PARTS];                                                                                    \
    threadgroup float sums[PARTS];                                                                                    \
    const size_t row = group.y * groups.x + group.x;                                                                  \
    const size_t kv_head = group.x / uint(gqa_factor);                                                                \
    const int end = last;                                                                                             \
    const int from = first;                                                                                           \
    attend_row<T, char, D, extra>(                                                                                    \
        queries + row * D, Coded{keys, key_scales} + (kv_head * k_head_stride + size_t(from) * k_seq_stride),         \
        Coded{values, value_scales} + (kv_head * v_head_stride + size_t(from) * v_seq_stride), out + row * D,         \
        end - from, k_seq_stride, v_seq_stride, scale, bend, score, lane % TEAM * 4, int(lane) / TEAM, outputs, tops, \
        sums, simdgroup, lane);                                                                                       \
  }
#define NOTHING_MORE
#define WINDOW constant int& window,
#define WINDOW_CAP constant int& window, constant float& cap,
#define WINDOW_SINKS constant int& window, const device T* sinks,
#define LAST (N - int(groups.y) + int(group.y) + 1)
#define FIRST max(0, end - window)

CODED(sdpa_rows, visible_keys(N, groups.y, group.y), 0, Plain(), false, 0.0f, NOTHING_MORE)

// @kernel   sdpa_rows_{with:window}_{T:{types()}}_q8_0_{D:{heads()}}
// @use      rows_within(i8; coded)
CODED(sdpa_rows_window, LAST, FIRST, Plain(), false, 0.0f, WINDOW)

// @kernel   sdpa_rows_{with:capped}_{T:{types()}}_q8_0_{D:{heads()}}
// @use      rows_within(i8; coded)
CODED(sdpa_rows_capped, LAST, FIRST, Capped{cap}, false, 0.0f, WINDOW_CAP)

// @kernel   sdpa_rows_{with:sinks}_{T:{types()}}_q8_0_{D:{heads()}}
// @use      rows_within(i8; coded)
CODED(sdpa_rows_sinks, LAST, FIRST, Plain(), true, float(sinks[group.x]), WINDOW_SINKS)

#define INSTANTIATE_CODED(form, name, T, D)                    \
  template [[host_name(#form "_" #name "_q8_0_" #D "_" #D)]] \
  [[kernel]] decltype(form##_q8_0<T, D>) form##_q8_0<T, D>;
#define INSTANTIATE_FORMS(name, T, D)                                                       \
  INSTANTIATE_CODED(sdpa_rows, name, T, D) INSTANTIATE_CODED(sdpa_rows_window, name, T, D)  \
  INSTANTIATE_CODED(sdpa_rows_capped, name, T, D) INSTANTIATE_CODED(sdpa_rows_sinks, name, T, D)
#define INSTANTIATE_FORMS_OF(name, T)                                   \
  INSTANTIATE_FORMS(name, T, 64) INSTANTIATE_FORMS(name, T, 96)         \
  INSTANTIATE_FORMS(name, T, 128) INSTANTIATE_FORMS(name, T, 256)

INSTANTIATE_FORMS_OF(float, float)
INSTANTIATE_FORMS_OF(float16_t, half)
INSTANTIATE_FORMS_OF(bfloat16_t, bfloat)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness kv_write_q8_0_* ; ; threads 512 1 2 / 256 1 1 ; ok
// @witness kv_write_q8_0_* ; ; threads 96 5 2 / 96 1 1 ; ok
// @witness kv_write_q8_0_* ; ; threads 96 5 1 / 96 1 1 ; refused
// @witness kv_write_q8_0_* ; ; threads 96 4 2 / 96 2 1 ; refused
// @witness kv_write_q8_0_* ; ; threads 96 4 2 / 96 1 2 ; refused
// @witness kv_write_q8_0_* ; ; threads 48 1 2 / 32 1 1 ; refused
// @witness kv_write_q8_0_* ; ; threads 96 1 2 / 48 1 1 ; refused
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 20 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 256 1 1 ; ok
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=0 gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_{float|float16_t|bfloat16_t}_* ; do_causal@22=0 gqa_factor=0 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 window=40 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_capped_* ; gqa_factor=3 N=243 k_head_stride=32768 k_seq_stride=128 v_head_stride=32768 v_seq_stride=128 window=40 cap=50 ; groups 3 8 1 / 256 1 1 ; ok
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=270 k_seq_stride=256 v_seq_stride=256 window=20 ; groups 1 270 1 / 256 1 1 ; ok
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_capped_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 cap=50 ; groups 1 1 1 / 256 1 1 ; ok
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_capped_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=1 cap=50 ; groups 1 2 1 / 256 1 1 ; refused
// @witness sdpa_rows_{window|sinks}_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=0 ; groups 1 1 1 / 256 1 1 ; refused
// @witness sdpa_rows_capped_* ; gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 window=0 cap=50 ; groups 1 1 1 / 256 1 1 ; refused
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
// @equivalent sdpa_rows_{window|capped|sinks}_* ; require: gqa_factor >= 1 && N >= L -> N >= L ; gqa_factor = 0 divides by zero in the shape of the keys
// @equivalent sdpa_rows_capped_* ; operation: top: N - L + 1 + q -> N - L + 1 - q ; scores are within the cap: any number near them is a factor of all weights
// @equivalent sdpa_rows_capped_* ; operation: top: N - L + 1 -> N - L - 1 ; likewise
// @equivalent sdpa_rows_capped_* ; bound: top: * - 1, * ; likewise
// @equivalent sdpa_rows_capped_* ; operation: weight: score* - top* -> score* + top* ; likewise
