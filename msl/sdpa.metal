// Attention of few queries over many keys.

#include "common.h"
#include "sdpa_rows.h"

// attend is what a threadgroup does for its query: simdgroup s takes keys s,
// s+32, … with a running maximum and sum (a "streaming" softmax), a lane D/32
// elements of each; then the simdgroups' results are brought to one maximum and
// added. query, keys, values and out begin at the query's own rows and heads;
// the three arrays are threadgroup memory of LANES·SIMDGROUPS, SIMDGROUPS and
// SIMDGROUPS elements.
template <typename T, int D>
inline void attend(
    const device T* query, const device T* keys, const device T* values, device T* out, int visible, size_t k_stride, size_t v_stride,
    float scale, threadgroup float* outputs, threadgroup float* tops, threadgroup float* sums, uint simdgroup, uint lane) {
  // As stream_all, but written out: with what a simdgroup has in one structure, the compiler makes other code of it.
  constexpr int each = D / LANES; // elements of a row that a lane holds
  constexpr int some = 4;         // keys that are taken together
  const uint own = lane * each;

  float q[each];
  float o[each];
#pragma unroll
  for (int i = 0; i < each; i++) {
    q[i] = scale * float(query[own + i]);
    o[i] = 0;
  }
  // Finite, so that a simdgroup without keys gets the factor exp(−big) = 0.
  float top = -MAXFLOAT;
  float sum = 0;
  const size_t k_step = SIMDGROUPS * k_stride;
  const size_t v_step = SIMDGROUPS * v_stride;
  const device T* key = keys + size_t(simdgroup) * k_stride + own;
  const device T* value = values + size_t(simdgroup) * v_stride + own;
  int j = int(simdgroup);
  for (; j + (some - 1) * SIMDGROUPS < visible; j += some * SIMDGROUPS) {
    follow<T, each, some>(key, value, k_step, v_step, q, o, top, sum);
    key += some * k_step;
    value += some * v_step;
  }
  for (; j < visible; j += SIMDGROUPS) {
    follow<T, each, 1>(key, value, k_step, v_step, q, o, top, sum);
    key += k_step;
    value += v_step;
  }

  merge<T, D, false>(top, sum, o, out, outputs, tops, sums, simdgroup, lane);
}

// One threadgroup a query: MLX's kernel, whose threadgroups have 1,024 threads and 4,352 bytes.
//
// @kernel   sdpa_vector_{T:{types()}}_{D:64_64=64|96_96=96|128_128=128}{transposed:=1|=0}
// @mlx
// @use      constants()
// @if       transposed == 1
// @arg queries        device {T}[L, heads, D] read
// @else
// @arg queries        device {T}[heads, L, D] read
// @end
// @use      keys_and_values({T})
// @arg out            device {T}[heads, L, D] write
// @use      heads_apart()
// @group    1024, 1, 1
// @require  has_mask == 0 && bool_mask == 0 && float_mask == 0 && has_sinks == 0
// @require  query_transposed == transposed
// @if       transposed == 1
// @use      attention(simd; sdpa; h,q; q,h; plain)
// @else
// @use      attention(simd; sdpa; h,q; h,q; plain)
// @end
//
// With masks or sinks.
//
// @kernel   sdpa_vector_{T:{types()}}_{D:64_64=64|96_96=96|128_128=128}{with:{masks()}}
// @mlx
// @let      V = D
// @use      vector_with()
//
// Wide heads: keys of 192 elements have values of 128.
//
// @kernel   sdpa_vector_{T:{types()}}_{D:192_128=192|256_256=256}{with:=none|{masks()}}
// @mlx
// @let      V = 2*D - 256
// @use      vector_with()
template <typename T, int D, int V>
[[kernel]] void sdpa_vector(
    const device T* queries [[buffer(0)]],
    const device T* keys [[buffer(1)]],
    const device T* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant int& gqa_factor [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant ulong& k_head_stride [[buffer(6)]],
    constant ulong& k_seq_stride [[buffer(7)]],
    constant ulong& v_head_stride [[buffer(8)]],
    constant ulong& v_seq_stride [[buffer(9)]],
    constant float& scale [[buffer(10)]],
    const device bool* bmask [[buffer(11), function_constant(bool_mask)]],
    const device T* fmask [[buffer(12), function_constant(float_mask)]],
    constant int& mask_kv_seq_stride [[buffer(13), function_constant(has_mask)]],
    constant int& mask_q_seq_stride [[buffer(14), function_constant(has_mask)]],
    constant int& mask_head_stride [[buffer(15), function_constant(has_mask)]],
    const device T* sinks [[buffer(16), function_constant(has_sinks)]],
    constant int& num_q_heads [[buffer(17), function_constant(has_sinks)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float outputs[LANES * SIMDGROUPS];
  threadgroup float tops[SIMDGROUPS];
  threadgroup float sums[SIMDGROUPS];

  const size_t head = group.x;
  const size_t query = group.y;
  const size_t by_head = head * groups.y + query;
  const size_t kv_head = head / size_t(gqa_factor);
  queries += (query_transposed ? query * groups.x + head : by_head) * D;
  keys += kv_head * k_head_stride;
  values += kv_head * v_head_stride;
  out += by_head * V;
  const int visible = visible_keys(N, groups.y, group.y);
  if (D == V && D <= 128 && !has_mask && !has_sinks) {
    attend<T, D>(queries, keys, values, out, visible, k_seq_stride, v_seq_stride, scale, outputs, tops, sums, simdgroup, lane);
    return;
  }
  Mask<T> mask;
  if (has_mask) {
    mask = mask_of(bmask, fmask, long(head) * mask_head_stride + long(query) * mask_q_seq_stride, mask_kv_seq_stride);
  }
  const float sink = has_sinks ? float(sinks[head % size_t(num_q_heads)]) : 0;
  attend_with<T, D, V>(
      queries, keys, values, out, visible, k_seq_stride, v_seq_stride, scale, mask, sink, outputs, tops, sums, simdgroup, lane);
}

#define EACH_HEAD(instantiate, name, T) instantiate(name, T, 64) instantiate(name, T, 96) instantiate(name, T, 128)
#define INSTANTIATE_WIDTHS(name, T, D, V) \
  template [[host_name("sdpa_vector_" #name "_" #D "_" #V)]] [[kernel]] decltype(sdpa_vector<T, D, V>) sdpa_vector<T, D, V>;
#define INSTANTIATE_VECTOR(name, T, D) INSTANTIATE_WIDTHS(name, T, D, D)
#define INSTANTIATE_WIDE(name, T) INSTANTIATE_WIDTHS(name, T, 192, 128) INSTANTIATE_WIDTHS(name, T, 256, 256)

EACH_HEAD(INSTANTIATE_VECTOR, float, float)
EACH_HEAD(INSTANTIATE_VECTOR, float16_t, half)
EACH_HEAD(INSTANTIATE_VECTOR, bfloat16_t, bfloat)
INSTANTIATE_WIDE(float, float)
INSTANTIATE_WIDE(float16_t, half)
INSTANTIATE_WIDE(bfloat16_t, bfloat)

// Keys and values may have fewer bits than queries and results: a cache of f16 in a model whose activations are f32.
//
// @lines    rows(S)
// @constant 22 do_causal bool
// @arg queries        device {T}[L, heads, D] read
// @use      keys_and_values({S})
// @arg out            device {T}[L, heads, D] write
// @use      heads_apart()
// @group    256, 1, 1
// @use      attention(sdpa_team; sdpa_rows; q,h; q,h; plain)
// @end
//
// @kernel   sdpa_rows_{T:{types()}}_{D:{heads()}}
// @use      rows({T})
//
// @kernel   sdpa_rows_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows({S})
template <typename T, typename S, int D>
[[kernel]] void sdpa_rows(
    const device T* queries [[buffer(0)]],
    const device S* keys [[buffer(1)]],
    const device S* values [[buffer(2)]],
    device T* out [[buffer(3)]],
    constant int& gqa_factor [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant ulong& k_head_stride [[buffer(6)]],
    constant ulong& k_seq_stride [[buffer(7)]],
    constant ulong& v_head_stride [[buffer(8)]],
    constant ulong& v_seq_stride [[buffer(9)]],
    constant float& scale [[buffer(10)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float outputs[PARTS * D];
  threadgroup float tops[PARTS];
  threadgroup float sums[PARTS];

  const uint row = group.y * groups.x + group.x;
  const uint kv_head = group.x / uint(gqa_factor);
  const uint own = lane % TEAM * 4;
  const int team = int(lane) / TEAM;
  const int visible = visible_keys(N, groups.y, group.y);
  queries += size_t(row) * D;
  keys += size_t(kv_head) * k_head_stride;
  values += size_t(kv_head) * v_head_stride;
  out += size_t(row) * D;
  attend_row<T, S, D, false>(
      queries, keys, values, out, visible, k_seq_stride, v_seq_stride, scale, Plain(), 0, own, team, outputs, tops, sums, simdgroup, lane);
}

// Within windows, with scores that are kept within bounds, and with sinks.
#define NOTHING_MORE
#define CAP constant float& cap,
#define SINKS const device T* sinks,
#define WINDOWED(form, bend, extra, score, MORE)                                                                       \
  template <typename T, typename S, int D>                                                                             \
  [[kernel]] void sdpa_rows_##form(                                                                                    \
      const device T* queries, const device S* keys, const device S* values, device T* out, constant int& gqa_factor,  \
      constant int& N, constant ulong& k_head_stride, constant ulong& k_seq_stride, constant ulong& v_head_stride,     \
      constant ulong& v_seq_stride, constant float& scale, constant int& window, MORE                                  \
      uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],                            \
      uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {                    \
    threadgroup float outputs[PARTS * D];                                                                              \
    threadgroup float tops[PARTS];                                                                                     \
    threadgroup float sums[PARTS];                                                                                     \
    const size_t row = group.y * groups.x + group.x;                                                                   \
    const size_t kv_head = group.x / uint(gqa_factor);                                                                 \
    const int end = N - int(groups.y) + int(group.y) + 1;                                                              \
    const int from = max(0, end - window);                                                                             \
    keys += kv_head * k_head_stride + size_t(from) * k_seq_stride;                                                     \
    values += kv_head * v_head_stride + size_t(from) * v_seq_stride;                                                   \
    attend_row<T, S, D, extra>(                                                                                        \
        queries + row * D, keys, values, out + row * D, end - from, k_seq_stride, v_seq_stride, scale, bend, score,    \
        lane % TEAM * 4, int(lane) / TEAM, outputs, tops, sums, simdgroup, lane);                                      \
  }

// @kernel   sdpa_rows_{with:window}_{T:{types()}}_{D:{heads()}}
// @use      rows_within({T}; plain)
//
// @kernel   sdpa_rows_{with:window}_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows_within({S}; plain)
WINDOWED(window, Plain(), false, 0.0f, NOTHING_MORE)

// @kernel   sdpa_rows_{with:capped}_{T:{types()}}_{D:{heads()}}
// @use      rows_within({T}; plain)
//
// @kernel   sdpa_rows_{with:capped}_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows_within({S}; plain)
WINDOWED(capped, Capped{cap}, false, 0.0f, CAP)

// @kernel   sdpa_rows_{with:sinks}_{T:{types()}}_{D:{heads()}}
// @use      rows_within({T}; plain)
//
// @kernel   sdpa_rows_{with:sinks}_{T:float=f32}_{S:float16_t=f16}_{D:{heads()}}
// @use      rows_within({S}; plain)
WINDOWED(sinks, Plain(), true, float(sinks[group.x]), SINKS)

#define INSTANTIATE_FORM(form, name, T, S, D) \
  template [[host_name(#form "_" #name "_" #D "_" #D)]] [[kernel]] decltype(form<T, S, D>) form<T, S, D>;
#define INSTANTIATE_ROWS(name, T, S, D)               \
  INSTANTIATE_FORM(sdpa_rows, name, T, S, D)          \
  INSTANTIATE_FORM(sdpa_rows_window, name, T, S, D)   \
  INSTANTIATE_FORM(sdpa_rows_capped, name, T, S, D)   \
  INSTANTIATE_FORM(sdpa_rows_sinks, name, T, S, D)
#define INSTANTIATE_ROWS_OF(name, T, S)                                       \
  INSTANTIATE_ROWS(name, T, S, 64) INSTANTIATE_ROWS(name, T, S, 96)           \
  INSTANTIATE_ROWS(name, T, S, 128) INSTANTIATE_ROWS(name, T, S, 256)

INSTANTIATE_ROWS_OF(float, float, float)
INSTANTIATE_ROWS_OF(float16_t, half, half)
INSTANTIATE_ROWS_OF(bfloat16_t, bfloat, bfloat)
INSTANTIATE_ROWS_OF(float_float16_t, float, half)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Attention: one threadgroup a head and query.
//
// @witness sdpa_vector_* ; query_transposed@21=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=0 query_transposed@21={0|1} do_causal@22=1 bool_mask@23=0 float_mask@24=0 has_sinks@25=0 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; query_transposed@21={0|1} do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; query_transposed@21={0|1} do_causal@22=0 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; query_transposed@21={0|1} do_causal@22=1 gqa_factor=1 N=1 k_seq_stride=128 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21=0 gqa_factor=0 N=50 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} gqa_factor=1 N=0 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21=0 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 512 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} has_mask@20=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} bool_mask@23=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} float_mask@24=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; query_transposed@21={0|1} has_sinks@25=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=0 query_transposed@21={0|1} mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=0 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=0 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=0 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 do_causal@22=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=1 float_mask@24=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=0 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=0 float_mask@24=0 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 512 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 query_transposed@21={0|1} has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=0 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 do_causal@22=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=1 float_mask@24=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=0 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 bool_mask@23=0 float_mask@24=0 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=9 mask_kv_seq_stride=1 mask_q_seq_stride=50 mask_head_stride=400 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 512 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 query_transposed@21={0|1} do_causal@22={0|1} num_q_heads=9 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 18 8 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_mask@20=1 {bool_mask@23|float_mask@24}=1 has_sinks@25=1 num_q_heads=1 mask_kv_seq_stride=1 gqa_factor=1 N=5 k_seq_stride=128 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=1 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_sinks@25=1 do_causal@22=1 num_q_heads=1 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 1 1 / 1024 1 1 ; ok
// @witness sdpa_vector_* ; has_sinks@25=1 do_causal@22=1 num_q_heads=1 gqa_factor=1 N=1 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 1 2 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=9 gqa_factor=3 N=0 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 1 1 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=9 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 2 / 1024 1 1 ; refused
// @witness sdpa_vector_* ; has_sinks@25=1 num_q_heads=9 gqa_factor=3 N=50 k_head_stride=8192 k_seq_stride=128 v_head_stride=8192 v_seq_stride=128 ; groups 9 8 1 / 512 1 1 ; refused
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
// @equivalent sdpa_rows_* ; inplace: allow out queries ; a threadgroup reads its own row of the queries before it writes this row
// @equivalent sdpa_vector_*#{1|2|3|4|5|6} ; inplace: allow out queries ; as in sdpa_rows: both are [heads, L, D]
// @equivalent sdpa_vector_*#? ; inplace: allow out fmask ; a threadgroup reads its own row of the mask before it writes this row
// @equivalent sdpa_vector_*#? ; constant: top: 3.4028235e+38 -> inf ; it is a score of -inf then, too
// @equivalent sdpa_vector_*_128_128#{4|6} ; constant: top: inf -> 1.0 ; a greater maximum is another factor of all weights
// @equivalent sdpa_vector_*_128_128#{4|6} ; operation: top: -inf -> abs(inf) ; nothing is said of results whose maximum is infinite
// @equivalent sdpa_vector_*_128_128#5 ; operation: top: select(* -> select(*, -inf, score* ; likewise: with no score it is -inf
// @equivalent sdpa_vector_*_128_128#5 ; operation: top: fmask* -> fmask* < * ; likewise
// @equivalent sdpa_vector_*_128_128#5 ; operation: top: -3.4028235e+38 -> abs* ; likewise
// @equivalent sdpa_vector_*_128_128#6 ; constant: weight: 3.4028235e+38 -> inf ; the weight of a score of -inf is 0
// @equivalent sdpa_vector_*_192_128#{3|5} ; constant: top: inf -> 1.0 ; a greater maximum is another factor of all weights
// @equivalent sdpa_vector_*_192_128#{3|5} ; operation: top: -inf -> abs(inf) ; nothing is said of results whose maximum is infinite
// @equivalent sdpa_vector_*_192_128#4 ; operation: top: select(* -> select(*, -inf, score* ; likewise: with no score it is -inf
// @equivalent sdpa_vector_*_192_128#4 ; operation: top: fmask* -> fmask* < * ; likewise
// @equivalent sdpa_vector_*_192_128#4 ; operation: top: -3.4028235e+38 -> abs* ; likewise
// @equivalent sdpa_vector_*_192_128#5 ; constant: weight: 3.4028235e+38 -> inf ; the weight of a score of -inf is 0
// @equivalent sdpa_vector_*_192_128#? ; inplace: allow out queries ; of 128 elements and of 192
// @equivalent sdpa_rows_{window|capped|sinks}_* ; require: gqa_factor >= 1 && N >= L -> N >= L ; gqa_factor = 0 divides by zero in the shape of the keys
// @equivalent sdpa_rows_capped_* ; operation: top: N - L + 1 + q -> N - L + 1 - q ; scores are within the cap: any number near them is a factor of all weights
// @equivalent sdpa_rows_capped_* ; operation: top: N - L + 1 -> N - L - 1 ; likewise
// @equivalent sdpa_rows_capped_* ; bound: top: * - 1, * ; likewise
// @equivalent sdpa_rows_capped_* ; operation: weight: score* - top* -> score* + top* ; likewise
// @equivalent sdpa_* ; require: gqa_factor >= 1 && N >= 1 -> N >= 1 ; gqa_factor = 0 divides by zero in the shape of the keys
